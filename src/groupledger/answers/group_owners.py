"""Who had the partitions of one group, all of them over time; and how large the group was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import CLUSTER, GROUP, computed, shown
from groupledger.answers.owners import PLACE, OwnerSpan, owners_of
from groupledger.answers.queries import (
    NUMBER,
    GroupKey,
    NamedPartition,
    Reader,
    from_row,
    literal,
    newest,
    one_of,
    records,
    steps,
)
from groupledger.answers.spoken import assignor_of
from groupledger.answers.states import loads, recorded
from groupledger.answers.storms import counted_rebalances

if TYPE_CHECKING:
    from groupledger.answers.scope import Scope


@dataclass(frozen=True, slots=True)
class GroupOwners:
    """How many partitions the record of a group has; the owners of each, in turn, unless that are too many.

    `names`: member id -> the instance id, which outlives a restart; other members are not in it.
    """

    partitions: int
    changes: int
    owners: Mapping[NamedPartition, Sequence[OwnerSpan]] | None
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class Size:
    """A record of a group: its members, how many partitions they had, and the most and least of a member."""

    at: datetime
    members: int
    assigned: int
    most: int
    least: int


def group_owners(reader: Reader, of_group: Scope, most_partitions: int, most_changes: int) -> GroupOwners:
    """Return owners from the beginning of the record to the end of the period, if there are not too many."""
    condition = of_group.of_groups("t.")
    if of_group.until is not None:
        condition += f" AND t.at < {literal(of_group.until)}"
    condition += " AND (t.topic IS NOT NULL OR t.topic_id IS NOT NULL)"
    changes = f"FROM current_ownership_changes t WHERE {condition}"
    places = f"SELECT {PLACE} AS topic, t.partition, count(*) AS n {changes} GROUP BY {PLACE}, t.partition"
    [counted] = records(reader, f"SELECT count(*) AS places, coalesce(sum(p.n), 0) AS changes FROM ({places}) p")
    if counted["places"] > most_partitions or counted["changes"] > most_changes:
        return GroupOwners(counted["places"], int(counted["changes"]), None, {})
    owners = owners_of(reader, (of_group.cluster or "", of_group.group or ""), condition)
    names = _names(reader, of_group)
    return GroupOwners(counted["places"], int(counted["changes"]), dict(owners), names)


def _names(reader: Reader, of_group: Scope) -> dict[str, str]:
    query = (
        "SELECT DISTINCT t.member_id, t.group_instance_id FROM current_member_snapshots t "
        f"WHERE {of_group.of_groups('t.')} AND t.group_instance_id IS NOT NULL ORDER BY 1, 2"
    )
    return {row["member_id"]: row["group_instance_id"] for row in records(reader, query)}


def sizes(reader: Reader, of_group: Scope, limit: int) -> tuple[tuple[Size, ...], int]:
    """Return the last records of the period in order, and how many there are."""
    last = (
        f"SELECT r.*, count(*) OVER () AS records FROM ({recorded(of_group)}) r "
        f"ORDER BY r.offset DESC, r.snapshot_id DESC LIMIT {limit}"
    )
    rows = records(
        reader,
        "SELECT s.observed_at AS at, s.members, s.records, coalesce(l.total, 0) AS assigned, coalesce(l.most, 0) AS "
        "most, CASE WHEN coalesce(l.owners, 0) < s.members THEN 0 ELSE coalesce(l.least, 0) END AS least "
        f"FROM ({last}) s LEFT JOIN ({loads(of_group, last)}) l ON l.snapshot_id = s.snapshot_id "
        "ORDER BY s.offset, s.snapshot_id",
    )
    return tuple(from_row(Size, row) for row in rows), rows[0]["records"] if rows else 0


# Counts over time: rebalances of groups, and partitions of one group that changed hands.
#
# Moments are counted by the second, minute, hour or day in which they lie.

UNITS = (
    ("second", timedelta(seconds=1)),
    ("minute", timedelta(minutes=1)),
    ("hour", timedelta(hours=1)),
    ("day", timedelta(days=1)),
)
MOST_UNITS = 2_000
"""Units of a period: one more and the next larger unit is taken."""


@dataclass(frozen=True, slots=True)
class Counted:
    """So many times in the second, minute, hour or day that begins at `at`."""

    what: tuple[str, ...]
    at: datetime
    times: int


def unit_of(period: timedelta) -> str:
    """Choose the unit to count a period in: the smallest of which it has no more than 2,000."""
    return next((name for name, length in UNITS if period <= MOST_UNITS * length), UNITS[-1][0])


def rebalances_over_time(reader: Reader, within: Scope, groups: Sequence[GroupKey], unit: str) -> tuple[Counted, ...]:
    """Count the rebalances of these groups; `what` is cluster and group."""
    which = one_of("p.group_id", sorted({group for _, group in groups}))
    at = f"date_trunc('{unit}', p.observed_at)"
    rows = records(
        reader,
        f"SELECT p.cluster_id, p.group_id, {at} AS at, count(*) AS n FROM ({counted_rebalances(within)}) p "
        f"WHERE {which} GROUP BY p.cluster_id, p.group_id, {at} ORDER BY 1, 2, 3",
    )
    wanted = set(groups)
    of_rows = (Counted((row["cluster_id"], row["group_id"]), row["at"], row["n"]) for row in rows)
    return tuple(each for each in of_rows if each.what in wanted)


def hand_overs(reader: Reader, of_group: Scope, unit: str, block: int) -> tuple[Counted, ...]:
    """Count how often partitions were taken from a member; `what` is the topic and the first of `block` partitions."""
    number = f"t.partition - t.partition % {block}"
    at = f"date_trunc('{unit}', t.at)"
    rows = records(
        reader,
        f"SELECT {PLACE} AS topic, {number} AS number, {at} AS moment, count(*) AS n "
        f"FROM current_ownership_changes t WHERE {of_group.where('t.', 'at')} AND t.from_member_id IS NOT NULL "
        f"GROUP BY {PLACE}, {number}, {at} ORDER BY 1, 2, 3",
    )
    return tuple(Counted((row["topic"], str(row["number"])), row["moment"], row["n"]) for row in rows)


# Every group of a period at a glance: how many records there are of it, and the last of them.


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group: its records of a period, from when to when, and what the last one says.

    `number` is a generation, or a group epoch where the coordinator assigns.
    """

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    records: int = field(metadata=shown("records"))
    first: datetime
    last: datetime = field(metadata=shown("last record", place=2))
    group_type: str = field(metadata=shown("type"))
    number: int | None
    assignor: str | None
    state: str = field(metadata=shown("state", place=1))
    members: int = field(metadata=shown("members", place=1))

    @property
    @computed("assignor")
    def named_assignor(self) -> str | None:
        """The assignor, or that the server's default is one."""
        return assignor_of(self.group_type, self.assignor, self.members)

    @property
    def key(self) -> GroupKey:
        """Cluster and name."""
        return self.cluster_id, self.group_id


def overview(reader: Reader, within: Scope) -> tuple[GroupLine, ...]:
    """Return all groups, those with most records first."""
    counted = ", count(*) AS records, min(t.observed_at) AS first, max(t.observed_at) AS last"
    query = steps(
        lasts=newest(
            within.where("t."),
            f"n.*, t.group_type, {NUMBER} AS number, t.assignor, t.state, t.members, "
            "row_number() OVER (PARTITION BY n.cluster_id, n.group_id ORDER BY t.snapshot_id DESC) AS place",
            counted,
        ),
        lines="SELECT l.* FROM lasts l WHERE l.place = 1 ORDER BY l.records DESC, l.cluster_id, l.group_id",
    )
    return tuple(from_row(GroupLine, row) for row in records(reader, query))
