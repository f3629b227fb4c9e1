"""Groups with a clock for tests: who joins when, and what is played by which times."""

from __future__ import annotations

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import MemberTimes, Times
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from tests.core.protocol.played import at_rest

COOPERATIVE, RANGE = ("cooperative-sticky",), ("range",)
SETTLED_MS = 100_000
"""Long after the first members have joined."""


def join(name, at_ms=0, assignors=COOPERATIVE, *, static=False):
    return e.Join(name, ("t",), assignors, f"i-{name}" if static else None, at_ms=at_ms)


def played(*events, of=None, pace=None, rate=None, partitions=4, delay_ms=3_000, commits_ms=None, rests=True, **each):
    """The settlements of a group over t; `rests`: it comes to rest after each event."""
    times = Times(MemberTimes(**each), of or {}, delay_ms, rate, commits_ms)
    settled = simulate(Script({"t": partitions}, events, pace=pace or Pace(), times=times))
    return at_rest(settled) if rests else settled


def listened(settled, member=None):
    """Listener calls: when they returned, of whom, which, of which partitions of t."""
    calls = [each for one in settled for each in one.calls if each.call.callback.startswith("onPartitions")]
    return [
        (
            each.ended_ms,
            each.member,
            each.call.callback.removeprefix("onPartitions"),
            [n for _, n in each.call.partitions],
        )
        for each in calls
        if member in (None, each.member) and each.call.partitions
    ]
