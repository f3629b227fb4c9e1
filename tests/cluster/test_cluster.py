"""The demonstration's job, unchanged, on more than one machine's worth of Spark: the same digests as on local[2]."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from groupledger.config.loading import sample_settings
from groupledger.core.arrays.kernels import kind
from groupledger.engine import jars
from groupledger.engine.session import DELTA
from tests.cluster import environments
from tests.cluster.standalone import cluster, connect_server, until

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
SUBMIT = Path(sys.executable).with_name("spark-submit")
COMMANDS = ("ingest", "assign")
NO_UI = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
TUNED = {"spark.databricks.delta.snapshotPartitions": "1", "spark.sql.shuffle.partitions": "2"}
QUIET = {"spark.log.level": "ERROR"}
ON_CLUSTER = DELTA | NO_UI | TUNED | {"spark.sql.session.timeZone": "UTC", "spark.executor.memory": "800m"}


@dataclass(frozen=True)
class Shipped:
    """How executors get at Python and groupledger."""

    python: Path  # with the wheel installed
    archive: Path  # an environment without
    zipped: Path
    installed: Path  # the wheel alone, for a driver


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shipped")
    python = environments.environment(folder / "environment")
    archive = environments.archive(folder / "environment", folder / "environment.tar.gz")
    wheel = environments.wheel(folder)
    environments.installed(environments.site_packages(folder / "environment"), wheel)
    environments.installed(folder / "driver", wheel)
    return Shipped(python, archive, environments.zipped(folder, wheel), folder / "driver")


def configuration(folder, spark):
    """The demonstration's settings with a ledger in `folder` and this session."""
    settings = {**sample_settings(), "ledger": {"location": str(folder / "ledger"), "shared": True}, "spark": spark}
    path = folder / "demo.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def told(*command, cwd=ROOT, **environment):
    """What a command says with --json."""
    return json.loads(printed(*command, cwd=cwd, **environment).splitlines()[-1])


def printed(*command, cwd, **environment):
    """What a command prints."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


def digests(run):
    """The digest and the counts of each command; `run(command)` runs one."""
    found = {command: run(command) for command in COMMANDS}
    return {command: (answer["result_digest"], answer["rows"]) for command, answer in found.items()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """On local[2], from the command."""
    folder = tmp_path_factory.mktemp("local")
    config = configuration(folder, {"profile": "local", "master": "local[2]"})
    groupledger = (sys.executable, "-m", "groupledger")
    told(*groupledger, "init", "--config", config, "--json")
    return digests(lambda command: told(*groupledger, command, "--config", config, "--json"))


def submitted(folder, master, *options, conf):
    """Digests of the job's commands, handed to a cluster by spark-submit."""
    config = configuration(folder, {"profile": "cluster"})
    settings = [part for name, value in {**ON_CLUSTER, **conf}.items() for part in ("--conf", f"{name}={value}")]
    submit = (SUBMIT, "--master", master, "--jars", jars.class_path("delta").replace(os.pathsep, ","), *options)

    def run(command):
        job = (ROOT / "jobs" / f"{command}.py", "--config", config, "--json")
        return told(*submit, *settings, *job, PATH=f"{SUBMIT.parent}{os.pathsep}{os.environ['PATH']}")

    told(sys.executable, "-m", "groupledger", "init", "--config", configuration(folder, {"profile": "small"}), "--json")
    configuration(folder, {"profile": "cluster"})
    return digests(run)


def test_a_cluster_whose_workers_have_the_wheel(tmp_path, shipped, expected):
    with cluster(tmp_path) as spark:
        own = {"spark.pyspark.python": shipped.python, "spark.pyspark.driver.python": sys.executable}
        assert submitted(tmp_path, spark.url, conf=own) == expected


