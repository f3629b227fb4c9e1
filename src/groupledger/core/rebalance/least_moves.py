"""Compute the fewest partitions of a group that must move to reach a balance, whatever the assignor (decision 0111).

Balanced, as defined by StickyAssignor's documentation and KIP-54: no member has two or more partitions fewer than
another that is assigned a partition of one of its topics. A move is a partition that a member held and another is
assigned; partitions that no member held cost nothing. Racks are ignored.
"""

from __future__ import annotations

import enum
import functools
import importlib
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.ragged import MemberSlots
from groupledger.core.rebalance.registry import NOT_APPLICABLE
from groupledger.core.rebalance.step import GroupMembership, moves

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import IntArray, LongArray
    from groupledger.core.arrays.ragged import Mask, Slots
    from groupledger.core.arrays.snapshots import Subscribed


MOST_CELLS = 200_000
"""Members x topics of a group; for a larger one the problem is not even built."""

Holders = dict[tuple[int, tuple[int, ...]], int]
"""Partitions by class and the members that hold them."""


class LeastMovesCertainty(enum.IntEnum):
    """How certain the least moves of a group are."""

    EXACT = 0
    LOWER_BOUND = 1
    NO_MEMBERS = 2
    TOPIC_UNKNOWN = 3  # no listing counts the partitions of a subscribed topic
    REJECTED = 4

    @property
    def text(self) -> str:
        """Return the text that users read."""
        name = self.name.lower().replace("_", "-")
        return name if self <= LeastMovesCertainty.LOWER_BOUND else f"{NOT_APPLICABLE}{name}"


class LeastMoves(NamedTuple):
    """The least moves of each group: [G]. `least` is 0 if there is no answer."""

    least: LongArray
    certainty: IntArray  # `LeastMovesCertainty`

    @property
    def applies(self) -> Mask:
        """Return the groups with an answer, even if only a bound."""
        answered: Mask = self.certainty <= LeastMovesCertainty.LOWER_BOUND
        return answered


class Moving(NamedTuple):
    """The input for the least moves of G groups. Lists are `distinct`."""

    party: GroupMembership
    slots: Slots
    held: MemberSlots
    subscribed: Subscribed
    known: Mask  # [G], the listings tell the partition count of each subscribed topic
    rejected: Mask  # [G], the group's input was refused

    @property
    def groups(self) -> int:
        """Return G."""
        return len(self.known)

    def per_group(self, slot: LongArray) -> LongArray:
        """Count the given slots in each group: [G]."""
        return np.bincount(self.slots.group[slot], minlength=self.groups)


def least_moves(moving: Moving, target: MemberSlots) -> LeastMoves:
    """Compute the fewest moves of any balanced assignment of all partitions. `target` may prove a bound exact, no more.

    7 partitions, held 5, 2, 0 -> loads 3, 2, 2 keep most: 2 moves.
    """
    peopled = ragged.lengths(moving.party.member_start) > 0
    answered = peopled & moving.known & ~moving.rejected
    equal = moving.subscribed.equal()
    keepable = _keepable(moving, equal)
    least, proven = _bound(moving, keepable, equal)
    proven = proven | ~answered
    if not proven.all():
        proven |= _reached(moving, keepable, least, ~proven)
        proven |= _reached(moving, target, least, ~proven)
        _solve(moving, keepable, least, proven)
    why = np.where(peopled, LeastMovesCertainty.TOPIC_UNKNOWN, LeastMovesCertainty.NO_MEMBERS)
    why = np.where(moving.rejected, LeastMovesCertainty.REJECTED, why)
    certainty = np.where(answered, np.where(proven, LeastMovesCertainty.EXACT, LeastMovesCertainty.LOWER_BOUND), why)
    return LeastMoves(np.where(answered, least, 0), certainty.astype(np.int32))


