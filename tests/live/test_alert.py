"""The alert on a real cluster: a partition without an owner is reported in time where nothing else moves.

A cooperative member that must give two of its partitions up stands still, with a long session: until it goes on, the
coordinator waits, and writes nothing. A follower is all that reads the log.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from groupledger.answers.unowned import PATIENCE
from groupledger.cli.exits import Exit
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.moments import iso
from groupledger.core.protocol.consumer import Callback
from tests.live.broker import broker
from tests.live.dumped import started
from tests.live.members import Member, Programs, Settings
from tests.live.topics import Topics

EVERY = 2.0
"""Seconds of a follower's turn."""
LATE = 3.0
"""How many times as late as a calm answer one may be: other tests share the machine."""
THRESHOLD = 30.0
SESSION_MS, MOST_POLL_MS = 900_000, 1_000_000
START_SECONDS = 300.0
GROUP = "payments"
SINCE = re.compile(r'^groupledger_unowned_since_timestamp_seconds\{cluster="[^"]*",group="payments"\} (\S+)$', re.M)
AGE = re.compile(r'^groupledger_oldest_unowned_seconds\{cluster="[^"]*",group="payments"\} (\S+)$', re.M)
KNOWN = re.compile(r"^groupledger_known_up_to_timestamp_seconds\{[^}]*\} (\S+)$", re.M)
NUMBER = re.compile(r'^groupledger_unowned_partitions\{cluster="[^"]*",group="payments"\} (\S+)$', re.M)


def now() -> float:
    """The clock of the wall, which brokers and followers go by: seconds since 1970."""
    return time.time_ns() / 1e9


@dataclass(frozen=True)
class Said:
    """What a command printed, its exit code, and when it began and ended (seconds since 1970)."""

    code: int
    text: str
    began: float
    ended: float


@dataclass(frozen=True)
class Cluster:
    """A cluster with a follower of it, and how members of its group start."""

    ledger: Path
    start: Callable[[str], Member]

    def ask(self, *words: str) -> Said:
        """Run a command on the ledger."""
        began = now()
        command = [sys.executable, "-m", "groupledger", *words, "--ledger", str(self.ledger)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (Exit.DONE, Exit.VIOLATIONS) or "[EMPTY_LEDGER]" in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, began, now())

    def unowned(self, *length: str) -> tuple[Said, list[datetime]]:
        """Ask which partitions have had no owner for so long; since when each."""
        said = self.ask("who", "--unowned-since", *length, "--fail", "--json")
        found = json.loads(said.text)["unowned"]["partitions"]
        return said, [datetime.fromisoformat(each["since"]) for each in found]

    def behind(self) -> float:
        """Return how many seconds an answer is behind the clock: a turn, and what the question takes."""
        said = self.ask("openmetrics")
        known = gauge(KNOWN, said)
        assert known is not None
        return said.ended - known


@pytest.fixture
def cluster(tmp_path: Path, programs: Programs) -> Iterator[Cluster]:
    """A broker of one's own with a topic of four partitions, and a process that follows it."""
    with ExitStack() as ends:
        (tmp_path / "broker").mkdir()
        address = ends.enter_context(broker(tmp_path / "broker"))
        Topics(address).create({"orders": 4})

        def start(name: str) -> Member:
            settings = Settings(
                address,
                GROUP,
                name,
                "cooperative-sticky",
                SESSION_MS,
                None,
                max_poll_ms=MOST_POLL_MS,
                revoking_ms=3_000,
            )
            member = Member(programs.command("confluent-kafka", settings, ("orders",), tmp_path))
            ends.callback(member.stop)
            ends.callback(member.process.send_signal, signal.SIGCONT)
            return member

        process = ends.enter_context(started(address, tmp_path / "ledger", "--follow", "--every", str(EVERY)))
        ends.callback(process.communicate, timeout=START_SECONDS)
        ends.callback(process.send_signal, signal.SIGTERM)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["status"] == "done"
        yield Cluster(tmp_path / "ledger", start)


