"""A group that changes its type while it runs (KIP-848, "Migration path"): classic to consumer, and back."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from functools import partial

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.client_api import Call, member_times
from groupledger.core.protocol.client_library import algorithm_of
from groupledger.core.protocol.consumer_group.consumer_coordinator import FIRST_EPOCH, ConsumerGroup
from groupledger.core.protocol.consumer_group.consumer_state import GroupMember
from groupledger.core.protocol.consumer_group.coordinated_group import CoordinatedGroup, EntryKind, Process
from groupledger.core.protocol.consumer_group.exchange import begin_call, finish_call, takes_time
from groupledger.core.protocol.consumer_group.group_settings import ConsumerGroupSettings
from groupledger.core.protocol.consumer_group.topics_and_targets import TopicTable
from groupledger.core.protocol.coordinator import Coordinator, Registered
from groupledger.core.protocol.rounds import RoundsGroup, RoundsProcess
from groupledger.core.rebalance.step import Form

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
) -> CoordinatedGroup:
    """Continue the group as a consumer group: its generation is the epoch, and its assignments are the targets.

    A group without members is a new one, also of another `kind`, unless it `continues` with recorded members. `table`:
    topics that the group had before.
    """
    table.become(group.topics)
    old = group.coordinator
    epoch = old.generation if old.members or continues else FIRST_EPOCH
    converted = kind(settings, table, epoch=epoch, assignment_epoch=epoch)
    play = CoordinatedGroup(group=converted, form=group.form, pace=group.pace, new_id=old.new_member_id)
    play.carry_on_from(group)
    play.wanted_before = frozenset(group.wanted())
    for member in old.members_in_join_order():
        given = [each for each in old.given.get(member.member_id, ()) if _is_taken_over(each, group)]
        _seat(converted, member, group, given, play.clock_ms)
    for process in group.processes.values():
        _go_on(play, process)
    for stranger in group.orphaned_consumer_members.values():
        stranger.application.move(play, stranger, partial(play.accepts, stranger))
        play.processes[stranger.name] = stranger
    group.orphaned_consumer_members = {}
    return play


def _is_taken_over(partition: TopicPartition, group: RoundsGroup) -> bool:
    """Kafka takes any partition of a topic that exists; one past the topic's end stops its assignor `uniform`."""
    return group.form is Form.AS_KAFKA or c.exists(partition, group.topics)


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


def _go_on(play: CoordinatedGroup, process: RoundsProcess) -> None:
    """Continue a classic process in the consumer group: it learns of it with its next heartbeat."""
    moved = Process(settings=process.settings, number=process.number, consumer=process.consumer)
    moved.alive, moved.talks, moved.stopped_ms = process.alive, process.talks, process.stopped_ms
    play.take_over(moved, process)
    if process.talks:
        play.send_next(moved)


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
        settings=process.settings, consumer=process.classic_consumer, clock_ms=play.clock_ms, number=process.number
    )
    back.alive, back.talks, back.joins = process.alive, process.talks, process.alive
    group.take_over(back, process)
    back.heard_ms, back.stopped_ms = play.clock_ms, process.stopped_ms
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
