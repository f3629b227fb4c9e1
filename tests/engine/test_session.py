"""The session: what it is told before its JVM starts, and that it reads and writes Delta."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from groupledger.config import SparkSettings
from groupledger.core.faults import Fault
from groupledger.engine import jars
from groupledger.engine.session import CLASS_PATH, JAVA_OPTIONS, class_archive, cores, session, session_options

MASTERS = [
    ("local", 1),
    ("local[3]", 3),
    ("local[4,2]", 4),
    ("local[*]", os.cpu_count()),
    ("spark://a:7077", os.cpu_count()),
]


@pytest.mark.parametrize(("master", "count"), MASTERS)
def test_a_local_master_says_how_many_tasks_run_at_once(master, count):
    assert cores(master) == count


def test_a_local_session_is_told_everything_before_its_jvm_starts():
    options = session_options(SparkSettings(profile="local", master="local[3]", driver_memory="1g"), submitted=False)
    assert options["spark.master"] == "local[3]"
    assert options["spark.driver.memory"] == "1g"
    assert options["spark.sql.shuffle.partitions"] == "3"
    assert options["spark.sql.session.timeZone"] == "UTC"
    assert options[CLASS_PATH] == jars.class_path("delta")
    assert "TieredStopAtLevel" not in options[JAVA_OPTIONS]


def test_a_small_session_compiles_lightly_and_maps_the_archive_if_there_is_one():
    options = session_options(SparkSettings(profile="small"), submitted=False)
    assert "-XX:TieredStopAtLevel=1" in options[JAVA_OPTIONS]
    assert (str(class_archive()) in options[JAVA_OPTIONS]) == class_archive().is_file()


def test_the_users_settings_win_and_join_class_path_and_flags():
    theirs = {CLASS_PATH: "their.jar", JAVA_OPTIONS: "-Dtheirs", "spark.ui.enabled": "true"}
    options = session_options(SparkSettings(profile="local", conf=theirs), submitted=False)
    assert options["spark.ui.enabled"] == "true"
    assert options[CLASS_PATH].endswith(f"{os.pathsep}their.jar")
    assert options[CLASS_PATH].startswith(jars.class_path("delta"))
    assert options[JAVA_OPTIONS].endswith(" -Dtheirs")


def test_a_submitted_job_leaves_the_running_jvm_alone():
    options = session_options(SparkSettings(profile="local", conf={"spark.a": "b"}), submitted=True)
    assert not {CLASS_PATH, JAVA_OPTIONS, "spark.master", "spark.driver.memory"} & options.keys()
    assert options["spark.a"] == "b"


def test_on_a_cluster_nothing_but_the_users_settings_is_set():
    conf = {"spark.sql.session.timeZone": "UTC"}
    for submitted in (True, False):
        assert session_options(SparkSettings(profile="cluster", conf=conf), submitted=submitted) == conf


@pytest.mark.parametrize("remote", [True, False])
def test_a_client_of_spark_connect_starts_no_jvm(monkeypatch, tmp_path, remote):
    """The server's address is in the environment; the session is the builder's own."""

    class Builder:
        def appName(self, _):
            return self

        def config(self, *_):
            return self

        def getOrCreate(self):
            return "a session"

    started: list[bool] = []
    monkeypatch.setattr("groupledger.engine.session._start", lambda *_: started.append(True))
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", Builder())
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    if remote:
        monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere:15002")
    with (tmp_path / "said").open("wb") as said:
        found: object = session(SparkSettings(profile="small"), "a test", said)
    assert found == "a session"
    assert bool(started) is not remote


@pytest.mark.parametrize("profile", ["small", "local", "cluster"])
def test_a_spark_that_was_never_tried_is_refused_before_a_jvm_starts(monkeypatch, profile):
    monkeypatch.setattr(jars, "spark_version", lambda: "3.5.3")
    monkeypatch.setattr("groupledger.engine.session._start", lambda *_: pytest.fail("started a JVM"))
    with pytest.raises(Fault, match=r"this is pyspark 3\.5\.3; expected 4\.0 or newer, below 4\.3"):
        session(SparkSettings(profile=profile), "never")


def test_the_session_appends_to_a_delta_table_and_reads_it(spark, tmp_path):
    path = str(tmp_path / "table")
    for start in (0, 5):
        spark.range(start, start + 5).write.format("delta").mode("append").save(path)
    assert sorted(row.id for row in spark.read.format("delta").load(path).collect()) == list(range(10))
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert not Path("metastore_db").exists()


QUICK = ("--driver-memory", "1g", "--driver-java-options", "-XX:TieredStopAtLevel=1")
JOB = """
import sys
from groupledger.config import SparkSettings
from groupledger.core.faults import Fault
from groupledger.core.faults import Fault
from groupledger.engine.session import session
try:
    spark = session(SparkSettings(profile=sys.argv[1]), "submitted")
except Fault as fault:
    sys.exit(f"{fault.code}: {fault.message}")
spark.range(3).write.format("delta").save(sys.argv[2])
print("rows:", spark.read.format("delta").load(sys.argv[2]).count())
"""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    ("with_jars", "profile", "says"),
    [(True, "local", "rows: 3"), (False, "cluster", "DELTA_MISSING: this Spark has no Delta")],
)
def test_under_spark_submit_delta_comes_from_the_submitter(tmp_path, with_jars, profile, says):
    job = tmp_path / "job.py"
    job.write_text(JOB, encoding="ascii")
    given = ["--jars", ",".join(map(str, jars.ensure(["delta"])))] if with_jars else []
    submit = Path(sys.executable).with_name("spark-submit")
    ran = subprocess.run(
        [submit, "--master", "local[1]", *QUICK, *given, job, profile, tmp_path / "table"],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert says in ran.stdout + ran.stderr
    assert (ran.returncode == 0) == with_jars
