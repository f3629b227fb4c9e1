"""A test that never ends is ended, whether it computes or waits."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mutants.patience import RUNS_ON

RUN = """
import pytest
from tests.mutants import patience
patience.{limit} = 0.1
raise SystemExit(int(pytest.main(["-q", "-p", "no:cacheprovider", "-c", "{folder}/none.ini", "{folder}"], [patience])))
"""


@pytest.mark.parametrize(
    ("limit", "endless"),
    [("LIMIT_SECONDS", "while True: pass"), ("WAIT_SECONDS", "Event().wait()")],
    ids=["computes", "waits"],
)
def test_what_never_ends_is_ended(tmp_path, limit, endless):
    (tmp_path / "none.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(f"from threading import Event\n\n\ndef test_it():\n    {endless}\n")
    command = [sys.executable, "-c", RUN.format(limit=limit, folder=tmp_path)]
    assert subprocess.run(command, timeout=60, check=False, capture_output=True).returncode == RUNS_ON
