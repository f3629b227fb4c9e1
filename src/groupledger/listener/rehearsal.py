"""Rehearse a user's listener over a simulated group; report what it did and what went wrong.

Between two events each partition gets some records, and every running member reads all that it has. Records read but
not committed when a partition is revoked are a finding.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from groupledger.core.custom.custom_group import CustomAssignor, TopicPartition
from groupledger.core.faults import RAISED
from groupledger.core.history.fold_rows import GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.history.head import CommittedOffset, RecordedLog
from groupledger.core.protocol.consumer import Call, Callback
from groupledger.core.protocol.recorded import (
    Certainty,
    RecordedCall,
    RecordedTenure,
    recorded_calls,
    tenures,
    with_commits,
)
from groupledger.core.protocol.script import Script, require_consumers
from groupledger.core.protocol.settlement import MemberCall, Settlement
from groupledger.core.protocol.simulator import simulate
from groupledger.listener.hosted import EXPELLED, READ_AGAIN, Entry, HostedConsumer, SimulatedBroker
from groupledger.listener.interface import RebalanceListener
from groupledger.listener.timed import rehearsed, spending
from groupledger.listener.view import GroupMetadataView, OffsetAndMetadata, OffsetAndTimestamp, named

Make = Callable[[], RebalanceListener]
"""Makes a listener for each member: usually its class."""

SIMULATED = "simulated-group"
RECORDS = 1
"""Per partition between two events, or per second if the group has times."""


class Rehearsal(NamedTuple):
    """A script played with listeners: the outcome of each event, and what the listeners did, call by call."""

    settlements: list[Settlement]
    journal: list[Entry]

    @property
    def convicted(self) -> list[Entry]:
        """Return what went wrong, in order."""
        return [entry for entry in self.journal if entry.error is not None]


def rehearse(
    script: Script, make: Make, *, custom: Mapping[str, CustomAssignor] | None = None, group_id: str = SIMULATED
) -> Rehearsal:
    """Play a script in which every member has such a listener. Raises Fault as `simulate` does.

    With times the listeners run inside the group: what their callbacks `spend` delays its rounds, and one record a
    second arrives in each partition if the script has no rate of its own. Only listeners commit, unless the script has
    an interval for auto-commit. Without times: as `rehearse_simulation`.
    """
    script = replace(script, events=list(script.events))
    require_consumers(script.events, "a listener")
    if script.times is None:
        settled = simulate(script, custom)
        return Rehearsal(settled, rehearse_simulation(settled, make, group_id=group_id))
    rate = script.times.records_per_second
    counted = replace(script, times=replace(script.times, records_per_second=RECORDS if rate is None else rate))
    journal: list[Entry] = []
    return Rehearsal(simulate(counted, custom, rehearsed(make, group_id, journal)), journal)


def rehearse_simulation(
    settlements: Iterable[Settlement], make: Make, *, group_id: str = SIMULATED, records: int = RECORDS
) -> list[Entry]:
    """Return what the listeners of all members did, call by call; members by the name of the process.

    Each partition gets `records` between two events. A restarted process has a new consumer and a new listener; one
    that has ended or hangs reads nothing.
    """
    group = RehearsedGroup(make, group_id, SimulatedBroker({}), [])
    running: Mapping[str, int] = {}
    for settled in settlements:
        group.pass_time(records, settled.event.at_ms, running)
        group.broker.set_topics(settled.topics)
        for (_, member, process), polled in groupby(settled.calls, key=attrgetter("round", "member", "process")):
            group.poll(member, [(each.call, _membership(group_id, each)) for each in polled], process)
        running = settled.running
    group.pass_time(records, 0, running)
    return group.journal


def _membership(group_id: str, called: MemberCall) -> GroupMetadataView:
    return GroupMetadataView(group_id, called.generation, called.member_id, called.group_instance_id)


class RehearsedGroup:
    """One group: its broker, the consumer of each member that was called, and the journal that all of them write to.

    Calls are made in the protocol's order: under an eager assignor all members revoke before any is assigned.
    Successive calls of one member are due at one poll.
    """

    def __init__(self, make: Make, group_id: str, broker: SimulatedBroker, journal: list[Entry]) -> None:
        self.make = make
        self.group_id = group_id
        self.broker = broker
        self.journal = journal
        self.consumers: dict[str, HostedConsumer] = {}

    def pass_time(self, records: int, at_ms: int, running: Mapping[str, int]) -> None:
        """Let the logs grow and these members read them."""
        self.broker.append(records, at_ms)
        for member, process in sorted(running.items()):
            consumer = self.consumers.get(member)
            if consumer is not None and consumer.process == process:
                consumer.consume()

    def new_consumer(self, member: str, process: int) -> HostedConsumer:
        """Make the consumer of a process."""
        return HostedConsumer(member, self.group_id, broker=self.broker, process=process)

    def poll(self, member: str, calls: Iterable[tuple[Call, GroupMetadataView]], process: int = 1) -> None:
        """Poll a member once; its listener's errors are in the journal. A new process has a new consumer."""
        consumer = self.consumers.get(member)
        if consumer is None or consumer.process != process:
            consumer = self.new_consumer(member, process)
            consumer.set_rebalance_listener(self.make())
            consumer.journal = self.journal
            self.consumers[member] = consumer
        for call, membership in calls:
            consumer.feed([call], membership)
        with suppress(*RAISED):  # a listener is a user's code and may raise anything
            consumer.poll()


