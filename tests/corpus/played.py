"""Histories that the simulator plays: events in, and for each of its rounds the record that the broker would write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.settlement import Round, Settlement
from groupledger.core.protocol.simulator import Script, simulate_all
from groupledger.core.rebalance.step import Form
from groupledger.core.wire.consumer_protocol import TopicPartitions
from tests.corpus.classic_log import ClassicLog
from tests.corpus.history import History


@dataclass(frozen=True, slots=True)
class Back:
    """A static member comes back within its session: the broker records its generation again, and nothing moves."""

    member: str
    rack: str | None = None


Step = e.Event | Back
NOTICED = 20
"""Seconds after which a leader has seen that a topic changed."""


@dataclass(frozen=True, slots=True)
class Story:
    """A group to be played: `assignor` is what its members support at first, `racks` where they are."""

    title: str
    what: str
    topics: Mapping[str, int]
    steps: Sequence[Step]
    racks: Mapping[str, str] | None = None
    seconds: int = 40


def play(stories: Sequence[Story], origin: str) -> Iterator[History]:
    """One history for each story; all of them are played side by side."""
    for _, log in written(stories):
        yield log.history(origin)


def written(stories: Sequence[Story]) -> Iterator[tuple[Story, ClassicLog]]:
    """The log of each story, to be gone on with."""
    logs = [_log(story) for story in stories]
    scripts = [
        Script(
            story.topics,
            [each for each in story.steps if isinstance(each, e.Event)],
            Form.AS_KAFKA,
            member_ids=_ids(story, log),
        )
        for story, log in zip(stories, logs, strict=True)
    ]
    for story, log, played in zip(stories, logs, simulate_all(scripts), strict=True):
        if isinstance(played, Fault):
            raise played
        _write(log, story, iter(played))
        yield story, log


def _log(story: Story) -> ClassicLog:
    first = next(each for each in story.steps if isinstance(each, e.Join))
    return ClassicLog(story.title, story.what, first.assignors[0], story.topics)


def _ids(story: Story, log: ClassicLog) -> dict[str, list[str]]:
    """The ids that processes will have, so that ties are decided by them."""
    other = ClassicLog(log.title, "", log.assignor, story.topics)
    names = [each.member for each in story.steps if isinstance(each, e.Join)]
    return {name: [other.join(name).seats[name].member_id] for name in names}


def _write(log: ClassicLog, story: Story, played: Iterator[Settlement]) -> None:
    for step in story.steps:
        if isinstance(step, Back):
            log.replace_process(step.member, rack=step.rack).rewrite(story.seconds)
            continue
        _happen(log, story, step)
        settlement = next(played)
        assert settlement.stable, (story.title, step)
        noticed = NOTICED if isinstance(step, e.SetPartitions | e.DeleteTopic) else story.seconds
        for number, took in enumerate(settlement.rounds):
            if number == 0 and took.assignor != log.assignor and len(log.seats) > 0 and took.assignor:
                log.choose(took.assignor)
            _record(log, took, 2 if number else noticed, quiet="follow-up" if number else None)
        if not log.seats and not step.together:
            log.empty(story.seconds)


def _happen(log: ClassicLog, story: Story, event: e.Event) -> None:
    match event:
        case e.Join():
            rack = (story.racks or {}).get(event.member)
            log.join(event.member, event.topics, event.group_instance_id, rack)
        case e.Leave() | e.Expire():
            log.gone(event.member)
        case e.Subscribe():
            log.subscribe(event.member, *event.topics)
        case e.SetPartitions():
            log.change(event.topic, event.partitions)
        case e.DeleteTopic():
            log.change(event.topic, None)
        case e.Crash():
            pass  # nothing is recorded until its session ends
        case _:
            raise AssertionError(event)


def _record(log: ClassicLog, took: Round, seconds: int, quiet: str | None) -> None:
    log.seats = {each.member: log.seats[each.member] for each in took.members}
    claims = {
        each.member: (wire(each.owned), log.seats[each.member].since)
        for each in took.members
        if log.assignor == "cooperative-sticky"
    }
    has = {each.member: wire(each.assigned) for each in took.members}
    log.write_generation(has, seconds, quiet=quiet, claims=claims, leader=took.leader)


def wire(owned: Iterable[TopicPartition]) -> TopicPartitions:
    """The wire layout: each topic once, in the order in which it first stands."""
    found: dict[str, list[int]] = {}
    for topic, number in owned:
        found.setdefault(topic, []).append(number)
    return tuple((topic, tuple(numbers)) for topic, numbers in found.items())
