"""The jobs are the commands: nothing of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

JOBS = sorted((Path(__file__).parents[2] / "jobs").glob("*.py"))


@pytest.mark.parametrize("job", JOBS, ids=lambda path: path.stem)
def test_a_job_is_its_command(job):
    command = [sys.executable, "-m", "groupledger", job.stem]
    asked = [[sys.executable, str(job), "--config", "nowhere.yaml"], [*command, "--config", "nowhere.yaml"]]
    of_job, of_command = (subprocess.run(one, capture_output=True, text=True) for one in asked)
    assert (of_job.returncode, of_job.stdout, of_job.stderr) == (2, of_command.stdout, of_command.stderr)
    assert "nowhere.yaml: cannot read the configuration" in of_job.stderr
    assert len(job.read_text().splitlines()) <= 30


def test_the_main_jobs_are_there():
    assert {job.stem for job in JOBS} >= {"ingest", "assign"}
