"""The changes of one partition, and of which of the topics that had its name in turn each is.

The log gives topic ids for KIP-848 groups alone. What a classic group did with a name that was used again is one chain:
a member holds the name until a record takes it away, however many topics it stood for meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.rows import alike, matching, one_of, records

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.answers.topics import TopicLife

Holder = tuple[str, str, str | None, str | None]
"""Cluster, group, topic id, and where several members may have it the member: at most one holder within it."""

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class Change:
    """A partition changing hands: from `at` on `to_member_id` has it, no longer `from_member_id`. None is nobody."""

    at: datetime
    from_member_id: str | None
    to_member_id: str | None
    held_since: datetime | None
    snapshot_id: str
    offset: int


def changes_of(
    topic: str, partition: int, at: datetime, lives: tuple[TopicLife, ...], cluster: str | None, group: str | None
) -> tuple[str, dict[str, Value]]:
    """Build a query of the partition's changes, with the topic as `life`, and whether each is before the moment.

    `life` is null where the log gives no id and the name stood for several topics (`is_by_name`): see `life_of`.
    """
    known = [life for life in lives if life.topic_id is not None]
    by_id, ids = one_of("t.topic_id", "id", sorted({str(life.topic_id) for life in known}))
    condition, values = matching("t.", cluster_id=cluster)
    of_groups, groups = alike("t.group_id", "group_id", group)
    values |= groups | ids | {"topic": topic, "partition": partition, "moment": at}
    cases, reused = [], []
    for number, (name, of_cluster) in enumerate(groupby(known, attrgetter("cluster_id"))):
        own = sorted({str(life.topic_id) for life in of_cluster})
        values |= {f"cluster_{number}": name}
        if len(own) == 1:
            cases.append(f"WHEN t.cluster_id = :cluster_{number} THEN coalesce(t.topic_id, :life_{number})")
            values |= {f"life_{number}": own[0]}
        else:
            reused.append(f"t.cluster_id = :cluster_{number}")
    by_name, join = "false", ""
    if reused:
        by_name, join = "(k.group_id IS NOT NULL)", _by_name(" OR ".join(reused), condition, of_groups)
        cases.insert(0, f"WHEN {by_name} THEN NULL")
    identity = f"CASE {' '.join(cases)} ELSE t.topic_id END" if cases else "t.topic_id"
    columns = "t.cluster_id, t.group_id, t.from_member_id, t.to_member_id, t.at, t.held_since, t.snapshot_id, t.offset"
    query = (
        f"SELECT {columns}, {identity} AS life, {by_name} AS is_by_name, "
        f"CASE WHEN t.at <= :moment THEN '{BEFORE}' ELSE '{AFTER}' END AS side "
        f"FROM current_ownership_changes t {join} WHERE (t.topic = :topic OR (t.topic IS NULL AND {by_id})) "
        f"AND t.partition = :partition AND {condition} AND {of_groups}"
    )
    return query, values


def _by_name(reused: str, condition: str, of_groups: str) -> str:
    """Join the groups of some clusters for which the log gives no topic ids."""
    those = f"({reused}) AND {condition} AND {of_groups}"
    return (
        "LEFT JOIN (SELECT t.cluster_id, t.group_id FROM current_group_snapshots t "
        f"WHERE t.group_type = '{CLASSIC}' AND {those} UNION SELECT t.cluster_id, t.group_id "
        f"FROM current_ownership_changes t WHERE t.topic = :topic AND t.topic_id IS NULL AND {those}) k "
        "ON k.cluster_id = t.cluster_id AND k.group_id = t.group_id"
    )


def life_of(
    lives: tuple[TopicLife, ...], cluster: str, held: tuple[datetime, datetime], *, handed_over: bool
) -> str | None:
    """Return the topic id that a name meant while it was held, between two moments; None: it cannot be inferred.

    A record may be older than the listing that shows its topic: what was taken between two lives is of the later one,
    unless another member handed it over, which may have had it since before. What is held on into another life may be
    either topic.
    """
    since, until = held
    ids = [(life.topic_id, life.since, life.until) for life in lives if life.cluster_id == cluster]
    spans = [(topic_id, list(some)) for topic_id, some in groupby(ids, itemgetter(0))]
    for number, (topic_id, some) in enumerate(spans):
        ends = some[-1][2]
        if ends is None or since < ends:
            is_early = number > 0 and since < some[0][1]
            following = spans[number + 1][1][0][1] if number + 1 < len(spans) else None
            is_known = not (is_early and handed_over) and (following is None or until < following)
            return topic_id if is_known else None
    return None


def unnamed(
    reader: Reader, partition: int, at: datetime, cluster: str | None, group: str | None
) -> dict[tuple[str, str], str]:
    """Cluster and group -> a topic id without a name in any listing, of which the group had the partition then."""
    condition, values = matching("t.", cluster_id=cluster)
    of_groups, groups = alike("t.group_id", "group_id", group)
    order = "t.offset DESC, CASE WHEN t.to_member_id IS NULL THEN 1 ELSE 0 END"
    last = (
        "SELECT t.cluster_id, t.group_id, t.topic_id, t.to_member_id, row_number() OVER "
        f"(PARTITION BY t.cluster_id, t.group_id, t.topic_id ORDER BY {order}) AS place "
        "FROM current_ownership_changes t WHERE t.topic IS NULL AND t.topic_id IS NOT NULL "
        "AND t.partition = :partition AND t.at <= :moment "
        f"AND {condition} AND {of_groups}"
    )
    listed = "SELECT 1 FROM current_topic_snapshots s WHERE s.cluster_id = q.cluster_id AND s.topic_id = q.topic_id"
    query = (
        f"SELECT q.cluster_id, q.group_id, min(q.topic_id) AS topic_id FROM ({last}) q WHERE q.place = 1 "
        f"AND q.to_member_id IS NOT NULL AND NOT EXISTS ({listed}) GROUP BY q.cluster_id, q.group_id"
    )
    found = records(reader, query, partition=partition, moment=at, **values, **groups)
    return {(row["cluster_id"], row["group_id"]): row["topic_id"] for row in found}


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a partition, as a query."""

    reader: Reader
    changes: str
    values: dict[str, Value]

    def around(self, owner: str, where: str = "true", **more: Value) -> dict[Holder, Sides]:
        """For each holder the last change before and the first one after: two rows at most are read.

        `owner` is the member that is asked for, as SQL; null: whoever has the partition.
        """
        nearest = f"CASE WHEN c.side = '{BEFORE}' THEN -c.offset ELSE c.offset END"
        given = "CASE WHEN c.to_member_id IS NULL THEN 0 ELSE 1 END"
        taken = "CASE WHEN c.from_member_id IS NULL THEN 0 ELSE 1 END"
        within = "PARTITION BY c.cluster_id, c.group_id, c.life, c.owner, c.side"
        order = f"{nearest}, {given} DESC, {taken} DESC, c.to_member_id, c.from_member_id"
        owned = f"SELECT x.*, {owner} AS owner FROM ({self.changes}) x WHERE {where}"
        ranked = (
            f"SELECT c.*, sum({given} - {taken}) OVER ({within}) AS owners, "
            f"row_number() OVER ({within} ORDER BY {order}) AS place FROM ({owned}) c"
        )
        found: dict[Holder, dict[str, Record]] = {}
        for row in records(self.reader, f"SELECT * FROM ({ranked}) r WHERE r.place = 1", **self.values, **more):
            holder = (row["cluster_id"], row["group_id"], row["life"], row["owner"])
            found.setdefault(holder, {})[row["side"]] = row
        return {holder: _sides(rows.get(BEFORE), rows.get(AFTER)) for holder, rows in found.items()}

    def between(self, since: datetime, until: datetime, limit: int) -> tuple[list[Record], int]:
        """Return the newest changes after one moment and up to another, by holder and offset, and their number.

        Those of one record stand together or not at all.
        """
        rows = f"SELECT x.* FROM ({self.changes}) x WHERE x.at > :since AND x.at <= :until"
        values = self.values | {"since": since, "until": until}
        newest = "x.at DESC, x.offset DESC, x.cluster_id, x.group_id, x.from_member_id, x.to_member_id"
        found = records(self.reader, f"{rows} ORDER BY {newest} LIMIT {limit + 1}", **values)
        total = len(found)
        if total > limit:
            total = records(self.reader, f"SELECT count(*) AS n FROM ({rows}) c", **values)[0]["n"]
        record = itemgetter("cluster_id", "group_id", "offset")
        kept = [row for row in found[:limit] if total <= limit or record(row) != record(found[limit])]
        return sorted(kept, key=lambda row: (*record(row)[:2], row["life"] or "", row["offset"])), total

    def any(self) -> bool:
        """Whether the partition ever changed hands."""
        return bool(records(self.reader, f"SELECT 1 AS found FROM ({self.changes}) x LIMIT 1", **self.values))


