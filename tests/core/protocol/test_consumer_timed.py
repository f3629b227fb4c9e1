"""Consumer groups (KIP-848) of a script with times: polls, who hangs or is cut off, and what is read twice."""

from __future__ import annotations

import os

import pytest

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol import simulated_group
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from tests.core.protocol.consumer_groups import beats, classic, join
from tests.core.protocol.drawn_consumer_groups import History
from tests.core.protocol.played import at_rest
from tests.core.protocol.test_timed_histories import Forward

MINUTE = 60
T = [TopicPartition("t", number) for number in range(4)]
RUNS = int(os.environ.get("GROUPLEDGER_CLOCK_RUNS", "60"))
BATCH = 20
EVENTS = 30


def played(*events, of=None, rate=100, pace=None, commits_ms=None, broker=None, rests=True, **each):
    """The settlements of a group over t; `rests`: it comes to rest after each event."""
    times = Times(MemberTimes(**each), of or {}, records_per_second=rate, auto_commit_interval_ms=commits_ms)
    settings = ConsumerGroupSettings(**(broker or {}))
    settled = simulate(Script({"t": 4}, events, pace=pace or Pace(), times=times, consumer_group=settings))
    return at_rest(settled) if rests else settled


def calls(settled, member):
    """`(ms, callback, how many partitions)` of the listener of one member."""
    made = [each for one in settled for each in one.calls if each.member == member]
    return [
        (each.ended_ms, each.call.callback.value.removeprefix("onPartitions"), len(each.call.partitions))
        for each in made
    ]


@pytest.mark.parametrize(
    ("leave", "had"),
    [
        (e.Leave("a", at_ms=5_000), [("Assigned", 4), ("Revoked", 4)]),
        (e.Leave("b", at_ms=10_000), []),
        (e.Leave("b", at_ms=10_001), [("Assigned", 2), ("Revoked", 2)]),
    ],
)
def test_an_event_comes_before_what_is_due_at_the_same_moment(leave, had):
    """a hears of b at 5 s, and b at 10 s of what a gave up."""
    settled = played(join("a"), join("b"), leave)
    assert [each[1:] for each in calls(settled, leave.member) if each[2]] == had


def test_one_that_hangs_heartbeats_on_until_its_poll_interval_is_over():
    """It is told of c at 105 s, and nobody waits for it; its session would have ended at 145 s."""
    settled = played(join("a"), join("b"), e.Hang("a", at_ms=100_000), join("c", at=101), rests=False)
    assert [each for each in settled[-1].consumed if each.member == "a"] == []
    told = [(row.at_ms, row.member) for row in settled[-1].coordinated.heartbeats if row.epoch != row.sent_epoch]
    assert told == [(101_000, "c"), (105_000, "a"), (105_000, "b"), (400_000, "b"), (401_000, "c")]


@pytest.mark.parametrize(
    ("joins_s", "between"), [(140, []), (141, [(140_000, "Assigned", 2), (145_000, "Revoked", 2)])]
)
def test_a_session_that_ends_at_the_moment_of_an_event_ends_after_it(joins_s, between):
    """b was last heard of at 95 s; a is given what b had, where c has not come by then."""
    settled = played(join("a"), join("b"), e.Crash("b", at_ms=100_000), join("c", at=joins_s))
    assert [each for each in calls(settled, "a") if each[0] > 5_000 and each[2]] == between


def twice(settled):
    return sum(settled[-1].timed.read.twice.values())


def test_a_hand_over_repeats_nothing():
    """What goes is committed before it is revoked, and not read from then on."""
    settled = played(join("a"), join("b", at=MINUTE), processing_ms=50, round_trip_ms=4)
    assert (twice(settled), settled[-1].timed.read.never) == (0, {})
    ends = settled[-1].timed.read.ends
    assert all(0 < settled[-1].timed.read.committed[each] <= end for each, end in ends.items())


def test_a_crash_repeats_what_was_not_committed():
    """Auto-commit is every five seconds: b takes two partitions at 62 s, commits at 67 s, and crashes before 72 s."""
    settled = played(
        join("a"), join("b", at=MINUTE), e.Crash("b", at_ms=72_000), broker={"heartbeat_interval_ms": 1_000}
    )
    assert twice(settled) == 2 * 500
    committed_by_none = played(join("a"), join("b", at=MINUTE), e.Crash("b", at_ms=72_000), commits_ms=0)
    assert twice(committed_by_none) > 2 * 6_000


