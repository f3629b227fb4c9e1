"""What Spark cannot do, command by command: a line says what is wrong; never a trace, never exit code 1."""

from __future__ import annotations

import gzip

import pytest
from click.testing import CliRunner

from groupledger.cli import main
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
    cut, text = (folder / "metrics" / name for name in ("cut.jsonl.gz", "text.parquet"))
    yield [*ingesting("offsets-jsonl", cut), *at], f"{cut}: the file ends too early"
    yield [*ingesting("offsets-parquet", text), *at], f"{text} cannot be read: it is damaged, or not of this format"
    yield [*ingesting("offsets-jsonl", "s3a://bucket/log"), *at], "hadoop-aws:3.5.0 in spark.conf"
    yield ["init", "--set", "ledger.location=gs://bucket/ledger"], "hadoop-gcp:3.5.0 in spark.conf"
    yield ["init", "--set", "ledger.location=qqq://bucket/ledger"], "no file system that Spark knows"
    yield ["init", "--set", "ledger.location=/proc/nowhere"], "[LEDGER_UNWRITABLE]"
    yield ["init", "--set", f"ledger.location={folder}/file"], "[LEDGER_UNWRITABLE]"
    yield ["show", *at, "--cluster", "prd"], "no cluster 'prd'"


def also_wrong_for_spark(folder):
    at, given = (["--set", f"ledger.location={folder}/{name}"] for name in ("ledger", "metrics"))
    listening = ["rehearse", "g", "--listener", "tests.listener.checkpointing:Checkpointing"]
    cut, text = (folder / "metrics" / name for name in ("cut.jsonl.gz", "text.jsonl.gz"))
    yield [*ingesting("topics-jsonl", cut), *at], f"{cut}: the file ends too early"
    yield [*ingesting("offsets-jsonl", text), *at], f"{text}: it is no gzip file, though its name says so"
    yield [*ingesting("offsets-delta", folder / "metrics" / "runs"), *at], "[SOURCE_"
    yield [*ingesting("offsets-jsonl", folder / "nothing"), *at], "[SOURCE_MISSING]"
    yield ["show", *given], "[LEDGER_MISSING]"
    for listing in ("--findings", "--coverage", "--quarantine"):
        yield ["show", *at, listing, "--cluster", "prd"], "no cluster 'prd'"
    yield ["plan-migration", *at, "--group", "g", "--cluster", "prd"], "no cluster 'prd'"
    yield [*listening, *at, "--cluster", "prd"], "no cluster 'prd'"
    yield ["who", *at, "orders-7", "--at", "0", "--cluster", "prd"], "no cluster 'prd'"
    yield ["who", *at, "orders-7", "--at", "0", "--group", "paymnets"], "no group 'paymnets'"
    yield ["show", *at, "--findings", "--group", "paymnets"], "no group 'paymnets'"
    yield ["show", *at, "--group", "g", "--generation", "-1"], "no group 'g'"
    yield ["show", *at, "--group", "g", "--scenario", "recroded"], "no scenario 'recroded'"
    yield ["init", "--set", "ledger.location=abfss://c@account.dfs.core.windows.net/ledger"], "hadoop-azure:3.5.0"
    yield ["init", "--set", "ledger.location=hdfs://no-such-host.invalid/ledger"], "cannot be reached: no-such-host"
    yield ["maintain", "--set", "ledger.location=s3a://bucket/ledger"], "hadoop-aws:3.5.0"
    for command in ("init", "show"):
        yield [command, "--set", "ledger.location=null", "--set", "ledger.catalog=no_such_catalog.schema"], ""


def test_what_spark_cannot_do_is_a_line(new_ledger, sources, monkeypatch):
    new_ledger(sources / "ledger")
    monkeypatch.chdir(ROOT)
    for arguments, said in wrong_for_spark(sources):
        judged(arguments, CliRunner().invoke(main, arguments), said=said)


@pytest.mark.long
def test_what_spark_cannot_do_is_a_line_in_every_command(new_ledger, sources, monkeypatch):
    new_ledger(sources / "ledger")
    monkeypatch.chdir(ROOT)
    for arguments, said in also_wrong_for_spark(sources):
        judged(arguments, CliRunner().invoke(main, arguments), said=said)