def fewest_rounds(incremental: Mask, fewest: LeastMoves) -> LongArray:
    """Count the fewest rebalances in which each group can reach a balance, 0 if there is no answer: [G].

    A group whose members revoke everything before they rejoin needs one. A group whose members keep what they own needs
    a second one if a partition moves, as its owner must revoke it first (KIP-429).
    """
    return np.where(fewest.applies, np.where(incremental & (fewest.least > 0), 2, 1), 0)


def _keepable(moving: Moving, equal: Mask) -> MemberSlots:
    """Take what members hold and may keep: wanted partitions and, if subscriptions differ, of their own topics."""
    held, slots = moving.held, moving.slots
    kept = slots.wanted[held.slot]
    if not equal.all():
        entry = np.flatnonzero(kept & ~equal[slots.group[held.slot]])
        kept[entry] = moving.subscribed.names(held.member[entry], slots.topic[held.slot[entry]])
    return held.only(kept)


def _bound(moving: Moving, keepable: MemberSlots, equal: Mask) -> tuple[LongArray, Mask]:
    """Compute a lower bound, and whether it is exact: one subscription, and no partition held by two members."""
    held, slots, groups = moving.held, moving.slots, moving.groups
    kept = _most_kept_if_equal(moving, keepable)
    if not equal.all():
        among = keepable.only(~equal[slots.group[keepable.slot]])
        kept = np.where(equal, kept, _most_kept(moving, among))
    exact = equal
    if len(keepable.slot) > np.count_nonzero(keepable.mask(len(slots))):
        exact = equal & (moving.per_group(np.flatnonzero(keepable.holders(len(slots)) > 1)) == 0)
    holding = np.bincount(slots.group[slots.wanted & held.mask(len(slots))], minlength=groups)
    return np.maximum(holding - kept, 0), exact


