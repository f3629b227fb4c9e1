"""A bucket folded twice: over columns, and one group at a time by the fold that is the judge of the columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from groupledger.core.history import FoldSettings
from groupledger.engine import folding
from groupledger.engine.classic.fold import ClassicFacts, fold_columns
from groupledger.engine.classic.log import LogColumns
from groupledger.engine.fold_schema import COUNTS, TABLE

FOLD_COLUMNS = "groupledger.engine.folding.fold_columns"
AS_INGESTED = FoldSettings()
Rows = dict[str, list[str]]


def fold_one_by_one(bucket: pa.Table, settings: FoldSettings = AS_INGESTED) -> pa.Table:
    """The bucket without any columns."""

    def nothing(log: LogColumns, *_: Any) -> ClassicFacts:
        return ClassicFacts({}, {}, Counter(), np.ones(len(log.cluster_ids), bool))

    with mock.patch(FOLD_COLUMNS, nothing):
        return folding.fold_table(bucket, settings)


def rows_of(folded: pa.Table) -> Rows:
    """The rows of each table, without their order."""
    return dict(_rows(folded))


def _rows(folded: pa.Table) -> Iterator[tuple[str, list[str]]]:
    for name in (*folded.column_names[1:-1], COUNTS):
        structs = folded.filter(pa.compute.equal(folded[TABLE], name))[name].combine_chunks()
        yield name, sorted(map(repr, structs.to_pylist()))


def compared(bucket: pa.Table, settings: FoldSettings = AS_INGESTED) -> pa.Table:
    """What the fold over columns gives; an AssertionError names the first row that the judge has otherwise."""
    folded = folding.fold_table(bucket, settings)
    folded.validate(full=True)
    found, expected = rows_of(folded), rows_of(fold_one_by_one(bucket, settings))
    for table, rows in expected.items():
        missing, extra = (
            list((Counter(a) - Counter(b)).elements())[:2] for a, b in ((rows, found[table]), (found[table], rows))
        )
        assert found[table] == rows, f"{table}: missing {missing}, too many {extra}"
    return folded


def left_groups(bucket: pa.Table) -> int:
    """How many groups the columns leave to the other fold."""
    seen: list[int] = []

    def watch(*arguments: Any) -> ClassicFacts:
        facts = fold_columns(*arguments)
        seen.append(int(facts.left.sum()))
        return facts

    with mock.patch(FOLD_COLUMNS, watch):
        folding.fold_table(bucket, FoldSettings())
    return sum(seen)
