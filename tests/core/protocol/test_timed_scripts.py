"""Scripts with times: what comes back, what is refused and where, and groups that are given up."""

from __future__ import annotations

import json

import pytest

from groupledger.core.custom.custom_group import CustomAssignor, Protocol
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.consumer_group.consumer_state import (
    ConsumerGroupSettings,
    StreamsGroupSettings,
    SubtopologyTopics,
)
from groupledger.core.protocol.script_json import read_script, settlement_json, write_script
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from tests.core.protocol.drawn_times import hasty_script, timed_script
from tests.core.protocol.timed_groups import COOPERATIVE, RANGE, SETTLED_MS, join, listened, played


def test_times_come_back():
    times = Times(MemberTimes(processing_ms=7), {"b": MemberTimes(session_timeout_ms=9_000)}, 5, 10, 0)
    script = Script({"t": 1}, [join("a"), e.Hang("a", at_ms=9)], times=times)
    again = read_script(json.loads(json.dumps(write_script(script, "g"))))
    assert (again.times, again.events) == (times, script.events)


@pytest.mark.parametrize("draw", [timed_script, hasty_script])
def test_a_script_comes_back_with_the_time_of_its_callbacks(draw):
    drawn = draw(5, 12)
    again = read_script(json.loads(json.dumps(write_script(drawn, "g"))))
    assert drawn.pace.callback_ms
    assert again == drawn


def test_a_result_says_what_the_clock_said():
    (settled,) = played(join("a"), rate=2)
    plain = settlement_json(settled)
    assert plain["outages"] == [["t", number, 0, 3_000] for number in range(4)]
    assert (plain["ended_ms"], plain["rebalancing"]) == (3_000, False)
    assert plain["rounds"][0]["members"][0]["ended_ms"] == 3_000
    assert {"twice", "never", "committed"} <= plain.keys()
    without = settlement_json(simulate(Script({"t": 4}, [join("a")]))[0])
    assert not {"outages", "ended_ms", "twice", "rebalancing"} & without.keys()
    assert "started_ms" not in without["rounds"][0]["members"][0]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([], "times is []; expected an object of milliseconds"),
        ({"session": 1}, "times is 'session'; expected one of session_timeout_ms"),
        ({"session_timeout_ms": 0}, "times.session_timeout_ms is 0; expected a whole number from 1 to 2,147,483,647"),
        ({"processing_ms": 1.5}, "times.processing_ms is 1.5; expected a whole number from 0"),
        ({"round_trip_ms": True}, "times.round_trip_ms is True; expected a whole number from 0"),
        (
            {"heartbeat_interval_ms": 50_000},
            "times.heartbeat_interval_ms is 50000; expected less than session_timeout_ms",
        ),
        (
            {"round_trip_ms": 45_000},
            "times.round_trip_ms is 45000; expected less than session_timeout_ms, which is 45,000",
        ),
        ({"records_per_second": -1}, "times.records_per_second is -1; expected a whole number from 0 to 1,000,000"),
        ({"members": []}, "times.members is []; expected an object of the times of members"),
        ({"members": {"a": 1}}, "times.members.a is 1; expected an object of milliseconds"),
        ({"members": {"a": {"records_per_second": 1}}}, "times.members.a is 'records_per_second'; expected one of"),
        (
            {"members": {"a": {"session_timeout_ms": 2_000}}},
            "times.members.a.heartbeat_interval_ms is 3000; expected less",
        ),
    ],
)
def test_bad_times_are_refused_with_their_place(times, message):
    with pytest.raises(Fault) as raised:
        read_script({"topics": {}, "events": [], "times": times})
    assert raised.value.code == "BAD_SCRIPT"
    assert raised.value.message.startswith(message)


