"""What readers see, in Spark and without it: the same rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BinaryType, BooleanType, IntegerType, LongType, StringType, TimestampType

from groupledger import tables
from groupledger.answers.queries import literal, rows_of
from groupledger.core.faults import Fault
from groupledger.pipeline.frames import LedgerFrames, SparkReader
from groupledger.sinks import attempts
from groupledger.sinks.current import current
from groupledger.tables import columns as c
from groupledger.tables.views import CURRENT
from tests.answers.test_reader import HOSTILE
from tests.pages import documented_reader

pytestmark = pytest.mark.spark

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
DEFAULTS = {
    StringType(): "x",
    IntegerType(): 0,
    LongType(): 0,
    BooleanType(): False,
    BinaryType(): b"",
    TimestampType(): MOMENT,
}
KNOWN = {
    **{c.GROUP_TYPE: "classic", c.OUTCOME: "ASSIGNED", c.PROTOCOL: "EAGER", c.SEVERITY: "info", c.ROUND: 1},
    **{c.CERTAINTY: "recorded", c.WINDOW_END: MOMENT + timedelta(hours=1)},
}
"""What the tables' constraints take in columns that do not take just anything."""

FOLDED = (tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS, tables.OWNERSHIP_CHANGES, tables.COVERAGE)


def full(table, values):
    """A row with a value of some kind wherever the table requires one."""
    row = {}
    for field in table.schema:
        if not field.nullable:
            default = [] if isinstance(field.dataType, ArrayType) else DEFAULTS[field.dataType]
            row[field.name] = KNOWN.get(field.name, default)
    return row | values


def at(offset, group="payments", partition=3):
    return {
        c.CLUSTER_ID: "dev",
        c.GROUP_ID: group,
        c.OFFSET: offset,
        c.LOG_PARTITION: partition,
        c.SNAPSHOT_ID: f"log/dev/{partition}/{offset}",
        c.SOURCE: "log",
    }


def fact_rows(offsets, group="payments", partition=3):
    rows = [at(offset, group, partition) for offset in offsets]
    found = {table.name: rows for table in FOLDED}
    found["quarantine"] = [row | {c.STAGE: "fold"} for row in rows]
    found["violations"] = rows
    return found


def head(group, start, end, *, refolded, partition=3):
    return at(end, group, partition) | {c.FROM_OFFSET: start, c.REFOLDED: refolded, c.STATE: b""}


FIRST, SECOND, THIRD = ("log/dev/3/10", "log/dev/3/20", "log/dev/3/50")
GONE = "log/dev/3/5"
"""Of the group `moved`: superseded by a fold that has no such snapshot."""


def result_rows(snapshots, scenario="baseline", group="payments"):
    key = [{c.CLUSTER_ID: "dev", c.GROUP_ID: group, c.SNAPSHOT_ID: name} for name in snapshots]
    return {
        "rebalances": [row | {c.SCENARIO: scenario} for row in key],
        "assignments": [row | {c.SCENARIO: scenario} for row in key],
        "violations": [row | {c.SCENARIO: scenario} for row in key],
        "quarantine": [row | {c.STAGE: "assign"} for row in key],
    }


def call_rows(member):
    key = {c.CLUSTER_ID: "dev", c.GROUP_ID: "payments", c.MEMBER_ID: member}
    return {"callbacks": [key], "metrics": [key]}


MOVED = fact_rows([5, 60], "moved")
MOVED["quarantine"].append(at(61, "moved", 9) | {c.STAGE: "fold"})
REFUSED_BY_A_SOURCE = at(17) | {c.STAGE: "decode"}

from_a_table = at(12) | {c.SNAPSHOT_ID: "table/dev/12", c.LOG_PARTITION: None, c.SOURCE: "table"}

