"""A bucket of the fold, without Spark: what an ingest counts of groups that are folded again."""

from itertools import product

import pyarrow as pa
import pytest

from groupledger.core.history import FoldSettings, LogRow
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.fold_schema import INPUT, KNOWN, RECORD
from groupledger.engine.fold_slices import fold_table
from groupledger.tables import columns as c
from tests.core.history.records import GROUP, Log, member

CLUSTER = "eu-1"
NAMES = (c.LOG_PARTITION, c.OFFSET, c.TIMESTAMP, c.KEY, c.VALUE)


def bucket(known: list[LogRow], new: list[LogRow]) -> pa.Table:
    rows = [
        {c.KIND: kind, c.CLUSTER_ID: CLUSTER, "group_key": GROUP.encode(), **dict(zip(NAMES, row, strict=False))}
        for kind, row in [*product([KNOWN], known), *product([RECORD], new)]
    ]
    return pa.Table.from_pylist(rows, arrow_schema(INPUT))


def counted(known: list[LogRow], new: list[LogRow]) -> dict[str, int]:
    return {count.name: count.rows for count in fold_table(bucket(known, new), FoldSettings()).counts}


def history() -> list[LogRow]:
    log = Log()
    for generation in range(1, 9):
        log.classic(generation, [member("m1", {})])
    return log.rows


ROWS = history()
STRAY = ROWS[0]._replace(log_partition=1)
OTHER_BYTES = ROWS[3]._replace(timestamp_ms=0, value=ROWS[4].value)
LATER_COPY = ROWS[3]._replace(timestamp_ms=0)
LATE = [
    pytest.param(ROWS[1:], [ROWS[0]], id="the first record comes last"),
    pytest.param(ROWS[1:], [STRAY], id="a stray in an earlier log partition"),
    pytest.param([STRAY], ROWS, id="a stray came first"),
    pytest.param(ROWS, [OTHER_BYTES], id="an offset that was read with other bytes"),
    pytest.param(ROWS, [LATER_COPY], id="the same bytes at another time"),
    pytest.param(ROWS, [ROWS[3]], id="the same bytes and millisecond"),
]


@pytest.mark.parametrize(("known", "new"), LATE)
def test_an_ingest_counts_its_own_records_and_no_class_is_below_zero(known, new):
    counts = counted(known, new)
    assert min(counts.values()) >= 0, counts
    assert counts.pop("records") == len(new)
    assert sum(counts.values()) == len(new)
