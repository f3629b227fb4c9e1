"""Spark's own Kafka source beside confluent-kafka: the same ledger from a broker with login and TLS, and no secret."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from groupledger.sources.kafka_log import GROUP_PREFIX
from groupledger.tables import GROUP_HEADS, LOG_RECORDS, RUNS, TABLES, TOPIC_SNAPSHOTS
from tests.kafka.groups import SECONDS, ends, fill, groups
from tests.live.test_kafka_safety import login, secured, trust
from tests.pages import documented_reader

__all__ = ["secured"]

CONFIG = """\
ledger: {{location: {ledger}}}
sources:
  - kind: kafka
    bootstrap: {bootstrap}
    reader: {reader}
    max_records: {most}
spark:
  profile: small
  conf:
    spark.eventLog.enabled: "true"
    spark.eventLog.compress: "false"
    spark.eventLog.dir: "file:{events}"
"""
SAME = [table for table in TABLES if table not in (RUNS, TOPIC_SNAPSHOTS, GROUP_HEADS)]


@pytest.fixture
def ingest(secured, tmp_path):
    """Runs the command with a reader, and gives its exit code, its answer and its words."""
    broker, _ = secured
    options = tmp_path / "client.properties"
    options.write_text(login("reader", protocol="SASL_SSL") + trust(secured))
    (tmp_path / "events").mkdir()

    def run(reader: str, most: int | None = None) -> tuple[int, dict[str, Any], str]:
        file = tmp_path / f"{reader}.yaml"
        given = {"ledger": tmp_path / reader, "bootstrap": broker.addresses["BOTH"], "events": tmp_path / "events"}
        text = CONFIG.format(reader=reader, most="null" if most is None else most, **given)
        file.write_text(text)
        command = [sys.executable, "-m", "groupledger"]
        arguments = ["--config", str(file), "--set", f"sources.0.options={json.dumps(_options(options))}"]
        if not Path(given["ledger"]).exists():
            subprocess.run([*command, "init", *arguments], check=True, capture_output=True)
        found = subprocess.run([*command, "ingest", *arguments, "--json"], capture_output=True, text=True, check=False)
        return found.returncode, json.loads(found.stdout.splitlines()[-1]), found.stdout + found.stderr

    return run


def _options(file: Path) -> dict[str, str]:
    names = (
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.type",
        "ssl.truststore.location",
    )
    return {name: f"${{file:{file}:{name}}}" for name in names}


def _allow_groups(address):
    binding = AclBinding(
        *(ResourceType.GROUP, GROUP_PREFIX, ResourcePatternType.PREFIXED),
        *("User:reader", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW),
    )
    admin = AdminClient({"bootstrap.servers": address})
    for answer in admin.create_acls([binding]).values():
        answer.result(SECONDS)


def test_both_readers_give_the_same_ledger(secured, ingest, tmp_path):
    """Piece by piece, and not before the right on groups is there, which Java's consumer wants."""
    broker, _ = secured
    fill(broker.address, "committing", "orders", 3, 20)
    code, refused, said = ingest("spark")
    assert (code, refused["code"]) == (2, "KAFKA_NOT_ALLOWED"), said
    assert GROUP_PREFIX in said
    _allow_groups(broker.address)
    before = ends(broker.address), groups(broker.address)
    seen = [said]
    for reader, most in (("spark", 7), ("spark", None), ("confluent-kafka", None)):
        code, answer, said = ingest(reader, most)
        assert code == 0, said
        assert answer["status"] == "done"
        seen.append(said)
    assert (ends(broker.address), groups(broker.address)) == before
    for table in SAME:
        through_spark, through_the_client = (_rows(tmp_path / reader, table) for reader in ("spark", "confluent-kafka"))
        assert through_spark == through_the_client, table.name
    assert len(_rows(tmp_path / "spark", LOG_RECORDS)) >= 3
    written = b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "client." not in path.name
    )
    assert b"nobody-sees" not in written
    assert b"SparkListenerSQLExecutionStart" in written, "there are event logs to be searched"
    assert "nobody-sees" not in "".join(seen)


def _rows(ledger, table):
    """Spark's own source has no leader epochs."""
    found = documented_reader()(str(ledger), table.name).drop(columns=["attempt_id", "leader_epoch"], errors="ignore")
    return sorted(map(str, found.to_dict("records")))
