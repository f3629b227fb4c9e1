"""The log of a KIP-848 group, as its coordinator writes it, with what led to each epoch as its label."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from groupledger.core.wire.consumer_protocol import TopicPartitions
from groupledger.core.wire.offsets_log import LogKey, RecordKind
from groupledger.core.wire.records import (
    AssignedTopic,
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    MemberMetadata,
    RecordValue,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TopicIdPartitions,
)
from tests.corpus.classic_log import REBALANCE_MS, Named, partitions, record_line
from tests.corpus.history import History, Label, Line
from tests.corpus.topics import BEGIN_MS, Topics

STABLE, UNREVOKED, UNRELEASED = range(3)
FIRST_EPOCH = 2
EPOCH, MEMBER, TARGET_EPOCH, TARGET, CURRENT = (
    (RecordKind.CONSUMER_GROUP_METADATA, 3),
    (RecordKind.CONSUMER_GROUP_MEMBER_METADATA, 5),
    (RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, 6),
    (RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, 7),
    (RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, 8),
)


@dataclass(frozen=True, slots=True)
class ModernSeat:
    """A member, and what it has; `epoch`: the one that it has reached."""

    client_id: str
    member_id: str
    topics: tuple[str, ...]
    instance: str | None = None
    rack: str | None = None
    has: TopicPartitions = ()
    target: TopicPartitions | None = None
    epoch: int = 0


class ModernLog:
    """`log.join("c1"); log.settle({"c1": "a:0-3"})`: what happens is noted, and is the cause of the next epoch."""

    def __init__(
        self, title: str, what: str, topics: Mapping[str, int], group: str = "orders", assignor: str = "uniform"
    ) -> None:
        self.title, self.what, self.assignor, self.group = title, what, assignor, group
        self.topics, self.label = Topics(title, topics), Label()
        self.lines: list[Line] = []
        self.seats: dict[str, ModernSeat] = {}
        self.now_ms, self.epoch = BEGIN_MS, FIRST_EPOCH - 1
        self._noted: list[str] = []
        self._said: list[str] = []
        self._left: list[ModernSeat] = []
        self._made = 0

    # what happens

    def join(
        self, name: str, topics: Sequence[str] = (), instance: str | None = None, rack: str | None = None
    ) -> ModernLog:
        """A process subscribes (to all topics there are, if none are named) and joins."""
        named = tuple(topics) or tuple(sorted(self.topics.there))
        self.seats[name] = ModernSeat(name, self._new_id(), named, instance, rack)
        self._said.append(name)
        self._noted.append("member-joined")
        return self

    def gone(self, name: str) -> ModernLog:
        """A member leaves, or its session ends."""
        self._left.append(self.seats.pop(name))
        self._noted.append("member-gone")
        return self

    def subscribe(self, name: str, *topics: str) -> ModernLog:
        """A member subscribes to other topics."""
        self.seats[name] = replace(self.seats[name], topics=topics)
        self._said.append(name)
        self._noted.append("subscription-changed")
        return self

    def change(self, topic: str, count: int | None, seconds: int = 30) -> ModernLog:
        """A topic is made, grows or is deleted (None)."""
        self.now_ms += 1_000 * seconds
        self._noted.append(self.topics.change(self.now_ms, topic, count))
        return self

    def choose(self, assignor: str) -> ModernLog:
        """Members ask for another assignor."""
        self.assignor = assignor
        self._said += self.seats
        self._noted.append("assignor-changed")
        return self

    def pause(self, seconds: int) -> ModernLog:
        """Nothing happens for a while."""
        self.now_ms += 1_000 * seconds
        return self

    # what the coordinator writes

    def settle(self, has: Named, seconds: int = 30, *, leaving_out: str | None = None) -> ModernLog:
        """The next epoch, until everybody has its target; but for one that waits on and on."""
        given = {name: partitions(text) for name, text in has.items()}
        return self.write_epoch(given, seconds, leaving_out=leaving_out)

    def write_epoch(
        self, has: Mapping[str, TopicPartitions], seconds: int = 30, *, leaving_out: str | None = None
    ) -> ModernLog:
        """`settle` with partitions as they are."""
        assert has.keys() == self.seats.keys()
        self.now_ms += 1_000 * seconds
        self._begin_epoch()
        for name, seat in self.seats.items():
            if seat.target != has[name]:
                self._put(TARGET, TargetAssignmentMember(self._assigned(has[name])), seat.member_id)
                self.seats[name] = replace(seat, target=has[name])
        self._put(TARGET_EPOCH, TargetAssignmentMetadata(self.epoch))
        self._reconcile({name: () if name == leaving_out else target for name, target in has.items()})
        first = self.epoch == FIRST_EPOCH
        emptied = not self.seats and self.epoch > FIRST_EPOCH
        noted = ["group-born"] if first else ["group-emptied"] if emptied else self._noted
        assert noted, self.title
        self.label.cause(self.epoch, *noted)
        self._noted = []
        return self

    def _begin_epoch(self) -> None:
        for seat in self._left:
            for kind in (CURRENT, TARGET, MEMBER):
                self._put(kind, None, seat.member_id)
        for name in dict.fromkeys(self._said):
            self._put(MEMBER, self._metadata(self.seats[name]), self.seats[name].member_id)
        self._left, self._said = [], []
        self.epoch += 1
        self._put(EPOCH, ConsumerGroupMetadata(self.epoch))

    def _reconcile(self, has: Mapping[str, TopicPartitions]) -> None:
        """A second between two steps. Those that give something up first; then those that get something."""
        for name, seat in self.seats.items():
            kept, pending = _less(seat.has, has[name])
            if pending:
                self._hold(name, kept, seat.epoch, UNREVOKED, pending)
                self.now_ms += 1_000
                self._hold(name, kept, self.epoch, STABLE if kept == has[name] else UNRELEASED)
                self.now_ms += 1_000
        for name, seat in self.seats.items():
            if seat.has != has[name] or seat.epoch != self.epoch:
                self._hold(name, has[name], self.epoch, STABLE)
                self.now_ms += 1_000

    def come_back(self, name: str, seconds: int = 30, rack: str | None = None) -> ModernLog:
        """A static member comes back under a new member id, in the same epoch."""
        old = self.seats[name]
        self.now_ms += 1_000 * seconds
        for kind in (CURRENT, TARGET, MEMBER):
            self._put(kind, None, old.member_id)
        seat = self.seats[name] = replace(old, member_id=self._new_id(), rack=rack or old.rack)
        self._put(MEMBER, self._metadata(seat), seat.member_id)
        self._put(TARGET, TargetAssignmentMember(self._assigned(seat.target or ())), seat.member_id)
        self._hold(name, seat.has, 0, STABLE)
        self._hold(name, seat.has, self.epoch, STABLE)
        self.label.cause(self.epoch, "member-restarted")
        return self

    def hold(self, name: str, text: str, seconds: int = 1) -> ModernLog:
        """A coordinator that is wrong: a member is recorded to have this, whatever its target is."""
        self.now_ms += 1_000 * seconds
        self._hold(name, partitions(text), self.epoch, STABLE)
        return self

    def delete(self, seconds: int = 30) -> ModernLog:
        """The group's tombstones."""
        self.now_ms += 1_000 * seconds
        self._put(TARGET_EPOCH, None)
        self._put(EPOCH, None)
        self.label.cause(None, "group-deleted")
        return self

    def find(self, code: str, records: int = 1, severity: str | None = None) -> ModernLog:
        """This epoch shows this."""
        self.label.find(code, self.epoch, records, severity)
        return self

    def history(self, origin: str = "made") -> History:
        """What was written."""
        assert not self._noted, f"{self.title}: {self._noted} led to no epoch"
        return History(self.title, self.what, origin, self.lines, self.topics.lines, self.label)

    def _hold(self, name: str, has: TopicPartitions, epoch: int, state: int, pending: TopicPartitions = ()) -> None:
        seat = self.seats[name]
        value = CurrentMemberAssignment(epoch, seat.epoch, state, self._held(has), self._held(pending))
        self._put(CURRENT, value, seat.member_id)
        self.seats[name] = replace(seat, has=has, epoch=epoch)

    def _metadata(self, seat: ModernSeat) -> MemberMetadata:
        return MemberMetadata(
            seat.instance, seat.rack, seat.client_id, "/10.0.0.1", seat.topics, None, REBALANCE_MS, self.assignor
        )

    def _assigned(self, has: TopicPartitions) -> tuple[AssignedTopic, ...]:
        return tuple(AssignedTopic(self.topics.topic_id(topic), numbers) for topic, numbers in has)

    def _held(self, has: TopicPartitions) -> tuple[TopicIdPartitions, ...]:
        return tuple(TopicIdPartitions(self.topics.topic_id(topic), numbers) for topic, numbers in has)

    def _put(self, of: tuple[RecordKind, int], value: RecordValue | None, member: str | None = None) -> None:
        kind, number = of
        key = LogKey(kind, number, self.group, {} if member is None else {"member_id": member})
        self.lines.append(record_line(len(self.lines), self.now_ms, key, 0, value))

    def _new_id(self) -> str:
        self._made += 1
        digest = hashlib.sha256(f"{self.title}/{self._made}".encode()).digest()[:16]
        return urlsafe_b64encode(digest).decode().rstrip("=")


def _less(has: TopicPartitions, wanted: TopicPartitions) -> tuple[TopicPartitions, TopicPartitions]:
    """What stays of what a member has, and what it has to give up."""
    keeps = {(topic, number) for topic, numbers in wanted for number in numbers}
    kept, pending = [], []
    for topic, numbers in has:
        stay = tuple(number for number in numbers if (topic, number) in keeps)
        go = tuple(number for number in numbers if (topic, number) not in keeps)
        kept += [(topic, stay)] if stay else []
        pending += [(topic, go)] if go else []
    return tuple(kept), tuple(pending)
