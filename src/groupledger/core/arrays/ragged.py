"""Handle lists of lists as two flat arrays: `start` [n+1] and values; list i is `values[start[i]:start[i + 1]]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.batch import IntArray, LongArray

    Mask = NDArray[np.bool_]


def starts(lengths: LongArray) -> LongArray:
    """Return where each list starts, and where the last one ends: [n+1]. Lengths 2, 0, 3 -> 0, 2, 2, 5."""
    start = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    return start


def lengths(start: LongArray) -> LongArray:
    """Return the number of values of each list: [n]."""
    return np.diff(start)


def owners(start: LongArray) -> LongArray:
    """Return the list of each value. Starts 0, 2, 2, 5 -> 0, 0, 2, 2, 2."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def places(start: LongArray) -> LongArray:
    """Return each value's position in its list, from 0. Starts 0, 2, 2, 5 -> 0, 1, 0, 1, 2."""
    return np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))


def part(start: LongArray, at: int) -> slice:
    """Return where the values of list `at` are. Starts 0, 2, 2, 5 -> the last list has 2:5."""
    return slice(start[at], start[at + 1])


def take(start: LongArray, chosen: LongArray) -> tuple[LongArray, LongArray]:
    """Take the lists `chosen`, in that order: their own `start`, and the index of each of their values."""
    taken = starts(np.diff(start)[chosen])
    at = np.arange(taken[-1]) + np.repeat(start[:-1][chosen] - taken[:-1], np.diff(taken))
    return taken, at


def begins(*columns: LongArray | IntArray) -> Mask:
    """Mark where a run of rows that are equal in all columns begins. 5, 5, 7 -> True, False, True."""
    found = np.zeros(len(columns[0]), np.bool_)
    found[:1] = True
    for each in columns:
        found[1:] |= each[1:] != each[:-1]
    return found


def repeated(*columns: LongArray | IntArray) -> Mask:
    """Mark the rows that are equal to another one in all columns. 5, 7, 5 -> True, False, True.

    Columns hold numbers from -1 on; a row with a lower one may be marked though it is equal to none.
    """
    key = np.zeros(len(columns[0]), np.int64)
    for each in columns:
        key = key * (int(each.max(initial=0)) + 2) + each + 1
    order = np.argsort(key, kind="stable")
    again = ~begins(key[order])
    found = np.empty(len(order), np.bool_)
    found[order] = again | np.append(again[1:], False)
    return found


@dataclass(frozen=True, slots=True)
class Ragged:
    """A list for each of M members, in columns of one length that subclasses name; None is a column without values."""

    start: LongArray  # [M+1]

    @property
    def member(self) -> LongArray:
        """Return the member of each entry's list."""
        return owners(self.start)

    @property
    def _columns(self) -> list[Any]:
        return [getattr(self, each.name) for each in fields(self)[1:]]

    def only(self, wanted: Mask) -> Self:
        """Return the entries where the mask is true, order kept."""
        kept = np.concatenate(([0], np.cumsum(wanted)))
        return type(self)(kept[self.start], *(each if each is None else each[wanted] for each in self._columns))

    def of(self, members: LongArray) -> Self:
        """Return the lists of some members, in that order."""
        start, entry = take(self.start, members)
        return type(self)(start, *(each if each is None else each[entry] for each in self._columns))

    def joined(self, other: Self) -> Self:
        """Return each member's list followed by its list in `other`; columns that one of the two lacks are left out."""
        order = np.argsort(np.concatenate((self.member, other.member)), kind="stable")
        pairs = zip(self._columns, other._columns, strict=True)
        lacking = ((one is None or more is None, one, more) for one, more in pairs)
        columns = (None if either else np.concatenate((one, more))[order] for either, one, more in lacking)
        return type(self)(self.start + other.start, *columns)

    def where(self, wanted: Mask, other: Self) -> Self:
        """Return the lists of the members in the mask, and those of `other` for the rest."""
        if wanted.all():
            return self
        if not wanted.any():
            return other
        return self.only(wanted[self.member]).joined(other.only(~wanted[other.member]))


@dataclass(frozen=True, slots=True)
class MemberAssignments(Ragged):
    """A list of partitions for each of M members."""

    topic: IntArray  # local topics
    partition: IntArray

    def replaced(self, members: LongArray, lists: MemberAssignments) -> MemberAssignments:
        """Return a copy with other lists for some members."""
        stays = ~np.isin(self.member, members)
        owner = np.concatenate([self.member[stays], members[lists.member]])
        order = np.argsort(owner, kind="stable")
        topic = np.concatenate([self.topic[stays], lists.topic])[order]
        partition = np.concatenate([self.partition[stays], lists.partition])[order]
        return MemberAssignments(starts(np.bincount(owner, minlength=len(self.start) - 1)), topic, partition)

    def within(self, other: MemberAssignments) -> Mask:
        """Return which entries are also in the other's list of the same member. A partition may be any int32."""
        member, topic, partition = (
            np.concatenate([getattr(each, name) for each in (self, other)]) for name in ("member", "topic", "partition")
        )
        _, number = np.unique(partition, return_inverse=True)  # a claim may name any number: the key has to stay small
        shape = len(self.start), 1 + topic.max(initial=0), 1 + number.max(initial=0)
        mine, theirs = np.split(np.ravel_multi_index((member, topic, number), shape), [len(self.topic)])
        found: Mask = np.isin(mine, theirs)
        return found