@pytest.mark.parametrize(("processing_ms", "polls_ms"), [(7_000, 70_000), (12_000, 72_000)])
def test_callbacks_wait_for_the_next_poll(processing_ms, polls_ms):
    """a polls every 7 s while it has something: it hears at 65 s that it has to revoke, and polls at 70 s.

    Every 12 s, it polls at 72 s: the heartbeat of 70 s, while it waits, is no poll.
    """
    settled = played(join("a"), join("b", at=MINUTE), of={"a": MemberTimes(processing_ms=processing_ms)})
    assert calls(settled, "a")[1:] == [(polls_ms, "Revoked", 2), (polls_ms, "Assigned", 0)]


def test_what_was_due_during_a_call_is_committed_with_the_next_poll():
    """a takes 8 s over its partitions and polls at 8, 11 and 14 s: it commits at 11 s what it had read by 8 s."""
    pace = Pace(callback_ms={Callback.ASSIGNED: 8_000})
    crash = e.Crash("a", at_ms=16_500)
    settled = played(join("a"), crash, join("b", at=100), pace=pace, processing_ms=3_000)
    assert twice(settled) == 4 * 6 * 100


def test_who_hangs_leaves_after_its_longest_poll_interval_and_loses_all_when_it_goes_on():
    away = [e.Hang("b", at_ms=100_000), e.Resume("b", at_ms=200_000)]
    settled = played(join("a"), join("b", at=MINUTE), *away, rebalance_timeout_ms=30_000)
    assert calls(settled[2:3], "a") == [(130_000, "Assigned", 2)]  # its next heartbeat is at 130 s, as b leaves
    assert calls(settled[3:], "b")[0] == (200_000, "Lost", 2)
    assert settled[2].running == {"a": 1}
    assert settled[-1].unowned == ()


def test_a_static_member_that_hangs_keeps_its_seat_until_its_session_ends():
    joins = [join(name, at=at, group_instance_id=name) for name, at in (("a", 0), ("b", MINUTE))]
    settled = played(*joins, e.Hang("b", at_ms=100_000), e.Wait(at_ms=150_000), rebalance_timeout_ms=30_000)
    seats = {row.member: row.epoch for row in settled[2].coordinated.members}
    assert seats["b"] == -2
    assert len(settled[2].unowned) == 2
    assert settled[3].unowned == ()  # 45 s after its last heartbeat


def test_who_is_cut_off_reads_what_others_have_by_then():
    away = [e.CutOff("b", at_ms=100_000), e.Resume("b", at_ms=200_000)]
    settled = played(join("a"), join("b", at=MINUTE), *away, round_trip_ms=4)
    assert {each.members for each in settled[2].double_owners} == {("b", "a")}
    assert calls(settled[3:], "b")[0] == (200_004, "Lost", 2)
    assert twice(settled) > 2 * 50 * 100


def test_a_pause_of_less_than_a_session_repeats_nothing():
    away = [e.Pause("b", at_ms=100_000), e.Resume("b", at_ms=120_000)]
    settled = played(join("a"), join("b", at=MINUTE), *away, round_trip_ms=4)
    assert (twice(settled), calls(settled[2:], "b")) == (0, [])
    assert [each.partition.partition for each in settled[2].timed.outages] == [2, 3]


def test_who_pauses_for_its_longest_poll_interval_leaves_when_it_goes_on():
    """30 s since its last poll at 100 s, though its session of 45 s goes on."""
    for resumed_ms, told in ((129_999, []), (130_000, [(130_000, "Lost", 2)])):
        away = [e.Pause("b", at_ms=100_000), e.Resume("b", at_ms=resumed_ms)]
        settled = played(join("a"), join("b", at=MINUTE), *away, rebalance_timeout_ms=30_000)
        assert calls(settled[3:], "b")[:1] == told


