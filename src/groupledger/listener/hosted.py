"""Host listeners without a broker: a consumer whose rebalances come from a simulation or from recorded history.

It keeps positions and paused partitions, and a journal of all that a listener did; the broker keeps logs and committed
offsets.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import RAISED, Fault
from groupledger.core.protocol.consumer import LISTENER, Call, Callback
from groupledger.listener.interface import RebalanceListener, checked, warn_of_subscribe
from groupledger.listener.view import (
    CommitFailedError,
    GroupMetadataView,
    IllegalArgumentError,
    IllegalStateError,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Offsets,
    OnCommit,
    PartitionInfo,
    named,
    raise_one,
    view_of,
)


class HostedConsumer:
    """One member. `feed` queues the calls of a rebalance; the next `poll` makes them.

    Members of one group share a `broker`.
    """

    client_name = "the simulated consumer"

    def __init__(
        self,
        member: str,
        group_id: str = "",
        topics: Mapping[str, int] | None = None,
        broker: SimulatedBroker | None = None,
        process: int = 1,
    ) -> None:
        """`process` numbers the processes of this name, each with a client instance id of its own."""
        self.member = member
        self.group_id = group_id
        self.process = process
        self.broker = SimulatedBroker(topics) if broker is None else broker
        self.journal: list[Entry] = []
        self.positions: dict[TopicPartition, int] = {}
        self._assigned: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._read: dict[TopicPartition, bool] = {}  # since its assignment; whether it was committed after that
        self._sought: set[TopicPartition] = set()  # during its assignment: its offsets are stored elsewhere
        self._counts = Counter({"commit-total": 0, "rebalance-total": 0, "records-consumed-total": 0})
        self._listener: RebalanceListener | None = None
        self._waiting: list[tuple[Call, GroupMetadataView]] = []
        self._within: Callback | None = None
        self._membership = GroupMetadataView(group_id, member_id=member)

    # Operations of an application

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None = None) -> None:
        """Do `subscribe`; without a listener the current one stays (KIP-1306 sets it before subscribing)."""
        del topics  # the calls contain the subscribed topics
        if listener is not None:
            warn_of_subscribe()
            self.set_rebalance_listener(listener)

    def set_rebalance_listener(self, listener: RebalanceListener | None) -> None:
        """Do `setRebalanceListener`: the last one set before a poll is called in it; None removes it."""
        self._listener = checked(listener)

    def feed(self, calls: Iterable[Call], membership: GroupMetadataView | None = None) -> None:
        """Queue calls for the next poll; calls of the assignor do not concern a listener.

        `membership`: the member as the coordinator knows it during the calls; None: unchanged.
        """
        found = self._membership if membership is None else membership
        self._waiting += ((each, found) for each in calls if each.callback in LISTENER)

    def consume(self) -> None:
        """Read all that is assigned and not paused to the end of each log, as an application does between polls.

        A position beyond the end becomes 0 (`auto.offset.reset=earliest`), as in a topic that was made again.
        """
        for each in sorted(self._assigned - self._paused):
            if self.broker.is_out_of_range(each, self.position(each)):
                self._begin_again(each)
            self._read_to(each, self.broker.end_offset(each))

    def _begin_again(self, partition: TopicPartition) -> None:
        last, self.positions[partition] = self._last_read(partition), 0
        if last is not None and last.offset:
            self._judge(READ_AGAIN, partition, last.offset, last.offset)

    def _read_to(self, partition: TopicPartition, end: int) -> None:
        """Read the records before an offset, from the position on."""
        position, last = self.position(partition), self._last_read(partition)
        if last is not None and last.offset < min(position, end):
            self._judge(SKIPPED, partition, last.offset, position - last.offset)
            self.broker.last_read[partition] = LastRead(position, revoked=False)
        if position < end:
            self.positions[partition] = end
            self._read[partition] = False
            self._counts["records-consumed-total"] += end - position
            self.broker.note_read(partition, position, end)
            self.broker.last_read[partition] = LastRead(end if last is None else max(end, last.offset), revoked=False)

    def poll(self) -> None:
        """Make all due calls, whatever some raise; then raise one of the errors.

        A wakeup or interrupt of the consumer takes precedence, then the first error.
        """
        listener, due, self._waiting = self._listener, self._waiting, []
        errors: list[BaseException] = []
        for each, self._membership in due:
            try:
                self._call(listener, each)
            except RAISED as error:  # a listener is a user's code and may raise anything
                errors.append(error)
                self._note(f"raised {type(error).__name__}", each.partitions, str(error))
            self._within = None
        raise_one(errors)

    def _call(self, listener: RebalanceListener | None, due: Call) -> None:
        """Remove lost partitions before their callback, revoked ones after it; add assigned ones before it."""
        self._within = due.callback
        if due.callback is Callback.ASSIGNED:
            self._counts["rebalance-total"] += 1
            self._assigned.update(due.partitions)
        if due.callback is Callback.LOST:
            self._take(due.partitions)
        try:
            if listener is not None:
                with view_of(self) as view:
                    method_of(listener, due.callback)(due.partitions, view)
        finally:
            if due.callback is Callback.ASSIGNED:
                self._take_over(due.partitions)
            if due.callback is Callback.REVOKED:
                self._give_up(due.partitions)
                self._take(due.partitions)

    def _take(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions; they are no longer paused, either."""
        for known in (self._assigned, self._paused, self._sought):
            known.difference_update(partitions)
        for each in partitions:
            self.positions.pop(each, None)
            self._read.pop(each, None)

    def _is_expelled(self) -> bool:
        """Return whether the group continued without this member, so that its commits are refused."""
        return False

    def _give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Note where reading stopped; the next owner reads uncommitted records again.

        Where an expelled member stopped is ignored: its partitions may have new owners by now.
        """
        is_expelled = self._is_expelled()
        for each in (each for each in partitions if each in self._assigned and self.broker.exists(each)):
            position, committed = self.position(each), self.broker.committed.get(each)
            if self.broker.is_out_of_range(each, position):
                continue  # of this log it has read nothing
            last = self._last_read(each)
            has_read_furthest = last is None or last.revoked or last.offset <= position  # else a second owner has
            if has_read_furthest and not is_expelled:
                self.broker.last_read[each] = LastRead(position, revoked=True)
            done = committed is not None and committed.offset >= position
            saved = done if self.broker.exact else self._read.get(each, True)
            if each in self._read and not saved and each not in self._sought:
                at = "nothing" if committed is None else f"offset {committed.offset}"
                got = f"{named([each])} was read up to offset {position}, and {at} is committed"
                expected = "expected a commit before the callback returns"
                self._note(UNCOMMITTED, {each: OffsetAndMetadata(position)}, f"{got}; {expected}")

    def _take_over(self, partitions: Iterable[TopicPartition]) -> None:
        """Compare the start position with where the last owner stopped, if it was asked to revoke the partition."""
        for each in partitions:
            position, last = self.position(each), self._last_read(each)
            if last is not None and last.revoked and position < last.offset:
                self._judge(READ_AGAIN, each, last.offset, last.offset - position)

    def _last_read(self, partition: TopicPartition) -> LastRead | None:
        return self.broker.last_read.get(partition) if self.broker.exact else None

    def _judge(self, did: str, partition: TopicPartition, last_offset: int, records: int) -> None:
        """Note that an assigned partition does not continue where its last owner stopped."""
        position = self.position(partition)
        got = f"{named([partition])} goes on at offset {position}, and was read up to offset {last_offset}"
        within, self._within = self._within, Callback.ASSIGNED
        self._note(did, {partition: OffsetAndMetadata(position)}, f"{got}: {did} {records:,} records")
        self._within = within

    # Operations of a view

    def commit_sync(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit; refused for partitions that are not assigned."""
        del timeout  # nothing waits here
        self._commit(self._all_positions() if offsets is None else dict(offsets))

    def _commit(self, wanted: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if wanted and self._is_expelled():
            message = f"{self.member} is no member of the group's generation; expected a commit before it is expelled"
            self._fail("commit", wanted, CommitFailedError("COMMIT_FAILED", message))
        self._require_offsets("commit", wanted)
        foreign = {each: wanted[each] for each in wanted if each not in self._assigned}
        if foreign:
            message = f"{self.member} does not own {named(foreign)}; expected offsets of assigned partitions"
            self._fail("commit", foreign, CommitFailedError("COMMIT_FAILED", message))
        kept = {each: found for each, found in wanted.items() if self.broker.exists(each)}
        missing = wanted.keys() - kept
        self.broker.commit(kept)
        self._read |= dict.fromkeys(self._read.keys() & kept.keys(), True)
        self._counts["commit-total"] += 1
        if kept or not missing:
            self._note("commit", kept)
        if missing:
            message = f"the cluster does not have {named(missing)}; expected offsets of partitions that it has"
            refused = {each: wanted[each] for each in missing}
            self._fail("commit", refused, CommitFailedError("UNKNOWN_TOPIC_OR_PARTITION", message))

    def commit_async(self, offsets: Offsets | None = None, callback: OnCommit | None = None) -> None:
        """Commit; errors go to the callback, if there is one."""
        wanted = self._all_positions() if offsets is None else dict(offsets)
        failed: Exception | None = None
        try:
            self._commit(wanted)
        except CommitFailedError as error:
            failed = error
        if callback is not None:
            callback(wanted, failed)

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the last commits of any member of the group."""
        del timeout
        return {each: self.broker.committed.get(each) for each in partitions}

    def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """Return the offset of the next record: initially the committed one, else 0."""
        del timeout
        self._require("position", [partition])
        committed = self.broker.committed.get(partition)
        return self.positions.setdefault(partition, 0 if committed is None else committed.offset)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Set a position."""
        wanted = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        self._require("seek", [partition])
        self._require_offsets("seek", {partition: wanted})
        self.positions[partition] = wanted.offset
        if self._within is Callback.ASSIGNED:
            self._sought.add(partition)
        self._note("seek", {partition: wanted})

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to offset 0."""
        for each in partitions:
            self.seek(each, 0)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to the offset after the last record."""
        for each in partitions:
            self.seek(each, self.broker.end_offset(each))

    def assignment(self) -> set[TopicPartition]:
        """Return the current assignment."""
        return set(self._assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Pause assigned partitions."""
        wanted = tuple(partitions)
        self._require("pause", wanted)
        self._paused.update(wanted)
        self._note("pause", wanted)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Resume assigned partitions."""
        wanted = tuple(partitions)
        self._require("resume", wanted)
        self._paused.difference_update(wanted)
        self._note("resume", wanted)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return set(self._paused)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return 0 for each log: they begin there."""
        del timeout
        return dict.fromkeys(partitions, 0)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each log."""
        del timeout
        return {each: self.broker.end_offset(each) for each in partitions}

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record of each partition at or after its time."""
        del timeout
        return {each: self.broker.first_since(each, at_ms) for each, at_ms in timestamps_ms.items()}

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records from the position to the end."""
        self._require("current_lag", [partition])
        return max(self.broker.end_offset(partition) - self.position(partition), 0)

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[PartitionInfo]:
        """Return partitions by the broker's counts; leaders and replicas are unknown."""
        del timeout
        return [PartitionInfo(topic, number) for number in range(self.broker.topics.get(topic, 0))]

    def list_topics(self, *, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """Return all topics."""
        del timeout
        return {topic: self.partitions_for(topic) for topic in sorted(self.broker.topics)}

    def metrics(self) -> dict[str, Any]:
        """Return what is counted here, under Kafka's names."""
        return {"assigned-partitions": len(self._assigned), **self._counts}

    def client_instance_id(self, *, timeout: float | None = None) -> str:
        """Return an id of the process in Kafka's form; it is the same in every run."""
        del timeout
        named_by = "\n".join((self.group_id, self.member, str(self.process)))
        return urlsafe_b64encode(uuid5(NAMESPACE_OID, named_by).bytes).decode().rstrip("=")

    def group_metadata(self) -> GroupMetadataView:
        """Return the group and the member, as the coordinator knows it during the call."""
        return self._membership

    def _all_positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {each: OffsetAndMetadata(self.position(each)) for each in sorted(self._assigned)}

    def _require(self, did: str, partitions: Iterable[TopicPartition]) -> None:
        foreign = set(partitions) - self._assigned
        if foreign:
            message = f"{did} of {named(foreign)}, which {self.member} is not assigned; expected one of its assignment"
            self._fail(did, foreign, IllegalStateError("ILLEGAL_STATE", message))

    def _require_offsets(self, did: str, offsets: Offsets) -> None:
        negative = {each: found for each, found in offsets.items() if found.offset < 0}
        if negative:
            message = f"{did} of a negative offset for {named(negative)}; expected an offset of 0 or more"
            self._fail(did, negative, IllegalArgumentError("ILLEGAL_ARGUMENT", message))

    def _fail(self, did: str, partitions: Iterable[TopicPartition] | Offsets, error: Fault) -> None:
        self._note(did, partitions, error.message)
        raise error

    def _note(self, did: str, partitions: Iterable[TopicPartition] | Offsets, error: str | None = None) -> None:
        if self._within is not None:
            found = tuple(sorted(partitions))
            offsets = tuple(partitions[each] for each in found) if isinstance(partitions, Mapping) else ()
            generation = self._membership.generation
            row = self.member, self._within, did, found, error, offsets, generation, self.broker.now_ms
            self.journal.append(Entry(*row))


def method_of(listener: RebalanceListener, callback: Callback) -> Callable[[Any, Any], None]:
    """Return the listener's method for a callback of Kafka's."""
    methods = {
        Callback.ASSIGNED: listener.on_partitions_assigned,
        Callback.REVOKED: listener.on_partitions_revoked,
        Callback.LOST: listener.on_partitions_lost,
    }
    return methods[callback]


# Simulate a rehearsed group's broker: topics, logs and committed offsets, shared by its consumers.
#
# The log of a partition begins at 0, is empty when the topic is created, and grows at the same rate as all others.


class LastRead(NamedTuple):
    """Where the last owner of a partition stopped reading, and whether it was asked to revoke it."""

    offset: int
    revoked: bool


class SimulatedBroker:
    """The cluster as one group sees it, in memory.

    `topics`: None if nobody knows which there are. `exact`: the logs are what members read. Otherwise their real length
    is unknown, so an offset proves nothing.
    """

    def __init__(self, topics: Mapping[str, int] | None = None, *, exact: bool = True) -> None:
        self.exact = exact
        self.knows_topics = topics is not None
        self.topics: dict[str, int] = {}
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.last_read: dict[TopicPartition, LastRead] = {}
        self._made: dict[str, list[int]] = {}  # per partition: records in the oldest log at its creation
        self._times: list[int] = []  # of appends, in ms
        self._ends: list[int] = []  # of the oldest log after each append
        self.set_topics(topics or {})

    def set_topics(self, topics: Mapping[str, int]) -> None:
        """Replace the topics; logs and committed offsets of missing ones are deleted."""
        for topic in [topic for topic, count in self.topics.items() if topics.get(topic, 0) < count]:
            kept = topics.get(topic, 0)
            del self._made[topic][kept:]
            for known in (self.committed, self.last_read):
                for gone in [each for each in known if each[0] == topic and each[1] >= kept]:
                    del known[gone]
        for topic, count in topics.items():
            made = self._made.setdefault(topic, [])
            made.extend([self._end] * (count - len(made)))
        self.topics = dict(topics)

    @property
    def now_ms(self) -> int | None:
        """Return the time on the clock; None: it is unknown."""
        return None

    def see(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that these partitions were named, so they exist."""
        topics = dict(self.topics)
        for topic, number in partitions:
            topics[topic] = max(topics.get(topic, 0), number + 1)
        if topics != self.topics:
            self.set_topics(topics)

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the cluster has the partition, as far as its topics are known: no other is committed."""
        return not self.knows_topics or self._made_at(partition) is not None

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Record offsets committed by a member."""
        self.committed.update(offsets)

    def note_read(self, partition: TopicPartition, first: int, end: int) -> None:
        """Record what a member has read."""

    def append(self, records: int, at_ms: int) -> None:
        """Append `records` to each partition, with this timestamp, or the last ones' if that is later."""
        if records > 0:
            self._times.append(max(at_ms, self._times[-1] if self._times else at_ms))
            self._ends.append(self._end + records)

    def end_offset(self, partition: TopicPartition) -> int:
        """Return the offset after the last record; 0 for a partition that does not exist."""
        made = self._made_at(partition)
        return 0 if made is None else self._end - made

    def is_out_of_range(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether a fetch at this offset fails with OFFSET_OUT_OF_RANGE: the log ends before it."""
        return self.exact and self._made_at(partition) is not None and offset > self.end_offset(partition)

    def first_since(self, partition: TopicPartition, at_ms: int) -> OffsetAndTimestamp | None:
        """Return the first record with this timestamp or a later one."""
        made = self._made_at(partition)
        if made is None:
            return None
        append = bisect_left(self._times, at_ms)
        while append < len(self._times) and self._ends[append] <= made:
            append += 1
        if append == len(self._times):
            return None
        before = self._ends[append - 1] if append else 0
        return OffsetAndTimestamp(before - made, self._times[append])

    @property
    def _end(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _made_at(self, partition: TopicPartition) -> int | None:
        topic, number = partition
        made = self._made.get(topic, [])
        return made[number] if 0 <= number < len(made) else None


# What a rehearsal's journal records: actions of listeners, and what came of them.

UNCOMMITTED = "left uncommitted"
READ_AGAIN = "reads again"
SKIPPED = "skips"
EXPELLED = "expelled"


class Entry(NamedTuple):
    """An action of a listener, or its consequence: `error` is None if it succeeded.

    `offsets` are those of a commit or a seek, in the order of `partitions`. Consequences of a hand-over have a `did` of
    their own: "left uncommitted" if the callback returned without committing what was read; "reads again" and "skips"
    if the next owner does not continue where the last one stopped.
    """

    member: str
    callback: Callback
    did: str
    partitions: tuple[TopicPartition, ...]
    error: str | None = None
    offsets: tuple[OffsetAndMetadata, ...] = ()
    generation: int | None = None
    at_ms: int | None = None  # if the group has times
