"""A group's last state with other members or another assignor: who would have what, and how much would move."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import listed
from groupledger.answers.generations import CLASSIC, Selection, assigned_by, cluster_of, select
from groupledger.answers.queries import matching, records
from groupledger.answers.queries import partitions as named_partitions
from groupledger.answers.rebalance import MemberMove
from groupledger.answers.spoken import numbered
from groupledger.answers.states import CONSUMER, states
from groupledger.core.faults import Fault
from groupledger.core.log.topic_partitions import count_after
from groupledger.core.moments import iso
from groupledger.core.rebalance.registry import called

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from groupledger.answers.causes import Side
    from groupledger.answers.queries import NamedPartition, Reader, Record
    from groupledger.answers.states import States

SERVER = "server-"
"""What the coordinator's own assignors begin with, where one is chosen by name."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A group as it would settle. `members`: what each has in the recorded state, and what it would be assigned.

    `moves` counts partitions that would go from one member to another, `unassigned` those that nobody would have;
    `least` and `most` are of one member. `notes` say what was assumed.
    """

    cluster_id: str
    group_id: str
    snapshot_id: str
    generation: int | None
    observed_at: datetime
    assignor: str
    joined: tuple[str, ...]
    gone: tuple[str, ...]
    members: tuple[MemberMove, ...] = field(metadata=listed(MemberMove))
    moves: int
    unassigned: int
    most_before: int
    least_before: int
    most: int
    least: int
    notes: tuple[str, ...]


def what_if(
    reader: Reader,
    group_id: str,
    cluster: str | None = None,
    *,
    members: int = 0,
    without: Sequence[str] = (),
    partitions: Mapping[str, str | int] | None = None,
    assignor: str | None = None,
    generation: int | None = None,
    at: datetime | None = None,
) -> WhatIf:
    """Recompute a state of the group: with `members` more or (below 0) fewer, `without` some by id.

    `partitions`: topics with more partitions, `+10` or 10 for ten more, `x2` for twice as many. The state is that of a
    generation or group epoch, or the one in force at a time; default: the last one that has members.
    New members are called `new-1`, ... and subscribe to what most members do. Of those there are, the last in the
    order of the record go first. The assignor is the recorded one, or any that `groupledger solve` knows.
    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, AMBIGUOUS_GROUP, UNKNOWN_GENERATION, UNKNOWN_MEMBER, NO_MEMBERS,
    NOT_COMPUTED, TOPIC_NOT_LISTED, NOT_KNOWN_YET, UNKNOWN_TOPIC, BAD_PARTITIONS, and what
    `core.scenarios.solving.targets` does.
    """
    from groupledger.core.scenarios.solving import targets

    cluster = cluster_of(reader, group_id, cluster)
    side, known = _state(reader, cluster, group_id, generation, at)
    before = [row if row["topics"] is not None else row | {"topics": sorted(side.topics)} for row in side.members]
    gone = _leaving(before, members, without)
    new, notes = _joining(before, max(members, 0))
    after = [*(row for row in before if row["member_id"] not in gone), *new]
    if not after:
        raise Fault("NO_MEMBERS", f"group {group_id!r} has {numbered(len(before), 'member')}: none would be left")
    listed = _listed(cluster, side, known)
    counts = {topic: (topic_id, _shown(side, topic, topic_id, count)) for topic, (topic_id, count) in listed.items()}
    counts |= _more(counts, partitions or {})
    scenario = _scenario(called(assignor or _assignor(side)), side, counts, after)
    given = {member_id: tuple(sorted(has)) for member_id, has in targets(scenario).items()}
    found = tuple(_moves(before, after, given))
    lost, got = (Counter(place for each in found for place in getattr(each, name)) for name in ("revoked", "added"))
    partition_count = sum(counts[topic][1] for topic in {name for row in scenario["members"] for name in row["topics"]})
    held = [len(_held(row)) for row in side.members]
    would = [len(each.assigned) for each in found if each.stays]
    return WhatIf(
        cluster,
        group_id,
        snapshot_id=side.snapshot_id,
        generation=side.number,
        observed_at=side.at,
        assignor=scenario["assignor"],
        joined=tuple(row["member_id"] for row in new),
        gone=tuple(sorted(gone)),
        members=found,
        moves=(lost & got).total(),
        unassigned=partition_count - len({place for each in found if each.stays for place in each.assigned}),
        most_before=max(held),
        least_before=min(held),
        most=max(would),
        least=min(would),
        notes=(*notes, *_assumed(side, after), *_older(listed, counts)),
    )


def _more(
    counts: Mapping[str, tuple[str | None, int]], partitions: Mapping[str, str | int]
) -> dict[str, tuple[str | None, int]]:
    """Return the changed topics with their new numbers of partitions."""
    unknown = next((topic for topic in partitions if topic not in counts), None)
    if unknown is not None:
        raise Fault("UNKNOWN_TOPIC", f"nobody in the group subscribes to {unknown!r}; topics: {', '.join(counts)}")
    changes = {topic: f"+{each}" if isinstance(each, int) else each for topic, each in partitions.items()}
    return {topic: (counts[topic][0], count_after(change, counts[topic][1])) for topic, change in changes.items()}


def _state(
    reader: Reader, cluster: str, group_id: str, generation: int | None, at: datetime | None
) -> tuple[Side, States]:
    """Return the state to compute again: complete, with members, of a group whose assignment is ours to compute."""
    condition, values = matching("t.", cluster_id=cluster, group_id=group_id)
    if generation is None and at is None:
        which = "t.members > 0 AND t.complete ORDER BY t.offset DESC LIMIT 1"
        rows = records(reader, f"SELECT t.* FROM current_group_snapshots t WHERE {condition} AND {which}", **values)
    else:
        rows = [select(reader, group_id, cluster, Selection(generation, at=at)).chosen]
        rows = [row for row in rows if row["members"] and row["complete"]]
    if not rows:
        which = "state" if generation is None else f"state of generation {generation}"
        which = which if at is None else f"state at {iso(at)}"
        raise Fault("NO_MEMBERS", f"no complete {which} of group {group_id!r} has members: there is nothing to compute")
    if rows[0]["group_type"] not in (CLASSIC, CONSUMER):
        expected = f"expected {CLASSIC} or {CONSUMER}"
        raise Fault("NOT_COMPUTED", f"group {group_id!r} is a {rows[0]['group_type']} group; {expected}")
    snapshot_id = rows[0]["snapshot_id"]
    known = states(reader, condition, values, [snapshot_id], computed=False)
    return known.sides[cluster, group_id, snapshot_id], known


def _assignor(side: Side) -> str:
    """Return the assignor of the state, by the name under which it is computed."""
    if side.group_type != CLASSIC:
        return f"{SERVER}{assigned_by(side.group_type, side.assignor)}"
    if side.assignor is None:
        raise Fault("NOT_COMPUTED", f"{side.snapshot_id} names no assignor: name the one to compute (assignor)")
    return side.assignor


def _leaving(before: list[Record], members: int, without: Sequence[str]) -> set[str]:
    ids = [row["member_id"] for row in before]
    for name in without:
        if name not in ids:
            raise Fault("UNKNOWN_MEMBER", f"no member {name!r} in this state; members: {', '.join(sorted(ids))}")
    left = [name for name in ids if name not in without]
    if -members > len(left):
        raise Fault("NO_MEMBERS", f"the state has {numbered(len(left), 'member')}: {-members} cannot go")
    return {*without, *(left[members:] if members < 0 else ())}


def _joining(before: list[Record], number: int) -> tuple[list[Record], list[str]]:
    """Make so many new members with the commonest subscription, and say what had to be assumed."""
    taken = {row["member_id"] for row in before}
    counted = Counter(tuple(sorted(row["topics"])) for row in before)
    topics, alike = min(counted.items(), key=lambda each: (-each[1], each[0]))
    names: list[str] = []
    while len(names) < number:
        at = len(names) + 1
        name = f"new-{at}"
        while name in taken:
            name += "-"
        names.append(name)
    row = {"group_instance_id": None, "client_id": None, "host": None, "rack_id": None, "recorded": None}
    new = [row | {"member_id": name, "topics": list(topics)} for name in names]
    others = f"{numbered(alike, 'member')} {'does' if alike == 1 else 'do'}"
    several = f"members differ in what they subscribe to: new ones take {', '.join(topics)}, as {others}"
    return new, [several] if names and len(counted) > 1 else []


def _assumed(side: Side, after: list[Record]) -> Iterator[str]:
    if any(row["topics"] is None for row in side.members):
        yield "members whose subscription is not in the record are taken to subscribe to every topic of the group"
    if any(row["rack_id"] for row in after):
        yield "members name racks: those of replicas are left aside here"


def _listed(cluster: str, side: Side, known: States) -> dict[str, tuple[str | None, int]]:
    """Return the topics as they are listed at the time of the state."""
    missing = known.not_listed(cluster, side, side.at)
    if missing:
        message = f"no topic listing has {', '.join(missing)} at the time of {side.snapshot_id}"
        raise Fault("TOPIC_NOT_LISTED", f"{message}: the partition counts are not known; ingest a listing of topics")
    listed = known.listed(cluster, side.topics, side.at)
    return {topic: found for topic, found in sorted(listed.items()) if found is not None}


def _shown(side: Side, topic: str, topic_id: str | None, count: int) -> int:
    """Count the partitions of a topic: those that members have exist, even if the listing is older."""
    by_name = side.group_type == CLASSIC or topic_id is None
    entries = [entry for row in side.members for entry in row["recorded"] or () if entry["topic"] == topic]
    own = (entry for entry in entries if by_name or entry["topic_id"] in (None, topic_id))
    highest: int = max((number for entry in own for number in entry["partitions"]), default=-1)
    return max(count, highest + 1)


def _older(listed: Mapping[str, tuple[str | None, int]], counts: Mapping[str, tuple[str | None, int]]) -> Iterator[str]:
    for topic, (_, count) in counts.items():
        if count != listed[topic][1]:
            taken = f"{topic} is taken to have {count} partitions, as members have"
            yield f"{taken}: the listing of that time has {listed[topic][1]}"


def _scenario(
    assignor: str, side: Side, counts: Mapping[str, tuple[str | None, int]], after: list[Record]
) -> dict[str, Any]:
    """Return the group as `core.scenarios.solving` takes it."""
    stayed = {row["member_id"] for row in side.members}
    serverside = assignor.startswith(SERVER)
    members = []
    for row in after:
        has = [[topic, number] for topic, number in _held(row) if topic in counts and number < counts[topic][1]]
        topics = [topic for topic in sorted(row["topics"]) if topic in counts]
        member = {"id": row["member_id"], "instance_id": row["group_instance_id"], "topics": topics}
        generation = side.number if row["member_id"] in stayed else None
        members.append(member | ({"assigned": has} if serverside else {"owned": has, "generation": generation}))
    listed: dict[str, Any] = {
        topic: {"id": topic_id, "partitions": count} if serverside else count
        for topic, (topic_id, count) in counts.items()
    }
    return {"id": None, "assignor": assignor, "topics": listed, "members": members}


def _held(row: Record) -> tuple[NamedPartition, ...]:
    return named_partitions(row["recorded"])


def _moves(
    before: list[Record], after: list[Record], given: dict[str, tuple[NamedPartition, ...]]
) -> Iterator[MemberMove]:
    """Compare members as they are in the record, new ones last of those that stay; then those that would be gone."""
    stay = {row["member_id"] for row in after}
    for row in [*after, *(each for each in before if each["member_id"] not in stay)]:
        name = row["member_id"]
        identity = (name, row["client_id"], row["group_instance_id"])
        yield MemberMove(*identity, name in stay, _held(row), given.get(name, ()) if name in stay else ())
