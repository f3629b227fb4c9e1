"""When erasure is complete: no byte under the ledger's folder holds a name, whatever file it would be in."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow.lib import ArrowInvalid

from groupledger import tables
from groupledger.config import AssignSettings, Config, LedgerSettings, MaintainSettings
from groupledger.engine.renaming import MARK
from groupledger.pipeline.assign import assign
from groupledger.pipeline.call_tables import keep_calls
from groupledger.pipeline.doctor import digest_checks
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import MaintainSummary, maintain
from groupledger.pipeline.rebuild import rebuild
from groupledger.tables import columns as c
from tests.pipeline.ledgers import Workspace, invocation
from tests.pipeline.test_ingest import LINES, TOPICS

NAMES = (c.MEMBER_ID, c.GROUP_INSTANCE_ID, c.CLIENT_ID, c.HOST)
REBUILT = datetime(2026, 11, 21, tzinfo=UTC)
"""The moment of every rebuild of the tests."""
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def config_of(space: Workspace, hours: int = 0) -> Config:
    place = LedgerSettings(location=space.location.path)
    assigned = AssignSettings(snapshots="every")
    return Config(
        cluster_id="edge", ledger=place, buckets=2, assign=assigned, maintain=MaintainSettings(vacuum_hours=hours)
    )


def kept_up(
    space: Workspace, later: int, hours: int = 168, of: Sequence[tables.Table] = tables.TABLES, *, redact: bool = False
) -> MaintainSummary:
    """A maintain so many hours after the rebuild."""
    moment = REBUILT + timedelta(hours=later)
    called = Invocation(attempt_id=f"keeper-{later}", now=lambda: moment, seconds=lambda: 0.0)
    return maintain(space.spark, space.location, config_of(space, hours), called, of, redact=redact)


def torn(space: Workspace, table: tables.Table) -> None:
    folder = Path(str(space.location.path), table.name)
    file = min(folder / Path(uri).name for uri in DeltaTable(str(folder)).file_uris())
    file.write_bytes(file.read_bytes()[:-9])


def names_of(space: Workspace) -> set[str]:
    found = DeltaTable(f"{space.location.path}/member_snapshots").to_pandas()
    named = {str(name) for column in NAMES for name in found[column].dropna()}
    return {name for name in named if len(name) > 3}


def forms(name: str) -> Iterator[bytes]:
    """The name as the tables' files may hold it."""
    text = name.encode()
    yield from (text, name.encode("utf-16-le"), text.hex().encode(), text.hex().upper().encode())
    for shift in range(3):  # in base64, at each place it can have in what is encoded
        cut = base64.b64encode(b"\0" * shift + text).rstrip(b"=")
        yield cut[2 + shift : -2] if shift else cut[:-2]


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file as it is; of Parquet files every cell as text besides, since pages are compressed."""
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        yield file, file.read_bytes()
        yield file, str(file.relative_to(folder)).encode()
        if file.suffix == ".parquet":
            try:
                read = pq.ParquetFile(file)
            except (OSError, ArrowInvalid):  # torn by the test
                continue
            for row in read.read().to_pylist():
                yield file, repr(row).encode()


def found_in(folder: Path, names: set[str]) -> dict[str, str]:
    """By name, the first file that holds it in any form."""
    by_form = {form: name for name in names for form in forms(name) if len(form) > 5}
    found: dict[str, str] = {}
    for file, content in contents(folder):
        for form, name in by_form.items():
            if name not in found and form in content:
                found[name] = str(file.relative_to(folder))
    return found


@pytest.mark.long
def test_no_byte_of_the_folder_holds_a_name_once_erasure_is_complete(spark, workspace, monkeypatch):
    workspace.ingest(TOPICS, workspace.source("log.jsonl", LINES[:160]), run_id="nightly")
    assign(spark, config_of(workspace), invocation())
    keep_calls(spark, config_of(workspace), invocation(), 24)
    was, folder = names_of(workspace), Path(str(workspace.location.path))
    assert len(was) > 10
    for table in (tables.MEMBER_SNAPSHOTS, tables.ASSIGNMENTS):
        torn(workspace, table)
    moved = rebuild(spark, workspace.location, config_of(workspace), invocation()).set_aside
    assert set(moved) == {"member_snapshots", "assignments"}
    assert digest_checks(spark, workspace.location).ok, "what was made again is what was written"
    assert found_in(folder, was).keys() == was, "all are found while they are there"

    old = spark.conf.get(CHECK, None)
    spark.conf.set(CHECK, "false")
    try:
        young = kept_up(workspace, 1, of=(tables.MEMBER_SNAPSHOTS, tables.ASSIGNMENTS))
        assert [bool(each.kept) for each in young.set_aside] == [True, True]
        assert all(Path(each).is_dir() for each in moved.values())
        done = kept_up(workspace, 2, 0, redact=True)
        assert {(each.folder, each.kept) for each in done.set_aside} == {(folder, "") for folder in moved.values()}
        kept_up(workspace, 3, 0)
    finally:
        spark.conf.unset(CHECK) if old is None else spark.conf.set(CHECK, old)
    assert not any(Path(each).exists() for each in moved.values())
    assert found_in(folder, {name for name in was if not name.startswith(MARK)}) == {}
    assert digest_checks(spark, workspace.location).ok, "what a redaction rewrote is no damage"


@pytest.mark.long
def test_a_folder_moved_aside_goes_once_it_is_old_and_never_while_its_table_lacks_rows(spark, workspace):
    workspace.ingest(TOPICS, workspace.source("log.jsonl", LINES[:80]), run_id="nightly")
    torn(workspace, tables.OWNERSHIP_CHANGES)
    [moved] = rebuild(spark, workspace.location, config_of(workspace), invocation()).set_aside.values()
    young = kept_up(workspace, 100, of=(tables.OWNERSHIP_CHANGES,))
    assert ["stays for 168 hours" in each.kept for each in young.set_aside] == [True]
    version = DeltaTable(f"{workspace.location.path}/ownership_changes").version()
    name = workspace.location.identifier(tables.OWNERSHIP_CHANGES)
    spark.sql(f"DELETE FROM {name} WHERE offset % 2 = 0")
    short = kept_up(workspace, 200, of=(tables.OWNERSHIP_CHANGES,))
    assert ["lacks rows" in each.kept for each in short.set_aside] == [True]
    assert Path(moved).is_dir()
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {version}")
    assert [each.kept for each in kept_up(workspace, 201, of=(tables.OWNERSHIP_CHANGES,)).set_aside] == [""]
    assert not Path(moved).is_dir()