def test_who_leaves_while_it_takes_partitions_gives_them_up():
    """b is given two at 70 s and takes five seconds over it; it is closed at 72 s, so at 75 s."""
    pace = Pace(callback_ms={Callback.ASSIGNED: 5_000})
    settled = played(join("a"), join("b", at=MINUTE), e.Leave("b", at_ms=72_000), pace=pace)
    assert calls(settled, "b")[1:] == [(75_000, "Assigned", 2), (75_000, "Revoked", 2)]
    assert [each for one in settled for each in one.double_owners] == []
    assert {each.member for each in settled[-1].consumed if each.until_ms is None} == {"a"}


def test_who_is_fenced_while_it_revokes_loses_that_too():
    """Kafka's client names what it had when it heard of it: seen live (tests/live/test_timed_reality.py)."""
    pace = Pace(callback_ms={Callback.REVOKED: 20_000})
    settled = played(join("a"), join("b", at=MINUTE), pace=pace, rebalance_timeout_ms=10_000, rests=False)
    assert [each[1:] for each in calls(settled, "a")][:3] == [("Assigned", 4), ("Revoked", 2), ("Lost", 4)]


def test_events_happen_at_their_own_moment():
    """b comes a second after a while a is still in onPartitionsAssigned, and c while b waits."""
    pace = Pace(callback_ms={Callback.ASSIGNED: 5_000})
    settled = played(join("a"), join("b", at=1), join("c", at=2), pace=pace)
    assert [each.timed.at_ms for each in settled[:2]] == [1_000, 2_000]
    assert [each.timed.rebalancing for each in settled] == [True, True, False]
    assert settled[-1].unowned == ()


def test_an_event_comes_before_the_heartbeat_of_the_same_moment():
    grown = played(join("a"), e.SetPartitions("t", 6, at_ms=20_000))[-1]
    assert beats(grown, "a")[0] == (20_000, 2, 3, "STABLE")


def test_who_hangs_in_a_callback_returns_from_it_when_it_goes_on():
    pace = Pace(callback_ms={Callback.ASSIGNED: 5_000})
    away = [e.Hang("b", at_ms=72_000), e.Resume("b", at_ms=90_000)]
    assert calls(played(join("a"), join("b", at=MINUTE), *away, pace=pace), "b")[-1] == (90_000, "Assigned", 2)


def test_what_comes_to_a_process_that_closes_to_restart_waits_until_it_runs_again():
    pace = Pace(callback_ms={Callback.REVOKED: 2_000})
    again = [e.Restart("b", at_ms=100_000), e.Subscribe("b", ("u",), at_ms=101_000)]
    settled = played(join("a"), join("b", at=MINUTE), *again, pace=pace)
    assert settled[-1].running == {"a": 1, "b": 2}
    assert [each.call.partitions for each in settled[-1].calls if each.member == "b"][:1] == [(("t", 2), ("t", 3))]


@pytest.mark.parametrize(
    ("events", "each", "message"),
    [
        ([join("a"), e.Hang("a"), e.Leave("a")], {}, "'a' is hung; it cannot leave before it resumes"),
        ([join("a"), e.CutOff("a"), e.Pause("a")], {}, "'a' is cut off; it cannot pause before it resumes"),
        ([join("a"), e.Crash("a"), e.Expire("a")], {}, "'a' is to expire; where a script has times, sessions end"),
        ([join("a"), e.Resume("a")], {}, "'a' runs; expected one that is paused, hangs or is cut off"),
        ([join("a"), classic("b"), e.Hang("b")], {}, "'b' cannot hang: it follows the classic protocol"),
        ([join("a", at=5), join("b", at=4)], {}, "at_ms is 4,000 after an event at 5,000"),
        ([join("a", rebalance_timeout_ms=9_000)], {}, "rebalance_timeout_ms of 'a' is 9,000; expected it in times"),
        ([join("a")], {"processing_ms": 9_000, "rebalance_timeout_ms": 9_000}, "processing_ms is 9,000, and rebal"),
    ],
)
def test_what_cannot_be_is_refused(events, each, message):
    with pytest.raises(Fault) as refused:
        played(*events, **each)
    assert refused.value.message.startswith(message)


def test_without_anything_that_takes_time_a_clock_changes_nothing():
    events = [join("a"), join("b", at=MINUTE), join("c", at=2 * MINUTE), e.Leave("a", at_ms=180_000)]
    timed, plain = played(*events, rate=None), simulate(Script({"t": 4}, events))
    assert [each.owners for each in timed] == [each.owners for each in plain]
    assert [each.unavailable_ms for each in timed[1:]] == [each.unavailable_ms for each in plain[1:]]
    assert [each.calls for each in timed[1:]] == [each.calls for each in plain[1:]]


