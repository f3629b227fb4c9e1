"""Histories of groups in which nothing is wrong: members come and go, topics grow, versions are rolled out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import events as e
from tests.corpus.history import History
from tests.corpus.modern_log import ModernLog
from tests.corpus.played import NOTICED, Back, Step, Story, play, wire

SEED = 20_261_121
CLASSIC, MODERN = 150, 50
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
STATIC = ("range", "roundrobin", "sticky")
"""Under cooperative-sticky a static member that comes back claims nothing, which is a finding of the least severity."""
TOPICS = ("invoices", "orders", "payments")
MOST_MEMBERS = 5


def clean() -> Iterator[History]:
    """All of them, from one seed."""
    random = Random(SEED)  # noqa: S311 - the same corpus each time
    yield from play([_story(random, number) for number in range(CLASSIC)], "clean")
    for number in range(MODERN):
        yield _modern(random, number)


class _Group:
    """A classic group as it grows in steps."""

    def __init__(self, random: Random, number: int) -> None:
        self.random, self.assignor = random, ASSIGNORS[number % len(ASSIGNORS)]
        self.counts = {topic: random.randint(2, 8) for topic in TOPICS[: random.randint(1, 3)]}
        self.first = dict(self.counts)
        self.topics = tuple(self.counts)
        self.is_static = self.assignor in STATIC and number % 3 == 0
        self.present: list[str] = []
        self.steps: list[Step] = []
        self.racks: dict[str, str] = {}
        self._started = 0

    def join(self, *, together: bool = False) -> None:
        """A member more."""
        self._started += 1
        name = f"client-{self._started}"
        self.present.append(name)
        if self.random.random() < 0.3:
            self.racks[name] = self.random.choice(("eu-1a", "eu-1b"))
        assignors = (self.assignor,)
        instance = f"pod-{self._started}" if self.is_static else None
        self.steps.append(e.Join(
            member=name, topics=self.topics, assignors=assignors, group_instance_id=instance, together=together
        ))  # fmt: skip

    def leave(self) -> None:
        """A member less: it closes, or its session runs out. A static one does not say that it goes."""
        name = self.present.pop(self.random.randrange(len(self.present)))
        if self.is_static or self.random.random() < 0.4:
            self.steps += [e.Crash(member=name), e.Expire(member=name)]
        else:
            self.steps.append(e.Leave(member=name))

    def grow(self) -> None:
        """More partitions of a topic."""
        topic = self.random.choice(self.topics)
        self.counts[topic] += self.random.randint(1, 4)
        self.steps.append(e.SetPartitions(topic=topic, partitions=self.counts[topic]))

    def roll(self) -> None:
        """Every member is replaced, one after the other; static ones come back as who they were."""
        if self.is_static:
            self.steps += [Back(name) for name in self.present]
            return
        for name in tuple(self.present):
            self.steps.append(e.Leave(member=name))
            self.present.remove(name)
            self.join()

    def step(self) -> None:
        """One of them."""
        choices = [self.grow]
        choices += [self.join] * 2 if len(self.present) < MOST_MEMBERS else []
        choices += [self.leave] if len(self.present) > 1 else []
        choices += [self.roll] if 1 < len(self.present) < 4 else []
        self.random.choice(choices)()


def _story(random: Random, number: int) -> Story:
    group = _Group(random, number)
    first = random.randint(1, 3)
    for left in reversed(range(first)):
        group.join(together=left > 0)
    for _ in range(random.randint(2, 5)):
        group.step()
    kind = "static" if group.is_static else "dynamic"
    what = f"{kind} members under {group.assignor} come and go, and their topics grow"
    return Story(f"clean-{number:03}", what, group.first, group.steps, group.racks, random.choice((20, 45, 400)))


def _modern(random: Random, number: int) -> History:
    """A KIP-848 group: balanced, and nobody gives up more than it has to."""
    counts = {topic: random.randint(2, 8) for topic in TOPICS[: random.randint(1, 2)]}
    log = ModernLog(f"clean-modern-{number:03}", "members of a KIP-848 group come and go", counts)
    started = 0
    pause = random.choice((20, 45, 400))
    for _ in range(random.randint(4, 7)):
        chance = random.random()
        static = random.random() < 0.3
        if not log.seats or (chance < 0.5 and len(log.seats) < MOST_MEMBERS):
            started += 1
            log.join(f"client-{started}", instance=f"pod-{started}" if static else None)
        elif chance < 0.7 and len(log.seats) > 1:
            log.gone(random.choice(sorted(log.seats)))
        else:
            topic = random.choice(sorted(counts))
            log.pause(pause).change(topic, log.topics.count(topic) + random.randint(1, 3))
            log.write_epoch(_balanced(log), NOTICED)
            continue
        log.write_epoch(_balanced(log), pause)
    return log.history("clean")


def _balanced(log: ModernLog) -> dict[str, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Everybody keeps what it has up to its share; what is left goes to who has least."""
    everything = [TopicPartition(topic, number) for topic in sorted(log.topics.there)
                  for number in range(log.topics.count(topic))]  # fmt: skip
    had = {name: [TopicPartition(t, n) for t, numbers in seat.has for n in numbers] for name, seat in log.seats.items()}
    least, more = divmod(len(everything), len(had))
    has: dict[str, list[TopicPartition]] = {}
    for name in sorted(had, key=lambda each: (-len(had[each]), each)):
        share = least + (1 if more > 0 and len(had[name]) > least else 0)
        more -= share - least
        has[name] = had[name][:share]
    taken = {each for owned in has.values() for each in owned}
    for place in everything:
        if place not in taken:
            has[min(has, key=lambda each: (len(has[each]), each))].append(place)
    return {name: _sorted(has[name]) for name in log.seats}


def _sorted(owned: Sequence[TopicPartition]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return wire(sorted(owned))
