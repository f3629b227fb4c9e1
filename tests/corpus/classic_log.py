"""The log of a classic group, written record by record as a broker writes it, with what led to each as its label."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from groupledger.core.wire.consumer_protocol import (
    COOPERATIVE_STICKY,
    STICKY,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    UserData,
    UserDataForm,
    encode_assignment,
    encode_subscription,
    encode_user_data,
)
from groupledger.core.wire.offsets_log import LogKey, RecordKind, encode_key, encode_value
from groupledger.core.wire.records import ClassicGroupMember, GroupMetadata, RecordValue
from tests.corpus.history import History, Label, Line
from tests.corpus.topics import BEGIN_MS, Topics

GROUP_METADATA_TYPE = 2
LOG_PARTITION = 0
SESSION_MS, REBALANCE_MS = 45_000, 300_000
Named = Mapping[str, str]
"""What each process has, as `a:0,1 b:2`; ranges as `a:0-3`."""


def partitions(text: str) -> TopicPartitions:
    """`a:0-2 b:1` -> (("a", (0, 1, 2)), ("b", (1,))); a topic that stands twice stays so."""
    return tuple((topic, _numbers(numbers)) for topic, numbers in (entry.split(":") for entry in text.split()))


def _numbers(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Seat:
    """A member: its process, and what the broker last recorded of it. `since`: the generation of `has`."""

    client_id: str
    member_id: str
    topics: tuple[str, ...]
    instance: str | None = None
    rack: str | None = None
    host: str = "/10.0.0.1"
    has: TopicPartitions = ()
    since: int | None = None
    subscription: bytes = b""


def record_line(offset: int, now_ms: int, key: LogKey, version: int, value: RecordValue | None) -> Line:
    """A record as a line of offsets-jsonl; no value is a tombstone."""
    data = None if value is None else encode_value(key.kind, version, value)
    texts = [None if each is None else b64encode(each).decode() for each in (encode_key(key), data)]
    place = {"partition": LOG_PARTITION, "offset": offset, "timestamp": now_ms}
    return place | {"key": texts[0], "value": texts[1]}


class ClassicLog:
    """`log.join("c1"); log.record({"c1": "a:0-3"})`: what happens is noted, and is the cause of the next record.

    Times are in seconds, and pass before a record.
    """

    def __init__(self, title: str, what: str, assignor: str, topics: Mapping[str, int], group: str = "orders") -> None:
        self.title, self.what, self.assignor, self.group = title, what, assignor, group
        self.topics, self.label = Topics(title, topics), Label()
        self.lines: list[Line] = []
        self.seats: dict[str, Seat] = {}
        self.joined: tuple[str, ...] = ()
        self.now_ms, self.generation = BEGIN_MS, 0
        self._noted: list[str] = []
        self._born: dict[str, int] = {}
        self._write(5, GroupMetadata("", 0, None, None, self.now_ms, ()))
        self.label.cause(0, "group-born")

    # what happens

    def join(
        self, name: str, topics: Sequence[str] = (), instance: str | None = None, rack: str | None = None
    ) -> ClassicLog:
        """A process subscribes (to all topics there are, if none are named) and joins."""
        named = tuple(topics) or tuple(self.topics.there)
        self.seats[name] = Seat(name, self._new_id(name), named, instance, rack)
        self._noted.append("member-joined")
        return self

    def gone(self, name: str) -> ClassicLog:
        """A member leaves, or its session ends."""
        del self.seats[name]
        self._noted.append("member-gone")
        return self

    def subscribe(self, name: str, *topics: str) -> ClassicLog:
        """A member subscribes to other topics."""
        self.seats[name] = replace(self.seats[name], topics=topics)
        self._noted.append("subscription-changed")
        return self

    def change(self, topic: str, count: int | None, seconds: int = 30) -> ClassicLog:
        """A topic is made, grows or is deleted (None)."""
        self._pass(seconds)
        self._noted.append(self.topics.change(self.now_ms, topic, count))
        return self

    def make_again(self, topic: str, count: int, seconds: int = 30) -> ClassicLog:
        """A topic is deleted and made again between two listings."""
        self._pass(seconds)
        self._noted.append(self.topics.make_again(self.now_ms, topic, count))
        return self

    def choose(self, assignor: str) -> ClassicLog:
        """All members support another assignor now, which the broker chooses."""
        self.assignor = assignor
        self._noted.append("assignor-changed")
        return self

    def replace_process(self, name: str, process: str | None = None, rack: str | None = None) -> ClassicLog:
        """A static member comes back under a new member id; `process`: it is another one, on another host."""
        seat = self.seats[name]
        same_client = (process or name) == seat.client_id
        self._noted.append("member-restarted" if same_client else "member-replaced")
        if rack not in (None, seat.rack):
            self._noted.append("rack-changed")
        host = "/10.0.0.1" if process in (None, name) else "/10.0.0.2"
        self.seats[name] = replace(
            seat,
            member_id=self._new_id(process or name),
            client_id=process or name,
            host=host,
            rack=rack or seat.rack,
            since=None,
            subscription=b"",
        )
        return self

    # what the broker writes

    def record(
        self,
        has: Named,
        seconds: int = 3,
        *,
        quiet: str | None = None,
        number: int | None = None,
        claims: Mapping[str, tuple[str, int | None]] | None = None,
        leader: str | None = None,
    ) -> ClassicLog:
        """The next generation. `quiet`: the cause where nothing happened. `claims`: what members say that they own, and
        of which generation, where it is not what was last recorded for them."""
        given = {name: partitions(text) for name, text in has.items()}
        stated = {name: (partitions(text), of) for name, (text, of) in (claims or {}).items()}
        return self.write_generation(given, seconds, quiet=quiet, number=number, claims=stated, leader=leader)

    def write_generation(
        self,
        has: Mapping[str, TopicPartitions],
        seconds: int = 3,
        *,
        quiet: str | None = None,
        number: int | None = None,
        claims: Mapping[str, tuple[TopicPartitions, int | None]] | None = None,
        leader: str | None = None,
    ) -> ClassicLog:
        """`record` with partitions as the wire has them."""
        assert has.keys() == self.seats.keys()
        self.generation = self.generation + 1 if number is None else number
        for name, seat in self.seats.items():
            owned, since = (claims or {}).get(name, (seat.has, seat.since))
            self.seats[name] = replace(
                seat, subscription=self._subscription(seat, owned, since), has=has[name], since=self.generation
            )
        self._write(seconds, self._metadata(leader))
        return self._labelled(quiet)

    def rewrite(self, seconds: int = 3, has: Named | None = None, *, quiet: str | None = None) -> ClassicLog:
        """The same generation once more: a static member came back. Only it has spoken anew."""
        for name, seat in self.seats.items():
            new = seat.has if has is None else partitions(has[name])
            said = seat.subscription or self._subscription(seat, (), None)
            self.seats[name] = replace(seat, subscription=said, has=new, since=self.generation)
        self._write(seconds, self._metadata(None))
        return self._labelled(quiet)

    def empty(self, seconds: int = 3) -> ClassicLog:
        """All members are gone."""
        self.seats.clear()
        self._noted = ["group-emptied"]
        self.generation += 1
        self._write(seconds, GroupMetadata("consumer", self.generation, None, None, self.now_ms, ()))
        return self._labelled(None)

    def delete(self, seconds: int = 3) -> ClassicLog:
        """The tombstone; the group may come back afterwards."""
        self._write(seconds, None)
        self.label.cause(None, "group-deleted")
        return self

    def born_again(self, seconds: int = 30) -> ClassicLog:
        """The first record of the name's next life."""
        self.generation = 0
        self._write(seconds, GroupMetadata("", 0, None, None, self.now_ms, ()))
        self.label.cause(0, "group-born")
        return self

    def truncated(self, offset: int, has: Named) -> ClassicLog:
        """An unclean election: another record was written at an offset that had been read already."""
        seats = {name: replace(seat, has=partitions(has[name])) for name, seat in self.seats.items()}
        key, value = self._key(), self._metadata(None, seats)
        self.lines.append(record_line(offset, self.now_ms + 500, key, 3, value))
        return self

    # the label, and the end

    def find(self, code: str, records: int = 1, severity: str | None = None) -> ClassicLog:
        """The record before shows this."""
        self.label.find(code, self.generation, records, severity)
        return self

    def history(self, origin: str = "made") -> History:
        """What was written."""
        assert not self._noted, f"{self.title}: {self._noted} led to no record"
        return History(self.title, self.what, origin, self.lines, self.topics.lines, self.label, self.joined)

    def joins(self, *topics: str) -> ClassicLog:
        """The application joins these topics."""
        self.joined = topics
        return self

    def _labelled(self, quiet: str | None) -> ClassicLog:
        assert bool(self._noted) != bool(quiet), f"{self.title}, generation {self.generation}: {self._noted}, {quiet}"
        self.label.cause(self.generation, *self._noted, *([quiet] if quiet else []))
        self._noted = []
        return self

    def _pass(self, seconds: int) -> None:
        self.now_ms += 1_000 * seconds

    def _new_id(self, name: str) -> str:
        number = self._born[name] = self._born.get(name, 0) + 1
        digest = hashlib.sha256(f"{self.title}/{name}/{number}".encode()).hexdigest()
        return f"{name}-{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-8{digest[15:18]}-{digest[18:30]}"

    def _subscription(self, seat: Seat, owned: TopicPartitions, since: int | None) -> bytes:
        """What Kafka's own client sends."""
        sent: UserData | None = None
        if self.assignor == COOPERATIVE_STICKY:
            sent = UserData(UserDataForm.GENERATION, generation=-1 if since is None else since)
            said = ConsumerProtocolSubscription(3, seat.topics, encode_user_data(sent), owned, since, seat.rack)
        elif self.assignor == STICKY and since is not None:
            sent = UserData(UserDataForm.OWNED_GENERATION, owned, since)
            said = ConsumerProtocolSubscription(3, seat.topics, encode_user_data(sent), (), since, seat.rack)
        else:
            said = ConsumerProtocolSubscription(3, seat.topics, None, (), since, seat.rack)
        return encode_subscription(said)

    def _metadata(self, leader: str | None, seats: Mapping[str, Seat] | None = None) -> GroupMetadata:
        members = self.seats if seats is None else seats
        led_by = members[leader or next(iter(members))].member_id
        written = tuple(
            ClassicGroupMember(
                seat.member_id,
                seat.instance,
                seat.client_id,
                seat.host,
                REBALANCE_MS,
                SESSION_MS,
                seat.subscription,
                encode_assignment(ConsumerProtocolAssignment(3, seat.has)),
            )
            for seat in members.values()
        )
        return GroupMetadata("consumer", self.generation, self.assignor, led_by, self.now_ms, written)

    def _key(self) -> LogKey:
        return LogKey(RecordKind.GROUP_METADATA, GROUP_METADATA_TYPE, self.group, {})

    def _write(self, seconds: int, value: GroupMetadata | None) -> None:
        self._pass(seconds)
        if value is not None:
            value = replace(value, state_timestamp=self.now_ms)
        self.lines.append(record_line(len(self.lines), self.now_ms, self._key(), 3, value))
