"""What a process of the command leaves on its two streams: the answer on one, what a person needs on the other."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.test_wrong_inputs import ROOT, TRACE


@pytest.mark.long
def test_a_json_command_prints_its_line_and_nothing_else(new_ledger, tmp_path):
    """`maintain`: Spark's VACUUM prints, the JVM warns as it starts, and its shutdown may complain."""
    new_ledger(tmp_path / "ledger")
    settings = ["--set", f"ledger.location={tmp_path}/ledger", "--set", "spark.profile=small"]
    ran = subprocess.run(
        [sys.executable, "-m", "groupledger", "maintain", "--json", "--only", "coverage", *settings],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert ran.returncode == 0
    assert all(line.endswith(" ...") for line in ran.stderr.splitlines()), "progress alone"
    [line] = ran.stdout.splitlines()
    assert json.loads(line)["status"] == "done"


def test_a_jvm_that_does_not_start_is_a_line(tmp_path):
    settings = ["--set", f"ledger.location={tmp_path}/ledger", "--set", "spark.driver_memory=1k"]
    ran = subprocess.run(
        [sys.executable, "-m", "groupledger", "init", *settings], capture_output=True, text=True, cwd=ROOT
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("groupledger: ")
    assert ran.stderr.count("\n") == 1
    assert TRACE.search(ran.stderr) is None
