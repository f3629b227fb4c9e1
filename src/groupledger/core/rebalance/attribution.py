"""Find the assignors, of Java and of other libraries, that give exactly what a leader recorded.

A record that differs from Java's answer often comes from another library: computed with that library's assignor it is
equal list for list, and the order of the lists is evidence, too. If several libraries give the same, all are named. A
library whose bytes differ from what the leader wrote as a member is left out (`protocol.compatibility`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.assignors import Status, assign
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS, ClientAssignor, LeaderPlan, PossiblePlans
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.history.fold_rows import GroupSnapshotRow, MemberSnapshotRow, partitions_in
from groupledger.core.protocol.compatibility import LIBRARIES, is_older_java, libraries
from groupledger.core.rebalance import registry
from groupledger.core.rebalance.registry import Attributed
from groupledger.core.rebalance.verdict import Verdict
from groupledger.core.scenarios.form import encode_group
from groupledger.core.wire.consumer_protocol import STICKY, STRAY_PREFIX

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.arrays.snapshots import Snapshots


MOST_WORK = 10_000
"""Maximum members and partitions processed by all runs of one assignor; one run is tried in any case."""

Recorded = Mapping[str, Sequence[TopicPartition]]
"""Partitions of each member, in the order of the record."""


class AttributedTo(NamedTuple):
    """How a record is attributed, and the names of the assignors."""

    how: Attributed
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """A classic generation as its leader saw it, members in JoinGroup order, and its answer.

    `writers`: the libraries that write what the leader wrote as a member; empty: none whose bytes are known.
    """

    protocol: str
    leader: str | None
    members: tuple[Member, ...]
    recorded: Recorded
    writers: frozenset[str] = frozenset()


def recorded_round(snapshot: GroupSnapshotRow, members: Iterable[MemberSnapshotRow]) -> RecordedRound:
    """Build the round from a snapshot of a classic group of consumers and its members."""
    rows = sorted(members, key=lambda row: row.member_order)
    leader = next((row for row in rows if row.member_id == snapshot.leader), None)
    wrote = leader and libraries(snapshot.assignor, leader.subscription_version, leader.user_data)
    return RecordedRound(
        snapshot.assignor or "",
        snapshot.leader,
        tuple(_member(row, snapshot) for row in rows),
        {row.member_id: tuple(partitions_in(row.recorded)) for row in rows},
        wrote or frozenset(),
    )


def attribution(observed: RecordedRound, views: Iterable[Mapping[str, int]]) -> AttributedTo:
    """Return the assignors that agree best with the record under any of the topic views, likeliest first.

    A view, which the leader may have had, has partition counts by name. The first with which an assignor gives the
    recorded lists decides. In groups of one member most assignors give the same.
    """
    best = AttributedTo(Attributed.NO_KNOWN_ASSIGNOR)
    for view in possible_views(observed, views) if observed.members else ():
        found = _under(observed, Group(observed.members, view))
        if found.how < best.how:
            best = found
        if best.how is Attributed.EXACT:
            break
    return best


def possible_views(observed: RecordedRound, views: Iterable[Mapping[str, int]]) -> Iterator[dict[str, int]]:
    """Yield each distinct view of the topics that members name, if it has all partitions of the record."""
    least: dict[str, int] = {}
    for topic, number in (each for mine in observed.recorded.values() for each in mine):
        least[topic] = max(least.get(topic, 0), number + 1)
    seen: list[dict[str, int]] = []
    topics = {topic for member in observed.members for topic in member.topics}
    for view in views:
        named = {topic: count for topic, count in view.items() if topic in topics}
        if named not in seen and all(view.get(topic, 0) >= count for topic, count in least.items()):
            seen.append(named)
            yield named


def _under(observed: RecordedRound, group: Group) -> AttributedTo:
    agreeing: dict[Attributed, list[str]] = {}
    most = max(1, MOST_WORK // (1 + len(group.members) + sum(group.topics.values())))
    for candidate in _candidates(observed):
        agreeing.setdefault(_agreement(observed, candidate, group, most), []).append(candidate.name)
    best = min(agreeing, default=Attributed.NO_KNOWN_ASSIGNOR)
    return AttributedTo(best, () if best is Attributed.NO_KNOWN_ASSIGNOR else tuple(agreeing[best]))


def _candidates(observed: RecordedRound) -> Iterator[ClientAssignor]:
    """Yield the protocol's assignors, except libraries known to write other bytes than the leader's."""
    known = LIBRARIES.keys() if observed.writers else ()
    for each in (*JAVA, *CLIENT_ASSIGNORS.values()):
        if each.protocol == observed.protocol and (each.library in observed.writers or each.library not in known):
            yield each


def _agreement(observed: RecordedRound, candidate: ClientAssignor, group: Group, most: int) -> Attributed:
    """Compare with the plans of at most `most` runs; the assignor's promise counts only if there are more."""
    best = Attributed.NO_KNOWN_ASSIGNOR
    plans = candidate.plans(group, observed.leader)
    plans = replace(plans, most=min(plans.most, most))
    for plan in plans:
        pairs = [(mine, plan.lists.get(member_id, ())) for member_id, mine in observed.recorded.items()]
        if plan.failure is None and all(sorted(mine) == sorted(given) for mine, given in pairs):
            best = Attributed.EQUAL_SETS
            topics_too = candidate.sorts_topics
            if all(_in_topics(mine, topics_too) == _in_topics(given, topics_too) for mine, given in pairs):
                return Attributed.EXACT
    if best is Attributed.NO_KNOWN_ASSIGNOR and plans.cut and candidate.promise(group, observed.recorded):
        return Attributed.PERHAPS
    return best


