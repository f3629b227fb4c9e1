"""Listeners inside a group with times: what they take holds up its rounds, and what they do wrong is a verdict."""

from __future__ import annotations

import gc
import json
import threading
import time
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.script_json import write_script
from groupledger.core.protocol.settlement import Pace
from groupledger.listener import rehearse, rehearse_simulation, spend
from groupledger.listener.timed import in_turns, spending
from tests.core.protocol.drawn_times import timed_script
from tests.listener import timed_listeners as listeners

JOINED_MS = 60_000


def hand_over(*events, assignor="cooperative-sticky", rate=10, pace=None, commits_ms=None, partitions=4, **each):
    """a has all; b joins after a minute."""
    times = MemberTimes(round_trip_ms=4, **{"rebalance_timeout_ms": 20_000, "processing_ms": 100, **each})
    consumer = {"group_protocol": e.GroupProtocol.CONSUMER} if assignor == "consumer" else {"assignors": (assignor,)}
    joins = [e.Join(name, ("t",), **consumer, at_ms=at) for name, at in (("a", 0), ("b", JOINED_MS))]
    told = Times(times, {}, 3_000, rate, commits_ms)
    return Script({"t": partitions}, [*joins, *events], times=told, pace=pace or Pace())


ZOMBIE = (e.Pause("b", at_ms=120_000), e.Resume("b", at_ms=200_000))
CONVICTED = {
    "commits before it hands over": (listeners.Careful, set()),
    "takes its time": (listeners.Flushing, set()),
    "never commits": (listeners.Silent, {("Revoked", "left uncommitted"), ("Assigned", "reads again")}),
    "commits what it lost": (listeners.CommitsLost, {("Lost", "commit"), ("Lost", "raised CommitFailedError")}),
    "commits what it has not read": (listeners.Ahead, {("Assigned", "skips")}),
    "commits what is not there yet": (listeners.Beyond, {("Assigned", "reads again")}),
}


def convicted(played):
    return {(each.callback.value.removeprefix("onPartitions"), each.did) for each in played.convicted}


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range", "consumer"])
@pytest.mark.parametrize(("make", "found"), CONVICTED.values(), ids=CONVICTED.keys())
def test_each_fault_of_a_listener_is_a_verdict(make, found, assignor):
    assert convicted(rehearse(hand_over(*ZOMBIE, assignor=assignor), make)) == found


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range", "consumer"])
def test_a_callback_longer_than_the_rebalance_timeout_is_a_verdict(assignor):
    """The member is expelled while it takes its time, and what it commits then is refused."""
    played = rehearse(hand_over(assignor=assignor), listeners.TooSlow)
    refused = {("Revoked", did) for did in ("commit", "left uncommitted", "raised CommitFailedError", "expelled")}
    assert refused <= convicted(played)
    first = next(each for each in played.convicted if each.did == "expelled")
    assert (first.member, first.at_ms - JOINED_MS >= 30_000) == ("a", True)
    assert "took 30,004 ms, and the group went on without the member" in first.error
    assert first.error.endswith("expected less than its rebalance timeout of 20,000 ms")


def test_a_late_hand_over_does_not_accuse_who_has_the_partitions_by_then():
    played = rehearse(hand_over(), listeners.TooSlow)
    assert "skips" not in {did for _, did in convicted(played)}


def test_what_a_callback_takes_holds_up_the_round():
    """The round trip of its commit as well."""
    quick, slow = (rehearse(hand_over(), make).settlements[-1] for make in (listeners.Careful, listeners.Flushing))
    assert quick.unavailable_ms.keys() == slow.unavailable_ms.keys() == {("t", 2), ("t", 3)}
    revoked = [
        next(each for each in one.calls if each.call.callback is Callback.REVOKED and each.call.partitions)
        for one in (quick, slow)
    ]
    assert [each.ended_ms - each.started_ms for each in revoked] == [4, 1_504]
    assert slow.rounds[0].ended_ms - quick.rounds[0].ended_ms == 1_500


def test_a_question_to_the_broker_takes_a_round_trip():
    listeners.Remembering.told = []
    played = rehearse(hand_over(), listeners.Remembering)
    assigned = [
        each
        for one in played.settlements
        for each in one.calls
        if each.call.callback is Callback.ASSIGNED and each.call.partitions
    ]
    assert {each.ended_ms - each.started_ms for each in assigned} == {4}


def test_the_pace_of_a_script_is_added_to_what_the_listener_takes():
    pace = Pace(callback_ms={Callback.REVOKED: 40})
    revoked = list(rehearse(hand_over(pace=pace), listeners.Flushing).settlements[-1].calls)
    took = [
        each.ended_ms - each.started_ms
        for each in revoked
        if each.call.partitions and each.call.callback is Callback.REVOKED
    ]
    assert took == [1_544]