def test_a_round_takes_a_round_trip_and_no_time_of_its_own():
    with pytest.raises(Fault, match="expected no round_ms beside times"):
        read_script({"topics": {}, "events": [], "times": {}, "pace": {"round_ms": 7}})


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([join("a", 5), join("b", 4)], "at_ms is 4 after an event at 5; expected times that never go back"),
        ([join("a"), e.Expire("a")], "'a' is to expire; where a script has times, sessions end by themselves"),
        ([join("a"), join("a")], "'a' has joined already"),
        ([join("a"), e.Resume("a")], "'a' runs; expected one that is paused, hangs or is cut off"),
        ([join("a"), e.Hang("a"), e.Leave("a")], "'a' is hung; it cannot leave before it resumes"),
        ([e.Restart("a")], "there is no process 'a' to restart"),
        ([e.Leave("a")], "there is no process 'a'"),
        ([e.Join("a", ("t*",))], "topic is 't*'; expected a name"),
        ([e.Join("a", ("t",), ())], "'a' lists no assignor; expected at least one"),
        ([e.Join("a", ("t",), ("best",))], "assignor is 'best'; expected one of"),
        (
            [e.Join("a", ("t",), topic_regex="t.*")],
            "'a' subscribes by the regular expression 't.*' and by name (t); expected one of both",
        ),
        (
            [e.Join("a", ("t",), rebalance_timeout_ms=9_000)],
            "rebalance_timeout_ms of 'a' is 9,000; expected it in times.members",
        ),
    ],
)
def test_events_that_cannot_be_are_refused(events, message):
    with pytest.raises(Fault) as raised:
        played(*events)
    assert raised.value.message.startswith(message)


@pytest.mark.parametrize("group_protocol", e.GroupProtocol)
@pytest.mark.parametrize("event", [e.Hang("a"), e.CutOff("a")])
def test_without_times_nobody_hangs(event, group_protocol):
    streams = group_protocol is e.GroupProtocol.STREAMS
    settings = StreamsGroupSettings(topology={"0": SubtopologyTopics(("t",))}) if streams else ConsumerGroupSettings()
    joins = e.Join("a", () if streams else ("t",), group_protocol=group_protocol)
    with pytest.raises(Fault, match="'a' is to hang or to be cut off; expected a script with times"):
        simulate(Script({"t": 1}, [joins, event], consumer_group=settings))


def test_settings_of_a_consumer_group_are_for_one():
    settings = ConsumerGroupSettings(session_timeout_ms=6_000)
    with pytest.raises(Fault) as raised:
        simulate(Script({"t": 1}, [join("a")], times=Times(), consumer_group=settings))
    told = "consumer_group is {'session_timeout_ms': 6000}; expected members of the consumer protocol (KIP-848)"
    assert raised.value.message.startswith(told)


def test_a_session_ends_while_a_script_waits():
    waits = [e.Wait(at_ms=90_000), e.Wait(at_ms=200_000)]
    settled = played(join("a"), join("b"), e.Crash("b", at_ms=60_000), *waits)[2:]
    assert [(len(each.unowned), len(each.rounds)) for each in settled] == [(2, 0), (0, 1), (0, 0)]


def test_a_newcomer_without_a_common_assignor_is_refused():
    settled = played(join("a"), join("b", SETTLED_MS, RANGE))
    assert settled[-1].refused == "b lists range; expected one that all members list (cooperative-sticky)"
    assert settled[-1].running == {"a": 1}


def test_a_group_that_does_not_come_to_rest_is_given_up():
    """It works longer than it may: it leaves and comes back for ever."""
    settled = played(join("a"), join("b"), rebalance_timeout_ms=1_000, processing_ms=5_000, rests=False)
    assert settled[-1].failure == "not stable after 50 rounds"


def test_a_group_in_which_one_member_is_always_too_late_is_given_up_and_both_are_named():
    """b, far from the broker, claims what it had long ago: t-0 and t-1 change hands for ever between a and c."""
    topics, far, near = {"t": 4, "u": 9}, MemberTimes(round_trip_ms=50), MemberTimes(round_trip_ms=0)
    joins = [
        *(e.Join("a", ("t",)), e.Join("b", ("u",), at_ms=10_000)),
        *(e.Join("c", ("t", "u"), at_ms=60_000), e.Join("d", ("t", "u"), at_ms=60_001)),
    ]
    pace = Pace(callback_ms={Callback.REVOKED: 3})
    *_, last = simulate(Script(topics, joins, pace=pace, times=Times(near, {"b": far})))
    assert (
        last.failure == "not stable after 50 rounds; in each of the last 10, a joined again before b had an assignment"
    )
    moved = [
        next(set(row.owned) - set(row.target) for row in each.members if row.member == "a") for each in last.rounds
    ]
    assert moved[-2:] == [{("t", 0)}, {("t", 1)}] or moved[-2:] == [{("t", 1)}, {("t", 0)}]


