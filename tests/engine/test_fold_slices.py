"""A bucket folded in slices gives what it gives at once: rows, counts, and one head a group from where it began."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.history import FoldSettings
from groupledger.engine import fold_slices, folding
from groupledger.engine.envelope import NamedCount
from groupledger.engine.fold_schema import FILLED, KNOWN, RECORD
from groupledger.tables import columns as c
from tests.core.history.captured import log_rows, topic_changes
from tests.core.history.histories import HISTORIES
from tests.core.wire.captured import LOGS
from tests.engine.both_folds import Rows, rows_of
from tests.engine.classic_logs import bucket, heads_of, logs
from tests.engine.test_classic_columns import CASES
from tests.examples import examples

AS_INGESTED = FoldSettings()


def arriving(rows: pa.Table, at_once: int) -> list[pa.RecordBatch]:
    """The rows as Spark brings them to a worker."""
    of = folding.of_kind(rows, RECORD, KNOWN).sort_by([(name, "ascending") for name in folding.ORDER])
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
    return rows_of(folding.FoldedBucket(tables, told)), len(parts)


def at_once(rows: pa.Table) -> Rows:
    return rows_of(folding.fold_table(rows, AS_INGESTED))


@pytest.mark.parametrize("name", LOGS)
def test_captures_fold_alike_in_slices(name):
    changes, groups = topic_changes(name.split("/")[0]), {group: list(rows) for group, rows in log_rows(name).items()}
    whole = bucket(groups, changes=changes)
    expected = at_once(whole)
    assert in_slices(whole, 100)[0] == expected
    found, slices = in_slices(whole, 7)
    assert found == expected
    assert slices > 3


@pytest.mark.parametrize("name", HISTORIES)
def test_histories_fold_alike_in_slices_of_a_record(name):
    rows = HISTORIES[name]().rows
    positions = len({row[:2] for row in rows})
    found, slices = in_slices(bucket({"payments": rows}), 1)
    assert (found, slices) == (at_once(bucket({"payments": rows})), positions)


@pytest.mark.parametrize("name", [each for each in CASES if each != "double_log"])
def test_rare_cases_fold_alike_in_slices_from_a_head(name):
    rows = CASES[name]().rows
    for cut in range(1, len(rows)):
        heads = heads_of(folding.fold_table(bucket({"payments": rows[:cut]}), AS_INGESTED))
        rest = bucket({"payments": rows[cut:]}, heads)
        assert in_slices(rest, 1)[0] == at_once(rest)


@given(st.lists(logs(), min_size=1, max_size=3), st.integers(1, 9))
@settings(deadline=None, max_examples=examples(100))
def test_drawn_logs_fold_alike_in_slices(groups, records):
    whole = bucket({f"group-{number}": rows for number, rows in enumerate(groups)})
    assert in_slices(whole, records)[0] == at_once(whole)
