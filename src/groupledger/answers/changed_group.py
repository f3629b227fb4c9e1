"""A group's last state with other members, partitions or another assignor: who would have what, what would move."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from groupledger.answers.answer_columns import listed
from groupledger.answers.causes import Side, assigned_by
from groupledger.answers.explanation import MemberMove
from groupledger.answers.queries import (
    CLASSIC,
    CONSUMER,
    NamedPartition,
    Reader,
    Record,
    from_row,
    literal,
    matching,
    one_of,
    records,
)
from groupledger.answers.queries import partitions as named_partitions
from groupledger.answers.spoken import MOST_NAMED, numbered
from groupledger.answers.states import Selection, States, cluster_of, select, states
from groupledger.core.custom.assignor_names import find_all, may_be_custom
from groupledger.core.custom.custom_group import CustomAssignor, Protocol
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.log.topic_partitions import change_order
from groupledger.core.moments import iso, micros
from groupledger.core.rebalance.registry import (
    BY_NAME,
    COOPERATIVE_STICKY,
    DEFAULT_ASSIGNOR,
    JAVA,
    RANGE,
    ROUNDROBIN,
    called,
)
from groupledger.core.scenarios.group_change import SERVER, count_after, in_turn, new_ids, scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime


BY_COORDINATOR = (DEFAULT_ASSIGNOR, RANGE.name)
"""Assignors of KIP-848's coordinators."""

MOST_MEMBERS = 100_000
SOME_MEMBERS = f"a whole number, such as 3 (join) or -2 (leave), up to {MOST_MEMBERS:,}"
"""Members that can join at once: as many as a group may have by default (`limits.max_members_per_group`)."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A group as it would settle. `members`: what each has in the recorded state, and what it would be assigned.

    `changes` says what is changed, `grown_from` how many partitions topics have that would have more. `moves` counts
    partitions that would go from one member to another, both there before and after; `given_up` those that members
    would stop reading while the group rebalances by its `protocol`: under an eager one all that they have.
    `unassigned`: that nobody would have; `least`, `most`: of one member. `notes` say what was assumed.
    """

    cluster_id: str
    group_id: str
    snapshot_id: str
    generation: int | None
    observed_at: datetime
    assignor_before: str | None
    assignor: str
    protocol: str
    changes: tuple[str, ...]
    grown_from: tuple[NamedPartition, ...]
    joined: tuple[str, ...]
    gone: tuple[str, ...]
    members: tuple[MemberMove, ...] = field(metadata=listed(MemberMove))
    moves: int
    given_up: int
    partitions_before: int
    partitions: int
    unassigned_before: int
    unassigned: int
    most_before: int
    least_before: int
    most: int
    least: int
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """`pay (cluster dev), if 3 members join and orders has 17 partitions instead of 7`."""
        *more, last = self.changes or ("nothing changes",)
        changed = f"{', '.join(more)} and {last}" if more else last
        return f"{self.group_id} (cluster {self.cluster_id}), if {changed}"

    @property
    def numbers(self) -> tuple[tuple[str, object, object], ...]:
        """What is compared, before and after."""
        had = len(self.members) - len(self.joined)
        return (
            ("assignor", self.assignor_before, self.assignor),
            ("members", had, had + len(self.joined) - len(self.gone)),
            ("partitions", self.partitions_before, self.partitions),
            ("most of a member", self.most_before, self.most),
            ("least of a member", self.least_before, self.least),
            ("nobody has", self.unassigned_before, self.unassigned),
        )

    @property
    def cost(self) -> str:
        """`given up: 3 (cooperative: members stop reading what moves); from member to member: 3`."""
        eager = self.protocol == Protocol.EAGER.lower()
        why = "eager: members stop reading all they have" if eager else "cooperative: members stop reading what moves"
        return f"given up: {self.given_up:,} ({why}); from member to member: {self.moves:,}"


class _Topic(NamedTuple):
    """A topic at the time of the state: its partitions by the listing, and as members show that there are."""

    topic_id: str | None
    listed: int
    shown: int