def _most_kept_if_equal(moving: Moving, keepable: MemberSlots) -> LongArray:
    """Count the most partitions that can stay if any member may have any, loads at most one apart: [G]."""
    party, groups = moving.party, moving.groups
    wanted = moving.per_group(np.flatnonzero(moving.slots.wanted))
    members = np.maximum(ragged.lengths(party.member_start), 1)
    load, quota = ragged.lengths(keepable.start), (wanted // members)[party.group]
    kept = np.bincount(party.group, weights=np.minimum(load, quota), minlength=groups).astype(np.int64)
    above = np.bincount(party.group, weights=load > quota, minlength=groups).astype(np.int64)
    return kept + np.minimum(above, wanted % members)


def _most_kept(moving: Moving, keepable: MemberSlots) -> LongArray:
    """Compute an upper bound on the partitions that can stay: [G].

    A member that keeps a partition of a topic with s subscribers has at most one partition more than each of them, so
    at most ceil(P / s) of the group's P: the topic's share. A member that keeps topics down to some share has no more
    than that share, and no more than it holds of topics with this share or a larger one.
    """
    party, slots = moving.party, moving.slots
    if len(keepable.slot) == 0:
        return np.zeros(moving.groups, np.int64)
    wanted = moving.per_group(np.flatnonzero(slots.wanted))
    topic, member = slots.topic[keepable.slot], keepable.member
    share = -(-wanted[party.group[member]] // moving.subscribed.subscribers()[topic])
    order = np.lexsort((-share, member))
    member, share = member[order], share[order]
    first = np.flatnonzero(np.diff(member, prepend=-1))
    place = np.arange(len(member)) - np.repeat(first, np.diff(np.append(first, len(member)))) + 1
    most = np.maximum.reduceat(np.minimum(share, place), first)
    return np.bincount(party.group[member[first]], weights=most, minlength=moving.groups).astype(np.int64)


def _reached(moving: Moving, lists: MemberSlots, least: LongArray, among: Mask) -> Mask:
    """Tell in which groups `lists` are a balanced assignment of all partitions that moves no more than `least`."""
    lists = lists.only(among[moving.slots.group[lists.slot]])
    found: Mask = among & is_balanced(moving, lists)
    return found & (moves(moving.party, moving.slots, moving.held, lists) <= least)


def is_balanced(moving: Moving, lists: MemberSlots) -> Mask:
    """Tell in which groups `lists` give each partition to one subscriber, and are balanced: [G]."""
    slots, subscribed = moving.slots, moving.subscribed
    topic = slots.topic[lists.slot]
    load = ragged.lengths(lists.start)
    wrong = (lists.holders(len(slots)) != 1) & slots.wanted
    strange = ~slots.wanted[lists.slot] | ~subscribed.names(lists.member, topic)
    uneven = load[lists.member] > subscribed.least(load)[topic] + 1
    balanced: Mask = moving.per_group(np.concatenate((np.flatnonzero(wrong), lists.slot[strange | uneven]))) == 0
    return balanced


def _solve(moving: Moving, keepable: MemberSlots, least: LongArray, proven: Mask) -> None:
    """Write the least moves of each group not proven yet, in place; very large groups keep the bound."""
    small = ragged.lengths(moving.party.member_start) <= MOST_ARCS
    small &= moving.per_group(np.flatnonzero(moving.slots.wanted)) <= MOST_PARTITIONS
    rows = np.flatnonzero(~proven & small)
    if len(rows) == 0:
        return
    slots = moving.slots
    holding = moving.per_group(np.flatnonzero(slots.wanted & moving.held.mask(len(slots))))
    size = np.bincount(slots.topic[slots.wanted], minlength=len(moving.subscribed.any()))
    for group in rows.tolist():
        topics, table = moving.subscribed.table(group)
        if table.size > MOST_CELLS:
            continue
        own = _of_group(moving, keepable, group)
        kept = most_kept(_problem(table, size[topics], own, slots.topic[own.slot] - topics.start))
        least[group] = max(least[group], holding[group] - kept.most)
        proven[group] = least[group] == holding[group] - kept.found


def _of_group(moving: Moving, lists: MemberSlots, group: int) -> MemberSlots:
    """Take the lists of one group's members."""
    first, last = moving.party.member_start[group : group + 2].tolist()
    start = lists.start[first : last + 1]
    return MemberSlots(start - start[0], lists.slot[start[0] : start[-1]])


def _problem(table: Mask, size: LongArray, held: MemberSlots, topic: LongArray) -> MoveProblem:
    """Reduce one group to numbers of partitions; members without a partition to subscribe to are left out.

    `table` says which of its members subscribes to which of its topics, `size` how many partitions each topic has, and
    `topic` the topic of each held partition.
    """
    there = (size > 0) & table.any(axis=0)
    columns, class_of = np.unique(table[:, there], axis=1, return_inverse=True)
    kinds, kind_of = np.unique(columns, axis=0, return_inverse=True)
    partitions = np.bincount(class_of.ravel(), weights=size[there], minlength=columns.shape[1]).astype(int)
    classes = tuple(
        Class(count, tuple(np.flatnonzero(kinds[:, at]).tolist())) for at, count in enumerate(partitions.tolist())
    )
    class_of_topic = np.zeros(len(there), np.int64)
    class_of_topic[there] = class_of.ravel()
    holders = _holdings(held, class_of_topic[topic])
    return _numbered(kind_of.ravel().tolist(), [bool(row.any()) for row in kinds], classes, holders)


def _holdings(held: MemberSlots, of_class: LongArray) -> Holders:
    """Count the partitions by class and holders."""
    found: Holders = {}
    entries = sorted(zip(held.slot.tolist(), of_class.tolist(), held.member.tolist(), strict=True))
    for (_, number), same in groupby(entries, itemgetter(0, 1)):
        key = number, tuple(who for _, _, who in same)
        found[key] = found.get(key, 0) + 1
    return found


def _numbered(kinds: list[int], busy: list[bool], classes: tuple[Class, ...], held: Holders) -> MoveProblem:
    """Number the members by what they subscribe to and hold, so that groups that differ in names are one problem."""
    own: dict[int, list[tuple[int, int, int]]] = {}
    for (of_class, members), partitions in held.items():
        for member in members:
            own.setdefault(member, []).append((of_class, len(members), partitions))
    order = sorted(
        (at for at, kind in enumerate(kinds) if busy[kind]), key=lambda at: (kinds[at], sorted(own.get(at, [])))
    )
    place = {member: at for at, member in enumerate(order)}
    return MoveProblem(
        tuple(kinds[member] for member in order),
        classes,
        tuple(
            sorted(
                SharedHolding(of_class, tuple(sorted(place[who] for who in members)), partitions)
                for (of_class, members), partitions in held.items()
            )
        ),
    )


# State how few partitions of one group must move as a problem, and solve it greedily, without a search.
#
# Partitions are told apart only by who subscribes to their topic (a "class") and by who holds them.

MOST_LOOKS = 500_000
"""Arcs x steps of `kept_by_repair`: about a tenth of a second."""


class Class(NamedTuple):
    """Partitions of topics that the same members subscribe to."""

    partitions: int
    kinds: tuple[int, ...]


class SharedHolding(NamedTuple):
    """Partitions of one class that the same members hold: one, or several with conflicting claims."""

    of_class: int
    members: tuple[int, ...]
    partitions: int


@dataclass(frozen=True, slots=True)
class MoveProblem:
    """One group. A member's kind is its subscription; classes and members are numbered from 0."""

    kinds: tuple[int, ...]  # of each member
    classes: tuple[Class, ...]
    holdings: tuple[SharedHolding, ...]

    @property
    def partitions(self) -> int:
        """Return the number of all partitions."""
        return sum(each.partitions for each in self.classes)

    @property
    def held(self) -> int:
        """Return the number of partitions with a holder that may keep them."""
        return sum(each.partitions for each in self.holdings)

    @property
    def arcs(self) -> int:
        """Count the pairs of a class and a subscribing member, and of a holding and a holder."""
        return sum(self.subscribers) + sum(len(each.members) for each in self.holdings)

    @property
    def switches(self) -> int:
        """Count the pairs of a class and a kind, in classes that several kinds subscribe to: what a search decides."""
        return sum(len(each.kinds) for each in self.classes if len(each.kinds) > 1)

    @property
    def subscribers(self) -> list[int]:
        """Count the members that subscribe to each class."""
        size = Counter(self.kinds)
        return [sum(size[kind] for kind in each.kinds) for each in self.classes]


def kept_by_repair(problem: MoveProblem) -> int | None:
    """Count what a greedy balanced assignment keeps: all stay, then some move until no member has two more.

    Each step moves the cheapest partitions, and lowers the sum of the squares of the loads. None: it takes
    too many steps. 4 partitions with A, B new -> 2 move, 2 are kept.
    """
    steps = MOST_LOOKS // max(problem.arcs, 1)
    load = [0] * len(problem.kinds)
    subscribers = [
        [member for member, kind in enumerate(problem.kinds) if kind in each.kinds] for each in problem.classes
    ]
    items = _items(problem)
    placed: list[dict[int, int]] = []
    for of_class, holders, partitions in items:
        member = min(holders or subscribers[of_class], key=lambda at: (load[at], at))
        placed.append({member: partitions})
        load[member] += partitions
    for _ in range(steps):
        step = _cheapest(items, placed, [min(each, key=lambda at: (load[at], at)) for each in subscribers], load)
        if step is None:
            return sum(
                count
                for item, having in zip(items, placed, strict=True)
                for member, count in having.items()
                if member in item.members
            )
        item, source, target = step
        count = min(placed[item][source], (load[source] - load[target]) // 2)
        placed[item][source] -= count
        placed[item][target] = placed[item].get(target, 0) + count
        load[source] -= count
        load[target] += count
    return None


def _items(problem: MoveProblem) -> list[SharedHolding]:
    """List the holdings, and the unheld partitions of each class."""
    free = [each.partitions for each in problem.classes]
    for of_class, _, partitions in problem.holdings:
        free[of_class] -= partitions
    return [*problem.holdings, *(SharedHolding(at, (), count) for at, count in enumerate(free) if count > 0)]


def _cheapest(
    items: list[SharedHolding], placed: list[dict[int, int]], lightest: list[int], load: list[int]
) -> tuple[int, int, int] | None:
    """Find the cheapest step, among equals the one between the most unequal loads: item, from, to."""
    best: tuple[int, int, int, int, int] | None = None
    for number, (item, having) in enumerate(zip(items, placed, strict=True)):
        target = lightest[item.of_class]
        for source, count in having.items():
            gap = load[source] - load[target]
            if count > 0 and gap > 1:
                cost = (source in item.members) - (target in item.members)
                rank = cost, -gap, number, source, target
                best = rank if best is None else min(best, rank)
    return None if best is None else best[2:]


# Find the most partitions that can stay in place in a balanced assignment of one group, by integer programming.
#
# Members with one subscription have loads that differ by at most one: a member with two more could pass one on. So
# each kind of member has a base load, and some of its members have one more. With L the least load of a class's
# subscribers, a member may be assigned partitions of the class only while its own load is at most L + 1. That is all
# that makes the problem more than a flow; the solver (HiGHS) branches on it.
#
# Worked example: A subscribes to t, B to t and u; A holds all 4 of t, nobody the 1 of u. B gets u, one of t: 1 move.

MOST_ARCS = 400
MOST_WORK = 10_000
"""Arcs x switches. Larger problems are not solved: at this size it takes a second or two of CPU."""

MOST_PARTITIONS = 20_000
"""A similar limit: the solver's tolerances are for numbers of moderate size."""

MOST_NODES = 200
"""Limit of the solver's search tree. Not a time: the same problem gives the same answer on a slow machine."""

TOLERANCE = 1e-4  # counts of partitions are whole numbers; the solver's are within about 1e-6 of them


class Kept(NamedTuple):
    """Partitions that a balanced assignment keeps: a known one keeps `found`, none keeps more than `most`."""

    found: int
    most: int


class _Bounds(NamedTuple):
    base: list[int]  # of each kind, least load
    most: list[int]  # of each kind, most load of any member
    share: list[int]  # of each class, most load of a member that is assigned one of its partitions
    floor: list[int]  # of each class, the most that its least loaded subscriber can have


@dataclass
class _Model:
    """Columns and rows of an integer program; minimised."""

    cost: list[float] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[float, dict[int, float], float]] = field(default_factory=list)

    def column(self, low: int, high: int, *, whole: bool = False, cost: float = 0.0) -> int:
        self.cost.append(cost)
        self.bounds.append((low, high))
        self.whole.append(whole)
        return len(self.cost) - 1

    def at_most(self, high: float, terms: dict[int, float]) -> None:
        self.rows.append((-math.inf, terms, high))

    def equal(self, value: float, terms: dict[int, float]) -> None:
        self.rows.append((value, terms, value))


def is_small(problem: MoveProblem) -> bool:
    """Return whether `search` takes a second or two at most."""
    arcs = problem.arcs
    return arcs <= MOST_ARCS and arcs * problem.switches <= MOST_WORK and problem.partitions <= MOST_PARTITIONS


def most_kept(problem: MoveProblem) -> Kept:
    """Find how many partitions can stay; for a large problem, what the repair keeps and a bound."""
    if is_small(problem):
        return search(problem)
    return Kept(kept_by_repair(problem) or 0, problem.held - _least_gained(problem))


@functools.lru_cache(maxsize=4_000)  # of small problems, about 10 kB each
def search(problem: MoveProblem) -> Kept:
    """Find how many partitions can stay; `found` and `most` differ if the search ends before the proof.

    The solver is asked only for an assignment that keeps more than a known one. Usually there is none, which it sees at
    once; finding the known one again would take it ten times as long.
    """
    held = problem.held
    known = (kept_by_repair(problem) or 0) if held > 0 else 0
    if known == held:
        return Kept(held, held)
    found = _solved(_model(problem, known + 1))
    if found is None:
        return Kept(known, known)
    best, proven = found
    return Kept(max(known, math.floor(best + TOLERANCE)), math.floor(min(held, proven + TOLERANCE)))


def _least_gained(problem: MoveProblem) -> int:
    """Bound the moves from below by what members must gain to reach their least load, beyond unheld partitions."""
    having = [0] * len(problem.kinds)
    for _, members, partitions in problem.holdings:
        for member in members:
            having[member] += partitions
    base = _base(problem)
    gained = sum(max(base[kind] - own, 0) for kind, own in zip(problem.kinds, having, strict=True))
    return max(gained - (problem.partitions - problem.held), 0)


def _base(problem: MoveProblem) -> list[int]:
    """Compute the least load of each kind in any balanced assignment.

    A class of n partitions leaves each of its s subscribers at least n // s, else a holder had two more than one.
    """
    base = [0] * (max(problem.kinds) + 1)
    for each, subscribers in zip(problem.classes, problem.subscribers, strict=True):
        for kind in each.kinds:
            base[kind] = max(base[kind], each.partitions // subscribers)
    return base


def _bounds(problem: MoveProblem) -> _Bounds:
    """Bound the loads of balanced assignments.

    A holder with load L leaves each other subscriber at least L - 1. All of them together have no more than the
    partitions of the classes that any of them subscribes to, and leave the others their least loads.
    """
    base = _base(problem)
    size: list[int] = np.bincount(problem.kinds).tolist()
    least = sum(base[kind] * size[kind] for kind in range(len(size)))
    most, share, floor = [0] * len(size), [], []
    for each, subscribers in zip(problem.classes, problem.subscribers, strict=True):
        elsewhere = least - sum(base[kind] * size[kind] for kind in each.kinds)
        near = sum(other.partitions for other in problem.classes if not set(each.kinds).isdisjoint(other.kinds))
        together = min(problem.partitions - elsewhere, near)
        floor.append(together // subscribers)
        share.append((together + subscribers - 1) // subscribers)
        for kind in each.kinds:
            most[kind] = max(most[kind], share[-1])
    return _Bounds(base, most, share, floor)


def _model(problem: MoveProblem, least_kept: int) -> _Model:
    """Build the program: each member has the base load of its kind or one more, and as much as possible is kept.

    An assignment that keeps less than `least_kept` is not accepted.
    """
    model, bounds = _Model(), _bounds(problem)
    base = [model.column(low, high, whole=True) for low, high in zip(bounds.base, bounds.most, strict=True)]
    more = [model.column(0, 1, whole=True) for _ in problem.kinds]
    load: list[dict[int, float]] = [
        {base[kind]: -1.0, extra: -1.0} for kind, extra in zip(problem.kinds, more, strict=True)
    ]
    given = []
    for number in range(len(problem.classes)):
        given.append(_given(model, problem, number, bounds.share[number]))
        if len(problem.classes[number].kinds) > 1:
            _restrict(model, problem, number, bounds, base, more, given[-1])
        for member, column in given[-1].items():
            load[member][column] = 1.0
    for terms in load:
        model.equal(0, terms)
    for kind in range(len(base)):
        members = [at for at, own in enumerate(problem.kinds) if own == kind]
        model.at_most(max(len(members) - 1, 0), {more[at]: 1.0 for at in members})
    _keep(model, problem, given, least_kept)
    return model


def _given(model: _Model, problem: MoveProblem, number: int, share: int) -> dict[int, int]:
    """Add columns: how many of a class each subscriber is assigned. The whole class is assigned."""
    partitions, kinds = problem.classes[number]
    given = {
        member: model.column(0, min(partitions, share)) for member, kind in enumerate(problem.kinds) if kind in kinds
    }
    model.equal(partitions, dict.fromkeys(given.values(), 1.0))
    return given


def _restrict(
    model: _Model,
    problem: MoveProblem,
    number: int,
    bounds: _Bounds,
    base: list[int],
    more: list[int],
    given: dict[int, int],
) -> None:
    """Let a member be assigned partitions of a class only while it has at most one more than each subscriber.

    Two switches for each kind: members with its base load may have some of the class, and those with one more may.
    """
    kinds, share = problem.classes[number].kinds, min(problem.classes[number].partitions, bounds.share[number])
    low = min(bounds.base[kind] for kind in kinds)
    least = model.column(low, bounds.floor[number], whole=True)
    usual, higher = {}, {}
    for kind in kinds:
        model.at_most(0, {least: 1.0, base[kind]: -1.0})
        span = bounds.most[kind] - low
        if span > 1:
            usual[kind] = model.column(0, 1, whole=True)
            model.at_most(span, {base[kind]: 1.0, least: -1.0, usual[kind]: span - 1.0})
        if span > 0:
            higher[kind] = model.column(0, 1, whole=True)
            model.at_most(span, {base[kind]: 1.0, least: -1.0, higher[kind]: float(span)})
    for member, column in given.items():
        kind = problem.kinds[member]
        if kind in usual:
            model.at_most(0, {column: 1.0, usual[kind]: -float(share)})
        if kind in higher:
            model.at_most(share, {column: 1.0, higher[kind]: -float(share), more[member]: float(share)})


def _keep(model: _Model, problem: MoveProblem, given: list[dict[int, int]], least_kept: int) -> None:
    """Add columns: how many of a holding each holder keeps, of the partitions that it is assigned."""
    kept: dict[int, list[int]] = {}
    for number, members, partitions in problem.holdings:
        columns = [model.column(0, partitions, cost=-1.0) for _ in members]
        model.at_most(partitions, dict.fromkeys(columns, 1.0))
        for member, column in zip(members, columns, strict=True):
            kept.setdefault(given[number][member], []).append(column)
    for assigned, columns in kept.items():
        model.at_most(0, {**dict.fromkeys(columns, 1.0), assigned: -1.0})
    model.at_most(-least_kept, {column: -1.0 for columns in kept.values() for column in columns})


def _solved(model: _Model) -> tuple[float, float] | None:
    """Run HiGHS; return the most kept that was found, and an upper bound; None: less than the model asks for.

    The two differ by less than one if the proof is complete.
    """
    highs: Any = importlib.import_module("highspy")
    program = highs.HighsLp()
    program.num_col_, program.num_row_ = len(model.cost), len(model.rows)
    program.col_cost_ = np.array(model.cost)
    program.col_lower_, program.col_upper_ = np.array(model.bounds, np.float64).T
    program.row_lower_ = np.array([low for low, _, _ in model.rows])
    program.row_upper_ = np.array([high for _, _, high in model.rows])
    matrix = program.a_matrix_
    matrix.format_ = highs.MatrixFormat.kRowwise
    matrix.start_ = np.cumsum([0, *(len(terms) for _, terms, _ in model.rows)])
    matrix.index_ = np.array([column for _, terms, _ in model.rows for column in terms])
    matrix.value_ = np.array([factor for _, terms, _ in model.rows for factor in terms.values()])
    kinds = highs.HighsVarType
    program.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in model.whole]
    solver = highs.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_max_nodes", MOST_NODES),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1 - 10 * TOLERANCE),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    solver.run()
    status = solver.getModelStatus()
    if status == highs.HighsModelStatus.kInfeasible:
        return None
    if status not in (highs.HighsModelStatus.kOptimal, highs.HighsModelStatus.kSolutionLimit):
        return 0.0, math.inf  # it gave up: one group's numbers must not end the job
    found = solver.getInfo()
    any_way = found.primal_solution_status == int(highs.SolutionStatus.kSolutionStatusFeasible)
    return -found.objective_function_value if any_way else 0.0, -found.mip_dual_bound
