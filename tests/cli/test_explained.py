"""`explain` prints the findings of a rebalance as `audit` names them, and says where a time is beyond what is known."""

import pytest
from click.testing import CliRunner

import groupledger as gl
from groupledger.cli import main
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import COMMITTED, read_to, write
from tests.answers.rows import at


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    pay = History("pay").state(1, "m a:0,1").state(2, "m a:0 | n a:1")
    finding = {"cluster_id": "dev", "group_id": "pay", "snapshot_id": "log/dev/pay/2", "offset": 2, "log_partition": 0}
    finding |= {"code": "TOPIC_REPEATED", "severity": "warning", "evidence": "topic 'a' stands twice"}
    rows = rows_of(pay, topic_snapshots=[listed("a", 2)], runs=[COMMITTED, read_to(dev=at(9))], violations=[finding])
    return write(tmp_path_factory.mktemp("explained") / "ledger", **rows)


def explained(place, *words):
    done = CliRunner().invoke(main, ["explain", "pay", *words, "--ledger", place])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_a_finding_has_the_code_of_audit(place):
    said = "finding: REPEATED_TOPIC: topic 'a' stands twice"
    assert said in explained(place)
    assert said not in explained(place, "--generation", "1")
    assert said in CliRunner().invoke(main, ["show", "pay", "--generation", "2", "--ledger", place]).stdout


def test_the_rebalances_before_and_after_are_named(place):
    second = [line for line in explained(place) if line.startswith(("before:", "after:"))]
    first = [line for line in explained(place, "--generation", "1") if line.startswith(("before:", "after:"))]
    assert second == ["before: generation 1, 1 min 0 s earlier  [log/dev/pay/1]"]
    assert first == ["after: generation 2, 1 min 0 s later  [log/dev/pay/2]"]


@pytest.mark.parametrize(("time", "beyond"), [("2026-11-21T14:09:00Z", False), ("2026-11-21T14:09:01Z", True)])
def test_a_time_beyond_what_is_known_is_not_answered_as_if_it_were_known(place, time, beyond):
    lines = explained(place, "--at", time)
    assert any("note: cluster dev is known up to 2026-11-21T14:09:00.000Z" in line for line in lines) == beyond
    assert any(line.startswith("in force at") for line in lines) != beyond
    assert repr(gl.open(place).group("pay").explain(at=time)).splitlines() == lines[1:]  # the first line is empty
