"""A consumer whose rebalances come from a simulation or from recorded history: a host for listeners, without a broker.

It keeps positions and paused partitions, and a journal of all that a listener did; committed offsets are the broker's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol.callbacks import LISTENER, Call, Callback
from groupledger.listener.broker import SimulatedBroker
from groupledger.listener.errors import CommitFailedError, IllegalStateError, named
from groupledger.listener.interface import RebalanceListener
from groupledger.listener.view import GroupMetadata, OffsetAndMetadata, Offsets, OnCommit, PartitionInfo, view_of


class Entry(NamedTuple):
    """Something a listener did, or what became of it: `error` is None where it went well."""

    member: str
    callback: Callback
    did: str
    partitions: tuple[TopicPartition, ...]
    error: str | None = None


class HostedConsumer:
    """One member. `feed` takes the calls of a rebalance; the next `poll` makes them.

    Members of one group share a `broker`.
    """

    client_name = "the simulated consumer"

    def __init__(
        self,
        member: str,
        group_id: str = "",
        topics: Mapping[str, int] | None = None,
        broker: SimulatedBroker | None = None,
    ) -> None:
        self.member = member
        self.group_id = group_id
        self.topics = dict(topics or {})
        self.journal: list[Entry] = []
        self.positions: dict[TopicPartition, int] = {}
        self.broker = SimulatedBroker() if broker is None else broker
        self._assigned: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._listener: RebalanceListener | None = None
        self._waiting: list[Call] = []
        self._within: Callback | None = None

    # What an application does

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None = None) -> None:
        """`subscribe`: without a listener the one that is set stays (KIP-1306 sets it before subscribing)."""
        del topics  # which ones were subscribed to is in the calls
        if listener is not None:
            self.set_rebalance_listener(listener)

    def set_rebalance_listener(self, listener: RebalanceListener | None) -> None:
        """`setRebalanceListener`: the last one set before a poll is called in it; None removes it."""
        self._listener = listener

    def feed(self, calls: Iterable[Call]) -> None:
        """The next poll finds that these calls are due; calls of the assignor are nothing to a listener."""
        self._waiting += (each for each in calls if each.callback in LISTENER)

    def poll(self) -> None:
        """Make all calls that are due, whatever some raise; when the rebalance is complete, raise the first error."""
        listener, due, self._waiting = self._listener, self._waiting, []
        errors: list[BaseException] = []
        for each in due:
            try:
                self._call(listener, each)
            except Exception as error:  # noqa: BLE001 - a listener is a user's code and may raise anything
                errors.append(error)
                self._note(f"raised {type(error).__name__}", each.partitions, str(error))
            self._within = None
        if errors:
            raise errors[0]

    def _call(self, listener: RebalanceListener | None, due: Call) -> None:
        """Lost partitions are gone before their callback, revoked ones after it, assigned ones are there before it."""
        self._within = due.callback
        if due.callback is Callback.ASSIGNED:
            self._assigned.update(due.partitions)
        if due.callback is Callback.LOST:
            self._take(due.partitions)
        try:
            if listener is not None:
                with view_of(self) as view:
                    method_of(listener, due.callback)(due.partitions, view)
        finally:
            if due.callback is Callback.REVOKED:
                self._take(due.partitions)

    def _take(self, partitions: Iterable[TopicPartition]) -> None:
        """What is taken is no longer paused either."""
        self._assigned.difference_update(partitions)
        self._paused.difference_update(partitions)
        for each in partitions:
            self.positions.pop(each, None)

    # What a view does

    def commit_sync(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit; refused for what is not assigned."""
        del timeout  # nothing waits here
        wanted = self._all_positions() if offsets is None else dict(offsets)
        foreign = wanted.keys() - self._assigned
        if foreign:
            message = f"{self.member} does not own {named(foreign)}; expected offsets of assigned partitions"
            self._fail("commit", foreign, CommitFailedError("COMMIT_FAILED", message))
        self.broker.committed.update(wanted)
        self._note("commit", wanted)

    def commit_async(self, offsets: Offsets | None = None, callback: OnCommit | None = None) -> None:
        """Commit; what went wrong is told to the callback, if there is one."""
        wanted = self._all_positions() if offsets is None else dict(offsets)
        failed: Exception | None = None
        try:
            self.commit_sync(wanted)
        except CommitFailedError as error:
            failed = error
        if callback is not None:
            callback(wanted, failed)

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What any member of the group committed last."""
        del timeout
        return {each: self.broker.committed.get(each) for each in partitions}

    def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """Where the partition was sought to, else its committed offset, else 0."""
        del timeout
        self._require("position", [partition])
        committed = self.broker.committed.get(partition)
        return self.positions.get(partition, 0 if committed is None else committed.offset)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Set a position."""
        self._require("seek", [partition])
        self.positions[partition] = offset if isinstance(offset, int) else offset.offset
        self._note("seek", [partition])

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """To offset 0."""
        for each in partitions:
            self.seek(each, 0)

    def assignment(self) -> set[TopicPartition]:
        """What is assigned now."""
        return set(self._assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Pause what is assigned."""
        wanted = tuple(partitions)
        self._require("pause", wanted)
        self._paused.update(wanted)
        self._note("pause", wanted)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Resume what is assigned."""
        wanted = tuple(partitions)
        self._require("resume", wanted)
        self._paused.difference_update(wanted)
        self._note("resume", wanted)

    def paused(self) -> set[TopicPartition]:
        """What is paused now."""
        return set(self._paused)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Logs begin at 0 here."""
        del timeout
        return dict.fromkeys(partitions, 0)

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[PartitionInfo]:
        """Partitions by the counts that the host knows; brokers are not known."""
        del timeout
        return [PartitionInfo(topic, number) for number in range(self.topics.get(topic, 0))]

    def list_topics(self, *, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that the host knows."""
        del timeout
        return {topic: self.partitions_for(topic) for topic in sorted(self.topics)}

    def group_metadata(self) -> GroupMetadata:
        """The group, and no generation: the calls do not carry it."""
        return GroupMetadata(self.group_id, member_id=self.member)

    def _all_positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {each: OffsetAndMetadata(self.position(each)) for each in sorted(self._assigned)}

    def _require(self, did: str, partitions: Iterable[TopicPartition]) -> None:
        foreign = set(partitions) - self._assigned
        if foreign:
            message = f"{did} of {named(foreign)}, which {self.member} is not assigned; expected one of its assignment"
            self._fail(did, foreign, IllegalStateError("ILLEGAL_STATE", message))

    def _fail(self, did: str, partitions: Iterable[TopicPartition], error: Fault) -> None:
        self._note(did, partitions, error.message)
        raise error

    def _note(self, did: str, partitions: Iterable[TopicPartition], error: str | None = None) -> None:
        if self._within is not None:
            self.journal.append(Entry(self.member, self._within, did, tuple(sorted(partitions)), error))


def method_of(listener: RebalanceListener, callback: Callback) -> Callable[[Any, Any], None]:
    """The listener's method for a callback of Kafka's."""
    methods = {
        Callback.ASSIGNED: listener.on_partitions_assigned,
        Callback.REVOKED: listener.on_partitions_revoked,
        Callback.LOST: listener.on_partitions_lost,
    }
    return methods[callback]
