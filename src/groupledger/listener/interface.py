"""Define KIP-1306's listeners in Python: `RebalanceListener`, and the older form without a consumer argument.

class Committing(RebalanceListener):
    def on_partitions_assigned(self, partitions, consumer):
        consumer.pause(partitions)

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync()
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import RAISED
from groupledger.listener.view import IllegalArgumentError, RebalanceConsumer, raise_one

Partitions = Sequence[TopicPartition]


class RebalanceListener(ABC):
    """Called on the polling thread during a rebalance (`RebalanceListener`).

    `consumer` is a restricted view of the consumer, valid until the callback returns.
    """

    @abstractmethod
    def on_partitions_assigned(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Receive new partitions, possibly none (`onPartitionsAssigned`); they are already in the assignment."""

    @abstractmethod
    def on_partitions_revoked(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Give up partitions (`onPartitionsRevoked`); they are in the assignment until the callback returns."""

    def on_partitions_lost(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Handle partitions already lost (`onPartitionsLost`); by default as if revoked.

        They are no longer in the assignment, so commit, position and seek fail for them.
        """
        self.on_partitions_revoked(partitions, consumer)


class ConsumerRebalanceListener(RebalanceListener):
    """The older form (`ConsumerRebalanceListener`, deprecated by KIP-1306): callbacks without a consumer.

    Java overloads one name; here the callbacks that take only partitions have names of their own. Each callback with
    a consumer calls the one without, so a class may override either.
    """

    @abstractmethod
    def partitions_assigned(self, partitions: Partitions) -> None:
        """Do `onPartitionsAssigned(partitions)`."""

    @abstractmethod
    def partitions_revoked(self, partitions: Partitions) -> None:
        """Do `onPartitionsRevoked(partitions)`."""

    def partitions_lost(self, partitions: Partitions) -> None:
        """Do `onPartitionsLost(partitions)`."""
        self.partitions_revoked(partitions)

    def on_partitions_assigned(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Do `onPartitionsAssigned(partitions, consumer)`."""
        self.partitions_assigned(partitions)

    def on_partitions_revoked(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Do `onPartitionsRevoked(partitions, consumer)`."""
        self.partitions_revoked(partitions)

    def on_partitions_lost(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Do `onPartitionsLost(partitions, consumer)`; never calls `on_partitions_revoked`."""
        self.partitions_lost(partitions)


class Adapted(ConsumerRebalanceListener):
    """Adapts a listener of kafka-python's form: an object whose `on_partitions_*` take only partitions."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener

    def partitions_assigned(self, partitions: Partitions) -> None:
        """Call the object's `on_partitions_assigned`."""
        self.listener.on_partitions_assigned(partitions)

    def partitions_revoked(self, partitions: Partitions) -> None:
        """Call the object's `on_partitions_revoked`."""
        self.listener.on_partitions_revoked(partitions)

    def partitions_lost(self, partitions: Partitions) -> None:
        """Call the object's `on_partitions_lost` if it has one, else its `on_partitions_revoked`."""
        lost: Callable[[Partitions], None] | None = getattr(self.listener, "on_partitions_lost", None)
        (lost or self.partitions_revoked)(partitions)


class CompositeRebalanceListener(RebalanceListener):
    """Several listeners as one, called in order; after all calls, one of their errors is raised.

    Goes beyond KIP-1306, which names it as future work.
    """

    def __init__(self, *listeners: RebalanceListener) -> None:
        for each in listeners:
            checked(each)
        self.listeners = listeners

    def on_partitions_assigned(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Call each listener."""
        call_all([each.on_partitions_assigned for each in self.listeners], partitions, consumer)

    def on_partitions_revoked(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Call each listener."""
        call_all([each.on_partitions_revoked for each in self.listeners], partitions, consumer)

    def on_partitions_lost(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """Call each listener."""
        call_all([each.on_partitions_lost for each in self.listeners], partitions, consumer)


def call_all(
    callbacks: Sequence[Callable[[Partitions, RebalanceConsumer], None]],
    partitions: Partitions,
    consumer: RebalanceConsumer,
) -> None:
    """Make all calls, whatever some raise; then raise one of the errors, as a poll does."""
    errors: list[BaseException] = []
    for callback in callbacks:
        try:
            callback(partitions, consumer)
        except RAISED as error:  # a listener is a user's code and may raise anything
            errors.append(error)
    raise_one(errors)


def checked(listener: object) -> RebalanceListener | None:
    """Return the listener that a consumer shall call; warn if it has the older form.

    Raises IllegalArgumentError for an object that is not a `RebalanceListener`.
    """
    if listener is not None and not isinstance(listener, RebalanceListener):
        got = f"listener is {type(listener).__name__}; expected a RebalanceListener or None: Adapted makes one of an"
        raise IllegalArgumentError("ILLEGAL_ARGUMENT", f"{got} object whose on_partitions_* take partitions alone")
    if isinstance(listener, ConsumerRebalanceListener):
        kind = type(listener.listener if isinstance(listener, Adapted) else listener).__name__
        got = f"{kind} is a listener of the older form, which KIP-1306 deprecates"
        warnings.warn(f"{got}: expected a RebalanceListener", DeprecationWarning, stacklevel=3)
    return listener


def warn_of_subscribe() -> None:
    """Warn that `subscribe` with a listener still works, but is deprecated by KIP-1306."""
    got = "subscribe with a listener is deprecated by KIP-1306: expected set_rebalance_listener"
    warnings.warn(got, DeprecationWarning, stacklevel=3)
