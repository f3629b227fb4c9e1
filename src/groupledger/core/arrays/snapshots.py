"""Represent group snapshots as flat arrays: members' claims, the record, what members held, and the topics.

A `GroupBatch` is an assignor's input; this adds what the step and the verdict need, over the same groups, members and
topics ("topic row": index into the topics of all groups).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch, IntArray, LongArray
from groupledger.core.arrays.java_orders import computed_map_order, hash_texts, rank_present, rank_texts
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.ragged import MemberAssignments, Ragged
from groupledger.core.custom.custom_group import Group, Member, TopicPartition

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask


@dataclass(frozen=True, slots=True)
class NamedLists(Ragged):
    """A list of (topic row, partition) for each of M members, as written: it may name anything."""

    topic: LongArray  # topic rows
    partition: IntArray
    earlier: Mask | None = None  # an earlier topic of that name is meant (its id is another)


@dataclass(frozen=True, slots=True)
class TopicViews:
    """Topic listings, per topic row, at the snapshot and at the changes around it (NONE: no such topic)."""

    now: IntArray  # [T] partition count
    before: IntArray  # [T] before the last change
    before_that: IntArray  # [T]
    after: IntArray  # [T] after the next change
    changed: LongArray  # [T] when the last change was seen; LEAST: never
    changed_before: LongArray  # [T] the change before
    changed_after: LongArray  # [T] the next; GREATEST: none
    gone: Mask  # [T] deleted at the snapshot, according to listings


LEAST = -(2**62)
GREATEST = 2**62


@dataclass(frozen=True, slots=True)
class Snapshots:
    """G snapshots with M members and T topic rows."""

    batch: GroupBatch  # claims as sent
    topics: TopicViews
    held: NamedLists  # recorded for the member in the snapshot before
    recorded: NamedLists  # the leader's answer; of a KIP-848 member, what it holds
    goal: NamedLists  # KIP-848: the target assignment; otherwise as recorded
    memory: Mask  # [M], the claim is a memory of what the member had, not what it still owns
    modern: Mask  # [G], a KIP-848 group: the coordinator decides, no leader

    @property
    def member_group(self) -> LongArray:
        """Return the group of each member: [M]."""
        return ragged.owners(self.batch.member_start)

    @property
    def topic_group(self) -> LongArray:
        """Return the group of each topic row: [T]."""
        return ragged.owners(self.batch.topic_start)

    @property
    def claims(self) -> NamedLists:
        """Return members' claims, with topic rows."""
        batch = self.batch
        first = batch.topic_start[self.member_group]
        topic = np.repeat(first, ragged.lengths(batch.claim_start)) + batch.claim_topic
        return NamedLists(batch.claim_start, topic, batch.claim_partition)


