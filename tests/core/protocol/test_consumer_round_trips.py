"""Consumer groups in which an answer is always on its way to somebody: they come to rest none the less."""

from __future__ import annotations

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.settlement import Pace
from tests.core.protocol.consumer_groups import beats, classic, join, run
from tests.core.protocol.test_consumer_timed import calls, played

TEN = [join(f"m{number}", at=number * 11) for number in range(10)]
"""With round trips of 2 s: ten heartbeats of 2 s in every 5 s."""
SLOW = Pace(round_ms=2_000, callback_ms={Callback.ASSIGNED: 700})


@pytest.mark.parametrize("took_ms", [1_000, 4_000, 6_000])
def test_who_is_answered_late_says_what_it_has_revoked_after_that_answer(took_ms):
    """a is told at 64 s to revoke, hears of it at 68 s and speaks at 69 s, 4 s before it is answered that."""
    pace = Pace(callback_ms={Callback.REVOKED: took_ms})
    joined = played(join("a"), join("b", at=60), round_trip_ms=4_000, pace=pace)[-1]
    said_ms = max(69_000 + 4_000, 68_000 + took_ms)
    assert beats(joined, "a") == [(64_000, 2, 2, "UNREVOKED_PARTITIONS"), (said_ms, 2, 3, "STABLE")]
    assert calls([joined], "a")[0] == (68_000 + took_ms, "Revoked", 2)


@pytest.mark.parametrize("timed", [False, True])
def test_members_whose_heartbeats_overlap_come_to_rest_with_all_that_they_are_given(timed):
    last = e.Leave("m9", at_ms=300_000)
    settled = played(*TEN, last, round_trip_ms=2_000, pace=SLOW) if timed else run(*TEN, last, pace=SLOW)
    assert [each.failure for each in settled] == [None] * 11
    assert {row.epoch for row in settled[-1].coordinated.members} == {settled[-1].coordinated.epoch}
    assert [each.unowned for each in settled] == [()] * 11


@pytest.mark.parametrize("member", ["m0", "m3", "m8"])
def test_an_answer_that_is_lost_is_asked_for_before_the_group_is_at_rest(member):
    lost = e.MissAssignment(member, 1, at_ms=300_000), e.Leave("m9", at_ms=310_000), e.Wait(at_ms=400_000)
    assert run(*TEN, *lost, pace=SLOW)[-1].coordinated.heartbeats == ()


@pytest.mark.parametrize("member", [each.member for each in TEN])
def test_the_next_answer_after_a_group_has_come_to_rest_is_that_of_the_next_heartbeat(member):
    """It is lost, and so the member says once more what it said."""
    *_, grown = run(*TEN, e.MissAssignment(member, at_ms=300_000), e.SetPartitions("t", 20, at_ms=310_000), pace=SLOW)
    told = [(row.sent_epoch, row.epoch) for row in grown.coordinated.heartbeats if row.member == member]
    assert told[:2] == [(11, 12), (11, 12)]


@pytest.mark.parametrize("member", [each.member for each in TEN])
def test_one_that_stands_still_after_its_group_has_come_to_rest_waits_for_no_answer(member):
    """What it is told when it goes on is the answer to what it says then: that it is no member any more."""
    back = run(*TEN, e.Pause(member, at_ms=300_000), e.Resume(member, at_ms=400_000), pace=SLOW)[-1]
    assert beats(back, member)[0][3] == "UNKNOWN_MEMBER_ID"
    assert back.double_owners == ()


CLOSING = join("a"), join("b", at=10), e.Leave("b", at_ms=60_000)
LONG = Pace(callback_ms={Callback.REVOKED: 10_000})


def test_who_closes_can_do_nothing_but_crash_and_come_again():
    with pytest.raises(Fault, match="no process 'b'"):
        played(*CLOSING, e.Subscribe("b", ("t", "u"), at_ms=62_000), pace=LONG)
    crashed = played(*CLOSING, e.Crash("b", at_ms=62_000), e.Wait(at_ms=200_000), pace=LONG)
    assert [list(each.running) for each in crashed][-2:] == [["a"], ["a"]]
    assert calls(crashed, "b")[-1][1] == "Assigned"
    again = played(*CLOSING, e.Restart("b", at_ms=62_000), e.Wait(at_ms=200_000), pace=LONG)
    assert again[-1].running == {"a": 1, "b": 2}


@pytest.mark.parametrize("member", [join, classic])
def test_who_goes_on_before_its_session_is_over_consumes_again_from_then_on(member):
    back = run(join("b"), member("a", at=10), e.Pause("a", at_ms=60_000), e.Resume("a", at_ms=61_000))[-1]
    assert {(each.since_ms, each.until_ms) for each in back.consumed if each.member == "a"} == {(61_000, None)}


AROUND = range(105_000, 125_000, 500)
"""Milliseconds about the time at which a member says that it has what another had, whose session is over."""
SLOWER = Pace(3_000, SLOW.callback_ms)


def test_one_that_stood_still_does_not_read_on_for_an_answer_of_before():
    """b's session ends at 105 s, a takes its partitions and says so, and stands still; c has all of them meanwhile."""
    for paused_ms in AROUND:
        away = (
            e.Crash("b", at_ms=60_000),
            e.Pause("a", at_ms=paused_ms),
            join("c", at=300),
            e.Resume("a", at_ms=400_000),
        )
        back = run(join("a"), join("b", at=10), *away, pace=SLOWER, heartbeat_interval_ms=1_000)[-1]
        assert beats(back, "a")[0][3] == "UNKNOWN_MEMBER_ID"
        assert back.double_owners == ()


def test_one_that_stands_still_while_its_group_is_classic_and_a_consumer_group_again_hears_nothing_of_before():
    """b's session ends as a's did above, and for ten seconds only the classic member is left."""
    for paused_ms in AROUND:
        left = e.Crash("a", at_ms=60_000), e.Pause("b", at_ms=paused_ms), e.Wait(at_ms=300_000)
        events = (
            classic("z"),
            join("a", at=10),
            join("b", at=20),
            *left,
            join("c", at=310),
            e.Resume("b", at_ms=400_000),
        )
        *_, alone, _, back = run(*events, pace=SLOWER, heartbeat_interval_ms=1_000)
        assert alone.coordinated is None
        assert {row.member for row in back.coordinated.members} == {"z", "b", "c"}
        assert (back.unowned, back.double_owners) == ((), ())


def test_who_is_cut_off_for_its_longest_poll_interval_polls_meanwhile_and_does_not_leave():
    away = [e.CutOff("b", at_ms=100_000), e.Resume("b", at_ms=140_000)]
    settled = played(join("a"), join("b", at=60), *away, rebalance_timeout_ms=30_000, round_trip_ms=4)
    assert calls(settled[2:], "b") == []
