"""What an event does to a consumer group in play, before the heartbeats that it leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from groupledger.core.custom.group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer_group import client as c
from groupledger.core.protocol.consumer_group.classic_members import join_steps
from groupledger.core.protocol.consumer_group.client import Client
from groupledger.core.protocol.consumer_group.exchange import fence
from groupledger.core.protocol.consumer_group.play import Play
from groupledger.core.protocol.consumer_group.process import Due, Process
from groupledger.core.protocol.happening import new_consumer
from groupledger.core.protocol.refusals import (
    BAD_EVENT,
    alive,
    ended,
    needs_times,
    require_new,
    require_topic_names,
    talking,
)


def happen(play: Play, event: e.Event) -> None:
    """Let an event happen; raises Fault(BAD_EVENT) for one that cannot."""
    HAPPENS[type(event)](play, event)


def come_back(play: Play) -> None:
    """Start the process that is returning, if one is."""
    settings, play.returning = play.returning, None
    if settings is not None:
        _start(play, settings)


def _join(play: Play, event: e.Join) -> None:
    require_new(play.processes, event.member)
    _start(play, event)


def _start(play: Play, settings: e.Join) -> None:
    """A process subscribes; it speaks to the coordinator at once."""
    require_topic_names(settings.topics)
    old = play.processes.pop(settings.member, None)
    if old is not None:
        play.end(old)
    play.born[settings.member] += 1
    process = Process(settings, play.born[settings.member])
    play.processes[settings.member] = process
    if settings.group_protocol is e.GroupProtocol.CONSUMER:
        process.client = _client(settings, play.new_id(settings.member))
        play.send_soon(process)
    else:
        process.consumer = new_consumer(settings, play.group.topics.counts, play.form, {})
        process.steps = join_steps(play, process)
        play.put(process, Due.GO_ON)


def _client(settings: e.Join, member_id: str) -> Client:
    return Client(
        member_id=member_id,
        process=settings.member,
        topics=settings.topics,
        regex=settings.topic_regex,
        group_instance_id=settings.group_instance_id,
        remote_assignor=settings.remote_assignor,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
    )


def _leave(play: Play, event: e.Leave) -> None:
    process = talking(play.processes, event.member, "leave")
    process.closing = True
    play.put(process, Due.GO_ON)


def _crash(play: Play, event: e.Crash) -> None:
    process = alive(play.processes, event.member)
    play.end(process)
    if process.member_id not in play.group.members:
        del play.processes[process.name]


def _pause(play: Play, event: e.Pause) -> None:
    play.stop(alive(play.processes, event.member))


def _resume(play: Play, event: e.Resume) -> None:
    """What came while it stood still reaches it now; its next heartbeat says whether it is still a member."""
    process = alive(play.processes, event.member)
    process.talks = process.resumes = True
    for due, payload in process.suspended:
        play.put(process, due, 0, payload)
    process.suspended = []
    play.send_soon(process)


def _expire(play: Play, event: e.Expire) -> None:
    away = play.silent_members()
    found = (key for key, each in play.group.members.items() if each.process == event.member and key in away)
    member_id = next(found, None)
    if member_id is None:
        raise Fault(BAD_EVENT, f"{event.member!r} cannot expire; expected a member that is gone or paused")
    play.skip_to(max(play.clock_ms, play.group.deadline(member_id)[0]))
    while (deadline := play.silent_deadline()) is not None and deadline[0] <= play.clock_ms:
        fence(play, deadline[1])


def _restart(play: Play, event: e.Restart) -> None:
    """One that runs closes first, and starts once the group has settled without it; with `together`, at once."""
    process = play.processes.get(event.member)
    runs = process is not None and process.alive
    if process is not None and process.talks:
        _leave(play, e.Leave(event.member))
        play.returning = replace(process.settings, topics=process.subscription)
        return
    if process is not None and runs:
        play.end(process)
    _start(play, ended(play.ended, event.member))


def _subscribe(play: Play, event: e.Subscribe) -> None:
    """The coordinator hears of it with the next heartbeat of the consumer protocol, or the next JoinGroup."""
    require_topic_names(event.topics)
    process = talking(play.processes, event.member, "subscribe")
    if process.client is not None:
        process.client = c.subscribe(process.client, event.topics)
    elif process.consumer is not None:
        process.consumer = classic.change_subscription(process.consumer, event.topics).consumer
        if process.steps is None:
            process.steps = join_steps(play, process)
            play.put(process, Due.GO_ON)


def _set_partitions(play: Play, event: e.SetPartitions) -> None:
    require_topic_names([event.topic])
    play.group.topics.set_partitions(event.topic, event.partitions)
    play.group.topics_changed()


def _delete_topic(play: Play, event: e.DeleteTopic) -> None:
    gone = [TopicPartition(event.topic, number) for number in range(play.group.topics.counts.get(event.topic, 0))]
    play.ownership.begin_step()
    for process in play.processes.values():
        play.ownership.give_up(process.name, gone, play.clock_ms)
    play.group.topics.delete(event.topic)
    play.group.topics_changed()


def _no_metadata(play: Play, event: e.FreezeMetadata | e.RefreshMetadata) -> None:
    raise Fault(
        BAD_EVENT,
        f"{event.member!r} is a member of a consumer group, where the broker assigns; expected a "
        "classic group, whose leader assigns by its metadata",
    )


def _miss(play: Play, event: e.MissAssignment) -> None:
    alive(play.processes, event.member).misses = True


def _wait(play: Play, event: e.Wait) -> None:
    """Time has passed already."""


HAPPENS: dict[type[e.Event], Callable[[Play, Any], None]] = {
    e.Join: _join,
    e.Leave: _leave,
    e.Crash: _crash,
    e.Pause: _pause,
    e.Hang: needs_times,
    e.CutOff: needs_times,
    e.Resume: _resume,
    e.Expire: _expire,
    e.Restart: _restart,
    e.Subscribe: _subscribe,
    e.SetPartitions: _set_partitions,
    e.DeleteTopic: _delete_topic,
    e.FreezeMetadata: _no_metadata,
    e.RefreshMetadata: _no_metadata,
    e.MissAssignment: _miss,
    e.Wait: _wait,
}
