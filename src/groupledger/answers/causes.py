"""What differs between two neighbouring states of a group: the causes of a rebalance, and the partitions that moved.

The log holds states, not reasons. A member that is gone may have left, crashed or timed out; one that joins again
leaves no trace where its state is the same. Neither is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple, TypeVar

from groupledger.answers.queries import (
    CLASSIC,
    GroupKey,
    NamedPartition,
    Reader,
    Record,
    TopicLife,
    gathered,
    held,
    life_at,
    matching,
    records,
)
from groupledger.core.moments import iso
from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR
from groupledger.core.text import length
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import ClassicGroupMember, GroupMetadata

STREAMS = "stream"
"""The assignor of Kafka Streams in a classic group: a cooperative one, whatever its name."""
GENERATION = "generation"
DELETED = "deleted"
"""Kinds of snapshots: what a rebalance of a classic group leaves, and what a tombstone does."""


class CauseKind(StrEnum):
    """What differs between two states of a group."""

    GROUP_BORN = "group-born"
    GROUP_EMPTIED = "group-emptied"
    GROUP_DELETED = "group-deleted"
    CONVERTED = "converted"
    MEMBER_JOINED = "member-joined"
    MEMBER_GONE = "member-gone"
    MEMBER_RESTARTED = "member-restarted"
    MEMBER_REPLACED = "member-replaced"
    SUBSCRIPTION_CHANGED = "subscription-changed"
    RACK_CHANGED = "rack-changed"
    ASSIGNOR_CHANGED = "assignor-changed"
    TOPIC_APPEARED = "topic-appeared"
    TOPIC_DELETED = "topic-deleted"
    PARTITIONS_ADDED = "partitions-added"
    TOPIC_MADE_AGAIN = "topic-made-again"
    FOLLOW_UP = "follow-up"
    COORDINATOR_MOVED = "coordinator-moved"
    NOT_SHOWN = "not-shown"


@dataclass(frozen=True, slots=True)
class Cause:
    """One difference: `about` names the member or topic, `what` says it for a person.

    `was` is the id that a static member had before. `possible`: it is not known whether it was so, as `what` says.
    """

    kind: CauseKind
    about: str | None
    what: str
    was: str | None = None
    possible: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """A partition that one member had and another has now. None is nobody."""

    topic: str
    partition: int
    from_member_id: str | None
    to_member_id: str | None


@dataclass(frozen=True, slots=True)
class Side:
    """A state of the group: its members as rows of `member_snapshots`; `verdict` is that of the run that counts."""

    snapshot_id: str
    number: int | None
    at: datetime
    assignor: str | None
    topics: frozenset[str]
    follow_up: bool
    members: tuple[Record, ...]
    group_type: str = CLASSIC
    complete: bool = True
    verdict: str | None = None
    offset: int = -1
    log_partition: int | None = None
    kind: str = GENERATION
    incarnation: int = 0

    @property
    def is_cooperative(self) -> bool:
        """Whether its leader withholds partitions for a round (KIP-429); KIP-848 needs no round for it."""
        return self.group_type == CLASSIC and ("cooperative" in (self.assignor or "") or self.assignor == STREAMS)


Counts = Mapping[str, tuple[str | None, int] | None]
"""A topic's id and partition count at a time; None: no listing had it."""


