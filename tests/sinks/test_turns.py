"""Turns of ingests: one after the other for a cluster, in order of arrival, side by side for others."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from groupledger.sinks import location
from groupledger.sinks.location import WriteConflict

FOLLOWER = """
import sys, time
from pathlib import Path
from groupledger.sinks.location import turn
for number in range(1000):
    with turn(Path(sys.argv[1]), ["dev"]):
        print(number, flush=True)
        time.sleep(0.3)
"""


def test_a_turn_keeps_out_another_of_the_same_input_alone(tmp_path):
    with location.turn(tmp_path, ["dev", "host:9092"]), ThreadPoolExecutor(1) as pool:
        with pytest.raises(WriteConflict, match="another ingest of host:9092 has been at work for 0 s"):
            pool.submit(_enter, tmp_path, ["host:9092"], 0.1).result()
        assert pool.submit(_enter, tmp_path, ["prod"], 60.0).result()
    assert _enter(tmp_path, ["host:9092"], 60.0)


def _enter(ledger, inputs, patience):
    with location.turn(ledger, inputs, patience):
        return True


def test_a_turn_comes_though_a_follower_never_pauses(tmp_path):
    with subprocess.Popen([sys.executable, "-c", FOLLOWER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        try:
            other.stdout.readline()
            for _ in range(3):
                began = time.monotonic()
                with location.turn(tmp_path, ["dev"], 60.0):
                    waited = time.monotonic() - began
                assert waited < 30.0  # a turn of the follower; without a queue it may be for ever
            assert other.poll() is None
        finally:
            other.kill()


def test_a_follower_lets_in_who_waited(tmp_path):
    """With a queue, the holder's next turn comes after the one that waits."""
    order, inside, leave = [], Event(), Event()

    def follower():
        for number in range(2):
            with location.turn(tmp_path, ["dev"]):
                order.append(f"follower {number}")
                inside.set()
                assert leave.wait(60)

    def ingest():
        with location.turn(tmp_path, ["dev"]):
            order.append("ingest")

    with ThreadPoolExecutor(2) as pool:
        following = pool.submit(follower)
        assert inside.wait(60)
        waiting = pool.submit(ingest)
        queue = next((tmp_path / location.FOLDER).glob("*.queue.lock"))
        while not location._threads[queue].locked():
            time.sleep(0.001)
        leave.set()
        waiting.result(60)
        following.result(60)
    assert order == ["follower 0", "ingest", "follower 1"]