def test_the_journal_has_offsets_and_times():
    """a has read for a minute, 10 records a second, in polls of 100 ms; its commit is there half a round trip later."""
    (commit,) = [each for each in rehearse(hand_over(), listeners.Careful).journal if each.did == "commit"]
    revoked_ms = commit.at_ms - 2
    assert revoked_ms > JOINED_MS
    read = (revoked_ms - 100) * 10 // 1_000
    assert [told.offset for told in commit.offsets] in ([read, read], [read + 1, read + 1])
    assert commit.generation == 2


def test_nothing_is_read_twice_or_never_where_it_is_committed_before_the_hand_over():
    played = rehearse(hand_over(), listeners.Careful)
    read = played.settlements[-1].timed.read
    assert (read.twice, read.never) == ({}, {})
    (commit,) = [each for each in played.journal if each.did == "commit"]
    assert read.committed == {each: told.offset for each, told in zip(commit.partitions, commit.offsets, strict=True)}
    silent = rehearse(hand_over(), listeners.Silent).settlements[-1].timed.read
    assert all(count >= JOINED_MS * 10 // 1_000 for count in silent.twice.values())
    ahead = rehearse(hand_over(), listeners.Ahead).settlements[-1].timed.read
    assert set(ahead.never) <= {("t", 2), ("t", 3)}


def test_skipped_records_are_counted_once_later_ones_are_read():
    long = e.SetPartitions("t", 4, at_ms=JOINED_MS + 60_000)
    never = (
        rehearse(hand_over(long, e.SetPartitions("t", 4, at_ms=190_000)), listeners.Ahead)
        .settlements[-1]
        .timed.read.never
    )
    assert never.keys() == {("t", 2), ("t", 3)}
    assert all(0 < count <= 100 for count in never.values())


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range", "consumer"])
def test_a_callback_longer_than_the_poll_interval_is_a_verdict_whatever_it_was_called_with(assignor):
    told = rehearse(hand_over(assignor=assignor), listeners.TooSlowAtFirst).convicted
    assert {(each.callback, each.did) for each in told if each.did == "expelled"} == {(Callback.ASSIGNED, "expelled")}
    assert all("took 30,00" in each.error for each in told if each.did == "expelled")


def test_auto_commit_goes_on_beside_a_listener_where_the_script_says_so():
    """What is read between the last auto-commit and the hand-over is left, and only that."""
    entries = [
        each for each in rehearse(hand_over(commits_ms=5_000), listeners.Silent).convicted if each.did == "reads again"
    ]
    assert entries
    assert all(int(each.error.split()[-2]) <= 50 for each in entries)


def test_a_process_that_crashes_in_a_callback_never_returns_from_it():
    """No commit, no verdict, and no thread is left behind."""
    crash = e.Crash("a", at_ms=JOINED_MS + 4_000)
    before = threading.active_count()
    played = rehearse(hand_over(crash, heartbeat_interval_ms=1_000), listeners.TooSlow)
    gc.collect()
    assert threading.active_count() == before
    assert [each for each in played.journal if each.member == "a"] == []
    assert [each for one in played.settlements for each in one.calls if each.call.callback is Callback.REVOKED] == []
    assert set(played.settlements[-1].owners.values()) == {"b"}


def test_every_operation_is_answered():
    listeners.Asking.told = []
    rehearse(hand_over(partitions=1), listeners.Asking)
    told = dict(listeners.Asking.told[:10])
    joined_ms = 3_012
    assert told["end"] in (joined_ms * 10 // 1_000, joined_ms * 10 // 1_000 + 1)
    assert told["since"][:2] == (24, 2_500)
    assert (told["committed"], told["position"], told["beginning"]) == (None, 0, 0)
    assert told["lag"] >= told["end"]
    assert (told["topics"], told["partitions"], told["generation"], told["id"]) == (["t"], 1, 1, 22)
    assert ("async", None) in listeners.Asking.told


def test_the_next_owner_reads_what_the_last_one_committed():
    class Handing(listeners.Asking):
        told: ClassVar[list[tuple[str, Any]]] = []
        on_partitions_revoked = listeners.Careful.on_partitions_revoked

    rehearse(hand_over(partitions=2), Handing)
    committed = [told.offset for name, told in Handing.told if name == "committed" and told is not None]
    assert len(committed) == 1
    assert committed[0] > JOINED_MS * 10 // 1_000 - 10


def test_without_times_it_is_the_rehearsal_of_rounds():
    events = [e.Join(name, ("t",)) for name in "ab"]
    played = rehearse(Script({"t": 4}, events), listeners.Silent)
    assert played.journal == rehearse_simulation(played.settlements, listeners.Silent)
    assert {each.did for each in played.convicted} == {"left uncommitted", "reads again"}


@pytest.mark.parametrize("ms", [-1, 1.5, True, None])
def test_time_to_spend_is_a_whole_number(ms):
    with pytest.raises(Fault, match="expected a whole number of milliseconds from 0"):
        spend(ms)


def test_outside_of_a_rehearsal_nothing_is_spent():
    begun = time.monotonic()
    spend(10_000)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_of_a_careful_listener(seed):
    """Every record is read, offsets never go back, and nobody is accused who was not expelled or overtaken."""
    script = timed_script(seed, 30, zombies=seed % 2 == 1)
    played = rehearse(script, listeners.Careful)
    last = played.settlements[-1]
    assert last.failure is None
    assert last.unowned == ()
    assert last.timed.read.never == {}
    if seed % 2 == 0:
        assert {each.did for each in played.convicted} <= {"commit", "raised CommitFailedError", "left uncommitted"}
    assert played == rehearse(script, listeners.Careful)


# The command


def ran(make, *options, script=None):
    line = json.dumps(write_script(script or hand_over(), "g"))
    return CliRunner().invoke(
        main, ["simulate", "--listener", f"tests.listener.timed_listeners:{make}", *options], input=line
    )


@pytest.mark.parametrize(("make", "code"), [("Careful", 0), ("Silent", 4), ("TooSlow", 4)])
def test_the_command_convicts(make, code):
    done = ran(make)
    assert done.exit_code == code, done.output
    told = json.loads(done.stdout)
    assert (told["convicted"] > 0) == (code == 4)
    assert {"at_ms", "member", "callback", "did", "partitions", "offsets", "generation", "error"} == told["journal"][
        0
    ].keys()


def test_the_command_shows_a_person_what_went_wrong():
    done = ran("Silent", "--table", "--metrics")
    assert done.exit_code == 4
    assert "what the listeners did wrong: 4 of 4 entries" in done.stdout
    assert "rebalance-latency-max" in done.stdout


def test_a_listener_that_is_none_is_refused_before_anything_is_played():
    done = CliRunner().invoke(main, ["simulate", "--listener", "json:nothing"], input="{}")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "LISTENER_NOT_FOUND" in done.stderr


def test_bad_lines_are_told_and_the_others_are_played():
    line = json.dumps(write_script(hand_over(), "g"))
    careful = "tests.listener.timed_listeners:Careful"
    done = CliRunner().invoke(main, ["simulate", "--listener", careful], input=f"nonsense\n{line}\n")
    assert done.exit_code == 3
    assert [json.loads(each).get("line") for each in done.stdout.splitlines()] == [1, None]


def test_a_callback_that_never_returns_has_ended_before_anything_goes_on():
    done = []

    def flush():
        try:
            spend(5)
        finally:
            time.sleep(0.05)
            done.append("closed its files")

    flushing = in_turns(flush)
    assert next(flushing) == 5
    flushing.close()
    assert done == ["closed its files"]


def test_time_is_told_to_whom_it_is_spent_on_alone():
    told = []
    with spending(told.append):
        spend(5)
    spend(7)
    assert told == [5]


def test_what_is_raised_in_turns_is_raised_to_whom_they_are_yielded():
    def fail():
        spend(3)
        raise ValueError("no disk")

    failing = in_turns(fail)
    assert next(failing) == 3
    with pytest.raises(ValueError, match="no disk"):
        next(failing)


GONE = {("Revoked", "commit"), ("Revoked", "raised CommitFailedError")}


@pytest.mark.parametrize(("assignor", "found"), [("cooperative-sticky", set()), ("range", GONE), ("consumer", GONE)])
def test_commits_of_a_topic_go_with_it_and_no_others_are_taken(assignor, found):
    """It is deleted after b has joined, and made again; a cooperative member has lost it before it can commit."""
    listeners.Remembering.told = []
    again = e.DeleteTopic("t", at_ms=120_000), e.SetPartitions("t", 4, at_ms=180_000)
    played = rehearse(hand_over(*again, assignor=assignor), listeners.Remembering)
    assert convicted(played) == found
    assert all(each.error.startswith("the cluster does not have t-") for each in played.convicted)
    had = [each for each in listeners.Remembering.told if each]
    assert [set(each.values()) for each in had[-2:]] == [{None}, {None}]


def test_an_auto_commit_leaves_out_what_was_deleted():
    gone = hand_over(e.DeleteTopic("t", at_ms=120_000), assignor="range", commits_ms=5_000)
    played = rehearse(gone, listeners.Silent)
    assert [each for each in played.convicted if each.at_ms >= 120_000] == []
