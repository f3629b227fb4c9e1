"""A cluster on the command line: what is said before Spark is started, and never a password."""

from __future__ import annotations

import json
import socket

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.core.faults import Fault
from groupledger.sources.kafka_log import Cluster

WORD = "a-password-nobody-sees"


@pytest.fixture(autouse=True)
def without_spark(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: pytest.fail("started Spark"))


@pytest.fixture
def closed():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def run(*arguments):
    ran = CliRunner().invoke(main, [*arguments, "--set", "sources.0.timeout_seconds=1"])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    assert WORD not in ran.output + ran.stderr
    assert len(ran.stderr.splitlines()) <= 1
    return ran


LOGIN = ("--kafka-option", "security.protocol=SASL_PLAINTEXT", "--kafka-option", "sasl.mechanism=PLAIN")
USER = ("--kafka-option", "sasl.username=u", "--kafka-option", f"sasl.password={WORD}")


@pytest.mark.parametrize("options", [(), (*LOGIN, *USER)], ids=["plain", "login"])
def test_nobody_is_there(closed, options):
    ran = run("ingest", "--bootstrap", closed, *options)
    assert ran.exit_code == 2
    assert f"no answer from {closed}" in ran.stderr
    assert "[KAFKA_UNREACHABLE]" in ran.stderr


def test_doctor_says_so_too(closed):
    ran = run("doctor", "--bootstrap", closed, "--json")
    assert ran.exit_code == 2
    (check,) = json.loads(ran.stdout)["checks"]
    assert (check["name"], check["ok"]) == ("cluster", False)
    assert check["detail"].endswith("Connection refused")
    assert check["remedy"] == "check the address, the port, the network, and the option security.protocol"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--kafka-option", "a=b"), "go with --bootstrap"),
        (("--bootstrap", "h:1", "--kafka-option", "a"), "expected NAME=VALUE"),
        (("--bootstrap", "h:1", "--command-config", "nowhere"), "nowhere, which cannot be read"),
        (("--bootstrap", "h:1", "--kafka-option", "group.id=mine"), "never joins a group"),
        (("--bootstrap", "h:1", "--kafka-option", "sasl.password=${env:NOT_SET_AT_ALL}"), "not set: NOT_SET_AT_ALL"),
        (("--bootstrap", "h:1", "--kafka-option", f"no.such.{WORD}=x"), "[KAFKA_OPTION]"),
        (("--bootstrap", ""), "not empty"),
    ],
)
def test_what_cannot_be_asked(arguments, says):
    ran = CliRunner().invoke(main, ["ingest", *arguments])
    assert ran.exit_code == 2
    assert says in ran.stderr


def test_options_come_from_a_file_and_the_line(tmp_path, monkeypatch):
    """The line wins; the configuration beside it keeps its other keys, and loses its sources and its cluster id."""
    (tmp_path / "client.properties").write_text(f"client.id=a\nsasl.password={WORD}\n")
    (tmp_path / "c.yaml").write_text("cluster_id: c\nledger: {location: l}\nbuckets: 7\nsources: []\n")
    asked = []

    def init(self, address, _):
        asked.append(address)
        raise Fault("ASKED", "that is all")

    monkeypatch.setattr(Cluster, "__init__", init)
    file = ("--command-config", "client.properties")
    CliRunner().invoke(
        main, ["ingest", "--bootstrap", "h:1", *file, "--kafka-option", "client.id=b", "--config", "c.yaml"]
    )
    (address,) = asked
    assert (address.bootstrap, address.options) == ("h:1", {"client.id": "b", "sasl.password": WORD})
