"""Members of a recorded group as `plan-migration` rehearses them, and as `simulate --from-ledger` goes on with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.answers.recorded_history import recorded_history
from groupledger.answers.rows import one_of, records
from groupledger.core.protocol.recorded_clients import recorded_group
from groupledger.core.protocol.recorded_start import recorded_start

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.answers.rows import Reader
    from groupledger.core.protocol.recorded_clients import RecordedGroup
    from groupledger.core.protocol.recorded_start import GroupStart


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
    counts = _partitions(reader, recorded.snapshot.cluster_id, topics)
    return recorded, {topic: count for topic, count in counts.items() if count is not None}


def members_now(
    reader: Reader, group_id: str, cluster: str | None = None, more: Iterable[str] | None = ()
) -> tuple[GroupStart, dict[str, int | None]]:
    """Return the last recorded state of the group, and the partitions of its topics; None: the topic was deleted.

    `more`: other topics; None: all of the cluster. A topic that no listing names is missing. Raises Fault:
    UNKNOWN_GROUP, AMBIGUOUS_GROUP, and as `recorded_start`.
    """
    history = recorded_history(reader, group_id, cluster)
    found = recorded_start(history.groups, history.members)
    topics = {topic for join in found.joins for topic in join.topics}
    topics |= {topic for join in found.joins if join.seat is not None for topic, _ in join.seat.assigned}
    return found, _partitions(reader, history.cluster_id, None if more is None else sorted({*topics, *more}))


def _partitions(reader: Reader, cluster: str, topics: list[str] | None) -> dict[str, int | None]:
    """Return the counts of the last listing; of all topics where None are named."""
    if topics == []:
        return {}
    which, named = ("true", {}) if topics is None else one_of("t.topic", "topic", topics)
    rows = records(
        reader,
        f"SELECT t.topic, t.partition_count FROM current_topic_snapshots t WHERE t.cluster_id = :cluster AND {which} "
        "ORDER BY t.valid_from, CASE WHEN t.partition_count IS NULL THEN 0 ELSE 1 END, t.partition_count",
        cluster=cluster,
        **named,
    )
    return {row["topic"]: row["partition_count"] for row in rows}