def causes(
    before: Side | None, after: Side, lives: Mapping[str, tuple[TopicLife, ...]], given: Sequence[GivenPartition]
) -> Iterator[Cause]:
    """Return what differs between two states: members first, what is only possible last; NOT_SHOWN if nothing does.

    `lives`: how their topics were listed, by name. `given`: the partitions that members of the group have had.
    """
    if before is None:
        yield Cause(CauseKind.GROUP_BORN, None, "the first state of the group that the ledger has")
        return
    topics = TopicChanges(before, after, lives, given)
    converted = list(_of_type(before, after))
    found = [*converted, *_of_members(before, after), *topics.sure]
    was, now = (assigned_by(side.group_type, side.assignor) for side in (before, after))
    if not converted and now != was and after.members and before.members:
        text = f"the assignor changed from {was} to {now}"
        found.append(Cause(CauseKind.ASSIGNOR_CHANGED, now, text))
    if before.members and not after.members and not converted:
        last = "member" if len(before.members) == 1 else f"{len(before.members)} members"
        found = [Cause(CauseKind.GROUP_EMPTIED, None, f"the last {last} went")]
    if after.kind == DELETED:
        found = [Cause(CauseKind.GROUP_DELETED, None, "the group was deleted")]
    withheld = topics.given_again and before.is_cooperative and after.is_cooperative
    if not found and (withheld or before.follow_up):
        found = [Cause(CauseKind.FOLLOW_UP, None, "the round before withheld partitions until others gave them up")]
    yield from [*found, *topics.possible, *(() if found else topics.guesses)] or [_not_shown(after, topics)]


def _not_shown(after: Side, topics: TopicChanges) -> Cause:
    text = "no member, subscription, topic or assignor differs"
    if after.group_type == CLASSIC and after.members:
        text += ": a member joined again (the log does not say which, or why)"
    if topics.given_again:
        text += f"; {partition_count(topics.given_again)} that nobody had found an owner"
    return Cause(CauseKind.NOT_SHOWN, None, "; ".join([text, *topics.late]))


def _of_type(before: Side, after: Side) -> Iterator[Cause]:
    """Return the cause for a group that was converted within one incarnation."""
    one_group = after.incarnation == before.incarnation and after.kind != DELETED
    if after.group_type == before.group_type or not one_group:
        return
    stayed = {row["member_id"] for row in before.members} & {row["member_id"] for row in after.members}
    was, now = ("generation", "epoch") if before.group_type == CLASSIC else ("epoch", "generation")
    to = "to a consumer group (KIP-848)" if before.group_type == CLASSIC else "back to a classic group"
    known = None not in (before.number, after.number)
    counted = f"{now} {after.number} goes on from {was} {before.number}, " if known else ""
    evidence = f"{counted}{len(stayed)} {'member' if len(stayed) == 1 else 'members'} stayed"
    yield Cause(CauseKind.CONVERTED, after.group_type, f"converted {to} while running: {evidence}")


def _of_members(before: Side, after: Side) -> Iterator[Cause]:
    """Compare the members by name: first those that stay or came, then those that are gone."""
    had, has = ({row["member_id"]: row for row in side.members} for side in (before, after))
    static_before = {row["group_instance_id"]: row for row in before.members if row["group_instance_id"] is not None}
    gone = {name: row for name, row in had.items() if name not in has}
    for name, row in sorted(has.items()):
        instance = row["group_instance_id"]
        if name in had:
            yield from _of_one(had[name], row)
        elif instance is not None and instance in static_before and static_before[instance]["member_id"] not in has:
            was = static_before[instance]
            gone.pop(was["member_id"], None)
            yield _successor(was, row, after.group_type)
            yield from _of_one(was, row)
        else:
            yield Cause(CauseKind.MEMBER_JOINED, name, f"{_member(row)} joined")
    for name, row in sorted(gone.items()):
        text = f"{_member(row)} is gone (the log does not say whether it left, crashed or timed out)"
        yield Cause(CauseKind.MEMBER_GONE, name, text)


def _successor(was: Record, row: Record, group_type: str) -> Cause:
    """Return the cause for a static member under a new member id: it restarted, or its instance id was taken over.

    A client that joins with the classic protocol gets the instance id, even while its member lives, and a classic group
    keeps that one's client id and host. With KIP-848, only a member that gave the id up, or is gone, is replaced.
    """
    name, instance = row["member_id"], row["group_instance_id"]
    if row["client_id"] != was["client_id"]:
        text = f"the instance id {instance} was taken over by another client: {_member(row)}, before {_member(was)}"
        return Cause(CauseKind.MEMBER_REPLACED, name, text, was["member_id"])
    hosts = f" on another host ({row['host']}, before {was['host']})" if row["host"] != was["host"] else ""
    text = f"the static member {instance} came back as {name}{hosts}, before {was['member_id']}"
    if group_type == CLASSIC or row.get("subscription_version") is not None:
        text = (
            f"the static member {instance} has a new member id, {name}{hosts}, before {was['member_id']}: "
            "it restarted, or another process took the instance id over (the log does not say which)"
        )
    return Cause(CauseKind.MEMBER_RESTARTED, name, text, was["member_id"])


