"""A bucket as a worker folds it: a slice at a time."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from groupledger.core.history import FoldSettings
from groupledger.engine import fold_slices
from groupledger.engine.envelope import NamedCount
from groupledger.engine.fold_schema import FILLED, KNOWN, RECORD
from groupledger.tables import columns as c
from tests.engine.both_folds import Rows, rows_of

AS_INGESTED = FoldSettings()


def arriving(rows: pa.Table, at_once: int) -> list[pa.RecordBatch]:
    """The rows as Spark brings them to a worker."""
    of = fold_slices.of_kind(rows, RECORD, KNOWN).sort_by([(name, "ascending") for name in fold_slices.ORDER])
    others = rows.filter(pa.compute.invert(pa.compute.is_in(rows[c.KIND], pa.array([RECORD, KNOWN]))))
    batches: list[pa.RecordBatch] = pa.concat_tables([others, of]).combine_chunks().to_batches(at_once)
    return batches


def in_slices(rows: pa.Table, records: int) -> tuple[Rows, int]:
    """What the slices give together, and how many there were."""
    parts = list(fold_slices.fold_in_slices(arriving(rows, max(1, records // 2)), AS_INGESTED, records))
    tables = {
        table.name: pa.concat_tables([part.tables[table.name] for part in parts if table.name in part.tables])
        for table in FILLED
        if any(table.name in part.tables for part in parts)
    }
    counts: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for count in part.counts:
            counts[count.cluster_id, count.name] += count.rows
    told = [NamedCount(*name, rows) for name, rows in sorted(counts.items())]
    return rows_of(fold_slices.FoldedBucket(tables, told)), len(parts)
