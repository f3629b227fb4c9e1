"""Partitions that changed hands between snapshots which users gave as tables: as in the fold of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from groupledger.core.history.modern import FIRST_EPOCH
from groupledger.core.history.ownership import Ownership, OwnershipChange
from groupledger.core.history.rows import Assignment, OwnershipChangeRow

FIRST_GENERATION = 1


class HeldSnapshot(NamedTuple):
    """A snapshot of a group, by what its members held; `held` None: it does not say so of every member.

    Times may be of any unit; the changes have the same.
    """

    cluster_id: str
    group_id: str
    snapshot_id: str
    incarnation: int
    offset: int
    observed_at: int
    generation: int | None
    group_epoch: int | None
    held: dict[str, Assignment] | None


class HoldingMember(NamedTuple):
    """A member of a snapshot, by its columns of that name."""

    member_id: str
    recorded: Assignment | None
    target: Assignment | None
    pending_revocation: Assignment | None


def held_by(members: Iterable[HoldingMember]) -> dict[str, Assignment] | None:
    """Member -> what it holds: what is recorded for it, and what it has yet to give up (KIP-848).

    A member without an assignment holds nothing. None where no member has one, nor a target: the source does not say.
    """
    ordered = sorted(members, key=attrgetter("member_id"))
    if ordered and all(member.recorded is None and member.target is None for member in ordered):
        return None
    return {member.member_id: (*(member.recorded or ()), *(member.pending_revocation or ())) for member in ordered}


def held_changes(snapshots: Iterable[HeldSnapshot]) -> Iterator[OwnershipChangeRow]:
    """Yield the changes between the snapshots of one group, given in order of incarnation, offset and snapshot id.

    Since when a partition is held is not known where the snapshot before is not there, or does not say who held what.
    """
    ownership = Ownership()
    before: HeldSnapshot | None = None
    seen = False
    for snapshot in snapshots:
        if before is None or before.incarnation != snapshot.incarnation:
            if before is not None:
                yield from _rows(ownership.settle({}, None), snapshot, before.incarnation)
            seen = _is_first(snapshot)
        before = snapshot
        if snapshot.held is not None:
            changes = ownership.settle(snapshot.held, snapshot.observed_at if seen else None)
            yield from _rows(changes, snapshot, snapshot.incarnation)
        seen = snapshot.held is not None


def _is_first(snapshot: HeldSnapshot) -> bool:
    """Whether nothing can have come before in its incarnation."""
    if snapshot.generation is not None:
        return snapshot.generation <= FIRST_GENERATION
    return snapshot.group_epoch is not None and snapshot.group_epoch <= FIRST_EPOCH


def _rows(changes: list[OwnershipChange], snapshot: HeldSnapshot, incarnation: int) -> list[OwnershipChangeRow]:
    return [
        OwnershipChangeRow(
            cluster_id=snapshot.cluster_id,
            topic_id=change.topic_id,
            topic=change.topic,
            partition=change.partition,
            group_id=snapshot.group_id,
            incarnation=incarnation,
            from_member_id=change.from_member_id,
            to_member_id=change.to_member_id,
            at=snapshot.observed_at,
            log_partition=None,
            offset=snapshot.offset,
            snapshot_id=snapshot.snapshot_id,
            held_since=change.held_since,
        )
        for change in changes
    ]
