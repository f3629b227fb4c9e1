"""`librdkafka-cooperative-sticky`: the answers of a librdkafka leader where Java's cooperative-sticky differs.

librdkafka (2.16) uses KIP-54's first algorithm for every group; Java, since KIP-615, only if subscriptions differ.
With equal subscriptions, librdkafka's members therefore give up their lowest partitions, and Java's their highest.
Derived from its published source and checked against the captures. Racks (KIP-881) are not modelled. Ids and topics
compare as in Java, which differs from librdkafka's byte order only beyond U+FFFF.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from groupledger.core.arrays.batch import NONE, GroupBatch
from groupledger.core.arrays.ragged import MemberAssignments, starts
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.group import Path, Status
from groupledger.core.assignors.safe import withhold_claimed

Partition = tuple[int, int]  # topic's place by name, number: sorts as librdkafka sorts


@dataclass(slots=True)
class Balance:
    """One group while it is computed. Members are numbered in id order, so (size, number) is librdkafka's order."""

    subscribed: list[set[int]]
    subscribers_of: dict[int, list[int]]  # topic -> its subscribers
    held: list[list[Partition]]
    owner: dict[Partition, int]  # from the claims: the last claimant, not necessarily the one that keeps it
    previous: dict[Partition, int]  # its claimant in the generation before the last
    active: list[int]  # members that may still gain or lose
    alike: bool  # all members subscribe to the same existing topics
    moved: dict[Partition, tuple[int, int]] = field(default_factory=dict)  # (from, to); kept after a return
    movements: dict[tuple[int, int, int], list[Partition]] = field(default_factory=dict)  # by topic, from, to

    def least(self, topic: int) -> int:
        """Return the active subscriber that holds the fewest, the first by id among equals."""
        return min((len(self.held[m]), m) for m in self.active if topic in self.subscribed[m])[1]

    def give(self, partition: Partition, to: int) -> None:
        """Hand out a partition that has no owner."""
        self.held[to].append(partition)
        self.owner[partition] = to

    def move(self, wanted: Partition, to: int) -> None:
        """Move a partition, or the one of its topic that moved the opposite way and now returns in its place.

        If several moved the opposite way, the first is removed from the list, and the next one moves: librdkafka points
        to the head of the list, which is the next one by then.
        """
        source = self.moved.get(wanted, (self.owner[wanted], to))[0]
        opposite = self.movements.get((wanted[0], to, source), ())
        partition = opposite[0] if opposite else wanted
        holder = self.owner[partition]
        if partition in self.moved:
            source = self.moved[partition][0]
            recorded = self.movements.get((wanted[0], *self.moved[partition]), [])
            if partition in recorded:
                recorded.remove(partition)
            partition = opposite[0] if opposite else partition
            if source != to:
                self._record(partition, source, to)
        else:
            self._record(partition, holder, to)
        if partition in self.held[holder]:
            self.held[holder].remove(partition)
        self.give(partition, to)

    def _record(self, partition: Partition, source: int, to: int) -> None:
        self.moved[partition] = (source, to)
        self.movements.setdefault((partition[0], source, to), []).append(partition)


def assign(batch: GroupBatch) -> AssignmentBatch:
    """Return target and cooperative answer of every group; a group without members gets an empty answer."""
    lists: list[list[Partition]] = []
    for group in range(batch.groups):
        lists += _lists(batch, group)
    start = starts(np.array([len(each) for each in lists], np.int64))
    flat = np.array([pair for each in lists for pair in each], np.int32).reshape(-1, 2)
    target = MemberAssignments(start, flat[:, 0].copy(), flat[:, 1].copy())
    path = np.full(batch.groups, Path.ONLY, np.int32)
    status = np.full(batch.groups, Status.OK, np.int32)
    return withhold_claimed(batch, AssignmentBatch(target, target, status, path))


def _lists(batch: GroupBatch, group: int) -> list[list[Partition]]:
    """Return the lists of one group's members in their own order, over local topics."""
    first, last = int(batch.member_start[group]), int(batch.member_start[group + 1])
    low, high = int(batch.topic_start[group]), int(batch.topic_start[group + 1])
    members = sorted(range(first, last), key=lambda member: int(batch.member_rank[member]))
    topics = sorted(range(high - low), key=lambda local: int(batch.topic_rank[low + local]))
    place = {local: at for at, local in enumerate(topics)}
    counts = [max(int(batch.topic_partitions[low + local]), 0) for local in topics]
    balance = _prepared(batch, members, place, counts)
    _assign(balance, counts)
    lists = {member: balance.held[number] for number, member in enumerate(members)}
    return [[(topics[topic], number) for topic, number in lists[member]] for member in range(first, last)]


