"""Compute the fewest partitions of a group that must move to reach a balance, whatever the assignor (decision 0111).

Balanced, as defined by StickyAssignor's documentation and KIP-54: no member has two or more partitions fewer than
another that is assigned a partition of one of its topics. A move is a partition that a member held and another is
assigned; partitions that no member held cost nothing. Racks are ignored.
"""

from __future__ import annotations

import enum
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core import ragged
from groupledger.core.attributed import NOT_APPLICABLE
from groupledger.core.move_problem import Class, MoveProblem, SharedHolding
from groupledger.core.move_search import MOST_ARCS, MOST_PARTITIONS, most_kept
from groupledger.core.slots import MemberSlots
from groupledger.core.step import GroupMembership, moves

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.slots import Mask, Slots
    from groupledger.core.snapshots import Subscribed

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
