"""What `show` lists: the ledger at a glance, a group's history, findings, gaps and rejected input.

Every query ends in a bounded collect; what was left off is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from groupledger.core.moment import from_millis
from groupledger.pipeline.coverage import GAPS, coverage_of, topics_not_listed, within
from groupledger.pipeline.names import require_names, require_scenario, unknown_group
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, QUARANTINE, RUNS, VIOLATIONS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from groupledger.pipeline.ledger import Group, Ledger

FIRST, LAST, GROUPS, SNAPSHOTS, TOTAL = "first", "last", "groups", "snapshots", "total"
SEVERITIES = ("error", "warning", "info")

_HISTORY_COLUMNS = (
    c.CLUSTER_ID,
    c.INCARNATION,
    c.GENERATION,
    c.SNAPSHOT_KIND,
    c.OBSERVED_AT,
    c.STATE,
    c.ASSIGNOR,
    c.PROTOCOL,
    c.MEMBERS,
    c.MOVES,
    c.LEAST_MOVES,
    c.VERDICT,
    GAPS,
    c.SNAPSHOT_ID,
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows for a person, in order; `total` counts those left off, too."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int

    @property
    def left_off(self) -> int:
        """Rows that exist and are not here."""
        return self.total - len(self.rows)


def clusters(ledger: Ledger, limit: int) -> Listing:
    """A line a cluster: how many groups and snapshots, from when to when, and how many gaps there are."""
    rows = ledger.current(GROUP_SNAPSHOTS).groupBy(c.CLUSTER_ID)
    counted = rows.agg(
        F.count_distinct(c.GROUP_ID).alias(GROUPS),
        F.count("*").alias(SNAPSHOTS),
        F.min(c.OBSERVED_AT).alias(FIRST),
        F.max(c.OBSERVED_AT).alias(LAST),
    )
    counted = _with_gaps(counted, coverage_of(ledger), [c.CLUSTER_ID])
    return _listing("clusters", counted, (c.CLUSTER_ID, GROUPS, SNAPSHOTS, FIRST, LAST, GAPS), [c.CLUSTER_ID], limit)


def groups(ledger: Ledger, limit: int, cluster: str | None = None) -> Listing:
    """A line a group: its last recorded state, how many snapshots led there, and how many gaps its history has."""
    rows = within(ledger.current(GROUP_SNAPSHOTS), cluster).withColumn(
        c.GENERATION, F.coalesce(c.GENERATION, c.GROUP_EPOCH)
    )
    shown = (c.GROUP_TYPE, c.GENERATION, c.ASSIGNOR, c.STATE, c.MEMBERS, c.OBSERVED_AT)
    latest = rows.groupBy(c.CLUSTER_ID, c.GROUP_ID).agg(
        F.count("*").alias(SNAPSHOTS), F.max_by(F.struct(*shown), c.OFFSET).alias(LAST)
    )
    flat = latest.select(c.CLUSTER_ID, c.GROUP_ID, SNAPSHOTS, f"{LAST}.*")
    keys = [c.CLUSTER_ID, c.GROUP_ID]
    listing = _listing(
        "groups", _with_gaps(flat, coverage_of(ledger, cluster), keys), (*flat.columns, GAPS), keys, limit
    )
    return _of_known(ledger, listing, cluster)


def runs(ledger: Ledger, limit: int) -> Listing:
    """A line a committed run, the latest first."""
    shown = (c.SEQUENCE, c.KIND, c.RUN_ID, c.VERDICT, c.STARTED_AT, c.FINISHED_AT)
    return _listing("runs", ledger.current(RUNS), shown, [F.desc(c.SEQUENCE)], limit)


def history(group: Group, scenario: str, limit: int, *, asked: bool = False) -> Listing:
    """A line a snapshot of the group, the latest last, with the moves and the verdict of a scenario.

    `gaps`: gaps that end at this record, and topics that no listing knew at its time.

    No snapshot is a `Fault` that names groups alike; so is a scenario that was `asked` for and has no results.
    """
    if asked:
        require_scenario(group.ledger, scenario)
    result = group.within(group.ledger.results(scenario)).where(F.col(c.ROUND) == 1)
    result = result.select(c.SNAPSHOT_ID, c.PROTOCOL, c.MOVES, c.LEAST_MOVES, c.VERDICT)
    rows = (
        group.of(GROUP_SNAPSHOTS)
        .withColumn(c.GENERATION, F.coalesce(c.GENERATION, c.GROUP_EPOCH))
        .join(result, c.SNAPSHOT_ID, "left")
    )
    gaps = group.of(COVERAGE).select(c.SNAPSHOT_ID)
    gaps = gaps.unionByName(topics_not_listed(group.ledger, group.of(GROUP_SNAPSHOTS)).select(c.SNAPSHOT_ID))
    rows = _with_gaps(rows, gaps, [c.SNAPSHOT_ID])
    listing = _listing(
        f"history of {group.group_id}", rows, _HISTORY_COLUMNS, [F.desc(c.CLUSTER_ID), F.desc(c.OFFSET)], limit
    )
    if not listing.rows:
        raise unknown_group(group.ledger, group.group_id, group.cluster_id)
    return Listing(listing.title, listing.columns, listing.rows[::-1], listing.total)


def findings(ledger: Ledger, limit: int, cluster: str | None = None, group_id: str | None = None) -> Listing:
    """A line a finding, errors first: what a person should look at, with the evidence and the position."""
    rows = within(ledger.current(VIOLATIONS), cluster, group_id)
    shown = (c.SEVERITY, c.CODE, c.CLUSTER_ID, c.GROUP_ID, c.SNAPSHOT_ID, c.MEMBER_ID, c.EVIDENCE)
    gravest = F.array_position(F.array(*map(F.lit, SEVERITIES)), F.col(c.SEVERITY))
    order: list[str | Column] = [gravest, c.CLUSTER_ID, c.GROUP_ID, c.OFFSET, c.CODE, c.MEMBER_ID, c.EVIDENCE]
    return _of_known(ledger, _listing("findings", rows, shown, order, limit), cluster, group_id)


def coverage(ledger: Ledger, limit: int, cluster: str | None = None, group_id: str | None = None) -> Listing:
    """A line a gap of the history, and a topic without a listing. A gap is normal: it says what cannot be told."""
    rows = coverage_of(ledger, cluster, group_id)
    shown = (c.CLUSTER_ID, c.GROUP_ID, c.INCARNATION, c.KIND, c.FROM_VALUE, c.TO_VALUE, c.REASON, c.SNAPSHOT_ID)
    order = [c.CLUSTER_ID, c.GROUP_ID, c.OFFSET, c.KIND, c.REASON]
    listing = _listing("coverage", rows, shown, order, limit)
    return _of_known(ledger, listing, cluster, group_id)


def quarantine(ledger: Ledger, limit: int, cluster: str | None = None, group_id: str | None = None) -> Listing:
    """A line a rejected record, row or group, with the reason; the bytes stay in the table."""
    rows = within(ledger.current(QUARANTINE), cluster, group_id)
    shown = (c.STAGE, c.CODE, c.CLUSTER_ID, c.GROUP_ID, c.LOG_PARTITION, c.OFFSET, c.MESSAGE)
    order = [c.CLUSTER_ID, c.LOG_PARTITION, c.OFFSET, c.STAGE, c.CODE, c.GROUP_ID, c.MESSAGE]
    return _of_known(ledger, _listing("quarantine", rows, shown, order, limit), cluster, group_id)


def _with_gaps(rows: DataFrame, gaps: DataFrame, keys: list[str]) -> DataFrame:
    """The rows with the number of gaps under their keys."""
    counted = gaps.groupBy(*keys).agg(F.count("*").alias(GAPS))
    return rows.join(counted, keys, "left").withColumn(GAPS, F.coalesce(GAPS, F.lit(0)))


def _of_known(ledger: Ledger, listing: Listing, cluster: str | None, group_id: str | None = None) -> Listing:
    """The listing; where it is empty because nobody knows the cluster or the group, a `Fault` that says so."""
    if not listing.rows:
        require_names(ledger, cluster, group_id)
    return listing


def _listing(title: str, rows: DataFrame, shown: tuple[str, ...], order: Sequence[str | Column], limit: int) -> Listing:
    """The first `limit` rows in this order; times leave Spark as milliseconds, so that no local zone gets in."""
    times = {field.name for field in rows.schema.fields if field.dataType.typeName() == "timestamp"}
    columns = [F.unix_millis(name).alias(name) if name in times else F.col(name) for name in shown]
    found = rows.sort(*order).limit(limit + 1).select(*columns).collect()
    total = len(found) if len(found) <= limit else rows.count()
    values = (
        tuple(
            from_millis(value) if name in times and value is not None else value
            for name, value in zip(shown, row, strict=True)
        )
        for row in found[:limit]
    )
    return Listing(title, shown, tuple(values), total)
