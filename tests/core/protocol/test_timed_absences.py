"""Members of a group with a clock that stand still, are cut off, start again or come too late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes
from groupledger.core.protocol.settlement import Pace
from tests.core.protocol.timed_groups import RANGE, SETTLED_MS, join, listened, played


def test_an_answer_on_its_way_to_a_member_that_is_cut_off_is_lost():
    """SyncGroup is answered at 5,500 ms, half a round trip away."""
    settled = played(join("a"), e.CutOff("a", at_ms=5_700), e.Resume("a", at_ms=20_000), round_trip_ms=1_000)
    assert listened(settled) == [(22_000, "a", "Assigned", [0, 1, 2, 3])]


def test_who_starts_again_comes_after_those_who_stayed():
    settled = played(join("a"), join("b"), e.Restart("a", at_ms=SETTLED_MS))
    assert [list(each.running) for each in settled] == [["a"], ["a", "b"], ["b", "a"]]


def test_who_stood_still_for_its_longest_poll_interval_leaves_when_it_goes_on():
    """Its session has not ended, and nobody has asked it to join."""
    away = [e.Pause("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + 20_000)]
    settled = played(join("a"), join("b"), *away, session_timeout_ms=60_000, rebalance_timeout_ms=10_000)
    assert next(each[2:] for each in listened(settled[3:], "b")) == ("Lost", [1, 3])


def test_a_static_one_that_hangs_stays_silent_when_others_join():
    """b has given up its seat without a word at 120 s; the round of c waits for the end of its session alone."""
    joins = [join(name, static=True) for name in "ab"]
    events = *joins, e.Hang("b", at_ms=SETTLED_MS), join("c", 125_000)
    settled = played(*events, rebalance_timeout_ms=20_000, session_timeout_ms=10_000)
    first = settled[-1].rounds[0]
    assert (first.started_ms, first.ended_ms) == (125_000, 117_000 + 3_000 + 10_000)


def test_one_that_never_looks_at_its_assignment_was_answered_and_is_silent():
    """Its heartbeat of 102,000 ms is its last: its session ends 10 s later."""
    events = join("a"), join("b"), e.LoseAssignment("b", at_ms=SETTLED_MS), join("c", SETTLED_MS + 1)
    settled = played(*events, session_timeout_ms=10_000)
    lost, after, *_ = settled[-1].rounds
    assert [(row.answered, row.joins_again) for row in lost.members if row.member == "b"] == [(True, False)]
    assert after.started_ms == 112_000
    assert "b" not in {row.member for row in after.members}


def test_who_hears_at_once_that_it_is_no_member_reads_nothing_more():
    away = [e.Pause("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + 60_000)]
    settled = played(join("a"), join("b"), *away)
    assert [each.double_owners for each in settled] == [()] * 4
    assert [each.member for each in settled[3].consumed if each.until_ms == each.since_ms] == []


def test_the_session_of_one_that_crashes_while_it_waits_begins_with_its_answer():
    """b joins at 100 s and crashes; a polls at 102 s, for which the coordinator waits."""
    settled = played(
        *(join("a"), join("b", SETTLED_MS), e.Crash("b", at_ms=SETTLED_MS + 100)),
        processing_ms=1_000,
        session_timeout_ms=10_000,
    )
    assert listened(settled)[1:] == [(102_000, "a", "Revoked", [2, 3]), (112_000, "a", "Assigned", [2, 3])]


def test_nothing_happens_before_the_first_event():
    assert listened(played(join("a", 60_000))) == [(63_000, "a", "Assigned", [0, 1, 2, 3])]


def test_an_event_comes_before_what_is_due_at_the_same_moment():
    assert listened(played(join("a"), e.Leave("a", at_ms=3_000))) == []
    assert len(listened(played(join("a"), e.Leave("a", at_ms=3_001)))) == 2


def test_who_comes_back_while_others_wait_for_their_assignments_is_told_of_the_generation_at_once():
    """a, the leader, joins for the follow-up at 102,066 ms, and is cut off before b does, at 105,010 ms."""
    away = [e.CutOff("a", at_ms=103_000), e.Resume("a", at_ms=112_000)]
    settled = played(join("a"), join("b", SETTLED_MS), *away, round_trip_ms=2, processing_ms=30)
    assert listened(settled[3:]) == [(112_058, "b", "Assigned", [2, 3])]


def test_what_a_member_gives_up_before_it_joins_is_of_the_round_that_it_joins():
    settled = played(join("a", 0, RANGE), join("b", SETTLED_MS, RANGE))
    assert {each.round for each in settled[1].calls if each.member == "a"} == {2}


def test_who_stands_still_owns_nothing_at_the_end():
    settled = played(join("a"), join("b", SETTLED_MS), e.Pause("b", at_ms=200_000), e.Wait(at_ms=201_000))
    assert set(settled[1].owners.values()) == {"a", "b"}
    assert set(settled[2].owners.values()) == {"a"}


def test_who_has_not_joined_when_the_rebalance_timeout_is_over_is_no_member():
    """b stands still; its session is longer than that."""
    events = [join("a"), join("b", SETTLED_MS), e.Pause("b", at_ms=200_000), join("c", 200_001), e.Wait(at_ms=220_000)]
    settled = played(*events, session_timeout_ms=60_000, rebalance_timeout_ms=10_000)
    assert (set(settled[3].owners.values()), settled[3].unowned) == ({"a", "c"}, ())


def test_who_was_to_poll_when_it_was_stopped_polls_as_much_later():
    """a works for 20 s; what it is told at 106,000 ms, when b has joined again as well, it sees at 123,000 ms."""
    away = [e.Pause("a", at_ms=110_000), e.Resume("a", at_ms=112_000)]
    settled = played(join("a"), join("b", SETTLED_MS), *away, processing_ms=20_000)
    assert listened(settled, "b") == [(125_000, "b", "Assigned", [2, 3])]


def test_the_session_of_one_that_hangs_and_is_started_again_ends_then():
    """Its last heartbeat was at 108,000 ms; until its session ends the new process waits for it."""
    away = [e.Hang("a", at_ms=SETTLED_MS), e.Restart("a", at_ms=SETTLED_MS + 10_000)]
    settled = played(join("a"), join("b"), *away)
    assert listened(settled[3:], "a") == [(153_000, "a", "Assigned", [0, 2])]


def test_an_answer_to_what_was_asked_before_a_cut_is_nothing_to_one_that_joins_again():
    """SyncGroup is answered at 11,800 ms, for 13,800 ms; a joins again at 11,800 ms."""
    settled = played(join("a"), e.CutOff("a", at_ms=11_600), e.Resume("a", at_ms=11_700), round_trip_ms=4_000)
    assert listened(settled) == [(19_700, "a", "Assigned", [0, 1, 2, 3])]


def test_who_sends_join_group_again_while_the_leader_assigns_starts_no_other_round():
    """b's JoinGroup arrives at 101,500 ms; its answer, at 103,500 ms, is lost; a assigns until 123,500 ms."""
    away = [e.CutOff("b", at_ms=102_000), e.Resume("b", at_ms=105_000)]
    pace = Pace(callback_ms={Callback.ASSIGN: 20_000})
    settled = played(join("a", 0, RANGE), join("b", SETTLED_MS, RANGE), *away, round_trip_ms=1_000, pace=pace)
    assert listened(settled, "b") == [(124_000, "b", "Assigned", [2, 3])]
    assert sum(len(each.rounds) for each in settled[1:]) == 1


