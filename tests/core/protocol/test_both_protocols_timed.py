"""Groups with a clock and members of both protocols: classic, a consumer group, and classic again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.settlement import Pace
from tests.core.protocol.consumer_groups import classic, join
from tests.core.protocol.test_consumer_timed import MINUTE, calls, played, twice

CLASSIC_AGAIN = (classic("a"), classic("b", at=10), join("c", at=30), e.Leave("c", at_ms=60_000))
"""A group that had a member of the consumer protocol for half a minute."""


def outages(settled):
    """`(partition, from, to)` of each event in turn."""
    return [[(each.partition.partition, *each[1:]) for each in one.timed.outages] for one in settled]


def test_while_the_group_is_classic_the_session_of_one_that_crashed_ends_before_the_next_event_or_at_last():
    crash = e.Crash("b", at_ms=150_000)
    gone = [(2, 150_000, 195_000), (3, 150_000, 195_000)]
    for wait, told in (((), [gone]), ((e.Wait(at_ms=400_000),), [[], gone])):
        settled = played(*CLASSIC_AGAIN, crash, *wait)
        assert outages(settled[4:]) == told
        assert [type(each.event) for each in settled[4:]] == [e.Crash, *(type(each) for each in wait)]
        assert calls(settled[4:], "a")[-1] == (195_000, "Assigned", 2)


def test_while_the_group_is_classic_a_crash_repeats_what_was_not_committed():
    """b committed at 145 s: 500 records of each of its partitions are read again."""
    settled = played(*CLASSIC_AGAIN, e.Crash("b", at_ms=150_000), e.Wait(at_ms=200_000))
    assert (twice(settled), settled[-1].timed.read.never) == (2 * 500, {})


@pytest.mark.parametrize(("resumed_ms", "lost"), [(195_000, 0), (195_001, 2)])
def test_while_the_group_is_classic_who_stood_still_for_a_session_loses_all(resumed_ms, lost):
    settled = played(*CLASSIC_AGAIN, e.Pause("b", at_ms=150_000), e.Resume("b", at_ms=resumed_ms))
    assert outages(settled[5:]) == [[(2, 150_000, 195_000), (3, 150_000, 195_000)]]
    assert sum(partitions for _, callback, partitions in calls(settled[5:], "b") if callback == "Lost") == lost


def test_while_the_group_is_classic_a_round_begins_the_session_of_a_silent_static_member_anew():
    static = replace(CLASSIC_AGAIN[1], group_instance_id="i-b")
    events = CLASSIC_AGAIN[0], static, *CLASSIC_AGAIN[2:], e.Pause("b", at_ms=150_000), classic("d", at=180)
    ended = played(*events, e.Wait(at_ms=300_000))[-1]
    assert {until_ms for _, _, until_ms in outages([ended])[0]} == {225_000}


def test_before_a_group_is_a_consumer_group_its_members_have_the_times_of_the_script():
    """b's last heartbeat was at 58 s; a takes over a session later, which was 10 s."""
    crash = e.Crash("b", at_ms=60_000), e.Wait(at_ms=90_000), join("c", at=200)
    settled = played(classic("a"), classic("b", at=10), *crash, session_timeout_ms=10_000)
    assert outages(settled)[3] == [(2, 60_000, 68_000), (3, 60_000, 68_000)]


def test_a_classic_member_has_its_own_session_timeout_and_heartbeats_whatever_the_type_of_its_group():
    for events in (CLASSIC_AGAIN, CLASSIC_AGAIN[:3]):
        events = *events, e.Crash("b", at_ms=150_500), e.Wait(at_ms=400_000)
        found = outages(played(*events, session_timeout_ms=10_000, heartbeat_interval_ms=1_000))[-1]
        assert {until_ms for _, _, until_ms in found} == {160_000}


def test_a_classic_member_that_crashes_before_it_hears_of_the_consumer_group_has_its_own_session_timeout():
    """c makes it a consumer group at 30 s, and b crashes before its next heartbeat; members like c have 45 s."""
    events = *CLASSIC_AGAIN[:2], replace(CLASSIC_AGAIN[2], together=True), e.Crash("b", at_ms=31_000)
    found = outages(played(*events, e.Wait(at_ms=200_000), session_timeout_ms=10_000))[-1]
    assert {until_ms for _, _, until_ms in found} == {40_000}


def test_who_stood_still_while_its_group_was_classic_commits_in_the_next_consumer_group():
    """c is given a partition at 160 s, commits each 5 s, and crashes 2 s after it has: 200 records are read again, and
    those of two partitions from 55 to 60 s, when it stood still.
    """
    away = [e.Pause("c", at_ms=60_000), e.Wait(at_ms=120_000), join("d", at=130), e.Resume("c", at_ms=150_000)]
    crash = [e.Wait(at_ms=200_000), e.Crash("c", at_ms=232_000), e.Wait(at_ms=300_000)]
    settled = played(classic("a"), join("c", at=10), *away, *crash)
    assert [each.coordinated is None for each in settled[2:5]] == [False, True, False]
    assert twice(settled) == 200 + 2 * 500


