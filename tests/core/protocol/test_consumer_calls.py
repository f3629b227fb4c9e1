"""A call of a process of a consumer group that takes longer than `max.poll.interval.ms`: who leaves, what it loses."""

from __future__ import annotations

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.simulated_group import Application
from groupledger.core.protocol.simulator import Script, simulate
from tests.core.protocol.consumer_groups import classic, join
from tests.core.protocol.played import at_rest
from tests.core.protocol.test_consumer_timed import calls

POLL_MS, SLOW_MS = 20_000, 30_000


class Once(Application):
    """Its first assignment of a partition takes a while."""

    expelled_ms: int | None = None

    def __init__(self, ms):
        super().__init__({})
        self.ms = ms

    def called(self, call):
        if call.callback is Callback.ASSIGNED and call.partitions and self.ms:
            yield self.ms
            self.ms = 0

    def expelled(self, call, started_ms, ended_ms):
        self.expelled_ms = ended_ms


def slow(*events, of="a", ms=SLOW_MS):
    """The settlements, `(ms, callback, how many partitions)` of each process, and when the slow one was expelled."""
    times = Times(MemberTimes(rebalance_timeout_ms=POLL_MS, session_timeout_ms=60_000))
    made = {}

    def application(_group, process, _accepts):
        made.setdefault(process.name, Once(ms if process.name == of else 0))
        return made[process.name]

    script = Script({"t": 4}, events, times=times, consumer_group=ConsumerGroupSettings(session_timeout_ms=60_000))
    settled = at_rest(simulate(script, applications=application))
    told = {name: [each for each in calls(settled, name) if each[2]] for name in made}
    return told, made[of].expelled_ms


@pytest.mark.parametrize("static", [None, "i"])
def test_one_that_takes_too_long_over_its_assignment_loses_it_when_it_returns(static):
    told, expelled_ms = slow(join("a", group_instance_id=static))
    assert told["a"] == [(30_000, "Assigned", 4), (30_000, "Lost", 4), (30_000, "Assigned", 4)]
    assert expelled_ms == 30_000


@pytest.mark.parametrize(("ms", "lost"), [(POLL_MS, False), (POLL_MS + 1, True)])
def test_a_call_may_take_as_long_as_the_poll_interval(ms, lost):
    told, expelled_ms = slow(join("a"), ms=ms)
    assert ("Lost" in {callback for _, callback, _ in told["a"]}) == (expelled_ms is not None) == lost


def test_its_partitions_go_to_the_others_while_it_is_in_its_call():
    """It is given t-2 and t-3 at 70 s."""
    told, _ = slow(join("b"), join("a", at=60))
    assert told["b"][:3] == [(0, "Assigned", 4), (65_000, "Revoked", 2), (90_000, "Assigned", 2)]
    assert told["a"] == [(100_000, "Assigned", 2), (100_000, "Lost", 2), (110_000, "Assigned", 2)]


def test_a_classic_one_leaves_too():
    """It is given its partitions at 66 s."""
    told, expelled_ms = slow(join("b"), classic("a", at=60))
    assert told["b"][:3] == [(0, "Assigned", 4), (65_000, "Revoked", 2), (90_000, "Assigned", 2)]
    assert told["a"][1:3] == [(96_000, "Assigned", 2), (96_000, "Lost", 2)]
    assert expelled_ms == 96_000


def test_one_that_stands_still_in_its_call_leaves_when_it_goes_on():
    told, expelled_ms = slow(join("a"), e.Pause("a", at_ms=5_000), e.Resume("a", at_ms=26_000))
    assert told["a"] == [(30_000, "Assigned", 4), (30_000, "Lost", 4), (30_000, "Assigned", 4)]
    assert expelled_ms == 30_000
