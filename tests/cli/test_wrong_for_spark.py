"""What Spark cannot do, command by command: a line says what is wrong; never a trace, never exit code 1."""

from __future__ import annotations

import gzip

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.sinks.ledger import LedgerLocation, init
from tests.cli.test_wrong_inputs import ROOT, judged

RECORD = '{"partition": 0, "offset": 2, "timestamp": 1795262904784, "key": "AAIAC2phdmEtc3RpY2t5", "value": null}'


@pytest.fixture
def sources(tmp_path):
    """Files that cannot be read, in folders that have the names of tables."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    whole = gzip.compress(f"{RECORD}\n".encode() * 5000)
    (folder / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "text.jsonl.gz").write_text(RECORD)
    (folder / "text.parquet").write_text(RECORD * 20)
    (folder / "runs").mkdir()
    (folder / "runs" / "part.txt").write_text("none")
    (tmp_path / "file").write_text("a file")
    return tmp_path


def ingesting(kind, path):
    return ["ingest", "--set", "cluster_id=edge", "--set", f"sources=[{{kind: {kind}, path: '{path}'}}]"]


def wrong_for_spark(folder):
    """(arguments, what is said)"""
    at = ["--set", f"ledger.location={folder}/ledger"]
    nowhere = ["--set", f"ledger.location={folder}/nowhere"]
    given = folder / "metrics"
    yield [*ingesting("offsets-jsonl", given / "cut.jsonl.gz"), *at], "cut.jsonl.gz cannot be read: its compressed data"
    yield [*ingesting("topics-jsonl", given / "cut.jsonl.gz"), *at], "cut.jsonl.gz cannot be read: its compressed data"
    yield [*ingesting("offsets-jsonl", given / "text.jsonl.gz"), *at], "text.jsonl.gz cannot be read"
    yield [*ingesting("offsets-parquet", given / "text.parquet"), *at], "[SOURCE_UNREADABLE]"
    yield [*ingesting("offsets-delta", given / "runs"), *at], "[SOURCE_"
    yield [*ingesting("offsets-jsonl", folder / "nothing"), *at], "[SOURCE_MISSING]"
    yield [*ingesting("offsets-jsonl", "s3a://bucket/log"), *at], "name org.apache.hadoop:hadoop-aws in spark.conf"
    yield ["init", "--set", "ledger.location=s3a://bucket/ledger"], "hadoop-aws"
    yield ["init", "--set", "ledger.location=gs://bucket/ledger"], "gcs-connector"
    yield ["init", "--set", "ledger.location=qqq://bucket/ledger"], "no file system that Spark knows"
    yield ["init", "--set", "ledger.location=/proc/nowhere"], "ledger"
    yield ["init", "--set", f"ledger.location={folder}/file"], "ledger"
    yield ["show", *nowhere], "[LEDGER_MISSING]"
    yield ["show", *at, "--cluster", "prd"], "no cluster 'prd'"
    yield ["show", *at, "--findings", "--group", "paymnets"], "no group 'paymnets'"
    yield ["show", *at, "--partition", "orders-7", "--at", "0", "--cluster", "prd"], "no cluster 'prd'"
    yield ["show", *at, "--group", "g", "--scenario", "recroded"], "no scenario 'recroded'"


def also_wrong_for_spark(folder):
    nowhere = ["--set", f"ledger.location={folder}/nowhere"]
    at = ["--set", f"ledger.location={folder}/ledger"]
    yield from (
        [name, *nowhere] for name in ("ingest", "assign", "callbacks", "maintain", "migrate", "rebuild", "doctor")
    )
    yield ["replay", *nowhere, "--group", "g", "--listener", "tests.listener.checkpointing:Checkpointing"]
    yield ["plan-migration", *nowhere, "--group", "g"]
    yield ["plan-migration", *at, "--group", "g", "--cluster", "prd"]
    yield [
        "replay",
        *at,
        "--group",
        "g",
        "--cluster",
        "prd",
        "--listener",
        "tests.listener.checkpointing:Checkpointing",
    ]
    yield from (["show", *at, listing, "--cluster", "prd"] for listing in ("--findings", "--coverage", "--quarantine"))
    yield ["show", *at, "--partition", "orders-7", "--at", "0", "--group", "paymnets"]
    yield ["show", *at, "--group", "g", "--generation", "-1"]
    yield ["init", "--set", "ledger.location=abfss://c@account.dfs.core.windows.net/ledger"]
    yield ["init", "--set", "ledger.location=hdfs://no-such-host.invalid/ledger"]
    yield ["init", "--set", "ledger.catalog=no_such_catalog.schema"]
    yield ["show", "--set", "ledger.catalog=no_such_schema"]
    yield ["show", "--set", f"ledger.location={folder}/metrics"]
    yield ["maintain", "--set", "ledger.location=s3a://bucket/ledger"]


def test_what_spark_cannot_do_is_a_line(spark, sources, monkeypatch):
    init(spark, LedgerLocation(path=str(sources / "ledger")))
    monkeypatch.chdir(ROOT)
    for arguments, said in wrong_for_spark(sources):
        judged(arguments, CliRunner().invoke(main, arguments), said=said)


@pytest.mark.long
def test_what_spark_cannot_do_is_a_line_in_every_command(spark, sources, monkeypatch):
    init(spark, LedgerLocation(path=str(sources / "ledger")))
    monkeypatch.chdir(ROOT)
    for arguments in also_wrong_for_spark(sources):
        ran = CliRunner().invoke(main, arguments)
        if arguments[0] != "doctor":  # it prints its checks
            judged(arguments, ran)