@pytest.mark.parametrize("first", range(0, RUNS, BATCH))
def test_no_record_is_passed_over_whatever_protocol_members_follow(first, monkeypatch):
    """Random histories, half of them with classic members, in which each event settles."""
    made = simulated_group.Records.__init__
    monkeypatch.setattr(simulated_group.Records, "__init__", lambda self, rate: made(self, rate, committed=Forward()))
    for seed in range(first, min(first + BATCH, RUNS)):
        each = MemberTimes(round_trip_ms=(0, 4)[seed % 3 == 0], processing_ms=(0, 50, 700)[seed % 5 % 3])
        history = History(seed, EVENTS, classic=seed % 2 == 0, times=Times(each, records_per_second=9))
        for settled in history.play():
            assert settled.failure is None, f"seed {seed}"
            assert settled.timed.read.never == {}, f"seed {seed}"
            ends = [(each.since_ms, each.until_ms or settled.timed.at_ms) for each in settled.timed.outages]
            assert all(since_ms < until_ms for since_ms, until_ms in ends), f"seed {seed}"


def test_who_is_fenced_before_it_closes_loses_all_and_does_not_come_back():
    """a revokes from 65 s on, is fenced at 75 s, hears of it, and is closed at 80 s: once it has revoked."""
    pace = Pace(callback_ms={Callback.REVOKED: 20_000})
    events = [join("a"), join("b", at=MINUTE), e.Leave("a", at_ms=80_000), join("a", at=200)]
    settled = played(*events, pace=pace, rebalance_timeout_ms=10_000, rests=False)
    assert calls(settled[2:3], "a") == [(85_000, "Revoked", 2), (85_000, "Lost", 4)]
    assert settled[2].running == {"b": 1}
    assert calls(settled[3:], "a")[0] == (200_000, "Assigned", 0)


def test_who_is_fenced_while_it_closes_stays_away():
    """b closes at 100 s, for 20 s; c and d join at 101 s, so b has eight seconds from 105 s on to revoke one."""
    pace = Pace(callback_ms={Callback.REVOKED: 20_000})
    events = [join("a"), join("b", at=MINUTE), e.Leave("b", at_ms=100_000), join("c", at=101), join("d", at=101)]
    settled = played(*events, pace=pace, of={"b": MemberTimes(rebalance_timeout_ms=8_000)})
    assert calls(settled[2:], "b") == [(120_000, "Revoked", 2)]
    assert "UNKNOWN_MEMBER_ID" in [row.error for row in settled[4].coordinated.heartbeats if row.member == "b"]
    assert settled[-1].running == {"a": 1, "c": 1, "d": 1}


def test_who_loses_all_sends_no_heartbeat_until_it_has():
    """b hears at 160 s that it is no member; its listener needs twelve seconds, more than two heartbeats."""
    pace = Pace(callback_ms={Callback.LOST: 12_000})
    away = [e.CutOff("b", at_ms=100_000), e.Resume("b", at_ms=160_000)]
    settled = played(join("a"), join("b", at=MINUTE), *away, pace=pace)
    assert calls(settled[3:], "b") == [(172_000, "Lost", 2), (172_000, "Assigned", 0), (177_000, "Assigned", 2)]
    assert [row.at_ms for row in settled[3].coordinated.heartbeats if row.error is not None] == [160_000]


def test_a_session_that_ends_between_two_events_leaves_a_classic_group_at_that_moment():
    """b, the last of the consumer protocol, is heard of at 95 s: until 140 s nobody has its two partitions."""
    settled = played(classic("a"), join("b", at=MINUTE), e.Crash("b", at_ms=100_000), e.Wait(at_ms=400_000))
    assert [each for each in calls(settled[3:], "a") if each[1] == "Assigned"] == [(140_000, "Assigned", 2)]
    lost = (TopicPartition("t", 2), TopicPartition("t", 3))
    assert settled[3].unavailable_ms == dict.fromkeys(lost, 40_000)
    assert settled[3].timed.outages == tuple((each, 100_000, 140_000) for each in lost)
    assert (settled[3].timed.at_ms, settled[3].owners) == (400_000, {TopicPartition("t", at): "a" for at in range(4)})


