"""The doctor finds what is wrong, and nothing where all is well."""

import os
import re
import shutil
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from groupledger import tables
from groupledger.core.faults import Fault
from groupledger.pipeline import doctor as doctoring
from groupledger.pipeline import doctor as writing
from groupledger.pipeline.doctor import VERSIONS, doctor, environment, place, soundness
from groupledger.sinks import attempts
from groupledger.sinks.append import append
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import columns as c

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_versions_asked_for_are_those_of_the_project():
    project = tomllib.loads(PROJECT.read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["local"]]
    wanted = {re.split(r"[<>=]", text)[0]: text for text in asked} | {"python": "python" + project["requires-python"]}
    for name, (least, below) in VERSIONS.items():
        assert wanted[name] == f"{name}>={least}" + (f",<{below}" if below else "")


def test_here_everything_is_in_order():
    assert [check for check in environment(None) if not check.ok] == []


def test_what_is_missing_is_told_with_a_remedy(monkeypatch, tmp_path):
    def no_java():
        raise Fault("JAVA_MISSING", "no java on PATH")

    monkeypatch.setattr(doctoring, "java", no_java)
    monkeypatch.setitem(VERSIONS, "pandas", ("99", None))
    monkeypatch.setitem(VERSIONS, "no-such-package", ("1", None))
    wrong = {check.name: check for check in environment(tmp_path) if not check.ok}
    assert set(wrong) == {"java", "pandas", "no-such-package", "jars"}
    assert all(check.remedy for check in wrong.values())
    assert wrong["java"].detail == "no java on PATH"


def test_a_spark_that_does_not_fit_is_told_and_no_session_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr("groupledger.engine.jars.spark_version", lambda: "3.5.3")
    monkeypatch.setitem(doctoring._FOUND, "pyspark", lambda: "3.5.3")
    checks = doctor(lambda: pytest.fail("a session was started"), LedgerLocation(path=str(tmp_path)), None)
    wrong = {check.name: (check.detail, check.remedy) for check in checks if not check.ok}
    assert wrong["pyspark"] == ("3.5.3 (expected 4.0 or newer, below 4.3)", "pip install 'groupledger[local]'")
    assert wrong["jars"][0].startswith("this is pyspark 3.5.3; expected 4.0 or newer")


def test_without_java_no_session_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(doctoring, "environment", lambda _: iter([doctoring.Check("java", False, "none", "install")]))
    checks = doctor(lambda: pytest.fail("a session was started"), LedgerLocation(path=str(tmp_path)), None)
    assert [check.name for check in checks] == ["java", "rights", "disk"]


def test_rights_and_room(monkeypatch, tmp_path):
    location = LedgerLocation(path=str(tmp_path / "not" / "yet"))
    assert [(check.name, check.ok) for check in place(location)] == [("rights", True), ("disk", True)]
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(doctoring, "LEAST_FREE_BYTES", 2**80)
    assert [(check.name, check.ok) for check in place(location)] == [("rights", False), ("disk", False)]
    monkeypatch.undo()
    (tmp_path / "runs" / "_delta_log").mkdir(parents=True)
    closed = tmp_path / "runs" / "_delta_log"
    monkeypatch.setattr(os, "access", lambda path, _: path != closed)
    [rights, _] = place(LedgerLocation(path=str(tmp_path)))
    assert (rights.ok, rights.detail.split(" ")[0]) == (False, str(closed))
    [far] = place(LedgerLocation(path="s3://bucket/ledger"))
    assert far.ok


def snapshot(spark, offset, members):
    row = {
        c.SNAPSHOT_ID: f"log/dev/0/{offset}",
        c.CLUSTER_ID: "dev",
        c.SOURCE: "log",
        c.OFFSET: offset,
        c.GROUP_ID: "payments",
        c.GROUP_TYPE: "classic",
        c.INCARNATION: 0,
        c.SNAPSHOT_KIND: "generation",
        c.STATE: "Stable",
        c.COMPLETE: True,
        c.MEMBERS: members,
        c.OBSERVED_AT: MOMENT,
    }
    return frame(spark, tables.GROUP_SNAPSHOTS, [row])


def member(spark, offset):
    row = {c.SNAPSHOT_ID: f"log/dev/0/{offset}", c.CLUSTER_ID: "dev", c.GROUP_ID: "payments", c.OFFSET: offset}
    return frame(spark, tables.MEMBER_SNAPSHOTS, [row | {c.MEMBER_ORDER: 0, c.MEMBER_ID: "m"}])


def frame(spark, table, rows):
    data = [tuple(row.get(name) for name in table.columns if name != c.ATTEMPT_ID) for row in rows]
    return spark.createDataFrame(data, type(table.schema)(table.schema.fields[:-1]))