def what_if(
    reader: Reader,
    group_id: str,
    cluster: str | None = None,
    *,
    members: int = 0,
    without: Sequence[str] | str = (),
    partitions: Mapping[str, str] | None = None,
    assignor: str | None = None,
    generation: int | None = None,
    at: datetime | None = None,
) -> WhatIf:
    """Recompute a state of the group: with `members` more or (below 0) fewer, `without` some by id.

    `partitions`: topics with more partitions, `+10` for ten more, `x2` for twice as many. The state is that of a
    generation or group epoch, or the one in force at a time; default: the last one that has members.
    New members are called `new-1`, ...; each subscribes, and is placed, like one of the group's in turn. Of those there
    are, the last in the order of the record go first. The assignor is the recorded one, any that `groupledger solve`
    knows, or a custom one.
    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, AMBIGUOUS_GROUP, UNKNOWN_GENERATION, UNKNOWN_MEMBER, NO_MEMBERS,
    NOT_COMPUTED, TOPIC_NOT_LISTED, NOT_KNOWN_YET, UNKNOWN_TOPIC, BAD_PARTITIONS, USAGE, ASSIGNOR_NOT_FOUND,
    and what `core.scenarios.solving.targets` does.
    """
    from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
    from groupledger.core.scenarios.solving import order_decides, targets_after_joins

    if not isinstance(members, int) or members > MOST_MEMBERS:
        raise Fault("USAGE", f"members is {members!r}; expected {SOME_MEMBERS}")
    if not isinstance(assignor, str | None):
        raise Fault("USAGE", f"assignor is {assignor!r}; expected a name, or the text 'module:function'")
    if not isinstance(partitions or {}, Mapping):
        raise Fault("USAGE", f"partitions is {partitions!r}; expected a change by topic, such as {{'orders': '+10'}}")
    without = [without] if isinstance(without, str) else without
    cluster = cluster_of(reader, group_id, cluster)
    side, known, notes = _state(reader, cluster, group_id, generation, at)
    every = sorted(side.topics)
    before = [row if row["topics"] is not None else row | {"topics": every} for row in side.members]
    gone = _leaving(before, members, without)
    stay = [row for row in before if row["member_id"] not in gone]
    new = _joining(stay or before, {row["member_id"] for row in before}, max(members, 0))
    after = [*stay, *new]
    if not after:
        raise Fault("NO_MEMBERS", f"group {group_id!r} has {numbered(len(before), 'member')}: none would be left")
    topics = _topics(cluster, side, known)
    counts = _counts(topics, partitions or {})
    name = _chosen(side, assignor)
    is_custom = name not in {*BY_NAME, *CLIENT_ASSIGNORS} and may_be_custom(name)
    if is_custom and assignor is None:  # no code is loaded by a name that data supplies
        raise Fault("NOT_COMPUTED", f"{side.snapshot_id} names {name!r}: name the assignor to have its code run")
    custom = find_all([name]) if is_custom else {}
    racks = _replica_racks(reader, cluster, side, topics, counts) if _reads_racks(name, after) else None
    if custom:
        after, racks = _with_user_data(reader, cluster, side, after), {}
    listed = {topic: (each.topic_id, counts[topic]) for topic, each in topics.items()}
    group = scenario(name, listed, after, racks)
    targets = targets_after_joins(group, len(new), custom)
    given = {member_id: tuple(sorted(has)) for member_id, has in targets.items()}
    said = *notes, *_assumed(side, stay or before, new, name), *_of_racks(after, name, racks), *_older(topics)
    said += (ORDER_DECIDES,) * order_decides(group, len(new))
    settled = _Settled(group_id, name, _protocol(name, custom), before, after, topics, counts, given)
    return _compared(cluster, side, settled, said)


ORDER_DECIDES = (
    "members share a bucket of the coordinator's maps: the order in which they joined may decide, and was assumed"
)


class _Settled(NamedTuple):
    """A group with its change: its members before and after, its topics, and what members would be assigned."""

    group_id: str
    assignor: str
    protocol: Protocol
    before: list[Record]
    after: list[Record]
    topics: Mapping[str, _Topic]
    counts: Mapping[str, int]
    given: Mapping[str, tuple[NamedPartition, ...]]