class Subscribed:
    """Look up in constant time which subscription names which topic; all must be members' own, or name no topic."""

    def __init__(self, batch: GroupBatch) -> None:
        """Allocate one cell per subscription and topic of its group."""
        group = np.zeros(len(batch.subscription_start) - 1, np.int64)
        group[batch.member_subscription] = ragged.owners(batch.member_start)
        self._first = ragged.starts(np.diff(batch.topic_start)[group])
        self._cells = np.zeros(self._first[-1], np.bool_)
        self._cells[self._first[ragged.owners(batch.subscription_start)] + batch.subscription_topic] = True
        self._batch = batch
        self._group = group

    def names(self, member: LongArray, topic: LongArray) -> Mask:
        """Return, for each (member, topic row) of one group, whether the member subscribes to the topic."""
        subscription = self._batch.member_subscription[member]
        found: Mask = self._cells[
            self._first[subscription] + topic - self._batch.topic_start[self._group[subscription]]
        ]
        return found

    def any(self) -> Mask:
        """Return which topic rows have a subscriber: [T]."""
        wanted = np.zeros(len(self._batch.topic_hash), np.bool_)
        batch = self._batch
        first = batch.topic_start[self._group[ragged.owners(batch.subscription_start)]]
        wanted[first + batch.subscription_topic] = True
        return wanted

    def subscribers(self) -> LongArray:
        """Count the members that subscribe to each topic row: [T]."""
        batch = self._batch
        members = np.bincount(batch.member_subscription, minlength=len(self._group))
        topic, subscription = self._pairs()
        found = np.bincount(topic, weights=members[subscription], minlength=len(batch.topic_hash))
        return found.astype(np.int64)

    def least(self, load: LongArray) -> LongArray:
        """Return the least load of the subscribers of each topic row: [T]; GREATEST without subscribers."""
        batch = self._batch
        of_subscription = np.full(len(self._group), GREATEST, np.int64)
        np.minimum.at(of_subscription, batch.member_subscription, load)
        found = np.full(len(batch.topic_hash), GREATEST, np.int64)
        topic, subscription = self._pairs()
        np.minimum.at(found, topic, of_subscription[subscription])
        return found

    def table(self, group: int) -> tuple[slice, Mask]:
        """Return the topic rows of a group, and which of them each of its members subscribes to: [members, topics]."""
        batch = self._batch
        topics = slice(*batch.topic_start[group : group + 2].tolist())
        members = slice(*batch.member_start[group : group + 2].tolist())
        first = self._first[batch.member_subscription[members]]
        table: Mask = self._cells[first[:, None] + np.arange(topics.stop - topics.start)]
        return topics, table

    def _pairs(self) -> tuple[LongArray, LongArray]:
        """Return topic row and subscription of each pair of them."""
        cell = np.flatnonzero(self._cells)
        subscription = ragged.owners(self._first)[cell]
        return self._batch.topic_start[self._group[subscription]] + cell - self._first[subscription], subscription

    def equal(self) -> Mask:
        """Return the groups in which all members have one subscription (as sets): [G]."""
        batch = self._batch
        used = np.bincount(batch.member_subscription, minlength=len(self._group)) > 0
        size = np.add.reduceat(np.append(self._cells, False).astype(np.int64), self._first)[:-1]
        size[np.diff(self._first) == 0] = 0
        union = np.bincount(ragged.owners(batch.topic_start), weights=self.any(), minlength=batch.groups)
        differs = used & (size < union[self._group])
        unequal = np.bincount(self._group, weights=differs, minlength=batch.groups) > 0
        equal: Mask = ~unequal
        return equal


def select(batch: GroupBatch, groups: LongArray) -> tuple[GroupBatch, LongArray, LongArray]:
    """Return the batch of some groups, in that order, with the members and the topic rows taken."""
    member_start, member = ragged.take(batch.member_start, groups)
    topic_start, topic = ragged.take(batch.topic_start, groups)
    used, subscription = np.unique(batch.member_subscription[member], return_inverse=True)
    subscription_start, entry = ragged.take(batch.subscription_start, used)
    taken = replace(
        with_members(batch, member, member_start),
        topic_start=topic_start,
        topic_hash=batch.topic_hash[topic],
        topic_rank=batch.topic_rank[topic],
        topic_partitions=batch.topic_partitions[topic],
        member_subscription=subscription,
        subscription_start=subscription_start,
        subscription_topic=batch.subscription_topic[entry],
    )
    return _with_racks(taken, batch, topic), member, topic


def with_members(batch: GroupBatch, member: LongArray, member_start: LongArray) -> GroupBatch:
    """Return the batch with only these members and their claims; group g has those from `member_start[g]` on."""
    claim_start, claim = ragged.take(batch.claim_start, member)
    return replace(
        batch,
        member_start=member_start,
        member_hash=batch.member_hash[member],
        member_rank=batch.member_rank[member],
        instance_rank=batch.instance_rank[member],
        member_rack=batch.member_rack[member],
        subscription_generation=batch.subscription_generation[member],
        claim_generation=batch.claim_generation[member],
        member_subscription=batch.member_subscription[member],
        claim_start=claim_start,
        claim_topic=batch.claim_topic[claim],
        claim_partition=batch.claim_partition[claim],
    )


