"""Members of a recorded group as a script has them before its first event: what each holds, in which generation.

A classic group goes on from any record, since each is of a whole generation. A consumer group (KIP-848) goes on only
from a stable one: what its members had sent, and the coordinator's timers, are not in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.history.rows import Assignment, GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.protocol import events as e
from groupledger.core.protocol.recorded import assigned_partitions
from groupledger.core.protocol.recorded_clients import names_of, recorded_group

CONSUMER = e.GroupProtocol.CONSUMER.value
CANNOT_START = "CANNOT_START"


class GroupStart(NamedTuple):
    """The last recorded state of a group; `joins` seat its members, in the order of the record."""

    snapshot: GroupSnapshotRow
    generation: int
    joins: tuple[e.Join, ...]


def recorded_start(snapshots: Sequence[GroupSnapshotRow], members: Sequence[MemberSnapshotRow]) -> GroupStart:
    """Return the last state of a group, of all its snapshots in order; an empty group has no members to seat.

    Raises Fault: CANNOT_START for a state that the record does not tell in full, and as `recorded_group`.
    """
    last = snapshots[-1]
    number = last.generation if last.group_type != CONSUMER else last.group_epoch
    if not last.members:
        return GroupStart(last, number or 0, ())
    if last.group_type == CONSUMER:
        rows = [row for row in members if row.snapshot_id == last.snapshot_id]
        return GroupStart(last, number or 0, tuple(_consumer_members(last, rows)))
    return GroupStart(last, number or 0, tuple(_classic_members(snapshots, members)))


def _classic_members(snapshots: Sequence[GroupSnapshotRow], members: Sequence[MemberSnapshotRow]) -> Iterator[e.Join]:
    recorded = recorded_group(snapshots, members, else_do="write its join in a script that starts without a ledger")
    for client, row in zip(recorded.clients, recorded.members, strict=True):
        yield e.Join(
            client.member,
            client.topics,
            client.assignors,
            client.group_instance_id,
            client.byte_code,
            library=client.library,
            seat=e.RecordedSeat(
                row.member_id,
                _partitions(row, row.recorded, "assignment"),
                _partitions(row, row.claimed or (), "claim"),
                row.claimed_generation,
                leads=row.member_id == recorded.snapshot.leader,
            ),
        )


def _consumer_members(snapshot: GroupSnapshotRow, rows: Sequence[MemberSnapshotRow]) -> Iterator[e.Join]:
    _require_stable(snapshot, rows)
    names = names_of(rows)
    for row in rows:
        assigned = _partitions(row, row.recorded, "assignment")
        yield e.Join(
            names[row.member_id],
            row.topics if row.topics is not None else snapshot.shared_topics or (),
            group_instance_id=row.group_instance_id,
            group_protocol=e.GroupProtocol.CONSUMER,
            remote_assignor=snapshot.assignor,
            seat=e.RecordedSeat(row.member_id, assigned, assigned, row.member_epoch),
        )


def _require_stable(snapshot: GroupSnapshotRow, rows: Iterable[MemberSnapshotRow]) -> None:
    """Raise Fault("CANNOT_START") for a consumer group whose record does not tell what comes next."""
    told = f"group {snapshot.group_id!r} is at group epoch {snapshot.group_epoch}"
    if not snapshot.complete or snapshot.state != "Stable":
        expected = "a stable one: timers and what members last sent are not in the log"
        raise Fault(CANNOT_START, f"{told}, {snapshot.state}; expected {expected}")
    for row in rows:
        if row.subscribed_regex is not None:
            raise Fault(CANNOT_START, f"{told}; member {row.member_id!r} subscribes by a pattern; expected topic names")
        if row.subscription_version is not None:
            raise Fault(CANNOT_START, f"{told}; member {row.member_id!r} is a classic one; expected no conversion")


def _partitions(row: MemberSnapshotRow, found: Assignment | None, what: str) -> tuple[TopicPartition, ...]:
    """Return partitions by name. Raises Fault("CANNOT_START") where the record does not tell them."""
    if found is None:
        raise Fault(CANNOT_START, f"the record of member {row.member_id!r} has no {what} that can be read")
    unnamed = next((topic_id for topic_id, name, _ in found if name is None), None)
    if unnamed is not None:
        raise Fault(
            CANNOT_START, f"the {what} of member {row.member_id!r} has topic id {unnamed}, which no listing names"
        )
    return tuple(sorted(assigned_partitions(found)))
