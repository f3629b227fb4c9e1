"""Groups that rebalance often: how often, why, which partitions go to and fro, and which members are in it most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.rebalance_causes import caused
from groupledger.answers.rows import matching, one_of, records
from groupledger.answers.scope import Scope, scope, why_empty
from groupledger.answers.view_page import ingest_findings
from groupledger.core.findings import BY_CODE, BY_RECORDED, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from groupledger.answers.rebalance_causes import Caused
    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.answers.scope import Asked

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


@dataclass(frozen=True, slots=True)
class Storm:
    """A group's rebalances of a period.

    `in_an_hour`: the most within one hour. `causes` are of the last `looked_at` ones, the most frequent first.
    `members` are those that causes and findings name most often, by instance id, else client id; `partitions` those
    that got an owner most often; `findings` what `ingest` found in the same records.
    """

    cluster_id: str
    group_id: str
    rebalances: int
    in_an_hour: int
    first: datetime
    last: datetime
    looked_at: int
    causes: tuple[Share, ...]
    members: tuple[Share, ...]
    partitions: tuple[Share, ...]
    findings: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Storms:
    """The groups with the most rebalances in one hour first; `total` counts those left off."""

    scope: Scope
    groups: tuple[Storm, ...]
    total: int
    notes: tuple[str, ...]


def storms(reader: Reader, asked: Asked, limit: int) -> Storms:
    """Rank groups by their rebalances within one hour. Raises as `scope.scope`."""
    within = scope(reader, asked)
    rows = _ranked(reader, within, limit)
    groups = tuple(_storm(reader, within, row) for row in rows)
    notes = () if groups else (why_empty(reader, within),)
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
        "SELECT t.cluster_id, t.group_id, date_trunc('day', t.observed_at) AS day, count(*) AS n "
        f"FROM current_group_snapshots t WHERE {condition} AND {COUNTED} "
        "GROUP BY t.cluster_id, t.group_id, date_trunc('day', t.observed_at)"
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
        "SELECT h.cluster_id, h.group_id, count(*) AS rebalances, max(h.in_an_hour) AS in_an_hour, "
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


def _storm(reader: Reader, within: Scope, row: Record) -> Storm:
    of_group = Scope(row["cluster_id"], None, within.since, within.until, within.newest)
    query, values = counted_rebalances(of_group)
    named, keys = matching("q.", cluster_id=row["cluster_id"], group_id=row["group_id"])
    last = f"SELECT * FROM ({query}) q WHERE {named} ORDER BY q.offset DESC LIMIT {MOST_LOOKED_AT}"
    rebalances = records(reader, last, **(values | keys))
    why = list(caused(reader, rebalances).values())
    labels = _labels(why)
    causes, members = Counter[str](), Counter[str]()
    for each in why:
        causes.update({cause.kind.value for cause in each.causes})
        members.update({labels.get(name, name) for name in _members_in(each)})
    findings = _findings(reader, keys, rebalances)
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
        rebalances=row["rebalances"],
        in_an_hour=row["in_an_hour"],
        first=row["first"],
        last=row["last"],
        looked_at=len(rebalances),
        causes=_shares(causes),
        members=_shares(members, NAMED),
        partitions=_flapping(reader, of_group, keys),
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


def _findings(reader: Reader, keys: Mapping[str, Value], rebalances: Sequence[Record]) -> list[Record]:
    """Findings in these records by code and member; `records` are those of the code."""
    condition, values = matching("v.", **keys)
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
    offsets = [row["offset"] for row in rebalances]
    found = (
        f"SELECT v.code, v.member_id, v.snapshot_id FROM ({ingest_findings()}) v WHERE {condition} AND {codes} "
        f"AND v.severity <> '{Severity.INFO.value}' "
        "AND v.offset >= :begins AND v.offset <= :ends"
    )
    by_code = f"SELECT f.code, count(DISTINCT f.snapshot_id) AS records FROM ({found}) f GROUP BY f.code"
    return records(
        reader,
        f"SELECT f.code, f.member_id, c.records, count(DISTINCT f.snapshot_id) AS n FROM ({found}) f "
        f"JOIN ({by_code}) c ON c.code = f.code GROUP BY f.code, f.member_id, c.records",
        begins=min(offsets),
        ends=max(offsets),
        **(values | named),
    )


def _flapping(reader: Reader, of_group: Scope, keys: Mapping[str, Value]) -> tuple[Share, ...]:
    """Partitions that went to a member most often, other than for the first time."""
    condition, values = of_group.where("t.", "at")
    named, _ = matching("t.", **keys)
    rows = records(
        reader,
        "SELECT coalesce(t.topic, t.topic_id) AS topic, t.partition, count(*) AS n FROM current_ownership_changes t "
        f"WHERE {condition} AND {named} AND t.to_member_id IS NOT NULL GROUP BY coalesce(t.topic, t.topic_id), "
        f"t.partition HAVING count(*) > 1 ORDER BY n DESC, topic, t.partition LIMIT {NAMED}",
        **(values | dict(keys)),
    )
    return tuple(Share(f"{row['topic']}-{row['partition']}", row["n"]) for row in rows)


def _shares(counted: Mapping[str, int], limit: int | None = None) -> tuple[Share, ...]:
    order = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Share(what, times) for what, times in order[:limit])
