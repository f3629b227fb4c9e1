"""Host listeners in a live consumer: add what KIP-1306 adds to a client library's callbacks.

`ConfluentConsumer` wraps confluent-kafka, `KafkaPythonConsumer` wraps kafka-python; neither is a dependency.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.consumer import Callback
from groupledger.listener.hosted import method_of
from groupledger.listener.interface import RebalanceListener, checked, warn_of_subscribe
from groupledger.listener.view import IllegalStateError, named, raise_one, view_of

Polled = TypeVar("Polled")


class LiveConsumer(ABC, Generic[Polled]):
    """A consumer of a client library with `set_rebalance_listener`; the operations of the view are its methods."""

    client_name: str

    def __init__(self) -> None:
        self._set: RebalanceListener | None = None
        self._called: RebalanceListener | None = None
        self._errors: list[BaseException] = []
        self._kept: list[Polled] = []

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None = None) -> None:
        """Do `subscribe`; without a listener the current one stays."""
        if listener is not None:
            warn_of_subscribe()
            self.set_rebalance_listener(listener)
        self._subscribe(list(topics))

    def set_rebalance_listener(self, listener: RebalanceListener | None) -> None:
        """Do `setRebalanceListener`: the last one set before a poll is called in it; None removes it."""
        self._set = checked(listener)

    def poll(self, timeout: float = 0.0) -> Polled | None:
        """Poll the client once, in seconds; raise a listener's error once the rebalance is complete (`raise_one`).

        What the client returned in that poll is not lost: the next poll returns it.
        """
        self._called = self._set
        if self._kept:
            return self._kept.pop()
        polled = self._poll(timeout)
        if self._errors:
            if polled is not None:
                self._kept.append(polled)
            self._raise_one()
        return polled

    def close(self) -> None:
        """Leave the group; the listener gets the revocation."""
        self._called = self._set
        self._close()
        self._raise_one()

    def _raise_one(self) -> None:
        errors, self._errors = self._errors, []
        raise_one(errors)

    def _call_listener(self, callback: Callback, partitions: Iterable[TopicPartition]) -> None:
        """Call the listener, if there is one; its error waits until the client has finished the rebalance."""
        if self._called is None:
            return
        try:
            with view_of(self) as view:
                method_of(self._called, callback)(tuple(sorted(partitions)), view)
        except Exception as error:  # noqa: BLE001 - a listener is a user's code and may raise anything
            self._errors.append(error)

    def _require(self, did: str, partitions: Iterable[TopicPartition]) -> None:
        foreign = set(partitions) - self.assignment()
        if foreign:
            message = f"{did} of {named(foreign)}, which are not assigned; expected partitions of the assignment"
            raise IllegalStateError("ILLEGAL_STATE", message)

    @abstractmethod
    def assignment(self) -> set[TopicPartition]:
        """Return the current assignment."""

    @abstractmethod
    def _subscribe(self, topics: list[str]) -> None:
        """Subscribe the client, with callbacks that call the listener."""

    @abstractmethod
    def _poll(self, timeout: float) -> Polled | None:
        """Poll the client once."""

    @abstractmethod
    def _close(self) -> None:
        """Close the client."""


def name_of(native: Any) -> TopicPartition:
    """Return the name of a client's partition."""
    return TopicPartition(native.topic, native.partition)


def names_of(partitions: Iterable[Any]) -> set[TopicPartition]:
    """Return the names of a client's partitions."""
    return {name_of(each) for each in partitions}
