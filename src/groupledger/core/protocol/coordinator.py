"""The broker's side of a classic group: who has a seat, which generation it is, which assignor and leader are chosen.

It never looks into a subscription (KIP-792: the metadata is read by the leader alone).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from groupledger.core.arrays.java_orders import hash_texts, map_order
from groupledger.core.arrays.kernels import run
from groupledger.core.faults import Fault
from groupledger.core.protocol.client_api import Subscription
from groupledger.core.protocol.events import RecordedSeat
from groupledger.core.protocol.leader import PartitionsByMember


@dataclass(slots=True)
class Registered:
    """A member as the coordinator knows it; `subscription` is what it last sent."""

    process: str
    member_id: str
    assignors: tuple[str, ...]
    subscription: Subscription
    group_instance_id: str | None


@dataclass(slots=True)
class Coordinator:
    """One group. `given` is the assignment of the current generation, by member id.

    `known_ids`: member ids that processes had in reality, in order; they decide ties, as in Kafka.
    """

    members: dict[str, Registered] = field(default_factory=dict)  # in the order in which they got their seats
    generation: int = 0
    assignor: str | None = None
    leader: str | None = None
    given: PartitionsByMember = field(default_factory=dict)
    rebalancing: bool = False
    known_ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    changes: int = 0  # of the seats
    _ids: Counter[str] = field(default_factory=Counter)

    def new_member_id(self, process: str) -> str:
        """`name-1`, `name-2`: a further one each time a process comes without; `known_ids` before these."""
        known = self.known_ids.get(process, ())
        while True:
            self._ids[process] += 1
            number = self._ids[process]
            found = known[number - 1] if number <= len(known) else f"{process}-{number}"
            if found not in self.members:  # a recorded member may have any id
                return found

    def adopt_ids(self, other: Coordinator) -> None:
        """Continue the numbering of processes from another coordinator of the group."""
        self._ids = other._ids

    def require_common_assignor(self, process: str, assignors: tuple[str, ...]) -> None:
        """Raise Fault("INCONSISTENT_GROUP_PROTOCOL") where a newcomer has no assignor that all others have."""
        others = [each.assignors for each in self.members.values() if each.process != process]
        common = set(assignors).intersection(*map(set, others))
        if not common:
            listed = "; ".join(sorted({", ".join(each) for each in others}))
            message = f"{process} lists {', '.join(assignors)}; expected one that all members list ({listed})"
            raise Fault("INCONSISTENT_GROUP_PROTOCOL", message)

    def seat(self, member: Registered) -> None:
        """Take a JoinGroup: a new seat, or what a member says now; its seat keeps its place.

        The first to be seated leads, as in Kafka: the first member of the response may have come later.
        """
        self.members[member.member_id] = member
        self.leader = self.leader or member.member_id
        self.changes += 1

    def seat_recorded(self, member: Registered, seat: RecordedSeat) -> None:
        """Take a member of the current generation as it was recorded."""
        self.seat(member)
        if seat.leads:
            self.leader = member.member_id
        self.given = {**self.given, member.member_id: seat.assigned}
        self.assignor = choose_assignor([each.assignors for each in self.members_in_join_order()])

    def remove(self, member_id: str) -> None:
        """Remove a member that left or expired: the others rebalance. If it led, the first of those who stay leads."""
        if self.members.pop(member_id, None) is not None:
            self.rebalancing = True
            self.changes += 1
        if self.leader == member_id:
            self.leader = next((each.member_id for each in self.members_in_join_order()), None)

    def static_seat(self, group_instance_id: str | None) -> Registered | None:
        """Return the seat of a static member by its instance id."""
        found = (each for each in self.members.values() if each.group_instance_id == group_instance_id)
        return None if group_instance_id is None else next(found, None)

    def replace(self, old: str, member: Registered) -> None:
        """Give a static member a new id: same generation, same assignment, the leader stays the leader."""
        self.members = {
            member.member_id if member_id == old else member_id: member if member_id == old else each
            for member_id, each in self.members.items()
        }
        self.given = {member.member_id if member_id == old else member_id: g for member_id, g in self.given.items()}
        self.leader = member.member_id if self.leader == old else self.leader
        self.changes += 1

    def start_generation(self, joined: Iterable[str]) -> None:
        """All have joined: the next generation and its assignor; `joined` are those that just did.

        The leader leads on; one that did not join is followed by the first of those that did.
        """
        self.generation += 1
        self.rebalancing = False
        self.given = {}
        self.assignor = choose_assignor([each.assignors for each in self.members_in_join_order()])
        present = set(joined)
        if self.leader not in present:
            self.leader = next(
                (each.member_id for each in self.members_in_join_order() if each.member_id in present), self.leader
            )

    def members_in_join_order(self) -> list[Registered]:
        """Members in the order of the JoinGroup response: as Java's hash map of member ids is walked."""
        return [self.members[each] for each in _walked(tuple(self.members))]


def choose_assignor(listed: list[tuple[str, ...]]) -> str | None:
    """Each member votes for the first of its assignors that all members list.

    Of equals the first in the order of Java's hash map of their names, as in Kafka's `selectProtocol`.
    """
    if not listed:
        return None
    common = set(listed[0]).intersection(*map(set, listed))
    votes = Counter(next(each for each in assignors if each in common) for assignors in listed if common)
    return max(_walked(tuple(votes)), key=lambda each: votes[each], default=None)


@functools.lru_cache(maxsize=256)
def _walked(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Keys of a Java hash map, put in this order, as the map is walked. A group asks again each round."""
    order = np.arange(len(texts), dtype=np.int32)
    run(map_order, hash_texts(texts), order, len(texts), cells=len(texts))
    return tuple(texts[at] for at in order.tolist())
