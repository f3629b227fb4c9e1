"""A pytest plugin for mutants: a test that takes far too much CPU time ends the process, with a status of its own.

CPU time, so that a busy or paused machine kills nobody; what waits for ever takes none, and ends by the clock. An
exception would not do: Hypothesis would look for a smaller example that takes as long.
"""

from __future__ import annotations

import os
import signal

import pytest

LIMIT_SECONDS = 30
"""Several times what any test takes in the interpreter."""
WAIT_SECONDS = 600
"""Long enough for the dearest test on a machine that does much else."""
RUNS_ON = 99


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    limits = {signal.ITIMER_PROF: LIMIT_SECONDS, signal.ITIMER_REAL: WAIT_SECONDS}
    for each in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(each, lambda *_: os._exit(RUNS_ON))
    for timer, seconds in limits.items():
        signal.setitimer(timer, seconds)
    try:
        return (yield)
    finally:
        for timer in limits:
            signal.setitimer(timer, 0)
