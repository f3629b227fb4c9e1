"""Provide the restricted view of a consumer that a callback receives (KIP-1306, `RebalanceConsumer`).

It lacks what is dangerous in a rebalance: poll, close, subscribe, unsubscribe, assign, wakeup, enforce_rebalance,
metrics and (un)registering them. A type checker reports their use before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault


class OffsetAndMetadata(NamedTuple):
    """An offset to commit or to seek to."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time; `timestamp_ms` is the record's, None if the client does not return it."""

    offset: int
    timestamp_ms: int | None
    leader_epoch: int | None = None


class PartitionInfo(NamedTuple):
    """A partition's metadata; brokers by id."""

    topic: str
    partition: int
    leader: int | None = None
    replicas: tuple[int, ...] = ()
    in_sync_replicas: tuple[int, ...] = ()


class GroupMetadataView(NamedTuple):
    """The member as the coordinator knows it."""

    group_id: str
    generation: int | None = None
    member_id: str | None = None
    group_instance_id: str | None = None


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
OnCommit = Callable[[Offsets, Exception | None], None]


class Client(Protocol):
    """Any object with some of the view's operations, under the same names; a missing one raises a named error."""

    client_name: str


class RebalanceConsumer:
    """The view. Times are seconds; None waits as long as the client does by default.

    Valid while its callback runs: any use after that raises IllegalStateError.
    """

    __slots__ = ("_client", "_valid")

    def __init__(self, client: Client) -> None:
        self._client = client
        self._valid = True

    def commit_sync(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Do `commitSync`: commit these offsets, or the positions of all assigned partitions."""
        self._do("commit_sync", offsets, timeout=timeout)

    def commit_async(self, offsets: Offsets | None = None, callback: OnCommit | None = None) -> None:
        """Do `commitAsync`: the same without waiting."""
        self._do("commit_async", offsets, callback)

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Do `committed`: return the last committed offset of each partition; None without one."""
        return dict(self._do("committed", tuple(partitions), timeout=timeout))

    def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """Do `position`: return the offset of the next record."""
        return int(self._do("position", partition, timeout=timeout))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Do `seek`: continue from there."""
        self._do("seek", partition, offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Do `seekToBeginning`."""
        self._do("seek_to_beginning", tuple(partitions))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Do `seekToEnd`."""
        self._do("seek_to_end", tuple(partitions))

    def assignment(self) -> frozenset[TopicPartition]:
        """Do `assignment`."""
        return frozenset(self._do("assignment"))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Do `pause`: deliver nothing of these until `resume`, even after the callback."""
        self._do("pause", tuple(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Do `resume`."""
        self._do("resume", tuple(partitions))

    def paused(self) -> frozenset[TopicPartition]:
        """Do `paused`."""
        return frozenset(self._do("paused"))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Do `beginningOffsets`."""
        return dict(self._do("beginning_offsets", tuple(partitions), timeout=timeout))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Do `endOffsets`."""
        return dict(self._do("end_offsets", tuple(partitions), timeout=timeout))

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Do `offsetsForTimes`."""
        return dict(self._do("offsets_for_times", dict(timestamps_ms), timeout=timeout))

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[PartitionInfo]:
        """Do `partitionsFor`."""
        return list(self._do("partitions_for", topic, timeout=timeout))

    def list_topics(self, *, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """Do `listTopics`."""
        return dict(self._do("list_topics", timeout=timeout))

    def client_instance_id(self, *, timeout: float | None = None) -> str:
        """Do `clientInstanceId`, which the KIP has in the interface but omits from the list (decision 0123)."""
        return str(self._do("client_instance_id", timeout=timeout))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Do `currentLag`: return the number of records behind the end; None if unknown."""
        lag = self._do("current_lag", partition)
        return None if lag is None else int(lag)

    def group_metadata(self) -> GroupMetadataView:
        """Do `groupMetadata`."""
        found: GroupMetadataView = self._do("group_metadata")
        return found

    def _do(self, operation: str, *arguments: Any, **options: Any) -> Any:
        if not self._valid:
            message = f"{operation} on a view whose callback has returned; expected use inside the callback only"
            raise IllegalStateError("ILLEGAL_STATE", message)
        method = getattr(self._client, operation, None)
        if method is None:
            message = f"{self._client.client_name} has no {operation}; expected a client that has it"
            raise UnsupportedOperationError("UNSUPPORTED_OPERATION", message)
        return method(*arguments, **options)


@contextmanager
def view_of(client: Client) -> Iterator[RebalanceConsumer]:
    """Make a view for one callback; it expires when the callback returns or raises."""
    view = RebalanceConsumer(client)
    try:
        yield view
    finally:
        view._valid = False


# Define the errors of listeners by name: `Fault`s with a code.


class IllegalStateError(Fault):
    """Java's IllegalStateException: a view used after its callback, or a partition that is not assigned."""


class IllegalArgumentError(Fault):
    """Java's IllegalArgumentException: an offset below 0."""


class CommitFailedError(Fault):
    """The broker refuses a commit: the member does not (or no longer) own these partitions, or they do not exist."""


class UnsupportedOperationError(Fault):
    """The client does not support an operation of the view."""


class WakeupError(Fault):
    """Java's WakeupException: the consumer was woken up; it passes through a callback to the caller of poll."""


class InterruptError(Fault):
    """Java's InterruptException: the thread was interrupted; it passes through a callback to the caller of poll."""


def raise_one(errors: Sequence[BaseException]) -> None:
    """Raise one of several errors to the caller of poll: a wakeup or interrupt, else the first; nothing if none."""
    if not errors:
        return
    passing = next((each for each in errors if isinstance(each, WakeupError | InterruptError)), errors[0])
    if passing is errors[0]:
        raise passing
    raise passing from errors[0]


def named(partitions: Iterable[TopicPartition]) -> str:
    """Format partitions as `t-0, t-1`."""
    return ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions))
