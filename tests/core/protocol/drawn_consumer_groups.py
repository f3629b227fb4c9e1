"""Random histories of groups with members of the consumer protocol, by seed, drawn as they happen.

The next event is always one that can be now.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, Times
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.settlement import Pace, Settlement
from groupledger.core.protocol.simulator import Script, live
from groupledger.core.rebalance.step import Form

TOPICS = ("clicks", "orders", "views")
MOST_MEMBERS = 5
MOST_PARTITIONS = 9
PATTERNS = ("or.*", "clicks|views", ".*s")


class History(Iterator[e.Event]):
    """The events of one group; `classic`: whether some of its members follow the classic protocol; `times`: of all.

    `far`: answers take 900 ms, so that one is on its way most of the time.
    """

    def __init__(self, seed: int, events: int, *, classic: bool, times: Times | None = None, far: bool = False) -> None:
        self.random = Random(seed)  # noqa: S311 - the same seed gives the same history
        self.left, self.classic, self.times, self.far = events, classic, times, far
        self.assignors = self.random.choice((("range",), ("cooperative-sticky",)))
        self.topics = {topic: self.random.randint(1, MOST_PARTITIONS) for topic in TOPICS}
        self.started: dict[str, e.Join] = {}
        self.alive: set[str] = set()
        self.paused: set[str] = set()
        self.now_ms = 0
        self.away: frozenset[str] = frozenset()  # processes with a seat in a consumer group, which say nothing

    def script(self) -> Script:
        """The group: its members take their time."""
        delays = {each: self.random.choice((0, 0, 40, 7_000)) for each in (Callback.REVOKED, Callback.ASSIGNED)}
        round_ms = self.random.choice((0, 0, 15))
        pace = Pace(900 if self.far else round_ms, delays)
        beats_ms, assignor = self.random.choice((1_000, 5_000)), self.random.choice(("uniform", "range"))
        settings = ConsumerGroupSettings(heartbeat_interval_ms=beats_ms, remote_assignor=assignor)
        return Script(dict(self.topics), self, Form.KIP, pace, times=self.times, consumer_group=settings)

    def play(self) -> Iterator[Settlement]:
        """Each event and what came of it."""
        for settled in live(self.script()):
            name = getattr(settled.event, "member", "")
            self.alive = (self.alive & self.paused) | settled.running.keys()
            if settled.refused is not None:
                self.alive.discard(name)
            rows = () if settled.coordinated is None or settled.rounds else settled.coordinated.members
            self.away = frozenset(row.member for row in rows if row.away)
            self.now_ms = max([self.now_ms, *(call.ended_ms for call in settled.calls)])
            yield settled

    def __next__(self) -> e.Event:
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        choices = [self.join, self.join, self.set_partitions, self.delete_topic, self.wait]
        if self.talking():
            choices += [self.leave, self.crash, self.pause, self.subscribe, self.subscribe, self.restart, self.miss]
        if self.paused:
            choices += [self.resume, self.resume]
        if self.away:
            choices += [self.expire]
        event: e.Event = self.random.choice(choices)()
        return event

    def talking(self) -> list[str]:
        return sorted(self.alive - self.paused)

    def at(self) -> int:
        """Some time after what came before."""
        self.now_ms += self.random.choice((0, 300, 2_000, 12_000))
        return self.now_ms

    def join(self) -> e.Event:
        if len(self.alive) >= MOST_MEMBERS:
            return self.set_partitions()
        name = f"m{len(self.started) + 1}"
        instance = f"i-{name}" if self.random.random() < 0.3 else None
        classic = self.classic and self.random.random() < 0.5
        regex = self.random.choice(PATTERNS) if not classic and self.random.random() < 0.2 else None
        self.started[name] = e.Join(
            name,
            () if regex is not None else self.some_topics(),
            self.assignors,
            instance,
            group_protocol=e.GroupProtocol.CLASSIC if classic else e.GroupProtocol.CONSUMER,
            topic_regex=regex,
            at_ms=self.at(),
        )
        self.alive.add(name)
        return self.started[name]

    def leave(self) -> e.Event:
        return e.Leave(self.gone(), at_ms=self.at())

    def crash(self) -> e.Event:
        return e.Crash(self.gone(), at_ms=self.at())

    def restart(self) -> e.Event:
        """Of one that runs; or of one that is gone."""
        gone = sorted(self.started.keys() - self.alive)
        return e.Restart(self.random.choice(gone or self.talking()), at_ms=self.at())

    def pause(self) -> e.Event:
        name = self.random.choice(self.talking())
        self.paused.add(name)
        return e.Pause(name, at_ms=self.at())

    def resume(self) -> e.Event:
        name = self.random.choice(sorted(self.paused))
        self.paused.remove(name)
        return e.Resume(name, at_ms=self.at())

    def expire(self) -> e.Event:
        return e.Expire(self.random.choice(sorted(self.away)))

    def subscribe(self) -> e.Event:
        return e.Subscribe(self.random.choice(self.talking()), self.some_topics(), at_ms=self.at())

    def set_partitions(self) -> e.Event:
        topic = self.random.choice(TOPICS)
        self.topics[topic] = min(self.topics.get(topic, 0) + self.random.randint(1, 3), MOST_PARTITIONS)
        return e.SetPartitions(topic, self.topics[topic], at_ms=self.at())

    def delete_topic(self) -> e.Event:
        if len(self.topics) < 2:
            return self.set_partitions()
        topic = self.random.choice(sorted(self.topics))
        del self.topics[topic]
        return e.DeleteTopic(topic, at_ms=self.at())

    def miss(self) -> e.Event:
        return e.MissAssignment(self.random.choice(self.talking()), at_ms=self.at())

    def wait(self) -> e.Event:
        self.now_ms += self.random.choice((1_000, 20_000, 50_000))
        return e.Wait(at_ms=self.now_ms)

    def gone(self) -> str:
        name = self.random.choice(self.talking())
        self.alive.discard(name)
        return name

    def some_topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.random.sample(TOPICS, self.random.randint(1, len(TOPICS)))))
