"""The last assignment of each group in a period: who has which partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.recorded_states import ASSIGNED, states
from groupledger.answers.rows import one_of, records
from groupledger.answers.topic_partitions import partitions

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.answers.scope import Scope
    from groupledger.answers.topic_partitions import NamedPartition


@dataclass(frozen=True, slots=True)
class AssignedMember:
    """A member and the partitions recorded for it."""

    member_id: str
    client_id: str | None
    group_instance_id: str | None
    rack_id: str | None
    partitions: tuple[NamedPartition, ...]


def last_states(within: Scope) -> tuple[str, dict[str, Value]]:
    """The last state of each group in the period, where it has members and the ledger its whole assignment."""
    query, values = states(within)
    return f"SELECT s.* FROM ({query}) s WHERE s.until_at IS NULL AND {ASSIGNED}", values


def assigned(reader: Reader, rows: Sequence[Record]) -> dict[str, tuple[AssignedMember, ...]]:
    """The members of these snapshots, in member order, by snapshot id."""
    found: dict[str, list[AssignedMember]] = {}
    for begin in range(0, len(rows), MOST_ASKED):
        some = rows[begin : begin + MOST_ASKED]
        which, ids = one_of("t.snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
        groups, named = one_of("t.group_id", "group", sorted({row["group_id"] for row in some}))
        query = (
            "SELECT t.snapshot_id, t.member_id, t.client_id, t.group_instance_id, t.rack_id, t.recorded "
            f"FROM current_member_snapshots t WHERE {groups} AND {which} ORDER BY t.snapshot_id, t.member_order"
        )
        for row in records(reader, query, **ids, **named):
            had = partitions(row.pop("recorded"))
            found.setdefault(row.pop("snapshot_id"), []).append(AssignedMember(**row, partitions=had))
    return {snapshot: tuple(members) for snapshot, members in found.items()}