ATTEMPTS = [
    ("ingest-1", "config", fact_rows([10, 20, 30]) | {"group_heads": [head("payments", -1, 30, refolded=False)]}),
    ("other-group", "config", fact_rows([25], "orders") | {"group_heads": [head("orders", -1, 25, refolded=False)]}),
    ("user-table", "config", {table.name: [from_a_table] for table in FOLDED if table is not tables.OWNERSHIP_CHANGES}),
    ("derived-1", "config", {"ownership_changes": [from_a_table, from_a_table | {c.OFFSET: 13}]}),
    ("derived-2", "config", {"ownership_changes": [from_a_table]}),
    ("refused", "config", {"quarantine": [REFUSED_BY_A_SOURCE]}),
    ("moved-1", "config", MOVED | {"group_heads": [head("moved", -1, 60, refolded=False)]}),
    (
        "moved-2",
        "config",
        fact_rows([4], "moved", 7) | {"group_heads": [head("moved", -1, 4, refolded=True, partition=7)]},
    ),
    ("dead", None, fact_rows([11, 40]) | {"group_heads": [head("payments", -1, 99, refolded=True)]}),
    ("late", "config", fact_rows([15, 20]) | {"group_heads": [head("payments", 10, 20, refolded=True)]}),
    ("next", "config", fact_rows([18, 50]) | {"group_heads": [head("payments", 30, 50, refolded=False)]}),
    ("unplaced", "config", {"quarantine": [{c.STAGE: "topics"}], "topic_snapshots": [{c.CLUSTER_ID: "dev"}]}),
    ("assign-1", "one", result_rows([FIRST, SECOND])),
    ("assign-dead", None, result_rows([FIRST, SECOND, THIRD])),
    ("assign-what-if", "one", result_rows([FIRST], "what-if")),
    ("assign-2", "one", result_rows([SECOND, THIRD]) | {"assignments": []}),
    ("assign-two", "two", result_rows([SECOND])),
    ("assign-gone", "one", result_rows([GONE], group="moved")),
    ("calls-1", "hours", call_rows("m-1")),
    ("calls-2", "other hours", call_rows("m-2")),
    ("calls-dead", None, call_rows("m-3")),
]

EXPECTED_FACTS = {
    ("ingest-1", 10),
    ("ingest-1", 30),
    ("other-group", 25),
    ("late", 15),
    ("late", 20),
    ("next", 18),
    ("next", 50),
    ("moved-2", 4),
}
REFOLDS = ("late", "moved-2")
EXPECTED_RESULTS = {
    ("assign-1", "baseline", FIRST),
    ("assign-what-if", "what-if", FIRST),
    ("assign-2", "baseline", THIRD),
    ("assign-two", "baseline", SECOND),
}


@pytest.fixture(scope="module")
def place(spark, new_ledger, tmp_path_factory):
    location = new_ledger(tmp_path_factory.mktemp("current"))
    by_table: dict[str, list[dict[str, Any]]] = {}
    sequence = 0
    for name, config, rows_by_table in ATTEMPTS:
        for table, rows in rows_by_table.items():
            by_table.setdefault(table, []).extend(row | {c.ATTEMPT_ID: name} for row in rows)
        attempt = attempts.Attempt(
            name, name, attempts.CALLS if name.startswith("calls") else "kind", {}, config or "none", "code", MOMENT
        )
        if config is None:
            attempts.plan(spark, location, attempt)
        else:
            again = sum(row[c.REFOLDED] for row in rows_by_table.get("group_heads", []))
            taken = {"dev/used.group_snapshots": 1} if name.startswith("derived") else {}
            outcome = attempts.Outcome(taken, {attempts.LATE_GROUPS: again}, "digest", "done", MOMENT)
            run = attempts.commit(spark, location, attempt, sequence, outcome)
            sequence = run.sequence
    for name, rows in by_table.items():
        write(spark, location, tables.BY_NAME[name], rows)
    return location


