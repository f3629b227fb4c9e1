"""A ledger read without Spark: what it answers, what it refuses, and what it never loads."""

import json
import subprocess
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import parquet

from groupledger.answers.queries import literal, rows_of
from groupledger.answers.reader import LedgerReader, ingest_findings
from groupledger.core.faults import Fault
from groupledger.core.ledger_version import SCHEMA_VERSION
from tests.answers.ledgers import COMMITTED, MOMENT, write

KEY: dict[str, object] = {"cluster_id": "dev", "group_id": "pay", "scenario": "baseline"}


def result(offset, attempt, **more):
    return KEY | {"snapshot_id": f"log/dev/0/{offset}", "attempt_id": attempt} | more


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    runs = [COMMITTED | {"attempt_id": f"a{number}", "run_id": f"r{number}", "sequence": number} for number in (1, 2)]
    runs.append({"attempt_id": "dead", "status": "planned", "kind": "assign"})
    known = {"attempt_id": "a1", "state": "Stable", "observed_at": MOMENT, "log_partition": 0}
    snapshots = [KEY | known | {"snapshot_id": f"log/dev/0/{offset}", "offset": offset} for offset in (1, 2)]
    changes = [KEY | known | {"topic": "orders", "partition": 7, "to_member_id": "m", "at": MOMENT, "offset": 1}]
    results = [result(1, "a1", moves=1), result(1, "a2", moves=2), result(2, "a1", moves=3), result(2, "dead", moves=4)]
    reasons = [{"topic": "orders", "partitions": [1, 2], "reason": "no-subscriber"}]
    results[1]["unassigned_partitions"] = reasons
    return write(
        tmp_path_factory.mktemp("ledger"),
        runs=runs,
        group_snapshots=snapshots,
        rebalances=results,
        ownership_changes=changes,
    )


def test_the_latest_result_counts_with_what_is_known_of_its_snapshot(place):
    found = LedgerReader(place).query("SELECT moves, state, observed_at, unassigned_partitions FROM current_rebalances")
    reasons = [{"topic": "orders", "partitions": [1, 2], "reason": "no-subscriber"}]
    assert sorted(rows_of(found), key=str) == [(2, "Stable", MOMENT, reasons), (3, "Stable", MOMENT, [])]
    assert found.schema.names == ["moves", "state", "observed_at", "unassigned_partitions"]


HOSTILE = ["O'Brien", "a\\b\\", "':scenario'", "x' OR '1'='1", "\x00\u202e\n", "", "unnest(runs)", "'"]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_stays_what_it_is_whatever_is_in_it(place, value):
    asked = LedgerReader(place).query("SELECT :value AS found, :scenario AS other", value=value, scenario="s")
    assert rows_of(asked) == [(value, "s")]
    written = f"SELECT {literal(value)} AS found, {literal(value)} IN ({literal('s')}, {literal(value)}) AS is_one"
    assert rows_of(LedgerReader(place).query(written)) == [(value, True)]


def test_several_queries_see_one_moment(place):
    reader = LedgerReader(place)
    for _ in range(3):
        assert rows_of(reader.query("SELECT count(*) FROM current_rebalances r, current_runs")) == [(4,)]
    assert rows_of(reader.query("WITH x AS (SELECT 1 AS one) SELECT one FROM x")) == [(1,)]


def test_which_attempts_count_is_read_once(tmp_path):
    snapshots = [KEY | {"snapshot_id": "log/dev/0/1", "log_partition": 0, "offset": 1}]
    reader = LedgerReader(write(tmp_path, group_snapshots=snapshots, coverage=[KEY | {"snapshot_id": "log/dev/0/1"}]))
    assert rows_of(reader.query("SELECT offset FROM current_group_snapshots")) == [(1,)]
    for path in (tmp_path / "runs").rglob("*.parquet"):
        path.unlink()
    assert rows_of(reader.query("SELECT snapshot_id FROM current_coverage")) == [("log/dev/0/1",)]


