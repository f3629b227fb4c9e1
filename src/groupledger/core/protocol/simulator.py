"""A consumer group run on paper: events in, and every round, assignment and call until the group is stable again.

One group is a generator: it yields its leader's questions and is sent plans. So many groups go side by side, and all
questions of one step are answered by one call of each assignor (`simulate_all`).

Worked example: A owns four partitions, B joins. Round 1: A joins with all four, is assigned two and revokes two, B gets
nothing. Round 2: B is assigned the two, which were unavailable for one round.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TypeVar

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.naming import CustomAssignor, by_every_name
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import exists
from groupledger.core.protocol.coordinator import Coordinator
from groupledger.core.protocol.group import Group
from groupledger.core.protocol.happening import come_back, happen, require_topic_names
from groupledger.core.protocol.leader import Plan, Question, plan, plan_all
from groupledger.core.protocol.rounds import gather, spread
from groupledger.core.protocol.script import MOST_ROUNDS, Script
from groupledger.core.protocol.settlement import Cycle, Settlement
from groupledger.core.protocol.timed.application import Applications
from groupledger.core.protocol.timed.play import Playing, play_timed

__all__ = ["MOST_ROUNDS", "Script", "live", "play", "simulate", "simulate_all"]

T = TypeVar("T")


def simulate(
    script: Script, custom: Mapping[str, CustomAssignor] | None = None, applications: Applications | None = None
) -> list[Settlement]:
    """One settlement for each event. Raises Fault for an event that cannot be (see `happen`) or an unknown assignor.

    `applications`: what the processes of a script with times do with their consumers.
    """
    known = by_every_name(custom or {}, ASSIGNORS)
    playing = play(script, known) if applications is None else play_timed(script, known, applications)
    return _answered(playing, known)


def simulate_all(
    scripts: Iterable[Script], custom: Mapping[str, CustomAssignor] | None = None
) -> list[list[Settlement] | Fault]:
    """One result for each script, in order; a script that cannot be played is a Fault, and the others go on."""
    known = by_every_name(custom or {}, ASSIGNORS)
    results: dict[int, list[Settlement] | Fault] = {}
    playing = {place: play(script, known) for place, script in enumerate(scripts)}
    asked = {place: question for place in playing if (question := _go_on(playing, place, None, results))}
    while asked:
        answers = zip(asked, plan_all(list(asked.values()), known), strict=True)
        asked = {place: question for place, plan in answers if (question := _go_on(playing, place, plan, results))}
    return [results[place] for place in range(len(playing))]


def _go_on(
    playing: dict[int, Playing], place: int, plan: Plan | None, results: dict[int, list[Settlement] | Fault]
) -> Question | None:
    """Send a plan to one group; its next question, or None once it has a result."""
    try:
        return next(playing[place]) if plan is None else playing[place].send(plan)
    except StopIteration as end:
        results[place] = end.value
    except Fault as fault:
        results[place] = fault
    return None


def live(script: Script, custom: Mapping[str, CustomAssignor] | None = None) -> Iterator[Settlement]:
    """The settlements of one group without times, each as soon as its event is there; raises Fault as `simulate`."""
    known = by_every_name(custom or {}, ASSIGNORS)
    group = _group(script, known)
    for event in script.events:
        yield _answered(_settle(group, event), known)


def _answered(settling: Generator[Question, Plan, T], custom: Mapping[str, CustomAssignor]) -> T:
    try:
        question = next(settling)
        while True:
            question = settling.send(plan(question, custom))
    except StopIteration as end:
        result: T = end.value
        return result


def play(script: Script, custom: Mapping[str, CustomAssignor]) -> Playing:
    """One group; yields questions, is sent plans, returns a settlement for each event."""
    if script.times is not None:
        return (yield from play_timed(script, custom))
    group = _group(script, custom)
    settlements = []
    for event in script.events:
        settlements.append((yield from _settle(group, event)))
    return settlements


def _group(script: Script, custom: Mapping[str, CustomAssignor]) -> Group:
    require_topic_names(script.topics)
    coordinator = Coordinator(known_ids=script.member_ids)
    return Group(dict(script.topics), script.form, script.pace, custom, coordinator=coordinator)


def _settle(group: Group, event: e.Event) -> Generator[Question, Plan, Settlement]:
    """One event, and rounds until nobody wants another."""
    refused = happen(group, event)
    event_ms = max(group.settled_ms, event.at_ms)
    cycle, failure = yield from _rounds(group, event)
    if group.returning is not None:
        refused = come_back(group)
        if cycle is None and failure is None:
            cycle, failure = yield from _rounds(group, event)
    return _settlement(group, event, event_ms, cycle, failure, refused)


def _rounds(group: Group, event: e.Event) -> Generator[Question, Plan, tuple[Cycle | None, str | None]]:
    """Rounds until nobody wants another, or until a cycle or a failure."""
    seen: dict[object, int] = {}
    while group.rebalancing and not event.together and len(group.rounds) < MOST_ROUNDS:
        yield from _round(group)
        failure = group.rounds[-1].failure
        if failure is not None:
            return None, failure
        now = len(group.rounds)
        before = seen.setdefault(group.signature(), now)
        if group.rebalancing and before < now:
            return Cycle(before, now), None
    return None, None


def _round(group: Group) -> Generator[Question, Plan, None]:
    question = gather(group)
    if question is not None:
        spread(group, (yield question))


def _settlement(
    group: Group, event: e.Event, event_ms: int, cycle: Cycle | None, failure: str | None, refused: str | None
) -> Settlement:
    if len(group.rounds) == MOST_ROUNDS and group.rebalancing and cycle is None and failure is None:
        failure = f"not stable after {MOST_ROUNDS} rounds, and no two of them alike"
    rounds, calls = group.take()
    owners = group.owners()
    wanted = group.wanted()
    unowned = tuple(sorted(wanted - owners.keys()))
    unavailable_ms = group.unavailable_ms(event_ms, wanted)
    group.settled_ms, group.missed = group.clock_ms, frozenset(unowned)
    doubly = group.ownership.take_double_owners()
    return Settlement(
        event=event,
        rounds=rounds,
        calls=calls,
        owners=owners,
        unowned=unowned,
        cycle=cycle,
        failure=failure,
        refused=refused,
        topics=group.topics,
        running={each.name: each.number for each in group.processes.values() if each.talks},
        double_owners=tuple(each for each in doubly if exists(each.partition, group.topics)),
        unavailable_ms=unavailable_ms,
    )