@dataclass(frozen=True, slots=True)
class Sides:
    """The changes next to a moment; `several`: more members than one may have had the partition then."""

    last: Change | None
    next: Change | None
    several: bool = False
    is_by_name: bool = False

    def nearer(self, other: Sides) -> Sides:
        """Of each side the change that is nearer to the moment."""
        lasts = [each for each in (self.last, other.last) if each is not None]
        nexts = [each for each in (self.next, other.next) if each is not None]
        offset = attrgetter("offset")
        last, following = max(lasts, key=offset, default=None), min(nexts, key=offset, default=None)
        return Sides(last, following, is_by_name=self.is_by_name)


def _sides(before: Record | None, after: Record | None) -> Sides:
    """Several: as many got it, less those who lost it, or whoever had it is not the one it is taken from next."""
    last, following = _change(before), _change(after)
    is_by_name = any(row is not None and row["is_by_name"] for row in (before, after))
    if last is None or before is None:
        return Sides(last, following, is_by_name=is_by_name)
    owner = last.to_member_id
    several = before["owners"] != (owner is not None)
    if following is not None and owner is not None:
        several = several or following.from_member_id != owner
    return Sides(last, following, several, is_by_name)


def _change(row: Record | None) -> Change | None:
    names = ("at", "from_member_id", "to_member_id", "held_since", "snapshot_id", "offset")
    return None if row is None else Change(*(row[name] for name in names))
