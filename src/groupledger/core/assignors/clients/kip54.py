"""`sticky` of kafka-python and aiokafka, and kafka-python's `cooperative-sticky`: KIP-54's first algorithm.

Valid claims are kept, free partitions go to the least loaded subscriber, then partitions move one by one while that
evens the group out. Java no longer uses this algorithm for groups with equal subscriptions; these libraries use it for
all, and compare subscriptions as lists: the same topics in another order count as different.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.assignors.clients.client_plan import Choices, LeaderPlan, PossiblePlans, most_runs
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.wire.consumer_protocol import STICKY, UserDataForm, decode_user_data

Pair = tuple[str, str]
"""From, to."""


@dataclass(slots=True)
class NetMoves:
    """The net move of each partition."""

    of: dict[TopicPartition, Pair] = field(default_factory=dict)

    def record(self, partition: TopicPartition, holder: str, to: str) -> None:
        """Record a move from the owner to another member; a partition that returns to its start did not move."""
        source, at = self.of.pop(partition, (holder, holder))
        if at != holder:
            raise KeyError(partition)
        if source != to:
            self.of[partition] = (source, to)

    def opposite(self, partition: TopicPartition, holder: str, to: str) -> list[TopicPartition]:
        """Return the topic's partitions that moved the opposite way, in order of their moves."""
        source = self.of.get(partition, (holder, holder))[0]
        return [each for each, pair in self.of.items() if each.topic == partition.topic and pair == (to, source)]


StatedClaim = tuple[tuple[TopicPartition, ...], int]
"""What a member claims, and its generation; -1: not stated."""

NO_GENERATION = -1
NOTHING: StatedClaim = (), NO_GENERATION


class ConsumerSubscription(NamedTuple):
    """aiokafka's type of a subscription, named in its error if missing; kafka-python's is a plain pair."""

    consumer: str
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class StickyGroup:
    """One group while it is computed. As in the libraries, `held` may name members that have left the computation."""

    wanted: dict[str, list[TopicPartition]]  # by member in JoinGroup order; a topic named twice counts twice
    takers: dict[TopicPartition, list[str]]  # the same, keyed by partition
    held: dict[str, list[TopicPartition]]
    owner: dict[TopicPartition, str]
    previous: dict[TopicPartition, str]  # its claimant in the generation before
    choices: Choices  # of set elements, which the libraries iterate in hash table order
    undoes: bool  # kafka-python: gives a partition back if another member owns its substitute
    ranked: set[str] = field(default_factory=set)  # members that may still gain or lose
    movements: NetMoves = field(default_factory=NetMoves)

    def rank(self, member_id: str) -> tuple[int, str]:
        """Return the key by which members are served."""
        return len(self.held[member_id]), member_id

    def first_taker(self, partition: TopicPartition) -> str | None:
        """Return the least loaded of the ranked members that want the partition."""
        fitting = [each for each in self.takers[partition] if each in self.ranked]
        return min(fitting, key=self.rank) if fitting else None

    def give(self, partition: TopicPartition, to: str) -> None:
        """Hand out a partition that has no owner."""
        self.held[to].append(partition)
        self.owner[partition] = to

    def reassign(self, partition: TopicPartition, to: str) -> None:
        """Move a partition, or instead the one of its topic that moved the opposite way."""
        holder = self.owner[partition]
        substitutes = self.movements.opposite(partition, holder, to)
        moving = self.choices.pick(substitutes) if substitutes else partition
        if self.undoes and self.owner[moving] != holder:
            self.move(partition, self.owner[moving])
        self.move(moving, to)

    def move(self, partition: TopicPartition, to: str) -> None:
        """Move exactly this partition. Raises KeyError, as the libraries do, if one of the two is not ranked."""
        holder = self.owner[partition]
        for member_id in (holder, to):
            if member_id not in self.ranked or holder == to:
                entry = ConsumerSubscription(member_id, tuple(self.held[member_id]))
                raise KeyError(tuple(entry) if self.undoes else entry)
        self.movements.record(partition, holder, to)
        self.held[holder].remove(partition)
        self.give(partition, to)


def kafka_python_sticky(group: Group, leader: str | None) -> PossiblePlans:
    """kafka-python 3.0: read claims only from user data in its own form, prefixed with the bytes 0001."""
    claims = {each.member_id: _user_data_claim(each, prefixed=True) for each in group.members}
    return PossiblePlans(lambda choices: _balanced(group, claims, choices, undoes=True), most_runs(group))


