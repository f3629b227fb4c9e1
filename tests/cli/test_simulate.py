"""`groupledger simulate` and the page about it: its code runs, its script is one, its events are all there."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.core.protocol.script_json import EVENTS, read_script
from groupledger.listener import RebalanceListener
from tests.pages import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "guides/decide/simulate-a-group.md").read_text(encoding="utf-8")
SCRIPT = '{"id": "g", "topics": {"t": 2}, "events": [{"event": "join", "member": "a", "topics": ["t"]}]}'


class Chatty(RebalanceListener):
    """Prints whatever it is told; and ends its program when it gets nothing."""

    def on_partitions_assigned(self, partitions, consumer):
        print("assigned", partitions)  # noqa: T201 what is tested
        if not partitions:
            sys.exit(1)

    def on_partitions_revoked(self, partitions, consumer): ...


def test_the_code_of_the_page_runs():
    names: dict[str, Any] = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, "docs/guides/decide/simulate-a-group.md", "exec", dont_inherit=True), names)  # noqa: S102 our own page
    assert names["wrong"] != []


def test_the_scripts_of_the_page_are_some_and_its_table_has_every_event():
    first, seated = blocks(PAGE, "json")
    assert len(list(read_script(json.loads(first)).events)) == 2
    restarted = json.loads(CliRunner().invoke(main, ["simulate"], input=seated.replace("\n", " ")).stdout)["events"][-1]
    assert [took["generation"] for took in restarted["rounds"]] == [3, 4, 5]
    table = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([a-z-]+)`", table)) == set(EVENTS)


def test_a_script_in_a_result_out():
    done = CliRunner().invoke(main, ["simulate"], input=f"{SCRIPT}\nnonsense\n")
    good, bad = (json.loads(line) for line in done.stdout.splitlines())
    assert (done.exit_code, done.stderr) == (3, "groupledger: 1 line was no script [BAD_LINE]\n")
    assert good["events"][0]["rounds"][0]["members"][0]["assigned"] == [["t", 0], ["t", 1]]
    assert (bad["line"], bad["error"].split(":")[0]) == (2, "BAD_JSON")


def test_good_lines_alone_exit_with_0():
    assert CliRunner().invoke(main, ["simulate"], input=f"{SCRIPT}\n").exit_code == 0


@pytest.mark.parametrize("times", [{}, {"times": {"records_per_second": 1}}])
def test_a_listener_neither_prints_among_the_results_nor_ends_the_command(times):
    joins = [{"event": "join", "member": name, "topics": ["t"], "at_ms": at} for at, name in enumerate("ab")]
    script = json.dumps({"id": "g", "topics": {"t": 1}, "events": joins, **times})
    done = CliRunner().invoke(main, ["simulate", "--listener", f"{__name__}:Chatty"], input=f"{script}\n")
    (told,) = (json.loads(line) for line in done.stdout.splitlines())
    assert done.exit_code == 4
    assert "assigned (TopicPartition(topic='t', partition=0),)\n" in done.stderr
    assert {"did": "raised SystemExit", "error": "1"}.items() <= told["journal"][-1].items()


def test_a_table_for_a_person():
    joins = [{"event": "join", "member": name, "topics": ["t"]} for name in "ab"]
    script = json.dumps({"id": "g", "topics": {"t": 2}, "events": joins})
    done = CliRunner().invoke(main, ["simulate", "--table"], input=f"{script}\nnonsense\n")
    assert done.exit_code == 3
    assert "g, event 2: join b: 2 rounds, 1 partition-round unavailable" in done.output
    assert re.search(r"1 +2 +a +a +t:0-1 +t:0 +t:1 +yes", done.output)
    assert re.search(r"1 +a +onPartitionsRevoked +t:1", done.output)
    assert "line 2: BAD_JSON" in done.output


def test_a_table_says_who_was_refused_what_hangs_and_what_is_unowned():
    other = {"event": "join", "member": "b", "topics": ["t"], "assignors": ["range"]}
    refused = [{"event": "join", "member": "a", "topics": ["t"]}, other]
    gone = [{"event": "join", "member": "a", "topics": ["t"]}, {"event": "crash", "member": "a"}]
    same = {"event": "join", "member": "a", "topics": ["t"], "assignors": ["constrained-cooperative-sticky"]}
    hangs = [same, {**same, "member": "b", "topics": ["u"]}]
    lines = [json.dumps({"id": "g", "topics": {"t": 1, "u": 1}, "events": each}) for each in (refused, gone, hangs)]
    shown = CliRunner().invoke(main, ["simulate", "--table"], input="\n".join(lines)).output
    assert "join b: refused: b lists range; expected one that all members list (cooperative-sticky)" in shown
    assert "crash a: 0 rounds, 0 partition-rounds unavailable, unowned: t:0" in shown
    assert "join b: hangs: SubscriptionsDiffer" in shown


def test_a_table_of_many_members_shows_what_changes_first_and_counts_the_rest():
    joins = [{"event": "join", "member": f"m{number:02}", "topics": ["t"]} for number in range(40)]
    script = json.dumps({"id": "g", "topics": {"t": 200}, "events": joins})
    shown = CliRunner().invoke(main, ["simulate", "--table"], input=f"{script}\n").stdout
    last = shown[shown.index("g, event 40") :]
    assert re.search(r"m39: 2 rounds, 5 partition-rounds unavailable", last)
    assert re.search(r" m39 +- +t:[0-9,]+ +- +no", last)
    assert "... and 60 more (without --table: all)" in last
    assert len(last.splitlines()) < 60


def old_leader():
    """A leader on byte code before KIP-429 takes what b keeps."""
    joins = [{"event": "join", "member": name, "topics": ["t"]} for name in "abc"]
    old = [each | ({"byte_code": "BEFORE_KIP_429"} if each["member"] != "b" else {}) for each in joins]
    return json.dumps({"id": "old", "topics": {"t": 4}, "events": old})


@pytest.mark.parametrize("table", [(), ("--table",)])
def test_a_partition_with_two_owners_exits_with_4(table):
    done = CliRunner().invoke(main, ["simulate", *table], input=f"{SCRIPT}\n{old_leader()}\n")
    assert done.exit_code == 4
    if table:
        assert re.search(r"join c: 2 rounds, .*two owners: t:\d", done.output)
        assert re.search(r"t:\d +b +a +0 +0", done.output)
    else:
        (double,) = json.loads(done.stdout.splitlines()[1])["events"][-1]["double_owners"]
        assert (double["members"], double["since_ms"], double["until_ms"]) == (["b", "a"], 0, 0)


def test_a_line_that_is_no_script_counts_before_two_owners():
    assert CliRunner().invoke(main, ["simulate"], input=f"{old_leader()}\nnonsense\n").exit_code == 3


def test_metrics_of_each_member_and_of_the_group_are_told():
    done = CliRunner().invoke(main, ["simulate", "--metrics"], input=f"{SCRIPT}\n")
    assert done.exit_code == 0
    told = json.loads(done.stdout)["metrics"]
    assert {each["member"] for each in told} == {None, "a"}
    assert {each["name"] for each in told} >= {"rebalance-total", "partitions-lost-latency-max"}
    assert all((each["value"] is None) == (each["reason"] is not None) for each in told)
    assert "metrics" not in json.loads(CliRunner().invoke(main, ["simulate"], input=f"{SCRIPT}\n").stdout)


def test_metrics_of_a_consumer_group_are_told_too():
    join = {"event": "join", "member": "a", "topics": ["t"], "group_protocol": "consumer"}
    script = json.dumps({"id": "g", "topics": {"t": 2}, "events": [join]})
    done = CliRunner().invoke(main, ["simulate", "--metrics"], input=script)
    assert done.exit_code == 0
    told = {(each["member"], each["name"]): each["value"] for each in json.loads(done.stdout)["metrics"]}
    assert told["a", "rebalance-total"] == told[None, "rebalance-total"] == 1


def test_a_script_with_times_shows_when_calls_returned_and_records_read_twice():
    joins = [{"event": "join", "member": name, "topics": ["t"]} for name in "ab"]
    crash = {"event": "crash", "member": "b", "at_ms": 60_000}
    times = {"records_per_second": 100}
    script = json.dumps({"id": "g", "topics": {"t": 2}, "times": times, "events": [*joins, crash]})
    shown = CliRunner().invoke(main, ["simulate", "--table"], input=script).output
    assert re.search(r"6,000 +1  a +onPartitionsAssigned  t:0", shown)
    assert "records read twice" in shown
    assert "partition-ms" in shown


def test_records_that_a_consumer_group_reads_twice_are_in_its_table():
    joins = [{"event": "join", "member": name, "topics": ["t"], "group_protocol": "consumer"} for name in "ab"]
    rest = [{"event": "crash", "member": "b", "at_ms": 62_000}, {"event": "wait", "at_ms": 200_000}]
    times = {"records_per_second": 100}
    script = json.dumps({"id": "g", "topics": {"t": 2}, "times": times, "events": [*joins, *rest]})
    shown = CliRunner().invoke(main, ["simulate", "--table"], input=script).output
    assert re.search(
        r"event 3: crash b: group epoch 4, [\d,]+ partition-ms unavailable, [\d,]+ records read twice", shown
    )


def test_bad_times_are_an_error_of_their_line():
    script = json.dumps({"id": "g", "topics": {}, "times": {"session_timeout_ms": 0}, "events": []})
    done = CliRunner().invoke(main, ["simulate"], input=script)
    assert done.exit_code == 3
    assert json.loads(done.stdout)["error"].startswith("BAD_SCRIPT: times.session_timeout_ms is 0")
