"""`groupledger sql`: for a person, for a program, for a spreadsheet; and what is wrong in a line."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from groupledger.answers.reader import views
from groupledger.cli import main
from tests.answers.ledgers import COMMITTED, write
from tests.hostile_ids import RAW

HOSTILE = "a\x1b[31m\u202e,\"\n'b"
LISTED = [{"topic_id": None, "topic": "orders", "partitions": [0, 1]}]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    member = {"cluster_id": "dev", "snapshot_id": "log/dev/0/1", "attempt_id": "a", "user_data": b"\x00\x01"}
    members = [
        member | {"group_id": HOSTILE, "member_id": "m1", "offset": 12_345, "recorded": LISTED},
        member | {"group_id": "pay", "member_id": "m2", "offset": 1},
    ]
    runs = [COMMITTED | {"attempt_id": "a", "sequence": 1, "finished_at": datetime(2026, 11, 21, 14, 3, tzinfo=UTC)}]
    return write(tmp_path_factory.mktemp("ledger"), runs=runs, member_snapshots=members)


QUERY = "SELECT group_id, m.offset, recorded, user_data FROM current_member_snapshots m ORDER BY m.offset"


def run(place, *arguments, code=0):
    ran = CliRunner().invoke(main, ["sql", *arguments, "--ledger", place])
    assert ran.exit_code == code, ran.output
    return ran


def test_for_a_person(place):
    lines = run(place, QUERY).stdout.splitlines()
    assert lines[0].split() == ["group_id", "offset", "recorded", "user_data"]
    assert lines[1].split() == ["pay", "1", "-", "0001"]
    assert "12,345" in lines[2]
    assert '"partitions": [0, 1]' in lines[2]
    assert len(lines) == 3
    assert RAW.search(lines[2]) is None
    assert run(place, QUERY, "--limit", "1").stdout.splitlines()[-1] == "... and 1 more (--limit)"
    assert run(place, QUERY.replace("ORDER", "WHERE false ORDER")).stdout == "no rows\n"


def test_for_a_program(place):
    answer = json.loads(run(place, QUERY, "--json").stdout)
    assert answer["columns"] == ["group_id", "offset", "recorded", "user_data"]
    assert [row["group_id"] for row in answer["rows"]] == ["pay", HOSTILE]
    assert answer["rows"][1]["recorded"] == LISTED
    assert answer["rows"][1]["user_data"] == "0001"
    assert (answer["status"], answer["left_off"]) == ("done", 0)
    assert json.loads(run(place, QUERY, "--json", "--limit", "1").stdout)["left_off"] == 1


def test_for_a_spreadsheet(place):
    rows = list(csv.reader(io.StringIO(run(place, QUERY, "--csv", "--limit", "1").stdout)))
    assert rows[0] == ["group_id", "offset", "recorded", "user_data"]
    assert [row[:2] for row in rows[1:]] == [["pay", "1"], [HOSTILE, "12345"]]
    assert (rows[1][2], json.loads(rows[2][2])) == ("", LISTED)
    finished = "SELECT finished_at, true AS yes FROM current_runs"
    assert run(place, finished, "--csv").stdout == "finished_at,yes\n2026-11-21T14:03:00.000Z,true\n"


def test_without_a_query_the_views_are_listed(place):
    lines = run(place).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(views())
    assert [each["view"] for each in json.loads(run(place, "--json").stdout)["views"]] == list(views())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["SELECT x FROM current_runs r"], "no column 'x' in r, which has run_id, attempt_id,"),
        (["SELECT moves FROM current_runs"], "finished_at, removed; current_rebalances has moves"),
        (["SELECT attempt FROM current_runs"], "no column 'attempt' in current_runs; did you mean attempt_id?"),
        (["SELECT no"], "the query cannot be run: No field named no; `groupledger sql` lists the views"),
        (["SELECT * FROM rebalances_current"], "did you mean current_rebalances? `groupledger sql` lists"),
        (["DELETE FROM runs"], "expected a query"),
        (["SELECT 1", "SELECT 2"], "unexpected extra argument"),
        (["SELECT 1", "--limit", "0"], "--limit"),
        (["SELECT"], "the query cannot be run: Expected: an expression, found: EOF; `groupledger sql` lists the views"),
        (["SELECT * FROM current_run"], "there is no table or view 'current_run'; did you mean current_runs?"),
        (["SELECT * FROM nope"], "there is no table or view 'nope'; `groupledger sql` lists the views"),
    ],
)
def test_what_is_wrong_is_one_line(place, arguments, says):
    ran = run(place, *arguments, code=2)
    assert ran.stdout == ""
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_an_output_has_one_form(place):
    ran = run(place, "SELECT 1", "--json", "--csv", code=2)
    assert "--csv or --json, not both" in ran.stderr


def test_a_folder_without_a_ledger(tmp_path):
    assert "groupledger ingest" in run(str(tmp_path), "SELECT 1", code=2).stderr


def test_views_are_for_a_catalog(place, monkeypatch):
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: None)
    ran = CliRunner().invoke(main, ["views", "--ledger", place])
    assert ran.exit_code == 2
    assert "expected one in a catalog" in ran.stderr
