"""A group on a real broker, and the same group in the simulator: each event happens to both."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import LISTENER
from groupledger.core.protocol.settlement import Settlement
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.registry import LIBRDKAFKA
from groupledger.core.rebalance.step import Form
from tests.live.members import Member, Said, Settings
from tests.live.topics import Topics
from tests.live.ways import fallen_in, leader_of, other_ways

Start = Callable[[Settings], Member]
"""A process that joins when it is told to subscribe."""
Heard = tuple[Said, int]
"""A call, and when: milliseconds since the stage began."""
SIMULATED = {"confluent-kafka": LIBRDKAFKA}
"""What the simulator calls a library, if it does not call it so."""
MOST_SECONDS = 180
"""A client that hangs in JoinGroup does so until its session ends: up to 45 s, and more on a busy machine."""
QUIET_SECONDS = 1.5
"""Nothing was said for so long: longer than a heartbeat and a refresh of metadata together."""


class Stage:
    """Use it in a `with`: its processes end with it. Member ids decide ties, so the simulator is told the real ones."""

    clock = False
    """Whether the simulated group has times."""

    def __init__(self, start: Start, settings: Settings, topics: Topics, counts: Mapping[str, int]) -> None:
        """`counts`: the topics there are at first, which are made."""
        topics.create(counts)
        self.topics = topics
        self._began = time.monotonic()
        self._start, self._settings, self._counts = start, settings, dict(counts)
        self._members: dict[str, list[Member]] = defaultdict(list)
        self._ready: dict[str, Member] = {}
        self._events: list[e.Event] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for members in (*self._members.values(), self._ready.values()):
            for each in members:
                each.stop()

    def happen(self, *events: e.Event) -> None:
        """Let them happen, one at once after the other; wait until all said what the simulator does, in quiet."""
        before = tuple(self._events)
        for event in events:
            self._prepare(event)
        for event in map(self._dated, events):
            HAPPENS[type(event)](self, event)
            self._events.append(event)
        happened = tuple(self._events[len(before) :])
        until, last, since, agrees = time.monotonic() + MOST_SECONDS, -1, time.monotonic(), False
        while time.monotonic() < until:
            time.sleep(0.05)
            said = sum(len(each.calls) for members in self._members.values() for each in members)
            if said != last:
                last, since, agrees = said, time.monotonic(), self._agrees(before, happened)
            elif agrees and time.monotonic() - since > QUIET_SECONDS:
                return

    def _dated(self, event: e.Event) -> e.Event:
        """The event as it happens now."""
        return replace(event, at_ms=self._ms(time.monotonic()))

    def _ms(self, moment: float) -> int:
        """Since the beginning."""
        return int((moment - self._began) * 1_000)

    def _agrees(self, before: tuple[e.Event, ...], events: tuple[e.Event, ...]) -> bool:
        """Whether one of the ways in which the last event may have happened gives what was said; that one stays."""
        *others, last = events
        for way in self._ways((*before, *others), last):
            self._events = [*before, *others, *way]
            if not self.differing():
                return True
        self._events = [*before, *events]
        return False

    def _ways(self, before: tuple[e.Event, ...], event: e.Event) -> Iterator[list[e.Event]]:
        """As it is; and what depends on who is faster."""
        yield [event]
        self._events = list(before)
        leader = leader_of(self._played())
        self._events = [*before, event]
        fallen = fallen_in(self._played()[-1])
        ways = other_ways(before, event, leader, clock=self.clock, fallen=fallen)
        yield from (list(way.events) for way in ways)

    def heard(self) -> dict[str, list[Heard]]:
        """{process: what its listener was told, and when}."""
        return {
            name: self._folded(
                [(call, self._ms(at)) for each in members for call, at in zip(each.calls, each.heard, strict=False)]
            )
            for name, members in self._members.items()
        }

    def expected(self) -> dict[str, list[Heard]]:
        """{process: what the simulator says of it, and when}."""
        found = defaultdict(list)
        for settled in self._played():
            for each in settled.calls:
                call = each.call.callback, each.call.partitions
                if each.call.callback in LISTENER:
                    found[each.member].append((call, each.started_ms))
        return {name: self._folded(calls) for name, calls in found.items()}

    def _folded(self, calls: list[Heard]) -> list[Heard]:
        """Calls as they are compared."""
        return calls

    def said(self) -> dict[str, list[Said]]:
        """{process: what its listener was told}."""
        return _calls(self.heard())

    def simulated(self) -> dict[str, list[Said]]:
        """{process: what the simulator says of it}."""
        return _calls(self.expected())

    def _played(self) -> list[Settlement]:
        return simulate(self._script())

    def _script(self) -> Script:
        """What happened until now."""
        return Script(self._counts, self._events, Form.AS_KAFKA, member_ids=self._member_ids())

    def _member_ids(self) -> dict[str, list[str]]:
        """{process: the ids that it had}."""
        return {name: [told for each in members for told in each.member_ids] for name, members in self._members.items()}

    def differing(self) -> set[str]:
        """Processes whose listener was told something else."""
        said, calls = self.said(), self.simulated()
        return {name for name in said.keys() | calls.keys() if said.get(name, []) != calls.get(name, [])}

    def member(self, name: str) -> Member:
        """The running process of this name."""
        return self._members[name][-1]

    def _prepare(self, event: e.Event) -> None:
        """A new process is there, and takes orders, before it joins; its name decides where its member id sorts."""
        if isinstance(event, e.Join):
            self._ready[event.member] = made = self._start(self._settings_of(event))
            made.until_ready(MOST_SECONDS)

    def join(self, event: e.Join) -> None:
        """Let the process that is ready join."""
        self._members[event.member].append(self._ready.pop(event.member))
        self.member(event.member).order("subscribe", *event.topics)

    def _settings_of(self, event: e.Join) -> Settings:
        settings = replace(self._settings, client_id=event.member, instance=event.group_instance_id)
        if event.group_protocol is e.GroupProtocol.CONSUMER:  # the settings name the assignor of classic members
            return replace(settings, protocol="consumer", assignor=event.remote_assignor or "")
        return settings

    def explain(self) -> str:
        """Who differs, and how; and what was played, with the real ids and times, so that it can be played again."""
        said, calls = self.said(), self.simulated()
        lines = [
            f"{name} {kind}: {'; '.join(map(_text, told.get(name, [])))}"
            for name in sorted(self.differing())
            for kind, told in (("said", said), ("simulated", calls))
        ]
        return "\n".join(["", *lines, f"played: {self._script()!r}"])


def _calls(heard: Mapping[str, list[Heard]]) -> dict[str, list[Said]]:
    return {name: [call for call, _ in calls] for name, calls in heard.items()}


def _text(call: Said) -> str:
    return " ".join([call[0].name.lower(), *(f"{topic[-1]}{number}" for topic, number in call[1])])


def _leave(stage: Stage, event: e.Leave) -> None:
    stage.member(event.member).leave(MOST_SECONDS)


def _subscribe(stage: Stage, event: e.Subscribe) -> None:
    stage.member(event.member).order("subscribe", *event.topics)


HAPPENS: dict[type[e.Event], Callable[[Stage, Any], None]] = {
    e.Join: lambda stage, event: stage.join(event),
    e.Leave: _leave,
    e.Crash: lambda stage, event: stage.member(event.member).kill(),
    e.Pause: lambda stage, event: stage.member(event.member).pause(),
    e.Hang: lambda stage, event: stage.member(event.member).order("hang"),
    e.Resume: lambda stage, event: stage.member(event.member).go_on(),
    e.Expire: lambda stage, event: None,  # the broker's clock does it
    e.Subscribe: _subscribe,
    e.SetPartitions: lambda stage, event: stage.topics.grow(event.topic, event.partitions),
    e.DeleteTopic: lambda stage, event: stage.topics.delete(event.topic),
}