def test_who_hangs_while_it_loses_all_loses_it_once():
    """b is told at 160 s, its listener needs twelve seconds, and it hangs in it past its longest poll interval."""
    pace = Pace(callback_ms={Callback.LOST: 12_000})
    times = [e.CutOff("b", at_ms=100_000), e.Resume("b", at_ms=160_000), e.Hang("b", at_ms=165_000)]
    of = {"b": MemberTimes(rebalance_timeout_ms=10_000)}
    settled = played(join("a"), join("b", at=MINUTE), *times, e.Resume("b", at_ms=200_000), pace=pace, of=of)
    assert [each[1] for each in calls(settled[3:], "b")] == ["Lost", "Assigned", "Assigned"]
    assert (settled[-1].running, settled[-1].unowned) == ({"a": 1, "b": 1}, ())


def test_what_nobody_had_before_an_event_and_after_it_is_added_up():
    """Until b's session ends, and while c is given two of a's."""
    slow = Pace(callback_ms={Callback.ASSIGNED: 700})
    events = [classic("a"), join("b", at=MINUTE), e.Crash("b", at_ms=100_000), classic("c", at=400)]
    settled = played(*events, pace=slow, rate=None)
    apart = played(*events[:3], e.Wait(at_ms=400_000), events[3], pace=slow, rate=None)
    added = {each: apart[3].unavailable_ms.get(each, 0) + apart[4].unavailable_ms.get(each, 0) for each in T}
    assert settled[3].unavailable_ms == {each: ms for each, ms in added.items() if ms}
    assert min(apart[4].unavailable_ms.values()) >= 700


def test_a_static_member_that_hangs_in_its_callback_is_fenced_when_its_time_to_revoke_is_over():
    """a hears at 65 s that it has to revoke two, polls at 70 s, and hangs there; at 75 s b may have all."""
    pace = Pace(callback_ms={Callback.REVOKED: 20_000})
    events = [join("a", group_instance_id="i"), join("b", at=MINUTE), e.Hang("a", at_ms=72_000)]
    settled = played(*events, pace=pace, of={"a": MemberTimes(processing_ms=7_000, rebalance_timeout_ms=10_000)})
    assert next(each for each in calls(settled, "b") if each[2]) == (75_000, "Assigned", 4)


def test_an_outage_that_ends_with_the_settlement_has_ended():
    """b takes at 70 s what a gave up at 65 s, and nothing follows."""
    settled = played(join("a"), join("b", at=MINUTE))
    assert settled[-1].timed.at_ms == 70_000
    assert [(each.since_ms, each.until_ms) for each in settled[-1].timed.outages] == [(65_000, 70_000)] * 2
    assert played(join("a"), e.Crash("a", at_ms=MINUTE * 1_000))[-1].timed.outages == ()


def test_what_nobody_wants_any_more_is_no_outage():
    """u is wanted by b alone, whose session ends at 140 s; the group is a classic one from then on."""
    events = [classic("a"), join("b", "t", "u", at=MINUTE), e.Crash("b", at_ms=100_000), e.Wait(at_ms=400_000)]
    times = Times(MemberTimes(), {})
    settled = simulate(Script({"t": 4, "u": 1}, events, times=times, consumer_group=ConsumerGroupSettings()))
    outages = {each.partition: each[1:] for each in settled[3].timed.outages}
    assert outages[TopicPartition("t", 3)] == (100_000, 140_000)
    assert TopicPartition("u", 0) not in outages


def test_the_session_of_one_that_hangs_and_is_killed_ends_later_than_its_poll_interval():
    """Nobody leaves for it at 130 s; its last heartbeat was at most five seconds before 110 s."""
    away = [e.Hang("b", at_ms=100_000), e.Crash("b", at_ms=110_000)]
    settled = played(join("a"), join("b", at=MINUTE), *away, rebalance_timeout_ms=30_000)
    ((at_ms, call, moved),) = calls(settled[3:], "a")
    assert (call, moved) == ("Assigned", 2)
    assert at_ms >= 105_000 + 45_000