def _with_racks(taken: GroupBatch, batch: GroupBatch, topic: LongArray) -> GroupBatch:
    """Add the racks of its topic rows to `taken`. A topic without metadata has no partitions there."""
    if batch.rack_topic_start is None or batch.rack_start is None or batch.rack_code is None:
        return taken
    topic_start, partition = ragged.take(batch.rack_topic_start, topic)
    start, replica = ragged.take(batch.rack_start, partition)
    return replace(taken, rack_topic_start=topic_start, rack_start=start, rack_code=batch.rack_code[replica])


@kernel
def number_topics(
    start: LongArray, code: IntArray, seen: IntArray, row: LongArray, topic_row: LongArray, topic_code: IntArray
) -> int:
    """Assign numbers to the distinct topics of each group from the lists that name them; return how many in all.

    `start` [K, G+1]: where list k of group g begins in `code`. Filled: `topic_row` as long as `code`, and `topic_code`
    of each topic row. Scratch space, by topic code: `seen` (NONE) and `row`.
    """
    rows = 0
    for group in range(start.shape[1] - 1):
        for each in range(start.shape[0]):
            for at in range(start[each, group], start[each, group + 1]):
                if seen[code[at]] != group:
                    seen[code[at]] = group
                    row[code[at]] = rows
                    topic_code[rows] = code[at]
                    rows += 1
                topic_row[at] = row[code[at]]
    return rows


@kernel
def by_topic(
    start: LongArray, topic: IntArray | LongArray, hashes: IntArray, place: LongArray, order: LongArray
) -> None:
    """Fill `order` so that each list's entries are grouped by topic, partitions in order of appearance.

    Topics are in order of appearance, too, or, given the `hashes` of their names, in that of the hash map of
    `user_data_order`. Scratch space, by topic: `place` (NONE), which is given back as it was.
    """
    named = np.empty(len(place), np.int32)
    for member in range(len(start) - 1):
        topics, again = 0, False
        for at in range(start[member], start[member + 1]):
            again = place[topic[at]] != NONE
            if not again:
                named[topics] = topic[at]
                topics += 1
                place[topic[at]] = 0
            place[topic[at]] += 1
        if len(hashes) > 0:
            computed_map_order(hashes, named, topics, again)
        free = start[member]
        for each in range(topics):
            size = place[named[each]]
            place[named[each]] = free
            free += size
        for at in range(start[member], start[member + 1]):
            order[place[topic[at]]] = at
            place[topic[at]] += 1
        for each in range(topics):
            place[named[each]] = NONE


def user_data_order(start: LongArray, topic: IntArray, hashes: IntArray) -> LongArray:
    """Return the places of the claims of each of M members in the order of StickyAssignor's user data (KIP-54).

    Claims are written topic by topic, topics in the order of the writer's hash map. `start` [M+1]: where each member's
    claims begin in `topic`, which has the topic of each claim as an index into `hashes` (Java's hash code of its name).
    Places are into `topic`; a member's claims stay between its starts.
    """
    order = np.empty(len(topic), np.int64)
    run(by_topic, start, topic, hashes, np.full(len(hashes), NONE), order, cells=len(topic) + len(start))
    return order


# Encode groups in plain values as the arrays that assignors take: the one way from strings to a `GroupBatch`.
#
# Tables of many groups are encoded column by column instead, without an object a member (`engine.group_arrays`).

ReplicaRacks = Mapping[str, Sequence[Sequence[str | None]]]
"""For each topic the racks of each partition's replicas, None for one that is unknown."""


class MemberClaim(NamedTuple):
    """What an assignor takes a member to own, in the order in which it was sent, and its generation."""

    partitions: Sequence[tuple[str, int]]
    generation: int | None


@dataclass(frozen=True, slots=True)
class EncodedGroups:
    """A batch, and what its integers stand for."""

    batch: GroupBatch
    members: list[Member]  # [M]
    topics: list[str]  # [T]

    def named(self, lists: MemberAssignments) -> dict[str, tuple[TopicPartition, ...]]:
        """Return the list of each member by its id, for a batch of one group."""
        topics = (self.topics[each] for each in lists.topic.tolist())
        pairs = [*map(TopicPartition, topics, lists.partition.tolist())]
        bounds = zip(self.members, pairwise(lists.start.tolist()), strict=True)
        return {member.member_id: tuple(pairs[low:high]) for member, (low, high) in bounds}


