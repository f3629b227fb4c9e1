"""Files that workers write and commits take in: readers, writers and digests see what Spark would have written."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from groupledger.config import AssignSettings, Config, LedgerSettings, LimitSettings, SourceSettings
from groupledger.config.loading import CAPTURES
from groupledger.core.faults import Fault
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.bucket_rows import RESULTS
from groupledger.engine.envelope import (
    Envelope,
    FilesOfAttempt,
    as_table,
    columns_of,
    hash_sums,
    opened,
    sealed,
    write_file,
)
from groupledger.engine.fold_schema import FILLED
from groupledger.engine.recorded_groups import TABLES as CALL_TABLES
from groupledger.pipeline import enveloped
from groupledger.pipeline.assign import assign
from groupledger.pipeline.call_tables import keep_calls
from groupledger.sinks.append import Written, add_files, append, stored
from groupledger.sinks.attempts import read_commits
from groupledger.sinks.ledger_tables import LedgerLocation, folders_for_files
from groupledger.sinks.location import explained
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES
from groupledger.tables import columns as c
from tests.engine.test_row_hashes import rows_of
from tests.pipeline.ledgers import invocation
from tests.sinks.test_constraints import broken, row

SOURCES = [
    SourceSettings(kind=f"{name}-jsonl", path=str(CAPTURES / "edge" / f"{name}.jsonl.gz"))
    for name in ("offsets", "topics")
]
MOMENT = datetime(2026, 11, 25, microsecond=123_456, tzinfo=UTC)


@pytest.fixture(scope="module")
def place(new_ledger, tmp_path_factory):
    return new_ledger(tmp_path_factory.mktemp("files") / "a ledger")


def good_rows(table, number=300):
    """Rows that break no constraint."""
    rows = rows_of(table, number)
    numbers = [name for check in table.checks for rule in check.rules for name in rule.columns]
    for name in numbers:
        kind = rows.schema.field(name).type
        plain = pa.array(range(number), kind) if pa.types.is_integer(kind) else pa.repeat(_word(table, name), number)
        rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), plain)
    return rows


def _word(table, column):
    return next(rule.words[0] for check in table.checks for rule in check.rules if rule.column == column)


def folders(spark, place):
    found = folders_for_files(spark, place, FILLED)
    assert found is not None
    return found


def taken_in(spark, place, table, rows, attempt):
    """The rows in a file of the table, and what was said of them."""
    (one,) = sealed(table, rows, FilesOfAttempt(attempt, folders(spark, place)))
    assert one.file is not None
    add_files(spark, place, table, [one.file])
    return Written(table.name, one.rows, tuple(one.sums))


@pytest.mark.spark
@pytest.mark.parametrize("table", FILLED, ids=lambda table: table.name)
def test_readers_and_digests_see_the_rows_that_spark_would_have_written(spark, place, table):
    rows = good_rows(table)
    by_spark = append(place, table, spark.createDataFrame(rows), "by-spark", files=1)
    by_worker = taken_in(spark, place, table, rows, "by-worker")
    assert by_worker == by_spark
    assert stored(spark, place, table)["by-worker"] == by_spark
    columns = [F.to_json(F.struct(name)) for name in rows.column_names]
    found = place.rows(spark, table).groupBy(c.ATTEMPT_ID).agg(F.sort_array(F.collect_list(F.array(*columns))))
    one, other = (each[1] for each in found.collect())
    assert (len(one), one) == (len(rows), other)
    actions = DeltaTable(f"{place.path}/{table.name}").get_add_actions(flatten=True)
    files = pa.table(actions).to_pylist()
    told = {each["min.attempt_id"]: each for each in files}
    for name in told["by-worker"]:
        if name.split(".")[0] in ("num_records", "null_count", "min", "max") and not name.endswith(c.ATTEMPT_ID):
            mine, theirs = told["by-worker"][name], told["by-spark"][name]
            if isinstance(mine, str):  # Delta in Spark cuts what is longer than 32 units of UTF-16
                mine, theirs = mine[:16], theirs[:16]
            assert mine == theirs, name


def refused(table, changes, tmp_path):
    rows = pa.Table.from_pylist(
        [dict(zip(table.columns, row(table, **changes), strict=True))], arrow_schema(table.schema)
    )
    with pytest.raises(ValueError, match="constraint") as told:
        write_file(table, rows, FilesOfAttempt("a", {table.name: str(tmp_path)}))
    assert list(tmp_path.iterdir()) == []
    return told.value


BROKEN = [pytest.param(table, *each, id=each[0]) for table in FILLED for each in broken(table)]


@pytest.mark.parametrize(("table", "name", "changes"), BROKEN)
def test_a_row_that_breaks_a_constraint_is_in_no_file_and_the_fault_names_it(table, name, changes, tmp_path):
    fault = explained(refused(table, changes, tmp_path), LedgerLocation(path=str(tmp_path)))
    assert isinstance(fault, Fault)
    assert fault.code == "CONSTRAINT_BROKEN"
    assert f"breaks the constraint {name}: got " in fault.message


@pytest.mark.parametrize("table", FILLED, ids=lambda table: table.name)
def test_a_required_value_that_is_missing_is_refused(table, tmp_path):
    for field in columns_of(table):
        if not field.nullable:
            assert field.name in str(refused(table, {field.name: None}, tmp_path))


def test_bounds_of_times_are_in_milliseconds_and_none_lie_beyond_the_year_9999(tmp_path):
    rows = good_rows(OWNERSHIP_CHANGES, 2)
    field, bounds = rows.schema.field(c.AT), []
    first = pa.scalar(MOMENT, field.type).cast(pa.int64()).as_py()
    for moments in ([first, first + 1_000_000], [-1, 2**62]):
        times = pa.array(moments, pa.int64()).cast(field.type)
        some = rows.set_column(rows.column_names.index(c.AT), field, times)
        file = write_file(OWNERSHIP_CHANGES, some, FilesOfAttempt("a", {OWNERSHIP_CHANGES.name: str(tmp_path)}))
        told = json.loads(file.statistics)
        bounds.append((told["minValues"].get(c.AT), told["maxValues"].get(c.AT), told["nullCount"][c.AT]))
    assert bounds == [("2026-11-25T00:00:00.123Z", "2026-11-25T00:00:01.123Z", 0), (None, None, 0)]


@pytest.mark.spark
def test_rows_go_through_spark_where_its_rules_are_not_ours(spark, place, new_ledger, tmp_path):
    assert set(folders(spark, place)) == {table.name for table in FILLED}
    assert folders_for_files(spark, LedgerLocation(catalog="spark_catalog.none"), FILLED) is None
    assert folders_for_files(spark, LedgerLocation(path="s3a://bucket/ledger"), FILLED) is None
    assert folders_for_files(spark, LedgerLocation(path=str(tmp_path)), FILLED) is None
    other = new_ledger(tmp_path / "other")
    name = other.identifier(GROUP_SNAPSHOTS)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '7')")  # asks nothing of a writer
    assert folders_for_files(spark, other, FILLED) is not None
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT theirs CHECK (offset < 1000)")
    assert folders_for_files(spark, other, FILLED) is None
    spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT theirs")
    assert folders_for_files(spark, other, FILLED) is not None
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    assert folders_for_files(spark, other, FILLED) is None


@pytest.mark.spark
def test_rows_in_envelopes_come_out_as_they_went_in(spark, monkeypatch):
    monkeypatch.setattr("groupledger.engine.envelope.MOST_BYTES", 20_000)
    rows = rows_of(MEMBER_SNAPSHOTS)
    others = list(sealed(GROUP_SNAPSHOTS, rows_of(GROUP_SNAPSHOTS), None))
    envelopes = list(sealed(MEMBER_SNAPSHOTS, rows, None))
    assert len(envelopes) > 3
    assert sum(each.rows for each in envelopes) == len(rows)
    frame = spark.createDataFrame(as_table([*others, *envelopes]))
    found = opened(frame, MEMBER_SNAPSHOTS).toArrow().cast(rows.schema)
    assert hash_sums(MEMBER_SNAPSHOTS, found) == hash_sums(MEMBER_SNAPSHOTS, rows)
    assert as_table([]).num_rows == 0


def test_what_is_in_no_file_has_none():
    assert Envelope("coverage", 3, b"rows").file is None


@pytest.mark.long
@pytest.mark.spark
def test_a_ledger_is_the_same_whoever_writes_its_files(new_workspace, monkeypatch):
    """Counts, digests and all rows, of a captured log that is ingested, judged, and told in calls."""

    def filled(name):
        space = new_workspace(name)
        space.ingest(*SOURCES)
        limits = LimitSettings(max_partitions_per_group=8)
        config = Config(cluster_id="edge", ledger=LedgerSettings(location=str(space.location.path)), limits=limits)
        judged = replace(config, assign=AssignSettings(snapshots="every"))
        assign(space.spark, judged, invocation())
        keep_calls(space.spark, config, invocation(), 24)
        told = [
            (run.kind, run.counts_in, run.counts_out, run.result_digest, run.input_digest)
            for run in read_commits(space.spark, space.location).commits
        ]
        return told, {table.name: space.rows(table) for table in {*FILLED, *RESULTS, *CALL_TABLES}}

    by_workers = filled("workers")
    assert {"assignments", "rebalances", "violations", "quarantine", "callbacks", "metrics"} <= {
        name for name, rows in by_workers[1].items() if rows
    }
    monkeypatch.setattr(enveloped, "folders_for_files", lambda *_: None)
    assert filled("spark") == by_workers
