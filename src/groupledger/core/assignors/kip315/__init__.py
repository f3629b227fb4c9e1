"""`sticky-stream-join` (KIP-315, never shipped): one consumer gets and keeps a partition number of all joined topics.

Numbers are assigned, not topic partitions; a number is eligible if it is below the least partition count of the
group's topics. A member's claims (`claim_partition`, of whatever topic) are the numbers it had; `claim_generation` is
their epoch. For points on which the KIP is silent, see decision 0022.
"""

from __future__ import annotations

from groupledger.core.assignors.answer import answer
from groupledger.core.assignors.kip315.left_out import LeftOut, left_out
from groupledger.core.assignors.kip315.selection import next_epochs, stream_join_groups
from groupledger.core.assignors.kip315.user_data import JoinMemory, read_memory, remember, write_epoch, write_memory
from groupledger.core.batch import AssignmentBatch, GroupBatch

__all__ = [
    "JoinMemory",
    "LeftOut",
    "left_out",
    "next_epochs",
    "read_memory",
    "remember",
    "sticky_stream_join",
    "write_epoch",
    "write_memory",
]


def sticky_stream_join(batch: GroupBatch) -> AssignmentBatch:
    """Assign every group; the assignor is eager, so the answer is the target. See `left_out` for the rest."""
    return answer(stream_join_groups, batch, None)
