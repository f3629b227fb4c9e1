"""Decide whose claim counts (KIP-792): the highest generation wins; two claims of one generation void each other.

Partitions get slots: `base[topic] + partition` if the topic has that partition, and `total + k` for the k-th
distinct claimed partition that does not exist ("phantom"), in order of topic name and number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.group import GroupView, first_at_least, mark_subscribed, sort, sort_by_rank

if TYPE_CHECKING:
    from numpy.typing import NDArray


BIAS = 1 << 31


class Claims(NamedTuple):
    """The settled claims of one group."""

    base: LongArray  # [topics + 1], first slot of each topic; topics without subscriber or metadata have no slots
    total: int  # partitions that exist
    phantom: LongArray  # sorted keys of the claimed partitions that do not exist, see `phantom_key`
    holder: IntArray  # [slots], the member whose claim counts; `voided(m)`: the last claim, by m, is void; NONE
    contested: NDArray[np.bool_]  # [slots], claimed by two members in one generation
    dropped: NDArray[np.bool_]  # [claims of the group], lost against another claim
    generation: LongArray  # [members], generation of each member's own claim
    max_generation: int  # the highest of all, -1 without claims


@kernel
def slots(g: GroupView) -> LongArray:
    """Return the first slot of each topic, [topics + 1]."""
    subscribed = np.zeros(g.topics, np.int32)
    mark_subscribed(g, subscribed)
    base = np.zeros(g.topics + 1, np.int64)
    for local in range(g.topics):
        known = subscribed[local] == 1 and g.topic_partitions[local] > 0
        base[local + 1] = base[local] + (g.topic_partitions[local] if known else 0)
    return base


@kernel
def topics_by_name(g: GroupView, base: LongArray) -> IntArray:
    """Return the subscribed topics that have partitions, by name; `base` as of `slots`."""
    topics = np.empty(g.topics, np.int32)
    count = 0
    for local in range(g.topics):
        if base[local + 1] > base[local]:
            topics[count] = local
            count += 1
    sort_by_rank(g.topic_rank, topics, count)
    return topics[:count]


@kernel
def settle(g: GroupView, members: IntArray, cooperative: bool) -> Claims:
    """Settle all claims, in the order in which the leader iterates over its members."""
    base = slots(g)
    total = base[g.topics]
    generation = _generations(g, cooperative)
    max_generation = -1
    for member in range(g.members):
        max_generation = max(max_generation, generation[member])
    phantom = _phantoms(g, base)
    claimed = g.claim_start[g.members] > g.claim_start[0]
    size = total + len(phantom) if claimed else 0
    claims = Claims(
        base,
        total,
        phantom,
        np.full(size, NONE, np.int32),
        np.zeros(size, np.bool_),
        np.zeros(g.claim_start[g.members] - g.claim_start[0], np.bool_),
        generation,
        max_generation,
    )
    if claimed:
        for member in members:
            _settle_member(g, claims, member)
    return claims


@kernel
def _generations(g: GroupView, cooperative: bool) -> LongArray:
    """Date each member: cooperative ones by their subscription, else by user data; eager ones by user data alone."""
    generation = np.empty(g.members, np.int64)
    for member in range(g.members):
        generation[member] = g.claim_generation[member]
        if cooperative and g.subscription_generation[member] >= 0:
            generation[member] = g.subscription_generation[member]
    return generation


@kernel
def voided(member: int) -> int:
    """Mark a slot whose last claim, by `member`, is void. The function is its own inverse."""
    return -2 - member


@kernel
def _settle_member(g: GroupView, claims: Claims, member: int) -> None:
    base = claims.base
    holder = claims.holder
    for claim in range(g.claim_start[member], g.claim_start[member + 1]):
        slot = slot_of(g, base, claims.phantom, g.claim_topic[claim], g.claim_partition[claim])
        if slot == NONE:
            continue
        if holder[slot] == NONE:
            holder[slot] = member
        else:
            _contest(g, claims, member, claim, slot)


@kernel
def _contest(g: GroupView, claims: Claims, member: int, claim: int, slot: int) -> None:
    """Settle a second claim to the slot. As in Kafka, the rival's subscription dates it, never its user data."""
    held = claims.holder[slot] >= 0
    rival = claims.holder[slot] if held else voided(claims.holder[slot])
    mine = claims.generation[member]
    theirs = g.subscription_generation[rival]
    if mine >= theirs and held:
        _drop(g, claims, rival, claim)
    if mine > theirs:
        claims.holder[slot] = member
        return
    claims.dropped[claim - g.claim_start[0]] = True
    if mine == theirs:
        claims.holder[slot] = voided(member)
        claims.contested[slot] = True


@kernel
def _drop(g: GroupView, claims: Claims, rival: int, against: int) -> None:
    """Drop the rival's first claim to the partition of the claim `against`."""
    for claim in range(g.claim_start[rival], g.claim_start[rival + 1]):
        same = g.claim_topic[claim] == g.claim_topic[against] and g.claim_partition[claim] == g.claim_partition[against]
        if same and claim != against and not claims.dropped[claim - g.claim_start[0]]:
            claims.dropped[claim - g.claim_start[0]] = True
            return


@kernel
def phantom_topic(g: GroupView, claims: Claims, slot: int) -> int:
    """Return the topic of a claimed partition that does not exist."""
    rank = claims.phantom[slot - claims.total] >> 32
    for topic in range(g.topics):
        if g.topic_rank[topic] == rank:
            return topic
    return NONE


@kernel
def phantom_partition(claims: Claims, slot: int) -> int:
    """Return the number of a claimed partition that does not exist."""
    return int((claims.phantom[slot - claims.total] & 0xFFFFFFFF) - BIAS)


@kernel
def slot_of(g: GroupView, base: LongArray, phantom: LongArray, topic: int, partition: int) -> int:
    """Return the slot of a claimed partition; NONE if the topic has no subscriber or no metadata."""
    count = base[topic + 1] - base[topic]
    if count == 0:
        return NONE
    if 0 <= partition < count:
        return int(base[topic] + partition)
    return int(base[g.topics] + first_at_least(phantom, 0, len(phantom), phantom_key(g, topic, partition)))


@kernel
def phantom_key(g: GroupView, topic: int, partition: int) -> int:
    """Return a key that sorts by topic name, then partition number."""
    return (int(g.topic_rank[topic]) << 32) | (int(partition) + BIAS)


@kernel
def _phantoms(g: GroupView, base: LongArray) -> LongArray:
    """Return the distinct keys of claimed partitions that their topic does not have, sorted."""
    count = 0
    for claim in range(g.claim_start[0], g.claim_start[g.members]):
        count += 1 if _is_phantom(g, base, claim) else 0
    keys = np.empty(count, np.int64)
    if count == 0:
        return keys
    at = 0
    for claim in range(g.claim_start[0], g.claim_start[g.members]):
        if _is_phantom(g, base, claim):
            keys[at] = phantom_key(g, g.claim_topic[claim], g.claim_partition[claim])
            at += 1
    sort(keys)
    distinct = 1
    for at in range(1, count):
        if keys[at] != keys[distinct - 1]:
            keys[distinct] = keys[at]
            distinct += 1
    return keys[:distinct]


@kernel
def _is_phantom(g: GroupView, base: LongArray, claim: int) -> bool:
    topic = g.claim_topic[claim]
    count = base[topic + 1] - base[topic]
    partition = g.claim_partition[claim]
    return count > 0 and not 0 <= partition < count
