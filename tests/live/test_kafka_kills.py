"""`groupledger ingest --bootstrap`, killed again and again, once or as a follower: nothing missing, nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time

from tests.kafka.groups import Member
from tests.live.dumped import SECONDS, done, same_as_dumped, started

KILLS, FOLLOWERS = 10, 5
A_TURN = 3.0
"""Seconds that an ingest of a follower takes, or a little more."""


def killed(process, after):
    """Whether it was still at work when it was killed."""
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return True
    return False


def test_killed_at_random_moments_and_then_whole(kafka, topics, dumped, tmp_path):
    topics.create({"killed": 3})
    began = time.monotonic()
    done(kafka, tmp_path / "ledger")
    whole = time.monotonic() - began
    moments, kills = random.Random(7), 0  # noqa: S311 moments, no secrets
    for number in range(KILLS):
        with Member(kafka, f"group-{number}", "killed") as member:
            member.commit()
        with started(kafka, tmp_path / "ledger") as process:
            kills += killed(process, moments.uniform(0, whole))
    assert kills > KILLS // 2
    same_as_dumped(kafka, dumped, tmp_path / "ledger")


def test_a_follower_killed_started_again_and_told_to_stop(kafka, topics, dumped, tmp_path):
    topics.create({"followed": 3})
    told, moments = [], random.Random(11)  # noqa: S311 moments, no secrets
    for number in range(FOLLOWERS):  # the member leaves while the next ingest is under way
        process = started(kafka, tmp_path / "ledger", "--follow", "--every", "0")
        with process, Member(kafka, f"followed-{number}", "followed") as member:
            told.append(json.loads(process.stdout.readline()))
            member.commit()
            assert killed(process, moments.uniform(0, A_TURN)), "a follower ends only when it is told to"
    with Member(kafka, "followed", "followed"):
        process = started(kafka, tmp_path / "ledger", "--follow", "--every", "0")
        told.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    told += map(json.loads, rest.splitlines())
    assert not any(each["nothing_new"] for each in told)
    assert len({each["run_id"] for each in told}) == len(told)
    same_as_dumped(kafka, dumped, tmp_path / "ledger")
