"""Fold buckets of groups in Spark: their rows come to a worker in order, and it folds a slice at a time.

A slice holds whole groups, or a part of one that is too long. Such a part leaves a head, as an ingest does, and the
next one starts from it. So a worker's memory is that of a slice, whatever the records of a bucket or of one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupledger import tables
from groupledger.core import history
from groupledger.core.history import FoldSettings, GroupHeadRow, TopicHistory, undecided_from
from groupledger.engine import envelope
from groupledger.engine.arrow_lists import tuples
from groupledger.engine.classic.column_fold import NO_HEAD, ClassicFacts, Start, fold_columns
from groupledger.engine.classic.record_columns import LogColumns
from groupledger.engine.envelope import (
    ENVELOPE,
    FilesOfAttempt,
    NamedCount,
    repartition_by_id,
    sealed_counts,
)
from groupledger.engine.fold_schema import (
    BUCKET,
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
from groupledger.tables import BY_NAME
from groupledger.tables import columns as c

RECORDS_A_SLICE = 30_000
"""Records that are folded at once, somewhat more than most buckets have: half a GiB where all change many owners."""
BYTES_A_SLICE = 64 << 20
"""Bytes of the records that are folded at once."""


def fold_buckets(
    rows: DataFrame, buckets: int, settings: FoldSettings, files: FilesOfAttempt | None = None
) -> DataFrame:
    """Fold `rows` (of `fold_schema.INPUT`) in `buckets` buckets into envelopes: of the tables, in `files`, and of
    counts.

    The explicit repartition keeps adaptive execution from putting a small input on one core.
    """

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for folded in fold_in_slices(batches, settings):
            sealed = [
                each for name, some in folded.tables.items() for each in envelope.sealed(BY_NAME[name], some, files)
            ]
            yield from envelope.as_table([*sealed, sealed_counts(folded.counts)]).to_batches()

    is_record = F.col(c.KIND).isin(RECORD, KNOWN)
    placed = repartition_by_id(rows, buckets, BUCKET).sortWithinPartitions(is_record, *ORDER)
    return placed.mapInArrow(fold, ENVELOPE)


def fold_in_slices(
    batches: Iterable[pa.RecordBatch], settings: FoldSettings, records: int = RECORDS_A_SLICE
) -> Iterator[FoldedBucket]:
    """Fold rows of `fold_schema.INPUT`, records last and in order of `folding.ORDER`, about so many `records` at once.

    A group with records in several log partitions needs a row that names its home.
    """
    slices = _Slices(settings, records)
    for batch in batches:
        yield from slices.take(pa.Table.from_batches([batch]))
    yield from slices.rest()


class _Slices:
    """The records that wait to be folded, and where their groups start."""

    def __init__(self, settings: FoldSettings, records: int) -> None:
        self.settings, self.most = settings, records
        self.starts: dict[KeyedGroup, Start] = {}
        self.catalogues: dict[str, TopicHistory] = {}
        self.waiting: list[pa.Table] = []
        self.from_offsets: dict[KeyedGroup, int] = {}  # of the first part of each group that was cut, and is not over

    def take(self, rows: pa.Table) -> Iterator[FoldedBucket]:
        """Take some rows; fold where there are enough."""
        self.starts |= starts(rows)
        self.catalogues |= catalogues(rows)
        self.waiting.append(of_kind(rows, RECORD, KNOWN))
        if sum(map(len, self.waiting)) >= self.most or sum(each.nbytes for each in self.waiting) >= BYTES_A_SLICE:
            records = pa.concat_tables(self.waiting)
            end, cut = _first_of_last(records, c.CLUSTER_ID, GROUP_KEY), None
            if end == 0:  # one group: records of one offset are folded together
                end, cut = _first_of_last(records, c.LOG_PARTITION, c.OFFSET), _name(records)
            self.waiting = [records.slice(end)]
            if end:
                yield from self._part(records, end, cut)

    def rest(self) -> Iterator[FoldedBucket]:
        """Fold what is left."""
        records = pa.concat_tables(self.waiting) if self.waiting else []
        if len(records):
            rows = self._fold(records)
            rows.by_table[tables.GROUP_HEADS.name] = list(self._heads(rows, None))
            yield rows.folded()

    def _part(self, records: pa.Table, end: int, cut: KeyedGroup | None) -> Iterator[FoldedBucket]:
        """Fold the first records, those of a cut group only as far as they are decided: the others wait."""
        rows = self._fold(records.slice(0, end))
        undecided = None if cut is None else _undecided(rows, records.slice(0, end))
        if undecided is not None:
            self.waiting, end = [records.slice(undecided)], undecided
            rows = self._fold(records.slice(0, end)) if end else rows
        if end:
            rows.by_table[tables.GROUP_HEADS.name] = list(self._heads(rows, cut))
            yield rows.folded()

    def _fold(self, records: pa.Table) -> FoldedRows:
        clusters = records[c.CLUSTER_ID].unique().to_pylist()
        catalogues = {cluster_id: self.catalogues.get(cluster_id, NO_TOPICS) for cluster_id in clusters}
        return fold_records(records, self.starts, catalogues, self.settings)

    def _heads(self, rows: FoldedRows, cut: KeyedGroup | None) -> Iterator[tuple[Any, ...]]:
        """Yield heads of complete groups, each from where its first part began; keep that of the group that was cut."""
        for head in map(GroupHeadRow._make, rows.by_table[tables.GROUP_HEADS.name]):
            name = head.cluster_id, head.group_id.encode()
            if name == cut:
                started = self.starts.get(name, NO_HEAD)
                self.starts[name] = Start(head.state, started.refolded or head.refolded, head.log_partition)
                self.from_offsets.setdefault(name, head.from_offset)
            else:
                yield head._replace(from_offset=self.from_offsets.pop(name, head.from_offset))


def _undecided(rows: FoldedRows, records: pa.Table) -> int | None:
    """Return the index of the first record that the only group's head leaves undecided; None: there is none."""
    [head] = map(GroupHeadRow._make, rows.by_table[tables.GROUP_HEADS.name])
    offset = undecided_from(head.state)
    if offset is None:
        return None
    own = pc.equal(records[c.LOG_PARTITION], head.log_partition)
    return int(pc.index(pc.and_(own, pc.equal(records[c.OFFSET], offset)), True).as_py())


