"""Random histories of groups with a clock: what must hold in each. GROUPLEDGER_CLOCK_RUNS draws more of them."""

from __future__ import annotations

import os
from itertools import combinations, pairwise

import pytest

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol import simulated_group
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.simulator import simulate
from tests.core.protocol.drawn_times import consumer_script, hasty_script, mixed_script, timed_script

RUNS = int(os.environ.get("GROUPLEDGER_CLOCK_RUNS", "60"))
EVENTS = 30
BATCH = 20
STOPS = (e.Crash, e.Pause, e.Hang, e.Restart)
GIVEN_UP = (Callback.REVOKED, Callback.LOST)


class Forward(dict[TopicPartition, int]):
    """Committed offsets that are only ever replaced by later ones."""

    def update(self, told):
        for partition, offset in told.items():
            assert offset >= self.get(partition, 0), f"{partition} was at {self[partition]}, and {offset} is committed"
        super().update(told)


def spans_of(settled):
    """From calls and events alone: (partition, member, from, to), with None for still; what a zombie keeps is left out.

    From where onPartitionsAssigned returned to where onPartitionsRevoked or onPartitionsLost did, or to where the
    process crashed, restarted or stood still.
    """
    stops = [(each.event.at_ms, each.event.member, None) for each in settled if isinstance(each.event, STOPS)]
    calls = [each for one in settled for each in one.calls]
    ends = [(each.ended_ms, each.member, set(each.call.partitions)) for each in calls if each.call.callback in GIVEN_UP]
    for each in (each for each in calls if each.call.callback is Callback.ASSIGNED):
        for partition in each.call.partitions:
            later = [
                at_ms
                for at_ms, name, gone in [*stops, *ends]
                if name == each.member and at_ms >= each.ended_ms and (gone is None or partition in gone)
            ]
            yield partition, each.member, each.ended_ms, min(later, default=None)


def doubles(settled):
    """Partitions that two consumed at the same time, for some of it: with the pair."""
    found = set()
    for first, second in combinations(spans_of(settled), 2):
        (partition, one, since_ms, until_ms), (another, other, begun_ms, ended_ms) = first, second
        ends = [each for each in (until_ms, ended_ms) if each is not None]
        if partition == another and one != other and (not ends or max(since_ms, begun_ms) < min(ends)):
            found.add((partition, frozenset((one, other))))
    return found


@pytest.fixture
def _offsets_go_forward(monkeypatch):
    made = simulated_group.Records.__init__

    def watched(self, per_second):
        made(self, per_second, committed=Forward())

    monkeypatch.setattr(simulated_group.Records, "__init__", watched)


@pytest.mark.usefixtures("_offsets_go_forward")
@pytest.mark.parametrize("first", range(0, RUNS, BATCH))
def test_random_histories(first):
    for seed in range(first, min(first + BATCH, RUNS)):
        check(seed, zombies=seed % 3 != 0)


@pytest.mark.usefixtures("_offsets_go_forward")
@pytest.mark.parametrize("first", range(0, RUNS // 2, BATCH))
def test_random_histories_of_members_of_all_kinds(first):
    """Eager and cooperative ones in one group, with generations or without: what must hold is the same."""
    for seed in range(first, min(first + BATCH, RUNS // 2)):
        check(seed, zombies=seed % 3 != 0, draw=mixed_script)


@pytest.mark.usefixtures("_offsets_go_forward")
@pytest.mark.parametrize("first", range(0, RUNS, BATCH))
def test_random_histories_of_consumer_groups(first):
    """Members of the consumer protocol (KIP-848), which has no rounds: what must hold is the same."""
    for seed in range(first, min(first + BATCH, RUNS)):
        check(seed, zombies=seed % 3 != 0, draw=consumer_script)


def test_a_slow_member_that_answers_late_does_not_keep_the_others_rebalancing():
    """Seed 701: its SyncGroup came too late in each round, since others joined again without a reason."""
    check(701, zombies=True)


def check(seed, *, zombies, draw=timed_script):
    script = draw(seed, EVENTS, zombies=zombies)
    settled = simulate(script)
    told = f"seed {seed}"
    assert [each.failure or each.refused for each in settled if each.failure or each.refused] == [], told
    last = settled[-1]
    assert not last.timed.rebalancing, told
    assert last.unowned == (), told
    assert last.timed.read.never == {}, told
    assert set(last.owners) <= last.timed.read.ends.keys(), told
    named = {(each.partition, frozenset(each.members)) for one in settled for each in one.double_owners}
    assert doubles(settled) <= named, told
    excused = fenced_unheard(script, settled) if draw is consumer_script else set()
    assert zombies or all(any((each, partition) in excused for each in members) for partition, members in named), told
    times_hold(settled, told)


def fenced_unheard(script, settled):
    """(process, partition) where one missed that it had to revoke, and read on until it knew that it was fenced."""
    missed = {each.member for each in script.events if isinstance(each, e.MissAssignment)}
    calls = [each for one in settled for each in one.calls if each.call.callback is Callback.LOST]
    return {(each.member, partition) for each in calls if each.member in missed for partition in each.call.partitions}


def times_hold(settled, told):
    """Clocks never go back, rounds do not overlap, and nobody misses a partition for longer than time passes."""
    ends = [each.timed.at_ms for each in settled]
    assert ends == sorted(ends), told
    for before, after in pairwise([None, *settled]):
        begun_ms = 0 if before is None else before.timed.at_ms
        assert all(0 < each <= after.timed.at_ms - begun_ms for each in after.unavailable_ms.values()), told
        assert all(each.started_ms <= each.ended_ms <= after.timed.at_ms for each in after.calls), told
    rounds = [took for each in settled for took in each.rounds]
    assert [each.number for each in rounds] == list(range(1, len(rounds) + 1)), told
    assert [each.generation for each in rounds] == sorted({each.generation for each in rounds}), told


@pytest.mark.parametrize("seed", range(10))
def test_the_same_script_gives_the_same_answer(seed):
    assert simulate(timed_script(seed, EVENTS)) == simulate(timed_script(seed, EVENTS))


@pytest.mark.parametrize("seed", range(8))
def test_whatever_runs_out_the_group_goes_on(seed):
    """Timeouts about as long as what members do: nobody may be served, and still no time, owner or record is lost."""
    settled = simulate(hasty_script(seed, EVENTS))
    assert settled[-1].timed.read.never == {}
    times_hold(settled, f"seed {seed}")
    named = {(each.partition, frozenset(each.members)) for one in settled for each in one.double_owners}
    assert doubles(settled) <= named
