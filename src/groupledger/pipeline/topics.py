"""The lives of a topic name: a name used again after a deletion is another topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.core.listings import change_order
from groupledger.core.moment import from_micros
from groupledger.tables import TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from groupledger.pipeline.ledger import Ledger

SINCE = "since"


@dataclass(frozen=True, slots=True)
class TopicLife:
    """A stretch of time in which a topic had one id and one partition count. `until` is None while it lasts."""

    cluster_id: str
    topic_id: str | None
    partition_count: int
    since: datetime
    until: datetime | None


def topic_lives(ledger: Ledger, topic: str, cluster: str | None = None) -> tuple[TopicLife, ...]:
    """All that the topic listings said of the name, in order of cluster and time."""
    rows = ledger.current(TOPIC_SNAPSHOTS).where(F.col(c.TOPIC) == topic)
    rows = rows if cluster is None else rows.where(F.col(c.CLUSTER_ID) == cluster)
    changes = rows.select(
        c.CLUSTER_ID, c.TOPIC_ID, c.PARTITION_COUNT, F.unix_micros(c.VALID_FROM).alias(SINCE)
    ).collect()
    return lives((row[0], row[1], row[2], row[3]) for row in changes)


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
