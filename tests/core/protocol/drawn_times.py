"""Random groups with a clock, and what happens to them, by seed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.settlement import Pace
from groupledger.core.rebalance.step import Form

TOPICS = ("t", "u")
MOST_MEMBERS = 6
MOST_PARTITIONS = 9
KINDS = (("cooperative-sticky",), ("cooperative-sticky",), ("range",), ("sticky",), ("range", "cooperative-sticky"))
MIXED = (("cooperative-sticky",), ("cooperative-sticky", "range"), ("range", "cooperative-sticky"))
"""Members of one group in the middle of KIP-429's upgrade: eager and cooperative ones have an assignor in common."""
END_MS = 3_600_000


@dataclass(slots=True)
class TimedStory:
    """What may come next: processes by what they are. `zombies`: whether members may stand still or be cut off."""

    random: Random
    assignors: tuple[str, ...]
    topics: dict[str, int]
    zombies: bool
    running: list[str] = field(default_factory=list)
    halted: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    static: set[str] = field(default_factory=set)
    born: int = 0
    now_ms: int = 0

    def next(self) -> e.Event:
        """One event that can happen now, soon after the last one or long after it."""
        self.now_ms += self.random.choice((0, 0, 1, 7, 900, 2_500, 9_000, 31_000, 120_000))
        choices = [self.join, self.join, self.set_partitions]
        if len(self.running) > 1:
            choices += [self.leave, self.crash, self.subscribe, self.restart_running, self.restart_running, self.miss]
            choices += [self.halt, self.halt, self.halt] if self.zombies else []
        if self.ended:
            choices += [self.restart, self.restart]
        if self.halted:
            choices += [self.resume, self.resume]
        event: e.Event = self.random.choice(choices)()
        return event

    def join(self) -> e.Event:
        if len(self.running) + len(self.halted) >= MOST_MEMBERS:
            return self.set_partitions()
        self.born += 1
        name = f"m{self.born}"
        self.running.append(name)
        instance = f"i{self.born}" if self.random.random() < 0.4 else None
        if instance is not None:
            self.static.add(name)
        return e.Join(name, self.some_topics(), self.assignors, instance, at_ms=self.now_ms)

    def leave(self) -> e.Event:
        return self.stop(e.Leave)

    def crash(self) -> e.Event:
        return self.stop(e.Crash)

    def stop(self, kind: type) -> e.Event:
        name = self.take(self.running)
        self.ended.append(name)
        event: e.Event = kind(name, at_ms=self.now_ms)
        return event

    def halt(self) -> e.Event:
        name = self.take(self.running)
        self.halted.append(name)
        return self.random.choice((e.Pause, e.Hang, e.CutOff))(name, at_ms=self.now_ms)

    def resume(self) -> e.Event:
        name = self.take(self.halted)
        self.running.append(name)
        return e.Resume(name, at_ms=self.now_ms)

    def restart(self) -> e.Event:
        name = self.take(self.ended)
        self.running.append(name)
        return e.Restart(name, at_ms=self.now_ms)

    def restart_running(self) -> e.Event:
        return e.Restart(self.random.choice(self.running), at_ms=self.now_ms)

    def subscribe(self) -> e.Event:
        return e.Subscribe(self.random.choice(self.running), self.some_topics(), at_ms=self.now_ms)

    def set_partitions(self) -> e.Event:
        topic = self.random.choice(TOPICS)
        self.topics[topic] = min(self.topics.get(topic, 0) + self.random.randint(1, 3), MOST_PARTITIONS)
        return e.SetPartitions(topic, self.topics[topic], at_ms=self.now_ms)

    def miss(self) -> e.Event:
        return e.MissAssignment(self.random.choice(self.running), at_ms=self.now_ms)

    def some_topics(self) -> tuple[str, ...]:
        return self.random.choice((("t",), ("u",), ("t", "u")))

    def take(self, among: list[str]) -> str:
        return among.pop(self.random.randrange(len(among)))


def some_times(random: Random) -> MemberTimes:
    """Of one member: quick or slow, with a short session or a long one, but never slower than it may be."""
    session_ms = random.choice((6_000, 10_000, 45_000))
    return MemberTimes(
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=random.choice((500, 3_000)),
        rebalance_timeout_ms=random.choice((8_000, 30_000, 300_000)),
        round_trip_ms=random.choice((0, 1, 4, 50)),
        processing_ms=random.choice((0, 0, 30, 200, 2_000)),
    )


