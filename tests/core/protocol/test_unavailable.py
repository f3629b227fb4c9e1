"""What an event costs: partitions that nobody consumes, in rounds and in milliseconds, absent members included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.settlement import Outage, Pace
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.protocol.timed.timed_group import Outages
from groupledger.core.rebalance.step import Form
from tests.core.protocol.drawn import script
from tests.core.protocol.played import listener_calls, owners_of, t

PACE = Pace(round_ms=100, callback_ms={Callback.REVOKED: 40, Callback.ASSIGNED: 10})


def joins(assignor="cooperative-sticky", static=False, names="ab"):
    return [e.Join(name, ("t",), (assignor,), f"i-{name}" if static else None) for name in names]


def cost(*events, settled_by=2, pace=PACE):
    """Partition-rounds, partition-milliseconds and rounds of all that follows the joins."""
    settled = simulate(Script({"t": 4}, events, pace=pace))[settled_by:]
    rounds = sum(sum(each.unavailable_rounds.values()) for each in settled)
    return rounds, sum(sum(each.unavailable_ms.values()) for each in settled), sum(len(each.rounds) for each in settled)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range", "sticky"])
@pytest.mark.parametrize("static", [False, True])
def test_a_restart_costs_what_leaving_and_joining_again_costs(assignor, static):
    group = joins(assignor, static)
    restarted = cost(*group, e.Restart("b", at_ms=1_000))
    left = [e.Leave("b", at_ms=1_000), replace(group[1], at_ms=1_000)]
    assert restarted == cost(*group, *left)
    assert restarted == cost(*group, e.Leave("b", at_ms=1_000), e.Restart("b", at_ms=1_000))


def test_a_dynamic_member_that_restarts_is_missed_twice():
    """Two partitions wait for the others' round, go to a, and wait again until a has revoked them."""
    rounds, waited_ms, count = cost(*joins(), e.Restart("b", at_ms=1_000))
    assert (rounds, count) == (4, 3)
    assert waited_ms == 2 * 110 + 2 * (10 + 100 + 10)  # a's onPartitionsAssigned after it revoked; the round; b's
    settled = simulate(Script({"t": 4}, [*joins(), e.Restart("b")]))[-1]
    assert listener_calls(settled, "b")[0] == "onPartitionsRevoked t-2 t-3"
    assert owners_of(settled) == {"a": ["t-0", "t-1"], "b": ["t-2", "t-3"]}


def test_a_restart_together_with_the_next_event_is_one_round():
    rounds, _, count = cost(*joins(), e.Restart("b", together=True), e.SetPartitions("t", 4))
    assert (rounds, count) == (2, 1)


def test_a_static_member_that_is_down_for_ten_seconds_costs_ten_seconds_of_each_of_its_partitions():
    away = [e.Crash("b", at_ms=5_000), e.Restart("b", at_ms=15_000)]
    settled = simulate(Script({"t": 4}, [*joins(static=True), *away], pace=PACE))
    assert settled[2].unavailable_ms == {}
    assert settled[3].unavailable_ms == dict.fromkeys(t(2, 3), 10_010)
    assert [each.rounds for each in settled[2:]] == [(), ()]


def test_a_static_member_that_is_down_is_missed_through_a_round_of_the_others():
    """The second before it, and its 110 ms; then the rest."""
    away = [e.Crash("b", at_ms=5_000), e.Subscribe("a", ("t", "u"), at_ms=6_000), e.Wait(at_ms=8_000)]
    settled = simulate(Script({"t": 4}, [*joins(static=True), *away], pace=PACE))
    assert [each.unavailable_ms for each in settled[3:]] == [dict.fromkeys(t(2, 3), ms) for ms in (1_110, 1_890)]


@pytest.mark.parametrize("gone", [e.Crash, e.Pause])
def test_who_is_away_is_missed_while_others_come_and_its_session_runs_out(gone):
    """Five seconds until the session ends, then the round in which a takes over."""
    away = [gone("b", at_ms=5_000), e.Expire("b", at_ms=10_000)]
    settled = simulate(Script({"t": 4}, [*joins(), *away], pace=PACE))
    assert settled[3].unavailable_ms == dict.fromkeys(t(2, 3), 5_000 + 110)


def test_the_round_of_an_eager_group_is_time_in_which_nobody_consumes():
    """From the end of the one's onPartitionsRevoked to the end of the next one's onPartitionsAssigned."""
    settled = simulate(Script({"t": 4}, joins("range"), pace=PACE))
    assert settled[0].unavailable_ms == dict.fromkeys(t(0, 1, 2, 3), 40 + 100 + 10)
    assert settled[1].unavailable_ms == dict.fromkeys(t(0, 1, 2, 3), 100 + 10)