def _compared(cluster: str, side: Side, found: _Settled, notes: tuple[str, ...]) -> WhatIf:
    """Compare the state with what would become of it."""
    members = tuple(_moves(found.before, found.after, found.given))
    stays = [each for each in members if each.stays]
    lost, got = (Counter(place for each in stays for place in getattr(each, name)) for name in ("revoked", "added"))
    held, would = (
        [len(named_partitions(row["recorded"])) for row in found.before],
        [len(each.assigned) for each in stays],
    )
    was = _subscribed(found.before, {topic: each.shown for topic, each in found.topics.items()})
    now = _subscribed(found.after, found.counts)
    ids = {row["member_id"] for row in found.before}
    joined = tuple(each.member_id for each in stays if each.member_id not in ids)
    gone = tuple(sorted(each.member_id for each in members if not each.stays))
    recorded = _recorded(side)
    return WhatIf(
        *(cluster, found.group_id, side.snapshot_id, side.number, side.at),
        *(recorded, found.assignor, found.protocol.name.lower()),
        changes=tuple(_changes(found, len(joined), len(gone), recorded)),
        grown_from=tuple((t, each.shown) for t, each in found.topics.items() if found.counts[t] != each.shown),
        joined=joined,
        gone=gone,
        members=members,
        moves=(lost & got).total(),
        given_up=lost.total() if found.protocol is Protocol.COOPERATIVE else sum(len(each.held) for each in stays),
        partitions_before=was,
        partitions=now,
        unassigned_before=was - len({place for row in found.before for place in named_partitions(row["recorded"])}),
        unassigned=now - len({place for each in stays for place in each.assigned}),
        most_before=max(held),
        least_before=min(held),
        most=max(would),
        least=min(would),
        notes=notes,
    )


def _subscribed(members: Iterable[Record], counts: Mapping[str, int]) -> int:
    """Count the partitions of all topics that a member subscribes to."""
    return sum(counts[topic] for topic in {topic for row in members for topic in row["topics"]} if topic in counts)


def _protocol(assignor: str, custom: Mapping[str, CustomAssignor]) -> Protocol:
    """Return how members rejoin: a coordinator (KIP-848) and cooperative assignors let them keep the rest."""
    named = custom.get(assignor) or BY_NAME.get(assignor)
    keeps = assignor.startswith(SERVER) or COOPERATIVE_STICKY.name in assignor
    return Protocol.COOPERATIVE if keeps or (named is not None and named.cooperative) else Protocol.EAGER


def _changes(found: _Settled, joined: int, gone: int, recorded: str | None) -> Iterator[str]:
    """Say what is changed: `3 members join`, `orders has 17 partitions instead of 7`."""
    for number, one, several in ((joined, "joins", "join"), (gone, "leaves", "leave")):
        if number:
            yield f"{numbered(number, 'member')} {one if number == 1 else several}"
    for topic, count in found.counts.items():
        if count != found.topics[topic].shown:
            yield f"{topic} has {numbered(count, 'partition')} instead of {found.topics[topic].shown:,}"
    if found.assignor != recorded:
        yield f"{found.assignor} assigns" + (f" instead of {recorded}" if recorded is not None else "")


def _counts(topics: Mapping[str, _Topic], partitions: Mapping[str, str]) -> dict[str, int]:
    """Return the number of partitions of each topic after the change."""
    unknown = next((topic for topic in partitions if topic not in topics), None)
    if unknown is not None:
        raise Fault("UNKNOWN_TOPIC", f"no member subscribes to topic {unknown!r}; {expected_one_of(unknown, topics)}")
    return {topic: each.shown for topic, each in topics.items()} | {
        topic: count_after(topic, change, topics[topic].shown) for topic, change in partitions.items()
    }