def _in_topics(partitions: Sequence[TopicPartition], topics_too: bool) -> list[tuple[str, list[int]]]:
    """Return partition numbers by topic, as an assignment is written; topics sorted unless their order counts."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return list(topics.items()) if topics_too else sorted(topics.items())


def _java(protocol: str) -> ClientAssignor:
    """Return Kafka's own assignor of this name."""

    def plan(group: Group) -> LeaderPlan:
        encoded = encode_group(group, protocol)
        answer = assign(protocol, encoded.batch)
        if answer.status[0] != Status.OK:
            return LeaderPlan(failure=Status(int(answer.status[0])).name)
        return LeaderPlan(encoded.named(answer.assigned))

    return ClientAssignor("java", protocol, lambda group, leader: PossiblePlans(lambda _: plan(group)))


JAVA = tuple(_java(each.name) for each in registry.RECORDS if each.library == registry.JAVA)


def _member(row: MemberSnapshotRow, snapshot: GroupSnapshotRow) -> Member:
    return Member(
        row.member_id,
        row.topics if row.topics is not None else snapshot.shared_topics or (),
        tuple(partitions_in(row.claimed)) if snapshot.assignor not in registry.REMEMBERING else (),
        row.subscription_generation,
        row.group_instance_id,
        row.rack_id,
        row.user_data,
    )


# Divide many records: those attributed without asking any assignor, those that cannot be attributed, and the rest.
#
# An answer of the assignor that ran, if equal list for list, is attributed to it unless the leader's bytes are another
# library's: 100,000 groups of Java clients ask no other assignor. The part above decides for one group.

DEALING = frozenset({"range", "roundrobin", "RoundRobinAssigner"})
"""Protocols whose assignors deal partitions in one pass; other assignors search."""
MOST_DEALT, MOST_SEARCHED = 1_000_000, 250_000
"""Maximum pairs of a member and a partition of its topics: about a second for each assignor that is asked."""
MOST_ENTRIES = 200_000
"""Maximum partitions recorded or claimed."""
BYTES_A_CLAIM = 4
"""At least, of user data."""

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
    observed: RecordedRound, views: Sequence[Mapping[str, int]], verdict: Verdict, ran: str | None
) -> AttributedTo:
    """Ask the assignors, with the topic views that the leader may have had, likeliest first.

    If they agree less with the record than the assignor that ran, by its verdict, that one is named: it knows racks.
    """
    how, names = attribution(observed, views)
    if how is Attributed.NO_KNOWN_ASSIGNOR and not any(True for _ in possible_views(observed, views)):
        how = Attributed.PARTITIONS_NOT_LISTED
    return unless_it_ran(how, verdict, ran, names)


def unless_it_ran(found: Attributed, verdict: Verdict, ran: str | None, names: tuple[str, ...] = ()) -> AttributedTo:
    """Return what was found, or the assignor that ran if its verdict says more."""
    of_verdict = Attributed.EXACT if verdict is Verdict.EXACT else Attributed.EQUAL_SETS
    if ran is not None and verdict in EQUAL and of_verdict < found:
        return AttributedTo(of_verdict, (name_of(ran),))
    return AttributedTo(found, names)


JAVA_LIBRARY = JAVA[0].library
JAVA_NAMES = {each.protocol: each.name for each in JAVA}