# Rehearse a user's listener over the recorded history of a classic group; report what it did and what went wrong.
#
# Where the offset commits of the group were kept, they say how far each member had read: in the replay it reads up to
# each of them and commits it, but for the last one before a partition is given up. That one is the listener's to make.

Timeouts = Mapping[str, int]
"""Rebalance timeouts in milliseconds by member id."""


def rehearse_history(
    calls: Iterable[RecordedCall], make: Make, *, records: int = RECORDS, timeouts: Timeouts | None = None
) -> list[Entry]:
    """Return what listeners did over the calls in recorded history, snapshot by snapshot; members by their member id.

    No commits are known: each assigned partition gets `records` before each snapshot, and only whether a commit was
    made counts, not its offset. Instance ids, and topics that were never assigned, are unknown.
    """
    groups: dict[tuple[str, str], _RecordedGroup] = {}
    journal: list[Entry] = []
    for (cluster_id, group_id, _), together in groupby(calls, key=attrgetter("cluster_id", "group_id", "snapshot_id")):
        key = (cluster_id, group_id)
        if key not in groups:
            groups[key] = _RecordedGroup(make, group_id, SimulatedBroker(exact=False), journal, timeouts or {})
        group, made = groups[key], list(together)
        group.pass_time(records, made[0].at_ms, dict.fromkeys(group.consumers, 1))
        group.replay(made)
    return journal


def rehearse_commits(
    groups: Sequence[GroupSnapshotRow], members: Iterable[MemberSnapshotRow], log: RecordedLog, make: Make
) -> list[Entry]:
    """Do the same over one group (at least one snapshot) whose offset commits are known.

    Offsets in the journal are those of its topics.
    """
    members = list(members)
    calls = {key: list(some) for key, some in groupby(recorded_calls(groups, members), lambda each: each.snapshot_id)}
    due = _due(groups, members, log)
    logs = RecordedBroker()
    group = _RecordedGroup(make, groups[0].group_id, logs, [], log.rebalance_timeout_ms)

    def follow(due: _DueCommit) -> None:
        """Apply a recorded commit; that of a member without a recorded call belongs to nobody."""
        consumer = group.consumers.get(due.member_id or "")
        if not isinstance(consumer, RecordedConsumer) or due.commit.partition not in consumer.assignment():
            logs.forget(due.commit.partition, due.commit.offset)
        else:
            consumer.follow(due, logs)

    for place, snapshot in enumerate(groups):
        for commit in due.get(place, ()):
            follow(commit)
        group.replay(calls.get(snapshot.snapshot_id, ()))
    for commit in due.get(len(groups), ()):
        follow(commit)
    return group.journal


class _DueCommit(NamedTuple):
    """A recorded commit, and whose it is; None: of nobody in the group.

    `given_up`: the position of the snapshot in which that member gave the partition up. `back`: the offset is less than
    the one before. `left`: not made in the replay, since it is the last one before the partition is given up.
    """

    commit: CommittedOffset
    member_id: str | None = None
    given_up: int | None = None
    back: bool = False
    left: bool = False


def _due(
    groups: Sequence[GroupSnapshotRow], members: Iterable[MemberSnapshotRow], log: RecordedLog
) -> dict[int, list[_DueCommit]]:
    """Return commits by the place of the snapshot before whose calls they come.

    A cooperative member commits what it gives up after the snapshot that takes it away: that has been read before.
    """
    had = tenures(groups, members, log.topics)
    without_members = [each.offset for each in groups if each.members == 0]
    places = [each.offset for each in groups]
    found: list[tuple[int, int, _DueCommit]] = []
    for partition, commits in log.by_partition().items():
        for each in _dealt(had.get(partition, []), commits, without_members):
            place = bisect_left(places, each.commit.log_offset)
            if each.given_up is not None:
                place = min(place, bisect_left(places, each.given_up))
            found.append((place, each.commit.log_offset, each))
    due: dict[int, list[_DueCommit]] = {}
    for place, _, each in sorted(found, key=lambda row: row[:2]):
        due.setdefault(place, []).append(each)
    return due


def _dealt(
    some: Sequence[RecordedTenure], commits: Sequence[CommittedOffset], without_members: Sequence[int]
) -> Iterator[_DueCommit]:
    """Return the commits of one partition, and the owner of each."""
    before = [each for each in commits if not some or each.log_offset < some[0].taken.offset]
    yield from map(_DueCommit, before)
    for tenure, last, own, outside in with_commits(some, commits, without_members):
        given_up = None if tenure.given_up is None else tenure.given_up.offset
        reached = None if last is None else last.offset
        for each in own:
            back = reached is not None and each.offset is not None and each.offset < reached
            left = each is own[-1] and given_up is not None
            yield _DueCommit(each, tenure.member_id, given_up, back=back, left=left)
            reached = each.offset
        yield from map(_DueCommit, outside)


