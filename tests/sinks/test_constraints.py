"""What holds for every row of a table: Delta is told, refuses the others, and the fault names what was broken."""

from ast import literal_eval
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    TimestampType,
)

from groupledger.core.faults import Fault
from groupledger.core.protocol.recorded import Certainty
from groupledger.core.rebalance.findings import Severity
from groupledger.engine.result_rows import OUTCOMES
from groupledger.sinks import attempts
from groupledger.sinks.append import append
from groupledger.sinks.attempts import ENDS
from groupledger.sinks.ledger_tables import LEASED, LedgerLocation, constraints, create
from groupledger.sinks.location import engine_errors_as_faults
from groupledger.sources import offsets_records, snapshot_tables, topic_listings
from groupledger.sources.snapshot_tables import GROUP_TYPES
from groupledger.tables import CONSTRAINTS, GROUP_SNAPSHOTS, REBALANCES, RUNS, TABLES
from groupledger.tables import columns as c

MOMENT = datetime(2026, 11, 22, tzinfo=UTC)
PLAIN = {
    StringType: "word",
    IntegerType: 1,
    LongType: 1,
    DoubleType: 1.0,
    BooleanType: True,
    BinaryType: b"",
    TimestampType: MOMENT,
    ArrayType: [],
    MapType: {},
}
WORDS = {
    "group_snapshots_group_type": GROUP_TYPES,
    "quarantine_stage": (offsets_records.STAGE, "fold", topic_listings.STAGE, snapshot_tables.STAGE, "assign"),
    "rebalances_outcome": OUTCOMES,
    "rebalances_protocol": ("EAGER", "COOPERATIVE"),
    "violations_severity": tuple(Severity),
    "callbacks_certainty": tuple(Certainty),
    "runs_status": (attempts.PLANNED, *ENDS, LEASED),
}
BROKEN: dict[str, list[dict[str, Any]]] = {
    "log_records_position": [{c.OFFSET: -1}, {c.LOG_PARTITION: -1}],
    "group_snapshots_counts": [{c.OFFSET: -1}, {c.MEMBERS: -1}],
    "member_snapshots_position": [{c.OFFSET: -1}, {c.MEMBER_ORDER: -1}],
    "topic_snapshots_partition_count": [{c.PARTITION_COUNT: -1}],
    "ownership_changes_position": [{c.OFFSET: -1}, {c.PARTITION: -1}],
    "group_heads_offsets": [{c.FROM_OFFSET: -2}, {c.FROM_OFFSET: 2}],
    "assignments_round": [{c.ROUND: 0}],
    "assignments_member_order": [{c.MEMBER_ORDER: -1}],
    "rebalances_round": [{c.ROUND: 0}],
    "rebalances_counts": [{c.MOVES: -1}, {c.MEMBERS: -1}, {c.UNASSIGNED: -1}],
    "rebalances_load": [{c.LOAD_MIN: 2}],
    "violations_partition": [{c.PARTITION: -1}],
    "callbacks_call_order": [{c.CALL_ORDER: -1}],
    "metrics_window": [{c.WINDOW_END: MOMENT}],
    "runs_sequence": [{c.STATUS: attempts.PLANNED}, {c.SEQUENCE: 0}, {c.SEQUENCE: None}],
}


def worded(table):
    """The columns of a table that hold one of a few words, with these."""
    return {name.removeprefix(f"{table.name}_"): WORDS[name] for name in table.constraints if name in WORDS}


def broken(table):
    """(constraint, changes that make a row break this one alone)."""
    for name in table.constraints:
        for changes in BROKEN.get(name, []):
            yield name, changes
    for column in worded(table):
        also: dict[str, Any] = {c.SEQUENCE: None} if table is RUNS else {}
        yield f"{table.name}_{column}", {column: "other", **also}


def row(table, least=False, **changes):
    """A row that breaks nothing but by `changes`; `least`: null wherever that is allowed."""
    values: dict[str, Any] = {f.name: None if least and f.nullable else PLAIN[type(f.dataType)] for f in table.schema}
    values |= {name: words[0] for name, words in worded(table).items()}
    values |= {c.WINDOW_END: MOMENT + timedelta(hours=1), c.STATUS: attempts.PLANNED if least else attempts.COMMITTED}
    return tuple((values | changes)[name] for name in table.columns)


def test_every_constraint_is_tried():
    assert {name for table in TABLES for name, _ in broken(table)} == set(CONSTRAINTS)


@pytest.mark.parametrize(("name", "words"), WORDS.items(), ids=list(WORDS))
def test_the_words_a_column_may_hold_are_those_the_code_knows(name, words):
    assert set(literal_eval(CONSTRAINTS[name][1].partition(" IN ")[2])) == set(words)


@pytest.mark.parametrize("table", [each for each in TABLES if each.checks], ids=lambda each: each.name)
def test_a_constraint_is_true_of_a_good_row_and_false_of_a_bad_one_never_null(spark, table):
    bad = list(broken(table))
    rows = [row(table), row(table, least=True), *(row(table, **changes) for _, changes in bad)]
    holds = [F.expr(condition).alias(name) for name, condition in table.constraints.items()]
    good, least, *others = spark.createDataFrame(rows, table.schema).coalesce(1).select(*holds).collect()
    assert set(good.asDict().values()) == set(least.asDict().values()) == {True}
    assert [[name for name, holds in each.asDict().items() if not holds] for each in others] == [[n] for n, _ in bad]
    assert all(each is not None for found in others for each in found)


@pytest.mark.parametrize(
    ("table", "changes", "words"),
    [
        (REBALANCES, {c.OUTCOME: "PERHAPS"}, "rebalances_outcome: got outcome : PERHAPS; expected outcome IN ("),
        (GROUP_SNAPSHOTS, {c.MEMBERS: -3}, "group_snapshots_counts: got members : -3, offset : 1; expected offset >="),
    ],
)
def test_delta_refuses_what_breaks_one_and_the_fault_names_it(spark, tmp_path, table, changes, words):
    location = LedgerLocation(path=str(tmp_path / "ledger"))
    create(spark, location, table)
    assert constraints(spark, location, table) == table.constraints
    frame = spark.createDataFrame([row(table), row(table, **changes)], table.schema)
    with (
        pytest.raises(Fault, match=f"table {table.name} breaks the constraint") as told,
        engine_errors_as_faults(location),
    ):
        append(location, table, frame.drop(c.ATTEMPT_ID), "attempt")
    assert told.value.code == "CONSTRAINT_BROKEN"
    assert words in told.value.message
    assert location.rows(spark, table).count() == 0
    append(location, table, frame.limit(1).drop(c.ATTEMPT_ID), "attempt")
    assert location.rows(spark, table).count() == 1
