"""The client metrics of KIP-429, under Kafka's names, over any window: from a simulation, or from recorded history.

What a source cannot know is None, with the reason: the log has no durations and no failed attempts.

Worked example: two rebalances of 300 and 500 ms in a window of half an hour -> rebalance-total 2,
rebalance-rate-per-hour 4.0, rebalance-latency-avg 400.0, -max 500, -total 800.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.consumer_group.consumer_state import Reconciled
from groupledger.core.protocol.recorded import RecordedCall
from groupledger.core.protocol.settlement import Round, Settlement

HOUR_MS = 3_600_000
GROUP = None
"""In place of a member: the whole group."""

TIMED = {
    Callback.REVOKED: "partitions-revoked-latency",
    Callback.ASSIGNED: "partitions-assigned-latency",
    Callback.LOST: "partitions-lost-latency",
}
NO_DURATIONS = "the log records when a rebalance ended, not how long a callback or a rebalance took"
NO_FAILURES = "the log records completed rebalances only"
NO_CALL = "no such call in the window"
NO_REBALANCE = "no rebalance in the window"


class Window(NamedTuple):
    """From `start_ms` up to, but without, `end_ms`; "seconds ago" are counted back from its end."""

    start_ms: int
    end_ms: int

    def has(self, moment_ms: int) -> bool:
        """Whether a moment is inside."""
        return self.start_ms <= moment_ms < self.end_ms

    def rate_per_hour(self, count: int) -> float:
        """So many in the window, in an hour."""
        return count * HOUR_MS / (self.end_ms - self.start_ms)


class Metric(NamedTuple):
    """One value of a member (None: of the group); where it is None, `reason` says why."""

    member: str | None
    name: str
    value: float | None
    reason: str | None = None


@dataclass(slots=True)
class _Seen:
    """What is known of one member in a window; None: this source cannot know it."""

    rebalances_ms: list[int] = field(default_factory=list)  # when each ended
    took_ms: list[int] | None = None  # how long each took, callbacks included
    failed: int | None = None
    calls_ms: dict[Callback, list[int]] | None = None


def of_simulation(settlements: Iterable[Settlement], window: Window) -> list[Metric]:
    """Compute the metrics of each member and of the group, by name of the process.

    A member's rebalance is a round in which it was answered, and takes from JoinGroup to the end of its last callback,
    and what it spent in onPartitionsLost before (KIP-429, step 0 of both timelines); one in which it got no answer has
    failed. The group's are the rounds. Where a clock ran, a member's begins with its first callback before JoinGroup.
    In a consumer group (KIP-848) it is one assignment that a member takes, from the answer that has it to the end of
    its last callback, and has failed where it fell out before that; the group's are those of all members.
    """
    played = list(settlements)
    in_rounds = {row.member for settled in played for took in settled.rounds for row in took.members}
    names = sorted(in_rounds | {took.member for settled in played for took in reconciled(settled)})
    seen: dict[str | None, _Seen] = {name: _Seen(took_ms=[], failed=0, calls_ms={}) for name in (GROUP, *names)}
    lost_ms: dict[str, int] = {}
    for settled in played:
        for call in settled.calls:
            if call.round == 0 and call.call.callback is Callback.LOST:
                lost_ms[call.member] = lost_ms.get(call.member, 0) + call.ended_ms - call.started_ms
        for took in settled.rounds:
            if window.has(took.ended_ms):
                _count_round(seen, settled, took, lost_ms)
            lost_ms = {}
        if not settled.event.together:
            lost_ms = {}
        for taken in reconciled(settled):
            for who in (GROUP, taken.member) if window.has(taken.ended_ms) else ():
                _count(seen[who], not taken.failed, taken.started_ms, taken.ended_ms)
        _count_calls(seen, settled, window)
    return [metric for name, one in seen.items() for metric in _metrics(name, one, window)]


def _count_calls(seen: Mapping[str | None, _Seen], settled: Settlement, window: Window) -> None:
    """How long the calls of listeners took."""
    for call in settled.calls:
        if window.has(call.ended_ms) and call.call.callback in TIMED:
            for who in (GROUP, call.member):
                if who in seen and (calls_ms := seen[who].calls_ms) is not None:
                    calls_ms.setdefault(call.call.callback, []).append(call.ended_ms - call.started_ms)


def reconciled(settled: Settlement) -> tuple[Reconciled, ...]:
    """Return the assignments that members of a consumer group took."""
    return () if settled.coordinated is None else settled.coordinated.reconciled


def whole(settlements: Iterable[Settlement]) -> Window:
    """From 0 ms to the end of the last event or round, at least one millisecond."""
    ends = [0]
    for settled in settlements:
        ends += [settled.event.at_ms, *(took.ended_ms for took in settled.rounds)]
        ends += [call.ended_ms for call in settled.calls]
        ends += [] if settled.timed is None else [settled.timed.at_ms]
    return Window(0, max(ends) + 1)


def _count_round(
    seen: Mapping[str | None, _Seen], settled: Settlement, took: Round, lost_ms: Mapping[str, int]
) -> None:
    """Count a rebalance of the group and of its members; `lost_ms`: what they spent in onPartitionsLost before it."""
    last = {call.member: call.ended_ms for call in settled.calls if call.round == took.number}
    longest = max((lost_ms.get(row.member, 0) for row in took.members if row.started_ms is None), default=0)
    _count(seen[GROUP], took.failure is None, took.started_ms - longest, took.ended_ms)
    for row in took.members:
        started_ms, ended_ms = took.started_ms - lost_ms.get(row.member, 0), last.get(row.member, took.ended_ms)
        if row.started_ms is not None and row.ended_ms is not None:  # a clock ran
            started_ms, ended_ms = row.started_ms, row.ended_ms
        _count(seen[row.member], row.answered, started_ms, ended_ms)


def of_history(calls: Iterable[RecordedCall], window: Window) -> list[Metric]:
    """Compute the metrics of each member, by member id, and of the group.

    Each recorded generation is a rebalance of those who were assigned something, or nothing, in it.
    """
    seen: dict[str | None, _Seen] = {GROUP: _Seen()}
    ended: dict[str, int] = {}
    for each in calls:
        if each.call.callback is Callback.ASSIGNED and window.has(each.at_ms):
            seen.setdefault(each.member_id, _Seen()).rebalances_ms.append(each.at_ms)
            ended[each.snapshot_id] = each.at_ms
    seen[GROUP].rebalances_ms += sorted(ended.values())
    return [metric for name, one in seen.items() for metric in _metrics(name, one, window)]


def _count(seen: _Seen, answered: bool, started_ms: int, ended_ms: int) -> None:
    if not answered:
        seen.failed = (seen.failed or 0) + 1
        return
    seen.rebalances_ms.append(ended_ms)
    (seen.took_ms if seen.took_ms is not None else []).append(ended_ms - started_ms)


def _metrics(member: str | None, seen: _Seen, window: Window) -> list[Metric]:
    named = [*_latencies(seen), *_rebalances(seen, window)]
    return [Metric(member, name, value, None if value is not None else reason) for name, value, reason in named]


_Named = tuple[str, float | None, str]


def _latencies(seen: _Seen) -> list[_Named]:
    """Average and maximum of each listener callback, in ms."""
    rows: list[_Named] = []
    for callback, name in TIMED.items():
        took = None if seen.calls_ms is None else seen.calls_ms.get(callback, [])
        reason = NO_DURATIONS if took is None else NO_CALL
        rows += [(f"{name}-avg", _average(took), reason), (f"{name}-max", _most(took), reason)]
    return rows


def _rebalances(seen: _Seen, window: Window) -> list[_Named]:
    took, count = seen.took_ms, len(seen.rebalances_ms)
    reason = NO_DURATIONS if took is None else NO_REBALANCE
    ago = (window.end_ms - max(seen.rebalances_ms)) / 1_000 if seen.rebalances_ms else None
    return [
        ("rebalance-rate-per-hour", window.rate_per_hour(count), ""),
        ("rebalance-total", count, ""),
        ("rebalance-latency-avg", _average(took), reason),
        ("rebalance-latency-max", _most(took), reason),
        ("rebalance-latency-total", None if took is None else sum(took), reason),
        (
            "failed-rebalance-rate-per-hour",
            None if seen.failed is None else window.rate_per_hour(seen.failed),
            NO_FAILURES,
        ),
        ("failed-rebalance-total", seen.failed, NO_FAILURES),
        ("last-rebalance-seconds-ago", ago, NO_REBALANCE),
    ]


def _average(values: Sequence[int] | None) -> float | None:
    return sum(values) / len(values) if values else None


def _most(values: Sequence[int] | None) -> float | None:
    return max(values) if values else None