def commit(spark, location, name, since, counts):
    attempt = attempts.Attempt(name, name, "ingest", {}, "config", "code", MOMENT)
    attempts.commit(spark, location, attempt, since, attempts.Outcome({}, counts, "digest", "done", MOMENT))


@pytest.fixture(scope="module")
def sound(spark, new_ledger, tmp_path_factory):
    """One committed attempt of one snapshot, one that never committed."""
    location = new_ledger(tmp_path_factory.mktemp("doctor") / "sound")
    attempts.plan(spark, location, attempts.Attempt("dead", "dead", "ingest", {}, "config", "code", MOMENT))
    for name in ("good", "dead"):
        append(location, tables.GROUP_SNAPSHOTS, snapshot(spark, 7, 1), name)
        append(location, tables.MEMBER_SNAPSHOTS, member(spark, 7), name)
    commit(spark, location, "good", 0, {"group_snapshots": 1, "member_snapshots": 1, "late_groups": 9})
    return location


@pytest.mark.parametrize(
    ("path", "mounts", "said", "advised"),
    [
        (None, "overlay / overlay rw 0 0", "a local folder (overlay): writers take turns under a lock", False),
        (None, "server:/ / nfs4 rw 0 0", "a folder on nfs4: the lock that writers take may not reach", True),
        (None, None, "a local folder (unknown): writers take turns under a lock", False),
        ("s3a://bucket/ledger", None, "s3a with Delta's log store for one driver", True),
        ("gs://bucket/ledger", None, "gs: Delta creates each version of a table once only", False),
    ],
)
def test_the_doctor_says_whether_several_may_write(spark, tmp_path, monkeypatch, path, mounts, said, advised):
    monkeypatch.setattr(writing, "MOUNTS", tmp_path / "mounts")
    if mounts:
        (tmp_path / "mounts").write_text(mounts)
    check = doctoring.store(spark, LedgerLocation(path=path or str(tmp_path)))
    assert (check.ok, bool(check.remedy)) == (True, advised)
    assert check.detail.startswith(said)


def test_a_sound_ledger_has_no_complaint(spark, sound):
    checks = list(soundness(spark, sound))
    assert [check.name for check in checks if not check.ok] == []
    assert len(checks) == 6
    assert "1 attempts began and did not commit" in {check.name: check.detail for check in checks}["uncommitted rows"]


def rows_lost(spark, location):
    spark.sql(f"DELETE FROM {location.identifier(tables.MEMBER_SNAPSHOTS)} WHERE attempt_id = 'good'")
    return {"rows written", "members"}, "good member_snapshots 0 of 1"


def position_twice(spark, location):
    append(location, tables.GROUP_SNAPSHOTS, snapshot(spark, 7, 1), "again")
    commit(spark, location, "again", 1, {"group_snapshots": 1})
    return {"snapshots"}, "log/dev/0/7"


def strange_rows(spark, location):
    append(location, tables.MEMBER_SNAPSHOTS, member(spark, 8), "stranger")
    return {"uncommitted rows"}, "stranger in member_snapshots"


def run_twice(spark, location):
    spark.table(location.identifier(tables.RUNS)).where(F.col(c.STATUS) == "committed").writeTo(
        location.identifier(tables.RUNS)
    ).append()
    return {"commits"}, "4 commits, last number 2"


def table_gone(_, location):
    shutil.rmtree(Path(location.path, tables.COVERAGE.name))
    return {"tables"}, "no table coverage"


@pytest.mark.long
@pytest.mark.parametrize("harms", [(rows_lost, position_twice, strange_rows, run_twice), (table_gone,)])
def test_harm_is_found_and_named(spark, sound, tmp_path, harms):
    location = LedgerLocation(path=str(tmp_path / "ledger"))
    shutil.copytree(str(sound.path), tmp_path / "ledger")
    expected = [harm(spark, location) for harm in harms]
    wrong = {check.name: check for check in soundness(spark, location) if not check.ok}
    for names, words in expected:
        assert names <= set(wrong)
        assert any(words in wrong[name].detail for name in names)
    assert all(check.remedy for check in wrong.values())


class Conf:
    """The settings of a session."""

    def __init__(self, **told):
        self.conf, self._told = self, told

    def get(self, name, default=None):
        return self._told.get(name, default)


def test_the_faster_listing_of_s3a_is_warned_of():
    session: Any = Conf(**{"spark.hadoop.delta.enableFastS3AListFrom": "true"})
    check = doctoring.listing(session)
    assert (check.ok, check.remedy) == (False, "remove spark.hadoop.delta.enableFastS3AListFrom until Delta 4.4.1")
    other: Any = Conf(**{"delta.enableFastS3AListFrom": "false"})
    assert doctoring.listing(other).ok
