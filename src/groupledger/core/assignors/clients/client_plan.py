"""Represent what a leader of another client library answers for one group, and how these libraries sort.

Kafka compares strings by UTF-16 code unit. Go and C compare bytes, Python compares code points, which is the same
order; only JavaScript compares as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from groupledger.core.custom.custom_group import Group, Member, TopicPartition

T = TypeVar("T")

Numbers = Mapping[str, Sequence[int]]
"""Partition numbers by topic, both in the order in which a library writes them."""


@dataclass(frozen=True, slots=True)
class LeaderPlan:
    """A leader's answer: the lists of all members that it sends an assignment to, in the library's order.

    `failure`: the error that stops the leader; it then sends nothing to any member.
    """

    lists: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    failure: str | None = None


def plan_of(lists: Mapping[str, Numbers]) -> LeaderPlan:
    """Return the plan that gives these partitions to these members."""
    pairs = {
        member_id: tuple(TopicPartition(topic, number) for topic, numbers in topics.items() for number in numbers)
        for member_id, topics in lists.items()
    }
    return LeaderPlan(pairs)


def named_topics(members: Iterable[Member]) -> dict[str, list[Member]]:
    """Return the members that name each topic, in JoinGroup order; a member that names a topic twice appears twice."""
    named: dict[str, list[Member]] = {}
    for member in members:
        for topic in member.topics:
            named.setdefault(topic, []).append(member)
    return named


def known_topics(group: Group) -> dict[str, list[Member]]:
    """Return `named_topics` for topics that the leader knows, sorted by name."""
    named = named_topics(group.members)
    return {topic: named[topic] for topic in sorted(named) if topic in group.topics}


def member_id_of(member: Member) -> str:
    """Return the sort key of a library without static members."""
    return member.member_id


def static_first(member: Member) -> tuple[bool, str]:
    """Return franz-go's sort key: static members by instance id, then the others by member id."""
    static = member.group_instance_id
    return static is None, member.member_id if static is None else static


def last_runs(members: Sequence[Member]) -> list[Member]:
    """Return kafka-python's order: the last run of static members, sorted, then the last run of the others, sorted.

    A run is a stretch of the JoinGroup order; members of earlier runs are not in the result. Static A, dynamic B,
    static C -> C, B: A gets nothing.
    """
    runs = {static: list(run) for static, run in groupby(members, key=lambda each: each.group_instance_id is not None)}
    key = lambda each: (each.group_instance_id or "", each.member_id)  # noqa: E731
    return sorted(runs.get(True, []), key=key) + sorted(runs.get(False, []), key=key)


def read_by_librdkafka(group: Group) -> Group:
    """Remove members that name no topic: librdkafka cannot read their subscription and leaves them out.

    They are sent no assignment, and their claims are ignored.
    """
    return Group(tuple(member for member in group.members if member.topics), group.topics)


def librdkafka_compare(one: Member, other: Member) -> int:
    """Compare two static members by instance id, any other pair by member id: not transitive in a mixed group."""
    both_static = one.group_instance_id is not None and other.group_instance_id is not None
    mine, theirs = (
        (one.group_instance_id or "", other.group_instance_id or "")
        if both_static
        else (one.member_id, other.member_id)
    )
    return (mine > theirs) - (mine < theirs)


def merge_sort(items: Sequence[T], compare: Callable[[T, T], int]) -> list[T]:
    """Sort as `qsort` of the GNU C library does: the order of merging decides if `compare` contradicts itself."""
    if len(items) < 2:
        return list(items)
    middle = len(items) // 2
    left, right = merge_sort(items[:middle], compare), merge_sort(items[middle:], compare)
    merged: list[T] = []
    at = 0
    for each in left:
        while at < len(right) and compare(each, right[at]) > 0:
            merged.append(right[at])
            at += 1
        merged.append(each)
    return merged + right[at:]


# Enumerate the orders in which a library may iterate over a map or a set without a fixed order.


MOST_RUNS = 720
"""Maximum runs of an assignor: all orders of six topics."""

MOST_WORK = 500_000
"""Maximum number of members and partitions that all runs together process: large groups get fewer orders."""


@dataclass(slots=True)
class Choices:
    """One run through all open choices: `path` decides the first ones; the others take the first candidate."""

    path: tuple[int, ...] = ()
    taken: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    def pick(self, candidates: Sequence[T]) -> T:
        """Return the candidate that this run takes."""
        if len(candidates) == 1:
            return candidates[0]
        at = len(self.taken)
        self.taken.append(self.path[at] if at < len(self.path) else 0)
        self.open.append(len(candidates))
        return candidates[self.taken[-1]]

    def order(self, candidates: Sequence[T]) -> list[T]:
        """Return the candidates in the order that this run takes."""
        left = list(candidates)
        ordered: list[T] = []
        while left:
            chosen = self.pick(left)
            left.remove(chosen)
            ordered.append(chosen)
        return ordered

    def following(self) -> Choices | None:
        """Return the next run, which varies the last choice first; None after the last one."""
        for at in reversed(range(len(self.taken))):
            if self.taken[at] + 1 < self.open[at]:
                return Choices((*self.taken[:at], self.taken[at] + 1))
        return None


def most_runs(group: Group) -> int:
    """Return how many runs a group of this size may take, at least one."""
    return min(MOST_RUNS, 1 + MOST_WORK // (1 + len(group.members) + sum(group.topics.values())))


@dataclass(slots=True)
class PossiblePlans:
    """The distinct plans of all runs, at most `most` runs; `cut` is true at the end if there were more."""

    assign: Callable[[Choices], LeaderPlan]
    most: int = MOST_RUNS
    cut: bool = False

    def __iter__(self) -> Iterator[LeaderPlan]:
        """Yield each plan once, in the order of the runs."""
        seen: list[LeaderPlan] = []
        choices = Choices()
        for _ in range(self.most):
            plan = self.assign(choices)
            if plan not in seen:
                seen.append(plan)
                yield plan
            following = choices.following()
            if following is None:
                return
            choices = following
        self.cut = True
