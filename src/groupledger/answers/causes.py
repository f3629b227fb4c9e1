"""What differs between two neighbouring states of a group: the causes of a rebalance, and the partitions that moved.

The log holds states, not reasons. A member that is gone may have left, crashed or timed out; one that joins again
leaves no trace where its state is the same. Neither is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from groupledger.answers.generations import CLASSIC, assigned_by
from groupledger.answers.queries import held

if TYPE_CHECKING:
    from groupledger.answers.queries import NamedPartition, Record

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


@dataclass(frozen=True, slots=True)
class TopicFindings:
    """What became of topics between two states: `sure` causes, and `possible` ones that a listing shows.

    `guesses` are possible ones that no listing confirms. `given_again`: how many partitions that members had earlier
    had no owner in the state before, and have one now; `late` says which were assigned for the first time although they
    had been listed before.
    """

    sure: tuple[Cause, ...] = ()
    possible: tuple[Cause, ...] = ()
    guesses: tuple[Cause, ...] = ()
    given_again: int = 0
    late: tuple[str, ...] = ()


NO_TOPICS = TopicFindings()


def causes(before: Side | None, after: Side, topics: TopicFindings = NO_TOPICS) -> Iterator[Cause]:
    """Return what differs between two states: members first, what is only possible last; NOT_SHOWN if nothing does."""
    if before is None:
        yield Cause(CauseKind.GROUP_BORN, None, "the first state of the group that the ledger has")
        return
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


def _not_shown(after: Side, topics: TopicFindings) -> Cause:
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