def _prepared(batch: GroupBatch, members: list[int], place: dict[int, int], counts: list[int]) -> Balance:
    """Settle subscriptions and claims. Two claims of one generation void all claims to a partition, later ones too.

    The latest generation keeps a partition, yet librdkafka looks for it at the last claimant in JoinGroup order.
    """
    subscribed = []
    for member in members:
        row = int(batch.member_subscription[member])
        entries = batch.subscription_topic[batch.subscription_start[row] : batch.subscription_start[row + 1]]
        subscribed.append({place[local] for local in entries.tolist() if counts[place[local]] > 0})
    subscribers_of = {topic: [m for m, mine in enumerate(subscribed) if topic in mine] for topic in range(len(counts))}
    claims: dict[Partition, list[tuple[int, int]]] = {}
    for at in sorted(range(len(members)), key=lambda number: members[number]):
        generation = int(batch.subscription_generation[members[at]])
        for claim in range(int(batch.claim_start[members[at]]), int(batch.claim_start[members[at] + 1])):
            key = place.get(int(batch.claim_topic[claim]), NONE), int(batch.claim_partition[claim])
            claims.setdefault(key, []).append((generation, at))
    alike = all(mine == subscribed[0] for mine in subscribed)
    balance = Balance(subscribed, subscribers_of, [[] for _ in members], {}, {}, list(range(len(members))), alike)
    for partition, claimants in reversed(claims.items()):
        generations = [generation for generation, _ in claimants]
        if len(set(generations)) == len(generations):
            ordered = [member for _, member in sorted(claimants)]
            balance.held[ordered[-1]].append(partition)
            balance.owner[partition] = claimants[-1][1]
            if len(ordered) > 1:
                balance.previous[partition] = ordered[-2]
    return balance


def _assign(b: Balance, counts: list[int]) -> None:
    """Keep what may be kept, hand out the rest, then move partitions while that makes the group more even."""
    there = [
        (topic, number) for topic, count in enumerate(counts) if b.subscribers_of[topic] for number in range(count)
    ]
    order = _in_turns(b, there) if b.alike else sorted(there, key=lambda each: (len(b.subscribers_of[each[0]]), each))
    revoked = _drop_what_cannot_stay(b, set(there))
    kept = {each for mine in b.held for each in mine}
    free = [each for each in order if each not in kept]
    initializing = not any(b.held)
    for each in free:
        b.give(each, b.least(each[0]))
    order = [each for each in order if len(b.subscribers_of[each[0]]) > 1]
    free = [each for each in free if len(b.subscribers_of[each[0]]) > 1]
    b.active = [member for member in b.active if _takes_part(b, member, counts)]
    before, owners = [list(each) for each in b.held], dict(b.owner)
    if free and not revoked:
        _reassign(b, free)
    moved = _reassign(b, order)
    if not initializing and moved and _unevenness(b, b.held) >= _unevenness(b, before):
        b.held, b.owner = before, owners


def _in_turns(b: Balance, there: list[Partition]) -> list[Partition]:
    """Repeatedly take the most loaded member's lowest partition, those with an earlier claimant first; then new ones.

    The first partitions here are the first to move. New partitions come last to first, as librdkafka iterates its map.
    """
    for mine in b.held:
        mine.sort()
    exists = set(there)
    left = {member: [each for each in mine if each in exists] for member, mine in enumerate(b.held)}
    order: list[Partition] = []
    while any(left.values()):
        most = max(left, key=lambda member: (len(left[member]), member))
        chosen = next((each for each in left[most] if each in b.previous), left[most][0])
        left[most].remove(chosen)
        order.append(chosen)
    known = set(order)
    return order + [each for each in reversed(there) if each not in known] if order else sorted(there)


def _drop_what_cannot_stay(b: Balance, exists: set[Partition]) -> bool:
    """Remove partitions that are gone or no longer subscribed to; return whether any was of the latter kind."""
    revoked = False
    for member, mine in enumerate(b.held):
        for each in list(mine):
            if each not in exists or each[0] not in b.subscribed[member]:
                revoked = revoked or each in exists
                mine.remove(each)
    return revoked


def _takes_part(b: Balance, member: int, counts: list[int]) -> bool:
    if len(b.held[member]) < sum(counts[topic] for topic in b.subscribed[member]):
        return True
    return any(len(b.subscribers_of[topic]) > 1 for topic, _ in b.held[member])


def _reassign(b: Balance, partitions: list[Partition]) -> bool:
    """Pass over the partitions until a pass moves nothing or the group is even; return whether anything moved."""
    ever, moving = False, True
    while moving:
        moving = False
        for each in partitions:
            if _even(b):
                break
            size = len(b.held[b.owner[each]])
            previous = b.previous.get(each)
            if previous is not None and size > len(b.held[previous]) + 1:
                b.move(each, previous)
            elif any(size > len(b.held[other]) + 1 for other in b.subscribers_of[each[0]]):
                b.move(each, b.least(each[0]))
            else:
                continue
            moving = ever = True
    return ever


def _even(b: Balance) -> bool:
    """Return whether no two active members differ by two, or no member could take from one that has more."""
    sizes = [len(b.held[member]) for member in b.active]
    if not sizes or max(sizes) - min(sizes) <= 1:
        return True
    if b.alike:
        return False
    most: dict[int, int] = {}
    for mine in b.held:
        for topic, _ in mine:
            most[topic] = max(most.get(topic, 0), len(mine))
    return not any(most.get(topic, 0) > len(b.held[member]) for member in b.active for topic in b.subscribed[member])


def _unevenness(b: Balance, held: list[list[Partition]]) -> int:
    sizes = [len(held[member]) for member in b.active]
    return sum(abs(one - other) for at, one in enumerate(sizes) for other in sizes[at + 1 :])
