"""Define the errors of listeners by name: `Fault`s with a code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupledger.core.custom.group import TopicPartition
from groupledger.core.faults import Fault


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
