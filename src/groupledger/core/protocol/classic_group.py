"""What groups of the classic protocol share, whether rounds or a clock drive them: a coordinator, a leader, seats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.assignor_names import SOLVED_ALONE, CustomAssignor
from groupledger.core.custom.custom_group import Protocol, TopicPartition
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.client_api import Call, Callback, Seat, Subscription
from groupledger.core.protocol.client_library import algorithm_of, habits_of, require_played
from groupledger.core.protocol.compatibility import SUPPORTED, protocol_of
from groupledger.core.protocol.consumer import Consumer, PartitionCounts, Reaction
from groupledger.core.protocol.coordinator import Coordinator, Registered
from groupledger.core.protocol.event_refusals import BAD_EVENT, require_topic_names
from groupledger.core.protocol.events import RecordedSeat
from groupledger.core.protocol.leader import MissingTopics, Plan, Question, ThreeSets
from groupledger.core.protocol.settlement import MemberRound, Round
from groupledger.core.protocol.simulated_group import SimulatedGroup, SimulatedProcess
from groupledger.core.protocol.topic_patterns import require_pattern
from groupledger.core.rebalance.step import Form

NOBODY = Plan({}, {}, ThreeSets())


@dataclass(slots=True, kw_only=True)
class ClassicProcess(SimulatedProcess):
    """One process and its consumer. `loses`: it never looks at its next assignment, and is silent from then on."""

    consumer: Consumer
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

    def open(self, name: str) -> P:
        """Return the process of this name; raise Fault(BAD_EVENT) unless it runs or is paused."""
        return self.process_of(name)

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

    def take_recorded(self, process: P, seat: RecordedSeat) -> None:
        """Seat a member of the current generation: it holds what it was assigned, and nobody rebalances."""
        process.consumer, sent = c.take_recorded(process.consumer, seat, self.coordinator.generation)
        self.coordinator.seat_recorded(process.registered(seat.member_id, sent), seat)
        if seat.leads:
            self.planned_view = process.consumer.view
        self.begin_recorded(process, seat.assigned)


def seats_of(coordinator: Coordinator) -> tuple[Seat, ...]:
    """Return the members as the coordinator sends them to their leader."""
    return tuple(
        Seat(each.member_id, each.subscription, each.group_instance_id) for each in coordinator.members_in_join_order()
    )


def assign_call(seats: Iterable[Seat]) -> Call:
    """Return the call of a leader's assignor: what all members say they own, and their topics."""
    owned = tuple(sorted({each for seat in seats for each in seat.subscription.owned}))
    return Call(Callback.ASSIGN, owned, tuple(sorted({topic for seat in seats for topic in seat.subscription.topics})))


def member_round(
    process: ClassicProcess,
    member_id: str,
    plan: Plan,
    owned: tuple[TopicPartition, ...],
    done: tuple[bool, bool],
    *times_ms: int,
) -> MemberRound:
    """Return a member's row of a round; `done`: whether it was answered, and whether it joins again."""
    target, assigned = (each.get(member_id, ()) for each in (plan.target, plan.assigned))
    row = process.name, member_id, process.consumer.protocol, owned, target, assigned
    return MemberRound(*row, *done, *times_ms)


# Events that rounds and a clock apply alike; each kind of group adds what only it does.

EventTable = dict[type[e.Event], Callable[[Any, Any], Any]]
"""What applies an event of each kind to a group; in a group with a clock some give questions of a leader."""


def new_consumer(
    settings: e.Join, topics: c.PartitionCounts, form: Form, custom: Mapping[str, CustomAssignor]
) -> c.Consumer:
    """Return the consumer of a classic process that starts; raise Fault: BAD_EVENT, UNKNOWN_ASSIGNOR."""
    if not settings.assignors:
        expected = "at least one, as Kafka's partition.assignment.strategy has it"
        raise Fault(BAD_EVENT, f"{settings.member!r} lists no assignor; expected {expected}")
    if settings.topic_regex is not None:
        require_pattern(settings.member, settings.topic_regex, settings.topics)
    supported = [_supported(custom, each) for each in settings.assignors]
    protocol = Protocol.EAGER if settings.upgrade_from else protocol_of(supported, settings.byte_code)
    consumer = c.Consumer(
        protocol,
        settings.topics,
        topics,
        settings.byte_code,
        form,
        habits=habits_of(settings.library, form),
        pattern=settings.topic_regex,
    )
    return c.look(consumer, topics)


def _supported(custom: Mapping[str, CustomAssignor], assignor: str) -> Iterable[Protocol]:
    if assignor in custom:
        return custom[assignor].supported_protocols
    require_played(assignor)
    if assignor not in ASSIGNORS:
        expected = expected_one_of(assignor, [*ASSIGNORS, *custom])
        raise Fault("UNKNOWN_ASSIGNOR", f"assignor is {assignor!r}; {expected}; {SOLVED_ALONE}")
    return SUPPORTED[assignor]


def _subscribe(group: ClassicGroup[Any], event: e.Subscribe) -> None:
    require_topic_names(event.topics)
    process = group.running(event.member, "subscribe")
    group.react(process, c.change_subscription(process.consumer, event.topics, known=event.known))


def _set_partitions(group: ClassicGroup[Any], event: e.SetPartitions) -> None:
    require_topic_names([event.topic])
    group.change_topics({**group.topics, event.topic: event.partitions})
    _announce(group, event.topic)


def _delete_topic(group: ClassicGroup[Any], event: e.DeleteTopic) -> None:
    group.change_topics({topic: count for topic, count in group.topics.items() if topic != event.topic})
    _announce(group, event.topic)


def _announce(group: ClassicGroup[Any], topic: str) -> None:
    """Let clients learn of a topic: those of a group in which a member subscribes to it, and those with a pattern."""
    known = any(topic in each.consumer.topics for each in group.processes.values() if group.is_known(each))
    for process in group.processes.values():
        if known or process.consumer.subscribes(topic):
            group.learn(process)


def _freeze(group: ClassicGroup[Any], event: e.FreezeMetadata) -> None:
    group.open(event.member).freeze(event.rounds)


def _refresh(group: ClassicGroup[Any], event: e.RefreshMetadata) -> None:
    process = group.open(event.member)
    process.frozen = False
    group.learn(process)


def _miss(group: ClassicGroup[Any], event: e.MissAssignment) -> None:
    group.open(event.member).misses = 1 + event.after


def _lose(group: ClassicGroup[Any], event: e.LoseAssignment) -> None:
    group.open(event.member).loses = True


def _miss_topic(group: ClassicGroup[Any], event: e.MissTopic) -> None:
    require_topic_names([event.topic])
    group.missing.miss(event.topic, event.rounds)


def wait(group: object, event: e.Wait) -> None:
    """Do nothing: the time has passed already."""


CLASSIC_EVENTS: EventTable = {
    e.Subscribe: _subscribe,
    e.SetPartitions: _set_partitions,
    e.DeleteTopic: _delete_topic,
    e.FreezeMetadata: _freeze,
    e.RefreshMetadata: _refresh,
    e.MissAssignment: _miss,
    e.LoseAssignment: _lose,
    e.MissTopic: _miss_topic,
    e.Wait: wait,
}
