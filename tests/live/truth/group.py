"""A group on a real broker, and what is done to it: each act is written down before it happens, and again when the
group is quiet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.live.broker import Broker
from tests.live.members import Member, Programs, Settings
from tests.live.topics import Topics
from tests.live.truth.journal import Journal
from tests.live.truth.observers import PATIENT, Tail

SESSION_MS = 6_000
QUIET_SECONDS = 2.5
"""No record and no call for so long: longer than a heartbeat and a refresh of metadata together."""
MOST_SECONDS, TOLD_SECONDS, UNHEEDED_SECONDS = 60.0, 20.0, 12.0
HEARD, LISTENING = ("join", "thaw", "resume", "restart", "takeover"), ("classic", "consumer")
"""Acts after which a client is told what it is given, and protocols in which it is."""


@dataclass
class Scene:
    """What all groups of a day share."""

    broker: Broker
    journal: Journal
    tail: Tail
    programs: Programs
    folder: Path

    def __post_init__(self) -> None:
        self.admins, self.all_topics = list[AdminClient](), list[Topics]()
        self.connect()

    def connect(self) -> None:
        """Ask by a new client: one that knew the broker before its end waits for answers that never come.

        The old one is kept: where it is destroyed while others work, confluent-kafka may stand still.
        """
        self.admins.append(AdminClient({"bootstrap.servers": self.broker.address} | PATIENT))
        self.all_topics.append(Topics(self.broker.address))

    @property
    def admin(self) -> AdminClient:
        """The newest one."""
        return self.admins[-1]

    @property
    def topics(self) -> Topics:
        """Over the newest one."""
        return self.all_topics[-1]


@dataclass(frozen=True)
class Way:
    """How a member takes part. `topics`: those it subscribes to."""

    library: str
    topics: tuple[str, ...]
    assignor: str = ""
    protocol: str = "classic"
    max_poll_ms: int | None = None


@dataclass
class Group:
    """A group with its members by the name of their client; `way` is how they take part if nothing else is said.

    `heard` and `given`: when each was last told anything, and given partitions (`time.monotonic`).
    """

    scene: Scene
    group_id: str
    way: Way
    members: dict[str, Member] = field(default_factory=dict)
    heard: dict[str, float] = field(default_factory=dict)
    given: dict[str, float] = field(default_factory=dict)

    def create(self, counts: Mapping[str, int]) -> None:
        """Make topics of the group's own."""
        for topic, count in counts.items():
            self._topic("created", topic, count)
        self.scene.topics.create(counts)

    def join(self, *names: str, instance: str | None = None, also: Sequence[str] = (), **way: Any) -> None:
        """Start processes. `also`: kinds of causes (`facts`) that it is beside."""
        taken = replace(self.way, **way)
        self._do("join", names, lambda: self._start(names, taken, instance), also=list(also), **told(taken, instance))

    def leave(self, *names: str, also: Sequence[str] = ()) -> None:
        """Let them close."""
        self._do("leave", names, lambda: self._each(names, self._closes), also=list(also))
        self._forget(names)

    def kill(self, *names: str) -> None:
        """End them without a word."""
        self._do("kill", names, lambda: self._each(names, Member.kill))
        self._forget(names)

    def freeze(self, name: str) -> None:
        """Let it stand still until its session has ended."""
        self._do("freeze", [name], self.members[name].pause)

    def thaw(self, name: str) -> None:
        """Let it go on: it learns that it is out, and joins anew."""
        self._do("thaw", [name], self.members[name].go_on)

    def hang(self, name: str) -> None:
        """Let it poll no more until its client gives up."""
        self._do("hang", [name], lambda: self.members[name].order("hang"))

    def resume(self, name: str) -> None:
        """Let it poll again."""
        self._do("resume", [name], lambda: self.members[name].order("resume"))

    def subscribe(self, name: str, *topics: str) -> None:
        """Let it subscribe to other topics."""
        self._do("subscribe", [name], lambda: self.members[name].order("subscribe", *topics), topics=list(topics))

    def restart(self, name: str, instance: str, **way: Any) -> None:
        """Close a static member, which leaves no group by that, and start it again at once."""
        taken = replace(self.way, **way)

        def again() -> None:
            self._closes(self.members[name])
            self._forget([name])
            self._start([name], taken, instance)

        self._do("restart", [name], again, **told(taken, instance))

    def take_over(self, old: str, new: str, instance: str, **way: Any) -> None:
        """Start another process with the instance id of one that lives."""
        taken = replace(self.way, **way)
        start = lambda: self._start([new], taken, instance)  # noqa: E731
        self._do("takeover", [new], start, old=old, **told(taken, instance))

    def grow(self, topic: str, count: int) -> None:
        """Give a topic more partitions."""

        def grown() -> None:
            self._topic("grown", topic, count)
            self.scene.topics.grow(topic, count)

        self._do("grow", [], grown, topics=[topic])

    def remove(self, topic: str) -> None:
        """Delete a topic."""

        def removed() -> None:
            self._topic("deleted", topic, 0)
            self.scene.topics.delete(topic)

        self._do("remove", [], removed, UNHEEDED_SECONDS, topics=[topic])

    def remake(self, topic: str, count: int) -> None:
        """Make a topic that was deleted."""
        self._do("remake", [], lambda: self.create({topic: count}), topics=[topic])

    def appear(self, topic: str, count: int) -> None:
        """Make a topic that a regular expression matches."""
        self._do("appear", [], lambda: self.create({topic: count}), topics=[topic])

    def delete(self) -> None:
        """Delete the group, which has no members."""

        def deleted() -> None:
            for future in self.scene.admin.delete_consumer_groups([self.group_id]).values():
                future.result()

        self._do("delete", [], deleted)

    def stop(self) -> None:
        """End what still runs."""
        for member in self.members.values():
            member.kill()
            member.stop()
        self.members.clear()

    def _do(
        self,
        act: str,
        clients: Iterable[str],
        happens: Callable[[], object],
        most: float = MOST_SECONDS,
        **more: Any,
    ) -> None:
        before, began = self.scene.tail.seen(self.group_id)[0], time.monotonic()
        self.scene.journal.write("act", group=self.group_id, act=act, clients=list(clients), **more)
        happens()
        hear = clients if act in HEARD and self.way.protocol in LISTENING else ()
        self._settle(before, lambda: all(self.given.get(client, 0.0) > began for client in hear), most)

    def _settle(self, before: int, told: Callable[[], bool], most: float) -> None:
        """Wait until there are records beyond those `before`, the clients were told, and then nothing for a while."""
        began, seen = time.monotonic(), before
        while (waited := time.monotonic() - began) < most:
            seen, last = self.scene.tail.seen(self.group_id)
            quiet = time.monotonic() - max(last, *self.heard.values(), 0.0)
            if seen > before and quiet > QUIET_SECONDS and (told() or waited > TOLD_SECONDS):
                break
            time.sleep(0.1)
        self.scene.journal.write("settled", group=self.group_id, records=seen - before)
        self.describe()

    def describe(self) -> None:
        """Write down what the coordinator says of the group."""
        try:
            asked = self.scene.admin.describe_consumer_groups([self.group_id], request_timeout=10)
            found = asked[self.group_id].result()
        except KafkaException:  # a type of group that this client cannot describe
            return
        members = [
            {
                "member_id": each.member_id,
                "client_id": each.client_id,
                "instance": each.group_instance_id,
                "partitions": sorted([at.topic, at.partition] for at in each.assignment.topic_partitions),
            }
            for each in found.members
        ]
        self.scene.journal.write("described", group=self.group_id, state=found.state.name, members=members)

    def _start(self, names: Iterable[str], way: Way, instance: str | None) -> None:
        for name in names:
            settings = Settings(
                *(self.scene.broker.address, self.group_id, name, way.assignor, SESSION_MS, instance),
                protocol=way.protocol,
                commits=True,
                max_poll_ms=way.max_poll_ms,
            )
            command = self.scene.programs.command(way.library, settings, way.topics, self.scene.folder / name)
            self.members[name] = Member(command, self.scene.folder / f"{name}.log", self._hears(name))

    def _hears(self, name: str) -> Callable[[dict[str, Any]], None]:
        def hear(line: dict[str, Any]) -> None:
            self.heard[name] = time.monotonic()
            if line["call"] == "assigned":
                self.given[name] = self.heard[name]
            partitions = sorted(line["partitions"])
            told = {each: line[each] for each in ("call", "ms", "member_id")}
            self.scene.journal.write("call", group=self.group_id, client=name, **told, partitions=partitions)

        return hear

    def _closes(self, member: Member) -> None:
        """Order it to; a worker of Connect takes no orders but SIGTERM, and one that has ended by itself none."""
        if member.process.poll() is not None:
            self.scene.journal.write("ended", group=self.group_id, code=member.process.returncode)
        elif self.way.protocol == "connect":
            member.process.terminate()
            member.process.wait(MOST_SECONDS)
        else:
            member.leave(MOST_SECONDS)

    def _each(self, names: Iterable[str], does: Callable[[Member], object]) -> None:
        for name in names:
            does(self.members[name])

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self.members.pop(name).stop()

    def _topic(self, happened: str, topic: str, count: int) -> None:
        self.scene.journal.write("topic", topic=topic, happened=happened, partitions=count)


def told(way: Way, instance: str | None) -> dict[str, Any]:
    """What an act says of how a member takes part."""
    return {
        "library": way.library,
        "protocol": way.protocol,
        "assignor": way.assignor,
        "topics": list(way.topics),
        "instance": instance,
    }