def aiokafka_sticky(group: Group, leader: str | None) -> PossiblePlans:
    """aiokafka 0.14: read claims from user data; it cannot read kafka-python's prefix 0001."""
    claims = {each.member_id: _user_data_claim(each, prefixed=False) for each in group.members}
    return PossiblePlans(lambda choices: _balanced(group, claims, choices, undoes=False), most_runs(group))


def kafka_python_cooperative_sticky(group: Group, leader: str | None) -> PossiblePlans:
    """kafka-python 3.0: read claims from ownedPartitions; withhold what another member (the last claimant) claims."""
    claims = {
        member.member_id: (member.owned, NO_GENERATION if member.generation is None else member.generation)
        for member in group.members
    }
    owners = {partition: member_id for member_id, (owned, _) in claims.items() for partition in owned}

    def assign(choices: Choices) -> LeaderPlan:
        plan = _balanced(group, claims, choices, undoes=True)
        given = {
            member_id: tuple(each for each in partitions if owners.get(each, member_id) == member_id)
            for member_id, partitions in plan.lists.items()
        }
        return LeaderPlan(given, plan.failure)

    return PossiblePlans(assign, most_runs(group))


def _user_data_claim(member: Member, prefixed: bool) -> StatedClaim:
    """Return what the library reads; bytes that it cannot read are no claim."""
    sent = decode_user_data(member.user_data, STICKY)
    readable = UserDataForm.PREFIXED_OWNED_GENERATION if prefixed else UserDataForm.OWNED_GENERATION
    if sent.form is not readable or sent.damaged:
        return NOTHING
    owned = tuple(TopicPartition(topic, number) for topic, numbers in sent.owned for number in numbers)
    return owned, NO_GENERATION if sent.generation is None else sent.generation


def _balanced(group: Group, claims: Mapping[str, StatedClaim], choices: Choices, undoes: bool) -> LeaderPlan:
    """Balance the group; topics and partitions of each member are sorted."""
    if not group.members:
        return LeaderPlan()
    balance, fresh = _prepared(group, claims, choices, undoes)
    try:
        _assign(balance, fresh)
    except KeyError as missing:
        return LeaderPlan(failure=f"KeyError: {missing.args[0]!r}")
    lists = {member.member_id: tuple(sorted(balance.held[member.member_id])) for member in group.members}
    return LeaderPlan(lists)


def _prepared(
    group: Group, claims: Mapping[str, StatedClaim], choices: Choices, undoes: bool
) -> tuple[StickyGroup, bool]:
    """Return the group with settled claims, and whether there is no claim at all."""
    wanted = {
        member.member_id: [
            TopicPartition(topic, number) for topic in member.topics for number in range(group.topics.get(topic, 0))
        ]
        for member in group.members
    }
    takers: dict[TopicPartition, list[str]] = {}
    for member_id, partitions in wanted.items():
        for each in partitions:
            takers.setdefault(each, []).append(member_id)
    held, previous = _settled(claims)
    owner = {partition: member_id for member_id, partitions in held.items() for partition in partitions}
    fresh = not held
    for member_id in wanted:
        held.setdefault(member_id, [])
    return StickyGroup(wanted, takers, held, owner, previous, choices, undoes), fresh


def _settled(claims: Mapping[str, StatedClaim]) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, str]]:
    """Return the owners of the highest generation, and those of the one before it.

    Of two claims of one generation, the first in JoinGroup order counts; in generation 0, the last.
    """
    by_generation: dict[TopicPartition, dict[int, str]] = {}
    for member_id, (partitions, generation) in claims.items():
        for each in partitions:
            claimants = by_generation.setdefault(each, {})
            if generation not in claimants or generation == 0:
                claimants[generation] = member_id
    held: dict[str, list[TopicPartition]] = {}
    previous: dict[TopicPartition, str] = {}
    for partition, claimants in by_generation.items():
        latest = sorted(claimants, reverse=True)
        held.setdefault(claimants[latest[0]], []).append(partition)
        if len(latest) > 1:
            previous[partition] = claimants[latest[1]]
    return held, previous


