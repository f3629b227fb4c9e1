"""The rows of some attempts are read from the files that have them, and are those that Delta's reader finds."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from groupledger.sinks import append
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.sinks.location import plain_table, rows_in_files
from groupledger.tables import TOPIC_SNAPSHOTS
from groupledger.tables import columns as c
from tests.sinks.test_append import write
from tests.sinks.test_ledger import ODD_FOLDERS

pytestmark = pytest.mark.spark

LONG = "b" * 40
ATTEMPTS = ("a", LONG, f"{LONG}c", "\u00fc", "z")
"""Statistics of texts end after 32 signs."""
MOMENT = datetime(2026, 11, 21, tzinfo=UTC)


def filled(spark, location, attempts):
    """The table with rows of each attempt in a file of its own."""
    for attempt in attempts:
        row = {c.CLUSTER_ID: "dev", c.TOPIC: f"of {attempt}", c.PARTITION_COUNT: 3, c.VALID_FROM: MOMENT}
        write(spark, location, TOPIC_SNAPSHOTS, [row], attempt)
    return location


@pytest.fixture(scope="module")
def place(spark, new_ledger, tmp_path_factory):
    return filled(spark, new_ledger(tmp_path_factory.mktemp("files")), ATTEMPTS)


@pytest.fixture(scope="module")
def made(spark, new_ledger, tmp_path_factory):
    """`made(folder)`: a ledger there whose table has rows of two attempts; filled once, and copied."""
    two = filled(spark, new_ledger(tmp_path_factory.mktemp("two")), ("a", "z"))

    def copied(folder):
        shutil.copytree(two.path, folder, dirs_exist_ok=True)
        return LedgerLocation(path=str(folder))

    return copied


def of(rows, attempts):
    return sorted(tuple(row) for row in rows.collect() if row[c.ATTEMPT_ID] in attempts)


@pytest.mark.parametrize("attempts", [(each,) for each in ATTEMPTS] + [("a", "z"), ATTEMPTS, ("none", LONG)])
def test_the_rows_of_attempts_are_those_that_delta_finds(spark, place, attempts):
    rows = rows_in_files(spark, place.folder(spark, TOPIC_SNAPSHOTS), attempts)
    assert rows.columns == TOPIC_SNAPSHOTS.columns
    assert of(rows, attempts) == of(place.rows(spark, TOPIC_SNAPSHOTS), attempts)
    assert len(of(rows, attempts)) == len(set(attempts) & set(ATTEMPTS))


@pytest.mark.parametrize("attempts", [(), ("of nobody",)])
def test_attempts_without_rows_have_none(spark, place, attempts):
    rows = place.rows(spark, TOPIC_SNAPSHOTS, attempts)
    assert (rows.columns, rows.collect()) == (TOPIC_SNAPSHOTS.columns, [])
    assert [field.dataType for field in rows.schema] == [field.dataType for field in TOPIC_SNAPSHOTS.schema]


def test_files_of_other_attempts_are_not_opened(spark, made, tmp_path):
    place = made(tmp_path)
    mine = rows_in_files(spark, place.folder(spark, TOPIC_SNAPSHOTS), ["z"])
    names = {Path(name).name for name in mine.inputFiles()}
    for file in Path(tmp_path, TOPIC_SNAPSHOTS.name).glob("*.parquet"):
        if file.name not in names:
            file.unlink()
    assert len(of(place.rows(spark, TOPIC_SNAPSHOTS, ["z"]), "z")) == 1


@pytest.mark.parametrize("folder", [*ODD_FOLDERS, "day=1"])
def test_a_folder_may_have_any_name(spark, made, tmp_path, folder):
    place = made(tmp_path / folder)
    rows = place.rows(spark, TOPIC_SNAPSHOTS, ["a", "z"])
    assert rows.columns == TOPIC_SNAPSHOTS.columns, "a folder's name is no column"
    assert len(of(rows, "az")) == 2


def test_rows_that_were_gathered_are_found(spark, made, tmp_path):
    place = made(tmp_path)
    append.run(spark, place, TOPIC_SNAPSHOTS, f"OPTIMIZE {place.identifier(TOPIC_SNAPSHOTS)}")
    rows = rows_in_files(spark, place.folder(spark, TOPIC_SNAPSHOTS), ["z"])
    assert len(rows.inputFiles()) == 1
    assert len(of(rows, "z")) == 1


def test_a_log_with_an_empty_entry_is_left_to_delta_s_reader(spark, made, tmp_path):
    """delta-rs would pass over it, and its rows with it."""
    place = made(tmp_path)
    folder = place.folder(spark, TOPIC_SNAPSHOTS)
    assert plain_table(folder) is not None
    (folder / "_delta_log" / f"{1:020}.json").write_bytes(b"")
    assert (plain_table(folder), rows_in_files(spark, folder, ["a"])) == (None, None)


def test_entries_before_the_last_checkpoint_are_not_looked_at(spark, made, tmp_path):
    place = made(tmp_path)
    folder = place.folder(spark, TOPIC_SNAPSHOTS)
    DeltaTable(str(folder)).create_checkpoint()
    (folder / "_delta_log" / f"{1:020}.json").write_bytes(b"")
    assert len(of(rows_in_files(spark, folder, ["a"]), "a")) == 1
    (folder / "_delta_log" / f"{3:020}.json").write_bytes(b"")
    assert plain_table(folder) is None
    (folder / "_delta_log" / "_last_checkpoint").write_text("none")
    (folder / "_delta_log" / f"{3:020}.json").unlink()
    assert plain_table(folder) is None  # that of before is one that may be read


def test_a_file_that_is_gone_is_told_by_delta_s_reader(spark, made, tmp_path):
    place = made(tmp_path)
    folder = place.folder(spark, TOPIC_SNAPSHOTS)
    for file in folder.glob("*.parquet"):
        file.unlink()
    assert rows_in_files(spark, folder, ["a"]) is None


def test_rows_that_were_deleted_by_a_vector_do_not_come_back(spark, made, tmp_path):
    place = made(tmp_path)
    name = place.identifier(TOPIC_SNAPSHOTS)
    append.run(spark, place, TOPIC_SNAPSHOTS, f"OPTIMIZE {name}")
    vectors = "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    append.run(spark, place, TOPIC_SNAPSHOTS, f"ALTER TABLE {name} {vectors}")
    append.run(spark, place, TOPIC_SNAPSHOTS, f"DELETE FROM {name} WHERE {c.ATTEMPT_ID} = 'z'")
    assert rows_in_files(spark, place.folder(spark, TOPIC_SNAPSHOTS), ["z"]) is None
    rows = place.rows(spark, TOPIC_SNAPSHOTS, ["a", "z"]).select(c.ATTEMPT_ID).collect()
    assert [row[0] for row in rows] == ["a"]
