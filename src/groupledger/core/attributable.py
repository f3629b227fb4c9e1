"""Divide many records: those attributed without asking any assignor, those that cannot be attributed, and the rest.

An answer of the assignor that ran, if equal list for list, is attributed to it unless the leader's bytes are another
library's: 100,000 groups of Java clients ask no other assignor. `core.attribution` decides for one group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core import ragged
from groupledger.core.attributed import Attributed
from groupledger.core.attribution import JAVA, Agreement, attribution, possible_views
from groupledger.core.batch import NONE
from groupledger.core.protocol.handwriting import is_older_java, libraries
from groupledger.core.verdict import Verdict
from groupledger.core.wire.user_data import STICKY, STRAY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from groupledger.core.attribution import RecordedRound
    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.slots import Mask
    from groupledger.core.snapshots import Snapshots

DEALING = frozenset({"range", "roundrobin", "RoundRobinAssigner"})
"""Protocols whose assignors deal partitions in one pass; other assignors search."""
MOST_DEALT, MOST_SEARCHED = 1_000_000, 250_000
"""Maximum pairs of a member and a partition of its topics: about a second for each assignor that is asked."""
MOST_ENTRIES = 200_000
"""Maximum partitions recorded or claimed."""
BYTES_A_CLAIM = 4
"""At least, of user data."""


AttributedTo = tuple[Attributed, tuple[str, ...]]
"""How a record is attributed, and the names of the assignors."""

OF_AGREEMENT = {
    Agreement.LISTS: Attributed.EXACT,
    Agreement.SETS: Attributed.EQUAL_SETS,
    Agreement.PROMISE: Attributed.PERHAPS,
    Agreement.NONE: Attributed.NO_KNOWN_ASSIGNOR,
}
UNASKED = {
    Verdict.REWRITE: Attributed.REWRITE,
    Verdict.NOT_COMPARED: Attributed.NOT_COMPARED,
    Verdict.CARRIED_OVER: Attributed.NOT_COMPARED,
    Verdict.CANNOT_TELL_NO_RECORD: Attributed.NO_RECORD,
    Verdict.CANNOT_TELL_NO_ASSIGNOR: Attributed.NO_ASSIGNOR_RECORDED,
    Verdict.CANNOT_TELL_INCOMPLETE: Attributed.INCOMPLETE_SNAPSHOT,
    Verdict.CANNOT_TELL_PROTOCOL_TYPE: Attributed.OTHER_PROTOCOL_TYPE,
}
"""Verdicts on records of leaders for which no assignor is asked."""
EQUAL = frozenset(each for each in Verdict if each.is_equal)
"""Verdicts by which the assignor that ran gives the recorded partitions to the recorded members."""


class Judged(NamedTuple):
    """What decides whether G judged snapshots are attributed."""

    verdict: IntArray  # [G] `Verdict`
    peopled: Mask  # [G]
    modern: Mask  # [G] a coordinator's group
    rejected: Mask  # [G] the input is refused
    foreign: Mask  # [G] the leader's bytes may well be another library's than that of the assignor that ran


def settled(judged: Judged) -> IntArray:
    """Return the `Attributed` of each group that is decided without asking an assignor, NONE for the others: [G]."""
    by_verdict = np.full(len(Verdict), NONE, np.int32)
    by_verdict[list(UNASKED)] = list(UNASKED.values())
    found = by_verdict[judged.verdict]
    found[(judged.verdict == Verdict.EXACT) & ~judged.foreign] = Attributed.EXACT
    found[judged.modern] = Attributed.NO_LEADER
    found[~judged.peopled] = Attributed.NO_MEMBERS
    found[judged.rejected] = Attributed.REJECTED
    return found


class Sizes(NamedTuple):
    """What the assignors would have to process, of each of G groups."""

    pairs: LongArray  # members and partitions of their topics, at the moment with the most
    entries: LongArray  # partitions recorded or claimed

    def too_large(self, group: int, protocol: str | None) -> bool:
        """Return whether assignors of this protocol would take too long."""
        most = MOST_DEALT if protocol in DEALING else MOST_SEARCHED
        return bool(self.pairs[group] > most or self.entries[group] > MOST_ENTRIES)


def sizes(snapshots: Snapshots, user_data_bytes: LongArray) -> Sizes:
    """Return the sizes of each group; `user_data_bytes` [M] of each member."""
    batch, topics, group = snapshots.batch, snapshots.topics, snapshots.member_group
    counts = topics.now, topics.before, topics.before_that, topics.after
    most = 1 + np.max(counts, axis=0, initial=0).astype(np.int64)
    of_subscription = np.zeros(len(batch.subscription_start) - 1, np.int64)
    of_subscription[batch.member_subscription] = group
    owner = ragged.owners(batch.subscription_start)
    rows = batch.topic_start[of_subscription[owner]] + batch.subscription_topic
    looked = np.bincount(owner, weights=most[rows], minlength=len(of_subscription))
    entries = np.diff(snapshots.recorded.start) + np.diff(batch.claim_start) + user_data_bytes // BYTES_A_CLAIM
    pairs, entries = (
        np.bincount(group, weights=each, minlength=batch.groups)
        for each in (looked[batch.member_subscription], entries)
    )
    return Sizes(pairs.astype(np.int64), entries.astype(np.int64))


def is_foreign(protocol: str | None, version: int | None, user_data: bytes | None) -> bool:
    """Return whether a leader that wrote this as a member may well be of another library than Java.

    Others are known to write it, and Java is not, or only a client older than 3.5 (Sarama's bytes are those of old
    Java clients). What Java 3.5 and later writes is taken for Java's.
    """
    if protocol == STICKY and user_data and not user_data.startswith(STRAY_PREFIX):
        user_data = None  # claims, as Java writes them, too
    wrote = libraries(protocol, version, user_data)
    return bool(wrote - {JAVA_LIBRARY}) and (is_older_java(version) or JAVA_LIBRARY not in wrote)


def is_javas(assignor: str) -> bool:
    """Return whether an assignor that ran is one of Kafka's own."""
    return assignor in JAVA_NAMES


def name_of(assignor: str) -> str:
    """Return the name in an attribution of an assignor that ran: `range` -> `java-range`."""
    return JAVA_NAMES.get(assignor, assignor)


def attributed(
    happened: RecordedRound, views: Sequence[Mapping[str, int]], verdict: Verdict, ran: str | None
) -> AttributedTo:
    """Ask the assignors, with the topic views that the leader may have had, likeliest first.

    If they agree less with the record than the assignor that ran, by its verdict, that one is named: it knows racks.
    """
    found = attribution(happened, views)
    code = OF_AGREEMENT[found.agreement]
    if code is Attributed.NO_KNOWN_ASSIGNOR and not any(True for _ in possible_views(happened, views)):
        code = Attributed.PARTITIONS_NOT_LISTED
    return unless_it_ran(code, verdict, ran, found.names)


def unless_it_ran(found: Attributed, verdict: Verdict, ran: str | None, names: tuple[str, ...] = ()) -> AttributedTo:
    """Return what was found, or the assignor that ran if its verdict says more."""
    of_verdict = Attributed.EXACT if verdict is Verdict.EXACT else Attributed.EQUAL_SETS
    if ran is not None and verdict in EQUAL and of_verdict < found:
        return of_verdict, (name_of(ran),)
    return found, names


JAVA_LIBRARY = JAVA[0].library
JAVA_NAMES = {each.protocol: each.name for each in JAVA}
