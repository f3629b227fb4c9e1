"""A consumer group run on paper: events in, and every round, assignment and call until the group is stable again.

One group is a generator: it yields its leader's questions and is sent plans. So many groups go side by side, and all
questions of one step are answered by one call of each assignor (`simulate_all`).

Worked example: A owns four partitions, B joins. Round 1: A joins with all four, is assigned two and revokes two, B gets
nothing. Round 2: B is assigned the two, which were unavailable for one round.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.assignor_names import by_every_name
from groupledger.core.custom.custom_group import CustomAssignor, TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import Coordinator, Registered, of_script
from groupledger.core.protocol.consumer import Call, member_times
from groupledger.core.protocol.consumer_group.consumer_coordinator import FIRST_EPOCH, ConsumerGroup, ShareGroup
from groupledger.core.protocol.consumer_group.consumer_events import Horizon, PlayedConsumerGroup, pass_time, settle
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings, Coordinated, GroupMember
from groupledger.core.protocol.consumer_group.coordinated_group import CoordinatedGroup, EntryKind, Process
from groupledger.core.protocol.consumer_group.exchange import begin_call, finish_call, take_coordinated, takes_time
from groupledger.core.protocol.consumer_group.streams_group import StreamsGroup
from groupledger.core.protocol.consumer_group.topics_and_targets import (
    ServerQuestion,
    Targets,
    TopicTable,
    find_targets,
)
from groupledger.core.protocol.events import require_topic_names
from groupledger.core.protocol.leader import Plan, Question, algorithm_of
from groupledger.core.protocol.rounds import RoundsGroup, RoundsProcess, play_rounds, settlement
from groupledger.core.protocol.rounds import settle as settle_rounds
from groupledger.core.protocol.script import MOST_ROUNDS, Script, require_one_kind
from groupledger.core.protocol.settlement import Settlement
from groupledger.core.protocol.simulated_group import Applications
from groupledger.core.protocol.timed.timed_play import play_timed, require_consumer_times, require_order
from groupledger.core.rebalance.step import Form

__all__ = ["MOST_ROUNDS", "Script", "live", "play", "simulate", "simulate_all"]

COORDINATORS: dict[e.GroupProtocol, type[ConsumerGroup]] = {
    each.protocol: each for each in (ConsumerGroup, ShareGroup, StreamsGroup)
}

T = TypeVar("T")
AnyQuestion = Question | ServerQuestion
Answered = Plan | Targets
Settling = Generator[AnyQuestion, Any, Settlement]
Playing = Generator[AnyQuestion, Any, list[Settlement]]


def simulate(
    script: Script, custom: Mapping[str, CustomAssignor] | None = None, applications: Applications | None = None
) -> list[Settlement]:
    """Return a settlement for each event; raise Fault for one that cannot be, or an unknown assignor.

    `applications`: what the processes of a script with times do with their consumers.
    """
    known = by_every_name(custom or {}, ASSIGNORS)
    return _answered(play(script, known, applications), known)


def simulate_all(
    scripts: Iterable[Script], custom: Mapping[str, CustomAssignor] | None = None
) -> list[list[Settlement] | Fault]:
    """One result for each script, in order; a script that cannot be played is a Fault, and the others continue."""
    known = by_every_name(custom or {}, ASSIGNORS)
    results: dict[int, list[Settlement] | Fault] = {}
    playing = {place: play(script, known) for place, script in enumerate(scripts)}
    asked = {place: question for place in playing if (question := _go_on(playing, place, None, results))}
    while asked:
        answers = zip(asked, _answer_all(list(asked.values()), known), strict=True)
        asked = {place: question for place, answer in answers if (question := _go_on(playing, place, answer, results))}
    return [results[place] for place in range(len(playing))]


def _answer_all(questions: Sequence[AnyQuestion], custom: Mapping[str, CustomAssignor]) -> list[Answered]:
    """Leaders' questions by one call of each client-side assignor, coordinators' by one of each server-side one."""
    from groupledger.core.protocol.leader import plan_all  # numpy and all assignors: only where somebody plans

    leaders = {place: each for place, each in enumerate(questions) if isinstance(each, Question)}
    coordinators = {place: each for place, each in enumerate(questions) if isinstance(each, ServerQuestion)}
    answers: dict[int, Answered] = {}
    answers |= zip(leaders, plan_all([*leaders.values()], custom), strict=True)
    answers |= zip(coordinators, find_targets([*coordinators.values()]), strict=True)
    return [answers[place] for place in range(len(questions))]


def _go_on(
    playing: dict[int, Playing], place: int, answer: Answered | None, results: dict[int, list[Settlement] | Fault]
) -> AnyQuestion | None:
    """Send an answer to one group; its next question, or None once it has a result."""
    try:
        return next(playing[place]) if answer is None else playing[place].send(answer)
    except StopIteration as end:
        results[place] = end.value
    except Fault as fault:
        results[place] = fault
    return None


def live(script: Script, custom: Mapping[str, CustomAssignor] | None = None) -> Iterator[Settlement]:
    """Yield the settlements of a group without times, each when its event is there; raise Fault as `simulate`."""
    known = by_every_name(custom or {}, ASSIGNORS)
    stage = _stage(script, known)
    for event in script.events:
        yield _answered(_settle(stage, event), known)


def _answered(settling: Generator[AnyQuestion, Any, T], custom: Mapping[str, CustomAssignor]) -> T:
    try:
        question = next(settling)
        while True:
            question = settling.send(_answer_all([question], custom)[0])
    except StopIteration as end:
        result: T = end.value
        return result


def play(script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None = None) -> Playing:
    """One group; yields questions, is sent plans and targets, returns a settlement for each event."""
    script = replace(script, events=list(script.events))
    require_one_kind(script)
    if script.times is not None:
        return (yield from _play_by_clock(script, custom, applications))
    stage = _stage(script, custom)
    settlements = []
    for event in script.events:
        settlements.append((yield from _settle(stage, event)))
    return settlements


def _play_by_clock(script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None) -> Playing:
    """Play a script with times. Where members of both protocols are in it, each event settles before the next one."""
    events = list(script.events)
    protocols = {each.group_protocol for each in events if isinstance(each, e.Join)}
    if e.GroupProtocol.CONSUMER not in protocols:
        return (yield from play_timed(script, custom, applications))
    require_order(events)
    require_consumer_times(script)
    stage = _stage(script, custom, applications)
    stage.classic.overlaps = len(protocols) == 1
    settlements = []
    for event, following in zip(events, [*events[1:], None], strict=True):
        horizon: Horizon = (None if following is None else following.at_ms,)
        bounded = horizon if following is None or stage.classic.overlaps else None
        settlements.append((yield from _settle(stage, event, bounded)))
    return settlements


@dataclass(slots=True)
class _ConvertibleGroup:
    """A group as it is now: a consumer group (KIP-848) where there is one, else the classic one."""

    script: Script
    classic: RoundsGroup
    topics: TopicTable
    consumer: PlayedConsumerGroup | None = None


def _stage(
    script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None = None
) -> _ConvertibleGroup:
    require_topic_names(script.topics)
    group = of_script(RoundsGroup, script, script.times, custom, applications)
    return _ConvertibleGroup(script, group, TopicTable(known_ids=script.topic_ids))


def _settle(stage: _ConvertibleGroup, event: e.Event, horizon: Horizon | None = None) -> Settling:
    """One event of a group of either type, with the sessions that end before it, and after it as far as `horizon`.

    `horizon`: of a group that does not settle before the next event.
    """
    parts = yield from _expire(stage, event.at_ms)
    parts.append((yield from _settle_event(stage, event, horizon)))
    if horizon is not None:
        parts += yield from _expire(stage, *horizon)
    return replace(reduce(_merged, parts), event=event)


def _expire(stage: _ConvertibleGroup, until_ms: int | None) -> Generator[AnyQuestion, Any, list[Settlement]]:
    """End the sessions of a classic group that end before this time, or at all, one after the other."""
    parts = list[Settlement]()
    while stage.consumer is None and (upcoming := stage.classic.next_expiry()) is not None:
        at_ms, name = upcoming
        if until_ms is not None and at_ms >= until_ms:
            break
        parts.append((yield from settle_rounds(stage.classic, e.Expire(name, at_ms=at_ms))))
    return parts


def _settle_event(stage: _ConvertibleGroup, event: e.Event, horizon: Horizon | None) -> Settling:
    """One event, and the change of the group's type, if that is what it leads to."""
    if stage.consumer is not None:
        yield from pass_time(stage.consumer, event.at_ms)
        before = _leave_consumer_group(stage, event)
        if before is not None:
            yield from play_rounds(stage.classic, event)
            first = settlement(stage.classic, event, stage.classic.settled_ms)
            first = replace(first, coordinated=before if before.heartbeats else None)
            return _merged(first, (yield from _settle(stage, event, horizon)))
    refused = _enter_consumer_group(stage, event)
    if refused is not None:
        stage.classic.refused = refused
        return settlement(stage.classic, event, stage.classic.clock_ms)
    if stage.consumer is None:
        return (yield from settle_rounds(stage.classic, event))
    settled: Settlement = yield from settle(stage.consumer, event, horizon)
    if _leave_consumer_group(stage, event) is None or settled.coordinated is None:
        return settled
    settled = replace(settled, coordinated=replace(settled.coordinated, members=()))
    yield from play_rounds(stage.classic, event)
    returning, stage.classic.returning = stage.classic.returning, None
    merged = _merged(settled, settlement(stage.classic, event, max(stage.classic.settled_ms, event.at_ms)))
    if returning is None:
        return merged
    return _merged(
        merged, (yield from _settle(stage, replace(returning, at_ms=stage.classic.clock_ms, together=False)))
    )


