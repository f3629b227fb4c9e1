"""Follow the sources: ingest again and again, each time as a run of its own, until told to stop.

Where a running cluster is read from stands in `runs` alone (decision 0099): whatever ends a follower, the next one goes
on behind the last run that was committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from groupledger.core.faults import Fault
from groupledger.pipeline.ingest import IngestSummary

PASSING = frozenset({"KAFKA_UNREACHABLE", "KAFKA_FAILED", "LOG_MOVED", "SOURCES_CHANGED", "WRITE_CONFLICT"})
"""Faults that are worth another try: a broker that restarts, a log that is cut, another ingest that was first."""


@dataclass(frozen=True, slots=True)
class FollowPace:
    """How often to ingest. `every`: seconds from one beginning to the next. `failures`: so many in a row are borne."""

    every: float
    failures: int


def follow(
    once: Callable[[], IngestSummary],
    pace: FollowPace,
    seconds: Callable[[], float],
    stopped: Callable[[float], bool],
    failed: Callable[[Fault], None],
) -> Iterator[IngestSummary]:
    """Ingest `once` and again; give what each ingest did.

    `stopped` waits for the seconds that are left of a turn and says whether to end. Where `max_records` left something,
    and an ingest took as long as a turn, the next one follows at once. A passing fault is told to `failed`, and the
    next turn tries again; raises it where it is one too many in a row, and any other Fault at once.
    """
    failures = 0
    while True:
        began, at_once = seconds(), False
        try:
            summary = once()
        except Fault as fault:
            failures += 1
            if fault.code not in PASSING or failures > pace.failures:
                raise
            failed(fault)
        else:
            failures, at_once = 0, any(summary.left.values())
            yield summary
        if stopped(0.0 if at_once else max(0.0, began + pace.every - seconds())):
            return
