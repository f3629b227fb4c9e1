"""Members of a recorded classic group as `plan-migration` rehearses them: assignor, client library, subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from groupledger.answers.generations import cluster_of
from groupledger.answers.rows import matching, one_of, records
from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow, as_tuples
from groupledger.core.moment import millis
from groupledger.core.protocol.recorded_clients import recorded_group

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader, Value
    from groupledger.core.protocol.recorded_clients import RecordedGroup

R = TypeVar("R", GroupSnapshotRow, MemberSnapshotRow)


def recorded_members(
    reader: Reader, group_id: str, cluster: str | None = None, library: str | None = None
) -> tuple[RecordedGroup, dict[str, int]]:
    """The group as it last had members, and the partitions of those of its topics that a listing names.

    `library`: that of all members of whom the log does not tell it. Raises Fault: UNKNOWN_GROUP, AMBIGUOUS_GROUP, and
    as `recorded_group`.
    """
    condition, values = matching("t.", cluster_id=cluster_of(reader, group_id, cluster), group_id=group_id)
    groups = _rows(reader, GroupSnapshotRow, f"current_group_snapshots t WHERE {condition}", "log_partition", values)
    members = _rows(reader, MemberSnapshotRow, f"current_member_snapshots t WHERE {condition}", "member_order", values)
    recorded = recorded_group(groups, members, library)
    topics = sorted({topic for client in recorded.clients for topic in client.topics})
    return recorded, _partitions(reader, recorded.snapshot.cluster_id, topics)


def _rows(reader: Reader, kind: type[R], rows: str, order: str, values: dict[str, Value]) -> list[R]:
    """Rows as the fold has them: moments in milliseconds, lists and structs as tuples."""
    columns = ", ".join(f"t.{name}" for name in kind._fields)
    found = records(reader, f"SELECT {columns} FROM {rows} ORDER BY t.offset, t.{order}", **values)
    return [kind(*(_value(name, row[name]) for name in kind._fields)) for row in found]


def _value(name: str, value: Any) -> Any:
    return millis(value) if name == "observed_at" else as_tuples(value)


def _partitions(reader: Reader, cluster: str, topics: list[str]) -> dict[str, int]:
    """The counts of the last listing; none of a topic that was deleted."""
    if not topics:
        return {}
    which, named = one_of("t.topic", "topic", topics)
    rows = records(
        reader,
        f"SELECT t.topic, t.partition_count FROM current_topic_snapshots t WHERE t.cluster_id = :cluster AND {which} "
        "ORDER BY t.valid_from, CASE WHEN t.partition_count IS NULL THEN 0 ELSE 1 END, t.partition_count",
        cluster=cluster,
        **named,
    )
    counts = {row["topic"]: row["partition_count"] for row in rows}
    return {topic: counts[topic] for topic in topics if counts.get(topic) is not None}