def until(true: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    """Wait until it is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so within {seconds:g} s"
        time.sleep(0.05)


def called(member: Member, callback: Callback, number: int) -> bool:
    """Whether the last call of its listener is this one, with so many partitions."""
    last: tuple[Callback, tuple[TopicPartition, ...]] = member.calls[-1] if member.calls else (Callback.LOST, ())
    return (last[0], len(last[1])) == (callback, number)


def gauge(pattern: re.Pattern[str], said: Said) -> float | None:
    """The value of a sample; None: there is none."""
    found = pattern.search(said.text)
    return None if found is None else float(found[1])


def test_a_partition_without_an_owner_is_reported_in_time_and_no_longer_than_it_is_so(cluster: Cluster) -> None:
    owner = cluster.start("owner")
    until(lambda: called(owner, Callback.ASSIGNED, 4))
    until(lambda: "every partition of a topic" in cluster.ask("who", "--unowned-since", "--fail").text)
    slack = LATE * max(cluster.behind() for _ in range(3))
    newcomer = cluster.start("newcomer")
    until(lambda: called(owner, Callback.REVOKED, 2))
    owner.pause()
    until(lambda: len(cluster.unowned()[1]) == 2)
    [since] = set(cluster.unowned()[1])

    reported_from(lambda: cluster.unowned(f"{THRESHOLD:g}s")[0], since, THRESHOLD, slack)
    ages(cluster, since, slack)
    reported_from(lambda: cluster.ask("audit", "--fail-on", "UNOWNED"), since, PATIENCE.total_seconds(), slack)
    assert "orders-" in cluster.ask("audit", "--fail-on", "UNOWNED").text

    owner.go_on()
    until(lambda: called(newcomer, Callback.ASSIGNED, 2))
    ended = datetime.fromtimestamp(now(), since.tzinfo)
    until(lambda: cluster.unowned()[0].code == Exit.DONE)
    metrics = cluster.ask("openmetrics")
    assert [gauge(each, metrics) for each in (NUMBER, AGE, SINCE)] == [0, 0, None]
    until(lambda: cluster.ask("audit", "--fail-on", "UNOWNED", "--since", iso(ended)).code == Exit.DONE)
    over = cluster.ask("audit", "--fail-on", "UNOWNED")
    assert over.code == Exit.VIOLATIONS, "what was so is in the record"
    assert "as far as known" not in over.text


def reported_from(ask: Callable[[], Said], since: datetime, threshold: float, slack: float) -> None:
    """Ask again and again: it fails not before the threshold, and at the latest a turn after it."""
    begun = since.timestamp()
    while True:
        said = ask()
        if said.code == Exit.VIOLATIONS:
            break
        assert said.began - begun <= threshold + EVERY + slack, "it is not reported"
        time.sleep(max(0.0, min(EVERY, begun + threshold - now())))
    assert said.ended - begun >= threshold, "it is reported too early"
    took = f"reported {said.began - begun:.1f} s after it began, threshold {threshold:g} s, slack {slack:.1f} s"
    print(f"\n{took}: exit {said.code}\n{said.text}")  # noqa: T201


def ages(cluster: Cluster, since: datetime, slack: float) -> None:
    """The gauges say since when, and for how long, at most a turn behind the clock."""
    for _ in range(2):
        said = cluster.ask("openmetrics")
        begin, age = gauge(SINCE, said), gauge(AGE, said)
        assert gauge(NUMBER, said) == 2
        assert begin is not None
        assert age is not None
        assert abs(begin - since.timestamp()) < 0.001
        assert said.began - begin - EVERY - slack <= age <= said.ended - begin
        print(f"\noldest for {age:.1f} s, {said.began - begin:.1f} s after it began")  # noqa: T201
        time.sleep(EVERY)
