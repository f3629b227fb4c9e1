"""A group of which every record was rejected: whatever is asked of it, the answer names the quarantine."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write

REJECTED = {"stage": "decode", "cluster_id": "dev", "group_id": "proxy", "log_partition": 3, "source": "log"}
REJECTED |= {"code": "TRUNCATED", "message": "2 bytes left"}
ASKED = [
    ["show", "--group", "proxy"],
    ["show", "--group", "proxy", "--last"],
    ["show", "--findings", "--group", "proxy"],
    ["explain", "proxy"],
    ["timeline", "proxy"],
    ["diff", "proxy", "--from", "1"],
    ["hand-overs", "proxy"],
    ["readiness", "proxy"],
    ["who", "a-0", "--group", "proxy", "--at", "2026-11-21T14:02Z"],
    ["who", "--unowned-since", "1m", "--group", "proxy"],
    ["audit", "--group", "proxy"],
    ["report", "storms", "--group", "proxy"],
    ["report", "skew", "--group", "proxy"],
    ["openmetrics", "--group", "proxy"],
    ["plan-migration", "--group", "proxy"],
    ["simulate", "--from-ledger", "proxy"],
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    of = History("pay").state(1, "m a:0,1", complete=True)
    rejected = [REJECTED | {"offset": 7}, REJECTED | {"offset": 2}]
    rows = rows_of(of, quarantine=rejected, topic_snapshots=[listed("a", 2)])
    return write(tmp_path_factory.mktemp("ledger"), **rows)


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_whatever_is_asked_names_the_quarantine(place, words):
    done = CliRunner().invoke(main, [*words, "--ledger", place], input='{"id": "x", "events": []}')
    assert done.exit_code == 2, done.output
    assert done.stderr == (
        "groupledger: group 'proxy' has no state in this ledger: its input is in quarantine (partition 3, offset 2, "
        "TRUNCATED: 2 bytes left, and 1 more); `groupledger show --quarantine --group proxy` lists it "
        "[GROUP_QUARANTINED]\n"
    )


def test_what_was_rejected_is_listed(place):
    done = CliRunner().invoke(main, ["show", "--quarantine", "--group", "proxy", "--ledger", place, "--json"])
    assert done.exit_code == 0, done.output
    assert [row["offset"] for row in json.loads(done.stdout)["quarantine"]["rows"]] == [2, 7]


def test_a_group_that_nobody_ever_saw_is_still_unknown(place):
    done = CliRunner().invoke(main, ["show", "--group", "prox", "--ledger", place])
    assert "no group 'prox' in this ledger; known: pay" in done.stderr
