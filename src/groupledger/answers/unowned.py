"""Partitions of subscribed topics that nobody has: since when, who had them last, and which record says so.

The last complete state of each group says what it subscribes to and who has what. `since` is from when on all of it has
held: the partition is there, the group subscribes to its topic, and nobody has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.names import require_names
from groupledger.answers.ownership_changes import life_of
from groupledger.answers.reach import known, reaches
from groupledger.answers.recorded_states import begun_late
from groupledger.answers.rows import alike, matching, one_of, records
from groupledger.answers.spoken import numbered
from groupledger.answers.states import states
from groupledger.answers.topics import life_at
from groupledger.core.moment import iso
from groupledger.core.since import placed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from groupledger.answers.causes import Side
    from groupledger.answers.rows import GroupKey, Reader, Record, Value
    from groupledger.answers.states import States
    from groupledger.answers.topics import TopicLife
    from groupledger.core.since import Bound

Place = tuple[str, str, str, int]
"""Cluster, group, topic, partition."""

NAMED = 10
_GROUPS_BY_NAME = 1_000


class WhyUnowned(StrEnum):
    """What happened at the moment since which nobody has had a partition."""

    GIVEN_UP = "given-up"
    SUBSCRIBED = "subscribed"
    PARTITION_ADDED = "partition-added"
    FIRST_LISTED = "first-listed"


@dataclass(frozen=True, slots=True)
class UnownedPartition:
    """A partition that nobody in a group has that subscribes to its topic.

    `age_seconds` counts to the moment, or as far as the group is known, where that is earlier. `snapshot_id` is the
    state since which that is so, `seen_in` the last one, which still says it. `last_member_id` had it last, until
    `last_until`; None where nobody of the group is known to have had this topic's partition. `from_before`: or longer.
    """

    cluster_id: str
    group_id: str
    topic: str
    partition: int
    since: datetime
    age_seconds: float
    why: WhyUnowned
    generation: int | None
    snapshot_id: str
    last_member_id: str | None
    last_until: datetime | None
    seen_in: str
    from_before: bool = False


@dataclass(frozen=True, slots=True)
class UnownedPartitions:
    """What nobody has at a moment, the oldest first; `left_off` younger ones are not here.

    `since`: only what nobody has had since then, or longer. `not_known`: groups of which it cannot be told whether they
    have others, too. `notes` say what could not be told, and why there is none.
    """

    at: datetime
    since: datetime | None
    partitions: tuple[UnownedPartition, ...]
    left_off: int
    not_known: tuple[GroupKey, ...]
    notes: tuple[str, ...]


def unowned_partitions(
    reader: Reader,
    at: datetime,
    since: Bound | None = None,
    cluster: str | None = None,
    group: str | None = None,
    limit: int = 50,
) -> UnownedPartitions:
    """Return the unowned partitions at a moment, in every group or those like `group`. `since`: unowned for so long.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP.
    """
    condition, values = matching("t.", cluster_id=cluster)
    named, names = alike("t.group_id", "group_id", group)
    found = _Groups(reader, f"{condition} AND {named}", values | names, at)
    lasts = found.last_states()
    if not lasts:
        require_names(reader, cluster, group)
    recorded = states(reader, *found.among(lasts), [snapshot_id for snapshot_id, _ in lasts.values()], computed=False)
    of_groups = _LastSides(up_to := found.up_to(lasts), found.with_given(recorded, up_to))
    rows = sorted(found.explained(of_groups), key=attrgetter("since", "cluster_id", "group_id", "topic", "partition"))
    late = begun_late(reader, {row.snapshot_id for row in rows if row.why is WhyUnowned.SUBSCRIBED})
    rows = [replace(row, from_before=row.why is WhyUnowned.SUBSCRIBED and row.snapshot_id in late) for row in rows]
    chosen = [row for row in rows if _lasts_long(row, since)]
    since_when = None if since is None else placed(since, at)
    unknown = tuple(key for key in of_groups.sides if of_groups.not_counted(key))
    notes = tuple(_notes(reader, of_groups, since_when, rows, chosen))
    return UnownedPartitions(at, since_when, tuple(chosen[:limit]), max(0, len(chosen) - limit), unknown, notes)


def _lasts_long(row: UnownedPartition, since: Bound | None) -> bool:
    """Whether it is known to have had no owner since then, or for so long."""
    if since is None or isinstance(since, datetime):
        return since is None or row.since <= since
    return row.age_seconds >= since.total_seconds()


_LastStates = dict["GroupKey", tuple[str, datetime]]
"""The last complete state of each group, and its time."""


@dataclass(frozen=True, slots=True)
class _LastSides:
    """The last states of groups, each with the moment up to which it is known to have lasted."""

    up_to: _LastStates
    known: States

    @property
    def sides(self) -> dict[GroupKey, Side]:
        """The states by group."""
        return {key: self.known.sides[(*key, snapshot_id)] for key, (snapshot_id, _) in self.up_to.items()}

    def until(self, key: GroupKey) -> datetime:
        """Up to when the group is known, at most the moment that was asked for."""
        return self.up_to[key][1]

    def unowned(self) -> dict[Place, Side]:
        """Return the partitions that no member is recorded for."""
        sides = self.sides.items()
        return {(*key, *at): side for key, side in sides for at in self.known.unowned(key, side, self.until(key))}

    def not_counted(self, key: GroupKey) -> list[str]:
        """Return the topics of a group with members whose partitions are not known."""
        side = self.sides[key]
        return self.known.not_counted(key, side, self.until(key)) if side.members else []

    def deleted_since(self, key: GroupKey) -> list[str]:
        """Those of them that the record shows to be gone, though a listing has them."""
        return self.known.deleted_since(key, self.sides[key], self.until(key))

    def first_listed(self, key: GroupKey, topic: str) -> str:
        """Return the topic, with the time of its first listing if it has one."""
        lives = self.known.topics.get((key[0], topic))
        return f"{topic} (first listed {iso(lives[0].since)})" if lives else topic


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups that are asked for, up to a moment."""

    reader: Reader
    of_groups: str
    values: dict[str, Value]
    at: datetime

    def among(self, groups: Collection[GroupKey]) -> tuple[str, dict[str, Value]]:
        """A condition on the columns of `t` for these groups, as far as naming them is shorter."""
        if len(groups) > _GROUPS_BY_NAME:
            return self.of_groups, self.values
        which, names = one_of("t.group_id", "group", sorted({group for _, group in groups}))
        return f"{self.of_groups} AND {which}", self.values | names

    def last_states(self) -> _LastStates:
        """Return the last complete state of each group."""
        where = f"{self.of_groups} AND t.complete AND t.observed_at <= :moment"
        newest = (
            "SELECT t.cluster_id, t.group_id, max(t.offset) AS newest FROM current_group_snapshots t "
            f"WHERE {where} GROUP BY t.cluster_id, t.group_id"
        )
        rows = records(
            self.reader,
            "SELECT t.cluster_id, t.group_id, max(t.snapshot_id) AS snapshot_id, max(t.observed_at) AS at "
            "FROM current_group_snapshots t "
            f"JOIN ({newest}) n ON n.cluster_id = t.cluster_id AND n.group_id = t.group_id AND n.newest = t.offset "
            f"WHERE {where} GROUP BY t.cluster_id, t.group_id ORDER BY t.cluster_id, t.group_id",
            **self.values,
            moment=self.at,
        )
        return {(row["cluster_id"], row["group_id"]): (row["snapshot_id"], row["at"]) for row in rows}

    def with_given(self, recorded: States, up_to: _LastStates) -> States:
        """Return the states, with what members had in groups that have nothing of a listed topic."""
        sides = {key: (recorded.sides[(*key, snapshot_id)], until) for key, (snapshot_id, until) in up_to.items()}
        keys = [key for key, (side, until) in sides.items() if recorded.unassigned(key[0], side, until)]
        return recorded.with_given(self.reader, *self.among(keys)) if keys else recorded

    def up_to(self, lasts: _LastStates) -> _LastStates:
        """Return the snapshot of each group, and up to when it is known to have lasted."""
        read = known(self.reader)
        return {key: (name, min(self.at, read.of(key[0], at))) for key, (name, at) in lasts.items()}

    def explained(self, of_groups: _LastSides) -> Iterator[UnownedPartition]:
        """Since when, and why; a partition that a later record gives to somebody is none."""
        places, known = of_groups.unowned(), of_groups.known
        if not places:
            return
        groups = {place[:2] for place in places}
        losses = self._last_changes(groups, places, known)
        offsets = [losses[place]["offset"] if place in losses else -1 for place in places]
        history = self._histories(groups, min(offsets))
        shown = self._shown(groups, places)
        for place, side in places.items():
            lost = losses.get(place)
            if lost is None or lost["to_member_id"] is None:
                lives = known.topics[place[0], place[2]]
                existed = _existed(place, side, shown.get(place), lives, of_groups.until(place[:2]))
                yield _explained(place, existed, lost, history[place[:2]], lives, of_groups.until(place[:2]))

    def _shown(self, groups: set[GroupKey], places: Iterable[Place]) -> dict[Place, datetime]:
        """When a member of the group first had the partition or a later one of its topic, which thus existed."""
        of_groups, values = self.among(groups)
        by_name, names = one_of("t.topic", "topic", sorted({topic for *_, topic, _ in places}))
        query = (
            "SELECT t.cluster_id, t.group_id, t.topic, t.partition, min(t.at) AS at FROM current_ownership_changes t "
            f"WHERE {of_groups} AND {by_name} AND t.to_member_id IS NOT NULL AND t.at <= :moment "
            "GROUP BY t.cluster_id, t.group_id, t.topic, t.partition"
        )
        given: dict[tuple[str, str, str], list[tuple[int, datetime]]] = {}
        for row in records(self.reader, query, **values, **names, moment=self.at):
            of_topic = given.setdefault((row["cluster_id"], row["group_id"], row["topic"]), [])
            of_topic.append((row["partition"], row["at"]))
        had = {place: [at for number, at in given.get(place[:3], ()) if number >= place[3]] for place in places}
        return {place: min(moments) for place, moments in had.items() if moments}

    def _last_changes(self, groups: set[GroupKey], places: dict[Place, Side], known: States) -> dict[Place, Record]:
        """Return the last change of each of the partitions, of the topic that has the name now.

        Of a classic group, whose log gives no topic ids, the last one under that name.
        """
        topics = {
            (cluster, topic): life
            for cluster, _, topic, _ in places
            if (life := life_at(known.topics[cluster, topic], self.at)) is not None
        }
        by_id = {(cluster, life.topic_id): topic for (cluster, topic), life in topics.items()}
        of_groups, values = self.among(groups)
        by_name, names = one_of("t.topic", "topic", sorted({topic for _, topic in topics}))
        with_id, ids = one_of("t.topic_id", "id", sorted({each for _, each in by_id if each is not None}))
        columns = "t.cluster_id, t.group_id, t.topic, t.topic_id, t.partition"
        order = "t.offset DESC, CASE WHEN t.to_member_id IS NULL THEN 1 ELSE 0 END"
        ranked = (
            f"SELECT {columns}, t.at, t.held_since, t.offset, t.from_member_id, t.to_member_id, t.snapshot_id, "
            f"row_number() OVER (PARTITION BY {columns} ORDER BY {order}) AS place FROM current_ownership_changes t "
            f"WHERE {of_groups} AND ({by_name} OR {with_id}) AND t.at <= :moment"
        )
        given = "CASE WHEN q.to_member_id IS NULL THEN 0 ELSE 1 END"
        query = f"SELECT * FROM ({ranked}) q WHERE q.place = 1 ORDER BY q.offset, {given}"
        found: dict[Place, Record] = {}
        for row in records(self.reader, query, **values, **names, **ids, moment=self.at):
            key, number = (row["cluster_id"], row["group_id"]), row["partition"]
            topic = by_id.get((row["cluster_id"], row["topic_id"]), row["topic"] if row["topic_id"] is None else None)
            side = places.get((*key, row["topic"] or "", number))
            if topic is None and side is not None and side.group_type == CLASSIC:
                topic = row["topic"]
            place = (*key, topic or "", number)
            if place in places:
                found[place] = row
        return found

    def _histories(self, groups: set[GroupKey], since_offset: int) -> dict[GroupKey, list[Record]]:
        """The states of these groups from an offset on, the last one first."""
        of_groups, values = self.among(groups)
        query = (
            "SELECT t.cluster_id, t.group_id, t.snapshot_id, t.offset, t.observed_at, coalesce(t.generation, "
            "t.group_epoch) AS number, coalesce(t.shared_topics, t.subscribed_topics) AS topics "
            f"FROM current_group_snapshots t WHERE {of_groups} AND t.offset >= :low AND t.observed_at <= :moment "
            "ORDER BY t.offset DESC, t.snapshot_id DESC"
        )
        found: dict[GroupKey, list[Record]] = {key: [] for key in groups}
        for row in records(self.reader, query, **values, low=since_offset, moment=self.at):
            if (key := (row["cluster_id"], row["group_id"])) in found:
                found[key].append(row)
        return found


