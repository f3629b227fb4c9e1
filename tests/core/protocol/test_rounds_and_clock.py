"""With times and without: where each event has time to settle and nobody is away, the same calls, rounds and owners."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import takewhile
from random import Random

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import KAFKA_PYTHON, ByteCode
from groupledger.core.protocol.consumer import Times
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.registry import JAVA, LIBRDKAFKA
from groupledger.core.rebalance.step import Form
from tests.core.protocol.drawn import MOST_PARTITIONS, TOPICS, Story

APART_MS = 1_000_000
LIBRARIES = (JAVA, LIBRDKAFKA, KAFKA_PYTHON)
ASSIGNORS = [("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",), ("cooperative-sticky", "range")]


class Present(Story):
    """Nobody is away: no static member that left, none that crashed or stands still."""

    def next(self):
        choices = [self.join, self.join, self.set_partitions, self.delete_topic]
        if len(self.talking) > 1:
            choices += [self.leave, self.subscribe, self.subscribe, self.freeze, self.freeze]
        if self.frozen:
            choices += [self.refresh, self.refresh]
        return self.random.choice(choices)()

    def join(self):
        event = super().join()
        if not isinstance(event, e.Join):
            return event
        self.static.clear()
        code, library = self.random.choice(list(ByteCode)), self.random.choice(LIBRARIES)
        return replace(event, group_instance_id=None, byte_code=code, library=library)


def script(seed, form, assignors):
    random = Random(f"{seed} {form} {assignors}")  # noqa: S311 - the same seed gives the same story
    topics = {topic: random.randint(1, MOST_PARTITIONS) for topic in TOPICS}
    story = Present(random, assignors, dict(topics))
    return Script(topics, [replace(story.next(), at_ms=APART_MS * at) for at in range(20)], form)


def story_of(settlement):
    """Calls member by member: whose comes first is a matter of the clock."""
    calls = defaultdict(list)
    for each in settlement.calls:
        calls[each.member].append((each.call, each.generation))
    return settlement.owners, settlement.unowned, settlement.refused, len(settlement.rounds), calls


def until_failure(settled):
    """Those before a leader fails, as kafka-python's roundrobin does if not all subscribe to the same topics."""
    return list(takewhile(lambda each: each.failure is None, settled))


def failures(settled):
    """Where, and why."""
    return [(at, each.failure) for at, each in enumerate(settled) if each.failure is not None]


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("assignors", ASSIGNORS, ids="+".join)
def test_a_clock_changes_nothing_but_when(assignors, form):
    for seed in range(10):
        asked = script(seed, form, assignors)
        played, by_clock = simulate(asked), simulate(replace(asked, times=Times()))
        assert [story_of(each) for each in until_failure(played)] == [
            story_of(each) for each in until_failure(by_clock)
        ], seed
        assert failures(played)[:1] == failures(by_clock)[:1], seed


@pytest.mark.parametrize("times", [None, Times()])
@pytest.mark.parametrize(("after", "unanswered"), [(0, [0]), (1, [1]), (2, [])])
def test_the_next_syncgroup_or_a_later_one_is_not_answered(after, unanswered, times):
    """b joins: a revokes in the first round, and is answered in two at the least."""
    joins = [e.Join(name, ("t",), at_ms=at) for name, at in (("a", 0), ("b", APART_MS))]
    events = [joins[0], e.MissAssignment("a", after, at_ms=APART_MS // 2), joins[1]]
    rounds = simulate(Script({"t": 4}, events, times=times))[-1].rounds
    answered = [next(row.answered for row in took.members if row.member == "a") for took in rounds]
    assert [at for at, each in enumerate(answered) if not each] == unanswered
