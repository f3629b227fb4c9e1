"""What stands between one recorded group and KIP-848: `core.conversion`'s reasons, with the evidence of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.states import CONSUMER
from groupledger.core import conversion as c
from groupledger.core.protocol.compatibility import (
    JAVA_WRITER,
    LIBRARIES,
    SPEAK_KIP_848,
    STREAMS,
    is_older_java,
    libraries,
    named_writers,
)
from groupledger.core.protocol.recorded import CONSUMERS
from groupledger.core.text import shortened
from groupledger.core.wire.consumer_protocol import NEWEST_VERSION

if TYPE_CHECKING:
    from groupledger.answers.rows import Record
    from groupledger.core.assignors.server.conversion import GroupBefore, Owned
    from groupledger.core.conversion import Effect, Obstacle

KNOWN_ASSIGNORS = frozenset(name for each in LIBRARIES.values() for name in each.assignors)
NAMED = 3
"""Members or topics that an evidence names."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """One obstacle of one group, and what says so."""

    code: str
    effect: Effect
    evidence: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a ledger knows of a group beside its last state.

    `user_data`: members whose recorded assignment has some; None: the record's bytes are not kept. `assignors` and
    `subscriptions`: members that had several in the period without a restart, with those. `unread`: a later record that
    is in quarantine. `storm`: what says that it is one.
    """

    user_data: frozenset[str] | None = frozenset()
    assignors: Mapping[str, tuple[str, ...]] | None = None
    subscriptions: frozenset[str] = frozenset()
    storm: str | None = None
    unread: str | None = None


def obstacles(state: Record, members: Sequence[Record], seen: Evidence) -> Iterator[Hindrance]:
    """All that is known from the last state with members; `state` also has `is_empty`: nobody is in it by now.

    Of a group that is converted already only what is left to do.
    """
    if state["group_type"] == CONSUMER:
        yield from _of_converted(members)
        return
    if state["group_type"] != CLASSIC or state["protocol_type"] not in CONSUMERS:
        yield _reason(c.NOT_CONSUMERS, f"the protocol type is {state['protocol_type']!r}")
        return
    if not members:
        yield _reason(c.NO_MEMBERS_RECORDED, "no record of it in the ledger has a member")
        return
    if state["assignor"] == STREAMS:
        yield _reason(
            c.IS_STREAMS,
            f"the assignor is {STREAMS!r}: docs/guides/decide/kip-848-readiness.md says what to do instead",
        )
        return
    if state["is_empty"]:
        yield _reason(c.EMPTY_NOW, "what is said here is of its last members")
    yield from _of_assignor(state, seen)
    yield from _of_clients(state, members)
    yield from _of_members(state, members, seen)
    if seen.storm is not None:
        yield _reason(c.REBALANCE_STORM, seen.storm)


def _reason(obstacle: Obstacle, evidence: str) -> Hindrance:
    return Hindrance(obstacle.code, obstacle.effect, evidence)


def _of_converted(members: Sequence[Record]) -> Iterator[Hindrance]:
    classic = [row["member_id"] for row in members if row["subscription_version"] is not None]
    if classic:
        yield _reason(
            c.MIXED_MEMBERS, f"{len(classic):,} of {len(members):,} members are classic: {few(_short(classic))}"
        )


def _of_assignor(state: Record, seen: Evidence) -> Iterator[Hindrance]:
    assignor = state["assignor"]
    if not state["complete"]:
        yield _reason(c.INCOMPLETE_RECORD, "no verdict rests on the last record")
    if seen.unread is not None:
        yield _reason(c.RECORD_NOT_READ, seen.unread)
    if assignor not in KNOWN_ASSIGNORS:
        yield _reason(c.CUSTOM_ASSIGNOR, f"the assignor is {assignor!r}")
    if seen.user_data is None:
        yield _reason(c.ASSIGNMENT_NOT_KEPT, f"the bytes of {state['snapshot_id']} are not in `log_records`")
    elif seen.user_data:
        told = f"{assignor} wrote some for {len(seen.user_data):,} of {state['members']:,} members"
        yield _reason(c.ASSIGNMENT_HAS_USER_DATA, f"{told}: {few(_short(seen.user_data))}")
    if seen.assignors:
        [member, *_] = _short(seen.assignors)
        more = f"; so did {len(seen.assignors) - 1:,} more" if len(seen.assignors) > 1 else ""
        told = " and under ".join(seen.assignors[min(seen.assignors)])
        yield _reason(c.SEVERAL_ASSIGNORS, f"{member} took part under {told}{more}")


