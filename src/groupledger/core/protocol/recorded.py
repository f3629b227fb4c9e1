"""The calls that members made, from what the offsets log recorded of a classic group: the timelines of KIP-429 again.

The log has each member's claim and assignment, generation by generation; the consumer of `core.protocol.consumer`, fed
with them, makes the calls. It cannot show how a member ended, nor what happened in a generation that is not recorded:
such calls carry a `Certainty` that says so.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from groupledger.core.custom.group import Protocol, TopicPartition
from groupledger.core.history.kinds import Kind
from groupledger.core.history.rows import Assignment, GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.callbacks import NOTHING, Call, Callback, PartitionSet, call
from groupledger.core.step import Form

REMEMBERING = frozenset({"sticky"})
"""Assignors whose members tell what they remember; it was revoked before they joined."""


CLASSIC, CONSUMER = "classic", "consumer"
CONSUMERS = (None, "", "consumer")
"""Protocol types of groups of consumers; a group is born without one, and has none while it is empty."""


class Certainty(enum.StrEnum):
    """How sure a call is."""

    RECORDED = "recorded"  # it follows from the record
    AFTER_GAP = "after-gap"  # generations are missing before it: others may have come between
    REVOKED_OR_LOST = "revoked-or-lost"  # given up before joining; a member that fell out under its old id calls lost
    UNKNOWN_END = "unknown-end"  # the member is gone: revoked if it closed, lost if it fell out, nothing if it crashed


class RecordedCall(NamedTuple):
    """One call: of which member at which snapshot, and its place among all calls of that snapshot."""

    snapshot_id: str
    cluster_id: str
    group_id: str
    generation: int | None
    at_ms: int
    order: int
    member_id: str
    client_id: str | None
    call: Call
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of one snapshot: what it had when that came, and what it claims."""

    row: MemberSnapshotRow
    held: PartitionSet
    claimed: PartitionSet


_Told = tuple[_Member, Call, Certainty]


def recorded_calls(groups: Iterable[GroupSnapshotRow], members: Iterable[MemberSnapshotRow]) -> Iterator[RecordedCall]:
    """Yield the calls of one group's snapshots, both in order of offset; none for KIP-848 and Connect groups.

    A classic member keeps through an online conversion what it has: nobody calls it for that.
    """
    rows = {snapshot_id: list(some) for snapshot_id, some in groupby(members, key=lambda row: row.snapshot_id)}
    before: GroupSnapshotRow | None = None
    had: dict[str, _Member] = {}
    for snapshot in groups:
        if snapshot.group_type == CONSUMER or (snapshot.group_type == CLASSIC and snapshot.snapshot_kind == Kind.FOLD):
            had = {row.member_id: _taken_over(row) for row in rows.get(snapshot.snapshot_id, ()) if _is_classic(row)}
            before = snapshot
            continue
        if snapshot.group_type != CLASSIC or snapshot.protocol_type not in CONSUMERS:
            before, had = None, {}
            continue
        if before is not None and before.incarnation != snapshot.incarnation:
            before, had = None, {}
        has = {row.member_id: _member(row, had) for row in rows.get(snapshot.snapshot_id, ())}
        told = list(_calls(snapshot, before, had, has))
        yield from _stamped(snapshot, told)
        before, had = snapshot, {name: replace(each, held=_held(each, told)) for name, each in has.items()}


def _member(row: MemberSnapshotRow, had: Mapping[str, _Member]) -> _Member:
    held = had[row.member_id].held if row.member_id in had else NOTHING
    return _Member(row, held, assigned_partitions(row.claimed))


def _is_classic(row: MemberSnapshotRow) -> bool:
    return row.subscription_version is not None


def _taken_over(row: MemberSnapshotRow) -> _Member:
    """Return a classic member in, or from, a KIP-848 group, with what is recorded as its own."""
    recorded = (*(row.recorded or ()), *(row.pending_revocation or ()))
    return _Member(row, assigned_partitions(recorded), assigned_partitions(row.claimed))


def _held(member: _Member, told: Iterable[_Told]) -> PartitionSet:
    """What a member has after a snapshot: what it was told last, or what it had where it was told nothing."""
    mine = [made.partitions for who, made, _ in told if who is member and made.callback is Callback.ON_ASSIGNMENT]
    return frozenset(mine[-1]) if mine else member.held


def assigned_partitions(assignment: Assignment | None) -> PartitionSet:
    """The partitions of an assignment; of a topic without a name by its id."""
    return frozenset(
        TopicPartition(name or topic_id or "", number)
        for topic_id, name, numbers in assignment or ()
        for number in numbers
    )


def _calls(
    snapshot: GroupSnapshotRow, before: GroupSnapshotRow | None, had: Mapping[str, _Member], has: Mapping[str, _Member]
) -> Iterator[_Told]:
    """Calls of one snapshot: of those who are gone, then before JoinGroup, of the leader, after SyncGroup."""
    for gone in (member for name, member in sorted(had.items()) if name not in has and member.held):
        yield gone, call(Callback.REVOKED, gone.held), Certainty.UNKNOWN_END
    rewrite = before is not None and bool(had) and before.generation == snapshot.generation
    taking_part = [member for name, member in has.items() if not rewrite or name not in had]
    sure = Certainty.AFTER_GAP if _gap(before, snapshot) else Certainty.RECORDED
    joining = [(member, *_join(member, snapshot)) for member in taking_part]
    for member, _, calls in joining:
        for made in calls:
            gave_all = made.callback is Callback.REVOKED and not member.claimed and sure is Certainty.RECORDED
            yield member, made, Certainty.REVOKED_OR_LOST if gave_all else sure
    if not rewrite and snapshot.leader is not None and snapshot.leader in has:
        owned = frozenset(each for _, state, _ in joining for each in state.owned)
        asked = call(Callback.ASSIGN, owned)
        yield has[snapshot.leader], asked._replace(topics=snapshot.subscribed_topics or ()), sure
    for member, state, _ in joining:
        for made in c.receive_assignment(state, assigned_partitions(member.row.recorded)).calls:
            yield member, made, sure


def _gap(before: GroupSnapshotRow | None, snapshot: GroupSnapshotRow) -> bool:
    if before is None or before.generation is None or snapshot.generation is None:
        return False
    return snapshot.generation - before.generation > 1


def _join(member: _Member, snapshot: GroupSnapshotRow) -> tuple[c.Consumer, tuple[Call, ...]]:
    """The member while it waits for SyncGroup, and what it called before JoinGroup.

    What it did tells its protocol, not the assignor's name: who claims something kept it, who had something and claims
    nothing gave it up. Who had nothing makes the same calls either way.
    """
    topics = member.row.topics if member.row.topics is not None else snapshot.shared_topics or ()
    keeps = bool(member.claimed) and snapshot.assignor not in REMEMBERING
    given_up = member.held - member.claimed if keeps else NOTHING
    early = (call(Callback.REVOKED, given_up),) if given_up else ()
    protocol = Protocol.COOPERATIVE if keeps else Protocol.EAGER
    owned = member.claimed if keeps else member.held
    joining = c.join(c.Consumer(protocol, topics, {}, form=Form.AS_KAFKA, owned=owned))
    return joining.consumer, (*early, *joining.calls)


def _stamped(snapshot: GroupSnapshotRow, told: Iterable[_Told]) -> Iterator[RecordedCall]:
    where = snapshot.snapshot_id, snapshot.cluster_id, snapshot.group_id, snapshot.generation, snapshot.observed_at
    for order, (member, made, certainty) in enumerate(told):
        yield RecordedCall(*where, order, member.row.member_id, member.row.client_id, made, certainty)