def test_a_group_of_both_protocols_counts_its_records_through_both_changes_of_its_type():
    """One event after the other: classic, then a member of the consumer protocol for a minute, then classic again."""
    events = [
        classic("a"),
        classic("b", at=10),
        join("c", at=MINUTE),
        e.Leave("c", at_ms=120_000),
        e.Wait(at_ms=180_000),
    ]
    settled = played(*events)
    assert [each.coordinated is not None for each in settled] == [False, False, True, True, False]
    assert twice(settled) == 0
    assert settled[-1].timed.read.never == {}
    crash = played(*events[:3], e.Crash("a", at_ms=90_000), e.Wait(at_ms=180_000))
    assert 0 < twice(crash) <= 2 * 5 * 100


@pytest.mark.parametrize("events", [CLASSIC_AGAIN, CLASSIC_AGAIN[:3]])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize(("resumed_ms", "late"), [(159_999, False), (160_000, True)])
def test_a_classic_member_that_stood_still_for_its_longest_poll_interval_leaves_when_it_goes_on(
    events, static, resumed_ms, late
):
    """Whatever the type of its group. A dynamic one says so; a static one takes back its seat."""
    b = replace(events[1], group_instance_id="i-b") if static else events[1]
    away = e.Pause("b", at_ms=150_000), e.Resume("b", at_ms=resumed_ms)
    times = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 10_000}
    settled = played(events[0], b, *events[2:], *away, e.Wait(at_ms=300_000), **times)
    assert [each[1] for each in calls(settled[-2:], "b")].count("Lost") == late
    assert set(settled[-1].owners.values()) == set(settled[-1].running)
    others = [callback for _, callback, partitions in calls(settled[-2:], "a") if partitions]
    assert bool(others) == (late and not static)


SLOW_MS = 100_000
"""A call of more than a session timeout; the heartbeat thread goes on."""


def test_a_classic_member_has_its_own_time_to_revoke_when_its_group_becomes_a_consumer_group():
    """a hears of c at 33 s, and has not returned from onPartitionsRevoked by 53 s; c heartbeats each 5 s."""
    pace = Pace(callback_ms={Callback.REVOKED: SLOW_MS})
    times = {"session_timeout_ms": 200_000, "rebalance_timeout_ms": 20_000}
    settled = played(classic("a"), join("c", at=30), e.Leave("c", at_ms=40_000), pace=pace, **times, rests=False)
    assert next(each for each in calls(settled, "c") if each[2]) == (55_000, "Assigned", 4)


@pytest.mark.parametrize(("slow", "taken_ms"), [(Callback.ASSIGNED, 705_000), (Callback.REVOKED, 605_000)])
def test_a_classic_member_of_a_consumer_group_heartbeats_during_its_calls(slow, taken_ms):
    settled = played(classic("a"), join("c", at=500), pace=Pace(callback_ms={slow: SLOW_MS}))
    assert calls(settled, "c")[-1] == (taken_ms, "Assigned", 2)
    assert "Lost" not in {callback for _, callback, _ in calls(settled, "a")}


def test_a_classic_member_of_a_consumer_group_that_is_told_to_join_during_a_call_joins_right_after_it():
    """c gives up t-2 and t-3 at 205 s, while a is in its second call, of nothing."""
    settled = played(join("c"), classic("a", at=100), pace=Pace(callback_ms={Callback.ASSIGNED: SLOW_MS}))
    told = calls(settled, "a")
    assert told[told.index((303_000, "Assigned", 0)) :][1:3] == [
        (303_000, "subscriptionUserData", 0),
        (303_000, "onAssignment", 2),
    ]


def test_a_classic_member_that_a_consumer_group_drops_during_a_call_loses_all_right_after_it():
    """The coordinator waits from 36 s to 56 s for it to revoke."""
    pace = Pace(callback_ms={Callback.REVOKED: SLOW_MS})
    settled = played(classic("a"), join("c", at=30), pace=pace, rebalance_timeout_ms=20_000, rests=False)
    told = calls(settled, "a")
    assert told[told.index((133_000, "Revoked", 2)) :][1:4] == [
        (133_000, "onAssignment", 2),
        (133_000, "Assigned", 0),
        (133_000, "Lost", 2),
    ]
    joined = next(row for row in settled[-1].coordinated.heartbeats if row.member == "a" and row.at_ms == 133_000)
    assert (joined.sent_epoch, joined.owned) == (0, ())


def test_an_eager_classic_member_that_is_dropped_while_it_revokes_for_joining_loses_nothing_more():
    pace = Pace(callback_ms={Callback.REVOKED: SLOW_MS})
    events = classic("a", assignors=("range",)), join("c", at=30)
    settled = played(*events, pace=pace, rebalance_timeout_ms=20_000, rests=False)
    told = calls(settled, "a")
    assert told[told.index((203_000, "Revoked", 4)) :][1:3] == [
        (203_000, "subscriptionUserData", 0),
        (303_000, "Revoked", 0),
    ]


def test_a_classic_member_of_a_consumer_group_sends_no_heartbeat_while_it_makes_user_data():
    """It takes 50 s over that, in which its session ends, 45 s after it heard of c."""
    pace = Pace(callback_ms={Callback.USER_DATA: 50_000})
    settled = played(classic("a"), join("c", at=200), pace=pace, rests=False)
    assert next(each for each in calls(settled, "c") if each[2]) == (250_000, "Assigned", 4)
