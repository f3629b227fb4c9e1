"""Groups of every client library on one broker, whose members come and go: each member is a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.kafka.groups import LOG
from tests.live.members import Member, Programs, Settings

SESSION_MS = 20_000
SECONDS = 300
"""Until a member that was started is in a group, and one that was told to leave is gone: on however slow a machine."""
TOGETHER = 2
"""Members that a group has at a time."""


class Way(NamedTuple):
    """How a member takes part: its library, the assignor of a classic group, the protocol."""

    library: str
    assignor: str = ""
    protocol: str = "classic"


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """A group, what it reads, and its members in the order in which they come and go."""

    group_id: str
    topics: tuple[str, ...]
    members: tuple[Way, ...]


class Tail:
    """The values of the log, read as they are written, by a consumer that is in no group."""

    def __init__(self, address: str, partitions: int) -> None:
        patient = {"api.version.request.timeout.ms": 300_000}  # else a slow broker is taken for one of before 0.10
        self._consumer = Consumer({"bootstrap.servers": address, "group.id": "tail"} | patient)
        self._consumer.assign([TopicPartition(LOG, partition, 0) for partition in range(partitions)])
        self._values: list[bytes] = []

    def has(self, client_id: str) -> bool:
        """Whether some record names this client; waits a little for what is new."""
        messages = self._consumer.consume(1_000, 0.2)
        self._values += [value for message in messages if not message.error() and (value := message.value())]
        return any(client_id.encode() in value for value in self._values)

    def close(self) -> None:
        """Read no more."""
        self._consumer.close()


class Fleet:
    """Use it in a `with`: its processes end with it. `changes` counts members that came and members that went."""

    def __init__(self, programs: Programs, address: str, log_partitions: int, folder: Path) -> None:
        self.changes = 0
        self.played: dict[str, LiveGroup] = {}
        self._programs, self._address, self._folder = programs, address, folder
        self._tail = Tail(address, log_partitions)
        self._producer = Producer({"bootstrap.servers": address})
        self._members: dict[str, Member] = {}
        self._started: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members.values():
            member.stop()
        self._tail.close()

    def play(self, *groups: LiveGroup) -> None:
        """The lives of these groups side by side: two join, one comes and one goes, and in the end all go."""
        self.played |= {group.group_id: group for group in groups}
        lives = [self._life(group) for group in groups]
        while lives:
            self._produce(sorted({topic for group in groups for topic in group.topics}))
            lives = [life for life in lives if next(life, None) is not None]

    def _life(self, group: LiveGroup) -> Iterator[bool]:
        """Order something and yield; what was ordered has happened by the time of the next order."""
        present: list[str] = []
        for way in group.members:
            number = self._started[group.group_id] = self._started.get(group.group_id, 0) + 1
            client_id = f"{group.group_id}-{number:03}"
            self._start(group, way, client_id)
            yield True
            self._until_seen(client_id)
            present.append(client_id)
            if len(present) > TOGETHER:
                self._leave(present.pop(0))
        for client_id in present:
            self._leave(client_id)

    def _start(self, group: LiveGroup, way: Way, client_id: str) -> None:
        settings = Settings(
            *(self._address, group.group_id, client_id, way.assignor, SESSION_MS, None),
            protocol=way.protocol,
            commits=True,
        )
        command = self._programs.command(way.library, settings, group.topics, self._folder / client_id)
        self._members[client_id] = Member(command, self._log(client_id))

    def _leave(self, client_id: str) -> None:
        member = self._members[client_id]
        assert member.process.poll() is None, f"{client_id} had ended on its own: {self._said(client_id)}"
        member.leave(SECONDS)
        member.stop()
        del self._members[client_id]
        assert member.process.returncode == 0, f"{client_id} failed: {self._said(client_id)}"
        self.changes += 1

    def _until_seen(self, client_id: str) -> None:
        until = time.monotonic() + SECONDS
        while not self._tail.has(client_id):
            ended = self._members[client_id].process.poll()
            assert ended is None, f"{client_id} ended before it was in its group: {self._said(client_id)}"
            assert time.monotonic() < until, f"{client_id} is in no group after {SECONDS} s: {self._said(client_id)}"
        self.changes += 1

    def _said(self, client_id: str) -> str:
        return self._log(client_id).read_text(encoding="utf-8", errors="replace")[-2_000:]

    def _log(self, client_id: str) -> Path:
        return self._folder / f"{client_id}.log"

    def _produce(self, topics: Sequence[str]) -> None:
        """Something to read, and so to commit."""
        for topic in topics:
            for number in range(10):
                self._producer.produce(topic, key=f"{number}", value=f"{number % 3}")
        assert self._producer.flush(SECONDS) == 0, "the broker takes no records"