# Number the partitions of a batch of groups densely ("slots"), so that a set of partitions is a mask.
#
# Topics of all groups are numbered in one sequence ("topic row": a topic of one group). Each existing partition is a
# slot, and so is each partition that is only named (a claim can name anything), so that a name costs no more than
# itself.


class Topics(NamedTuple):
    """The topic rows of a batch, as topic listings know them."""

    group: LongArray  # [T]
    partitions: IntArray  # [T], NONE: unknown to the listings
    gone: Mask  # [T], deleted according to the listings
    subscribed: Mask  # [T], at least one member of the group subscribes to it


class Naming(NamedTuple):
    """Partitions as named: topic row, partition, and whether an earlier topic of that name is meant."""

    topic: LongArray
    partition: IntArray
    earlier: Mask | None = None


@dataclass(frozen=True, slots=True)
class Slots:
    """N slots: first those of existing partitions, by topic row, then those that are only named."""

    topic: LongArray  # [N] topic row
    partition: IntArray  # [N]
    group: LongArray  # [N]
    exists: Mask  # [N], false: the listings say that there is no such partition (any more)
    wanted: Mask  # [N], certainly exists, and its topic is subscribed to: some member should be assigned it

    def __len__(self) -> int:
        return len(self.topic)


@dataclass(frozen=True, slots=True)
class MemberSlots(Ragged):
    """A list of slots for each of M members, in the order of Kafka's own lists."""

    slot: LongArray

    def mask(self, slots: int) -> Mask:
        """Return which slots occur in any list: [N]."""
        occurs = np.zeros(slots, np.bool_)
        occurs[self.slot] = True
        return occurs

    def holders(self, slots: int) -> IntArray:
        """Count the lists that hold each slot: [N]. Lists are `distinct`."""
        return np.bincount(self.slot, minlength=slots).astype(np.int32)

    def distinct(self, slots: int) -> MemberSlots:
        """Return each list without repetitions, first occurrence kept."""
        if len(self.slot) == 0 or np.bincount(self.slot, minlength=slots).max() <= 1:
            return self
        _, first = np.unique(self.member * slots + self.slot, return_index=True)
        wanted = np.zeros(len(self.slot), np.bool_)
        wanted[first] = True
        return self.only(wanted)


def number(topics: Topics, namings: Sequence[Naming]) -> tuple[Slots, list[LongArray]]:
    """Assign slots to all partitions of `topics` and `namings`; return them, and the slot of each naming's entries."""
    counts = np.maximum(topics.partitions, 0).astype(np.int64)
    first = starts(counts)
    inside = [_inside(counts, naming) for naming in namings]
    keys = [_key(naming)[~known] for naming, known in zip(namings, inside, strict=True)]
    extra = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))
    numbered = [_slot_of(naming, known, first, extra) for naming, known in zip(namings, inside, strict=True)]
    return _slots(topics, first, extra), numbered


def _inside(counts: LongArray, naming: Naming) -> Mask:
    known: Mask = (naming.partition >= 0) & (naming.partition < counts[naming.topic])
    return known if naming.earlier is None else known & ~naming.earlier


def _key(naming: Naming) -> LongArray:
    """Return one number per name of a partition that does not exist: topic row, earlier or not, partition (32 bits)."""
    earlier = 0 if naming.earlier is None else naming.earlier.astype(np.int64)
    key: LongArray = (naming.topic.astype(np.int64) * 2 + earlier) << 32
    return key | (naming.partition.astype(np.int64) & 0xFFFFFFFF)


def _slot_of(naming: Naming, known: Mask, first: LongArray, extra: LongArray) -> LongArray:
    slot: LongArray = first[naming.topic] + naming.partition
    if not known.all():
        slot[~known] = first[-1] + np.searchsorted(extra, _key(naming)[~known])
    return slot


def _slots(topics: Topics, first: LongArray, extra: LongArray) -> Slots:
    extra_topic = extra >> 33
    extra_partition = (extra & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    may_exist = (topics.partitions[extra_topic] < 0) & ~topics.gone[extra_topic] & (extra >> 32 & 1 == 0)
    known = owners(first)
    topic = np.concatenate((known, extra_topic))
    exists = np.concatenate((np.ones(len(known), np.bool_), may_exist & (extra_partition >= 0)))
    wanted = np.concatenate((topics.subscribed[known], np.zeros(len(extra), np.bool_)))
    partition = np.concatenate((places(first).astype(np.int32), extra_partition))
    return Slots(topic, partition, topics.group[topic], exists, wanted)
