"""All that a ledger has of one group: its snapshots and members as the fold wrote them, its records as they came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from groupledger.answers.generations import cluster_of
from groupledger.answers.rows import matching, records
from groupledger.core.history.group_log import read_group_log
from groupledger.core.history.rows import GroupSnapshotRow, LogRow, MemberSnapshotRow, as_tuples
from groupledger.core.moment import millis

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader, Value
    from groupledger.core.history.group_log import RecordedLog

R = TypeVar("R", GroupSnapshotRow, MemberSnapshotRow)


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """A group of one cluster: both lists in order of position."""

    cluster_id: str
    groups: list[GroupSnapshotRow]
    members: list[MemberSnapshotRow]


def recorded_history(reader: Reader, group_id: str, cluster: str | None = None) -> RecordedHistory:
    """Every snapshot of the group and its members. Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, AMBIGUOUS_GROUP."""
    cluster_id = cluster_of(reader, group_id, cluster)
    condition, values = matching("t.", cluster_id=cluster_id, group_id=group_id)
    groups = _rows(reader, GroupSnapshotRow, f"current_group_snapshots t WHERE {condition}", "log_partition", values)
    members = _rows(reader, MemberSnapshotRow, f"current_member_snapshots t WHERE {condition}", "member_order", values)
    return RecordedHistory(cluster_id, groups, members)


def group_log(reader: Reader, group_id: str, cluster_id: str, log_partition: int) -> RecordedLog:
    """The records of a group, decoded: those in the partition of `__consumer_offsets` that its history is of."""
    condition, values = matching("t.", cluster_id=cluster_id, group_id=group_id, log_partition=log_partition)
    found = records(
        reader,
        f"SELECT t.offset, t.timestamp, t.key, t.value FROM current_log_records t WHERE {condition} ORDER BY t.offset",
        **values,
    )
    return read_group_log(
        LogRow(log_partition, row["offset"], millis(row["timestamp"]), row["key"], row["value"]) for row in found
    )


def _rows(reader: Reader, kind: type[R], rows: str, order: str, values: dict[str, Value]) -> list[R]:
    """Rows as the fold has them: moments in milliseconds, lists and structs as tuples."""
    columns = ", ".join(f"t.{name}" for name in kind._fields)
    found = records(reader, f"SELECT {columns} FROM {rows} ORDER BY t.offset, t.{order}", **values)
    return [kind(*(_value(name, row[name]) for name in kind._fields)) for row in found]


def _value(name: str, value: Any) -> Any:
    return millis(value) if name == "observed_at" else as_tuples(value)
