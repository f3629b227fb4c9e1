"""Assign sticky groups with different subscriptions (KIP-54): as even as these allow, then as little moved as possible.

1. `settle`: which claims count, by their generations (KIP-792). `_keep_owned`: those that stay.
2. `_mark_fresh`: what nobody keeps. `_note_previous`: who had it in an earlier generation (KIP-341).
3. `fill`: each fresh partition to its topic's lightest subscriber, of several the first by id.
4. `_deactivate`: who takes no part in moving. `balance.rebalance`: move, or undo it all if nothing got more even.
5. `_write`: the lists, in the order in which partitions were received. `_withhold`: what another cooperative member
   must revoke first (KIP-429).

Takes Kafka's decisions one by one, with other data structures: a heap for each topic's subscribers instead of a scan
of all members, and in regular groups no balance check before each partition (see `balance`).

Worked example: `a` subscribes to t and u and has t-0, t-1 and t-2; `b`, new, subscribes to t. u-0 can only go to `a`,
which then has 4 and `b` 0: t-0 and t-1 move to `b`. t-2 stays, as 2 is not two more than 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.balance import (
    REVOCATION,
    STRICT,
    Holdings,
    append,
    hand_out,
    heaviest,
    rebalance,
    slot_at,
    subscribes,
)
from groupledger.core.assignors.claims import Claims, phantom_partition, phantom_topic, settle, slot_of, topics_by_name
from groupledger.core.assignors.group import GroupView, Status, TargetLists, sort_by_rank, subscribers
from groupledger.core.assignors.range_ import far_from, racks_matter

if TYPE_CHECKING:
    from numpy.typing import NDArray


OK = int(Status.OK)


@kernel
def general(g: GroupView, members: IntArray, cooperative: bool, out: TargetLists) -> int:
    """Assign one group; `members` in the order of the leader's map. Return a Status, write the lists to `out`."""
    claims = settle(g, members, cooperative)
    h = _holdings(g, claims, members)
    _keep_owned(g, claims, h)
    _mark_fresh(g, claims, h)
    _note_previous(g, claims, h)
    # Before anything is handed out: whether nobody kept a partition.
    initializing = heaviest(h) == 0
    fill(h)
    _deactivate(g, claims, h)
    status = rebalance(h, initializing)
    if status == OK:
        _write(g, claims, h, out)
        if cooperative:
            _withhold(g, claims, h, out)
    return int(status)


@kernel
def _holdings(g: GroupView, claims: Claims, members: IntArray) -> Holdings:
    n = g.members
    member_at = np.arange(n).astype(np.int32)
    sort_by_rank(g.member_rank, member_at, n)
    place_of = np.empty(n, np.int32)
    for place in range(n):
        place_of[member_at[place]] = place
    subscriber_count, most = _potential(g, claims, member_at)
    topics = topics_by_name(g, claims.base)
    sort_by_rank(subscriber_count, topics, len(topics))  # fewest subscribers first, then by name
    heads, seats = subscribers(g, member_at)
    slots = claims.total + len(claims.phantom)
    dated = False
    for member in range(n):
        dated = dated or claims.generation[member] < claims.max_generation
    extras = claims.total if len(claims.phantom) > 0 else 0
    return Holdings(
        g,
        member_at,
        place_of[members],
        claims.base,
        claims.total,
        slots,
        topics,
        subscriber_count,
        heads,
        seats,
        most,
        racks_matter(g, members, n, topics, len(topics)),
        np.zeros(n, np.int64),
        np.full(n, NONE, np.int32),
        np.full(n, NONE, np.int32),
        np.empty(slots + extras, np.int32),
        np.empty(slots + extras, np.int32),
        np.empty(extras, np.int32),
        _topic_at(claims.base, claims.total),
        np.full(slots, NONE, np.int32),
        np.zeros(slots, np.bool_),
        np.ones(claims.total, np.bool_),
        np.full(claims.total if dated else 0, NONE, np.int32),
        np.ones(n, np.bool_),
        np.zeros(4, np.int64),
    )


@kernel
def _topic_at(base: LongArray, total: int) -> IntArray:
    """Return the topic of each slot."""
    topic_at = np.empty(total, np.int32)
    for topic in range(len(base) - 1):
        for slot in range(base[topic], base[topic + 1]):
            topic_at[slot] = topic
    return topic_at