def _of_one(before: Record, after: Record) -> Iterator[Cause]:
    """Return what a member that stayed changed."""
    name = after["member_id"]
    had, has = (set(row["topics"] or ()) for row in (before, after))
    if before["topics"] is not None and after["topics"] is not None and had != has:
        changes = [*(f"+{topic}" for topic in sorted(has - had)), *(f"-{topic}" for topic in sorted(had - has))]
        yield Cause(CauseKind.SUBSCRIPTION_CHANGED, name, f"{name} changed its subscription: {' '.join(changes)}")
    if before["rack_id"] != after["rack_id"]:
        text = f"{name} is in rack {after['rack_id'] or '(none)'}, before in {before['rack_id'] or '(none)'}"
        yield Cause(CauseKind.RACK_CHANGED, name, text)


def moved(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[Moved]:
    """Return the partitions that changed hands, in order; a static member that came back is the same one.

    Where several members have a partition, those who lost it and those who got it are paired in order of their ids.
    """
    now = {row["group_instance_id"]: row["member_id"] for row in after if row["group_instance_id"] is not None}
    had, has = _owners(before, now), _owners(after, {})
    nobody: set[str] = set()
    for place in sorted(had.keys() | has.keys()):
        old, new = had.get(place, nobody), has.get(place, nobody)
        for lost, got in zip_longest(sorted(old - new), sorted(new - old)):
            yield Moved(*place, lost, got)


def unowned(side: Side, listed: Counts) -> Iterator[NamedPartition]:
    """Return partitions of listed topics that no member is recorded for, in order."""
    owned = _owners(side.members, {}).keys()
    for topic in sorted(listed):
        topic_id, count = listed[topic] or (None, 0)
        yield from (
            (topic, number)
            for number in range(count)
            if (topic, number) not in owned and (f"id:{topic_id}", number) not in owned
        )


def _owners(members: Sequence[Mapping[str, Any]], now: Mapping[str, str]) -> dict[NamedPartition, set[str]]:
    """Map each partition to the members that have it."""
    owners: dict[NamedPartition, set[str]] = {}
    for row in members:
        for place in held(row):
            owners.setdefault(place, set()).add(now.get(row["group_instance_id"], row["member_id"]))
    return owners


def _member(row: Record) -> str:
    known = [f"{words} {row[name]}" for name, words in (("client_id", "client"), ("host", "host")) if row[name]]
    instance = f"static, {row['group_instance_id']}" if row["group_instance_id"] is not None else None
    details = ", ".join(filter(None, [instance, *known]))
    return f"{row['member_id']} ({details})" if details else str(row["member_id"])


def partition_count(number: int) -> str:
    """Format as `1 partition`, `9 partitions`."""
    return f"{number} partition" if number == 1 else f"{number} partitions"


def assigned_by(group_type: str, assignor: str | None) -> str | None:
    """Return the assignor of a state: of a KIP-848 group whose members name none the server's default."""
    return DEFAULT_ASSIGNOR if assignor is None and group_type == "consumer" else assignor


# What became of topics between two states of a group.
#
# The records come first: partitions that were never assigned before, topics that are no longer assigned, topic ids. A
# topic listing is of the time of an ingest, so a change that it shows may be older, or not yet have reached the group:
# it confirms what the records show, and is otherwise a possible cause. That a topic is listed for the first time is
# none.

_DELETED, _REPLACED, _CREATED = "listed as gone", "listed with another id", "listed again"
_GROWN = "listed with more partitions"


class GivenPartition(NamedTuple):
    """A partition that a member of the group has had: `offset` is that of the first record that gave it to one."""

    topic: str | None
    topic_id: str | None
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class _Listed:
    """A change that a listing of `at` shows: the topic had been as before since `after`, by a listing, too."""

    what: str
    after: datetime
    at: datetime

    def __str__(self) -> str:
        return f"{self.what} at {iso(self.at)}, as it was before since {iso(self.after)}"


class _Topic(NamedTuple):
    """The partitions of a topic that members had and have, by which topic ids, and those that any had earlier.

    `known_earlier`: whether members had partitions of any topic of that name.
    """

    had: set[int]
    has: set[int]
    ids_before: set[str]
    ids_after: set[str]
    earlier: set[int]
    known_earlier: bool


class TopicChanges:
    """What became of the topics of two neighbouring states. A group that comes from nothing shows nothing of topics.

    `sure` causes are what the records show, `possible` ones what a listing shows where it may have led to the state;
    `guesses` are possible ones that no listing confirms. `given_again`: how many partitions that members had earlier
    had no owner in the state before, and have one now; `late` says which were assigned for the first time although they
    had been listed before.
    """

    def __init__(
        self, before: Side, after: Side, lives: Mapping[str, tuple[TopicLife, ...]], given: Sequence[GivenPartition]
    ) -> None:
        """Compare them; an id that the ledger has no name for stands for itself."""
        self._before, self._after, self._lives, self._given = before, after, lives, given
        self._names = {life.topic_id: topic for topic, some in lives.items() for life in some if life.topic_id}
        entries = [entry for side in (before, after) for row in side.members for entry in _entries(row)]
        self._names |= {entry["topic_id"]: entry["topic"] for entry in entries if entry["topic"] is not None}
        # A classic group's records have no topic ids: those of its rows are from listings.
        self._has_ids = CLASSIC not in (before.group_type, after.group_type)
        self.sure: list[Cause] = []
        self.possible: list[Cause] = []
        self.guesses: list[Cause] = []
        self.late: list[str] = []
        self.given_again = 0
        for name, topic in self._topics():
            self._compare(name, topic)

    def _compare(self, name: str, topic: _Topic) -> None:
        was, is_now = name in self._before.topics, name in self._after.topics
        if was:
            self.given_again += len((topic.has - topic.had) & topic.earlier)
        if (was and is_now) or (self._before.topics == self._after.topics and name.startswith("id:")):
            self._of_subscribed(name, topic)
        elif was and topic.had:
            self._of_dropped(name)
        elif is_now:
            self._of_found(name)

    def _topics(self) -> Iterator[tuple[str, _Topic]]:
        if not all(side.members and side.complete for side in (self._before, self._after)):
            return
        before, after = self._assigned(self._before), self._assigned(self._after)
        nothing: tuple[set[int], set[str]] = (set(), set())
        for name in sorted(before.keys() | after.keys() | self._before.topics | self._after.topics):
            (had, ids_before), (has, ids_after) = before.get(name, nothing), after.get(name, nothing)
            if (had, ids_before) == (has, ids_after):  # as in most rebalances: what was earlier then shows nothing
                yield name, _Topic(had, has, ids_before, ids_after, had, bool(had))
                continue
            of_name = self._given_before.get(name, [])
            same = [
                each
                for each in of_name
                if not (self._has_ids and ids_after) or each.topic_id is None or each.topic_id in ids_after
            ]
            earlier = {each.partition for each in same} | (had if not ids_before or ids_before & ids_after else set())
            yield name, _Topic(had, has, ids_before, ids_after, earlier, bool(had or of_name))

    @cached_property
    def _given_before(self) -> dict[str, list[GivenPartition]]:
        earlier_ones = (each for each in self._given if each.offset <= self._before.offset)
        return gathered((self._name(each.topic, each.topic_id), each) for each in earlier_ones)

    def _name(self, topic: str | None, topic_id: str | None) -> str:
        return topic or self._names.get(topic_id or "") or f"id:{topic_id}"

    def _assigned(self, side: Side) -> dict[str, tuple[set[int], set[str]]]:
        """Return the partitions that members have or are to get, and the topic ids, by topic."""
        found: dict[str, tuple[set[int], set[str]]] = {}
        for entry in (entry for row in side.members for entry in _entries(row)):
            numbers, ids = found.setdefault(self._name(entry["topic"], entry["topic_id"]), (set(), set()))
            numbers.update(entry["partitions"])
            ids.update([entry["topic_id"]] if self._has_ids and entry["topic_id"] is not None else [])
        return found

    def _of_subscribed(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic that members subscribed to before, and still do."""
        if topic.has and topic.ids_after and topic.known_earlier and not topic.earlier:
            text = f"topic {name} was deleted and made again: it has another id"
            self.sure.append(Cause(CauseKind.TOPIC_MADE_AGAIN, name, text))
        elif topic.has and not topic.earlier:
            self._of_first(name, topic)
        elif topic.has and not topic.had:
            # A cooperative leader may have withheld all of a topic that has few partitions.
            if not self._after.is_cooperative or self._within(name, _CREATED) is not None:
                text = f"topic {name} is assigned again: nobody had any of its partitions"
                self.sure.append(Cause(CauseKind.TOPIC_APPEARED, name, text))
        elif topic.has:
            self._of_assigned(name, topic)
        elif topic.had:
            self._of_vanished(name)

    def _of_first(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic without earlier owners: a new one, unless the leader did not know it."""
        text = f"topic {name} is assigned for the first time, with {partition_count(len(topic.has))}"
        if self._listed_before(name) is not None:
            self.late.append(f"{text}; it was listed before")
        elif self._has_ids or self._within(name, _CREATED) is not None:
            self.sure.append(Cause(CauseKind.TOPIC_APPEARED, name, f"{text}; it was subscribed to before"))
        else:
            text = f"topic {name} is new: it is assigned for the first time (or the leader had not known it)"
            self._guess(CauseKind.TOPIC_APPEARED, name, text)

    def _of_assigned(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic of which members had and have partitions."""
        was, now = max(topic.earlier) + 1, max(topic.has) + 1
        listed = self._within(name, _REPLACED, _DELETED)
        if listed is not None and not topic.ids_after:
            self._perhaps(CauseKind.TOPIC_MADE_AGAIN, name, "was deleted and made again", listed)
        elif was < now:
            self._of_more(name, was, now)

    def _of_more(self, name: str, was: int, now: int) -> None:
        """More partitions than any state before had: new ones, unless a leader left them out of all of those."""
        text = f"topic {name} went from {partition_count(was)} to {now}"
        listed = self._listed_before(name)
        if listed is not None and listed.partition_count >= now:
            self.late.append(f"partitions of topic {name} from {was} on are assigned for the first time")
            if any(life.partition_count < now for life in self._lives[name] if life.since < listed.since):
                why = f"listed with {listed.partition_count} since {iso(listed.since)}, and assigned only now"
                self._guess(CauseKind.PARTITIONS_ADDED, name, f"{text} ({why})")
        elif self._has_ids or self._within(name, _GROWN) is not None:
            self.sure.append(Cause(CauseKind.PARTITIONS_ADDED, name, text))
        elif not self._same_members:
            what = f"went from {partition_count(was)} to {now}"
            known = self._later(name, _GROWN) or "or the leader before had left them out"
            self._perhaps(CauseKind.PARTITIONS_ADDED, name, what, known)
        elif self._begins_with_withheld:
            self._guess(
                CauseKind.PARTITIONS_ADDED, name, f"{text} (or the state before, the first known, withheld them)"
            )
        else:
            self.sure.append(Cause(CauseKind.PARTITIONS_ADDED, name, text))

    @property
    def _same_members(self) -> bool:
        names = ({row["member_id"] for row in side.members} for side in (self._before, self._after))
        return next(names) == next(names)

    @property
    def _begins_with_withheld(self) -> bool:
        """Whether the state before is the first that the ledger has, and may have withheld partitions."""
        is_first = all(each.offset >= self._before.offset for each in self._given)
        return is_first and self._before.is_cooperative and len(self._before.members) > 1

    def _of_vanished(self, name: str) -> None:
        """Return the cause in a topic of which no member has a partition any more."""
        if self._within(name, _DELETED, _REPLACED) is not None:
            self.sure.append(Cause(CauseKind.TOPIC_DELETED, name, f"topic {name} was deleted"))
            return
        listed = self._later(name, _DELETED, _REPLACED)
        gone = "was deleted: nobody has any of its partitions any more"
        if listed is not None:
            self._perhaps(CauseKind.TOPIC_DELETED, name, gone, listed)
        else:
            # A cooperative leader may withhold all of a topic that has few partitions, and a leader may not know one.
            self._guess(CauseKind.TOPIC_DELETED, name, f"topic {name} {gone} (or the leader left it out)")

    def _of_dropped(self, name: str) -> None:
        """Return the cause in a topic without subscribers: clients with a pattern drop one that is deleted."""
        if self._within(name, _DELETED, _REPLACED) is not None:
            self.sure.append(Cause(CauseKind.TOPIC_DELETED, name, f"topic {name} was deleted"))
        elif (listed := self._later(name, _DELETED, _REPLACED)) is not None:
            self._perhaps(CauseKind.TOPIC_DELETED, name, "was deleted", listed)

    def _of_found(self, name: str) -> None:
        """Return the cause in a topic without earlier subscribers: patterns find one that is made again."""
        listed = self._within(name, _CREATED, _REPLACED) or self._later(name, _CREATED, _REPLACED)
        if listed is not None:
            self._perhaps(CauseKind.TOPIC_MADE_AGAIN, name, "was made again", listed)

    def _perhaps(self, kind: CauseKind, name: str, what: str, why: _Listed | str) -> None:
        self.possible.append(Cause(kind, name, f"possibly: topic {name} {what} ({why})", possible=True))

    def _guess(self, kind: CauseKind, name: str, text: str) -> None:
        self.guesses.append(Cause(kind, name, f"possibly: {text}", possible=True))

    def _listed_before(self, name: str) -> TopicLife | None:
        """Return the topic as it was listed at the time of the state before."""
        return life_at(self._lives.get(name, ()), self._before.at)

    def _within(self, name: str, *what: str) -> _Listed | None:
        """Return the first such change that was listed between the two records."""
        return next((each for each in self._listed(name, what) if self._before.at < each.at <= self._after.at), None)

    def _later(self, name: str, *what: str) -> _Listed | None:
        """Return the first such change that was listed after them, and may have come between them."""
        return next((each for each in self._listed(name, what) if each.after < self._after.at < each.at), None)

    def _listed(self, name: str, what: tuple[str, ...]) -> Iterator[_Listed]:
        lives = self._lives.get(name, ())
        found = []
        for one, other in zip_longest(lives, lives[1:]):
            if one.until is not None and (other is None or one.until < other.since):
                found.append(_Listed(_DELETED, one.since, one.until))
                found += [_Listed(_CREATED, one.until, other.since)] if other is not None else []
            elif other is not None and None not in (ids := (one.topic_id, other.topic_id)) and len(set(ids)) > 1:
                found.append(_Listed(_REPLACED, one.since, other.since))
            elif other is not None and one.partition_count < other.partition_count:
                found.append(_Listed(_GROWN, one.since, other.since))
        return (each for each in found if each.what in what)


def _entries(row: Record) -> list[Mapping[str, Any]]:
    return [*(row["recorded"] or ()), *(row.get("target") or ())]


# Where a group's coordinator moved or restarted between two states, by the leader epochs of record batches.
#
# The coordinator of a group is the leader of the log partition that holds it. Each leader that is elected, the same
# broker after a restart too, has a higher epoch (KIP-101). That alone makes no member join again: it is a possible
# cause, and said only if nothing else differs. `log_records` has no epochs from some sources, and none once they are
# removed.

C = TypeVar("C", bound="StateChange")
QUIET = frozenset({CauseKind.NOT_SHOWN, CauseKind.COORDINATOR_MOVED, CauseKind.FOLLOW_UP})
"""Causes of a rebalance before which nothing changed in the group that the log holds."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """Two states of a group of a cluster, and what led from one to the other; `before` is None where none is known."""

    cluster: str
    before: Side | None
    after: Side
    causes: tuple[Cause, ...]

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that the log holds changed before it."""
        return all(each.kind in QUIET for each in self.causes)


RECENT = timedelta(minutes=10)
"""A state that follows the change later than this is not said to follow from it: by default, the sessions of members
and a rebalance are over earlier (45 s and 5 min)."""


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """A log partition's leader epoch before and after, with the last known record before and the first one after."""

    log_partition: int
    from_epoch: int
    to_epoch: int
    last_offset: int
    last_at: datetime
    first_offset: int
    first_at: datetime

    @property
    def text(self) -> str:
        """Return what the records show."""
        return (
            f"the leader epoch of log partition {self.log_partition} rose from {self.from_epoch} to {self.to_epoch} "
            f"between offsets {self.last_offset} ({iso(self.last_at)}) and {self.first_offset} ({iso(self.first_at)}), "
            "as it does when the coordinator moves or restarts"
        )


def with_coordinators(reader: Reader, changes: Sequence[C]) -> list[C]:
    """Return the changes; where no difference is shown, a change of the coordinator is a possible cause."""
    unexplained = [any(cause.kind is CauseKind.NOT_SHOWN for cause in each.causes) for each in changes]
    leaders = iter(leader_changes(reader, [each for each, asked in zip(changes, unexplained, strict=True) if asked]))
    return [
        replace(each, causes=with_coordinator(each.causes, next(leaders))) if asked else each
        for each, asked in zip(changes, unexplained, strict=True)
    ]


def with_coordinator(causes: tuple[Cause, ...], change: LeaderChange | None) -> tuple[Cause, ...]:
    """Return the causes, with the change in place of NOT_SHOWN."""
    if change is None:
        return causes
    return tuple(
        replace(each, kind=CauseKind.COORDINATOR_MOVED, what=f"{each.what}; {change.text}", possible=True)
        if each.kind is CauseKind.NOT_SHOWN
        else each
        for each in causes
    )


def leader_changes(reader: Reader, changes: Sequence[StateChange]) -> list[LeaderChange | None]:
    """Return for each the last change of the leader within it; None if there is none, or it is not known."""
    epochs = _epochs(reader, changes)
    return [_change(epochs.get((of.cluster, of.after.log_partition), []), of.before, of.after) for of in changes]


def _epochs(reader: Reader, changes: Iterable[StateChange]) -> dict[tuple[str, int | None], list[Record]]:
    """Return the extent of each leader epoch, by log partition, from the first of the states to the last."""
    extents: dict[tuple[str, int | None], list[int]] = {}
    for each in changes:
        before, after = each.before, each.after
        if before is not None and before.log_partition == after.log_partition is not None:
            extents.setdefault((each.cluster, after.log_partition), []).extend((before.offset, after.offset))
    places = " OR ".join(
        f"({matching('t.', cluster_id=cluster, log_partition=partition)} "
        f"AND t.offset >= {min(offsets)} AND t.offset <= {max(offsets)})"
        for (cluster, partition), offsets in extents.items()
    )
    if not places:
        return {}
    query = (
        "SELECT t.cluster_id, t.log_partition, t.leader_epoch, min(t.offset) AS first_offset, "
        "max(t.offset) AS last_offset, min(t.timestamp) AS first_at, max(t.timestamp) AS last_at "
        f"FROM current_log_records t WHERE t.leader_epoch IS NOT NULL AND ({places}) "
        "GROUP BY t.cluster_id, t.log_partition, t.leader_epoch ORDER BY 1, 2, 3"
    )
    rows = records(reader, query)
    return gathered(((row["cluster_id"], row["log_partition"]), row) for row in rows)


def _change(epochs: Sequence[Record], before: Side | None, after: Side) -> LeaderChange | None:
    """Return the last change up to `after`; None if the epochs do not ascend with the offsets: it is another log."""
    if before is None or any(one["last_offset"] >= two["first_offset"] for one, two in pairwise(epochs)):
        return None
    within = [row for row in epochs if before.offset <= row["last_offset"] and row["first_offset"] <= after.offset]
    if len(within) < 2 or within[0]["first_offset"] > before.offset or within[-1]["last_offset"] < after.offset:
        return None
    old, new = within[-2:]
    if after.at - new["first_at"] > RECENT:
        return None
    return LeaderChange(
        log_partition=new["log_partition"],
        from_epoch=old["leader_epoch"],
        to_epoch=new["leader_epoch"],
        last_offset=old["last_offset"],
        last_at=old["last_at"],
        first_offset=new["first_offset"],
        first_at=new["first_at"],
    )


# Why a member of a classic group is gone, as far as its time-outs show.
#
# A coordinator removes a member that leaves (a client closes, or its poll is later than `max.poll.interval.ms`: it says
# so itself), whose session ends, or that does not join again within the rebalance timeout. What takes longer than the
# time between two records cannot have ended between them. One exception: the session of a member that never took up
# its assignment runs from before the first record.


def with_departures(
    reader: Reader, group: GroupKey, before: Side | None, after: Side, causes: Sequence[Cause]
) -> tuple[Cause, ...]:
    """Say of members that are gone what the time between the two records excludes; the bytes may not be there."""
    gone = {each.about for each in causes if each.kind is CauseKind.MEMBER_GONE}
    if before is None or not gone or {before.group_type, after.group_type} != {CLASSIC}:
        return tuple(causes)
    members = _members(reader, group, before)
    elapsed = after.at - before.at
    return tuple(
        each
        if each.kind is not CauseKind.MEMBER_GONE or each.about not in members
        else replace(each, what=_text(each.what, members[each.about], elapsed))
        for each in causes
    )


def _members(reader: Reader, group: GroupKey, state: Side) -> dict[str | None, ClassicGroupMember]:
    condition = matching("t.", cluster_id=group[0], group_id=group[1], offset=state.offset)
    found = records(reader, f"SELECT t.key, t.value FROM current_log_records t WHERE {condition}")
    for key, value in sorted((row["key"], row["value"]) for row in found if row["key"] and row["value"]):
        try:
            record = decode(key, value).value
        except DecodeFault:
            continue
        if isinstance(record, GroupMetadata):
            return {member.member_id: member for member in record.members}
    return {}


def _text(what: str, member: ClassicGroupMember, elapsed: timedelta) -> str:
    session = timedelta(milliseconds=member.session_timeout)
    rebalance = session if member.rebalance_timeout is None else timedelta(milliseconds=member.rebalance_timeout)
    limits = (
        (f"its session of {length(session)}", session),
        (f"the rebalance timeout of {length(rebalance)}", rebalance),
    )
    excluded = [name for name, least in limits if elapsed < least]
    if not excluded:
        return what
    subject = what.partition(" is gone (")[0]
    others = [] if elapsed < session else ["its session ended"]
    others += [] if elapsed < rebalance else ["it did not join again in time"]
    how = " or ".join(["it left", *others])
    since = f"{length(elapsed)} after the record before, {' and '.join(excluded)} cannot have ended"
    return f"{subject} is gone: {how} ({since}, unless it never took up its assignment)"