def _merged(first: Settlement, then: Settlement) -> Settlement:
    """Two parts of what one event led to. An outage that lasted after the first is in the second, if wanted."""
    timed = None if first.timed is None else then.timed
    if first.timed is not None and timed is not None:
        outages = [each for each in first.timed.outages if each.until_ms is not None] + list(timed.outages)
        timed = replace(timed, outages=tuple(sorted(outages, key=lambda each: each[:2])))
    waited_ms = Counter(first.unavailable_ms) + Counter(then.unavailable_ms)
    return replace(
        then,
        event=first.event,
        rounds=(*first.rounds, *then.rounds),
        calls=(*first.calls, *then.calls),
        unavailable_ms=dict(sorted(waited_ms.items())),
        double_owners=(*first.double_owners, *then.double_owners),
        consumed=(*first.consumed, *then.consumed),
        coordinated=then.coordinated or first.coordinated,
        timed=timed,
        refused=then.refused or first.refused,
        failure=then.failure or first.failure,
    )


def _enter_consumer_group(stage: _ConvertibleGroup, event: e.Event) -> str | None:
    """Make the group a consumer group for its first member of that protocol; return why the coordinator refuses it."""
    if stage.consumer is not None:
        return None
    settings = event if isinstance(event, e.Join) else None
    if isinstance(event, e.Restart):
        process = stage.classic.processes.get(event.member)
        settings = stage.classic.ended.get(event.member) if process is None else process.settings
    if settings is None or not settings.group_protocol.coordinated:
        return None
    stage.classic.set_clocks(max(stage.classic.clock_ms, event.at_ms))
    refused = refuses(stage.classic, stage.script.consumer_group)
    if refused is None:
        kind = COORDINATORS[settings.group_protocol]
        continues = isinstance(event, e.Join) and event.seat is not None
        stage.consumer = to_consumer_group(
            stage.classic, stage.script.consumer_group, stage.topics, kind, continues=continues
        )
    else:
        stage.classic.orphaned_consumer_members.pop(settings.member, None)
    return refused