def _of_clients(state: Record, members: Sequence[Record]) -> Iterator[Hindrance]:
    lacking: dict[str, list[str]] = {}
    strangers, unread = [], dict[str, list[str]]()
    for row in members:
        version = row["subscription_version"]
        if version is None or not 0 <= version <= NEWEST_VERSION:
            told = "an empty subscription" if version is None else f"version {version} of the subscription"
            unread.setdefault(told, []).append(row["member_id"])
            continue
        known = libraries(state["assignor"], version, row["user_data"])
        if not known:
            strangers.append(row["member_id"])
        elif not known & SPEAK_KIP_848 or (is_older_java(version) and known & SPEAK_KIP_848 <= {JAVA_WRITER}):
            lacking.setdefault(" or ".join(named_writers(known, version)), []).append(row["member_id"])
    for named, those in sorted(unread.items()):
        yield _reason(c.SUBSCRIPTION_NOT_KNOWN, f"{few(_short(those))} {_writes(those)} {named}")
    for named, those in sorted(lacking.items()):
        yield _reason(c.CLIENT_LACKS_KIP_848, f"{few(_short(those))} {_writes(those)} as {named}")
    if strangers and state["assignor"] in KNOWN_ASSIGNORS:
        yield _reason(c.CLIENT_NOT_KNOWN, f"{few(_short(strangers))} {_writes(strangers)} as none of them")


def _of_members(state: Record, members: Sequence[Record], seen: Evidence) -> Iterator[Hindrance]:
    static = sorted(row["group_instance_id"] for row in members if row["group_instance_id"] is not None)
    if static:
        yield _reason(c.STATIC_MEMBERS, f"{len(static):,} of {len(members):,} members: {few(static)}")
    if state["shared_topics"] is None:
        kinds = {tuple(sorted(set(row["topics"] or ()))) for row in members}
        if len(kinds) > 1:
            yield _reason(c.SUBSCRIPTIONS_DIFFER, f"{len(kinds):,} subscriptions in {len(members):,} members")
    if seen.subscriptions:
        yield _reason(c.MAY_BE_A_PATTERN, few(_short(seen.subscriptions)))


def copartitioned(group: GroupBefore, afresh: Mapping[str, Owned]) -> Hindrance | None:
    """COPARTITIONED where topics of one partition count lie side by side, and do not under `uniform` dealt `afresh`."""
    before = {each.member_id: each.owned for each in group.members}
    sizes: dict[int, list[str]] = {}
    for topic, (_, count) in sorted(group.listed.items()):
        sizes.setdefault(count, []).append(topic)
    for count, topics in sorted(sizes.items()):
        if count < 2 or len(topics) < 2 or len(before) < 2 or _apart(before, topics, count):
            continue
        apart = _apart(afresh, topics, count)
        if apart:
            told = f"{few(topics)} ({count:,} partitions each)"
            return _reason(c.COPARTITIONED, f"{told}: dealt afresh, `uniform` parts {apart:,} of {count:,} numbers")
    return None


def _apart(owned: Mapping[str, Owned], topics: Sequence[str], count: int) -> int:
    """Partition numbers whose owners differ from topic to topic, or that nobody has."""
    owner = {place: member for member, places in owned.items() for place in places}
    numbers = ({owner.get((topic, number)) for topic in topics} for number in range(count))
    return sum(len(owners) > 1 or None in owners for owners in numbers)


def few(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _short(member_ids: Iterable[str]) -> list[str]:
    """In the order of the ids, each as short as it can be told from the others."""
    names = sorted(member_ids)
    short = shortened(names)
    return [short[name] for name in names]


def _writes(those: Sequence[str]) -> str:
    return "writes" if len(those) == 1 else "write"
