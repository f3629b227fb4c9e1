"""Represent many consumer groups as flat integer arrays: an assignor's input.

Strings are already integers (`java_orders` gives hashes and ranks), so that one kernel call serves a whole
Arrow batch of groups. A group is a segment: members `member_start[g]:member_start[g + 1]`, topics likewise.
Inside a group, topics are numbered from 0 ("local topic"), in the order in which its members first name them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    IntArray = NDArray[np.int32]
    LongArray = NDArray[np.int64]
else:
    IntArray = LongArray = Any

NONE = -1
"""Inside the arrays only: no generation, instance id, rack, or topic metadata."""


@dataclass(frozen=True, slots=True)
class GroupBatch:
    """G groups with M members, T topics, S subscriptions and C claimed partitions in all.

    Members of a group are in JoinGroup order (as KIP-429's leader sees them; that order is an input).
    Ranks are by UTF-16 code unit and comparable within a group; hashes are Java's `String.hashCode`.
    Claims to a topic without subscribers may be left out, or name a topic that no subscription names.
    """

    member_start: LongArray  # [G+1]
    member_hash: IntArray  # [M]
    member_rank: IntArray  # [M]
    instance_rank: IntArray  # [M], NONE without a group.instance.id
    member_rack: IntArray  # [M], code of the rack, NONE without
    subscription_generation: IntArray  # [M], KIP-792; NONE where absent
    claim_generation: IntArray  # [M], the generation inside the user data (KIP-54); NONE where absent

    topic_start: LongArray  # [G+1]
    topic_hash: IntArray  # [T]
    topic_rank: IntArray  # [T]
    topic_partitions: IntArray  # [T], partition count; NONE: the topic has no metadata

    member_subscription: LongArray  # [M], index into the S subscriptions; equal lists of a group may share one
    subscription_start: LongArray  # [S+1]
    subscription_topic: IntArray  # local topics in the member's own order; a topic listed twice appears twice

    claim_start: LongArray  # [M+1]
    claim_topic: IntArray  # [C] local topic, in the order the member sent them
    claim_partition: IntArray  # [C]

    rack_start: LongArray | None = None  # [P+1] replica racks of each partition (topics in order, partitions in order)
    rack_code: IntArray | None = None  # flattened codes, NONE for a replica whose rack is unknown
    rack_topic_start: LongArray | None = None  # [T+1] first partition of each topic in rack_start

    @property
    def groups(self) -> int:
        """Return the number of groups."""
        return len(self.member_start) - 1

    @property
    def members(self) -> int:
        """Return the number of members of all groups."""
        return len(self.member_hash)
