"""A ledger on S3 (a server of moto), read by delta-rs: the answers of the folder, and the rows that Spark reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import groupledger as gl
from groupledger.answers.queries import records
from groupledger.answers.reader import LedgerReader
from groupledger.pipeline.frames import SparkReader
from groupledger.sinks.ledger_tables import LedgerLocation
from tests.docs.demo_ledger import unpack
from tests.live.broker import free_port

pytestmark = pytest.mark.live
SERVER = Path(__file__).parents[2] / ".venv-s3" / "bin" / "moto_server"
BUCKET, KEY, SECRET = "lake", "AKIAEXAMPLE", "an-example-of-a-secret"
QUESTIONS = (
    ("who", "orders-4", "--at", "2026-11-21T12:09Z", "--cluster", "dev"),
    ("show",),
    ("explain", "java-cooperative-sticky", "--cluster", "dev", "--generation", "4"),
    ("timeline", "java-cooperative-sticky", "--cluster", "dev"),
    ("audit",),
    ("report", "storms"),
    ("readiness",),
    ("sql", "SELECT verdict, count(*) AS n FROM current_rebalances GROUP BY 1 ORDER BY 2, 1"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("ledger"))


@pytest.fixture(scope="module")
def store(folder):
    """The address of an S3 server that has the ledger in a bucket."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [str(SERVER), "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(address, server)
            put(f"{address}/{BUCKET}", b"")
            for path in filter(os.path.isfile, sorted(folder.rglob("*"))):
                put(f"{address}/{BUCKET}/ledger/{path.relative_to(folder)}", path.read_bytes())
            yield address
        finally:
            server.terminate()


def put(url, content):
    """An object, or a bucket: this server asks nobody who writes to it for a signature."""
    request = urllib.request.Request(url, content, {"Content-Type": "application/octet-stream"}, method="PUT")  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        assert answer.status == 200


def wait_for(address, server):
    for _ in range(300):
        assert server.poll() is None
        try:
            urllib.request.urlopen(address, timeout=1).close()  # noqa: S310 - an address of this test's own
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    pytest.fail("the S3 server did not start within 30 s")


@pytest.fixture
def config(store, tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", SECRET)
    host = store.removeprefix("http://")
    settings = {
        "endpoint": host,
        "connection.ssl.enabled": "false",
        "path.style.access": "true",
        "access.key": KEY,
        "secret.key": "${env:A_SECRET}",
    }
    written = {
        "cluster_id": "local",
        "ledger": {"location": f"s3a://{BUCKET}/ledger"},
        "spark": {"conf": {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}},
    }
    path = tmp_path / "groupledger.yaml"
    path.write_text(json.dumps(written))
    return path


def told(*arguments, env=None):
    command = [sys.executable, "-m", "groupledger", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def complaints(ran):
    """What it says on stderr, but for the stages of one that takes long."""
    return [line for line in ran.stderr.splitlines() if not line.endswith(" ...")]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: " ".join(question[:2]))
def test_an_answer_is_that_of_the_folder_and_starts_no_jvm(config, folder, question, tmp_path):
    no_java = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    found = told(*question, "--config", str(config), "--json", env=no_java)
    expected = told(*question, "--ledger", str(folder), "--json")
    assert found.returncode == expected.returncode
    assert complaints(found) == complaints(expected)
    assert json.loads(found.stdout) == json.loads(expected.stdout)


def test_metrics_and_pages_are_those_of_the_folder(config, folder, tmp_path):
    assert told("openmetrics", "--config", str(config)).stdout == told("openmetrics", "--ledger", str(folder)).stdout
    made = told("report", "html", str(tmp_path / "pages"), "--group", "java-range", "--config", str(config))
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "pages" / "index.html").stat().st_size > 10_000


def test_rows_of_every_view_are_those_that_spark_reads(store, folder, spark):
    options = {"aws_endpoint": store, "aws_allow_http": "true", "aws_access_key_id": KEY}
    options |= {"aws_secret_access_key": SECRET, "aws_region": "us-east-1"}
    stored = gl.open(f"s3a://{BUCKET}/ledger", storage_options=options).reader
    by_spark = SparkReader(spark, LedgerLocation(path=str(folder)))
    assert isinstance(stored, LedgerReader)
    for name in ("current_runs", "current_group_snapshots", "current_ownership_changes"):
        query = f"SELECT count(*) AS n FROM {name}"
        assert records(stored, query) == records(by_spark, query), name
    query = "SELECT snapshot_id, verdict, moves, least_moves FROM current_rebalances ORDER BY 1, scenario, round"
    assert records(stored, query) == records(by_spark, query)


def test_a_wrong_key_or_bucket_is_one_line(config):
    text = config.read_text()
    config.write_text(text.replace(f"s3a://{BUCKET}/", "s3a://nowhere/"))
    found = told("show", "--config", str(config))
    assert found.returncode == 2
    assert "NoSuchBucket" in found.stderr
    assert SECRET not in found.stderr
    config.write_text(text.replace("/ledger", "/elsewhere"))
    found = told("show", "--config", str(config))
    assert (found.returncode, found.stderr.splitlines()[0][-16:]) == (2, "[LEDGER_MISSING]")
