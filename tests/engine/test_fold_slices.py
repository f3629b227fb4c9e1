"""A bucket folded in slices gives what it gives at once: rows, counts, and one head a group from where it began."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.engine import fold_slices
from tests.core.history.captured import log_rows, topic_changes
from tests.core.history.histories import HISTORIES
from tests.core.wire.captured import LOGS
from tests.engine.both_folds import Rows, rows_of
from tests.engine.classic_logs import bucket, heads_of, logs
from tests.engine.slices import AS_INGESTED, in_slices
from tests.engine.test_classic_columns import CASES
from tests.examples import examples

UNDECIDED = {"conversions": 8, "unclean": 1}
"""Records that wait for the next ones, which tell whether they convert the group."""


def at_once(rows: pa.Table) -> Rows:
    return rows_of(fold_slices.fold_table(rows, AS_INGESTED))


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
    assert found == at_once(bucket({"payments": rows}))
    assert positions - UNDECIDED.get(name, 0) == slices


@pytest.mark.parametrize("name", [each for each in CASES if each != "double_log"])
def test_rare_cases_fold_alike_in_slices_from_a_head(name):
    rows = CASES[name]().rows
    for cut in range(1, len(rows)):
        heads = heads_of(fold_slices.fold_table(bucket({"payments": rows[:cut]}), AS_INGESTED))
        rest = bucket({"payments": rows[cut:]}, heads)
        assert in_slices(rest, 1)[0] == at_once(rest)


@given(st.lists(logs(), min_size=1, max_size=3), st.integers(1, 9))
@settings(deadline=None, max_examples=examples(15))
def test_drawn_logs_fold_alike_in_slices(groups, records):
    whole = bucket({f"group-{number}": rows for number, rows in enumerate(groups)})
    assert in_slices(whole, records)[0] == at_once(whole)
