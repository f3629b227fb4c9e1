"""What groups of the classic protocol share, whether rounds or a clock drive them: a coordinator, a leader, seats."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from groupledger.core.arrays.java_orders import hash_texts, map_order
from groupledger.core.arrays.kernels import run
from groupledger.core.custom.custom_group import CustomAssignor, TopicPartition
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.consumer import (
    Call,
    Callback,
    Consumer,
    Error,
    PartitionCounts,
    Reaction,
    Seat,
    Subscription,
    Times,
)
from groupledger.core.protocol.events import RecordedSeat
from groupledger.core.protocol.leader import MissingTopics, PartitionsByMember, Plan, Question, ThreeSets, algorithm_of
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.settlement import MemberRound, Round
from groupledger.core.protocol.simulated_group import Applications, Records, SimulatedGroup, SimulatedProcess
from groupledger.core.rebalance.step import Form

# The broker's side of a classic group: who has a seat, which generation it is, which assignor and leader are chosen.
#
# It never looks into a subscription (KIP-792: the metadata is read by the leader alone).


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

    def refuses(self, process: str, assignors: tuple[str, ...]) -> str | None:
        """Return why a newcomer is refused (INCONSISTENT_GROUP_PROTOCOL: no assignor in common); None: it is not."""
        others = [each.assignors for each in self.members.values() if each.process != process]
        if set(assignors).intersection(*map(set, others)):
            return None
        listed = "; ".join(sorted({", ".join(each) for each in others}))
        return f"{process} lists {', '.join(assignors)}; expected one that all members list ({listed})"

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

    def remove_absent(self, joined: Container[str]) -> list[str]:
        """Remove dynamic members that have not joined, and return their ids; static ones keep what they last sent."""
        members = self.members.items()
        absent = [each for each, known in members if each not in joined and known.group_instance_id is None]
        for member_id in absent:
            self.remove(member_id)
        return absent

    def error_for(self, member_id: str | None, generation: int | None) -> Error | None:
        """Return the error that a request of an unknown member or another generation gets; None: it is neither."""
        if member_id not in self.members:
            return Error.UNKNOWN_MEMBER_ID
        return None if generation == self.generation else Error.ILLEGAL_GENERATION

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


# The group, and its processes.

NOBODY = Plan({}, {}, ThreeSets())


@dataclass(slots=True, kw_only=True)
class ClassicProcess(SimulatedProcess):
    """One process and its consumer.

    `must_rejoin`: it wants to join or has to, at first too. `loses`: it never looks at its next assignment, and is
    silent from then on.
    """

    consumer: Consumer
    must_rejoin: bool = True
    frozen: bool = False  # learns nothing of topics
    frozen_rounds: int = 0  # after which it does; 0: only at RefreshMetadata
    loses: bool = False

    def registered(self, member_id: str, sent: Subscription) -> Registered:
        """Return what the coordinator knows of it after a JoinGroup."""
        return Registered(self.name, member_id, self.settings.assignors, sent, self.instance_id)

    def look(self, topics: PartitionCounts) -> None:
        """Fetch metadata before JoinGroup, unless it is frozen and its client fetches none there."""
        if not self.frozen or self.consumer.refreshes:
            self.consumer = c.look(self.consumer, topics)

    def freeze(self, rounds: int) -> None:
        """Learn nothing more of topics, for so many rounds or until it is refreshed."""
        self.frozen, self.frozen_rounds = True, rounds

    def thaw(self) -> bool:
        """Count one round less in which it learns nothing of topics; return whether it learns of them now."""
        if not (self.frozen and self.frozen_rounds):
            return False
        self.frozen_rounds -= 1
        self.frozen = self.frozen_rounds > 0
        return not self.frozen


P = TypeVar("P", bound=ClassicProcess)


@dataclass(slots=True, kw_only=True)
class ClassicGroup(SimulatedGroup[P]):
    """A group whose leader assigns. `planned_view`: the topics by which it did so last."""

    coordinator: Coordinator = field(default_factory=Coordinator)
    rounds: list[Round] = field(default_factory=list)  # since the last settlement
    planned_view: PartitionCounts = field(default_factory=dict)
    missing: MissingTopics = field(default_factory=MissingTopics)
    _wanted: tuple[tuple[Coordinator, int, PartitionCounts], set[TopicPartition]] | None = None

    def wanted(self) -> set[TopicPartition]:
        """Return the partitions of existing topics that a member subscribes to."""
        known, seats = self._wanted, self.coordinator.changes
        if known is not None and known[0][0] is self.coordinator and known[0][1:] == (seats, self.topics):
            return known[1]
        topics = {topic for each in self.coordinator.members.values() for topic in each.subscription.topics}
        wanted = {TopicPartition(topic, at) for topic in topics for at in range(self.topics.get(topic, 0))}
        self._wanted = (self.coordinator, seats, self.topics), wanted
        return wanted

    def is_seated(self, process: P) -> bool:
        """Return whether a process runs and is a member."""
        return process.runs and process.member_id in self.coordinator.members

    def error_of(self, process: P) -> Error | None:
        """Return the error that a request of this process gets now; None: it is a member of this generation."""
        return self.coordinator.error_for(process.member_id, process.generation)

    def is_known(self, process: P) -> bool:
        """Return whether the group's metadata has the topics that a process subscribes to."""
        return True

    @abstractmethod
    def learn(self, process: P) -> None:
        """Let a process learn of the topics that there are."""

    @abstractmethod
    def react(self, process: P, reaction: Reaction) -> None:
        """Take what a consumer did: its calls, and whether it joins again."""

    def unowned(self, owned: Iterable[Iterable[TopicPartition]]) -> tuple[TopicPartition, ...]:
        """Return the wanted partitions that are in none of these."""
        return tuple(sorted(self.wanted().difference(*owned)))

    def question(self, leader: P, assignor: str | None, seats: tuple[Seat, ...]) -> Question:
        """Return what a leader asks its assignor, by the topics that it knows now."""
        if assignor is None:
            raise AssertionError("members met without a common assignor; expected the last one to have been refused")
        self.planned_view = self.missing.known(self.topics if leader.consumer.habits.asks else leader.consumer.view)
        algorithm = algorithm_of(leader.settings.library, assignor)
        return Question(algorithm, seats, self.planned_view, self.form, leader.settings.byte_code)

    def new_round(self, number: int, started_ms: int, unavailable: tuple[TopicPartition, ...]) -> Round:
        """Return the round of the current generation as it begins."""
        leader = self.coordinator.members.get(self.coordinator.leader or "")
        name = None if leader is None else leader.process
        of = number, self.coordinator.generation, self.coordinator.assignor, name
        return Round(*of, (), NOBODY.sets, unavailable, started_ms, started_ms)

    def take_recorded(self, process: P, seat: RecordedSeat) -> None:
        """Seat a member of the current generation: it holds what it was assigned, and nobody rebalances."""
        process.consumer, sent = c.take_recorded(process.consumer, seat, self.coordinator.generation)
        process.must_rejoin = False
        self.coordinator.seat_recorded(process.registered(seat.member_id, sent), seat)
        if seat.leads:
            self.planned_view = process.consumer.view
        self.begin_recorded(process, seat.assigned)

    def undone(self, process: P, sent: Subscription, leads: bool) -> bool:
        """Return whether a static member that took its seat back has to join, in the form `kip` (decision 0032).

        It led, and the topics are no longer those of the assignment; or what its predecessor had claimed (`sent`) is to
        go to another, who waits for it to be revoked.
        """
        unseen = leads and self.planned_view != process.consumer.view
        return self.form is Form.KIP and (unseen or not process.consumer.owned.issuperset(sent.owned))

    def subscribe(self, process: P, topics: tuple[str, ...], *, known: bool) -> None:
        """Subscribe to other topics."""
        self.react(process, c.change_subscription(process.consumer, topics, known=known))

    def set_partitions(self, topic: str, partitions: int) -> None:
        """Make a topic, or give it more partitions."""
        self.change_topics({**self.topics, topic: partitions})
        self._announce(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self.change_topics({name: count for name, count in self.topics.items() if name != topic})
        self._announce(topic)

    def _announce(self, topic: str) -> None:
        """Let clients learn of a topic: of a group in which a member subscribes to it, and those with a pattern."""
        known = any(topic in each.consumer.topics for each in self.processes.values() if self.is_known(each))
        for process in self.processes.values():
            if known or process.consumer.subscribes(topic):
                self.learn(process)

    def led(self, whose: str) -> ClassicGroup[P]:
        """Return the group: its leader assigns by its metadata."""
        return self

    def refresh(self, process: P) -> None:
        """Let a process whose metadata was frozen learn of the topics that there are."""
        process.frozen = False
        self.learn(process)

    def lose_assignment(self, name: str) -> None:
        """Let a process never look at its next assignment."""
        self.process_of(name).loses = True


def seats_of(coordinator: Coordinator) -> tuple[Seat, ...]:
    """Return the members as the coordinator sends them to their leader."""
    return tuple(
        Seat(each.member_id, each.subscription, each.group_instance_id) for each in coordinator.members_in_join_order()
    )


def assign_call(seats: Iterable[Seat]) -> Call:
    """Return the call of a leader's assignor: what all members say they own, and their topics."""
    owned = tuple(sorted({each for seat in seats for each in seat.subscription.owned}))
    return Call(Callback.ASSIGN, owned, tuple(sorted({topic for seat in seats for topic in seat.subscription.topics})))


def ended(begun: Round, members: Iterable[MemberRound], plan: Plan, ended_ms: int) -> Round:
    """Return a round as it ended."""
    return replace(begun, members=tuple(members), sets=plan.sets, ended_ms=ended_ms, failure=plan.failure)


def member_round(
    process: ClassicProcess,
    member_id: str,
    plan: Plan,
    owned: tuple[TopicPartition, ...],
    done: Iterable[bool],
    *times_ms: int,
) -> MemberRound:
    """Return a member's row of a round; `done`: whether it was answered, and whether it joins again."""
    target, assigned = (each.get(member_id, ()) for each in (plan.target, plan.assigned))
    row = process.name, member_id, process.consumer.protocol, owned, target, assigned
    return MemberRound(*row, *done, *times_ms)


G = TypeVar("G", bound=ClassicGroup[Any])


def of_script(
    kind: type[G],
    script: Script,
    times: Times | None,
    custom: Mapping[str, CustomAssignor],
    applications: Applications | None,
) -> G:
    """Return the group of a script before its first event."""
    rate = None if times is None else times.records_per_second
    group = kind(
        topics=dict(script.topics),
        form=script.form,
        pace=script.pace if times is None else replace(script.pace, round_ms=times.each.round_trip_ms),
        custom=custom,
        coordinator=Coordinator(known_ids=script.member_ids, generation=script.generation),
        times=times,
        records=None if rate is None else Records(rate),
        applications=applications,
    )
    group.change_topics(group.topics)
    return group
