"""Members of a recorded classic group as `plan-migration` rehearses them: assignor, client library, subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.answers.recorded_history import recorded_history
from groupledger.answers.rows import one_of, records
from groupledger.core.protocol.recorded_clients import recorded_group

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader
    from groupledger.core.protocol.recorded_clients import RecordedGroup


def recorded_members(
    reader: Reader, group_id: str, cluster: str | None = None, library: str | None = None
) -> tuple[RecordedGroup, dict[str, int]]:
    """The group as it last had members, and the partitions of those of its topics that a listing names.

    `library`: that of all members of whom the log does not tell it. Raises Fault: UNKNOWN_GROUP, AMBIGUOUS_GROUP, and
    as `recorded_group`.
    """
    history = recorded_history(reader, group_id, cluster)
    recorded = recorded_group(history.groups, history.members, library)
    topics = sorted({topic for client in recorded.clients for topic in client.topics})
    return recorded, _partitions(reader, recorded.snapshot.cluster_id, topics)


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