@pytest.mark.parametrize("end", [e.Leave, e.Crash])
def test_who_left_crashed_or_lost_its_session_can_be_restarted(end):
    """With the topics that it had subscribed to last."""
    gone = [end("b"), *([e.Expire("b")] if end is e.Crash else [])]
    settled = simulate(Script({"t": 4, "u": 1}, [*joins(), e.Subscribe("b", ("u",)), *gone, e.Restart("b")]))[-1]
    assert owners_of(settled) == {"a": ["t-0", "t-1", "t-2", "t-3"], "b": ["u-0"]}
    assert settled.running == {"a": 1, "b": 2}


def test_one_that_stands_still_can_be_restarted():
    settled = simulate(Script({"t": 4}, [*joins(), e.Pause("b", at_ms=5_000), e.Restart("b", at_ms=6_000)]))[-1]
    assert owners_of(settled) == {"a": ["t-0", "t-1"], "b": ["t-2", "t-3"]}
    assert settled.running == {"a": 1, "b": 2}


def test_the_last_member_restarts():
    settled = simulate(Script({"t": 2}, [*joins(names="a"), e.Restart("a")]))[-1]
    assert owners_of(settled) == {"a": ["t-0", "t-1"]}
    assert [each.members == () for each in settled.rounds] == [True, False]


def test_without_a_pace_and_times_nothing_takes_time():
    assert cost(*joins(), e.Restart("b"), pace=Pace())[1] == 0


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("seed", range(15))
def test_no_partition_waits_longer_than_time_passes(seed, form):
    drawn = script(seed, 30, form)
    timed = [replace(event, at_ms=1_000 * at) for at, event in enumerate(drawn.events)]
    clock_ms = 0
    for settled in simulate(replace(drawn, events=timed, pace=PACE)):
        end_ms = max([settled.event.at_ms, clock_ms, *(each.ended_ms for each in settled.calls)])
        assert all(0 < waited <= end_ms - clock_ms + 100 for waited in settled.unavailable_ms.values())
        missing = {each for took in settled.rounds for each in took.unavailable}
        assert {each for each in missing if each in settled.owners} <= settled.unavailable_ms.keys()
        clock_ms = end_ms


CLOCKED = {"classic": e.GroupProtocol.CLASSIC, "consumer": e.GroupProtocol.CONSUMER}


@pytest.mark.parametrize("protocol", CLOCKED.values(), ids=CLOCKED)
def test_an_outage_that_ends_with_the_next_event_is_told_with_its_end(protocol):
    a, b = (e.Join(name, ("t",), group_protocol=protocol, at_ms=at_ms) for name, at_ms in (("a", 0), ("b", 105_000)))
    times = Times(MemberTimes(round_trip_ms=40))
    hung = [a, e.Hang("a", at_ms=100_000), e.Resume("a", at_ms=110_000)]
    assert outages(simulate(Script({"t": 2}, hung, times=times))[1:]) == [[(100_000, None)], [(100_000, 110_000)]]
    paused = [a, e.Pause("a", at_ms=100_000), b, e.Resume("a", at_ms=110_000)]
    *lasting, ((since_ms, until_ms), (again_ms, _)) = outages(simulate(Script({"t": 2}, paused, times=times))[1:])
    assert lasting == [[(100_000, None)]] * 2
    assert (since_ms, until_ms) == (100_000, 110_000)
    assert again_ms > 110_000, "a revokes it for b"


def outages(settled):
    """Of t-1, in each settlement."""
    return [[each[1:] for each in one.timed.outages if each.partition == t(1)[0]] for one in settled]


def test_what_is_missed_until_an_event_and_again_in_its_rebalance_counts_both_times():
    """a owns t-0 and t-1, leads, and stands still from 5 s to 15 s; it sees then that t has grown at 6 s."""
    away = [e.Pause("a", at_ms=5_000), e.SetPartitions("t", 6, at_ms=6_000), e.Resume("a", at_ms=15_000)]
    grown, back = simulate(Script({"t": 4}, [*joins("range"), *away], pace=PACE))[-2:]
    assert grown.unavailable_ms == dict.fromkeys(t(0, 1), 1_000)
    rebalance_ms = 100 + 10
    again = dict.fromkeys(t(0, 1), 9_000 + rebalance_ms) | dict.fromkeys(t(2, 3), rebalance_ms)
    assert back.unavailable_ms == again | dict.fromkeys(t(4, 5), 9_000 + 40 + rebalance_ms)


def test_what_nobody_consumes_for_no_time_is_no_outage():
    seen = Outages()
    seen.see(5, {TopicPartition("t", 0)})
    seen.see(5, set())
    assert seen.take(5) == ((), {})


def test_an_outage_of_a_millisecond_counts():
    seen = Outages()
    seen.see(5, set(t(0)))
    seen.see(6, set())
    assert seen.take(6) == ((Outage(t(0)[0], 5, 6),), {t(0)[0]: 1})
