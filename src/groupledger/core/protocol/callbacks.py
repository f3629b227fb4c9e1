"""The calls a rebalance makes into an application and its assignor, under Kafka's own names."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition

PartitionSet = frozenset[TopicPartition]
NOTHING: PartitionSet = frozenset()


class Callback(enum.StrEnum):
    """What is called, in the order in which one rebalance calls it (KIP-429, "Semantics")."""

    LOST = "onPartitionsLost"
    REVOKED = "onPartitionsRevoked"
    USER_DATA = "subscriptionUserData"
    ASSIGN = "assign"
    ON_ASSIGNMENT = "onAssignment"
    ASSIGNED = "onPartitionsAssigned"


LISTENER = frozenset({Callback.LOST, Callback.REVOKED, Callback.ASSIGNED})
"""Calls of the rebalance listener; the others are the assignor's."""


class Call(NamedTuple):
    """One call with its argument: `topics` of USER_DATA and ASSIGN, `partitions` of all but USER_DATA.

    ASSIGN is told what all members say they own, ON_ASSIGNMENT the member's whole assignment.
    """

    callback: Callback
    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()


def call(callback: Callback, partitions: Iterable[TopicPartition]) -> Call:
    """A call about partitions, by topic and number."""
    return Call(callback, tuple(sorted(partitions)))