class RecordedBroker(SimulatedBroker):
    """Logs of which is known what somebody committed: that far they reach."""

    def __init__(self) -> None:
        super().__init__()
        self.reached: dict[TopicPartition, int] = {}

    def end_offset(self, partition: TopicPartition) -> int:
        """Return the highest offset that anybody has committed so far; 0 where nobody has."""
        return self.reached.get(partition, 0)

    def first_since(self, partition: TopicPartition, at_ms: int) -> OffsetAndTimestamp | None:
        """Return None: the times of records are unknown."""
        del partition, at_ms
        return None

    def forget(self, partition: TopicPartition, offset: int | None) -> None:
        """Take what nobody in the group committed: where its last owner stopped says nothing any more."""
        self.last_read.pop(partition, None)
        if offset is None:
            self.committed.pop(partition, None)
        else:
            self.committed[partition] = OffsetAndMetadata(offset)
            self.reached[partition] = max(self.reached.get(partition, 0), offset)


class RecordedConsumer(HostedConsumer):
    """A member of a recorded group. What its callbacks spend is held against its rebalance timeout, where known."""

    def __init__(self, member: str, group_id: str, broker: SimulatedBroker, timeout_ms: int | None) -> None:
        super().__init__(member, group_id, broker=broker)
        self._timeout_ms = timeout_ms
        self._spent_ms: int = 0

    def follow(self, due: _DueCommit, broker: RecordedBroker) -> None:
        """Read up to a recorded commit, and commit as far as was read, unless that is left to the listener.

        What the listener has paused is not read.
        """
        partition, offset = due.commit.partition, due.commit.offset
        if offset is None:
            broker.forget(partition, None)
            return
        broker.reached[partition] = max(broker.reached.get(partition, 0), offset)
        if partition in self._paused:
            return
        if due.back:
            broker.last_read.pop(partition, None)
            self.positions[partition] = offset
        else:
            self._read_to(partition, offset)
        if not due.left:
            broker.commit({partition: OffsetAndMetadata(self.position(partition))})

    def _call(self, listener: RebalanceListener | None, due: Call) -> None:
        self._spent_ms = 0
        try:
            with spending(self._spend):
                super()._call(listener, due)
        finally:
            if self._is_expelled():
                got = f"{due.callback.value} took {self._spent_ms:,} ms: the group would go on without the member"
                error = f"{got}; expected less than its rebalance timeout of {self._timeout_ms:,} ms"
                self._note(EXPELLED, due.partitions, error)

    def _spend(self, ms: int) -> None:
        self._spent_ms += ms

    def _is_expelled(self) -> bool:
        return self._timeout_ms is not None and self._spent_ms > self._timeout_ms

    def _judge(self, did: str, partition: TopicPartition, last_offset: int, records: int) -> None:
        """Note it; where nothing is committed, the next owner begins at a place that is not known."""
        if did == READ_AGAIN and partition not in self.broker.committed and partition not in self._sought:
            got = f"nothing is committed of {named([partition])}, which was read up to offset {last_offset}"
            self._note(did, [partition], f"{got}: the next owner begins where auto.offset.reset says")
        else:
            super()._judge(did, partition, last_offset, records)


class _RecordedGroup(RehearsedGroup):
    """One recorded group; members by member id, and in the generation of the snapshot in which they joined."""

    def __init__(
        self, make: Make, group_id: str, broker: SimulatedBroker, journal: list[Entry], timeouts: Timeouts
    ) -> None:
        super().__init__(make, group_id, broker, journal)
        self.generations: dict[str, int | None] = {}
        self.timeouts = timeouts

    def new_consumer(self, member: str, process: int) -> HostedConsumer:
        """Make the consumer of a member."""
        del process  # a new process has a new member id
        return RecordedConsumer(member, self.group_id, self.broker, self.timeouts.get(member))

    def replay(self, made: Sequence[RecordedCall]) -> None:
        """Make the calls of one snapshot."""
        self.broker.see(each for call in made for each in call.call.partitions)
        for member_id, polled in groupby(made, key=lambda each: each.member_id):
            self.poll(member_id, [(each.call, self._enter(each)) for each in polled])
        for gone in {each.member_id for each in made if each.certainty is Certainty.UNKNOWN_END}:
            self.consumers.pop(gone, None)

    def _enter(self, called: RecordedCall) -> GroupMetadataView:
        """Return the member as the coordinator knows it: it enters the generation of a snapshot when it joins."""
        if called.call.callback is Callback.USER_DATA:
            self.generations[called.member_id] = called.generation
        return GroupMetadataView(self.group_id, self.generations.get(called.member_id), called.member_id)