@pytest.mark.parametrize(("grown_ms", "first"), [(100_500, "Lost"), (101_000, "Assigned")])
def test_no_heartbeat_is_sent_while_user_data_is_made(grown_ms, first):
    """It takes 4 s, and the session 6 s; a's last heartbeat before it is at 98,000 ms or at 101,000 ms."""
    events = e.SetPartitions("t", 6, at_ms=grown_ms), e.Leave("b", at_ms=grown_ms + 200)
    pace = Pace(callback_ms={Callback.USER_DATA: 4_000})
    settled = played(join("a"), join("b"), *events, pace=pace, session_timeout_ms=6_000)
    assert listened(settled[2:], "a")[0][2] == first


def test_who_stood_still_for_less_than_its_poll_interval_is_a_member_when_it_goes_on():
    away = [e.Pause("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + 9_999)]
    settled = played(join("a"), join("b"), *away, session_timeout_ms=60_000, rebalance_timeout_ms=10_000)
    assert listened(settled[2:]) == []


def test_one_whose_seat_another_process_took_is_waited_for_no_longer():
    """b is to send SyncGroup while a assigns until 123,500 ms; its session would end after all others are at rest."""
    pace = Pace(callback_ms={Callback.ASSIGN: 20_000})
    away = [e.Crash("b", at_ms=105_000), e.Restart("b", at_ms=106_000)]
    joins = join("a", 0, RANGE), join("b", SETTLED_MS, RANGE, static=True)
    settled = played(*joins, *away, round_trip_ms=1_000, pace=pace)
    assert listened(settled[3:])[-1][0] == settled[3].timed.at_ms == 146_000


def test_a_session_that_has_ended_is_waited_for_no_longer():
    away = [e.Pause("a", at_ms=50_000), e.Resume("a", at_ms=200_000)]
    settled = played(join("a"), *away)
    assert listened(settled[2:])[-1][0] == settled[2].timed.at_ms == 203_000


def test_one_whose_session_ends_while_it_makes_user_data_hears_of_it_with_the_answer_to_join_group():
    """No heartbeat tells it, though the others rebalance meanwhile."""
    events = e.SetPartitions("t", 6, at_ms=100_500), e.Leave("b", at_ms=100_700)
    pace = Pace(callback_ms={Callback.USER_DATA: 5_000})
    settled = played(join("a"), join("b"), *events, pace=pace, session_timeout_ms=6_000, round_trip_ms=400)
    assert listened(settled[2:], "a")[0] == (105_500 + 400, "a", "Lost", [0, 2])


def test_nothing_more_happens_to_one_that_closes():
    closing = join("a"), join("b"), e.Leave("b", at_ms=SETTLED_MS)
    pace = Pace(callback_ms={Callback.REVOKED: 4_000})
    with pytest.raises(Fault, match="there is no process 'b'"):
        played(*closing, e.Pause("b", at_ms=SETTLED_MS + 1_000), pace=pace)


def test_who_waits_for_the_leader_longer_than_a_session_stays_a_member():
    """It heartbeats from its JoinGroup's answer on."""
    pace = Pace(callback_ms={Callback.ASSIGN: 60_000})
    settled = played(replace(join("a"), together=True), join("b"), pace=pace, rebalance_timeout_ms=300_000)
    assert [member for _, member, *_ in listened(settled)] == ["b", "a"]
    assert [len(each.rounds) for each in settled] == [0, 1]


def test_a_syncgroup_of_the_rebalance_before_is_not_answered_in_the_next_one():
    """b waits in SyncGroup until a, which has crashed as the leader, is removed at 73 s; it is far away, and asks c,
    the next leader, again at 89 s."""
    joins = [replace(join(name), together=True) for name in "acb"]
    pace = Pace(callback_ms={Callback.ASSIGN: 1_000})
    away = [e.Crash("a", at_ms=15_500), e.Wait(at_ms=200_000)]
    settled = played(*joins, *away, pace=pace, of={"b": MemberTimes(round_trip_ms=8_000)}, rests=False)
    left = next(took for one in settled for took in one.rounds if took.ended_ms == 73_000)
    assert [(each.member, each.answered, each.joins_again) for each in left.members] == [
        ("a", False, False),
        ("c", False, True),
        ("b", False, True),
    ]
    assert listened(settled)[-2:] == [(82_000, "c", "Assigned", [2]), (93_000, "b", "Assigned", [0, 3])]


def test_one_that_is_cut_off_shares_what_another_took_until_it_is_killed():
    """Nothing happens between what a takes at 144 s and that b is killed."""
    away = [e.CutOff("b", at_ms=SETTLED_MS), e.Crash("b", at_ms=150_000)]
    *_, cut_off, killed = played(join("a"), join("b"), *away)
    assert {each[1:] for each in cut_off.double_owners} == {(("b", "a"), 144_000, None)}
    assert {each[1:] for each in killed.double_owners} == {(("b", "a"), 144_000, 150_000)}


@pytest.mark.parametrize("timeout_ms", [3_000, 3_001, 5_000])
def test_an_empty_group_waits_for_newcomers_for_a_rebalance_timeout_at_most(timeout_ms):
    """3 s, and once more since b came; never longer in all than a may take to join again."""
    settled = played(join("a"), join("b", 1_000), rebalance_timeout_ms=timeout_ms)
    assert {at_ms for at_ms, *_ in listened(settled)} == {timeout_ms}


def test_who_waits_for_its_group_ends_when_another_process_takes_its_instance_id():
    """a works for 20 s, so that b still waits when c comes."""
    b, c = (e.Join(name, ("t",), ("cooperative-sticky",), "i", at_ms=at) for name, at in (("b", 61_000), ("c", 62_000)))
    settled = played(join("a"), b, c, of={"a": MemberTimes(processing_ms=20_000)})
    assert [list(each.running) for each in settled] == [["a"], ["a", "b"], ["a", "c"]]
    assert listened(settled, "b") == []


def test_a_group_does_not_wait_for_a_newcomer_whose_first_request_was_its_last():
    """b is told its member id at 61,010 ms, has crashed by then, and is forgotten 10 s after it asked."""
    events = join("a"), join("c", 60_000), join("b", 60_010), e.Crash("b", at_ms=60_800), e.Wait(at_ms=400_000)
    settled = played(*events, round_trip_ms=1_000, session_timeout_ms=10_000)
    assert listened(settled)[1:] == [(72_010, "a", "Revoked", [2, 3]), (77_010, "c", "Assigned", [2, 3])]


def test_who_is_cut_off_in_a_callback_gives_nothing_up_until_it_reaches_the_coordinator_again():
    """a hears of the rebalance at 6,000 ms, and is called until 13,000 ms."""
    away = [e.CutOff("a", at_ms=8_000), e.Resume("a", at_ms=40_000)]
    pace = Pace(callback_ms={Callback.ASSIGNED: 10_000})
    settled = played(join("a", 0, RANGE), join("b", 5_000, RANGE), *away, pace=pace)
    assert listened(settled, "a")[:2] == [
        (13_000, "a", "Assigned", [0, 1, 2, 3]),
        (40_000, "a", "Revoked", [0, 1, 2, 3]),
    ]


def test_one_that_never_looked_at_an_assignment_looks_at_the_next_one_when_it_is_back():
    away = e.LoseAssignment("b", at_ms=SETTLED_MS), join("c", SETTLED_MS + 1), e.Resume("b", at_ms=SETTLED_MS + 60_000)
    settled = played(join("a"), join("b"), *away, session_timeout_ms=10_000)
    assert set(settled[-1].owners.values()) == {"a", "b", "c"}


def test_who_works_for_as_long_as_it_may_stays():
    settled = played(join("a"), e.Wait(at_ms=60_000), processing_ms=5_000, rebalance_timeout_ms=5_000)
    assert listened(settled) == [(3_000, "a", "Assigned", [0, 1, 2, 3])]


def test_who_hangs_in_a_callback_leaves_when_the_poll_that_it_is_in_has_lasted_for_its_poll_interval():
    """a is called from 8,000 ms on; b has waited for it since 13,000 ms."""
    events = join("a", 5_000), e.Hang("a", at_ms=12_000), join("b", 13_000)
    pace = Pace(callback_ms={Callback.ASSIGNED: 7_000})
    settled = played(*events, pace=pace, processing_ms=1_000, rebalance_timeout_ms=20_000)
    assert listened(settled) == [(28_000 + 7_000, "b", "Assigned", [0, 1, 2, 3])]


def test_who_is_refused_its_assignment_since_the_group_has_moved_on_joins_again_with_that_answer():
    """a's SyncGroup is answered at 40,000 ms; the answer to a heartbeat would come at 43,000 ms."""
    events = join("a", 5_000, static=True), join("b", 10_000, static=True), e.Leave("b", at_ms=12_000)
    settled = played(*events, round_trip_ms=8_000, rebalance_timeout_ms=10_000)
    joins = [each for one in settled for each in one.calls if each.call.callback is Callback.USER_DATA]
    assert [each.started_ms for each in joins if each.member == "a"] == [5_000, 24_000, 40_000]


def test_a_static_member_that_has_closed_owns_nothing_in_the_round_that_still_has_its_seat():
    """b leaves in the middle of the two rounds of c's coming."""
    events = (
        join("a", static=True),
        join("b", static=True),
        join("c", SETTLED_MS),
        e.Leave("b", at_ms=SETTLED_MS + 2_500),
    )
    settled = played(*events, round_trip_ms=50, rests=False)
    rows = [row for one in settled[2:] for each in one.rounds for row in each.members if row.member == "b"]
    assert [len(row.owned) for row in rows] == [2, 0]