def test_a_query_is_kept_for_others_and_dropped_in_the_end(place):
    reader = LedgerReader(place)
    columns = "t.snapshot_id, t.assignor, t.offset, t.shared_topics"
    wanted = f"SELECT {columns} FROM current_group_snapshots t WHERE t.offset >= 1"
    with reader.kept(wanted) as first, reader.kept(f"SELECT t.offset FROM {first} t") as second:
        assert first != second
        joined = f"SELECT t.* FROM {first} t JOIN {second} o ON o.offset = t.offset ORDER BY t.offset"
        assert rows_of(reader.query(joined)) == [("log/dev/0/1", None, 1, None), ("log/dev/0/2", None, 2, None)]
    for name in (first, second):
        with pytest.raises(Fault, match=f"no table or view '{name}'"):
            reader.query(f"SELECT * FROM {name} t")


@pytest.mark.parametrize("query", ["DROP TABLE runs", "SELECT nothing FROM runs"])
def test_what_cannot_be_kept_is_refused(place, query):
    with pytest.raises(Fault) as raised, LedgerReader(place).kept(query):
        pass
    assert raised.value.code == "SQL_INVALID"


@pytest.mark.parametrize(("folded_again", "offsets"), [(True, [3]), (False, [1, 3])])
def test_what_a_later_run_folded_again_does_not_count(tmp_path, folded_again, offsets):
    runs = [COMMITTED | {"attempt_id": f"a{number}", "sequence": number} for number in (1, 2)]
    facts = [
        KEY | {"snapshot_id": f"log/dev/0/{offset}", "log_partition": 0, "source": "log"} | of
        for offset, of in ((1, {"offset": 1, "attempt_id": "a1"}), (3, {"offset": 3, "attempt_id": "a2"}))
    ]
    head = KEY | {"log_partition": 0, "from_offset": 0, "offset": 2, "attempt_id": "a2", "refolded": folded_again}
    reader = LedgerReader(write(tmp_path, runs=runs, group_snapshots=facts, member_snapshots=facts, group_heads=[head]))
    for view in ("current_group_snapshots", "current_member_snapshots"):
        assert sorted(row[0] for row in rows_of(reader.query(f"SELECT t.offset FROM {view} t"))) == offsets


def test_what_ingest_found_is_the_view_without_a_scenario(tmp_path):
    place = {"snapshot_id": "log/dev/0/1", "cluster_id": "dev", "group_id": "pay", "log_partition": 0, "offset": 1}
    found = [place | {"code": "A"}, place | {"code": "B", "attempt_id": "dead"}, place | {"code": "C", "scenario": "s"}]
    heads = [place | {"from_offset": 0, "offset": 9, "refolded": True, "attempt_id": "later"}]
    again = [COMMITTED, COMMITTED | {"attempt_id": "later", "sequence": 2}]
    for more, expected in (({}, [("A",)]), ({"runs": again, "group_heads": heads}, [])):
        computed = {"group_snapshots": [place], "rebalances": [place | {"scenario": "s", "round": 1}]}
        reader = LedgerReader(write(tmp_path / f"{len(more)}", violations=found, **computed, **more))
        if not more:
            assert rows_of(reader.query("SELECT code FROM current_violations ORDER BY code")) == [("A",), ("C",)]
        for query in ("SELECT code FROM current_violations WHERE scenario IS NULL", "SELECT code FROM ({}) v"):
            assert rows_of(reader.query(query.format(ingest_findings()))) == expected


def test_moments_are_utc_and_nothing_is_rounded(place):
    found = LedgerReader(place).query("SELECT timestamp '2026-11-21T14:03:00.123456Z' AS at, NULL AS nothing")
    assert rows_of(found) == [(datetime(2026, 11, 21, 14, 3, 0, 123456, tzinfo=UTC), None)]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("DROP TABLE runs", "expected a query"),
        ("", "expected a query"),
        ("COPY runs TO 'x.csv'", "expected a query"),
        ("INSERT INTO runs SELECT * FROM runs", "expected a query"),
        ("SELECT nothing FROM current_runs", "no column 'nothing' in current_runs, which has run_id"),
        ("SELECT * FROM nothing", "no table or view 'nothing'; `groupledger sql` lists the views"),
        ("SELECT FROM", "cannot be run"),
        ("SELECT 1; SELECT 2", "single SQL statement"),
        ("WITH x AS (SELECT 1) INSERT INTO runs SELECT * FROM x", "cannot be run"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'", "expected a query"),
        ("EXPLAIN INSERT INTO runs SELECT * FROM runs", "expected a query"),
        ("SELECT * FROM '/etc/passwd'", "no table or view '/etc/passwd'"),
        ("SELECT 1/0 FROM current_runs", "cannot be run"),
    ],
)
def test_what_is_no_query_is_refused_and_changes_nothing(place, query, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Fault, match=says) as caught:
        LedgerReader(place).query(query)
    assert caught.value.code == "SQL_INVALID"
    assert "\n" not in caught.value.message
    assert list(tmp_path.iterdir()) == []
    assert rows_of(LedgerReader(place).query("SELECT count(*) FROM runs")) == [(3,)]