@kernel
def _potential(g: GroupView, claims: Claims, member_at: IntArray) -> tuple[IntArray, LongArray]:
    """Count the subscription entries that name each topic, and the partitions of each member's entries.

    A member with as many entries as there are topics is taken to subscribe to all, as Kafka does.
    """
    subscriber_count = np.zeros(g.topics, np.int32)
    most = np.zeros(g.members, np.int64)
    known = 0
    for local in range(g.topics):
        known += 1 if claims.base[local + 1] > claims.base[local] else 0
    for place in range(g.members):
        subscription = g.subscription[member_at[place]]
        entries = 0
        for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
            local = g.topics_of[entry]
            count = claims.base[local + 1] - claims.base[local]
            if count > 0:
                entries += 1
                subscriber_count[local] += 1
                most[place] += count
        if entries == known:
            most[place] = claims.total
    return subscriber_count, most


@kernel
def _keep_owned(g: GroupView, claims: Claims, h: Holdings) -> None:
    """Keep each member's valid claims to subscribed topics, near it if racks matter."""
    if len(claims.holder) == 0:
        return
    stamp = np.full(g.topics, NONE, np.int32)
    for place in range(g.members):
        member = h.member_at[place]
        subscription = g.subscription[member]
        for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
            stamp[g.topics_of[entry]] = place
        for claim in range(g.claim_start[member], g.claim_start[member + 1]):
            topic = g.claim_topic[claim]
            slot = slot_of(g, claims.base, claims.phantom, topic, g.claim_partition[claim])
            if slot == NONE or claims.dropped[claim - g.claim_start[0]]:
                continue
            # A claim to a topic that the member no longer names is dropped, and one far from its rack (KIP-881). Kafka
            # sets `revocationRequired`.
            if stamp[topic] != place or (h.racked and far_from(g, member, topic, g.claim_partition[claim])):
                h.flag[REVOCATION] = 1
            else:
                append(h, place, slot)
                h.owner[slot] = place
                h.kept[slot] = True


@kernel
def _mark_fresh(g: GroupView, claims: Claims, h: Holdings) -> None:
    """Unmark what need not be handed out: kept partitions, up to the first kept one that does not exist.

    Kafka iterates over all partitions beside the sorted kept ones and never gets past a kept one that does not exist:
    what follows is handed out again, kept or not. A partition of a negative number stands before its topic's own.
    """
    stuck = np.int64(1) << 62
    stuck_topic, negative = NONE, False
    for at in range(len(claims.phantom)):
        if h.kept[claims.total + at]:
            topic = phantom_topic(g, claims, claims.total + at)
            key = (np.int64(h.subscriber_count[topic]) << 32) + g.topic_rank[topic]
            h.flag[STRICT] = 1
            if key < stuck:
                stuck = key
                stuck_topic = topic
                negative = phantom_partition(claims, claims.total + at) < 0
    passed = False
    for topic in h.topics:
        passed = passed or (topic == stuck_topic and negative)
        if not passed:
            for slot in range(h.base[topic], h.base[topic + 1]):
                h.fresh[slot] = not h.kept[slot]
        passed = passed or topic == stuck_topic


@kernel
def _note_previous(g: GroupView, claims: Claims, h: Holdings) -> None:
    """Note the latest older claim of each partition: the partition returns there if balance allows."""
    if len(h.previous) == 0:
        return
    for place in h.walk:
        member = h.member_at[place]
        if claims.generation[member] >= claims.max_generation:
            continue
        for claim in range(g.claim_start[member], g.claim_start[member + 1]):
            slot = slot_of(g, claims.base, claims.phantom, g.claim_topic[claim], g.claim_partition[claim])
            if slot == NONE or slot >= h.total:
                continue
            # KIP-341: of several older claims the latest generation counts, and of equal ones the first in the map.
            known = h.previous[slot]
            if known == NONE or claims.generation[member] > claims.generation[h.member_at[known]]:
                h.previous[slot] = place


@kernel
def _deactivate(g: GroupView, claims: Claims, h: Holdings) -> None:
    """Deactivate members that have all they can have, none of it contended; they take no part in reassignment."""
    for place in range(g.members):
        # `canConsumerParticipateInReassignment`: a member that lacks something may gain. One that has all it can have
        # takes part only if another member could take one of its partitions.
        if h.size[place] < h.most[place]:
            continue
        contended = False
        node = h.first[place]
        while node != NONE and not contended:
            slot = slot_at(h, node)
            contended = h.subscriber_count[_topic_of(g, claims, h, slot)] >= 2
            node = h.after[node]
        h.active[place] = contended
    # Kafka looks the earlier owner up among the active members, and dereferences null if it is none; to one that no
    # longer subscribes it gives the partition all the same. Such a group is followed step by step.
    for topic in h.topics:
        for slot in range(h.base[topic], h.base[topic + 1] if len(h.previous) > 0 else 0):
            place = h.previous[slot]
            if place != NONE and not (h.active[place] and subscribes(h, place, topic)):
                h.flag[STRICT] = 1


