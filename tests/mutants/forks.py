"""Run pytest in a fork of this process, which has loaded the libraries once: a new process takes seconds for them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("numpy", "pandas", "pyarrow", "yaml", "click.testing", "rich.table", "hypothesis.strategies")
OUR_OWN = ("groupledger", "tests")
FEW_CASES = {
    "GROUPLEDGER_KERNELS": "python",
    "GROUPLEDGER_EXAMPLES": "20",  # groups for each assignor's properties: what a few do not see, the gold mostly does
    "GROUPLEDGER_CLOCK_RUNS": "25",  # random histories of groups, for each test that draws some
    "GROUPLEDGER_MACHINE_RUNS": "25",
}
OPTIONS = (
    *("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"),
    *("-m", "not slow", "-k", "not numba"),
)


def load() -> None:
    """Load what tests load besides the source."""
    for name in LIBRARIES:
        importlib.import_module(name)


def start(place: Path, files: Sequence[str], output: Path, *plugins: object, bytecode: bool = False) -> int:
    """Start pytest in a copy of the source; return the process, which ends with pytest's status.

    `bytecode`: whether compiled files are kept beside the source, for the copies that are made of it.
    """
    process = os.fork()
    if process:
        return process
    status = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        with output.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            sys.stdout = sys.stderr = file
            _move_to(place)
            sys.dont_write_bytecode = not bytecode
            status = int(pytest.main([*OPTIONS, *files], plugins))
    finally:
        os._exit(status)


def ended() -> tuple[int, int]:
    """Wait until one of the processes ends: which, and its status."""
    process, status = os.wait()
    return process, os.waitstatus_to_exitcode(status)


def _move_to(place: Path) -> None:
    """What is imported from now on is the copy's. Hypothesis looks for no smaller example, nor keeps one."""
    ours = (str(ROOT), str(ROOT / "src"))
    sys.path[:] = [str(place), str(place / "src"), *(each for each in sys.path if each not in ours)]
    for name in [name for name in sys.modules if name.partition(".")[0] in OUR_OWN]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.modules["numba"] = None  # type: ignore[assignment]  # not found: every kernel stays as it is written
    os.environ.update(FEW_CASES, PYTHONPATH=str(place / "src"), PYTHONDONTWRITEBYTECODE="1")
    os.chdir(place)
    settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate), database=None, deadline=None)
    settings.load_profile("mutants")