def test_a_group_in_which_nobody_can_join_is_given_up():
    """Its session ends before an answer can come."""
    settled = played(join("a"), session_timeout_ms=5, heartbeat_interval_ms=1, round_trip_ms=20, rests=False)
    assert settled[-1].failure == "not stable after 10,000 requests and polls without a round"


def test_a_script_with_times_and_no_event_comes_to_nothing():
    assert simulate(Script({"t": 1}, [], times=Times())) == []
    of_broker = ConsumerGroupSettings(session_timeout_ms=6_000)
    assert simulate(Script({"t": 1}, [], times=Times(), consumer_group=of_broker)) == []


def test_members_whose_leader_had_no_answer_join_again_with_the_next_event():
    """Nobody's session has ended meanwhile, and nobody waits for a time-out."""
    asked = []

    def all_to_the_first(group):
        asked.append(group)
        if len(asked) == 1:
            raise KeyError("not yet")
        first = min(each.member_id for each in group.members)
        return {first: list(group.partitions(first))}

    custom = {"mine": CustomAssignor("mine", all_to_the_first, frozenset({Protocol.EAGER}), None)}
    events = join("a", 0, ("mine",)), join("b", 0, ("mine",)), e.Wait(at_ms=SETTLED_MS)
    *_, failed, mended = simulate(Script({"t": 4}, events, times=Times()), custom)
    assert failed.failure.startswith("ASSIGNOR_RAISED: mine raised KeyError: 'not yet'")
    (unanswered,) = failed.rounds
    assert [(row.answered, row.joins_again) for row in unanswered.members] == [(False, False)] * 2
    assert mended.failure is None
    assert [[row.member for row in each.members] for each in mended.rounds] == [["a", "b"]]
    assert listened([mended]) == [(SETTLED_MS, "a", "Assigned", [0, 1, 2, 3])]


def test_a_callback_of_a_millisecond_takes_one():
    settled = played(join("a", 0, RANGE), join("b", SETTLED_MS, RANGE), pace=Pace(callback_ms={Callback.REVOKED: 1}))
    made = [each for one in settled for each in one.calls if each.call.callback is Callback.REVOKED]
    assert made
    assert {each.ended_ms - each.started_ms for each in made} == {1}


def test_who_has_left_leaves_nothing_to_wait_for():
    assert [each.timed.at_ms for each in played(join("a"), e.Leave("a", at_ms=SETTLED_MS))] == [SETTLED_MS] * 2


def test_times_that_nobody_gives_are_kafkas():
    assert MemberTimes() == MemberTimes(45_000, 3_000, 300_000)
    assert e.Join("a").rebalance_timeout_ms == MemberTimes().rebalance_timeout_ms


def test_metadata_is_frozen_for_as_many_rounds_as_it_says():
    """a leads, and sees with the third round that t has six partitions."""
    frozen = e.FreezeMetadata("a", 2, at_ms=50_000), e.SetPartitions("t", 6, at_ms=60_000), join("c", 70_000)
    settled = played(join("a"), join("b"), *frozen)
    assert [sum(len(row.assigned) for row in each.members) for each in settled[-1].rounds] == [3, 4, 6]


@pytest.mark.parametrize("assignors", [COOPERATIVE, RANGE])
def test_a_rebalance_commits_and_the_next_auto_commit_is_an_interval_later(assignors):
    """a commits at 63 s, and crashes 4.5 s later; what it read in between is read again."""
    events = join("a", 0, assignors), join("b", 62_500, assignors), e.Crash("a", at_ms=67_500)
    settled = played(*events, rate=100)
    assert set(settled[-1].timed.read.twice.values()) == {450}


def test_who_stands_still_does_not_run():
    settled = played(join("a"), join("b"), e.Pause("b", at_ms=50_000), e.Crash("a", at_ms=51_000))
    assert [each.running for each in settled[1:]] == [{"a": 1, "b": 1}, {"a": 1}, {}]


@pytest.mark.parametrize(("crash_ms", "again"), [(68_000, 5_000), (68_001, 1), (68_011, 11)])
def test_an_auto_commit_is_made_at_its_moment_and_not_a_moment_later(crash_ms, again):
    """a commits at 63 s, when b joins, and five seconds later; it reads a record each millisecond."""
    settled = played(join("a"), join("b", 62_500), e.Crash("a", at_ms=crash_ms), rate=1_000)
    assert set(settled[-1].timed.read.twice.values()) == {again}
