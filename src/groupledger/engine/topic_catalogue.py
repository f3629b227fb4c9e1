"""The topics a run knows: all changes of all topics, sent to the workers once a task beside the rows of the groups.

A cluster has few topics beside its history of groups, so they are no join: each bucket looks up the topics it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE
from groupledger.core.digest import digest
from groupledger.core.log.listings import Listings
from groupledger.engine.arrow_lists import Column, column, integers, whole
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import LongArray
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.arrays.snapshots import TopicViews
    from groupledger.core.history.topics import TopicChange

SINCE = "since"
"""When a change was first listed, in microseconds."""

SCHEMA = pa.schema(
    [
        (c.CLUSTER_ID, pa.string()),
        (c.TOPIC, pa.string()),
        (c.TOPIC_ID, pa.string()),
        (c.PARTITION_COUNT, pa.int32()),
        (SINCE, pa.int64()),
        (c.RACKS, pa.list_(pa.list_(pa.string()))),
    ]
)


@dataclass(frozen=True)
class TopicCatalogue:
    """Rows of `SCHEMA` in any order; the same rows are the same catalogue. A topic is known by cluster and name."""

    table: pa.Table

    @staticmethod
    def of_rows(rows: list[dict[str, object]]) -> TopicCatalogue:
        """From plain rows; what one does not say is null."""
        return TopicCatalogue(pa.Table.from_pylist(rows, schema=SCHEMA))

    @cached_property
    def _sorted(self) -> pa.Table:
        """By cluster and topic, then as `core.log.topic_partitions` says."""
        rows = whole(self.table)
        keys = {name: column(rows, name) for name in (c.CLUSTER_ID, c.TOPIC, SINCE)}
        keys["there"] = column(rows, c.PARTITION_COUNT).is_valid().cast(pa.int8())
        keys[c.TOPIC_ID] = pc.fill_null(column(rows, c.TOPIC_ID), "")
        keys[c.PARTITION_COUNT] = pc.fill_null(column(rows, c.PARTITION_COUNT), 0)
        order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
        return whole(rows.take(order))

    @property
    def digest(self) -> str:
        """Of what it says, whatever the order it was read in."""
        return digest([list(row.values()) for row in self._sorted.to_pylist()])

    @cached_property
    def _names(self) -> tuple[Column, Column, LongArray]:
        """Distinct clusters, distinct names, and the key of each change: cluster's code * names + name's code."""
        cluster, topic = (column(self._sorted, name).dictionary_encode() for name in (c.CLUSTER_ID, c.TOPIC))
        key = integers(cluster.indices, NONE).astype(np.int64) * len(topic.dictionary) + integers(topic.indices, NONE)
        return cluster.dictionary, topic.dictionary, key

    @cached_property
    def _by_key(self) -> tuple[LongArray, LongArray]:
        """The keys of topics, rising, and the topic each is of."""
        keys = self._names[2][self.listings.start[:-1]]
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @cached_property
    def listings(self) -> Listings:
        """The changes as integers, topic by topic."""
        key = self._names[2]
        begins = np.flatnonzero(np.diff(key, prepend=NONE) != 0)
        return Listings(
            start=np.append(begins, len(key)),
            since=integers(column(self._sorted, SINCE), 0),
            count=integers(column(self._sorted, c.PARTITION_COUNT), NONE),
        )

    @cached_property
    def negative(self) -> Mask:
        """Changes whose count cannot be one."""
        counts = column(self._sorted, c.PARTITION_COUNT)
        found: Mask = pc.fill_null(pc.less(counts, 0), False).to_numpy(zero_copy_only=False)
        return found

    def numbers(self, clusters: Column, cluster: LongArray, names: Column, name: LongArray) -> LongArray:
        """Return the topic of each pair (index into `clusters`, index into `names`); NONE: not listed."""
        known_clusters, known_names, _ = self._names
        own_cluster = integers(pc.index_in(clusters, value_set=known_clusters), NONE).astype(np.int64)[cluster]
        own_name = integers(pc.index_in(names, value_set=known_names), NONE).astype(np.int64)[name]
        wanted = own_cluster * len(known_names) + own_name
        keys, topic = self._by_key
        if len(keys) == 0:
            return np.full(len(wanted), NONE, np.int64)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found: LongArray = np.where((keys[at] == wanted) & (own_cluster != NONE) & (own_name != NONE), topic[at], NONE)
        return found

    def ids(self, change: LongArray) -> Column:
        """Return the topic id that each change gives; null where it gives none, or there is no change."""
        return column(self._sorted, c.TOPIC_ID).take(pa.array(change, mask=change == NONE))

    def racks(self, change: LongArray) -> Column:
        """Return the racks of each change's replicas, likewise."""
        return column(self._sorted, c.RACKS).take(pa.array(change, mask=change == NONE))

    def has_racks(self) -> bool:
        """Whether any listing says where replicas are."""
        racks = self.table.column(c.RACKS)
        return bool(racks.null_count < len(racks))

    def changes(self, topics: LongArray) -> Iterator[TopicChange]:
        """All changes of some topics, without racks."""
        from groupledger.core.history.topics import TopicChange  # with the fold, which few buckets need

        _, rows = ragged.take(self.listings.start, topics)
        taken = self._sorted.take(pa.array(rows))
        names = (c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, SINCE)
        return (
            TopicChange(topic, topic_id, count, None, since)
            for topic, topic_id, count, since in zip(*(taken.column(name).to_pylist() for name in names), strict=True)
        )


@dataclass(frozen=True)
class TopicsAt:
    """The topic rows of a bucket as they were listed at their snapshots."""

    catalogue: TopicCatalogue
    topic: LongArray  # [T] number in the catalogue, NONE: never listed
    change: LongArray  # [T] the change in force, NONE: none was yet
    views: TopicViews

    @staticmethod
    def find(catalogue: TopicCatalogue, topic: LongArray, moment: LongArray) -> TopicsAt:
        """Return what is listed of each topic at its moment (microseconds)."""
        change = catalogue.listings.at(topic, moment)
        return TopicsAt(catalogue, topic, change, catalogue.listings.views(topic, change))
