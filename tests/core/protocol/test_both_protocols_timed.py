"""Groups with a clock and members of both protocols: classic, a consumer group, and classic again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.protocol import events as e
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


def test_a_classic_member_has_its_own_session_timeout_and_heartbeats_whatever_the_type_of_its_group():
    for events in (CLASSIC_AGAIN, CLASSIC_AGAIN[:3]):
        events = *events, e.Crash("b", at_ms=150_500), e.Wait(at_ms=400_000)
        found = outages(played(*events, session_timeout_ms=10_000, heartbeat_interval_ms=1_000))[-1]
        assert {until_ms for _, _, until_ms in found} == {160_000}


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
