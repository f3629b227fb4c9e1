"""Groups that rebalance often: how often, why, which partitions go to and fro, and which members are in it most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupledger.answers.audit import CERTAIN, SAME
from groupledger.answers.columns import CLUSTER, GROUP, WHEN, computed, listed, selected, shown
from groupledger.answers.generations import CLASSIC
from groupledger.answers.reader import ingest_findings
from groupledger.answers.rebalance_causes import caused
from groupledger.answers.rows import one_of, records
from groupledger.answers.scope import Scope, any_members, gaps, scope, why_empty
from groupledger.answers.states import BASELINE
from groupledger.core.rebalance.findings import BY_CODE, BY_RECORDED, Severity
from groupledger.core.text import shortened, stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from groupledger.answers.rebalance_causes import Caused
    from groupledger.answers.rows import GroupKey, Reader, Record, Value
    from groupledger.answers.scope import RequestedScope
    from groupledger.answers.states import Query


TOGETHER = 10
"""Groups that are asked about together."""
MOST_LOOKED_AT = 500
"""The last rebalances of a group whose causes are looked for."""
LOOKED_AT = 20
"""Groups of which the worst hour is looked for, for each that is shown: those with most records in one day."""
COUNTED = "t.snapshot_kind IN ('generation', 'fold', 'empty')"
NAMED = 5
"""Partitions and members named."""


@dataclass(frozen=True, slots=True)
class Share:
    """How often something was so."""

    what: str
    times: int


def _listed(shares: Sequence[Share]) -> str:
    return ", ".join(f"{share.what} {share.times:,}" for share in shares)


def _listed_short(shares: Sequence[Share]) -> str:
    names = shortened(share.what for share in shares)
    return _listed([Share(names[share.what], share.times) for share in shares])


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
    members: tuple[Share, ...] = field(metadata=shown("members", text=_listed_short, detail=True, place=1))
    partitions: tuple[Share, ...] = field(metadata=shown("partitions", text=_listed, detail=True, place=1))
    findings: tuple[Share, ...] = field(metadata=shown("findings", text=_listed, detail=True, on_pages=False, place=1))

    @property
    @computed(WHEN)
    def when(self) -> str:
        """From the first rebalance to the last."""
        return stretch(self.first, self.last)


@dataclass(frozen=True, slots=True)
class Storms:
    """The groups with the most rebalances in one hour first; `total` counts those left off."""

    scope: Scope
    groups: tuple[Storm, ...] = field(metadata=listed(Storm))
    total: int
    notes: tuple[str, ...]


def storms(reader: Reader, asked: RequestedScope, limit: int) -> Storms:
    """Rank groups by their rebalances within one hour. Raises as `scope.scope`."""
    within = scope(reader, asked)
    rows = _ranked(reader, within, limit)
    parts = (rows[begin : begin + TOGETHER] for begin in range(0, len(rows), TOGETHER))
    groups = tuple(storm for some in parts for storm in _storms(reader, within, some))
    notes = (() if groups else (why_empty(reader, within, "no record of this period is a rebalance"),)) + gaps(
        reader, within
    )
    return Storms(within, groups, rows[0]["groups"] if rows else 0, notes)


def counted_rebalances(within: Scope) -> tuple[str, dict[str, Value]]:
    """Generations of classic groups, and the first fold of each epoch of others: neither rewrites nor births."""
    condition, values = within.where("t.")
    number = "coalesce(t.generation, t.group_epoch)"
    within_group = "OVER (PARTITION BY t.cluster_id, t.group_id, t.incarnation ORDER BY t.offset)"
    rows = (
        "SELECT t.cluster_id, t.group_id, t.group_type, t.snapshot_id, t.previous_snapshot_id, t.observed_at, "
        f"t.offset, {number} AS number, lag({number}) {within_group} AS number_before, t.snapshot_kind "
        f"FROM current_group_snapshots t WHERE {condition} AND {COUNTED}"
    )
    new = "r.number_before IS NULL OR r.number <> r.number_before"
    return f"SELECT r.* FROM ({rows}) r WHERE r.number IS NOT NULL AND ({new})", values


def _busiest(reader: Reader, within: Scope, limit: int) -> list[Record]:
    """The groups with most records in one day: to look for the worst hour of every group would sort all records."""
    by_group, values = _busiest_days(within)
    return records(
        reader,
        f"SELECT g.*, count(*) OVER () AS total FROM ({by_group}) g "
        f"ORDER BY g.n DESC, g.cluster_id, g.group_id LIMIT {LOOKED_AT * limit}",
        **values,
    )


def _busiest_days(within: Scope) -> tuple[str, dict[str, Value]]:
    """Of each group: `n`, the most records in one day."""
    condition, values = within.where("t.")
    by_day = (
        "SELECT t.cluster_id, t.group_id, cast(t.observed_at AS DATE) AS day, count(*) AS n "
        f"FROM current_group_snapshots t WHERE {condition} AND {COUNTED} "
        "GROUP BY t.cluster_id, t.group_id, cast(t.observed_at AS DATE)"
    )
    by_group = f"SELECT d.cluster_id, d.group_id, max(d.n) AS n FROM ({by_day}) d GROUP BY d.cluster_id, d.group_id"
    return by_group, values


def _ranked(reader: Reader, within: Scope, limit: int) -> list[Record]:
    """The first groups, with how many rebalances they had, the most within an hour, and from when to when."""
    busiest = _busiest(reader, within, limit)
    by_group, values = _by_group(within, sorted({row["group_id"] for row in busiest}))
    order = "g.in_an_hour DESC, g.rebalances DESC, g.cluster_id, g.group_id"
    rows = records(reader, f"SELECT g.* FROM ({by_group}) g ORDER BY {order} LIMIT {limit}", **values)
    return [row | {"groups": busiest[0]["total"]} for row in rows]


def _by_group(within: Scope, among: list[str]) -> tuple[str, dict[str, Value]]:
    """Of these groups: how many rebalances they had, the most within an hour, and from when to when."""
    which, named = one_of("p.group_id", "busy", among)
    of_period, values = counted_rebalances(within)
    hour = (
        "SELECT p.*, count(*) OVER (PARTITION BY p.cluster_id, p.group_id ORDER BY p.observed_at "
        f"RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS in_an_hour FROM ({of_period}) p WHERE {which}"
    )
    by_group = (
        f"SELECT h.cluster_id, h.group_id, {', '.join(f'{sql} AS {name}' for name, sql in selected(Storm).items())}, "
        f"min(h.observed_at) AS first, max(h.observed_at) AS last FROM ({hour}) h GROUP BY h.cluster_id, h.group_id"
    )
    return by_group, values | named


def busy(reader: Reader, within: Scope, least: int) -> dict[tuple[str, str], int]:
    """(cluster, group) -> the most rebalances within an hour, of the groups with `least` or more.

    Looked for in groups that had half of them in one day: an hour lies in two days at most.
    """
    days, of_days = _busiest_days(within)
    found = records(reader, f"SELECT g.group_id FROM ({days}) g WHERE 2 * g.n >= {least}", **of_days)
    by_group, values = _by_group(within, sorted({row["group_id"] for row in found}))
    rows = records(reader, f"SELECT g.* FROM ({by_group}) g WHERE g.in_an_hour >= {least}", **values)
    return {(row["cluster_id"], row["group_id"]): row["in_an_hour"] for row in rows}


def _storms(reader: Reader, within: Scope, rows: Sequence[Record]) -> Iterator[Storm]:
    """The storms of some groups. Each question is asked once for all of them."""
    rebalances = _by_key(_last(reader, within, rows))
    why = caused(reader, [each for of_group in rebalances.values() for each in of_group])
    findings = _by_key(_findings(reader, rebalances))
    flapping = _by_key(_flapping(reader, within, rows))
    for row in rows:
        key = _key(row)
        of_group = [why[each["snapshot_id"]] for each in rebalances[key]]
        yield _storm(row, of_group, findings.get(key, []), flapping.get(key, []))


def _key(row: Record) -> GroupKey:
    return row["cluster_id"], row["group_id"]


def _by_key(rows: Iterable[Record]) -> dict[GroupKey, list[Record]]:
    found: dict[GroupKey, list[Record]] = {}
    for row in rows:
        found.setdefault(_key(row), []).append(row)
    return found


def _among(prefix: str, keys: Iterable[GroupKey]) -> Query:
    """A condition that columns name one of these groups, and its values."""
    some = list(keys)
    clusters, of_clusters = one_of(f"{prefix}cluster_id", "cluster", sorted({cluster for cluster, _ in some}))
    groups, of_groups = one_of(f"{prefix}group_id", "group", sorted({group for _, group in some}))
    return f"{clusters} AND {groups}", of_clusters | of_groups


def _last(reader: Reader, within: Scope, rows: Sequence[Record]) -> list[Record]:
    """The last rebalances of each of the groups, the latest first."""
    query, values = counted_rebalances(within)
    among, named = _among("q.", map(_key, rows))
    newest = "row_number() OVER (PARTITION BY q.cluster_id, q.group_id ORDER BY q.offset DESC) AS newest"
    found = records(
        reader,
        f"SELECT n.* FROM (SELECT q.*, {newest} FROM ({query}) q WHERE {among}) n WHERE n.newest <= {MOST_LOOKED_AT} "
        "ORDER BY n.cluster_id, n.group_id, n.newest",
        **(values | named),
    )
    wanted = set(map(_key, rows))
    return [each for each in found if _key(each) in wanted]


def _storm(row: Record, why: Sequence[Caused], findings: Sequence[Record], flapping: Sequence[Record]) -> Storm:
    labels = _labels(why)
    causes, members = Counter[str](), Counter[str]()
    for each in why:
        causes.update({cause.kind.value for cause in each.causes})
        members.update({labels.get(name, name) for name in _members_in(each)})
    for found in findings:
        member: str | None = found["member_id"]
        if member is not None:
            members[labels.get(member, member)] += found["n"]
    codes = Counter[str]()
    for found in findings:
        codes[found["code"]] = max(codes[found["code"]], found["records"])
    order = list(BY_CODE)
    audited = ((BY_RECORDED[code].code, times) for code, times in codes.items())
    told = sorted(audited, key=lambda pair: (-pair[1], order.index(pair[0])))
    return Storm(
        cluster_id=row["cluster_id"],
        group_id=row["group_id"],
        **{name: row[name] for name in selected(Storm)},
        first=row["first"],
        last=row["last"],
        looked_at=len(why),
        causes=_shares(causes),
        members=_shares(members, NAMED),
        partitions=tuple(Share(f"{each['topic']}-{each['partition']}", each["n"]) for each in flapping),
        findings=tuple(Share(*each) for each in told),
    )


def _members_in(each: Caused) -> set[str]:
    """The members that causes are about."""
    kinds = ("member-", "subscription-", "rack-")
    return {cause.about for cause in each.causes if cause.about is not None and cause.kind.value.startswith(kinds)}


def _labels(why: Sequence[Caused]) -> dict[str, str]:
    """Member id -> the name that outlives a restart: the instance id, else the client id, else the member id."""
    rows = [row for each in why for side in (each.before, each.state) if side is not None for row in side.members]
    return {row["member_id"]: row["group_instance_id"] or row["client_id"] or row["member_id"] for row in rows}


def _findings(reader: Reader, rebalances: Mapping[GroupKey, Sequence[Record]]) -> list[Record]:
    """Findings in these records by group, code and member; `records` are those of the code."""
    if not rebalances:
        return []
    codes, values = one_of("v.code", "code", list(BY_RECORDED))
    spans = []
    for number, ((cluster, group), rows) in enumerate(rebalances.items()):
        begins, ends = rows[-1]["offset"], rows[0]["offset"]
        spans.append(
            f"(v.cluster_id = :cluster_{number} AND v.group_id = :group_{number} "
            f"AND v.offset >= {begins} AND v.offset <= {ends})"
        )
        values |= {f"cluster_{number}": cluster, f"group_{number}": group}
    found = (
        "SELECT v.cluster_id, v.group_id, v.code, v.member_id, v.snapshot_id "
        f"FROM ({ingest_findings()}) v WHERE {codes} AND v.severity <> '{Severity.INFO.value}' "
        f"AND ({' OR '.join(spans)})"
    )
    by_code = (
        "SELECT f.cluster_id, f.group_id, f.code, count(DISTINCT f.snapshot_id) AS records "
        f"FROM ({found}) f GROUP BY f.cluster_id, f.group_id, f.code"
    )
    return records(
        reader,
        "SELECT f.cluster_id, f.group_id, f.code, f.member_id, c.records, count(DISTINCT f.snapshot_id) AS n "
        f"FROM ({found}) f JOIN ({by_code}) c ON c.cluster_id = f.cluster_id AND c.group_id = f.group_id "
        "AND c.code = f.code GROUP BY f.cluster_id, f.group_id, f.code, f.member_id, c.records "
        "ORDER BY f.cluster_id, f.group_id, f.code, f.member_id",
        **values,
    )


def _flapping(reader: Reader, within: Scope, rows: Sequence[Record]) -> list[Record]:
    """Partitions that went to a member most often, other than for the first time, by group."""
    condition, values = within.where("t.", "at")
    among, named = _among("t.", map(_key, rows))
    place = "t.cluster_id, t.group_id, coalesce(t.topic, t.topic_id), t.partition"
    counted = (
        "SELECT t.cluster_id, t.group_id, coalesce(t.topic, t.topic_id) AS topic, t.partition, count(*) AS n "
        f"FROM current_ownership_changes t WHERE {condition} AND {among} AND t.to_member_id IS NOT NULL "
        f"GROUP BY {place} HAVING count(*) > 1"
    )
    order = "OVER (PARTITION BY c.cluster_id, c.group_id ORDER BY c.n DESC, c.topic, c.partition) AS place"
    return records(
        reader,
        f"SELECT p.* FROM (SELECT c.*, row_number() {order} FROM ({counted}) c) p WHERE p.place <= {NAMED} "
        "ORDER BY p.cluster_id, p.group_id, p.place",
        **(values | named),
    )


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


@dataclass(frozen=True, slots=True)
class Stickinesses:
    """The groups with most excess first; `total` counts those left off."""

    scope: Scope
    groups: tuple[Stickiness, ...] = field(metadata=listed(Stickiness))
    total: int
    notes: tuple[str, ...]


def stickiness(reader: Reader, asked: RequestedScope, limit: int) -> Stickinesses:
    """Rank groups by what they moved too much. Raises as `scope.scope`."""
    within = scope(reader, asked)
    query, values = _moves_by_group(within)
    order = "g.excess DESC, g.moves DESC, g.cluster_id, g.group_id, g.assignor"
    rows = records(
        reader, f"SELECT g.*, count(*) OVER () AS total FROM ({query}) g ORDER BY {order} LIMIT {limit}", **values
    )
    groups = tuple(Stickiness(**{name: row[name] for name in Stickiness.__slots__}) for row in rows)
    notes = (() if groups else (_why_empty(reader, within),)) + gaps(reader, within)
    return Stickinesses(within, groups, rows[0]["total"] if rows else 0, notes)


def rebalances_compared(within: Scope) -> tuple[str, dict[str, Value]]:
    """Build a query with a row per computed rebalance: whether it is `compared`, and its least is `certain`."""
    condition, values = within.where("r.")
    same, named = one_of("r.verdict", "verdict", list(SAME))
    rows = (
        "SELECT r.cluster_id, r.group_id, r.assignor, r.snapshot_id, s.generation, r.observed_at, r.moves, "
        f"r.least_moves, CASE WHEN {same} AND r.least_moves IS NOT NULL THEN 1 ELSE 0 END AS compared, "
        f"CASE WHEN {same} AND r.least_moves IS NOT NULL AND {CERTAIN} THEN 1 ELSE 0 END AS certain "
        "FROM current_rebalances r JOIN current_group_snapshots s ON s.cluster_id = r.cluster_id "
        f"AND s.group_id = r.group_id AND s.snapshot_id = r.snapshot_id WHERE {condition} "
        "AND r.scenario = :scenario AND r.round = 1 AND r.snapshot_kind <> 'rewrite' AND r.members > 0 "
        f"AND s.group_type = '{CLASSIC}'"
    )
    return rows, values | named | {"scenario": BASELINE}


def _moves_by_group(within: Scope) -> tuple[str, dict[str, Value]]:
    rows, values = rebalances_compared(within)
    more = (
        "SELECT q.*, CASE WHEN q.certain = 1 AND q.moves > q.least_moves THEN q.moves - q.least_moves ELSE 0 END "
        "AS too_many, CASE WHEN q.certain = 1 AND q.moves < q.least_moves THEN q.least_moves - q.moves ELSE 0 END "
        f"AS too_few FROM ({rows}) q"
    )
    group = "o.cluster_id, o.group_id, o.assignor"
    place = f"row_number() OVER (PARTITION BY {group} ORDER BY o.too_many DESC, o.snapshot_id) AS place"
    ranked = f"SELECT o.*, {place} FROM ({more}) o"
    return (
        f"SELECT {group}, cast(sum(o.compared) AS BIGINT) AS compared, "
        "cast(sum(1 - o.compared) AS BIGINT) AS others, cast(sum(o.certain) AS BIGINT) AS certain, "
        "cast(sum(CASE WHEN o.certain = 1 THEN o.moves ELSE 0 END) AS BIGINT) AS moves, "
        "cast(sum(CASE WHEN o.certain = 1 THEN o.least_moves ELSE 0 END) AS BIGINT) AS least, "
        "cast(sum(o.too_many) AS BIGINT) AS excess, cast(sum(o.too_few) AS BIGINT) AS below, "
        "cast(max(o.too_many) AS BIGINT) AS worst, "
        "max(CASE WHEN o.place = 1 AND o.too_many > 0 THEN o.observed_at END) AS worst_at, "
        "max(CASE WHEN o.place = 1 AND o.too_many > 0 THEN o.snapshot_id END) AS worst_snapshot_id, "
        "max(CASE WHEN o.place = 1 AND o.too_many > 0 THEN o.generation END) AS worst_generation "
        f"FROM ({ranked}) o GROUP BY {group}"
    ), values


def _why_empty(reader: Reader, within: Scope) -> str:
    if any_members(reader, within):
        return (
            "no record of a classic group of this period is recomputed: run `groupledger assign --snapshots every`; "
            "what coordinators move (KIP-848) is not summed"
        )
    return why_empty(reader, within)
