"""Declare a server-side assignor's input and output (KIP-848): flat integer arrays, like `core.batch` for clients.

It differs from the client's batch in what breaks ties: members in the order of their records, a table that keeps the
capacity of the group's largest size, topics by id, and the current target in the order of its records.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray


class ServerPath(IntEnum):
    """Which of the assignor's two algorithms decided; `uniform` and `range` both have two."""

    HETEROGENEOUS = 0
    HOMOGENEOUS = 1


class ServerStatus(IntEnum):
    """OK, or how Kafka's own code fails."""

    OK = 0
    LEFT_UNASSIGNED = 1
    OUT_OF_BOUNDS = 2


class ServerBatch(NamedTuple):
    """G groups with M members and T topics in all; kernels take it as it is.

    Members of a group are in the order in which they joined (of their first metadata records). Topics are local to
    a group: subscribed names and the ids in targets. NONE (-1) marks what is absent.
    """

    member_start: LongArray  # [G+1]
    member_hash: IntArray  # [M], String.hashCode
    member_rank: IntArray  # [M], in String.compareTo order inside the group
    instance_rank: IntArray  # [M], NONE without a group.instance.id
    timeline_key: LongArray  # [M], upper 31 bits of Kafka's multiplied hash: its slot in a TimelineHashMap
    joining: IntArray  # [G], local member that is not yet in the group's table, or NONE
    timeline_bits: IntArray  # [G], log2 of the capacity of the group's TimelineHashMap
    same_subscriptions: IntArray  # [G], 1 homogeneous, 0 heterogeneous, NONE: derived as ConsumerGroup does

    topic_start: LongArray  # [G+1]
    name_hash: IntArray  # [T], String.hashCode of the name
    name_rank: IntArray  # [T]
    id_hash: IntArray  # [T], Uuid.hashCode
    id_rank: IntArray  # [T], in Uuid.compareTo order
    topic_partitions: IntArray  # [T], NONE: no such topic now (a name without a topic, an id that is gone)

    subscription_start: LongArray  # [M+1]
    subscription_topic: IntArray  # local topics, each once, in the order of the record

    target_start: LongArray  # [M+1]
    target_topic: IntArray  # local topics in the order of the record, grouped by topic
    target_partition: IntArray


@dataclass(frozen=True, slots=True)
class ServerAssignment:
    """The new target of each member, in the order of the coordinator's record, and a status per group."""

    assigned_start: LongArray  # [M+1]
    assigned_topic: IntArray
    assigned_partition: IntArray
    status: IntArray  # [G], a `ServerStatus`; any other than OK has empty lists
    path: IntArray  # [G], a `ServerPath`
    bad_topic: IntArray  # [G], local topic and partition that caused OUT_OF_BOUNDS, else -1
    bad_partition: IntArray  # [G]
