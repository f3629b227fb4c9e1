"""Fold buckets of groups in Spark: their rows come to a worker in order, and it folds a slice at a time.

A slice holds whole groups, or a part of one that is too long. Such a part leaves a head, as an ingest does, and the
next one starts from it. So a worker's memory is that of a slice, whatever the records of a bucket or of one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from groupledger import tables
from groupledger.core.history import GroupHeadRow, undecided_from
from groupledger.engine import envelope, folding
from groupledger.engine.classic.fold import NO_HEAD, Start
from groupledger.engine.envelope import ENVELOPE, sealed_counts
from groupledger.engine.fold_schema import BUCKET, GROUP_KEY, KNOWN, RECORD
from groupledger.engine.folding import NO_TOPICS, FoldedRows, KeyedGroup
from groupledger.engine.older_spark import repartition_by_id
from groupledger.tables import BY_NAME
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from groupledger.core.history import FoldSettings, TopicHistory
    from groupledger.engine.folding import FoldedBucket
    from groupledger.engine.table_files import FilesOfAttempt

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
    placed = repartition_by_id(rows, buckets, BUCKET).sortWithinPartitions(is_record, *folding.ORDER)
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
        self.starts |= folding.starts(rows)
        self.catalogues |= folding.catalogues(rows)
        self.waiting.append(folding.of_kind(rows, RECORD, KNOWN))
        if sum(map(len, self.waiting)) >= self.most or sum(each.nbytes for each in self.waiting) >= BYTES_A_SLICE:
            records = pa.concat_tables(self.waiting)
            end, cut = _last_group(records), None
            if end == 0:
                end, cut = _last_position(records), _name(records)
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
        return folding.fold_records(records, self.starts, catalogues, self.settings)

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


def _last_group(records: pa.Table) -> int:
    """Return the index of the first record of the last group."""
    return _first_of_last(records, c.CLUSTER_ID, GROUP_KEY)


def _last_position(records: pa.Table) -> int:
    """Return the index of the first record at the last offset: records of one offset are folded together."""
    return _first_of_last(records, c.LOG_PARTITION, c.OFFSET)


def _first_of_last(records: pa.Table, *names: str) -> int:
    """Return where the trailing run of records that are equal in these columns begins."""
    differs = pa.scalar(False)
    for name in names:
        last = records[name][-1]
        differs = pc.or_(differs, pc.is_valid(records[name]) if not last.is_valid else _is_other(records[name], last))
    places = pc.indices_nonzero(differs)
    return places[-1].as_py() + 1 if len(places) else 0


def _is_other(column: pa.ChunkedArray, value: pa.Scalar) -> pa.ChunkedArray:
    return pc.fill_null(pc.not_equal(column, value), True)
