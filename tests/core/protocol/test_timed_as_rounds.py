"""Where events are far apart and nobody is static, a clock changes when things happen, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import MemberTimes, Times
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.simulator import simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.drawn import TOPICS, Story

FAR_MS = 1_000_000
ASSIGNORS = [("cooperative-sticky",), ("range",), ("sticky",), ("roundrobin",), ("range", "cooperative-sticky")]


class DynamicStory(Story):
    """Members come, go, crash and lose their sessions, and topics change; everything is seen by everybody at once."""

    def next(self):
        choices = [self.join, self.join, self.set_partitions, self.delete_topic]
        if len(self.talking) > 1:
            choices += [self.leave, self.crash, self.subscribe, self.subscribe]
        return self.random.choice(choices)()

    def join(self):
        joined = super().join()
        return replace(joined, group_instance_id=None) if isinstance(joined, e.Join) else joined

    def leave(self):
        return e.Leave(self.take(self.talking))


def both(seed, form, assignors, works_ms=0):
    """The same story by rounds, where a session ends as an event, and with a clock, where it ends by itself."""
    random = Random(seed)  # noqa: S311 - the same seed gives the same story
    topics = {topic: random.randint(1, 12) for topic in TOPICS}
    story = DynamicStory(random, assignors, dict(topics))
    events = [replace(story.next(), at_ms=FAR_MS * at) for at in range(25)]
    expiring = [[each, e.Expire(each.member)] if isinstance(each, e.Crash) else [each] for each in events]
    rounds = simulate(Script(topics, [each for pair in expiring for each in pair], form))
    each = MemberTimes(round_trip_ms=random.choice((0, 4)), processing_ms=works_ms)
    clock = simulate(Script(topics, events, form, times=Times(each)))
    return [one for one in rounds if not isinstance(one.event, e.Crash)], clock


def calls(settled):
    """What each process was called for, in its order."""
    told = {}
    for each in settled.calls:
        if each.call.callback.startswith("onPartitions"):
            told.setdefault(each.member, []).append((each.call.callback, each.call.partitions))
    return told


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("seed", range(30))
def test_a_clock_changes_no_outcome(seed, form):
    by_rounds, by_clock = both(seed, form, ASSIGNORS[seed % len(ASSIGNORS)])
    for at, (one, other) in enumerate(zip(by_rounds, by_clock, strict=True)):
        assert one.owners == other.owners, at
        assert [each.generation for each in one.rounds] == [each.generation for each in other.rounds], at
        assert [each.leader for each in one.rounds] == [each.leader for each in other.rounds], at
        assert calls(one) == calls(other), at


@pytest.mark.parametrize("seed", range(20))
def test_where_members_work_a_round_may_be_begun_again_and_the_outcome_is_the_same(seed):
    """Who has not polled yet when another joins again is told REBALANCE_IN_PROGRESS instead of an assignment."""
    by_rounds, by_clock = both(seed, Form.KIP, ASSIGNORS[seed % len(ASSIGNORS)], works_ms=70)
    assert [each.owners for each in by_rounds] == [each.owners for each in by_clock]
    assert all(len(one.rounds) <= len(other.rounds) for one, other in zip(by_rounds, by_clock, strict=True))
