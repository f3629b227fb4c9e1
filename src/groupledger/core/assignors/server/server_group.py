"""Represent a KIP-848 group with names, and encode many as arrays: strings and topic ids become integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple, NewType

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.java_orders import hash_texts, rank_present, rank_texts
from groupledger.core.arrays.ragged import MemberAssignments
from groupledger.core.assignors.server.orders import JOINED, timeline_bits, timeline_keys, uuid_halves, uuid_hashes
from groupledger.core.faults import Fault
from groupledger.core.log.lines import ScenarioCode

UUID_BYTES = 16
INT32 = 2**31

TopicId = NewType("TopicId", bytes)
"""The 16 bytes of a Kafka Uuid."""

TopicIdNumbers = tuple[tuple[TopicId, tuple[int, ...]], ...]
"""Partitions under topic ids, in the order of a record; each topic once."""


@dataclass(frozen=True, slots=True)
class ServerMember:
    """A member as recorded; `topics` in the order of the record (for a joining member: of its request)."""

    member_id: str
    topics: tuple[str, ...]
    target: TopicIdNumbers = ()
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic at the moment of the coordinator's computation."""

    topic_id: TopicId
    partitions: int


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A group before its new assignment.

    `members` in the order in which they joined. `changes`: 1 for each join, -1 for each leave and 0 for each member
    written again since the coordinator loaded the group (`orders.timeline_bits`), without the joining member; None:
    each was written once, and none left. `joining`: the member whose heartbeat caused the assignment, if it is not in
    the group's table yet. `homogeneous`: None derives it from the subscriptions as ConsumerGroup does; a group with a
    regular expression beside names is heterogeneous. Fault BAD_GROUP for a group that cannot exist.
    """

    members: tuple[ServerMember, ...]
    topics: Mapping[str, Topic]
    changes: tuple[int, ...] | None = None
    joining: str | None = None
    homogeneous: bool | None = None

    def __post_init__(self) -> None:
        """Check what the arrays could not report later."""
        ids = [member.member_id for member in self.members]
        require(len(set(ids)) == len(ids), "members hold an id twice", "every member once")
        require(self.joining is None or self.joining in ids, f"joining is {self.joining!r}", "a member's id")
        same = len({frozenset(member.topics) for member in self.members}) <= 1
        require(same or not self.homogeneous, "members of a homogeneous group name different topics", "the same ones")
        for name, topic in self.topics.items():
            require(len(topic.topic_id) == UUID_BYTES, f"id of topic {name!r} is {topic.topic_id!r}", "16 bytes")
            require(0 <= topic.partitions < INT32, f"topic {name!r} has {topic.partitions:,} partitions", "an int >= 0")
        for member in self.members:
            target = [each for each, _ in member.target]
            require(len(set(target)) == len(target), f"target of {member.member_id!r} names a topic twice", "once")
            for topic_id, partitions in member.target:
                require(len(topic_id) == UUID_BYTES, f"a target's topic id is {topic_id!r}", "16 bytes")
                known = not partitions or 0 <= min(partitions) <= max(partitions) < INT32
                require(known, f"target of {member.member_id!r} holds partition {min(partitions, default=0)}", ">= 0")
                unique = len(set(partitions)) == len(partitions)
                require(unique, f"target of {member.member_id!r} holds a partition twice", "each once")


def is_homogeneous(subscriptions: Iterable[tuple[Sequence[str], str | None]]) -> bool | None:
    """Return which algorithm `uniform` takes, from each member's names and regular expression (ConsumerGroup's rule).

    None if no member has an expression: the names decide then, by the assignor's own rule.
    """
    kinds = {(bool(names), regex or "") for names, regex in subscriptions}
    if not any(regex for _, regex in kinds):
        return None
    return len(kinds) == 1 and not any(has_names for has_names, _ in kinds)


def require(fine: bool, what: str, expected: str) -> None:
    """Raise Fault BAD_GROUP unless it is fine."""
    if not fine:
        raise Fault(ScenarioCode.BAD_GROUP, f"{what}; expected {expected}: correct the group or leave it out")


@dataclass(frozen=True, slots=True)
class Names:
    """The names behind a batch's integers: member ids [M], topics [T] (None for an id without a current name).

    `topic_ids` [T]: None for a name without a topic.
    """

    members: tuple[str, ...]
    topics: tuple[str | None, ...]
    topic_ids: tuple[TopicId | None, ...]


def encode(groups: Sequence[ServerGroup]) -> tuple[ServerBatch, Names]:
    """Encode many groups as arrays. Ranks are local to a group, so equal groups give equal arrays in any batch."""
    members = [member for group in groups for member in group.members]
    tables = [_TopicTable.of(group) for group in groups]
    topics = [(name, topic_id) for table in tables for name, topic_id in table.topics]
    subscriptions = [
        [table.by_name[name] for name in dict.fromkeys(member.topics)]
        for group, table in zip(groups, tables, strict=True)
        for member in group.members
    ]
    targets = [
        [(table.by_id[topic_id], partition) for topic_id, partitions in member.target for partition in partitions]
        for group, table in zip(groups, tables, strict=True)
        for member in group.members
    ]
    member_hash = hash_texts([member.member_id for member in members])
    upper, lower = uuid_halves(topic_id or bytes(16) for _, topic_id in topics)
    target = np.array([entry for entries in targets for entry in entries], np.int32).reshape(-1, 2)
    batch = ServerBatch(
        member_start=_starts(len(group.members) for group in groups),
        member_hash=member_hash,
        member_rank=_ints(rank for group in groups for rank in rank_texts([m.member_id for m in group.members])),
        instance_rank=_ints(
            rank for group in groups for rank in rank_present([m.instance_id for m in group.members], NONE)
        ),
        timeline_key=timeline_keys(member_hash),
        joining=_ints(_joining(group) for group in groups),
        timeline_bits=_ints(_timeline_bits(group) for group in groups),
        same_subscriptions=_ints(NONE if group.homogeneous is None else int(group.homogeneous) for group in groups),
        topic_start=_starts(len(table.topics) for table in tables),
        name_hash=hash_texts([name or "" for name, _ in topics]),
        name_rank=_ints(rank for table in tables for rank in rank_present([name for name, _ in table.topics], NONE)),
        id_hash=uuid_hashes(upper, lower),
        id_rank=_ints(rank for table in tables for rank in _id_ranks([each for _, each in table.topics])),
        topic_partitions=_ints(count for table in tables for count in table.partitions),
        subscription_start=_starts(map(len, subscriptions)),
        subscription_topic=_ints(topic for each in subscriptions for topic in each),
        target_start=_starts(map(len, targets)),
        target_topic=np.ascontiguousarray(target[:, 0]),
        target_partition=np.ascontiguousarray(target[:, 1]),
    )
    named = tuple(name for name, _ in topics), tuple(topic_id for _, topic_id in topics)
    return batch, Names(tuple(m.member_id for m in members), *named)


@dataclass(frozen=True, slots=True)
class _TopicTable:
    """The local topics of a group: known ones by name, then names without a topic, then ids without a name."""

    topics: tuple[tuple[str | None, TopicId | None], ...]
    partitions: tuple[int, ...]
    by_name: dict[str, int]
    by_id: dict[TopicId, int]

    @classmethod
    def of(cls, group: ServerGroup) -> _TopicTable:
        known = sorted(group.topics.items())
        names = dict.fromkeys(name for member in group.members for name in member.topics if name not in group.topics)
        ids = dict.fromkeys(topic_id for member in group.members for topic_id, _ in member.target)
        lone = [each for each in ids if each not in {topic.topic_id for _, topic in known}]
        topics: list[tuple[str | None, TopicId | None]] = [(name, topic.topic_id) for name, topic in known]
        topics += [(name, None) for name in names]
        topics += [(None, topic_id) for topic_id in lone]
        counts = [topic.partitions for _, topic in known]
        return cls(
            tuple(topics),
            tuple(counts + [NONE] * (len(topics) - len(known))),
            {name: at for at, (name, _) in enumerate(topics) if name is not None},
            {topic_id: at for at, (_, topic_id) in enumerate(topics) if topic_id is not None},
        )


def _joining(group: ServerGroup) -> int:
    return next((at for at, member in enumerate(group.members) if member.member_id == group.joining), NONE)


def _timeline_bits(group: ServerGroup) -> int:
    if group.changes is not None:
        return timeline_bits(group.changes)
    return timeline_bits([JOINED] * (len(group.members) - (group.joining is not None)))


def _id_ranks(ids: Sequence[TopicId | None]) -> list[int]:
    """Return ranks in `Uuid.compareTo` order, that of signed longs, the upper first; NONE without an id."""
    signed = {each: tuple(zip(*(half.tolist() for half in uuid_halves([each])), strict=True)) for each in ids if each}
    ranks = {each: rank for rank, each in enumerate(sorted(signed, key=signed.__getitem__))}
    return [NONE if each is None else ranks[each] for each in ids]


def _starts(lengths: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([0, *accumulate(lengths)], np.int64)


def _ints(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.fromiter(values, np.int32)


# Declare a server-side assignor's input and output (KIP-848): flat arrays, as `core.arrays.batch` has for clients.
#
# It differs from the client's batch in what breaks ties: members in the order of their records, a table that keeps the
# capacity of the group's largest size, topics by id, and the current target in the order of its records.


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

    assigned: MemberAssignments
    status: IntArray  # [G], a `ServerStatus`; any other than OK has empty lists
    path: IntArray  # [G], a `ServerPath`
    bad_topic: IntArray  # [G], local topic and partition that caused OUT_OF_BOUNDS, else -1
    bad_partition: IntArray  # [G]
