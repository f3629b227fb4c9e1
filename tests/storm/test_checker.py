"""The storm's checker sees a part of a run, rows that are there twice, and commits that won together."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from groupledger.tables import GROUP_SNAPSHOTS, LOG_RECORDS, MEMBER_SNAPSHOTS, RUNS
from groupledger.tables import columns as c
from tests.faults.story import Content
from tests.storm.checker import STAMPED, look

COUNTS = {GROUP_SNAPSHOTS.name: 1, MEMBER_SNAPSHOTS.name: 2, LOG_RECORDS.name: 1}
SCHEMA = pa.schema(
    {
        **{name: pa.string() for name in (c.RUN_ID, c.ATTEMPT_ID, c.STATUS)},
        c.SEQUENCE: pa.int64(),
        c.COUNTS_OUT: pa.map_(pa.string(), pa.int64()),
        c.REMOVED: pa.map_(pa.string(), pa.list_(pa.string())),
    }
)


def run(number, status="committed", counts=COUNTS, removed=()):
    values = (f"run-{number}", f"a-{number}", status, number, list(counts.items()), list(removed))
    return dict(zip(SCHEMA.names, values, strict=True))


def rows(name, attempt):
    """What an attempt writes to a table."""
    if name == GROUP_SNAPSHOTS.name:
        return [{c.ATTEMPT_ID: attempt, c.SNAPSHOT_ID: f"of {attempt}", c.MEMBERS: 2}]
    if name == MEMBER_SNAPSHOTS.name:
        return [{c.ATTEMPT_ID: attempt, c.SNAPSHOT_ID: f"of {attempt}", c.MEMBERS: 0}] * 2
    return [{c.ATTEMPT_ID: attempt, c.SNAPSHOT_ID: "", c.MEMBERS: 0}] * COUNTS.get(name, 0)


@pytest.fixture
def written(tmp_path):
    """Write a ledger of these runs and rows."""

    def write(runs, attempts=("a-1", "a-2"), change=None):
        tables = {name: [row for attempt in attempts for row in rows(name, attempt)] for name in STAMPED}
        (change or (lambda _: None))(tables)
        kinds = pa.schema({c.ATTEMPT_ID: pa.string(), c.SNAPSHOT_ID: pa.string(), c.MEMBERS: pa.int64()})
        for name, found in tables.items():
            write_deltalake(str(tmp_path / name), pa.Table.from_pylist(found, kinds))
        write_deltalake(str(tmp_path / RUNS.name), pa.Table.from_pylist(runs, SCHEMA))
        return tmp_path

    return write


def test_whole_runs_are_as_they_must_be(written):
    dead = run(3, "planned", {})
    assert look(written([run(1), run(2), dead], ("a-1", "a-2", "a-3"))) == ([], 2)


def test_rows_that_a_maintain_removed_are_not_missed(written):
    gone = run(3, counts={"removed.log_records": 1}, removed=[(LOG_RECORDS.name, ["a-1"])])
    ledger = written([run(1), run(2), gone], change=lambda tables: tables[LOG_RECORDS.name].pop(0))
    assert look(ledger) == ([], 3)


def _lost(tables):
    tables[LOG_RECORDS.name].pop()


def _doubled(tables):
    tables[LOG_RECORDS.name] *= 2


def _half(tables):
    tables[MEMBER_SNAPSHOTS.name].pop()


def _mixed(tables):
    tables[MEMBER_SNAPSHOTS.name][0][c.SNAPSHOT_ID] = "of another"


@pytest.mark.parametrize(
    ("change", "torn"),
    [
        (_lost, "run run-2 (a-2) has 0 rows of 1 in log_records"),
        (_doubled, "run run-1 (a-1) has 2 rows of 1 in log_records"),
        (_half, "run run-2 (a-2) has 1 rows of 2 in member_snapshots"),
        (_mixed, "snapshot of a-1 of a-1 lacks or doubles members"),
    ],
)
def test_a_part_of_a_run_is_seen(written, change, torn):
    assert torn in look(written([run(1), run(2)], change=change))[0]


@pytest.mark.parametrize(
    ("runs", "torn"),
    [
        ([run(1), run(3)], "commits are numbered [1, 3]"),
        ([run(1), run(2) | {c.SEQUENCE: 1}], "commits are numbered [1, 1]"),
        ([run(1), run(2) | {c.RUN_ID: "run-1"}], "a run_id is committed twice"),
    ],
)
def test_commits_that_won_together_are_seen(written, runs, torn):
    assert torn in look(written(runs, ("a-1", "a-2", "a-3")))[0]


def test_a_row_is_the_same_beside_one_that_has_nothing_in_a_column():
    content = Content()
    kept = [{"generation": 9, "load": 2.5, "code": "A"}, {"generation": None, "load": None, "code": None}]
    found = []
    for rows_there in (kept[:1], kept):
        content.current = lambda *_, there=rows_there: pd.DataFrame(there)
        found.append(content.rows(Path("ledger"), RUNS, ["generation", "load", "code"]))
    assert found[0] == ['{"code": "A", "generation": 9, "load": 2.5}']
    assert found[1] == [*found[0], '{"code": null, "generation": null, "load": null}']
