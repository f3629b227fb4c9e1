"""Listeners inside a group with times and members of both protocols, which turns from one type into the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.settlement import Pace
from groupledger.listener import rehearse
from tests.core.protocol.consumer_groups import classic, join
from tests.core.protocol.drawn_consumer_groups import History
from tests.core.protocol.test_both_protocols_timed import CLASSIC_AGAIN
from tests.listener import timed_listeners as listeners
from tests.listener.test_timed import CONVICTED, convicted

ZOMBIE = (e.Pause("b", at_ms=150_000), e.Resume("b", at_ms=200_000))
TROUBLE = (e.Expire, e.Pause, e.Resume, e.MissAssignment)
NO_TOPIC = "the cluster does not have"
RATE = 10


def script(*events, pace=None, **each):
    times = Times(MemberTimes(round_trip_ms=4, **each), {}, 3_000, RATE)
    return Script({"t": 4}, list(events), times=times, pace=pace or Pace())


@pytest.mark.parametrize(("make", "found"), CONVICTED.values(), ids=CONVICTED.keys())
def test_each_fault_of_a_listener_is_a_verdict(make, found):
    group = script(*CLASSIC_AGAIN, *ZOMBIE, rebalance_timeout_ms=20_000, processing_ms=100)
    assert convicted(rehearse(group, make)) == found


def test_a_process_keeps_its_listener_and_its_positions_through_both_changes_of_its_groups_type():
    made = []

    def make():
        made.append(listeners.Careful())
        return made[-1]

    played = rehearse(script(*CLASSIC_AGAIN), make)
    assert len(made) == 3
    committed = [each for each in played.journal if each.did == "commit"]
    assert [(each.member, len(each.partitions)) for each in committed] == [("a", 2), ("b", 1), ("c", 1)]
    for each in committed:
        read = [told.offset for told in each.offsets]
        assert max(read) - min(read) <= 1
        assert each.at_ms * RATE // 1_000 - 1 <= read[0] <= each.at_ms * RATE // 1_000
    assert (played.settlements[-1].timed.read.twice, played.settlements[-1].timed.read.never) == ({}, {})


def test_who_joins_a_group_that_was_abandoned_sees_the_clock_of_its_own_one():
    events = join("c"), e.Pause("c", at_ms=60_000), classic("d", at=130), e.Leave("d", at_ms=150_000)
    (committed,) = [each for each in rehearse(script(*events), listeners.Careful).journal if each.did == "commit"]
    assert (committed.member, committed.at_ms) == ("d", 150_000)
    assert {told.offset for told in committed.offsets} == {1_500}


@pytest.mark.parametrize(("classic_too", "first", "change"), [(True, 0, 4), (True, 10, 4), (False, 60, 0)])
def test_nobody_accuses_a_careful_listener_where_nothing_goes_wrong(classic_too, first, change):
    """Random histories in which members and topics come and go; with classic members most change the group's type.

    What a listener can do nothing about is that a topic is gone when it commits.
    """
    changed = 0
    for seed in range(first, first + 10):
        times = Times(
            MemberTimes(round_trip_ms=(0, 4)[seed % 3 == 0], processing_ms=(0, 50)[seed % 2]), {}, 3_000, RATE
        )
        drawn = History(seed, 30, classic=classic_too, times=times)
        group, events, now_ms = drawn.script(), [], 0
        topics = dict(drawn.topics)
        for settled in drawn.play():
            now_ms = max(now_ms, settled.event.at_ms)
            if not isinstance(settled.event, TROUBLE):
                events.append(replace(settled.event, at_ms=now_ms))
        played = rehearse(replace(group, topics=topics, events=events), listeners.Careful)
        assert [each for each in played.convicted if NO_TOPIC not in each.error] == [], f"seed {seed}"
        assert played.settlements[-1].timed.read.never == {}, f"seed {seed}"
        changed += len({each.coordinated is None for each in played.settlements}) > 1
    assert changed >= change


@pytest.mark.parametrize("member", [classic, join])
def test_a_topic_that_is_made_again_is_read_from_its_beginning_though_nobody_saw_that_it_was_gone(member):
    """a commits offset 600 when it leaves; b comes to a log that is shorter than that, and reads 700 records of it."""
    anew = e.DeleteTopic("t", at_ms=70_000), e.SetPartitions("t", 4, at_ms=80_000)
    events = member("a"), e.Leave("a", at_ms=60_000), *anew, member("b", at=90), e.Wait(at_ms=150_000)
    read = rehearse(script(*events), listeners.Careful).settlements[-1].timed.read
    assert read.never == {}
    assert set(read.ends.values()) == {700}


class Counting(listeners.Careful):
    """Asks how many partitions the topic has."""

    def __init__(self, told):
        self.told = told

    def on_partitions_assigned(self, partitions, consumer):
        if partitions:
            self.told.append((len(consumer.partitions_for("t")), sorted(consumer.list_topics())))


@pytest.mark.parametrize("member", [classic, join])
def test_a_topic_that_is_made_again_has_the_partitions_that_it_was_made_with(member):
    told = []
    anew = e.DeleteTopic("t", at_ms=70_000), e.SetPartitions("t", 6, at_ms=80_000)
    rehearse(script(member("a"), e.Leave("a", at_ms=60_000), *anew, member("b", at=90)), lambda: Counting(told))
    assert told == [(4, ["t"]), (6, ["t"])]


def test_an_offset_of_the_old_topic_that_is_committed_under_the_same_name_loses_nothing():
    """a revokes all when the topic is made again, and commits what it had read of the old one; it goes on at 0."""
    anew = e.DeleteTopic("t", at_ms=100_000), e.SetPartitions("t", 4, at_ms=100_010)
    played = rehearse(script(join("a"), *anew, join("b", at=110), e.Wait(at_ms=250_000)), listeners.Careful)
    commits = [(each.at_ms, [told.offset for told in each.offsets]) for each in played.journal if each.did == "commit"]
    assert commits == [(100_010, [1_000] * 4), (110_022, [100, 100])]
    read = played.settlements[-1].timed.read
    assert (read.twice, read.never, played.convicted) == ({}, {}, [])


@pytest.mark.parametrize("member", [classic, join])
@pytest.mark.parametrize(("spent_ms", "did"), [(7_000, set()), (30_000, {"expelled"})])
def test_a_callback_in_which_the_process_stands_still_is_too_long_where_it_would_have_been_without_that(
    member, spent_ms, did
):
    """b is called at 60 s or soon after, and stands still from 66 s on until its session is over."""
    events = member("a"), member("b", at=60), e.Pause("b", at_ms=66_000), e.Resume("b", at_ms=160_000)
    pace = Pace(callback_ms={Callback.ASSIGNED: spent_ms})
    played = rehearse(script(*events, pace=pace, rebalance_timeout_ms=20_000), listeners.Silent)
    assert {each.did for each in played.convicted if each.callback is Callback.ASSIGNED} & {"expelled"} == did


@pytest.mark.parametrize(("at", "expelled"), [(61, False), (65, True)])
def test_a_callback_that_begins_late_in_a_round_may_be_too_long_for_what_is_left_of_it(at, expelled):
    """a works for 20 s between two polls: it hears at 88 s of the round that began with b, and revokes for 25 s."""
    a, b = (classic(name, at=begins, assignors=("range",)) for name, begins in (("a", 0), ("b", at)))
    pace = Pace(callback_ms={Callback.REVOKED: 25_000})
    times = {"rebalance_timeout_ms": 30_000, "processing_ms": 20_000}
    played = rehearse(script(a, b, e.Wait(at_ms=300_000), pace=pace, **times), listeners.Careful)
    assert ("expelled" in {each.did for each in played.convicted}) is expelled


@pytest.mark.parametrize("member", [classic, join])
def test_what_a_listener_spent_in_earlier_callbacks_does_not_count(member):
    """b is called for 7 s again and again, for the last time while it stands still."""
    more = e.SetPartitions("t", 8, at_ms=150_000), e.SetPartitions("t", 12, at_ms=250_000)
    away = e.Pause("b", at_ms=256_000), e.Resume("b", at_ms=400_000)
    pace = Pace(callback_ms={Callback.ASSIGNED: 7_000})
    played = rehearse(
        script(member("a"), member("b", at=60), *more, *away, pace=pace, rebalance_timeout_ms=20_000), listeners.Silent
    )
    assert "expelled" not in {each.did for each in played.convicted}