def _leave_consumer_group(stage: _ConvertibleGroup, event: e.Event) -> Coordinated | None:
    """Make a group classic whose members all are, or that has none when a classic one joins."""
    play = stage.consumer
    if play is None:
        return None
    classic_joins = isinstance(event, e.Join) and event.group_protocol is e.GroupProtocol.CLASSIC
    if not play.is_classic and not (classic_joins and not play.group.members and not play.talking):
        return None
    coordinated = take_coordinated(play)
    to_classic_group(play, stage.classic)
    stage.consumer = None
    return replace(coordinated, members=())


# A group that changes its type while it runs (KIP-848, "Migration path"): classic to consumer, and back.


WRITES_USER_DATA = frozenset({"librdkafka-cooperative-sticky"})
"""Assignors whose assignments have user data, which no coordinator takes over (decision 0113, and seen live)."""


def refuses(group: RoundsGroup, settings: ConsumerGroupSettings) -> str | None:
    """Why a member of the consumer protocol may not join a classic group that has members."""
    coordinator = group.coordinator
    if not coordinator.members:
        return None
    if not settings.migration_policy.upgrades:
        policy = settings.migration_policy.value
        return f"GROUP_ID_NOT_FOUND: the group is a classic one, and group.consumer.migration.policy is {policy}"
    leader = coordinator.members.get(coordinator.leader or "")
    process = None if leader is None else group.processes.get(leader.process)
    assignor = coordinator.assignor or ""
    algorithm = assignor if process is None else algorithm_of(process.settings.library, assignor)
    if algorithm in WRITES_USER_DATA and coordinator.given:
        return f"GROUP_ID_NOT_FOUND: assignments of {algorithm} have user data that a conversion would lose"
    return None