def _explained(
    place: Place,
    existed: tuple[datetime, WhyUnowned, str],
    lost: Record | None,
    history: list[Record],
    lives: tuple[TopicLife, ...],
    at: datetime,
) -> UnownedPartition:
    """The latest of what had to happen: the partition is there, the topic is subscribed to, its last owner lost it."""
    cluster, group, topic, partition = place
    subscribed = list(takewhile(lambda state: topic in (state["topics"] or ()), history))
    reached = subscribed[-1] if subscribed else None
    numbers = {state["snapshot_id"]: state["number"] for state in history}
    happened = [existed]
    if reached is not None:
        happened.append((reached["observed_at"], WhyUnowned.SUBSCRIBED, reached["snapshot_id"]))
    if lost is not None:
        happened.append((lost["at"], WhyUnowned.GIVEN_UP, lost["snapshot_id"]))
    since, why, snapshot_id = max(reversed(happened), key=itemgetter(0))
    had = lost if lost is not None and _is_of_this_topic(lost, cluster, lives, at) else None
    return UnownedPartition(
        cluster_id=cluster,
        group_id=group,
        topic=topic,
        partition=partition,
        since=since,
        age_seconds=(at - since).total_seconds(),
        why=why,
        generation=numbers.get(snapshot_id),
        snapshot_id=snapshot_id,
        last_member_id=None if had is None else had["from_member_id"],
        last_until=None if had is None else had["at"],
        seen_in=existed[2],
    )


