"""Compute what Kafka's sticky assignors report beside the assignment, for a batch of one group.

`transferring` is `partitionsTransferringOwnership()` of kafka-clients 4.4.0: partitions given to one
member while another still holds them. `is_sticky` is `isSticky()`: no two members swapped partitions of a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.core.assignors.answer import lists_of
from groupledger.core.assignors.group import Path
from groupledger.core.assignors.safe import Doubt, doubts, without_claims
from groupledger.core.assignors.sticky import sticky_groups
from groupledger.core.rebalance.registry import BY_NAME

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import GroupBatch
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.assignors.answer import AssignmentBatch

Transfer = tuple[int, int, int]  # local topic, partition, new owner


def transferring(name: str, batch: GroupBatch, answer: AssignmentBatch, *, mode: str) -> list[Transfer] | None:
    """Return the transfers of the group in the order of its target's lists.

    None if Kafka reports none: for assignors that are not sticky, and for the general algorithm (what
    cooperative-sticky withholds there is what its assignment lacks).
    """
    if not BY_NAME[name].sticky or answer.path[0] == Path.GENERAL:
        return None
    target = answer.target
    cooperative = BY_NAME[name].cooperative
    moving = target.only(~target.within(answer.assigned) if cooperative else _moving_eagerly(batch, mode))
    return list(zip(moving.topic.tolist(), moving.partition.tolist(), moving.member.tolist(), strict=True))


def is_sticky(name: str) -> bool | None:
    """Return True for the sticky assignors, None for the others.

    Kafka's answer would be False if partitions of one topic went from a to b and others from b to a. None do: before a
    partition goes from a to b, one that went from b to a returns instead and is removed from the record
    (`balance.to_move_instead`). The constrained algorithm never moves an assigned partition.
    """
    return True if BY_NAME[name].sticky else None


def _moving_eagerly(batch: GroupBatch, mode: str) -> Mask:
    """Mark transfers of `sticky`, which hands over at once: the kernel marks what another member claimed."""
    if mode == "safe":
        batch = without_claims(batch, doubts(batch, cooperative=False) == Doubt.NONE)
    # StickyAssignor has no map of transfers of its own: it inherits the one that the constrained algorithm fills.
    lists, _, _ = lists_of(sticky_groups, batch, False)
    return lists.withheld[: lists.start[-1]]
