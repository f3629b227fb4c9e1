"""A pytest plugin for mutants: a test that takes far too much CPU time ends the process, with a status of its own.

CPU time, so that a busy or paused machine kills nobody. An exception would not do: Hypothesis would look for a smaller
example that takes as long.
"""

from __future__ import annotations

import os
import signal

import pytest

LIMIT_SECONDS = 30
"""Several times what any test takes in the interpreter."""
RUNS_ON = 99


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    signal.signal(signal.SIGPROF, lambda *_: os._exit(RUNS_ON))
    signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
