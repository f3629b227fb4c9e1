"""Making a ledger, and telling one from something else."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from groupledger.core.ledger_version import VERSION_PROPERTY
from groupledger.sinks.ledger_tables import LedgerFault, LedgerLocation, check, ddl, init
from groupledger.tables import QUARANTINE, RUNS, SCHEMA_VERSION, TABLES
from groupledger.tables.sql_text import literal, quoted

pytestmark = pytest.mark.spark

ODD_FOLDERS = [
    "plain",
    "with blank",
    "back`tick",
    "quote'd",
    "semi;colon--",
    "percent%20",
    "brace{}[]",
    "umlaut-\u00fc",
]


@pytest.fixture
def made(first_ledger):
    return first_ledger[0]


def test_a_second_init_makes_nothing(spark, first_ledger, made):
    assert first_ledger[1] == [table.name for table in TABLES]
    assert init(spark, made) == []
    check(spark, made, TABLES)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_second_reader_sees_every_table_as_it_is_declared(made, table):
    read = DeltaTable(f"{made.path}/{table.name}")
    protocol = read.protocol()
    assert (protocol.min_reader_version, protocol.reader_features) == (1, None)
    assert read.metadata().description == table.comment
    assert read.metadata().configuration[VERSION_PROPERTY] == str(SCHEMA_VERSION)
    comments = {field.name: field.metadata["comment"] for field in read.schema().fields}
    assert comments == {field.name: field.metadata["comment"] for field in table.schema}
    assert {field.name: field.nullable for field in read.schema().fields} == {f.name: f.nullable for f in table.schema}
    assert read.to_pyarrow_table().column_names == table.columns


def test_each_table_has_its_checkpoints_at_an_interval_of_its_own(made):
    intervals = {
        int(DeltaTable(f"{made.path}/{table.name}").metadata().configuration["delta.checkpointInterval"])
        for table in TABLES
    }
    assert len(intervals) == len(TABLES)


def test_layout_is_as_declared(spark, made):
    for table in TABLES:
        detail = spark.sql(f"DESCRIBE DETAIL {made.identifier(table)}").collect()[0]
        assert tuple(detail["clusteringColumns"]) == table.cluster_by
        assert tuple(detail["partitionColumns"]) == table.partition_by


@pytest.mark.long
def test_a_ledger_in_a_catalog(spark):
    location = LedgerLocation(catalog="spark_catalog.ledger_of_a_test")
    try:
        assert init(spark, location) == [table.name for table in TABLES]
        assert init(spark, location) == []
        assert location.rows(spark, QUARANTINE).columns == QUARANTINE.columns
    finally:
        spark.sql("DROP SCHEMA ledger_of_a_test CASCADE")


@pytest.mark.parametrize("folder", ODD_FOLDERS)
def test_no_character_of_a_path_is_taken_for_sql(spark, tmp_path, folder):
    location = LedgerLocation(path=str(tmp_path / folder))
    spark.sql(f"CREATE TABLE {location.identifier(RUNS)} (a INT) USING delta")
    assert [entry.name for entry in tmp_path.iterdir()] == [folder]
    assert location.rows(spark, RUNS).columns == ["a"]


def test_names_and_literals_are_quoted(spark):
    assert quoted("a`b") == "`a``b`"
    for text in ["it's", 'say "so"', "back\\slash", "\\' or 1=1 --", "new\nline", ":name", "{x}"]:
        assert spark.sql(f"SELECT {literal(text)} AS text").collect()[0][0] == text


@pytest.mark.parametrize("given", [{}, {"path": "a", "catalog": "b"}])
def test_a_ledger_is_at_one_place(given):
    with pytest.raises(LedgerFault, match="a path or in a catalog"):
        LedgerLocation(**given)


def test_no_ledger_is_told(spark, tmp_path):
    with pytest.raises(LedgerFault, match="groupledger ingest") as caught:
        check(spark, LedgerLocation(path=str(tmp_path)))
    assert caught.value.code == "LEDGER_MISSING"


def foreign_columns(spark, location):
    spark.sql(f"CREATE TABLE {location.identifier(RUNS)} (run_id STRING, attempt_id INT) USING delta")
    return "FOREIGN_TABLE", "property groupledger.schemaVersion is None"


def foreign_type(spark, location):
    spark.sql(
        f"CREATE TABLE {location.identifier(RUNS)} (run_id STRING, attempt_id INT) USING delta"
        f" TBLPROPERTIES ('{VERSION_PROPERTY}' = '{SCHEMA_VERSION}')"
    )
    return "FOREIGN_TABLE", "column attempt_id is int, expected string"


def newer(spark, location):
    return of_version(spark, location, SCHEMA_VERSION + 1, "LEDGER_NEWER")


def older(spark, location):
    return of_version(spark, location, SCHEMA_VERSION - 1, "LEDGER_OLDER")


def of_version(spark, location, version, code):
    properties = f"TBLPROPERTIES ('{VERSION_PROPERTY}' = '{version}')"
    spark.sql(f"CREATE TABLE {location.identifier(RUNS)} (a INT) USING delta {properties}")
    return code, f"has schema version {version}, this groupledger"


@pytest.mark.parametrize("make", [foreign_columns, foreign_type, newer, older])
def test_a_place_with_something_else_is_refused_and_left_alone(spark, tmp_path, make):
    location = LedgerLocation(path=str(tmp_path))
    code, words = make(spark, location)
    with pytest.raises(LedgerFault) as caught:
        init(spark, location)
    assert caught.value.code == code
    assert words in caught.value.message
    assert [entry.name for entry in tmp_path.iterdir()] == [RUNS.name]


def test_files_that_are_no_table_are_refused(spark, tmp_path):
    first = tmp_path / TABLES[0].name
    spark.range(3).write.parquet(str(first))
    before = sorted(first.iterdir())
    with pytest.raises(LedgerFault, match="choose another place") as caught:
        init(spark, LedgerLocation(path=str(tmp_path)))
    assert caught.value.code == "FOREIGN_TABLE"
    assert sorted(first.iterdir()) == before


@pytest.mark.long
def test_an_init_that_was_killed_is_completed(spark, tmp_path):
    location = LedgerLocation(path=str(tmp_path))
    spark.sql(ddl(location, TABLES[0]))
    half_made = tmp_path / TABLES[1].name / "_delta_log"
    half_made.mkdir(parents=True)
    with pytest.raises(LedgerFault, match="killed init"):
        init(spark, location)
    assert not (tmp_path / RUNS.name).exists(), "where runs stands, the others do"
    half_made.rmdir()
    made = init(spark, location)
    assert (TABLES[0].name in made, TABLES[1].name in made, made[-1]) == (False, True, RUNS.name)
    check(spark, location, TABLES)


def test_an_unreadable_log_is_no_missing_ledger(spark, tmp_path):
    log = Path(tmp_path, RUNS.name, "_delta_log")
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text(json.dumps({"protocol": {"minReaderVersion": 99}}))
    with pytest.raises(LedgerFault) as caught:
        check(spark, LedgerLocation(path=str(tmp_path)))
    assert caught.value.code == "LEDGER_UNREADABLE"
