"""Let callbacks take simulated time: each runs on a thread of its own, and only one thread at a time continues.

from groupledger.listener import spend

def on_partitions_revoked(self, partitions, consumer):
    flush(partitions)
    spend(1_500)  # in a rehearsal with times: this took 1.5 s; anywhere else: nothing
    consumer.commit_sync()
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from queue import SimpleQueue
from threading import Thread

from groupledger.core.faults import Fault

Spend = Callable[[int], None]
_SPEND: ContextVar[Spend | None] = ContextVar("spend", default=None)


class _EndedError(BaseException):
    """The process was killed in this callback; a listener must not catch it."""


def spend(ms: int) -> None:
    """Let `ms` milliseconds pass in a callback that is rehearsed with times, or over history; else do nothing.

    Raises Fault("BAD_TIME") for anything but a whole number of 0 or more.
    """
    if type(ms) is not int or ms < 0:
        raise Fault("BAD_TIME", f"time to spend is {ms!r}; expected a whole number of milliseconds from 0")
    waits = _SPEND.get()
    if waits is not None and ms:
        waits(ms)


@contextmanager
def spending(on: Spend) -> Iterator[None]:
    """Tell `on` each time that is spent in this context, on this thread."""
    token = _SPEND.set(on)
    try:
        yield
    finally:
        _SPEND.reset(token)


def in_turns(act: Callable[[], None]) -> Generator[int, None, None]:
    """Run a function that may `spend`: yield each such time, after which it continues; raise what it raised."""
    spent: SimpleQueue[int | BaseException | None] = SimpleQueue()
    goes_on: SimpleQueue[bool] = SimpleQueue()
    thread = Thread(target=_run, args=(act, spent, goes_on), daemon=True)
    thread.start()
    ended = False
    try:
        while isinstance(told := spent.get(), int):
            yield told
            goes_on.put(True)
        ended = True
    finally:
        if not ended:
            goes_on.put(False)
        thread.join()
    if told is not None:
        raise told


def _run(act: Callable[[], None], spent: SimpleQueue[int | BaseException | None], goes_on: SimpleQueue[bool]) -> None:
    def wait(ms: int) -> None:
        spent.put(ms)
        if not goes_on.get():
            raise _EndedError

    _SPEND.set(wait)
    try:
        act()
    except BaseException as error:  # noqa: BLE001 - passed on to the waiting thread
        spent.put(error)
    else:
        spent.put(None)
