"""History under another assignor beside the recorded one, group by group: two scenarios of the same snapshots.

One is `recorded`, the step from what members held to what was recorded; the other a scenario of `assign` with
`assign.carried`, in which each snapshot starts from the assignor's own answer at the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import CLUSTER, GROUP, listed, shown
from groupledger.answers.answer_columns import computed as column
from groupledger.answers.queries import GroupKey, Reader, Record, group_of, literal, records, steps
from groupledger.answers.scope import RequestedScope, Scope, limits, scope
from groupledger.answers.spoken import numbered
from groupledger.answers.states import of_generations

if TYPE_CHECKING:
    from collections.abc import Mapping


RECORDED = "recorded"
_OF_ROWS = ("cluster_id", "group_id", "snapshot_id", "scenario", "group_type", "round", "members", "outcome")
COMPUTED = (*_OF_ROWS, "added", "revoked", "follow_up", "load_min", "load_max")
"""Columns of rebalances that an answer needs where nothing is committed."""
_COUNTED = ("revoked", "follow_ups", "spread")
NONE_THERE = "no rebalance of a classic consumer group lies there: of others the coordinator decides (KIP-848)"


@dataclass(frozen=True, slots=True)
class Course:
    """What a group's rebalances came to, one way or the other.

    `gained`: partitions that went to another member than the last one that had them, or to a first one; a static
    member that comes back is the same. `revoked`: partitions that members had to stop reading, which under an eager
    protocol is all they have. `follow_ups`: rebalances that a further one must follow. `spread`: the differences
    between the most and the fewest partitions of a member, summed.
    """

    gained: int
    revoked: int
    follow_ups: int
    spread: int


class _BothCourses:
    """Both courses side by side, for a group or for all."""

    happened: Course
    replayed: Course

    @property
    @column("handed over")
    def handed_over(self) -> str:
        """Partitions that went to another member."""
        return self._both("gained")

    @property
    @column("given up")
    def given_up(self) -> str:
        """Partitions that members had to stop reading."""
        return self._both("revoked")

    @property
    @column("need another", rank=2)
    def need_another(self) -> str:
        """Rebalances that a further one must follow."""
        return self._both("follow_ups")

    @property
    @column("uneven", rank=1)
    def uneven(self) -> str:
        """The most less the fewest partitions of a member, summed."""
        return self._both("spread")

    def _both(self, name: str) -> str:
        return f"{getattr(self.happened, name):,} -> {getattr(self.replayed, name):,}"


@dataclass(frozen=True, slots=True)
class ReplayedGroup(_BothCourses):
    """A group's rebalances of a period, as they were and as they would have been.

    `refused` of them the assignor gives no answer to; they are not in the sums.
    """

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    rebalances: int = field(metadata=shown("rebalances"))
    refused: int
    happened: Course
    replayed: Course


@dataclass(frozen=True, slots=True)
class Replayed(_BothCourses):
    """All groups, those with the greatest difference first; the sums are over all, not over those shown."""

    scope: Scope
    assignor: str
    scenario: str
    groups: tuple[ReplayedGroup, ...] = field(metadata=listed(ReplayedGroup))
    total: int
    rebalances: int
    happened: Course
    replayed: Course
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """What the assignor would have saved, in one line."""
        was, then = self.happened, self.replayed
        given_up = f"{numbered(then.revoked, 'partition')} given up instead of {was.revoked:,}"
        again = f"{then.follow_ups:,} need a second rebalance instead of {was.follow_ups:,}"
        return f"{self.assignor}: {given_up}; {then.gained:,} handed over instead of {was.gained:,}; {again}"


def replayed(
    reader: Reader, asked: RequestedScope, assignor: str, scenario: str, limit: int, computed: str | None = None
) -> Replayed:
    """Compare a scenario with the recorded history; `computed`: the table of both that was computed for this answer.

    Raises as `scope.scope`.
    """
    among = "current_rebalances"
    if computed is not None:
        same = " AND ".join(f"s.{name} = t.{name}" for name in ("cluster_id", "group_id", "snapshot_id"))
        state = f"s.observed_at, s.snapshot_kind FROM {computed} t JOIN current_group_snapshots s ON {same}"
        among = f"(SELECT t.*, {state})"
    within = scope(reader, asked)
    gained = _gained(reader, within, scenario, among)
    groups = sorted((_group(row, gained) for row in _by_group(reader, within, scenario, among)), key=_order)
    refused = sum(group.refused for group in groups)
    notes = [*limits(reader, within, groups, with_members=NONE_THERE)]
    if refused:
        why_not = "with --commit, `groupledger show --quarantine` says why"
        notes.append(f"the assignor gives no answer to {numbered(refused, 'rebalance')}: {why_not}")
    return Replayed(
        within,
        assignor,
        scenario,
        tuple(groups[:limit]),
        len(groups),
        sum(group.rebalances for group in groups),
        _sum([group.happened for group in groups]),
        _sum([group.replayed for group in groups]),
        tuple(notes),
    )


def _order(group: ReplayedGroup) -> tuple[int, int, str, str]:
    was, then = group.happened, group.replayed
    return -abs(was.revoked - then.revoked), -abs(was.gained - then.gained), group.cluster_id, group.group_id


def _group(row: Record, gained: Mapping[GroupKey, int]) -> ReplayedGroup:
    key = group_of(row)
    recorded = Course(gained=gained.get(key, 0), **{name: row[f"h_{name}"] for name in _COUNTED})
    then = Course(gained=row["x_gained"], **{name: row[f"x_{name}"] for name in _COUNTED})
    return ReplayedGroup(*key, row["rebalances"], row["refused"], recorded, then)


def _both(within: Scope, scenario: str, columns: str, among: str) -> str:
    """Select the rebalances that both scenarios have, with members, and no rewrites."""
    same = "h.cluster_id = x.cluster_id AND h.group_id = x.group_id AND h.snapshot_id = x.snapshot_id"
    refused = "CASE WHEN x.outcome IN ('REJECTED', 'NOT_RECOMPUTED') OR h.outcome = 'REJECTED' THEN 1 ELSE 0 END"
    return (
        f"SELECT x.cluster_id, x.group_id, x.snapshot_id, {refused} AS refused{columns} FROM {among} x "
        f"JOIN {among} h ON {same} WHERE {within.where('x.')} AND x.scenario = {literal(scenario)} "
        f"AND h.scenario = '{RECORDED}' AND x.round = 1 AND h.round = 1 AND {of_generations('x.')}"
    )


def _by_group(reader: Reader, within: Scope, scenario: str, among: str) -> list[Record]:
    """Return a row per group: what both scenarios count."""
    names = [f"{side}_{name}" for side in "hx" for name in _COUNTED]
    columns = "".join(f", {_value(side, name)} AS {side}_{name}" for side in "hx" for name in _COUNTED)
    rows = _both(within, scenario, f"{columns}, x.added AS x_gained", among)
    sums = ", ".join(
        f"cast(sum(CASE WHEN r.refused = 0 THEN r.{name} ELSE 0 END) AS BIGINT) AS {name}"
        for name in (*names, "x_gained")
    )
    return records(
        reader,
        f"SELECT r.cluster_id, r.group_id, cast(sum(1 - r.refused) AS BIGINT) AS rebalances, "
        f"cast(sum(r.refused) AS BIGINT) AS refused, {sums} FROM ({rows}) r GROUP BY r.cluster_id, r.group_id",
    )


def _gained(reader: Reader, within: Scope, scenario: str, among: str) -> dict[GroupKey, int]:
    """Count by group how often a partition was recorded for another member than the last one, in the same rebalances.

    A cooperative group gives a partition up in one generation and hands it over in the next: it changes hands once.
    """
    condition = within.of_groups("t.")
    counted = _both(within, scenario, "", among)
    place = "t.cluster_id, t.group_id, coalesce(t.topic_id, t.topic), t.partition"
    order = "t.offset, CASE WHEN t.to_member_id IS NULL THEN 0 ELSE 1 END"
    of = "{0}.cluster_id = c.cluster_id AND {0}.group_id = c.group_id AND {0}.member_id = c.{1}"
    query = steps(
        changes="SELECT t.cluster_id, t.group_id, t.snapshot_id, t.to_member_id, coalesce(t.from_member_id, "
        f"lag(t.from_member_id) OVER (PARTITION BY {place} ORDER BY {order})) AS last_member_id "
        f"FROM current_ownership_changes t WHERE {condition}",
        static="SELECT t.cluster_id, t.group_id, t.member_id, max(t.group_instance_id) AS instance "
        f"FROM current_member_snapshots t WHERE {condition} AND t.group_instance_id IS NOT NULL "
        "GROUP BY t.cluster_id, t.group_id, t.member_id",
        gained=f"SELECT c.cluster_id, c.group_id, count(*) AS gained FROM changes c JOIN ({counted}) r "
        "ON r.cluster_id = c.cluster_id AND r.group_id = c.group_id AND r.snapshot_id = c.snapshot_id "
        f"AND r.refused = 0 LEFT JOIN static a ON {of.format('a', 'last_member_id')} "
        f"LEFT JOIN static b ON {of.format('b', 'to_member_id')} "
        "WHERE c.to_member_id IS NOT NULL AND (c.last_member_id IS NULL OR coalesce(a.instance, c.last_member_id) <> "
        "coalesce(b.instance, c.to_member_id)) GROUP BY c.cluster_id, c.group_id",
    )
    return {group_of(row): row["gained"] for row in records(reader, query)}


def _value(side: str, name: str) -> str:
    if name == "follow_ups":
        return f"CASE WHEN {side}.follow_up THEN 1 ELSE 0 END"
    if name == "spread":
        return f"coalesce({side}.load_max - {side}.load_min, 0)"
    return f"{side}.{name}"


def _sum(courses: list[Course]) -> Course:
    return Course(**{name: sum(getattr(each, name) for each in courses) for name in ("gained", *_COUNTED)})