def encode_groups(
    groups: Sequence[Group], claims: Iterable[MemberClaim], racks: Sequence[ReplicaRacks] = ()
) -> EncodedGroups:
    """Encode groups; `claims` of all members in their order, which replace what they own; `racks` of each group.

    A claim to a topic that no member of the group subscribes to is left out.
    """
    members = [member for group in groups for member in group.members]
    local = [
        {name: at for at, name in enumerate(dict.fromkeys(topic for each in group.members for topic in each.topics))}
        for group in groups
    ]
    of_member = [numbers for group, numbers in zip(groups, local, strict=True) for _ in group.members]
    claims = list(claims)
    kept = [
        [(numbers[topic], partition) for topic, partition in claim.partitions if topic in numbers]
        for claim, numbers in zip(claims, of_member, strict=True)
    ]
    ids, topics = [each.member_id for each in members], [name for names in local for name in names]
    counts = [group.topics.get(name, NONE) for group, names in zip(groups, local, strict=True) for name in names]
    codes = _codes(members, racks)
    batch = GroupBatch(
        member_start=_starts(len(group.members) for group in groups),
        member_hash=hash_texts(ids),
        member_rank=rank_texts(ids),
        instance_rank=rank_present([each.group_instance_id for each in members], NONE),
        member_rack=_small([NONE if each.rack is None else codes[each.rack] for each in members]),
        subscription_generation=_small([_or_none(each.generation) for each in members]),
        claim_generation=_small([_or_none(each.generation) for each in claims]),
        topic_start=_starts(map(len, local)),
        topic_hash=hash_texts(topics),
        topic_rank=rank_texts(topics),
        topic_partitions=_small(counts),
        member_subscription=np.arange(len(members)),
        subscription_start=_starts(len(each.topics) for each in members),
        subscription_topic=_small(
            [numbers[topic] for each, numbers in zip(members, of_member, strict=True) for topic in each.topics]
        ),
        claim_start=_starts(map(len, kept)),
        claim_topic=_small([topic for each in kept for topic, _ in each]),
        claim_partition=_small([partition for each in kept for _, partition in each]),
        **_replicas(racks, local, counts, codes),
    )
    return EncodedGroups(batch, members, topics)


def _codes(members: Iterable[Member], racks: Iterable[ReplicaRacks]) -> dict[str, int]:
    """Assign numbers to racks by name."""
    replicas = (rack for of in racks for topic in of.values() for each in topic for rack in each)
    named = {*replicas, *(member.rack for member in members)} - {None}
    return {rack: code for code, rack in enumerate(sorted(rack for rack in named if rack is not None))}


def _replicas(
    racks: Sequence[ReplicaRacks], local: list[dict[str, int]], counts: list[int], codes: dict[str, int]
) -> dict[str, Any]:
    """Return replica racks of all partitions of all topics, in the batch's layout; empty without racks."""
    if not any(racks):
        return {}
    starts, first, flat = [0], [0], []
    named = ((of, name) for of, names in zip(racks, local, strict=True) for name in names)
    for (of, name), count in zip(named, counts, strict=True):
        known = of.get(name, [])
        for partition in range(max(count, 0)):
            replicas = known[partition] if partition < len(known) else []
            flat += [NONE if rack is None else codes[rack] for rack in replicas]
            starts.append(len(flat))
        first.append(len(starts) - 1)
    return {
        "rack_start": np.array(starts, np.int64),
        "rack_code": _small(flat),
        "rack_topic_start": np.array(first, np.int64),
    }


def _or_none(generation: int | None) -> int:
    return NONE if generation is None else generation


def _small(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int32)


def _starts(lengths: Iterable[int]) -> np.ndarray:
    return ragged.starts(np.array(list(lengths), np.int64))
