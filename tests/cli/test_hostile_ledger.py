"""A ledger whose every name would steer a terminal, asked by every command that shows names."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from tests.answers.ledgers import COMMITTED, write
from tests.answers.rows import at
from tests.hostile_ids import HOSTILE_ID, RAW

NAME = HOSTILE_ID.replace("\ud800", "")  # a table holds UTF-8
PLACE = {"cluster_id": NAME, "group_id": NAME, "snapshot_id": NAME}
WIRE = [{"topic_id": None, "topic": NAME, "partitions": [0, 1]}]

QUESTIONS = [
    ["plan-migration", "--group", NAME, "--client", "java"],
    ["show"],
    ["show", "--findings"],
    ["show", "--coverage"],
    ["show", "--quarantine"],
    ["show", "--group", NAME],
    ["show", "--group", NAME, "--last"],
    ["show", "--partition", f"{NAME}-0", "--at", "2026-11-21T14:05Z"],
    ["show", "--group", f"{NAME}x"],
    ["show", "--cluster", f"{NAME}x"],
    ["show", "--partition", "other-0", "--at", "2026-11-21T14:05Z"],
    ["who", f"{NAME}-0"],
    ["who", f"{NAME}-0", "--wide"],
    ["who", f"{NAME}-0", "--group", f"{NAME}x*"],
    ["who", "--unowned-since"],
    ["timeline", NAME],
    ["timeline", NAME, "--wide"],
    ["timeline", f"{NAME}x"],
    ["timeline", "--partition", f"{NAME}-0"],
    ["show", "--group", NAME, "--generation", "99"],
    ["show", "--group", NAME, "--scenario", f"{NAME}x"],
    ["sql", "SELECT * FROM current_member_snapshots"],
]


def rows():
    """Of every table that is shown, one row full of such names."""
    snapshot = {"group_type": "classic", "protocol_type": "consumer", "snapshot_kind": "generation", "generation": 1}
    snapshot |= {
        "assignor": "range",
        "members": 1,
        "shared_topics": [NAME],
        "state": "Stable",
        "observed_at": at(1),
        "offset": 1,
    }
    member = {"member_id": NAME, "client_id": NAME, "host": NAME, "group_instance_id": NAME, "offset": 1}
    change = {"topic": NAME, "partition": 0, "to_member_id": NAME, "at": at(1), "offset": 1}
    finding = {"severity": "error", "code": "STALE_CLAIM", "member_id": NAME, "evidence": NAME}
    run = COMMITTED | {"run_id": NAME, "verdict": "done", "guards": [f"{NAME}/ingest"]}
    result = {"scenario": NAME, "round": 1, "assignor": NAME, "verdict": NAME}
    return {
        "group_snapshots": [PLACE | snapshot],
        "member_snapshots": [PLACE | member | {"subscribed_topics": [NAME], "recorded": WIRE}],
        "ownership_changes": [PLACE | change],
        "violations": [PLACE | finding],
        "coverage": [PLACE | {"kind": "generations-skipped", "reason": NAME}],
        "quarantine": [PLACE | {"stage": "decode", "code": "TRUNCATED", "message": NAME}],
        "rebalances": [PLACE | result],
        "topic_snapshots": [PLACE | {"topic": NAME, "topic_id": NAME, "partition_count": 3, "valid_from": at(0)}],
        "runs": [run],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("ledger"), **rows())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: ascii(" ".join(question))[:50])
def test_no_answer_steers_a_terminal_and_json_has_the_very_name(folder, question):
    steers_nothing([*question, "--ledger", folder])


def steers_nothing(question):
    shown = CliRunner().invoke(main, question)
    assert shown.exit_code != 1, shown.exception
    assert RAW.search(shown.output) is None, ascii(shown.output)
    asked = CliRunner().invoke(main, [*question, "--json"])
    assert RAW.search(asked.output) is None, ascii(asked.output)
    answer = json.loads(asked.stdout)
    if shown.exit_code in (0, 4):
        assert r"\x1b" in shown.stdout
        assert r"\u202e" in shown.stdout
        assert NAME in _texts(answer)


def _texts(value):
    """Every text in a JSON value."""
    if isinstance(value, dict):
        return {text for pair in value.items() for each in pair for text in _texts(each)}
    if isinstance(value, list):
        return {text for each in value for text in _texts(each)}
    return {value} if isinstance(value, str) else set()
