"""Any history of a Streams group, by seed: what must hold after each event. `make machine` plays more of them.

Threads of the same process and of others, static ones among them; listeners take up to seven seconds, answers are late
or lost, sessions run out, source topics grow and go, so that the topology is not always ready.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from groupledger.core.assignors.server.tasks import Task
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer_group.consumer_state import configure, partitions_of
from tests.core.protocol.drawn_streams_groups import StreamsHistory
from tests.core.protocol.test_consumer_machine import EVENTS, NEVER_DRAWN, Watch

HISTORIES = int(os.environ.get("GROUPLEDGER_MACHINE_RUNS", "40"))
CHUNKS = 12


class StreamsWatch(Watch):
    """What is known of a history so far, and what each further event is held against."""

    def __init__(self, history):
        super().__init__()
        self.history = history
        self.topics = {}

    def see(self, settled):
        assert settled.failure is None
        group, self.topics = settled.coordinated, settled.topics
        if group is None:
            return
        self.heartbeats += group.heartbeats
        self.calls += settled.calls
        assert all(self.crossed(each) for each in settled.double_owners)
        self.see_calls(settled)
        self.owner = {
            each: who for each, who in self.owner.items() if each.topic in self.topics
        }  # some calls were before
        self.see_epochs(group)
        self.see_tasks(group)
        configured = configure(self.history.topology, settled.topics)
        if group.members and not any(row.away for row in group.members):
            assert all(row.epoch == group.epoch == group.assignment_epoch for row in group.members)
            assert all(row.assigned == row.target and row.standby == row.standby_target for row in group.members)
            assert all(row.state == "STABLE" and row.pending == () for row in group.members)
            assert (settled.unowned == ()) is (configured.ready or not self.wanted(settled))
            assert {each.partition: each.member for each in settled.consumed if each.until_ms is None} == settled.owners
            if configured.ready:
                self.see_replicas(group, configured)

    def see_tasks(self, group):
        """No active task has two holders, and no process has a task twice."""
        held = [each for row in group.members for each in (*row.assigned, *row.pending)]
        assert len(held) == len(set(held))
        for process in {row.process_id for row in group.members}:
            rows = [row for row in group.members if row.process_id == process]
            twice = Counter(each for row in rows for each in {*row.assigned, *row.standby})
            assert set(twice.values()) <= {1}

    def see_replicas(self, group, configured):
        """As many standby tasks as there are processes for, of stateful tasks alone."""
        processes = len({row.process_id for row in group.members})
        standby = Counter(each for row in group.members for each in row.standby)
        replicas = min(self.history.standby, processes - 1)
        stateful = [name for name, of in configured.tasks.items() if of.stateful] if replicas else []
        expected = {(name, at): replicas for name in stateful for at in range(configured.tasks[name].tasks)}
        assert {tuple(each): count for each, count in standby.items()} == expected

    def wanted(self, settled):
        read = {topic for each in self.history.topology.values() for topic in each.read}
        return any(settled.topics.get(topic, 0) for topic in read)

    def crossed(self, double):
        """As in a consumer group; what a heartbeat owned are tasks there."""
        read = {
            (name, at)
            for name in self.history.topology
            for at in range(max(self.topics.values(), default=0) + 1)
            if double.partition in partitions_of(self.history.topology, Task(name, at), self.topics)
        }
        rows = [row for row in self.heartbeats if row.owned is not None]
        taking = [
            each
            for each in self.calls
            if each.member == double.members[0]
            and each.call.callback.value == "onPartitionsAssigned"
            and double.partition in each.call.partitions
        ]
        return any(
            row.member == each.member
            and each.started_ms <= row.at_ms < each.ended_ms
            and not read & {tuple(task) for task in (*row.owned, *row.assigned)}
            for each in taking[-1:]
            for row in rows
        )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_holds_in_every_history(chunk):
    for seed in range(chunk, HISTORIES, CHUNKS):
        history = StreamsHistory(seed, EVENTS)
        watch = StreamsWatch(history)
        for settled in history.play():
            watch.see(settled)


def test_histories_have_everything_in_them():
    """Every event, fenced members, refused ones, all states, standby tasks, topologies that are not ready."""
    seen, errors, refused, states, standby, ready = set(), set(), set(), set(), 0, set()
    for seed in range(40):
        history = StreamsHistory(seed, EVENTS)
        for settled in history.play():
            seen.add(type(settled.event))
            refused.add((settled.refused or "").partition(":")[0])
            ready.add(configure(history.topology, settled.topics).ready)
            if settled.coordinated is not None:
                errors |= {row.error for row in settled.coordinated.heartbeats}
                states |= {row.state for row in settled.coordinated.heartbeats}
                standby += sum(len(row.standby) for row in settled.coordinated.members)
    assert seen >= set(e.KINDS) - NEVER_DRAWN - {e.Subscribe}
    assert refused == {"", "UNRELEASED_INSTANCE_ID"}
    assert "UNKNOWN_MEMBER_ID" in errors
    assert states >= {"STABLE", "UNREVOKED_TASKS", "UNRELEASED_TASKS"}
    assert standby > 100
    assert ready == {True, False}
