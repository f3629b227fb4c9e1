"""Who consumes each partition of a simulated group and since when, and where two do at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from groupledger.core.custom.custom_group import TopicPartition


class DoubleOwner(NamedTuple):
    """A partition that two processes consumed at the same time; `until_ms` is None where they go on doing so.

    From the moment at which the second one had taken it to the one at which either had given it up: its callback had
    returned, or it ended or stood still. `members` in the order in which they took it.
    """

    partition: TopicPartition
    members: tuple[str, str]
    since_ms: int
    until_ms: int | None


class Consumed(NamedTuple):
    """One process consumed a partition from `since_ms` up to `until_ms`; None: it still does."""

    partition: TopicPartition
    member: str
    since_ms: int
    until_ms: int | None


class Gap(NamedTuple):
    """Nobody consumed a partition from `since_ms` up to `until_ms`."""

    since_ms: int
    until_ms: int


def waited_ms(gaps: Mapping[TopicPartition, Iterable[Gap]]) -> dict[TopicPartition, int]:
    """For how long nobody consumed each of these partitions, if for any time."""
    waited = {each: sum(gap.until_ms - gap.since_ms for gap in gaps[each]) for each in sorted(gaps)}
    return {each: ms for each, ms in waited.items() if ms}


@dataclass(slots=True)
class _Span:
    """One process consumes one partition. Steps order the changes of one millisecond."""

    member: str
    since_ms: int
    first_step: int
    until_ms: int | None = None
    last_step: int | None = None


@dataclass(slots=True)
class LiveOwnership:
    """All spans that last, and those that ended since the last `take_double_owners`.

    All SyncGroup answers of a round are one step (`answering`): a member that is given what another gives up in it
    shares it with that one. What ends in any other step has ended before whatever begins in it.
    """

    step: int = 0
    answering: bool = False
    changes: int = 0  # of who consumes what
    _lasting: dict[TopicPartition, list[_Span]] = field(default_factory=dict)
    _ended: dict[TopicPartition, list[_Span]] = field(default_factory=dict)

    def begin_step(self, *, answering: bool = False) -> None:
        """Begin a step: what comes now is later than all that came."""
        self.step += 1
        self.answering = answering

    def take(self, member: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a process consumes these from now on."""
        self.changes += 1
        for each in partitions:
            spans = self._lasting.setdefault(each, [])
            if all(span.member != member for span in spans):
                spans.append(_Span(member, now_ms, self.step))

    def give_up(self, member: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a process consumes these no longer."""
        self.changes += 1
        for each in partitions:
            for span in [span for span in self._lasting.get(each, ()) if span.member == member]:
                span.until_ms, span.last_step = now_ms, self.step if self.answering else self.step - 1
                self._lasting[each].remove(span)
                self._ended.setdefault(each, []).append(span)

    def stop(self, member: str, now_ms: int) -> tuple[TopicPartition, ...]:
        """Note that a process consumes nothing any longer; return what it did."""
        held = tuple(
            each for each, spans in sorted(self._lasting.items()) if any(span.member == member for span in spans)
        )
        self.give_up(member, held, now_ms)
        return held

    def held(self) -> frozenset[TopicPartition]:
        """Return all partitions that a process consumes now."""
        return frozenset(each for each, spans in self._lasting.items() if spans)

    def gaps(self, partitions: Iterable[TopicPartition], start_ms: int, end_ms: int) -> dict[TopicPartition, list[Gap]]:
        """When nobody consumed each of these in that time, which may not begin before the last answer."""
        found = {}
        for each in partitions:
            free, known_ms = [], start_ms
            spans = [*self._ended.get(each, ()), *self._lasting.get(each, ())]
            for span in sorted(spans, key=lambda span: span.since_ms):
                free.append(Gap(known_ms, min(span.since_ms, end_ms)))
                known_ms = max(known_ms, end_ms if span.until_ms is None else span.until_ms)
            found[each] = [gap for gap in (*free, Gap(known_ms, end_ms)) if gap.since_ms < gap.until_ms]
        return found

    def consumed(self) -> tuple[Consumed, ...]:
        """Who consumed what of the time since the last `take_double_owners`, by partition and beginning."""
        found = [
            Consumed(each, span.member, span.since_ms, span.until_ms)
            for some in (self._ended, self._lasting)
            for each, spans in some.items()
            for span in spans
        ]
        return tuple(sorted(found, key=lambda each: each[:3]))

    def take_double_owners(self) -> tuple[DoubleOwner, ...]:
        """Those of the time since the last call, by partition; one that lasts is in the next answer too."""
        ended, self._ended = self._ended, {}
        shared = {each for each, spans in self._lasting.items() if len(spans) > 1} | ended.keys()
        found = []
        for each in sorted(shared):
            spans = [*ended.get(each, ()), *self._lasting.get(each, ())]
            found += [_double(each, *pair) for pair in combinations(sorted(spans, key=_begun), 2) if _overlap(*pair)]
        return tuple(found)


def _begun(span: _Span) -> tuple[int, int, str]:
    return span.first_step, span.since_ms, span.member


def _overlap(first: _Span, second: _Span) -> bool:
    """Whether the first had not ended when the second began."""
    return first.last_step is None or first.last_step >= second.first_step


def _double(partition: TopicPartition, first: _Span, second: _Span) -> DoubleOwner:
    since_ms = max(first.since_ms, second.since_ms)
    ends = [span.until_ms for span in (first, second) if span.until_ms is not None]
    until_ms = max(since_ms, min(ends)) if ends else None
    return DoubleOwner(partition, (first.member, second.member), since_ms, until_ms)


# Records of a simulated group's topics: how many there are, which were read, which twice, what is committed.

SECOND_MS = 1_000
Span = tuple[int, int]
"""Offsets from the first up to, but without, the second."""


@dataclass(frozen=True, slots=True)
class Read:
    """What became of a group's records so far; a partition with none is left out.

    `twice`: reads of records that had been read before. `never`: records that were not read, though a later one was.
    """

    twice: Mapping[TopicPartition, int]
    never: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


@dataclass(slots=True)
class Records:
    """The logs of a group's topics: so many records a second arrive in each partition, from when it was made.

    Worked example: at 2 records a second a partition that was made at 0 ms has 3 of them at 1,999 ms.
    """

    per_second: int
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    _made_ms: dict[TopicPartition, int] = field(default_factory=dict)
    _read: dict[TopicPartition, list[Span]] = field(default_factory=dict)  # apart, by offset
    _twice: dict[TopicPartition, int] = field(default_factory=dict)

    def set_topics(self, topics: Mapping[str, int], now_ms: int) -> None:
        """Take these for all topics; a topic that is gone takes its log, its commits and its counts along."""
        there = {TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)}
        for gone in self._made_ms.keys() - there:
            for known in (self._made_ms, self._read, self._twice, self.committed):
                known.pop(gone, None)
        for new in there - self._made_ms.keys():
            self._made_ms[new] = now_ms

    def began_ms(self) -> dict[TopicPartition, int]:
        """Return when the log of each partition began, in ms."""
        return dict(self._made_ms)

    def end(self, partition: TopicPartition, now_ms: int) -> int:
        """Return the offset after the last record; 0 where there is no such partition."""
        made_ms = self._made_ms.get(partition)
        return 0 if made_ms is None else max(now_ms - made_ms, 0) * self.per_second // SECOND_MS

    def first_since(self, partition: TopicPartition, at_ms: int, now_ms: int) -> tuple[int, int] | None:
        """Offset and time of the first record of this time or later, of those that are there now."""
        made_ms = self._made_ms.get(partition)
        if made_ms is None or self.per_second == 0:
            return None
        offset = max((at_ms - 1 - made_ms) * self.per_second // SECOND_MS, 0)
        return (offset, self.arrived_ms(partition, offset)) if offset < self.end(partition, now_ms) else None

    def arrived_ms(self, partition: TopicPartition, offset: int) -> int:
        """When the record at this offset is there: the first moment at which the log is longer than that."""
        return self._made_ms[partition] - (-(offset + 1) * SECOND_MS // self.per_second)

    def read(self, partition: TopicPartition, first: int, end: int) -> None:
        """Somebody reads these records."""
        if partition not in self._made_ms or first >= end:
            return
        apart: list[Span] = []
        low, high = first, end
        for begun, ended in self._read.get(partition, ()):
            overlap = min(ended, end) - max(begun, first)
            if overlap > 0:
                self._twice[partition] = self._twice.get(partition, 0) + overlap
            if overlap >= 0:
                low, high = min(low, begun), max(high, ended)
            else:
                apart.append((begun, ended))
        self._read[partition] = sorted([*apart, (low, high)])

    def found(self, now_ms: int) -> Read:
        """Return the state of all records so far."""
        missing = {each: spans[-1][1] - sum(end - first for first, end in spans) for each, spans in self._read.items()}
        return Read(
            dict(sorted(self._twice.items())),
            {each: count for each, count in sorted(missing.items()) if count},
            dict(sorted(self.committed.items())),
            {each: self.end(each, now_ms) for each in sorted(self._made_ms)},
        )