def _is_of_this_topic(lost: Record, cluster: str, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Whether what was lost was a partition of the topic that has the name at the moment, as far as can be told."""
    life = life_at(lives, at)
    held = (lost["held_since"] or lost["at"], lost["at"])
    return life is None or life.topic_id == life_of(lives, cluster, held, handed_over=False)


def _existed(
    place: Place, side: Side, shown: datetime | None, lives: tuple[TopicLife, ...], at: datetime
) -> tuple[datetime, WhyUnowned, str]:
    """Since when the partition is known to exist.

    The first listing of a topic is the ledger's news, not the cluster's: what a member had, or had a later partition
    than, existed already.
    """
    listed = _listed_since(lives, place[3], at)
    if listed != lives[0].since or shown is None:
        why = WhyUnowned.PARTITION_ADDED if listed != lives[0].since else WhyUnowned.FIRST_LISTED
        return listed, why, side.snapshot_id
    return min(listed, shown), WhyUnowned.PARTITION_ADDED, side.snapshot_id


def _listed_since(lives: tuple[TopicLife, ...], partition: int, at: datetime) -> datetime:
    """Since when the topic that has the name at the moment has been listed with the partition."""
    found = life_at(lives, at)
    first = found
    for life in reversed([each for each in lives if each.since <= at]):
        same = found is not None and life.topic_id == found.topic_id and partition < life.partition_count
        if not same or (first is not None and life is not first and life.until != first.since):
            break
        first = life
    return at if first is None else first.since


def _notes(
    reader: Reader,
    of_groups: _LastSides,
    since: datetime | None,
    rows: list[UnownedPartition],
    chosen: list[UnownedPartition],
) -> Iterator[str]:
    """Says what could not be told, and, where there is nothing, why."""
    sides = of_groups.sides
    if not sides:
        yield "no group has a complete record up to that moment"
        for cluster, (begins, ends) in reaches(reader, []).items():
            yield f"the ledger knows cluster {cluster} from {iso(begins)} to {iso(ends)}"
        return
    empty = sum(not side.members for side in sides.values())
    unknown = [key for key in sides if of_groups.not_counted(key)]
    if not rows and len(sides) - empty > len(unknown):
        of = numbered(len(sides) - empty - len(unknown), "group")
        yield f"every partition of a topic that a group with members subscribes to has an owner ({of})"
    elif not chosen and since is not None:
        oldest = rows[0].since
        number = numbered(len(rows), "partition")
        yield f"{number} without an owner, none since {iso(since)} or longer: the oldest since {iso(oldest)}"
    if empty:
        yield f"{numbered(empty, 'group')} without members: they subscribe to nothing, and are not here"
    gone = {key: of_groups.deleted_since(key) for key in unknown}
    unlisted = {key: [each for each in of_groups.not_counted(key) if each not in gone[key]] for key in unknown}
    for some, why in ((unlisted, "no topic listing up to then has"), (gone, "deleted since the last topic listing:")):
        if groups := [key for key in unknown if some[key]]:
            names = sorted({of_groups.first_listed(key, topic) for key in groups for topic in some[key]})
            named = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
            yield f"not known of {numbered(len(groups), 'group')}: {why} {named}"
