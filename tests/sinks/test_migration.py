"""A ledger that version 1 made: refused with the command that brings it forward, then as good as one made today."""

import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from groupledger import tables
from groupledger.pipeline.doctor import soundness
from groupledger.sinks import attempts
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerFault, LedgerLocation, check, init, migrate
from groupledger.tables import RUNS, SCHEMA_VERSION, TABLES

pytestmark = pytest.mark.spark

KNOWN = {
    **{"topic_snapshots": 3, "log_records": 38, "group_snapshots": 38, "member_snapshots": 72, "group_heads": 1},
    **{"ownership_changes": 61, "violations": 90, "rebalances": 38, "assignments": 72, "callbacks": 288, "metrics": 56},
}
"""Rows that count, as the code of version 1 said when it wrote them."""

VERSION_1 = Path(__file__).parents[1] / "data" / "ledgers" / "version-1.tar.xz"


@pytest.fixture
def old(tmp_path):
    """Ingest, assign and callbacks of the capture `storm`, by the code of version 1."""
    with tarfile.open(VERSION_1) as archive:
        archive.extractall(tmp_path, filter="data")
    return LedgerLocation(path=str(tmp_path / "ledger"))


def rows(spark, location):
    return {table.name: current(spark, location, table).count() for table in TABLES if table is not RUNS}


def squeezed(configuration):
    """Delta puts spaces into the text of a constraint that is added to a table."""
    return {name: "".join(text.split()) for name, text in configuration.items()}


@pytest.mark.long
def test_it_is_refused_then_brought_forward(spark, old, tmp_path):
    with pytest.raises(LedgerFault, match=r"schema version 1, .*`groupledger migrate` brings it forward") as told:
        check(spark, old)
    assert told.value.code == "LEDGER_OLDER"
    moved = migrate(spark, old)
    assert moved["runs"] == 1
    assert set(moved) == {table.name for table in TABLES}
    check(spark, old, TABLES)
    assert {name: count for name, count in rows(spark, old).items() if count} == KNOWN
    assert [each for each in soundness(spark, old) if not each.ok] == []
    assert migrate(spark, old) == {}

    now = datetime(2026, 11, 22, tzinfo=UTC)
    attempt = attempts.Attempt("new", "new", "ingest", {}, "config", "code", now)
    run = attempts.commit(
        spark, old, attempt, 3, attempts.Outcome({}, {}, "digest", "done", now, removed={"quarantine": ["a"]})
    )
    assert run.sequence == 4
    assert attempts.read_commits(spark, old).removed == {"quarantine": {"a"}}
    made = LedgerLocation(path=str(tmp_path / "made"))
    init(spark, made)
    for table in TABLES:
        theirs, ours = (DeltaTable(f"{place.path}/{table.name}") for place in (old, made))
        assert {f.name: f.type for f in theirs.schema().fields} == {f.name: f.type for f in ours.schema().fields}
        assert squeezed(theirs.metadata().configuration) == squeezed(ours.metadata().configuration)
        layouts = [spark.sql(f"DESCRIBE DETAIL {place.identifier(table)}").collect()[0] for place in (old, made)]
        assert len({tuple(each["clusteringColumns"]) for each in layouts}) == 1


def test_no_ledger_and_a_newer_one_are_refused(spark, tmp_path):
    place = LedgerLocation(path=str(tmp_path / "nowhere"))
    with pytest.raises(LedgerFault, match="groupledger ingest"):
        migrate(spark, place)
    newer = f"TBLPROPERTIES ('groupledger.schemaVersion' = '{SCHEMA_VERSION + 1}')"
    spark.sql(f"CREATE TABLE {place.identifier(tables.COVERAGE)} (a INT) USING delta {newer}")
    with pytest.raises(LedgerFault, match=f"use a groupledger that knows version {SCHEMA_VERSION + 1}") as told:
        migrate(spark, place)
    assert told.value.code == "LEDGER_NEWER"