def to_consumer_group(
    group: RoundsGroup,
    settings: ConsumerGroupSettings,
    table: TopicTable,
    kind: type[ConsumerGroup] = ConsumerGroup,
    *,
    continues: bool = False,
) -> PlayedConsumerGroup:
    """Continue the group as a consumer group: its generation is the epoch, and its assignments are the targets.

    A group without members is a new one, also of another `kind`, unless it `continues` with recorded members. `table`:
    topics that the group had before.
    """
    table.become(group.topics)
    old = group.coordinator
    epoch = old.generation if old.members or continues else FIRST_EPOCH
    converted = kind(settings, table, epoch=epoch, assignment_epoch=epoch)
    play = PlayedConsumerGroup(group=converted, form=group.form, pace=group.pace, new_id=old.new_member_id)
    play.carry_on_from(group)
    play.wanted_before = frozenset(group.wanted())
    for member in old.members_in_join_order():
        # Kafka takes any partition of a topic that exists; one past the topic's end stops its assignor `uniform`.
        all_taken = group.form is Form.AS_KAFKA
        given = [x for x in old.given.get(member.member_id, ()) if all_taken or c.exists(x, group.topics)]
        _seat(converted, member, group, given, play.clock_ms)
    for process in group.processes.values():  # it learns of the change with its next heartbeat
        moved = Process(settings=process.settings, number=process.number, consumer=process.consumer)
        moved.alive, moved.talks, moved.stopped_ms = process.alive, process.runs, process.stopped_ms
        play.take_over(moved, process)
        if process.runs:
            play.send_next(moved)
    for stranger in group.orphaned_consumer_members.values():
        stranger.application.move(play, stranger, partial(play.accepts, stranger))
        play.processes[stranger.name] = stranger
    group.orphaned_consumer_members = {}
    return play


def _seat(
    group: ConsumerGroup, member: Registered, classic: RoundsGroup, given: Iterable[TopicPartition], now_ms: int
) -> None:
    process = classic.processes.get(member.process)
    said_ms = e.MAX_POLL_INTERVAL_MS if process is None else process.settings.rebalance_timeout_ms
    times = member_times(classic.times, member.process, said_ms)
    held = [found for each in given for found in group.topics.identified([each])]
    seated = GroupMember(
        member_id=member.member_id,
        process=member.process,
        topics=member.subscription.topics,
        group_instance_id=member.group_instance_id,
        rebalance_timeout_ms=times.rebalance_timeout_ms,
        classic_assignors=member.assignors,
    )
    group.seat(seated, held, now_ms)
    group.session_ms[member.member_id] = times.session_timeout_ms


def to_classic_group(play: CoordinatedGroup, group: RoundsGroup) -> None:
    """Continue the group as a classic one: the epoch is its generation, and all members join again.

    Paused processes of the consumer protocol are left to `group.orphaned_consumer_members`: they find no such group.
    """
    _finish_calls(play, group)
    play.all_read_on()
    named = play.group.topics.named
    old, group.coordinator = group.coordinator, Coordinator(known_ids=group.coordinator.known_ids)
    new = group.coordinator
    new.adopt_ids(old)
    new.generation = play.group.epoch if play.group.members else 0
    for member in play.group.members.values():
        process = play.processes[member.process]
        if member.classic_assignors is None:
            raise AssertionError(f"{member.process} follows the consumer protocol; expected classic members alone")
        subscription = c.join(process.classic_consumer).subscription
        new.seat(
            Registered(
                member.process, member.member_id, member.classic_assignors, subscription, member.group_instance_id
            )
        )
    new.given = {each.member_id: named(each.assigned) for each in play.group.members.values()}
    new.rebalancing = bool(new.members) or any(each.consumer is not None for each in play.talking)
    group.carry_on_from(play)
    group.processes = {
        each.name: _back(play, group, each) for each in play.processes.values() if each.consumer is not None
    }


def _back(play: CoordinatedGroup, group: RoundsGroup, process: Process) -> RoundsProcess:
    back = RoundsProcess(
        settings=process.settings,
        consumer=process.classic_consumer,
        number=process.number,
        alive=process.alive,
        runs=process.talks,
        clock_ms=play.clock_ms,
        heard_ms=play.clock_ms,
        stopped_ms=process.stopped_ms,
    )
    group.take_over(back, process)
    return back


def _finish_calls(play: CoordinatedGroup, group: RoundsGroup) -> None:
    """Let the calls return that processes are in. A process of the consumer protocol stands still and is left to the
    orphaned_consumer_members: a call that it is in returns when it resumes, and no more of this group comes of it.
    """
    while play.queue:
        entry = heapq.heappop(play.queue)
        process = play.of(entry)
        if process is not None and not process.talks and entry.due is not EntryKind.SEND:
            process.suspended.append((entry.due, entry.payload))
        if process is None or not process.talks or entry.due is not EntryKind.RETURN or process.doing is None:
            continue
        play.clock_ms = max(play.clock_ms, entry.at_ms)
        play.catch_up()
        if takes_time(play, process):
            continue
        finish_call(play, process)
        step = None if process.steps is None else next(process.steps, None)
        if isinstance(step, Call):
            begin_call(play, process, step)
            if not takes_time(play, process):
                play.put(process, EntryKind.RETURN)
    for process in list(play.processes.values()):
        if process.client is not None and process.alive:
            process.steps = None  # bound to this group
            group.orphaned_consumer_members[process.name] = process
            group.ended[process.name] = process.settings
