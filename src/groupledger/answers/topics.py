"""The lives of a topic name: a name used again after a deletion is another topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.rows import matching, records
from groupledger.core.listings import change_order
from groupledger.core.moment import from_micros, micros

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from groupledger.answers.rows import Reader


@dataclass(frozen=True, slots=True)
class TopicLife:
    """A stretch of time in which a topic had one id and one partition count. `until` is None while it lasts."""

    cluster_id: str
    topic_id: str | None
    partition_count: int
    since: datetime
    until: datetime | None


def topic_lives(reader: Reader, topic: str, cluster: str | None = None) -> tuple[TopicLife, ...]:
    """All that the topic listings said of the name, in order of cluster and time."""
    condition, values = matching("t.", topic=topic, cluster_id=cluster)
    query = "SELECT t.cluster_id, t.topic_id, t.partition_count, t.valid_from FROM current_topic_snapshots t WHERE "
    found = records(reader, query + condition, **values)
    return lives(
        (row["cluster_id"], row["topic_id"], row["partition_count"], micros(row["valid_from"])) for row in found
    )


def lives(changes: Iterable[tuple[str, str | None, int | None, int]]) -> tuple[TopicLife, ...]:
    """Changes (cluster, topic id, partition count or None for deleted, microseconds) -> the stretches between them."""
    ordered = sorted(changes, key=lambda change: (change[0], change_order(change[3], change[1], change[2])))
    found = []
    for index, (cluster, topic_id, count, since) in enumerate(ordered):
        later = ordered[index + 1] if index + 1 < len(ordered) and ordered[index + 1][0] == cluster else None
        if count is not None:
            until = from_micros(later[3]) if later else None
            found.append(TopicLife(cluster, topic_id, count, from_micros(since), until))
    return tuple(found)
