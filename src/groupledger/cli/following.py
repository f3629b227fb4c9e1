"""`groupledger ingest --follow`: its options, its stop signals, and the report of each run."""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.output import say

if TYPE_CHECKING:
    from types import FrameType

    from groupledger.cli.options import Job
    from groupledger.core.faults import Fault
    from groupledger.pipeline.ingest import IngestSummary

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Following:
    """The options of `--follow`: seconds between ingests, and tolerated consecutive failures."""

    every: float
    failures: int

    def run(self, job: Job, once: Callable[[], IngestSummary], told: Callable[[IngestSummary], bool]) -> bool:
        """Ingest until a signal, and report each run that read something; return whether `told` was ever true."""
        from groupledger.pipeline.follow import FollowPace, follow

        def failed(fault: Fault) -> None:
            say(f"groupledger: {fault.message} [{fault.code}]; the next try is in {self.every:g} s")

        over = False
        with _asked_to_stop() as asked:
            job.output.line(f"following; an ingest every {self.every:g} s, until SIGTERM or Ctrl-C")
            for summary in follow(once, FollowPace(self.every, self.failures), time.monotonic, asked.wait, failed):
                if not summary.nothing_new and not summary.already_committed:
                    over |= told(summary)
        job.output.line("stopped; the next ingest goes on from here")
        return over


def takes_follow(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--follow`, `--every` and `--failures`; the command gets `following`, None without `--follow`."""

    @click.option("--follow", is_flag=True, help="Ingest repeatedly until SIGTERM or Ctrl-C.")
    @click.option(
        "--every", type=click.FloatRange(min=0), metavar="SECONDS", help="With --follow: time between ingests. [60]"
    )
    @click.option(
        "--failures",
        type=click.IntRange(min=0),
        metavar="N",
        help="With --follow: tolerated consecutive failures. [10]",
    )
    @functools.wraps(command)
    def run(*arguments: Any, follow: bool, every: float | None, failures: int | None, **options: Any) -> Any:
        if not follow and (every is not None or failures is not None):
            raise click.UsageError("--every and --failures go with --follow")
        following = Following(60 if every is None else every, 10 if failures is None else failures) if follow else None
        return command(*arguments, following=following, **options)

    return run


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Return an event that SIGTERM and SIGINT set: current work is finished first. A second signal acts as usual."""
    asked = threading.Event()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(number, signal.default_int_handler)

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