def _name(records: pa.Table) -> KeyedGroup:
    return records[c.CLUSTER_ID][-1].as_py(), records[GROUP_KEY][-1].as_py()


def _first_of_last(records: pa.Table, *names: str) -> int:
    """Return where the trailing run of records that are equal in these columns begins."""
    differs = pa.scalar(False)
    for name in names:
        last = records[name][-1]
        is_other = pc.fill_null(pc.not_equal(records[name], last), True)
        differs = pc.or_(differs, is_other if last.is_valid else pc.is_valid(records[name]))
    places = pc.indices_nonzero(differs)
    return places[-1].as_py() + 1 if len(places) else 0


# The fold of `core.history` over Arrow tables: one call folds thousands of groups.
#
# A bucket holds rows of three kinds in one frame, so that one shuffle brings together all a fold needs: log records,
# the head each touched group starts from, and the topic catalogue of each cluster (one row a cluster and bucket).

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
            schema, rows = envelope.SCHEMAS[table.name], self.by_table[table.name]
            pieces = [self.columns[table.name]] if table.name in self.columns else []
            pieces += [_table(rows, schema)] if rows else []
            whole = pa.concat_tables(pieces) if pieces else schema.empty_table()
            if len(whole):
                found[table.name] = whole
        counts = [NamedCount(cluster, name, number) for (cluster, name), number in sorted(self.counts.items())]
        return FoldedBucket(found, counts)


def _named(counts: history.FoldCounts) -> Iterator[tuple[str, int]]:
    """Return the counts as flat names: `records`, `used.GroupMetadata`, `quarantined.TRUNCATED`, ..."""
    yield RECORDS, counts.records
    yield DUPLICATES, counts.duplicates
    for kind in ("used", "unused", "tombstones", "quarantined"):
        for name, number in getattr(counts, kind).items():
            yield f"{kind}.{name}", number


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
    found = tuples(of_kind(rows, HEAD), c.CLUSTER_ID, GROUP_KEY, c.STATE, c.REFOLDED, c.LOG_PARTITION)
    return {(cluster_id, group_key): Start(*start) for cluster_id, group_key, *start in found}


def catalogues(rows: pa.Table) -> dict[str, history.TopicHistory]:
    """Return the topic catalogue of each cluster, from these rows."""
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
        for cluster_id, changes in tuples(of_kind(rows, TOPICS), c.CLUSTER_ID, TOPICS)
    }
