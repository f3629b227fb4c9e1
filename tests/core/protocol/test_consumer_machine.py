"""Any history of a consumer group, by seed: what must hold after each event. `make machine` plays more of them.

Members of the consumer protocol alone, and with classic ones among them, so that the group changes its type back and
forth; listeners take up to seven seconds, answers are late or lost, sessions run out.
"""

from __future__ import annotations

import os

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from tests.core.protocol.drawn_consumer_groups import History

HISTORIES = int(os.environ.get("GROUPLEDGER_MACHINE_RUNS", "80"))
NEVER_DRAWN = {e.FreezeMetadata, e.RefreshMetadata, e.MissTopic, e.LoseAssignment, e.Hang, e.CutOff, e.RenameProcess}
"""What a coordinated group without times knows nothing of; and what `test_renaming` plays."""
EVENTS = 30
CHUNKS = 12


class Watch:
    """What is known of a history so far, and what each further event is held against."""

    def __init__(self):
        self.epoch = 0
        self.member_epochs = {}
        self.owner = {}
        self.running = set()
        self.heartbeats = []
        self.calls = []

    def see(self, settled):
        assert settled.failure is None
        group = settled.coordinated
        self.heartbeats += group.heartbeats if group is not None else ()
        self.calls += settled.calls
        assert all(self.crossed(each) for each in settled.double_owners)
        self.see_calls(settled)
        if group is None or settled.rounds:
            self.member_epochs.clear()
            self.epoch = 0
            return
        self.see_epochs(group)
        if group.members and not any(row.away for row in group.members):
            held = [each for row in group.members for each in (*row.assigned, *row.pending)]
            assert len(held) == len(set(held))
            assert settled.unowned == ()
            assert all(row.epoch == group.epoch == group.assignment_epoch for row in group.members)
            assert all(row.assigned == row.target and row.state == "STABLE" for row in group.members)

    def crossed(self, double):
        """Whether the coordinator took a partition back while its first owner was only taking it (decision 0151).

        That one acknowledged its last assignment when it had a further one already: what it said to own left that out.
        """
        taking = [
            each
            for each in self.calls
            if each.member == double.members[0]
            and each.call.callback is Callback.ASSIGNED
            and double.partition in each.call.partitions
        ]
        return any(
            row.member == each.member
            and each.started_ms <= row.at_ms < each.ended_ms
            and row.owned is not None
            and double.partition not in {*row.owned, *row.assigned}
            for each in taking[-1:]
            for row in self.heartbeats
        )

    def see_epochs(self, group):
        if group.heartbeats and group.heartbeats[0].group_epoch < self.epoch:
            self.member_epochs.clear()  # a new group: the one before was empty, or classic
            self.epoch = 0
        for row in group.heartbeats:
            assert row.group_epoch >= self.epoch
            self.epoch = row.group_epoch
            assert row.assignment_epoch <= row.group_epoch
            if row.error is None:
                assert row.epoch <= row.group_epoch
                assert row.epoch >= self.member_epochs.get(row.member_id, 0)
                self.member_epochs[row.member_id] = row.epoch
        self.epoch = max(self.epoch, group.epoch)
        assert all(row.epoch <= group.epoch for row in group.members)

    def see_calls(self, settled):
        """Who takes a partition takes it from nobody: it was revoked or lost, or its owner ended or stands still.

        Who resumes in onPartitionsAssigned reads nothing before a heartbeat was answered, and loses what others have.
        """
        if isinstance(settled.event, e.DeleteTopic):  # one that is made again is another topic
            self.owner = {each: who for each, who in self.owner.items() if each.topic != settled.event.topic}
        ran, self.running = self.running, set(settled.running.items())
        for each in sorted(settled.calls, key=lambda made: made.ended_ms):
            who = each.member, each.process
            if each.call.callback is Callback.ASSIGNED:
                shared = {double.partition for double in settled.double_owners}
                before = {self.owner.get(at) for at in each.call.partitions if at not in shared} - {None, who}
                if before & ran & self.running:
                    assert loses_what_it_was_given(settled, each)
                else:
                    self.owner |= dict.fromkeys(each.call.partitions, who)
            elif each.call.callback in {Callback.REVOKED, Callback.LOST}:
                for partition in each.call.partitions:
                    if self.owner.get(partition) == who:
                        del self.owner[partition]


def loses_what_it_was_given(settled, given):
    """Whether a process that stood still in this call goes on in it, and loses the partitions right after it."""
    resumed = isinstance(settled.event, e.Resume) and settled.event.member == given.member
    mine = [each for each in settled.calls if (each.member, each.process) == (given.member, given.process)]
    then = [each.call for each in mine if each.order > given.order and each.call.callback.startswith("onPartitions")]
    lost = bool(then) and then[0].callback is Callback.LOST and set(then[0].partitions) >= set(given.call.partitions)
    return resumed and given.started_ms < settled.event.at_ms and lost


@pytest.mark.parametrize("classic", [False, True])
def test_who_resumes_in_a_callback_loses_what_others_have_by_then(classic):
    """Seed 2502: m2 stands still in onPartitionsAssigned for longer than its session, and m3 takes its partition."""
    watch = Watch()
    for settled in History(2502, EVENTS, classic=classic).play():
        watch.see(settled)


def test_two_may_own_what_was_taken_back_while_it_was_being_taken():
    """Seed 2131, 30 events: m2's heartbeat owns nothing of what it takes in that callback, so m1 is given it."""
    watch, doubles = Watch(), []
    for settled in History(2131, 30, classic=False).play():
        watch.see(settled)
        doubles += settled.double_owners
    assert {each.members for each in doubles} == {("m2", "m1")}


@pytest.mark.parametrize("classic", [False, True])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_holds_in_every_history(chunk, classic):
    for seed in range(chunk, HISTORIES // 2, CHUNKS):
        watch = Watch()
        for settled in History(seed, EVENTS, classic=classic, far=seed % 3 == 0).play():
            watch.see(settled)


def test_histories_have_everything_in_them():
    """Every event, both types of group, fenced members, refused ones, expressions, both assignors."""
    seen, errors, refused, types, assignors = set(), set(), set(), set(), set()
    for seed in range(40):
        for settled in History(seed, EVENTS, classic=True).play():
            seen.add(type(settled.event))
            types.add(settled.coordinated is not None)
            refused.add((settled.refused or "").partition(":")[0])
            if settled.coordinated is not None:
                errors |= {row.error for row in settled.coordinated.heartbeats}
                assignors |= {row.assignor for row in settled.coordinated.targets}
    assert seen >= set(e.KINDS) - NEVER_DRAWN
    assert types == {True, False}
    assert refused >= {"", "GROUP_ID_NOT_FOUND", "UNRELEASED_INSTANCE_ID"}
    assert "UNKNOWN_MEMBER_ID" in errors
    assert assignors == {"uniform", "range"}