@kernel
def _topic_of(g: GroupView, claims: Claims, h: Holdings, slot: int) -> int:
    if slot >= h.total:
        return phantom_topic(g, claims, slot)
    return int(h.topic_at[slot])


@kernel
def _write(g: GroupView, claims: Claims, h: Holdings, out: TargetLists) -> None:
    start, out_topic, out_partition = out.start[g.first :], out.topic, out.partition
    for place in range(g.members):
        start[h.member_at[place] + 1] = h.size[place]
    for member in range(g.members):
        start[member + 1] += start[member]
    for place in range(g.members):
        to = start[h.member_at[place]]
        node = h.first[place]
        while node != NONE:
            slot = slot_at(h, node)
            topic = _topic_of(g, claims, h, slot)
            out_topic[to] = topic
            out_partition[to] = slot - h.base[topic]
            if slot >= h.total:
                out_partition[to] = phantom_partition(claims, slot)
            to += 1
            node = h.after[node]


@kernel
def _withhold(g: GroupView, claims: Claims, h: Holdings, out: TargetLists) -> None:
    """Mark what a member gains while another claimant must still revoke it (KIP-429).

    `CooperativeStickyAssignor` looks for that itself here: only the constrained algorithm leaves it a map of transfers.
    """
    if len(claims.holder) == 0:
        return
    # `assigned` and `claimed` name the last member walked that has, or claims, a slot: whether it is the present one.
    assigned = np.full(h.slots, NONE, np.int32)
    claimed = np.full(h.slots, NONE, np.int32)
    gained = np.full(h.slots, NONE, np.int32)
    lost = np.zeros(h.slots, np.bool_)
    for place in h.walk:
        member = h.member_at[place]
        node = h.first[place]
        while node != NONE:
            assigned[slot_at(h, node)] = place
            node = h.after[node]
        for claim in range(g.claim_start[member], g.claim_start[member + 1]):
            slot = slot_of(g, claims.base, claims.phantom, g.claim_topic[claim], g.claim_partition[claim])
            if slot != NONE:
                claimed[slot] = place
                lost[slot] = lost[slot] or assigned[slot] != place
        node = h.first[place]
        while node != NONE:
            if claimed[slot_at(h, node)] != place:
                gained[slot_at(h, node)] = place
            node = h.after[node]
    for place in range(g.members):
        at = out.start[g.first + h.member_at[place]]
        node = h.first[place]
        while node != NONE:
            slot = slot_at(h, node)
            if gained[slot] == place and lost[slot]:
                out.withheld[at] = True
                gained[slot] = NONE  # of a partition that stands twice in a list, the first entry alone
            at += 1
            node = h.after[node]


@kernel
def fill(h: Holdings) -> None:
    """Hand out all fresh partitions, topic by topic; if racks matter, first near a replica, then anywhere."""
    pending = h.fresh
    if h.racked:
        pending = h.fresh.copy()
        _fill_near(h, pending)
    heap = np.empty(len(h.member_at), np.int64)
    for topic in h.topics:
        count = 0
        for slot in range(h.base[topic], h.base[topic + 1]):
            count += 1 if pending[slot] else 0
        if count > 0:
            _fill_topic(h, pending, topic, heap[: h.heads[topic + 1] - h.heads[topic]])


@kernel
def _fill_topic(h: Holdings, pending: NDArray[np.bool_], topic: int, heap: LongArray) -> None:
    """Hand out a topic's pending partitions by a heap of size * members + place: the top is served next."""
    n = len(h.member_at)
    for at in range(len(heap)):
        place = h.seats[h.heads[topic] + at]
        heap[at] = h.size[place] * n + place
    for at in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, at)
    for slot in range(h.base[topic], h.base[topic + 1]):
        if pending[slot]:
            hand_out(h, int(heap[0] % n), slot)
            heap[0] += n
            _sink(heap, 0)


@kernel
def _sink(heap: LongArray, at: int) -> None:
    value = heap[at]
    count = len(heap)
    below = 2 * at + 1
    while below < count:
        if below + 1 < count and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= value:
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = value


@kernel
def _fill_near(h: Holdings, pending: NDArray[np.bool_]) -> None:
    for topic in h.topics:
        for slot in range(h.base[topic], h.base[topic + 1]):
            if not pending[slot]:
                continue
            best = NONE
            for at in range(h.heads[topic], h.heads[topic + 1]):
                place = h.seats[at]
                lighter = best == NONE or h.size[place] < h.size[best]
                if lighter and not far_from(h.g, h.member_at[place], topic, slot - h.base[topic]):
                    best = place
            if best != NONE:
                hand_out(h, best, slot)
                pending[slot] = False