def write(spark, location, table, rows):
    """All attempts' rows in one commit, as `append` leaves them in several."""
    filled = [full(table, row) for row in rows]
    data = [tuple(row.get(name) for name in table.columns) for row in filled]
    spark.createDataFrame(data, table.schema).writeTo(location.identifier(table)).append()


def shown(spark, place, name, *columns):
    return sorted(tuple(row) for row in current(spark, place, tables.BY_NAME[name]).select(*columns).collect())


@pytest.mark.long
def test_where_nothing_was_folded_again_every_committed_fact_counts(spark, place):
    commits = tuple(
        commit for commit in attempts.read_commits(spark, place).commits if commit.attempt_id not in REFOLDS
    )
    rows = current(spark, place, tables.GROUP_SNAPSHOTS, commits).select(c.ATTEMPT_ID, c.OFFSET).collect()
    kept = {row for row in EXPECTED_FACTS if row[0] not in REFOLDS}
    replaced = {("ingest-1", 20), ("moved-1", 5), ("moved-1", 60)}
    assert set(map(tuple, rows)) == kept | replaced | {("user-table", 12)}


@pytest.mark.long
def test_more_commits_than_a_filter_names_are_joined(spark, place, monkeypatch):
    named = shown(spark, place, "topic_snapshots", c.ATTEMPT_ID)
    monkeypatch.setattr("groupledger.sinks.current._NAMED", 2)
    assert shown(spark, place, "topic_snapshots", c.ATTEMPT_ID) == named == [("unplaced",)]


@pytest.mark.long
@pytest.mark.parametrize("table", FOLDED, ids=lambda table: table.name)
def test_facts_give_way_to_a_later_fold(spark, place, table):
    seen = shown(spark, place, table.name, c.ATTEMPT_ID, c.OFFSET)
    from_tables = {("derived-2" if table is tables.OWNERSHIP_CHANGES else "user-table", 12)}
    assert seen == sorted(EXPECTED_FACTS | from_tables)


@pytest.mark.long
def test_heads_give_way_too(spark, place):
    seen = shown(spark, place, "group_heads", c.ATTEMPT_ID, c.OFFSET)
    assert seen == [("ingest-1", 30), ("late", 20), ("moved-2", 4), ("next", 50), ("other-group", 25)]


@pytest.mark.long
def test_results_give_way_to_the_latest_of_their_snapshot_and_scenario_whatever_its_configuration(spark, place):
    key = (c.ATTEMPT_ID, c.SCENARIO, c.SNAPSHOT_ID)
    assert shown(spark, place, "rebalances", *key) == sorted(EXPECTED_RESULTS)
    assert set(shown(spark, place, "assignments", *key)) == {row for row in EXPECTED_RESULTS if row[0] != "assign-2"}


@pytest.mark.long
def test_the_ledger_s_interface_gives_these_results_and_no_others(spark, place):
    """`show` and notebooks ask it."""
    ledger = LedgerFrames(spark, place.path)
    names = (c.ATTEMPT_ID, c.SCENARIO, c.SNAPSHOT_ID)
    group = ledger.group("payments")
    for rows in (ledger.results(), group.rebalances, group.of(tables.REBALANCES), ledger.current(tables.REBALANCES)):
        assert sorted(map(tuple, rows.select(*names).collect())) == sorted(EXPECTED_RESULTS)
    of_one = ledger.results("what-if").select(*names).collect()
    assert list(map(tuple, of_one)) == [("assign-what-if", "what-if", FIRST)]


@pytest.mark.long
def test_findings_and_rejections_follow_what_they_are_about(spark, place):
    facts = {(attempt, f"log/dev/{7 if attempt == 'moved-2' else 3}/{offset}") for attempt, offset in EXPECTED_FACTS}
    results = {(attempt, snapshot) for attempt, _, snapshot in EXPECTED_RESULTS}
    assert set(shown(spark, place, "violations", c.ATTEMPT_ID, c.SNAPSHOT_ID)) == facts | results
    seen = {
        tuple(row) for row in current(spark, place, tables.QUARANTINE).select(c.ATTEMPT_ID, c.SNAPSHOT_ID).collect()
    }
    assert seen == facts | results | {("unplaced", None), ("refused", REFUSED_BY_A_SOURCE[c.SNAPSHOT_ID])}


