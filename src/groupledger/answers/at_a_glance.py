"""What `show` lists: the ledger at a glance, a group's history, findings, gaps and rejected input.

Every listing is bounded; what was left off is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from groupledger.answers.queries import NUMBER, Reader, first_of, literal, matching, newest, records, steps
from groupledger.answers.scope import GAPS, NO_RECORD, require_names, require_scenario, unknown_group
from groupledger.answers.spoken import SERVER_DEFAULT
from groupledger.core.rebalance.findings import Severity

TOPIC_NOT_LISTED = "topic-not-listed"
_ASSIGNOR = (
    f"CASE WHEN t.assignor IS NULL AND t.group_type = 'consumer' AND t.members > 0 THEN '{SERVER_DEFAULT}' "
    "ELSE t.assignor END AS assignor"
)
_NAMES = "array_join(t.attributed_to, ' or ')"
_ALGORITHM = (
    f"CASE t.attribution WHEN 'exact' THEN {_NAMES} WHEN 'no-known-assignor' THEN t.attribution "
    f"ELSE t.attribution || ': ' || {_NAMES} END"
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows for a person, in order; `total` counts those left off, too.

    `why` there are none, where the ledger has no record at all.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    why: str = ""

    @property
    def left_off(self) -> int:
        """Rows that exist and are not here."""
        return self.total - len(self.rows)


Head = tuple[str, ...]


def _listing(reader: Reader, limit: int, title: str, rows: str, shown: Head, order: Head) -> Listing:
    """List `shown` columns of the first rows of a query; `order`: columns, with `-` before one the greatest first."""
    columns = ", ".join(f"q.{name} AS c{number}" for number, name in enumerate(shown))
    ordered = ", ".join(
        f"q.{name[1:]} DESC NULLS LAST" if name.startswith("-") else f"q.{name} ASC NULLS FIRST" for name in order
    )
    found, total = first_of(reader, rows, ordered, limit, columns)
    return Listing(title, shown, tuple(tuple(row.values()) for row in found[:limit]), total)


def clusters(reader: Reader, limit: int) -> Listing:
    """List the clusters: how many groups and snapshots, from when to when, and how many gaps were recorded."""
    counted = (
        "SELECT cluster_id, count(DISTINCT group_id) AS groups, count(*) AS snapshots, min(observed_at) AS first, "
        "max(observed_at) AS last FROM current_group_snapshots GROUP BY cluster_id"
    )
    shown = ("cluster_id", "groups", "snapshots", "first", "last", "gaps")
    rows = _with_gaps(counted, shown[1:-1], f"({GAPS})", ("cluster_id",))
    return _listing(reader, limit, "clusters", rows, shown, ("cluster_id",))


def groups(reader: Reader, limit: int, cluster: str | None = None) -> Listing:
    """List the groups: the last recorded state, how many snapshots led there, and how many gaps were recorded."""
    condition = matching("t.", cluster_id=cluster)
    one = steps(
        lasts=newest(
            condition,
            f"t.cluster_id, t.group_id, n.snapshots, t.group_type, {NUMBER} AS "
            f"generation, {_ASSIGNOR}, t.state, t.members, t.observed_at, "
            "row_number() OVER (PARTITION BY t.cluster_id, t.group_id ORDER BY t.snapshot_id) AS first",
            ", count(*) AS snapshots",
        ),
        one="SELECT * FROM lasts o WHERE o.first = 1",
    )
    columns = ("snapshots", "group_type", "generation", "assignor", "state", "members", "observed_at")
    keys = ("cluster_id", "group_id")
    rows = _with_gaps(one, columns, f"({GAPS})", keys)
    listing = _listing(reader, limit, "groups", rows, (*keys, *columns, "gaps"), keys)
    return _of_known(reader, listing, cluster)


def runs(reader: Reader, limit: int) -> Listing:
    """List the committed runs, the latest first."""
    shown = ("sequence", "kind", "run_id", "verdict", "started_at", "finished_at")
    return _listing(reader, limit, "runs", "SELECT * FROM current_runs", shown, ("-sequence",))


def history(
    reader: Reader, group_id: str, cluster: str | None, scenario: str, limit: int, *, asked: bool = False
) -> Listing:
    """List the snapshots of the group, the latest last, with the moves and the verdict of a scenario.

    `algorithm`: the assignors that the record is attributed to; how far they agree stands before it, unless exactly.
    `gaps`: gaps that end at this record, and topics that no listing counts then. No snapshot is a `Fault` that
    names groups alike; so is a scenario that was `asked` for and has no results.
    """
    if asked:
        require_scenario(reader, scenario)
    condition = matching("t.", group_id=group_id, cluster_id=cluster)
    of_group = f"FROM {{}} t WHERE {condition}"
    gaps = " UNION ALL ".join(
        f"SELECT t.cluster_id, t.snapshot_id {of_group.format(view)}" for view in (f"({GAPS})", "topics_not_listed")
    )
    results = (
        f"SELECT t.cluster_id, t.snapshot_id, t.protocol, t.moves, t.least_moves, t.verdict, {_ALGORITHM} AS algorithm "
        f"{of_group.format('current_rebalances')} AND t.scenario = {literal(scenario)} AND t.round = 1"
    )
    columns = (
        *("incarnation", "generation", "snapshot_kind", "observed_at", "state", "assignor", "protocol", "members"),
        *("moves", "least_moves", "verdict", "algorithm", "offset"),
    )
    snapshots = (
        f"SELECT t.cluster_id, t.snapshot_id, t.incarnation, {NUMBER} AS generation, "
        f"t.snapshot_kind, t.observed_at, t.state, {_ASSIGNOR}, r.protocol, t.members, r.moves, r.least_moves, "
        f"r.verdict, r.algorithm, t.offset FROM current_group_snapshots t LEFT JOIN ({results}) r "
        f"ON r.cluster_id = t.cluster_id AND r.snapshot_id = t.snapshot_id WHERE {condition}"
    )
    rows = _with_gaps(snapshots, columns, f"({gaps})", ("cluster_id", "snapshot_id"))
    shown = ("cluster_id", *columns[:-1], "gaps", "snapshot_id")
    listing = _listing(reader, limit, f"history of {group_id}", rows, shown, ("-cluster_id", "-offset"))
    if not listing.rows:
        raise unknown_group(reader, group_id, cluster)
    return replace(listing, rows=listing.rows[::-1])


def findings(reader: Reader, limit: int, cluster: str | None = None, group_id: str | None = None) -> Listing:
    """List the findings, errors first, with the evidence and the position."""
    gravest = " ".join(f"WHEN '{severity}' THEN {number}" for number, severity in enumerate(Severity))
    shown = ("severity", "code", "cluster_id", "group_id", "snapshot_id", "member_id", "evidence")
    order = ("gravity", "cluster_id", "group_id", "offset", "code", "member_id", "evidence")
    rows = f"SELECT t.*, CASE t.severity {gravest} END AS gravity FROM current_violations t"
    listing = _rejected_or_found(reader, "findings", rows, shown, order, limit, cluster, group_id)
    return replace(listing, rows=tuple((Severity(grave), *row) for grave, *row in listing.rows))


def coverage(reader: Reader, limit: int, cluster: str | None = None, group_id: str | None = None) -> Listing:
    """List the gaps of the history, and topics without a listing. A gap is normal: it says what is not known."""
    shown = ("cluster_id", "group_id", "incarnation", "kind", "from_value", "to_value", "reason", "snapshot_id")
    within = "PARTITION BY t.cluster_id, t.group_id, t.incarnation, t.topic"
    of_topics = (
        f"SELECT t.cluster_id, t.group_id, t.incarnation, {NUMBER} AS number, t.offset, t.snapshot_id, t.topic, "
        f"count(*) OVER ({within}) AS n, row_number() OVER ({within} ORDER BY t.offset) AS first, "
        f"max({NUMBER}) OVER ({within}) AS last FROM topics_not_listed t"
    )
    reason = (
        "concat('topic ', t.topic, ' was in no topic listing at the time of ', cast(t.n AS STRING), "
        "CASE WHEN t.n = 1 THEN ' snapshot' ELSE ' snapshots' END, ': its partition count then is not known')"
    )
    rows = (
        "SELECT t.cluster_id, t.group_id, t.incarnation, t.kind, t.from_value, t.to_value, t.reason, t.snapshot_id, "
        "t.offset FROM current_coverage t UNION ALL "
        f"SELECT t.cluster_id, t.group_id, t.incarnation, '{TOPIC_NOT_LISTED}', cast(t.number AS BIGINT), "
        f"cast(t.last AS BIGINT), {reason}, t.snapshot_id, t.offset FROM ({of_topics}) t WHERE t.first = 1"
    )
    order = ("cluster_id", "group_id", "offset", "kind", "reason")
    return _rejected_or_found(reader, "coverage", rows, shown, order, limit, cluster, group_id)


def quarantine(reader: Reader, limit: int, cluster: str | None = None, group_id: str | None = None) -> Listing:
    """List rejected records, rows and groups, with the reason; the bytes stay in the table."""
    shown = ("stage", "code", "cluster_id", "group_id", "log_partition", "offset", "message")
    order = ("cluster_id", "log_partition", "offset", "stage", "code", "group_id", "message")
    rows = "SELECT * FROM current_quarantine"
    return _rejected_or_found(reader, "quarantine", rows, shown, order, limit, cluster, group_id)


def one_rejected(reader: Reader, attempt_id: str) -> str | None:
    """Return code and message of a row that an attempt rejected: the first in the log, else one of the first lines."""
    rows = records(
        reader,
        f"SELECT q.code, q.message FROM current_quarantine q WHERE q.attempt_id = {literal(attempt_id)} ORDER BY "
        "coalesce(q.log_partition, -1), coalesce(q.offset, -1), length(q.message), q.message, q.code LIMIT 1",
    )
    return f"{rows[0]['code']}: {rows[0]['message']}" if rows else None


def _rejected_or_found(
    reader: Reader, title: str, rows: str, shown: Head, order: Head, limit: int, cluster: str | None, group: str | None
) -> Listing:
    condition = matching("w.", cluster_id=cluster, group_id=group)
    listing = _listing(reader, limit, title, f"SELECT * FROM ({rows}) w WHERE {condition}", shown, order)
    return _of_known(reader, listing, cluster, group)


def _with_gaps(rows: str, columns: tuple[str, ...], gaps: str, keys: tuple[str, ...]) -> str:
    """Select the keys and columns of the rows, and the number of gaps under those keys."""
    shown = ", ".join(f"a.{name}" for name in (*keys, *columns))
    key = ", ".join(f"g.{name}" for name in keys)
    same = " AND ".join(f"b.{name} = a.{name}" for name in keys)
    counted = f"SELECT {key}, count(*) AS gaps FROM {gaps} g GROUP BY {key}"
    return f"SELECT {shown}, coalesce(b.gaps, 0) AS gaps FROM ({rows}) a LEFT JOIN ({counted}) b ON {same}"


def _of_known(reader: Reader, listing: Listing, cluster: str | None, group_id: str | None = None) -> Listing:
    """Return the listing; raise a `Fault` if it is empty because the ledger does not know the cluster or the group."""
    if listing.rows:
        return listing
    require_names(reader, cluster, group_id)
    known = records(reader, "SELECT 1 AS found FROM current_group_snapshots LIMIT 1")
    return listing if known else replace(listing, why=NO_RECORD)
