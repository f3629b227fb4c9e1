"""The fold of `core.history` over Arrow tables: one call folds thousands of groups.

A bucket holds rows of three kinds in one frame, so that one shuffle brings together all a fold needs: log records,
the head each touched group starts from, and the topic catalogue of each cluster (one row a cluster and bucket).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger import tables
from groupledger.core import history
from groupledger.engine.arrow_types import arrow_schema
from groupledger.engine.classic.fold import NO_HEAD, ClassicFacts, Start, fold_columns
from groupledger.engine.classic.log import LogColumns
from groupledger.engine.envelope import NamedCount, columns_of
from groupledger.engine.fold_schema import (
    DUPLICATES,
    FILLED,
    FOLDED_AGAIN,
    GROUP_KEY,
    HEAD,
    KNOWN,
    RECORD,
    RECORDS,
    TOPICS,
)
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


NO_TOPICS = history.TopicHistory()
ORDER = (c.CLUSTER_ID, GROUP_KEY, c.LOG_PARTITION, c.OFFSET)
"""How records are sorted."""

KeyedGroup = tuple[str, bytes | None]
"""A cluster, and the group as keys name it; None: those of no group."""


class FoldedBucket(NamedTuple):
    """What a bucket gives: the rows of each table that has any, without the attempt, and what became of its records."""

    tables: dict[str, pa.Table]
    counts: list[NamedCount]


def fold_table(bucket: pa.Table, settings: history.FoldSettings) -> FoldedBucket:
    """Fold one bucket; the answer holds every record in its counts, whatever the records hold."""
    records = of_kind(bucket, RECORD, KNOWN).sort_by([(name, "ascending") for name in ORDER])
    listed = catalogues(bucket)
    every = {cluster_id: listed.get(cluster_id, NO_TOPICS) for cluster_id in records[c.CLUSTER_ID].unique().to_pylist()}
    return fold_records(records, starts(bucket), every, settings).folded()


def fold_records(
    records: pa.Table,
    starts: Mapping[KeyedGroup, Start],
    catalogues: dict[str, history.TopicHistory],
    settings: history.FoldSettings,
) -> FoldedRows:
    """Fold records, in order, from the starts of their groups; there is a catalogue of each cluster."""
    log = LogColumns.of(records)
    facts = fold_columns(log, starts, catalogues, settings)
    folded = FoldedRows(facts)
    for group in np.flatnonzero(facts.left).tolist():
        cluster_id, group_key = log.cluster_ids[group], log.group_keys[group]
        start = starts.get((cluster_id, group_key), NO_HEAD)
        one = history.fold_group(
            cluster_id,
            [log.row(index) for index in range(log.group_start[group], log.group_start[group + 1])],
            start.state,
            catalogues[cluster_id],
            settings=settings,
            refolded=start.refolded,
            group_id=None if group_key is None else group_key.decode(),
            log_partition=start.log_partition,
        )
        folded.add(cluster_id, one)
        if one.head is not None and one.head.refolded and not start.refolded:
            folded.counts[cluster_id, FOLDED_AGAIN] += 1
    return folded


class FoldedRows:
    """Rows of all filled tables: those that the columns gave, and one group after the other."""

    def __init__(self, facts: ClassicFacts) -> None:
        self.columns = facts.columns
        self.by_table: dict[str, list[tuple[Any, ...]]] = {table.name: [] for table in FILLED} | facts.rows
        self.counts = facts.counts

    def add(self, cluster_id: str, folded: history.Folded) -> None:
        """Add what one group's fold gave."""
        for name, rows in self.by_table.items():
            if name == tables.GROUP_HEADS.name:
                rows.extend(head for head in (folded.head,) if head is not None)
            else:
                rows.extend(getattr(folded, name))
        for name, number in _named(folded.counts):
            self.counts[cluster_id, name] += number

    def folded(self) -> FoldedBucket:
        """All rows, table by table."""
        found = {}
        for table in FILLED:
            schema, rows = _SCHEMAS[table.name], self.by_table[table.name]
            pieces = [self.columns[table.name]] if table.name in self.columns else []
            pieces += [_table(rows, schema)] if rows else []
            whole = pa.concat_tables(pieces) if pieces else schema.empty_table()
            if len(whole):
                found[table.name] = whole
        counts = [NamedCount(cluster, name, number) for (cluster, name), number in sorted(self.counts.items())]
        return FoldedBucket(found, counts)


def _named(counts: history.FoldCounts) -> Iterator[tuple[str, int]]:
    """The counts as flat names: `records`, `used.GroupMetadata`, `quarantined.TRUNCATED`, ..."""
    yield RECORDS, counts.records
    yield DUPLICATES, counts.duplicates
    for kind in ("used", "unused", "tombstones", "quarantined"):
        for name, number in getattr(counts, kind).items():
            yield f"{kind}.{name}", number


_SCHEMAS = {table.name: arrow_schema(columns_of(table)) for table in FILLED}


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    values = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.table([_column(column, kind) for column, kind in zip(values, schema.types, strict=True)], schema=schema)


def _column(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    """Rows give timestamps in ms; the ledger keeps microseconds, as Spark does."""
    if pa.types.is_timestamp(kind):
        return pa.array(list(values), pa.timestamp("ms", tz="UTC")).cast(kind)
    return pa.array(list(values), kind)


def of_kind(bucket: pa.Table, *kinds: str) -> pa.Table:
    """Return the rows of these kinds."""
    return bucket.filter(pc.is_in(bucket[c.KIND], value_set=pa.array(kinds)))


def starts(rows: pa.Table) -> dict[KeyedGroup, Start]:
    """Return where groups start, by the heads among these rows."""
    heads = of_kind(rows, HEAD)
    names = [c.CLUSTER_ID, GROUP_KEY, c.STATE, c.REFOLDED, c.LOG_PARTITION]
    found = zip(*(heads[name].to_pylist() for name in names), strict=True)
    return {(cluster_id, group_key): Start(*start) for cluster_id, group_key, *start in found}


def catalogues(rows: pa.Table) -> dict[str, history.TopicHistory]:
    """Return the topic catalogue of each cluster, from these rows."""
    topics = of_kind(rows, TOPICS)
    listed = zip(topics[c.CLUSTER_ID].to_pylist(), topics[TOPICS].to_pylist(), strict=True)
    return {
        cluster_id: history.TopicHistory(
            history.TopicChange(
                topic=change[c.TOPIC],
                topic_id=change[c.TOPIC_ID],
                partition_count=change[c.PARTITION_COUNT],
                racks=None,  # the fold has no use for them
                valid_from=change[c.VALID_FROM],
            )
            for change in changes
        )
        for cluster_id, changes in listed
    }