@pytest.mark.long
@pytest.mark.parametrize("name", ["callbacks", "metrics"])
def test_calls_are_those_of_the_last_run_that_derived_them(spark, place, name):
    assert shown(spark, place, name, c.ATTEMPT_ID, c.MEMBER_ID) == [("calls-2", "m-2")]


@pytest.mark.long
def test_nothing_of_an_attempt_that_is_not_committed_is_seen(spark, place):
    for table in tables.TABLES:
        attempts = {row[0] for row in current(spark, place, table).select(c.ATTEMPT_ID).distinct().collect()}
        assert attempts.isdisjoint({"dead", "assign-dead", "calls-dead"}), table.name


def by_pandas(spark, place, table):
    del spark
    return documented_reader()(place.path, table.name)


def by_views_in_spark(spark, place, table):
    return pa.table(SparkReader(spark, place).query("SELECT * FROM " + CURRENT.format(table.name))).to_pandas()


@pytest.mark.long
@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_of_a_query_stays_what_it_is_in_spark(spark, place, value):
    reader = SparkReader(spark, place)
    assert rows_of(reader.query("SELECT :value, :at", value=value, at=MOMENT)) == [(value, MOMENT)]
    assert rows_of(reader.query(f"SELECT {literal(value)}, {literal(MOMENT)}")) == [(value, MOMENT)]


@pytest.mark.long
def test_a_query_is_kept_for_others_by_spark_too(spark, place):
    reader = SparkReader(spark, place)
    with reader.kept("SELECT t.offset FROM current_group_snapshots t WHERE t.group_id = 'orders'") as name:
        assert rows_of(reader.query(f"SELECT t.offset FROM {name} t")) == [(25,)]
    with pytest.raises(Fault) as caught:
        reader.query(f"SELECT * FROM {name} t")
    assert caught.value.code == "SQL_INVALID"


@pytest.mark.long
@pytest.mark.parametrize(
    "query", ["DROP TABLE runs", "EXPLAIN INSERT INTO runs SELECT * FROM runs", "SELECT x FROM runs"]
)
def test_what_is_no_query_is_refused_by_spark_s_reader_too(spark, place, query):
    with pytest.raises(Fault) as caught:
        SparkReader(spark, place).query(query)
    assert caught.value.code == "SQL_INVALID"


@pytest.mark.long
@pytest.mark.parametrize("read", [by_pandas, by_views_in_spark])
@pytest.mark.parametrize("table", tables.TABLES, ids=lambda table: table.name)
def test_the_views_hold_the_same_in_both_engines(spark, place, table, read):
    scalars = [field.name for field in table.schema if type(field.dataType) in map(type, DEFAULTS)]
    scalars = [name for name in scalars if not isinstance(table.schema[name].dataType, TimestampType)]
    ours = current(spark, place, table)
    assert ours.columns == table.columns
    theirs = read(spark, place, table)
    assert list(theirs.columns)[: len(table.columns)] == table.columns
    expected = sorted(repr(tuple(row)) for row in ours.select(*scalars).collect())
    assert len(expected) > 0 or table is tables.LOG_RECORDS
    rows = theirs[scalars].astype(object)
    found = rows.where(rows.notna(), None).itertuples(index=False, name=None)
    assert sorted(repr(plain(table, scalars, row)) for row in found) == expected


def plain(table, names, row):
    """pandas has 3.0 for an integer column with nulls."""
    return tuple(
        int(value) if isinstance(table.schema[name].dataType, IntegerType | LongType) and value is not None else value
        for name, value in zip(names, row, strict=True)
    )