def _state(
    reader: Reader, cluster: str, group_id: str, generation: int | None, at: datetime | None
) -> tuple[Side, States, tuple[str, ...]]:
    """Return the state to compute again: complete, with members, of a group whose assignment is ours to compute."""
    condition = matching("t.", cluster_id=cluster, group_id=group_id)
    if generation is None and at is None:
        every = f"SELECT t.*, max(t.offset) OVER () AS newest_of_group FROM current_group_snapshots t WHERE {condition}"
        which = "t.members > 0 AND t.complete ORDER BY t.offset DESC LIMIT 1"
        rows = records(reader, f"SELECT t.* FROM ({every}) t WHERE {which}")
    else:
        rows = [select(reader, group_id, cluster, Selection(generation, at=at))[0]]
        rows = [row for row in rows if row["members"] and row["complete"]]
    if not rows:
        which = "state" if generation is None else f"state of generation {generation}"
        which = which if at is None else f"state at {iso(at)}"
        raise Fault("NO_MEMBERS", f"no complete {which} of group {group_id!r} has members: there is nothing to compute")
    if rows[0]["group_type"] not in (CLASSIC, CONSUMER):
        expected = f"expected {CLASSIC} or {CONSUMER}"
        raise Fault("NOT_COMPUTED", f"group {group_id!r} is a {rows[0]['group_type']} group; {expected}")
    snapshot_id, offset = rows[0]["snapshot_id"], rows[0]["offset"]
    known = states(reader, condition, [snapshot_id])
    older = rows[0].get("newest_of_group", offset) != offset
    note = "the group's newest state has no members, or not all of it is recorded: this is the last one that has them"
    return known.sides[cluster, group_id, snapshot_id], known, (note,) if older else ()


def _recorded(side: Side) -> str | None:
    """Return the assignor of the state, by the name under which it is computed."""
    named = assigned_by(side.group_type, side.assignor)
    return named if named is None or side.group_type == CLASSIC else f"{SERVER}{named}"


def _chosen(side: Side, assignor: str | None) -> str:
    """Return the assignor to compute: the recorded one unless another is named; `uniform` is a coordinator's alone."""
    name = f"{SERVER}{assignor}" if assignor == DEFAULT_ASSIGNOR else _recorded(side) if assignor is None else assignor
    if name is None:
        raise Fault("NOT_COMPUTED", f"{side.snapshot_id} names no assignor: name the one to compute (assignor)")
    name = called(name)
    if name.startswith(SERVER) and name.removeprefix(SERVER) not in BY_COORDINATOR:
        expected = expected_one_of(name, [f"{SERVER}{each}" for each in BY_COORDINATOR])
        raise Fault("UNKNOWN_ASSIGNOR", f"assignor is {name!r}; {expected}, or a client's (groupledger solve)")
    return name


def _leaving(before: list[Record], members: int, without: Sequence[str]) -> set[str]:
    ids = [row["member_id"] for row in before]
    for name in without:
        if name not in ids:
            raise Fault("UNKNOWN_MEMBER", f"no member {name!r} in this state; {expected_one_of(name, sorted(ids))}")
    left = [name for name in ids if name not in without]
    if -members > len(left):
        raise Fault("NO_MEMBERS", f"the state has {numbered(len(left), 'member')}: {-members} cannot go")
    return {*without, *(left[members:] if members < 0 else ())}


def _joining(like: list[Record], taken: set[str], number: int) -> list[Record]:
    """Make so many new members, each with the subscription and the rack of one of the group's in turn."""
    own = {"group_instance_id": None, "client_id": None, "host": None, "recorded": None, "target": None}
    models = in_turn(like, number)
    return [row | own | {"member_id": name} for row, name in zip(models, new_ids(number, taken), strict=True)]


def _with_user_data(reader: Reader, cluster: str, side: Side, members: list[Record]) -> list[Record]:
    """Add what members sent, which a custom assignor may read; new ones send nothing."""
    condition = matching("t.", cluster_id=cluster, snapshot_id=side.snapshot_id)
    said = "SELECT t.member_id, t.user_data FROM current_member_snapshots t WHERE t.user_data IS NOT NULL"
    rows = records(reader, f"{said} AND {condition}")
    sent = {row["member_id"]: b64encode(row["user_data"]).decode() for row in rows}
    return [row | {"user_data": sent.get(row["member_id"])} for row in members]


