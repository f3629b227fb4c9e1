"""One listener class, unchanged, in all its hosts: simulated, over captured history, and in two live clients.

In every host it pauses what it is assigned and commits what it gives up, and nothing goes wrong.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.listener import rehearse_history, rehearse_simulation
from tests.core.history.captured import folded
from tests.listener.checkpointing import Checkpointing
from tests.live.client import KAFKA_PYTHON_POLL_SECONDS, POLL_SECONDS, confluent, kafka_python
from tests.live.members import Settings
from tests.live.topics import Topics

SECONDS = 180


def rehearsed(journal):
    """What it paused and what it committed."""
    assert [entry for entry in journal if entry.error is not None] == []
    return {did: {each for entry in journal if entry.did == did for each in entry.partitions} for did in PROMISED}


PROMISED = ("pause", "commit")


def simulated(_stages):
    events = [e.Join("a", ("t",)), e.Join("b", ("t",)), e.Leave("b"), e.Leave("a")]
    return rehearsed(rehearse_simulation(simulate(Script({"t": 4}, events)), Checkpointing, records=0))


def recorded(_stages):
    rows = folded("dev/offsets", "java-cooperative-sticky")
    return rehearsed(rehearse_history(recorded_calls(rows.group_snapshots, rows.member_snapshots), Checkpointing))


def until(condition, consumers, poll_seconds):
    """Poll all, side by side, until this holds. `poll_seconds`: of a poll, and of the last consumer's first one."""
    seconds, first_seconds = poll_seconds
    waits = [seconds] * (len(consumers) - 1) + [first_seconds]
    end = time.monotonic() + SECONDS
    with ThreadPoolExecutor(len(consumers)) as threads:
        while not condition():
            assert time.monotonic() < end
            for each in [threads.submit(consumer.poll, wait) for consumer, wait in zip(consumers, waits, strict=True)]:
                each.result()
            waits = [seconds] * len(consumers)


def live(make, name, poll_seconds):
    """B joins A and leaves; what is paused then, and what the broker has as committed at the end."""

    def host(stages):
        told = asdict(Settings(stages, name, "", "cooperative-sticky", 45_000, None))
        Topics(stages).create({name: 4})
        a, b = (make(told | {"client_id": each}) for each in "ab")
        for consumer in (a, b):
            consumer.set_rebalance_listener(Checkpointing())
        a.subscribe([name])
        until(lambda: len(a.assignment()) == 4, [a], poll_seconds)
        b.subscribe([name])
        until(lambda: (len(a.assignment()), len(b.assignment())) == (2, 2), [a, b], poll_seconds)
        paused = a.paused() | b.paused()
        b.close()
        until(lambda: len(a.assignment()) == 4, [a], poll_seconds)
        kept = a.assignment()
        a.close()
        committed = _committed(make, told, kept)
        return {"pause": paused, "commit": {each for each, offset in committed.items() if offset.offset == 1}}

    return host


def _committed(make, told, partitions):
    """Another client of the group asks the broker."""
    asking = make(told | {"client_id": "c"})
    found = {each: offset for each, offset in asking.committed(sorted(partitions)).items() if offset is not None}
    asking.close()
    return found


HOSTS = {
    "simulated": (simulated, 4),
    "recorded": (recorded, 17),
    "confluent-kafka": (live(confluent, "one-confluent", (POLL_SECONDS, POLL_SECONDS)), 4),
    "kafka-python": (live(kafka_python, "one-kafka-python", KAFKA_PYTHON_POLL_SECONDS), 4),
}


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python does
@pytest.mark.parametrize("name", HOSTS)
def test_one_listener_runs_in_every_host(name, stages):
    host, partitions = HOSTS[name]
    did = host(stages)
    assert {what: len(where) for what, where in did.items()} == dict.fromkeys(PROMISED, partitions)
