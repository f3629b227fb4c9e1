"""What Kafka's sticky assignors tell besides the assignment, of a batch of one group.

`transferring` is `partitionsTransferringOwnership()` of kafka-clients 4.4.0: partitions that go to one member while
another holds them, with no stop between. `is_sticky` is `isSticky()`: no two members swapped partitions of a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core import ragged
from groupledger.core.assignors.answer import lists_of
from groupledger.core.assignors.outcome import Path
from groupledger.core.assignors.safe import Doubt, doubts, without_claims
from groupledger.core.assignors.sticky import sticky_groups
from groupledger.core.registry import BY_NAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import AssignmentBatch, GroupBatch

Transfer = tuple[int, int, int]  # local topic, partition, member that is to get it


def transferring(name: str, batch: GroupBatch, answer: AssignmentBatch, *, mode: str) -> list[Transfer] | None:
    """The transfers of the group in the order of its target's lists.

    None where Kafka has none to tell: assignors that are not sticky, and the general algorithm (what
    cooperative-sticky withholds there is what its assignment lacks).
    """
    if not BY_NAME[name].sticky or answer.path[0] == Path.GENERAL:
        return None
    moving = _withheld(answer) if BY_NAME[name].cooperative else _moving_eagerly(batch, mode)
    member = ragged.owners(answer.target_start)[moving]
    topic, partition = answer.target_topic[moving], answer.target_partition[moving]
    return list(zip(topic.tolist(), partition.tolist(), member.tolist(), strict=True))


def is_sticky(name: str) -> bool | None:
    """True for the sticky assignors, None for the others.

    Kafka's answer would be False where partitions of one topic went from a to b and others from b to a. It cannot be:
    before a partition goes from a to b, one that went from b to a returns in its stead, and leaves the record
    (`movements.to_move_instead`). The constrained algorithm moves nothing once it is given.
    """
    return True if BY_NAME[name].sticky else None


def _moving_eagerly(batch: GroupBatch, mode: str) -> NDArray[np.bool_]:
    """`sticky` hands over at once: the kernel marks what another member claimed."""
    if mode == "safe":
        batch = without_claims(batch, doubts(batch, cooperative=False) == Doubt.NONE)
    lists, _, _ = lists_of(sticky_groups, batch, False)
    return lists.withheld[: lists.start[-1]]


def _withheld(answer: AssignmentBatch) -> NDArray[np.bool_]:
    """Which entries of the target are not given yet."""
    return ~np.isin(
        _keys(answer.target_start, answer.target_topic, answer.target_partition),
        _keys(answer.assigned_start, answer.assigned_topic, answer.assigned_partition),
    )


def _keys(start: NDArray[np.int64], topic: NDArray[np.int32], partition: NDArray[np.int32]) -> NDArray[np.void]:
    """One comparable key an entry: its member, topic and partition."""
    columns = np.column_stack([ragged.owners(start), topic, partition]).astype(np.int64)
    return np.ascontiguousarray(columns).view([("member", "i8"), ("topic", "i8"), ("partition", "i8")]).ravel()
