"""What a ledger tells of a group's commits at its hand-overs: verdicts, what it cannot tell, and why."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from click.testing import CliRunner

from groupledger.answers.reader import LedgerReader
from groupledger.answers.recorded_history import group_hand_overs
from groupledger.answers.scope import RequestedScope
from groupledger.cli import main
from groupledger.core.faults import Fault
from groupledger.core.moments import bound
from tests.answers.captured import fact_rows, ledger_of, log_record_rows
from tests.answers.ledgers import COMMITTED, write
from tests.core.history.records import GROUP, Log, Partitions, member

CLUSTER = "eu-1"
ONE: Partitions = {"clicks": (0,)}
TABLES = ("group_snapshots", "member_snapshots", "coverage")


def handed(first=1, second=2, third=3):
    """a commits 100 and hands clicks-0 to b, which commits nothing and hands it back."""
    log = Log()
    log.classic(first - 1, [])
    log.classic(first, [member("a", ONE)])
    log.commit(0, 100)
    log.classic(second, [member("a", {}), member("b", ONE)])
    log.classic(third, [member("a", ONE), member("b", {})])
    return log


def ledger(folder, log, left_out=0, rows=None):
    """The folded log in a ledger of its own; `rows`: of the log, those that were kept."""
    fold = log.fold()
    facts = {name: list(fact_rows(getattr(fold, name))) for name in TABLES}
    kept = log_record_rows(CLUSTER, GROUP, log.rows if rows is None else rows)
    counted = {f"{CLUSTER}/unused.offset commit left out": left_out, f"{CLUSTER}/records": 9} if left_out else {}
    return write(folder, runs=[COMMITTED | {"counts_in": list(counted.items())}], log_records=list(kept), **facts)


def told(place, **asked):
    return group_hand_overs(LedgerReader(place), GROUP, RequestedScope(**asked))


def verdicts(answer):
    return [(each.from_member_id, each.to_member_id, each.next_at, each.verdict.value) for each in answer.hand_overs]


def test_a_hand_over_says_who_left_what_and_where_the_next_one_began(tmp_path):
    answer = told(ledger(tmp_path, handed()))
    assert verdicts(answer) == [("a", "b", 100, "committed"), ("b", "a", 100, "not-committed")]
    assert (answer.cluster_id, answer.counts, answer.notes) == (CLUSTER, {"not-committed": 1, "committed": 1}, ())
    first = answer.hand_overs[0]
    assert (first.topic, first.partition, first.generation, first.commits, first.gone) == ("clicks", 0, 2, 1, False)
    assert (first.started_at, first.read_twice, first.never_read) == (None, 0, None)
    assert first.taken_at == first.given_up_at == first.since + timedelta(seconds=2)
    assert first.last_commit_at == first.since + timedelta(seconds=1)
    assert first.snapshot_id == f"log/{CLUSTER}/3/3"


def test_a_period_has_what_was_given_up_in_it(tmp_path):
    place = ledger(tmp_path, handed())
    at = told(place).hand_overs[1].given_up_at
    inside, before = (told(place, **{name: bound(at.isoformat())[0]}) for name in ("since", "until"))
    assert verdicts(inside) == [("b", "a", 100, "not-committed")]
    assert verdicts(before) == [("a", "b", 100, "committed")]
    late = told(place, since=bound((at + timedelta(seconds=1)).isoformat())[0])
    assert (late.hand_overs, late.counts, late.notes) == ((), {}, ("no partition was given up in this period",))


def test_what_lies_behind_missing_records_is_unknown(tmp_path):
    """Generation 2 is not there: others may have had the partition, and committed."""
    assert verdicts(told(ledger(tmp_path, handed(1, 3, 4)))) == [
        ("a", "b", 100, "unknown"),
        ("b", "a", 100, "not-committed"),
    ]


def test_who_was_there_before_the_record_begins_may_have_committed(tmp_path):
    log = Log()
    log.classic(7, [member("a", {"clicks": (0, 1)})])
    log.commit(0, 100)
    log.classic(8, [member("b", {"clicks": (0, 1)})])
    log.commit(1, 5)
    log.classic(9, [member("a", {"clicks": (0, 1)})])
    answer = told(ledger(tmp_path, log))
    assert [(each.partition, each.verdict.value) for each in answer.hand_overs] == [
        (0, "committed"),
        (1, "unknown"),
        (0, "not-committed"),
        (1, "committed"),
    ]


def test_before_the_first_commit_that_was_kept_nothing_is_known(tmp_path):
    """As in a ledger that began to keep them later."""
    log = handed()
    log.commit(0, 120)
    log.classic(4, [member("a", {}), member("b", ONE)])
    kept = [row for row in log.rows if row.offset != 2]
    everything = told(ledger(tmp_path / "all", log, rows=kept))
    assert everything.counts == {"not-committed": 2, "committed": 1}
    late = told(ledger(tmp_path / "late", log, left_out=1, rows=kept))
    assert late.counts == {"unknown": 3}
    assert late.notes[0].startswith("1 offset commits of the cluster were left out of the ledger")


@pytest.mark.parametrize(("left_out", "why"), [(0, "it commits nothing to Kafka"), (12_000, "12,000 commits of its")])
def test_a_ledger_without_commits_says_so(tmp_path, left_out, why):
    log = handed()
    place = ledger(tmp_path, log, left_out, [row for row in log.rows if row.offset != 2])
    with pytest.raises(Fault, match=why) as refused:
        told(place)
    assert refused.value.code == "NO_COMMITS"
    with pytest.raises(Fault) as refused:
        group_hand_overs(LedgerReader(place), "nobody", RequestedScope())
    assert refused.value.code == "UNKNOWN_GROUP"


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    return ledger_of(tmp_path_factory.mktemp("captured"), ["dev", "edge"])


def run(place, *words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, ["hand-overs", *words, "--ledger", place])


def test_the_command_tells_verdicts_and_then_the_worst_hand_overs_first(captured):
    done = run(captured, "rc-java")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines if line.split()[1:2] in (["10"], ["44"], ["17"])] == [
        ["deleted", "10"],
        ["not-committed", "44"],
        ["committed", "17"],
    ]
    rows = [line.split()[0] for line in lines if " rc-java-m" in line]
    assert rows == sorted(rows, key=["deleted", "not-committed"].index)
    assert "(gone)" in done.stdout
    assert "(nobody)" in done.stdout
    assert "more (--limit)" not in done.stdout
    assert "... and 6 more (--limit)" in run(captured, "rc-java", "--limit", str(len(rows) - 6)).stdout


def test_wide_tells_the_quiet_ones_too(captured):
    quiet, wide = (run(captured, "java-range", *more).stdout for more in ((), ("--wide", "--limit", "1000")))
    assert [sum(line.startswith("committed ") for line in text.splitlines()) for text in (quiet, wide)] == [1, 3]
    assert "log/dev/" in wide


def test_json_has_every_hand_over(captured):
    answer = json.loads(run(captured, "java-range", "--json").stdout)["hand_overs"]
    assert answer["counts"] == {"not-committed": 30, "idle": 45, "committed": 8}
    assert len(answer["hand_overs"]) == 83
    assert {each["verdict"] for each in answer["hand_overs"]} == answer["counts"].keys()


def test_what_is_wrong_is_a_line(captured):
    done = run(captured, "gr-java")
    assert done.exit_code != 0
    assert "[NO_COMMITS]" in done.stderr
    assert "set sources[]" not in done.stderr