def test_a_cluster_that_is_sent_a_zip_and_an_environment(tmp_path, shipped, expected):
    with cluster(tmp_path) as spark:
        shipping = ("--py-files", shipped.zipped, "--archives", f"{shipped.archive}#environment")
        own = {"spark.pyspark.python": "./environment/bin/python", "spark.pyspark.driver.python": sys.executable}
        assert submitted(tmp_path, spark.url, *shipping, conf=own) == expected


def from_an_empty_folder(folder, shipped, master, *options, conf):
    """Digests of the job's commands where only the wheel is installed: script, jars and kernels are what it prints."""
    (folder / "empty").mkdir()
    here = {"cwd": folder / "empty", "PYTHONPATH": shipped.installed}
    here |= {"PATH": f"{SUBMIT.parent}{os.pathsep}{os.environ['PATH']}"}
    groupledger = (sys.executable, "-m", "groupledger")
    job = Path(printed(*groupledger, "job-file", **here))
    assert job.is_relative_to(shipped.installed)
    settings = ON_CLUSTER | QUIET | conf | {"spark.pyspark.driver.python": sys.executable}
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submit = (SUBMIT, "--master", master, "--jars", printed(*groupledger, "jars", **here), *options, *given, job)
    config = configuration(folder, {"profile": "cluster"})

    def run(command):
        return told(*submit, command, "--config", config, "--json", **here)

    assert run("init")["made"]
    found = digests(run)
    assert run("maintain")["status"] == "done"
    return found


def test_the_wheel_alone_on_a_cluster_whose_executors_load_shipped_kernels(tmp_path, shipped, expected):
    """No executor can keep what it compiles in a home; it has to compile nothing."""
    kernels = printed(sys.executable, "-m", "groupledger", "kernels", cwd=tmp_path, PYTHONPATH=shipped.installed)
    (tmp_path / "scratch").mkdir()
    executor = {"XDG_CACHE_HOME": "/proc/nowhere", "TMPDIR": tmp_path / "scratch"}
    executor |= {"GROUPLEDGER_KERNEL_CACHE": "./kernels", "GROUPLEDGER_KERNELS": "numba"}
    own = {f"spark.executorEnv.{name}": value for name, value in executor.items()}
    own |= {"spark.pyspark.python": shipped.python}
    with cluster(tmp_path) as spark:
        archives = ("--archives", f"{kernels}#kernels")
        assert from_an_empty_folder(tmp_path, shipped, spark.url, *archives, conf=own) == expected
    unpacked = [*tmp_path.glob("worker-*/*/*/kernels/*"), *(tmp_path / "scratch").glob("groupledger-kernels-*/*")]
    assert {path.name for path in unpacked} == {kind(generic=True)}


def test_the_wheel_alone_on_one_machine(tmp_path, shipped, expected):
    own = {"spark.pyspark.python": sys.executable}
    assert from_an_empty_folder(tmp_path, shipped, "local[2]", conf=own) == expected


def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path, shipped, expected):
    """The first worker goes when its executor has begun to calculate in Python."""
    with cluster(tmp_path) as spark:
        killed = threading.Event()

        def kill():
            if until(spark.is_calculating, 300):
                spark.lose_a_worker()
                killed.set()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        own = {"spark.pyspark.python": shipped.python, "spark.pyspark.driver.python": sys.executable}
        assert submitted(tmp_path, spark.url, conf=own) == expected
        assert killed.is_set()


def test_through_spark_connect(tmp_path, shipped, expected):
    """The client starts no JVM: jobs run as they are, with SPARK_REMOTE."""
    options = ON_CLUSTER | {"spark.master": "local[2]", "spark.jars": jars.class_path("delta").replace(os.pathsep, ",")}
    with connect_server(tmp_path, options, shipped.python) as address:
        config = configuration(tmp_path, {"profile": "cluster"})
        job = (sys.executable, "-m", "groupledger")
        told(*job, "init", "--config", config, "--json", SPARK_REMOTE=address)
        found = digests(lambda command: told(*job, command, "--config", config, "--json", SPARK_REMOTE=address))
    assert found == expected