@pytest.mark.parametrize(("topic", "at_rest_ms"), [("t", 65_000), ("z", 61_000)])
def test_a_topic_that_nobody_subscribes_to_brings_no_heartbeat_news(topic, at_rest_ms):
    settled = played(join("a"), e.SetPartitions(topic, 5, at_ms=61_000))
    assert settled[-1].timed.at_ms == at_rest_ms


def test_the_time_to_revoke_begins_anew_with_each_revocation():
    """a has 60 s, and takes 50 s for each: from 65 s on for b and c, from 115 s on for d."""
    pace = Pace(callback_ms={Callback.REVOKED: 50_000})
    joins = join("a"), join("b", at=60), join("c", at=100), join("d", at=101)
    settled = played(*joins, e.Wait(at_ms=400_000), pace=pace, rebalance_timeout_ms=60_000)
    gone = [each for each in calls(settled, "a") if each[1] != "Assigned"]
    assert gone == [(115_000, "Revoked", 2), (165_000, "Revoked", 1)]


def test_an_expression_is_resolved_with_the_first_heartbeat():
    joined = played(e.Join("a", topic_regex="t", group_protocol=e.GroupProtocol.CONSUMER))
    assert calls(joined, "a") == [(0, "Assigned", 0), (0, "Assigned", 4)]


def test_a_classic_member_commits_when_it_leaves():
    """k's last auto-commit was at 30 s."""
    left = played(classic("k"), e.Leave("k", at_ms=33_000), join("a", at=MINUTE))
    assert (twice(left), left[-1].timed.read.never) == (0, {})


def test_a_static_member_that_closes_while_it_revokes_has_its_seat_for_a_session():
    """a is told at 65 s, and has 20 s; it closes at 69 s, and its last heartbeat is of 70 s."""
    away = join("a", group_instance_id="i"), join("b", at=MINUTE), e.Leave("a", at_ms=66_000)
    settled = played(*away, rebalance_timeout_ms=20_000, pace=Pace(callback_ms={Callback.REVOKED: 4_000}))
    assert calls(settled, "b") == [(60_000, "Assigned", 0), (70_000, "Assigned", 2), (115_000, "Assigned", 2)]


def test_who_reads_and_commits_nothing_reads_until_the_end():
    """b, cut off, reads t-2 and t-3 for 200.5 s, a as much once b is fenced, and before it gave them up, at 65 s."""
    away = [e.CutOff("b", at_ms=100_000), e.Wait(at_ms=200_500)]
    settled = played(join("a"), join("b", at=MINUTE), *away, commits_ms=0)
    assert twice(settled) == 2 * 100 * (65 + 200.5)


def test_a_static_member_that_closes_while_it_has_to_revoke_keeps_its_seat_for_its_session():
    """The 15 s that it had to revoke are no longer counted: it was last heard at 65 s."""
    static = join("a", group_instance_id="i"), join("b", at=MINUTE), e.Leave("a", at_ms=66_000)
    slow = MemberTimes(processing_ms=12_000, rebalance_timeout_ms=15_000)
    settled = played(*static, e.Wait(at_ms=200_000), of={"a": slow})
    assert calls(settled, "b")[1:] == [(70_000, "Assigned", 2), (110_000, "Assigned", 2)]


def test_one_that_leaves_during_a_call_sends_nothing_more():
    """a is to revoke at 65 s, and has not by 85 s."""
    pace = Pace(callback_ms={Callback.REVOKED: 100_000})
    settled = played(join("a"), join("b", at=60), pace=pace, rebalance_timeout_ms=20_000, rests=False)
    rows = [row for row in settled[-1].coordinated.heartbeats if row.member == "a" and row.at_ms < 165_000]
    assert [(row.at_ms, row.error) for row in rows] == [(65_000, None)]


def test_a_session_is_counted_from_the_last_heartbeat_however_many_events_lie_before_the_end():
    """b heartbeats at 1, 6, 11 s and so on, and a at 5, 10, 15 s."""
    waits = e.Wait(at_ms=100_500), e.Crash("b", at_ms=102_000)
    settled = played(join("a"), join("b", at=6), *waits)
    assert {outage.until_ms for outage in settled[-1].timed.outages} == {101_000 + 45_000 + 4_000}
