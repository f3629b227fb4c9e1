"""A bucket folded twice: over columns, and one group at a time by the fold that is the judge of the columns."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from groupledger.core.history import FoldSettings
from groupledger.engine import fold_slices
from groupledger.engine.classic.column_fold import ClassicFacts, fold_columns
from groupledger.engine.classic.record_columns import LogColumns
from groupledger.engine.envelope import COUNTS
from groupledger.engine.fold_schema import FILLED
from groupledger.engine.fold_slices import FoldedBucket

FOLD_COLUMNS = "groupledger.engine.fold_slices.fold_columns"
AS_INGESTED = FoldSettings()
Rows = dict[str, list[str]]


def fold_one_by_one(bucket: pa.Table, settings: FoldSettings = AS_INGESTED) -> FoldedBucket:
    """The bucket without any columns."""

    def nothing(log: LogColumns, *_: Any) -> ClassicFacts:
        return ClassicFacts({}, {}, Counter(), np.ones(len(log.cluster_ids), bool))

    with mock.patch(FOLD_COLUMNS, nothing):
        return fold_slices.fold_table(bucket, settings)


def rows_of(folded: FoldedBucket) -> Rows:
    """The rows of each table, without their order."""
    found = {table.name: folded.tables[table.name].to_pylist() for table in FILLED if table.name in folded.tables}
    return {name: sorted(map(repr, rows)) for name, rows in (found | {COUNTS: folded.counts}).items()}


def compared(bucket: pa.Table, settings: FoldSettings = AS_INGESTED) -> FoldedBucket:
    """What the fold over columns gives; an AssertionError names the first row that the judge has otherwise."""
    folded = fold_slices.fold_table(bucket, settings)
    for rows in folded.tables.values():
        rows.validate(full=True)
    found, expected = rows_of(folded), rows_of(fold_one_by_one(bucket, settings))
    for table in dict.fromkeys([*expected, *found]):
        rows, others = expected.get(table, []), found.get(table, [])
        missing, extra = (list((Counter(a) - Counter(b)).elements())[:2] for a, b in ((rows, others), (others, rows)))
        assert others == rows, f"{table}: missing {missing}, too many {extra}"
    return folded


def left_groups(bucket: pa.Table) -> int:
    """How many groups the columns leave to the other fold."""
    seen: list[int] = []

    def watch(*arguments: Any) -> ClassicFacts:
        facts = fold_columns(*arguments)
        seen.append(int(facts.left.sum()))
        return facts

    with mock.patch(FOLD_COLUMNS, watch):
        fold_slices.fold_table(bucket, FoldSettings())
    return sum(seen)
