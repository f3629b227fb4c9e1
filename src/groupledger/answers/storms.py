"""Groups that rebalance often: how often, why, which partitions go to and fro, and which members are in it most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated

from groupledger.answers.answer_columns import CLUSTER, GROUP, WHEN, computed, selected, shown
from groupledger.answers.audit import CERTAIN, SAME, caused, findings_in, most_frequent
from groupledger.answers.queries import (
    CLASSIC,
    NUMBER,
    GroupKey,
    Reader,
    Record,
    by_group,
    from_row,
    group_of,
    in_parts,
    of_their_groups,
    one_of,
    ranked,
    records,
    steps,
)
from groupledger.answers.scope import Ranking, RequestedScope, Scope, limits, scope
from groupledger.answers.spoken import OF_MEMBERS
from groupledger.answers.states import BASELINE
from groupledger.core.text import shortened, stretch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from groupledger.answers.causes import StateChange


TOGETHER = 20
"""Groups that are asked about together."""
MOST_LOOKED_AT = 500
"""The last rebalances of a group whose causes are looked for."""
LOOKED_AT = 20
"""Groups of which the worst hour is looked for, for each that is shown: those with most records in one day."""
COUNTED = "t.snapshot_kind IN ('generation', 'fold', 'empty')"
NAMED = 5
"""Partitions and members named."""
NOT_RECOMPUTED = (
    "no record of a classic group of this period is recomputed: run `groupledger assign --snapshots every`; what "
    "coordinators move (KIP-848) is not summed"
)


@dataclass(frozen=True, slots=True)
class Share:
    """How often something was so."""

    what: str
    times: int


def _listed(shares: Sequence[Share], *, short: bool = False) -> str:
    names = shortened(share.what for share in shares) if short else {}
    return ", ".join(f"{names.get(share.what, share.what)} {share.times:,}" for share in shares)


@dataclass(frozen=True, slots=True)
class Storm:
    """A group's rebalances of a period.

    `in_an_hour`: the most within one hour. `causes` are of the last `looked_at` ones, the most frequent first.
    `members` are those that causes and findings name most often, by instance id, else client id; `partitions` those
    that got an owner most often; `findings` what `ingest` found in the same records.
    """

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    rebalances: int = field(metadata=shown("rebalances", sql="count(*)"))
    in_an_hour: int = field(metadata=shown("in an hour", sql="max(h.in_an_hour)"))
    first: datetime
    last: datetime
    looked_at: int
    causes: tuple[Share, ...] = field(metadata=shown("causes", text=_listed, detail=True, place=1))
    members: tuple[Share, ...] = field(
        metadata=shown("members", text=partial(_listed, short=True), detail=True, place=1)
    )
    partitions: tuple[Share, ...] = field(metadata=shown("partitions", text=_listed, detail=True, place=1))
    findings: tuple[Share, ...] = field(metadata=shown("findings", text=_listed, detail=True, on_pages=False, place=1))

    @property
    @computed(WHEN)
    def when(self) -> str:
        """From the first rebalance to the last."""
        return stretch(self.first, self.last)


Storms = Annotated[
    Ranking[Storm], "The groups with the most rebalances in one hour first; `total` counts those left off."
]


def storms(reader: Reader, asked: RequestedScope, limit: int) -> Storms:
    """Rank groups by their rebalances within one hour. Raises as `scope.scope`."""
    within = scope(reader, asked)
    rows, total = _first(reader, within, limit)
    groups = tuple(storm for some in in_parts(rows, TOGETHER) for storm in _storms(reader, within, some))
    notes = limits(reader, within, groups, otherwise="no record of this period is a rebalance")
    return Ranking(Storm, within, groups, total, notes)


def counted_rebalances(within: Scope) -> str:
    """Select generations of classic groups, and the first fold of each epoch of others: neither rewrites nor births."""
    within_group = "OVER (PARTITION BY t.cluster_id, t.group_id, t.incarnation ORDER BY t.offset)"
    return steps(
        numbered="SELECT t.cluster_id, t.group_id, t.group_type, t.snapshot_id, t.previous_snapshot_id, t.observed_at, "
        f"t.offset, {NUMBER} AS number, lag({NUMBER}) {within_group} AS number_before, t.snapshot_kind "
        f"FROM current_group_snapshots t WHERE {within.where('t.')} AND {COUNTED}",
        counted="SELECT r.* FROM numbered r WHERE r.number IS NOT NULL AND "
        "(r.number_before IS NULL OR r.number <> r.number_before)",
    )


def _busiest_days(within: Scope) -> str:
    """Select for each group `n`, the most records in one day: looking for every worst hour would sort all records."""
    return steps(
        by_day="SELECT t.cluster_id, t.group_id, cast(t.observed_at AS DATE) AS day, count(*) AS n "
        f"FROM current_group_snapshots t WHERE {within.where('t.')} AND {COUNTED} "
        "GROUP BY t.cluster_id, t.group_id, cast(t.observed_at AS DATE)",
        busiest="SELECT cluster_id, group_id, max(n) AS n FROM by_day GROUP BY cluster_id, group_id",
    )


def _first(reader: Reader, within: Scope, limit: int) -> tuple[list[Record], int]:
    """Return the first groups, each with its rebalances, the most in an hour and its period, and how many there are."""
    order = "q.n DESC, q.cluster_id, q.group_id"
    busiest, total = ranked(reader, _busiest_days(within), order, LOOKED_AT * limit)
    hours = _worst_hours(within, {row["group_id"] for row in busiest})
    order = "g.in_an_hour DESC, g.rebalances DESC, g.cluster_id, g.group_id"
    rows = records(reader, f"SELECT g.* FROM ({hours}) g ORDER BY {order} LIMIT {limit}")
    return rows, total


def _worst_hours(within: Scope, among: set[str]) -> str:
    """Select for these groups how many rebalances they had, the most within an hour, and from when to when."""
    declared = ", ".join(f"{sql} AS {name}" for name, sql in selected(Storm).items())
    return steps(
        hours="SELECT p.*, count(*) OVER (PARTITION BY p.cluster_id, p.group_id ORDER BY p.observed_at RANGE BETWEEN "
        f"INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS in_an_hour FROM ({counted_rebalances(within)}) p "
        f"WHERE {one_of('p.group_id', sorted(among))}",
        worst=f"SELECT h.cluster_id, h.group_id, {declared}, "
        "min(h.observed_at) AS first, max(h.observed_at) AS last FROM hours h GROUP BY h.cluster_id, h.group_id",
    )


def busy(reader: Reader, within: Scope, least: int) -> dict[GroupKey, int]:
    """Return the most rebalances within an hour of each group with `least` or more.

    Looked for in groups that had half of them in one day: an hour lies in two days at most.
    """
    found = records(reader, f"SELECT g.group_id FROM ({_busiest_days(within)}) g WHERE 2 * g.n >= {least}")
    hours = _worst_hours(within, {row["group_id"] for row in found})
    rows = records(reader, f"SELECT g.* FROM ({hours}) g WHERE g.in_an_hour >= {least}")
    return {group_of(row): row["in_an_hour"] for row in rows}


def _storms(reader: Reader, within: Scope, rows: Sequence[Record]) -> Iterator[Storm]:
    """Return the storms of some groups, with one query for all of them at a time."""
    rebalances = by_group(_last(reader, within, rows))
    why = caused(reader, [each for of_group in rebalances.values() for each in of_group])
    findings = by_group(findings_in(reader, rebalances.values()))
    flapping = by_group(_flapping(reader, within, rows))
    for row in rows:
        key = group_of(row)
        of_group = [why[each["snapshot_id"]] for each in rebalances[key]]
        yield _storm(row, of_group, findings.get(key, []), flapping.get(key, []))


def _among(prefix: str, rows: Sequence[Record]) -> str:
    """Require that columns name one of these groups."""
    clusters = one_of(f"{prefix}cluster_id", sorted({row["cluster_id"] for row in rows}))
    return f"{clusters} AND {of_their_groups(prefix, rows)}"


def _last(reader: Reader, within: Scope, rows: Sequence[Record]) -> list[Record]:
    """Return the last rebalances of each of the groups, the latest first."""
    newest = "row_number() OVER (PARTITION BY q.cluster_id, q.group_id ORDER BY q.offset DESC) AS newest"
    query = steps(
        ordered=f"SELECT q.*, {newest} FROM ({counted_rebalances(within)}) q WHERE {_among('q.', rows)}",
        last=f"SELECT n.* FROM ordered n WHERE n.newest <= {MOST_LOOKED_AT} "
        "ORDER BY n.cluster_id, n.group_id, n.newest",
    )
    wanted = set(map(group_of, rows))
    return [each for each in records(reader, query) if group_of(each) in wanted]


def _storm(row: Record, why: Sequence[StateChange], findings: Sequence[Record], flapping: Sequence[Record]) -> Storm:
    rows = [member for each in why for side in (each.before, each.after) if side is not None for member in side.members]
    # the name that outlives a restart: the instance id, else the client id, else the member id
    labels = {each["member_id"]: each["group_instance_id"] or each["client_id"] or each["member_id"] for each in rows}
    causes, members = Counter[str](), Counter[str]()
    for each in why:
        causes.update({cause.kind.value for cause in each.causes})
        about = {cause.about for cause in each.causes if cause.about is not None and cause.kind in OF_MEMBERS}
        members.update({labels.get(name, name) for name in about})
    for found in findings:
        member: str | None = found["member_id"]
        if member is not None:
            members[labels.get(member, member)] += found["n"]
    return from_row(
        Storm,
        row,
        looked_at=len(why),
        causes=_shares(causes),
        members=_shares(members, NAMED),
        partitions=tuple(Share(f"{each['topic']}-{each['partition']}", each["n"]) for each in flapping),
        findings=tuple(Share(*each) for each in most_frequent(findings)),
    )


def _flapping(reader: Reader, within: Scope, rows: Sequence[Record]) -> list[Record]:
    """Return the partitions that went to a member most often, other than for the first time, by group."""
    condition = f"{within.where('t.', 'at')} AND {_among('t.', rows)}"
    order = "PARTITION BY c.cluster_id, c.group_id ORDER BY c.n DESC, c.topic, c.partition"
    query = steps(
        counted="SELECT t.cluster_id, t.group_id, coalesce(t.topic, t.topic_id) AS topic, t.partition, count(*) AS n "
        f"FROM current_ownership_changes t WHERE {condition} AND t.to_member_id IS NOT NULL "
        "GROUP BY t.cluster_id, t.group_id, coalesce(t.topic, t.topic_id), t.partition HAVING count(*) > 1",
        ranked=f"SELECT c.*, row_number() OVER ({order}) AS place FROM counted c",
        first=f"SELECT * FROM ranked r WHERE r.place <= {NAMED} ORDER BY r.cluster_id, r.group_id, r.place",
    )
    return records(reader, query)


def _shares(counted: Mapping[str, int], limit: int | None = None) -> tuple[Share, ...]:
    order = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Share(what, times) for what, times in order[:limit])


# How much classic groups moved, beside how little they could have moved.
#
# What a coordinator moves (KIP-848) is spread over the folds of an epoch, and is not summed here.


@dataclass(frozen=True, slots=True)
class Stickiness:
    """A classic group's rebalances of a period under one assignor, as far as the record is what was recomputed.

    Of the `compared` rebalances the least moves are exact in `certain`, and these are summed (docs/concepts/moves.md):
    `moves` went from member to member, `least` had to. `excess` sums what was more, `below` what was less, where the
    result is less balanced than the least moves reach: moves = least + excess - below. `others` are rebalances whose
    record another algorithm made, so that their moves are not ours to count.
    """

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    assignor: str = field(metadata=shown("assignor"))
    compared: int
    others: int
    certain: int = field(metadata=shown("rebalances"))
    moves: int = field(metadata=shown("moves"))
    least: int = field(metadata=shown("least"))
    excess: int = field(metadata=shown("excess"))
    below: int = field(metadata=shown("below"))
    worst: int
    worst_at: datetime | None
    worst_snapshot_id: str | None
    worst_generation: int | None


Stickinesses = Annotated[Ranking[Stickiness], "The groups with most excess first; `total` counts those left off."]


def stickiness(reader: Reader, asked: RequestedScope, limit: int) -> Stickinesses:
    """Rank groups by what they moved too much. Raises as `scope.scope`."""
    within = scope(reader, asked)
    order = "q.excess DESC, q.moves DESC, q.cluster_id, q.group_id, q.assignor"
    rows, total = ranked(reader, _moves_by_group(within), order, limit)
    groups = tuple(from_row(Stickiness, row) for row in rows)
    notes = limits(reader, within, groups, with_members=NOT_RECOMPUTED)
    return Ranking(Stickiness, within, groups, total, notes)


def rebalances_compared(within: Scope) -> str:
    """Build a query with a row per computed rebalance: whether it is `compared`, and its least is `certain`."""
    compared = f"{one_of('r.verdict', SAME)} AND r.least_moves IS NOT NULL"
    return (
        "SELECT r.cluster_id, r.group_id, r.assignor, r.snapshot_id, s.generation, r.observed_at, r.moves, "
        f"r.least_moves, CASE WHEN {compared} THEN 1 ELSE 0 END AS compared, "
        f"CASE WHEN {compared} AND {CERTAIN} THEN 1 ELSE 0 END AS certain "
        "FROM current_rebalances r JOIN current_group_snapshots s ON s.cluster_id = r.cluster_id "
        f"AND s.group_id = r.group_id AND s.snapshot_id = r.snapshot_id WHERE {within.where('r.')} "
        f"AND r.scenario = '{BASELINE}' AND r.round = 1 AND r.snapshot_kind <> 'rewrite' AND r.members > 0 "
        f"AND s.group_type = '{CLASSIC}'"
    )


def _moves_by_group(within: Scope) -> str:
    group = "o.cluster_id, o.group_id, o.assignor"
    worst = "CASE WHEN o.place = 1 AND o.too_many > 0 THEN"
    return steps(
        compared=rebalances_compared(within),
        excess="SELECT q.*, CASE WHEN q.certain = 1 AND q.moves > q.least_moves THEN q.moves - q.least_moves ELSE 0 "
        "END AS too_many, CASE WHEN q.certain = 1 AND q.moves < q.least_moves THEN q.least_moves - q.moves ELSE 0 END "
        "AS too_few FROM compared q",
        ranked=f"SELECT o.*, row_number() OVER (PARTITION BY {group} ORDER BY o.too_many DESC, o.snapshot_id) AS place "
        "FROM excess o",
        by_group=f"SELECT {group}, cast(sum(o.compared) AS BIGINT) AS compared, "
        "cast(sum(1 - o.compared) AS BIGINT) AS others, cast(sum(o.certain) AS BIGINT) AS certain, "
        "cast(sum(CASE WHEN o.certain = 1 THEN o.moves ELSE 0 END) AS BIGINT) AS moves, "
        "cast(sum(CASE WHEN o.certain = 1 THEN o.least_moves ELSE 0 END) AS BIGINT) AS least, "
        "cast(sum(o.too_many) AS BIGINT) AS excess, cast(sum(o.too_few) AS BIGINT) AS below, "
        f"cast(max(o.too_many) AS BIGINT) AS worst, max({worst} o.observed_at END) AS worst_at, "
        f"max({worst} o.snapshot_id END) AS worst_snapshot_id, max({worst} o.generation END) AS worst_generation "
        f"FROM ranked o GROUP BY {group}",
    )