def _assumed(side: Side, like: list[Record], new: list[Record], assignor: str) -> Iterator[str]:
    if any(row["topics"] is None for row in side.members):
        yield "members whose subscription is not in the record are taken to subscribe to every topic of the group"
    if new and len({(*sorted(row["topics"]), row["rack_id"]) for row in like}) > 1:
        models = ", ".join(dict.fromkeys(row["member_id"] for row in in_turn(like, min(len(new), MOST_NAMED))))
        more = ", ..." if min(len(new), len(like)) > MOST_NAMED else ""
        yield f"members differ in topics or rack: new ones are like those there are, in turn: {models}{more}"
    if new and assignor.removeprefix(SERVER) in (RANGE.name, ROUNDROBIN.name):
        yield f"{assignor} goes by the order of member ids: who moves what depends on the ids that new members get"
    by_coordinator = assignor.startswith(SERVER)
    if by_coordinator != (side.group_type != CLASSIC):
        now, then = ("client", "coordinator") if by_coordinator else ("coordinator", "client")
        yield f"a {now} assigns in this group: {assignor} is a {then}'s, for after a conversion (KIP-848)"


# Racks: the Java client's assignors keep a member near the replicas of its partitions (KIP-881).


def _reads_racks(assignor: str, after: list[Record]) -> bool:
    named = BY_NAME.get(assignor)
    return named is not None and named.library == JAVA and any(row["rack_id"] for row in after)


def _replica_racks(
    reader: Reader, cluster: str, side: Side, topics: Mapping[str, _Topic], counts: Mapping[str, int]
) -> dict[str, list[list[str | None]]]:
    """Return the racks of replicas by topic, as listed at the time of the state; not of topics that are changed."""
    said = "SELECT t.topic, t.topic_id, t.partition_count, t.valid_from, t.racks FROM current_topic_snapshots t"
    of_topics = f"{matching('t.', cluster_id=cluster)} AND {one_of('t.topic', topics)}"
    rows = records(reader, f"{said} WHERE {of_topics} AND t.valid_from <= {literal(side.at)}")
    rows.sort(key=lambda row: change_order(micros(row["valid_from"]), row["topic_id"], row["partition_count"]))
    last = {row["topic"]: row["racks"] for row in rows}
    return {topic: racks for topic, racks in last.items() if racks is not None and len(racks) == counts[topic]}


def _of_racks(after: list[Record], assignor: str, racks: Mapping[str, object] | None) -> Iterator[str]:
    if racks or not any(row["rack_id"] for row in after):
        return
    reads = _reads_racks(assignor, after)
    yield f"members name racks: those of replicas are {'not known' if reads else f'left aside by {assignor} here'}"


# The topics, and what members have.


def _topics(cluster: str, side: Side, known: States) -> dict[str, _Topic]:
    """Return the topics as they are listed at the time of the state."""
    missing = known.not_listed(cluster, side, side.at)
    if missing:
        message = f"no topic listing has {', '.join(missing)} at the time of {side.snapshot_id}"
        raise Fault("TOPIC_NOT_LISTED", f"{message}: the partition counts are not known; ingest a listing of topics")
    listed = sorted(known.listed(cluster, side.topics, side.at).items())
    return {topic: _Topic(*found, _shown(side, topic, *found)) for topic, found in listed if found is not None}


def _shown(side: Side, topic: str, topic_id: str | None, count: int) -> int:
    """Count the partitions of a topic: those that members have exist, even if the listing is older."""
    by_name = side.group_type == CLASSIC or topic_id is None
    entries = [entry for row in side.members for entry in row["recorded"] or () if entry["topic"] == topic]
    own = (entry for entry in entries if by_name or entry["topic_id"] in (None, topic_id))
    highest: int = max((number for entry in own for number in entry["partitions"]), default=-1)
    return max(count, highest + 1)


def _older(topics: Mapping[str, _Topic]) -> Iterator[str]:
    for topic, each in topics.items():
        if each.shown != each.listed:
            taken = f"{topic} is taken to have {each.shown} partitions, as members have"
            yield f"{taken}: the listing of that time has {each.listed}"


def _moves(
    before: list[Record], after: list[Record], given: Mapping[str, tuple[NamedPartition, ...]]
) -> Iterator[MemberMove]:
    """Compare members as they are in the record, new ones last of those that stay; then those that would be gone."""
    stay = {row["member_id"] for row in after}
    for row in [*after, *(each for each in before if each["member_id"] not in stay)]:
        stays = row["member_id"] in stay
        has, would = named_partitions(row["recorded"]), given.get(row["member_id"], ()) if stays else ()
        yield from_row(MemberMove, row, stays=stays, held=has, assigned=would, is_away=False)
