"""Random groups and what happens to them, by seed: for tests of the simulator and for the benchmark of the fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from groupledger.core.protocol import events as e
from groupledger.core.protocol.simulator import Script
from groupledger.core.rebalance.step import Form

TOPICS = ("clicks", "orders", "views")
MOST_MEMBERS = 8
MOST_PARTITIONS = 12


@dataclass(slots=True)
class Story:
    """What may come next: processes by what they are, and the topics there are."""

    random: Random
    assignors: tuple[str, ...]
    topics: dict[str, int]
    talking: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)  # with a session that has not run out
    frozen: list[str] = field(default_factory=list)
    static: set[str] = field(default_factory=set)
    born: int = 0

    def next(self) -> e.Event:
        """One event that can happen now, and what it changes."""
        choices = [self.join, self.join, self.set_partitions, self.delete_topic]
        if len(self.talking) > 1:
            choices += [self.leave, self.crash, self.pause, self.subscribe, self.subscribe, self.freeze, self.miss]
        if self.ended:
            choices += [self.expire_ended, self.restart]
        if self.paused:
            choices += [self.resume, self.resume, self.expire_paused]
        if self.frozen:
            choices += [self.refresh, self.refresh]
        event: e.Event = self.random.choice(choices)()
        return event

    def join(self) -> e.Event:
        if len(self.talking) >= MOST_MEMBERS:
            return self.set_partitions()
        self.born += 1
        name = f"m{self.born}"
        self.talking.append(name)
        instance = f"i{self.born}" if self.random.random() < 0.3 else None
        if instance is not None:
            self.static.add(name)
        return e.Join(name, self.some_topics(), self.assignors, instance)

    def leave(self) -> e.Event:
        name = self.take(self.talking)
        if name in self.static:
            self.ended.append(name)
        return e.Leave(name)

    def crash(self) -> e.Event:
        name = self.take(self.talking)
        self.ended.append(name)
        return e.Crash(name)

    def pause(self) -> e.Event:
        name = self.take(self.talking, unfreeze=False)
        self.paused.append(name)
        return e.Pause(name)

    def resume(self) -> e.Event:
        name = self.take(self.paused, unfreeze=False)
        self.talking.append(name)
        return e.Resume(name)

    def expire_paused(self) -> e.Event:
        return e.Expire(self.random.choice(self.paused))

    def expire_ended(self) -> e.Event:
        return e.Expire(self.take(self.ended))

    def restart(self) -> e.Event:
        name = self.take(self.ended)
        self.talking.append(name)
        return e.Restart(name)

    def subscribe(self) -> e.Event:
        return e.Subscribe(self.random.choice(self.talking), self.some_topics())

    def set_partitions(self) -> e.Event:
        topic = self.random.choice(TOPICS)
        self.topics[topic] = min(self.topics.get(topic, 0) + self.random.randint(1, 3), MOST_PARTITIONS)
        return e.SetPartitions(topic, self.topics[topic])

    def delete_topic(self) -> e.Event:
        if len(self.topics) < 2:
            return self.set_partitions()
        topic = self.random.choice(sorted(self.topics))
        del self.topics[topic]
        return e.DeleteTopic(topic)

    def freeze(self) -> e.Event:
        name = self.random.choice(self.talking)
        if name not in self.frozen:
            self.frozen.append(name)
        return e.FreezeMetadata(name)

    def refresh(self) -> e.Event:
        name = self.random.choice(self.frozen)
        if name in self.paused:
            return self.set_partitions()
        self.frozen.remove(name)
        return e.RefreshMetadata(name)

    def miss(self) -> e.Event:
        return e.MissAssignment(self.random.choice(self.talking))

    def some_topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.random.sample(TOPICS, self.random.randint(1, len(TOPICS)))))

    def take(self, among: list[str], *, unfreeze: bool = True) -> str:
        name = self.random.choice(among)
        among.remove(name)
        if unfreeze and name in self.frozen:
            self.frozen.remove(name)
        return name


def script(seed: int, events: int, form: Form = Form.KIP, assignors: tuple[str, ...] = e.COOPERATIVE_STICKY) -> Script:
    """A group of up to eight members over three topics, and so many events, a second apart."""
    random = Random(seed)  # noqa: S311 - the same seed gives the same story
    topics = {topic: random.randint(1, MOST_PARTITIONS) for topic in TOPICS}
    story = Story(random, assignors, dict(topics))
    return Script(topics, [story.next() for _ in range(events)], form)
