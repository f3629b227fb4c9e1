"""What a custom assignor is given and what it gives: one consumer group in plain Python values.

    from groupledger.core.custom import Group, assignor

    @assignor(name="everything-to-the-first")
    def assign(group: Group) -> dict[str, list[TopicPartition]]:
        first = min(member.member_id for member in group.members)
        return {first: list(group.partitions(first))}

The function must be pure: no clock, no I/O, nothing kept between calls. The order of members, topics and owned
partitions means nothing, and must not change the answer.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., object])


class Protocol(enum.StrEnum):
    """How members rejoin (KIP-429): after giving everything up, or keeping what they own."""

    EAGER = "EAGER"
    COOPERATIVE = "COOPERATIVE"


class TopicPartition(NamedTuple):
    """One partition of a topic; a plain pair is as good."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member as it joined. `owned` is what it says it owns, in its `generation` (KIP-792; None: not said)."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """All members, and the partition count of each subscribed topic; one without metadata is not in `topics`."""

    members: tuple[Member, ...]
    topics: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A view that cannot be changed, of a copy."""
        object.__setattr__(self, "topics", MappingProxyType(dict(self.topics)))

    def partitions(self, member_id: str) -> Iterator[TopicPartition]:
        """All partitions of the topics a member subscribes to, topics in order of their names."""
        for topic in sorted(
            {topic for member in self.members if member.member_id == member_id for topic in member.topics}
        ):
            yield from (TopicPartition(topic, number) for number in range(self.topics.get(topic, 0)))


Lists = Mapping[str, Iterable[tuple[str, int]]]
"""Partitions by member id; a member that is missing gets none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What this round gives, and where the group is to be at last. A function may give plain `Lists` for both."""

    assigned: Lists
    target: Lists


class Overlap(NamedTuple):
    """A partition that several members say they own. `owner`: who said so in the highest generation, if only one."""

    partition: TopicPartition
    claimants: tuple[str, ...]
    owner: str | None


def assignor(
    *, name: str | None = None, supported_protocols: Iterable[Protocol] = (Protocol.EAGER,)
) -> Callable[[F], F]:
    """Say of a function by which name members join with it (None: no record is held against it), and how they rejoin.

    Of both protocols, members would choose COOPERATIVE. A function that is not marked is EAGER and has no name.
    """

    def mark(function: F) -> F:
        function.__dict__["assignor_name"] = name
        function.__dict__["supported_protocols"] = tuple(supported_protocols)
        return function

    return mark


def validate_subscription(members: Iterable[Member]) -> tuple[Overlap, ...]:
    """The overlaps of what all members say they own, by partition (KIP-792, "validateSubscription"); none: sound.

    A claims t-0 in generation 4, B in generation 5 -> Overlap(t-0, ("A", "B"), "B"): the claim of A is stale.
    """
    claims: dict[TopicPartition, dict[str, int]] = {}
    for member in members:
        for topic, number in member.owned:
            generation = -1 if member.generation is None else member.generation
            claims.setdefault(TopicPartition(topic, number), {})[member.member_id] = generation
    return tuple(
        Overlap(partition, tuple(sorted(by_member)), _highest(by_member))
        for partition, by_member in sorted(claims.items())
        if len(by_member) > 1
    )


def _highest(by_member: Mapping[str, int]) -> str | None:
    latest = max(by_member.values())
    of_it = [member_id for member_id, generation in by_member.items() if generation == latest]
    return of_it[0] if len(of_it) == 1 else None


def cooperative_step(group: Group, target: Lists, *, set_stale_aside: bool = False) -> Answer:
    """The target, and of it what can be given now: nothing that another member claims and its new one does not.

    KIP-429, step 2.4. A owns t-0 and the target gives it to B -> nobody gets it in this round, then A rejoins.
    With `set_stale_aside` what stale members claim is given at once, though they consume it until they are answered.
    """
    owners = claimants(group, stale=not set_stale_aside)
    wanted = {member_id: tuple(partitions) for member_id, partitions in target.items()}
    assigned = {
        member_id: tuple(each for each in partitions if not is_handed_over(owners, member_id, each))
        for member_id, partitions in wanted.items()
    }
    return Answer(assigned, wanted)


def stale_members(group: Group) -> frozenset[str]:
    """Members whose claims are out of date (KIP-792): of a lower generation than another member states.

    A states 4, B 5, C none -> A: it missed an assignment. C may be on older byte code, and is believed.
    """
    stated = {member.member_id: member.generation for member in group.members if member.generation is not None}
    latest = max(stated.values(), default=0)
    return frozenset(member_id for member_id, generation in stated.items() if generation < latest)


def claimants(group: Group, *, stale: bool = True) -> dict[tuple[str, int], set[str]]:
    """Who says to own each partition; without `stale`, of those whose claims are not out of date."""
    out_of_date = frozenset() if stale else stale_members(group)
    owners: dict[tuple[str, int], set[str]] = {}
    for member in (each for each in group.members if each.member_id not in out_of_date):
        for topic, number in member.owned:
            owners.setdefault((topic, number), set()).add(member.member_id)
    return owners


def is_handed_over(owners: Mapping[tuple[str, int], set[str]], member_id: str, partition: tuple[str, int]) -> bool:
    """Whether the member would get what others still claim, and it does not."""
    claimed_by = owners.get((partition[0], partition[1]), ())
    return bool(claimed_by) and member_id not in claimed_by
