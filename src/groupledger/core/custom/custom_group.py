"""Define a custom assignor's input and output: one consumer group in plain Python values.

    from groupledger.core.custom import Group, assignor

    @assignor(name="everything-to-the-first")
    def assign(group: Group) -> dict[str, list[TopicPartition]]:
        first = min(member.member_id for member in group.members)
        return {first: list(group.partitions(first))}

The function must be pure: no clock, no I/O, no state between calls. The order of members, topics and owned partitions
has no meaning, and must not change the answer.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., object])


class Protocol(enum.StrEnum):
    """How members rejoin (KIP-429): after revoking everything, or keeping what they own."""

    EAGER = "EAGER"
    COOPERATIVE = "COOPERATIVE"


class TopicPartition(NamedTuple):
    """One partition of a topic; a plain pair works as well."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member as it joined. `owned` is what it claims to own, in its `generation` (KIP-792; None: not stated)."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """All members, and the partition count of each subscribed topic; topics without metadata are not in `topics`."""

    members: tuple[Member, ...]
    topics: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make `topics` a read-only copy."""
        object.__setattr__(self, "topics", MappingProxyType(dict(self.topics)))

    def partitions(self, member_id: str) -> Iterator[TopicPartition]:
        """Yield all partitions of the topics that a member subscribes to, topics sorted by name."""
        for topic in sorted(
            {topic for member in self.members if member.member_id == member_id for topic in member.topics}
        ):
            yield from (TopicPartition(topic, number) for number in range(self.topics.get(topic, 0)))


Lists = Mapping[str, Iterable[tuple[str, int]]]
"""Partitions by member id; a missing member gets none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The assignment of this round, and the target. A function may return plain `Lists` for both."""

    assigned: Lists
    target: Lists


class Overlap(NamedTuple):
    """A partition with several claimants. `owner`: the only one that claims it in the highest generation, if any."""

    partition: TopicPartition
    claimants: tuple[str, ...]
    owner: str | None


def assignor(
    *, name: str | None = None, supported_protocols: Iterable[Protocol] = (Protocol.EAGER,)
) -> Callable[[F], F]:
    """Declare the name that members join with (None: records are not checked against it), and how they rejoin.

    If both protocols are given, members choose COOPERATIVE. An unmarked function is EAGER and has no name.
    """

    def mark(function: F) -> F:
        function.__dict__["assignor_name"] = name
        function.__dict__["supported_protocols"] = tuple(supported_protocols)
        return function

    return mark


def validate_subscription(members: Iterable[Member]) -> tuple[Overlap, ...]:
    """Return the overlaps of all members' claims, by partition (KIP-792, "validateSubscription"); empty if sound.

    A claims t-0 in generation 4, B in generation 5 -> Overlap(t-0, ("A", "B"), "B"): A's claim is stale.
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
    """Return the target, and what can be given now: nothing that others claim and the new owner does not.

    KIP-429, step 2.4. A owns t-0 and the target gives it to B -> no member gets it in this round, then A rejoins.
    With `set_stale_aside`, claims of stale members are given away at once, though they consume until they are answered.
    """
    owners = claimants(group, stale=not set_stale_aside)
    wanted = {member_id: tuple(partitions) for member_id, partitions in target.items()}
    assigned = {
        member_id: tuple(each for each in partitions if not is_handed_over(owners, member_id, each))
        for member_id, partitions in wanted.items()
    }
    return Answer(assigned, wanted)


def stale_members(group: Group) -> frozenset[str]:
    """Return the members with outdated claims (KIP-792): a lower generation than another member states.

    A states 4, B 5, C none -> A: it missed an assignment. C may run older code, and its claims count.
    """
    stated = {member.member_id: member.generation for member in group.members if member.generation is not None}
    latest = max(stated.values(), default=0)
    return frozenset(member_id for member_id, generation in stated.items() if generation < latest)


def claimants(group: Group, *, stale: bool = True) -> dict[tuple[str, int], set[str]]:
    """Map each partition to its claimants, or, without `stale`, only to those whose claims are not outdated."""
    out_of_date = frozenset() if stale else stale_members(group)
    owners: dict[tuple[str, int], set[str]] = {}
    for member in (each for each in group.members if each.member_id not in out_of_date):
        for topic, number in member.owned:
            owners.setdefault((topic, number), set()).add(member.member_id)
    return owners


def is_handed_over(owners: Mapping[tuple[str, int], set[str]], member_id: str, partition: tuple[str, int]) -> bool:
    """Return whether the member would get what others still claim and it does not."""
    claimed_by = owners.get((partition[0], partition[1]), ())
    return bool(claimed_by) and member_id not in claimed_by


# Limit how long custom code may run and how much memory it may use: `limits.custom_*` of the configuration.

SECONDS, MEMORY_MB = 30, 2_048
"""Default limits for custom code."""


@dataclass(frozen=True, slots=True)
class CustomLimits:
    """Limits for all calls for one group together, and for the import of the function's module."""

    seconds: int = SECONDS
    memory_mb: int = MEMORY_MB


DEFAULT = CustomLimits()


@dataclass(frozen=True, slots=True)
class CustomAssignor:
    """A custom assignor, under the name it was requested by. It can be pickled: it names its code."""

    name: str
    function: Callable[..., Any] | None  # runs in this process; None: `source` runs in a process of its own
    supported_protocols: frozenset[Protocol]
    protocol_name: str | None  # the name by which members join; None: no record is of this assignor
    source: str = ""  # module:function
    digest: str = ""  # of the module's source
    limits: CustomLimits = DEFAULT

    @property
    def cooperative(self) -> bool:
        """Return whether members keep what they own while they rejoin."""
        return Protocol.COOPERATIVE in self.supported_protocols
