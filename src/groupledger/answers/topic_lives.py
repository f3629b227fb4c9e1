"""The lives of a topic name: a name used again after a deletion is another topic."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from groupledger.answers.queries import matching, one_of, records
from groupledger.core.log.topic_partitions import change_order
from groupledger.core.moments import from_micros, micros

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from groupledger.answers.queries import Reader, Record


TopicChangeRow = tuple[str, str | None, int | None, int]
"""Cluster, topic id, partition count or None for deleted, and since when in microseconds."""

_LISTED = "SELECT t.cluster_id, t.topic, t.topic_id, t.partition_count, t.valid_from FROM current_topic_snapshots t"


@dataclass(frozen=True, slots=True)
class TopicLife:
    """A stretch of time in which a topic had one id and one partition count. `until` is None while it lasts."""

    cluster_id: str
    topic_id: str | None
    partition_count: int
    since: datetime
    until: datetime | None


def topic_lives(reader: Reader, topic: str, cluster: str | None = None) -> tuple[TopicLife, ...]:
    """Return all that the topic listings said of the name, in order of cluster and time."""
    condition, values = matching("t.", topic=topic, cluster_id=cluster)
    return lives(_change(row) for row in records(reader, f"{_LISTED} WHERE {condition}", **values))


def lives_of(reader: Reader, clusters: list[str], topics: list[str]) -> dict[tuple[str, str], tuple[TopicLife, ...]]:
    """Return the lives of several names, by cluster and name; a name that no listing has is left out."""
    in_clusters, values = one_of("t.cluster_id", "cluster", clusters)
    among, names = one_of("t.topic", "topic", topics)
    changes: dict[tuple[str, str], list[TopicChangeRow]] = {}
    for row in records(reader, f"{_LISTED} WHERE {in_clusters} AND {among}", **values, **names):
        changes.setdefault((row["cluster_id"], row["topic"]), []).append(_change(row))
    return {name: lives(of_name) for name, of_name in changes.items()}


def life_at(lives: tuple[TopicLife, ...], moment: datetime) -> TopicLife | None:
    """Return one name's life in a cluster at a moment; None if it was not listed, or deleted."""
    number = bisect_right(lives, moment, key=attrgetter("since"))
    last = lives[number - 1] if number else None
    return last if last is not None and (last.until is None or moment < last.until) else None


def _change(row: Record) -> TopicChangeRow:
    return row["cluster_id"], row["topic_id"], row["partition_count"], micros(row["valid_from"])


def lives(changes: Iterable[TopicChangeRow]) -> tuple[TopicLife, ...]:
    """Turn changes into the stretches between them."""
    ordered = sorted(changes, key=lambda change: (change[0], change_order(change[3], change[1], change[2])))
    found = []
    for index, (cluster, topic_id, count, since) in enumerate(ordered):
        later = ordered[index + 1] if index + 1 < len(ordered) and ordered[index + 1][0] == cluster else None
        if count is not None:
            until = from_micros(later[3]) if later else None
            found.append(TopicLife(cluster, topic_id, count, from_micros(since), until))
    return tuple(found)
