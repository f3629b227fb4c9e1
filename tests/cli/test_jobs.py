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


def test_the_job_file_is_every_command():
    command = [sys.executable, "-m", "groupledger"]
    job = subprocess.run([*command, "job-file"], capture_output=True, text=True, check=True).stdout.strip()
    for words in (["ingest", "--config", "nowhere.yaml"], ["maintain", "--nonsense"], ["--version"], ["replay"]):
        of_job, of_command = (
            subprocess.run([*start, *words], capture_output=True, text=True)
            for start in ([sys.executable, job], [*command])
        )
        assert (of_job.returncode, of_job.stdout) == (of_command.returncode, of_command.stdout)
        assert of_job.stderr == of_command.stderr.replace("python -m groupledger", "groupledger")


def test_the_main_jobs_are_there():
    assert {job.stem for job in JOBS} >= {"ingest", "assign"}
