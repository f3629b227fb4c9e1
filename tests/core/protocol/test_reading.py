"""What members of either protocol read and commit by themselves, where records are counted."""

from __future__ import annotations

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import MemberTimes, Times
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.simulator import simulate
from tests.core.protocol.consumer_groups import classic, join


@pytest.mark.parametrize("member", [classic, join])
@pytest.mark.parametrize("away", [e.Hang, e.Pause])
def test_who_does_not_poll_commits_nothing(member, away):
    """It commits every 5 s, and polls all the time until 62 s: ten records a second."""
    events = member("a"), away("a", at_ms=62_000), e.Wait(at_ms=90_000), e.Wait(at_ms=99_000)
    settled = simulate(Script({"t": 1}, events, times=Times(MemberTimes(), {}, 3_000, 10)))
    committed = [offset for each in settled for offset in each.timed.read.committed.values()]
    assert len(committed) == 4
    assert len(set(committed)) == 1
    assert 570 <= committed[0] <= 620


def test_a_member_of_a_consumer_group_that_stood_still_reads_on_until_it_hears_that_it_lost_all():
    """Nobody commits. 7,000 are read twice when a takes over, the 5,100 of the pause when b goes on, and 11,501 when b
    has its partitions again, and begins at 0.
    """
    events = join("a"), join("b", at=10), e.Pause("b", at_ms=60_000), e.Resume("b", at_ms=111_000)
    times = Times(MemberTimes(round_trip_ms=4), {}, 3_000, 100, 0)
    twice = simulate(Script({"t": 4}, events, times=times))[-1].timed.read.twice
    assert {at: count for (_, at), count in twice.items()} == dict.fromkeys((2, 3), 7_000 + 5_100 + 11_501)


@pytest.mark.parametrize(
    "joined",
    [
        e.Join("a", ("t", "u"), ("range",)),
        e.Join("a", ("t", "u"), ("cooperative-sticky",)),
        join("a", "t", "u"),
    ],
    ids=["range", "cooperative-sticky", "consumer"],
)
def test_a_topic_that_is_made_again_is_read_from_its_beginning(joined):
    """The broker takes no commit for a topic that is gone, and the new log is another one."""
    made_again = e.DeleteTopic("t", at_ms=60_000), e.Wait(at_ms=61_000), e.SetPartitions("t", 1, at_ms=68_000)
    events = joined, *made_again, e.Wait(at_ms=150_000), e.Wait(at_ms=160_000)
    times = Times(MemberTimes(processing_ms=9_000), {}, 3_000, 10)
    settled = simulate(Script({"t": 1, "u": 1}, events, times=times))
    committed = [sorted(name for name, _ in each.timed.read.committed) for each in settled[:3]]
    assert committed == [["t", "u"], ["u"], ["u"]]
    read = settled[-1].timed.read
    assert (read.twice, read.never) == ({}, {})
    assert read.committed["t", 0] > 0