def _assign(b: StickyGroup, fresh: bool) -> None:
    """Keep what may be kept, hand out the rest, then move partitions while that makes the group more even."""
    order = _order_of_moves(b, fresh)
    revoked = _drop_what_cannot_stay(b)
    free = [each for each in order if each not in b.owner]
    b.ranked = set(b.held)
    initializing = not any(b.held.values())
    for each in free:
        taker = b.first_taker(each)
        if taker is not None:
            b.give(each, taker)
    movable = {each for each, takers in b.takers.items() if len(takers) > 1}
    fixed = {member_id: b.held[member_id] for member_id in b.wanted if not _takes_part(b, member_id, movable)}
    for member_id in fixed:
        b.ranked.remove(member_id)
        del b.held[member_id]
    before = {member_id: list(partitions) for member_id, partitions in b.held.items()}
    if not revoked:
        _move_while_uneven(b, [each for each in free if each in movable])
    moved = _move_while_uneven(b, [each for each in order if each in movable])
    if not initializing and moved and _unevenness(b.held) >= _unevenness(before):
        b.held = before
    b.held.update(fixed)


def _order_of_moves(b: StickyGroup, fresh: bool) -> list[TopicPartition]:
    """Return all partitions: those with few takers first; for equal subscriptions, those of loaded members."""
    order = sorted(b.takers, key=lambda each: (len(b.takers[each]), each))
    if fresh or not (_all_equal(b.wanted.values()) and _all_equal(b.takers.values())):
        return order
    left = {member_id: [each for each in partitions if each in b.takers] for member_id, partitions in b.held.items()}
    turns: list[TopicPartition] = []
    while any(left.values()):
        mine = left[max(left, key=lambda member_id: (len(left[member_id]), member_id))]
        contested = [each for each in mine if each in b.previous]
        chosen = b.choices.pick(contested) if contested else mine[-1]
        mine.remove(chosen)
        turns.append(chosen)
    known = set(turns)
    return turns + [each for each in order if each not in known]


def _all_equal(lists: Iterable[Sequence[object]]) -> bool:
    every = list(lists)
    return all(each == every[0] for each in every)


def _drop_what_cannot_stay(b: StickyGroup) -> bool:
    """Remove partitions that are gone or no longer subscribed to; return whether any was of the latter kind."""
    revoked = False
    for member_id, partitions in b.held.items():
        staying = [each for each in partitions if each in b.takers and member_id in b.takers[each]]
        for each in set(partitions) - set(staying):
            del b.owner[each]
            revoked |= each in b.takers
        b.held[member_id] = staying
    return revoked


def _takes_part(b: StickyGroup, member_id: str, movable: set[TopicPartition]) -> bool:
    held = b.held[member_id]
    return len(held) < len(b.wanted[member_id]) or any(each in movable for each in held)


def _move_while_uneven(b: StickyGroup, partitions: list[TopicPartition]) -> bool:
    """Pass over the partitions until a pass moves nothing or the group is even; return whether anything moved."""
    ever, moving = False, True
    while moving:
        moving = False
        for each in partitions:
            if _even(b):
                break
            size = len(b.held[b.owner[each]])
            before = b.previous.get(each)
            if before is not None and size > len(b.held.setdefault(before, [])) + 1:
                b.reassign(each, before)
            elif any(size > len(b.held[other]) + 1 for other in b.takers[each]):
                b.reassign(each, _found(b.first_taker(each)))
            else:
                continue
            moving = ever = True
    return ever


def _found(member_id: str | None) -> str:
    if member_id is None:
        raise KeyError(member_id)
    return member_id


def _even(b: StickyGroup) -> bool:
    """Return whether no two ranked members differ by two, or no member could take from one that has more."""
    sizes = [len(b.held[member_id]) for member_id in b.ranked]
    if max(sizes) - min(sizes) <= 1:
        return True
    owners = {partition: member_id for member_id, partitions in b.held.items() for partition in partitions}
    for member_id in sorted(b.ranked, key=b.rank):
        mine = set(b.held[member_id])
        if len(mine) == len(b.wanted[member_id]):
            continue
        if any(len(mine) < len(b.held[owners[each]]) for each in b.wanted[member_id] if each not in mine):
            return False
    return True


def _unevenness(held: Mapping[str, list[TopicPartition]]) -> int:
    """Return the sum of the differences between all pairs of members."""
    sizes = sorted(map(len, held.values()))
    return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))
