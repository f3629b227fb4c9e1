"""A grid over a ledger: one job, a line a cell, the rows where they are asked for, and nothing committed."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from groupledger.answers.changed_group import what_if as answered
from groupledger.answers.reader import LedgerReader
from groupledger.cli.commands import main
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import RUNS
from tests.answers.captured import ledger_of
from tests.cli.test_json_schemas import complaints
from tests.pipeline.ledgers import Workspace

pytestmark = pytest.mark.spark

GRID = """\
assignors: [recorded, roundrobin]
changes:
  - {}
  - members: 2
  - {partitions: x2, topic: clicks}
  - {name: no members, members: -1000}
"""


@pytest.fixture(scope="module")
def space(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    ledger = ledger_of(folder / "ledger", ["compacted"])  # a KIP-848 group with members is in it
    return Workspace(spark, lambda _: LedgerLocation(path=ledger), folder)


def what_if(space, *arguments, grid=GRID):
    (space.folder / "grid.yaml").write_text(grid, encoding="utf-8")
    told = ["--grid", str(space.folder / "grid.yaml"), "--ledger", space.location.path, *arguments]
    return CliRunner().invoke(main, ["what-if", *told])


def test_a_line_a_cell_and_a_row_a_group_and_cell(space):
    before = space.rows(RUNS)
    folder = space.folder / "cells"
    done = what_if(space, "--rows", str(folder), "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert complaints("what-if", told) == []
    rows = pq.read_table(folder).to_pylist()
    cells = {(cell["assignor"], cell["change"]): cell for cell in told["cells"]}
    assert list(cells) == [
        (assignor, change)
        for assignor in ("recorded", "roundrobin")
        for change in ("as it is", "members +2", "partitions of clicks x2", "no members")
    ]
    assert told["groups"] == len({(row["cluster_id"], row["group_id"]) for row in rows}) > 0
    assert told["rows"] == len(rows) == told["groups"] * len(cells)
    for (assignor, change), cell in cells.items():
        own = [row for row in rows if (row["asked_assignor"], row["change"]) == (assignor, change)]
        kept = [row for row in own if row["outcome"] in {"ASSIGNED", "UNCHANGED"}]
        assert (cell["groups"], cell["moves"]) == (len(kept), sum(row["moves"] for row in kept))
        if change == "no members":
            client = assignor != "recorded"  # refused in KIP-848 groups
            assert {row["outcome"] for row in own} == {"EMPTY", *(["REJECTED"] if client else [])}
    assert cells["recorded", "members +2"]["moves"] > cells["recorded", "as it is"]["moves"]
    assert space.rows(RUNS) == before
    assert_each_row_is_what_one_group_is_told(LedgerReader(space.location.path), rows)
    again = what_if(space, "--rows", str(folder))
    assert (again.exit_code, "OUTPUT_EXISTS" in again.stderr) == (2, True)


def assert_each_row_is_what_one_group_is_told(reader, rows):
    """Whatever the type of the group: what members have, and would have with two more."""
    seen = set()
    for row in rows:
        if (row["asked_assignor"], row["change"]) != ("recorded", "members +2"):
            continue
        one = answered(reader, row["group_id"], row["cluster_id"], members=2)
        assert (row["assignor"], row["moves"], row["revoked"]) == (one.assignor, one.moves, one.given_up)
        had = {each["member_id"]: (places(each["had"]), places(each["would_have"])) for each in row["who_has_what"]}
        assert had == {each.member_id: (each.held, each.assigned) for each in one.members}
        seen.add(row["assignor"].split("-")[0])
    assert {"server", "range"} <= seen


def places(found):
    return tuple(sorted((each["topic"], number) for each in found for number in each["partitions"]))


@pytest.mark.parametrize(
    ("arguments", "grid", "says"),
    [
        (["nobody*"], GRID, "GRID_EMPTY"),
        ([], "assignors: [stikcy]", "did you mean sticky"),
        ([], "changes: [{members: many}]", "changes.0.members"),
        (
            [],
            "changes: [{}, {lost_rack: nope}]",
            "is 'nope', in which no member of these groups is; none is known [UNK",
        ),
        (
            [],
            "changes: [{subscribe: clcks}]",
            "which no listing of topics has; did you mean clicks? expected one of cli",
        ),
        (["nobody*"], "changes: [{subscribe: clcks}]", "GRID_EMPTY"),
    ],
)
def test_what_cannot_be_is_one_line(space, arguments, grid, says):
    done = what_if(space, *arguments, grid=grid)
    assert (done.exit_code, done.stdout) == (2, "")
    *progress, said = done.stderr.strip().splitlines()  # on a busy machine it says what it does
    assert says in said
    assert set(progress) <= {"starting Spark ...", "computing the grid ..."}