def hasty_times(random: Random) -> MemberTimes:
    """Of one member whose timeouts are about as long as what it does, so that all of them run out at some time."""
    session_ms = random.choice((60, 300, 6_000))
    return MemberTimes(
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=random.choice((1, 20, 59)),
        rebalance_timeout_ms=random.choice((1, 3, 50, 1_000)),
        round_trip_ms=random.choice((0, 1, 7, 50)),
        processing_ms=random.choice((0, 1, 5, 100, 5_000)),
    )


def hasty_script(seed: int, events: int) -> Script:
    """Such a group, whose callbacks take time as well."""
    random = Random(seed)  # noqa: S311 - the same seed gives the same story
    drawn = timed_script(seed, events)
    of = {name: hasty_times(random) for name in (drawn.times or Times()).of}
    pace = Pace(callback_ms={each: random.choice((0, 0, 3, 40, 900)) for each in Callback})
    return replace(drawn, times=replace(drawn.times or Times(), each=hasty_times(random), of=of), pace=pace)


def mixed_script(seed: int, events: int, *, zombies: bool) -> Script:
    """Such a group whose members are of all kinds: eager or cooperative, with generations (KIP-792) or without."""
    random = Random(-1 - seed)  # noqa: S311 - the same seed gives the same members
    drawn = timed_script(seed, events, zombies=zombies)
    kinds = {name: (random.choice(MIXED), random.choice((ByteCode.KIP_429, ByteCode.KIP_792))) for name in names(drawn)}
    told = [
        replace(each, assignors=kinds[each.member][0], byte_code=kinds[each.member][1])
        if isinstance(each, e.Join)
        else each
        for each in drawn.events
    ]
    return replace(drawn, events=told)


def consumer_script(seed: int, events: int, *, zombies: bool) -> Script:
    """Such a group of the consumer protocol. An answer takes time: so long one that stood still goes on reading."""
    random = Random(-1 - seed)  # noqa: S311 - the same seed gives the same members
    drawn = timed_script(seed, events, zombies=zombies)
    static = {each.member for each in drawn.events if isinstance(each, e.Join) and each.group_instance_id is not None}
    told = [_of_consumer_group(each, static) for each in drawn.events]
    settings = ConsumerGroupSettings(
        heartbeat_interval_ms=random.choice((500, 5_000)),
        session_timeout_ms=random.choice((6_000, 45_000)),
        remote_assignor=random.choice(("uniform", "range")),
    )
    times = drawn.times or Times()
    of = {name: replace(each, round_trip_ms=max(each.round_trip_ms, 1)) for name, each in times.of.items()}
    return replace(drawn, events=told, times=replace(times, of=of), consumer_group=settings)


def _of_consumer_group(event: e.Event, static: set[str]) -> e.Event:
    """A static member that crashed could not come back before its session is over, so it leaves."""
    if isinstance(event, e.Crash) and event.member in static:
        return e.Leave(event.member, at_ms=event.at_ms)
    if isinstance(event, e.Join):
        return replace(event, group_protocol=e.GroupProtocol.CONSUMER)
    return event


def names(script: Script) -> list[str]:
    """Of all processes, in the order in which they join."""
    return [each.member for each in script.events if isinstance(each, e.Join)]


def timed_script(seed: int, events: int, *, zombies: bool = True, records_per_second: int | None = 7) -> Script:
    """A group of up to six members over two topics; at last all go on, or start again."""
    random = Random(seed)  # noqa: S311 - the same seed gives the same story
    topics = {topic: random.randint(1, MOST_PARTITIONS) for topic in TOPICS}
    story = TimedStory(random, random.choice(KINDS), dict(topics), zombies)
    told = [story.next() for _ in range(events)]
    story.now_ms += random.choice((0, 400_000))
    told += [e.Resume(name, at_ms=story.now_ms) for name in story.halted]
    told += [e.Restart(name, at_ms=story.now_ms) for name in story.ended if name in story.static]
    told.append(e.SetPartitions("t", story.topics["t"], at_ms=story.now_ms + END_MS))
    of = {f"m{number}": some_times(random) for number in range(1, story.born + 1)}
    times = Times(some_times(random), of, random.choice((0, 3_000)), records_per_second)
    pace = Pace(callback_ms={each: random.choice((0, 0, 3, 40, 900)) for each in Callback})
    return Script(topics, told, Form.KIP, pace, times=times)