@pytest.mark.parametrize(
    "query", ["(SELECT 1)", "-- a remark\n select 1", "EXPLAIN SELECT 1", "explain analyze select 1"]
)
def test_what_reads_is_run(place, query):
    assert LedgerReader(place).query(query).num_rows >= 1


def test_a_place_without_a_ledger(tmp_path):
    for path in ("nowhere", "."):
        with pytest.raises(Fault, match="groupledger ingest") as caught:
            LedgerReader(str(tmp_path / path))
        assert caught.value.code == "LEDGER_MISSING"


@pytest.mark.parametrize(
    ("version", "code"), [(SCHEMA_VERSION + 1, "LEDGER_NEWER"), (SCHEMA_VERSION - 1, "LEDGER_OLDER"), ("x", "FOREIGN")]
)
def test_a_ledger_of_another_version(tmp_path, version, code):
    with pytest.raises(Fault) as caught:
        LedgerReader(write(tmp_path, version=version))
    assert caught.value.code.startswith(code)


def test_a_file_that_is_gone_or_damaged_is_the_ledgers_fault(tmp_path):
    place = write(tmp_path, runs=[COMMITTED | {"attempt_id": "a", "sequence": 1}], coverage=[{"attempt_id": "a"}])
    [file] = (tmp_path / "coverage").glob("*.parquet")
    content = file.read_bytes()
    for damage in (lambda: file.write_bytes(content[: len(content) // 2]), file.unlink):
        damage()
        with pytest.raises(Fault) as caught:
            LedgerReader(place).query("SELECT * FROM current_coverage")
        assert caught.value.code == "LEDGER_UNREADABLE", caught.value.message
        assert "\n" not in caught.value.message


REPORTS = ("storms", "skew", "static", "stickiness", "rack")


def test_no_engine_is_loaded_for_an_answer(place, tmp_path):
    asked = [["sql", "SELECT * FROM current_rebalances"], ["audit"], *(["report", name] for name in REPORTS)]
    asked += [["who", "orders-7"], ["who", "--unowned-since"], ["timeline", "pay"], ["show", "--group", "pay"]]
    asked += [["timeline", "--partition", "orders-7", "--since", "24h"], ["explain", "pay"]]
    weights = pa.table({"topic": ["orders"], "partition": [1], "lag": [5]})
    write_deltalake(str(tmp_path / "lag"), weights)
    parquet.write_table(weights, tmp_path / "lag.parquet")
    weighed = [["report", "skew", "--weights", str(tmp_path / name)] for name in ("lag", "lag.parquet")]
    code = "\n".join(
        [
            "import sys; from groupledger.cli import main",
            *(f"main({[*each, '--json', '--ledger', place]!r}, standalone_mode=False)" for each in asked),
            "print([name for name in ('numpy', 'pyarrow') if name in sys.modules])",
            *(f"main({[*each, '--json', '--ledger', place]!r}, standalone_mode=False)" for each in weighed),
            "print([name for name in ('pandas', 'pyspark', 'numba', 'delta') if name in sys.modules])",
        ]
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *answers, loaded = ran.stdout.splitlines()
    assert answers.pop(len(asked)) == "[]"
    assert len(json.loads(answers[0])["rows"]) == 2
    assert [json.loads(answer)["status"] for answer in answers] == ["done"] * len(asked + weighed)
    assert loaded == "[]"
