"""What the ingests before this one left of its clusters."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.config import RetentionSettings
from groupledger.core.history import OTHER_LOG_PARTITION
from groupledger.core.log.read_plan import LogPlace, Range, Ranges, overlapping, united
from groupledger.sinks import attempts
from groupledger.sinks.attempts import LedgerView, Run
from groupledger.sinks.current import current, written_by
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.sinks.location import LedgerFault
from groupledger.tables import BY_NAME, LOG_RECORDS, QUARANTINE, Table
from groupledger.tables import columns as c

GROUP = [c.CLUSTER_ID, c.GROUP_ID]
STRAY_GROUPS = "stray_groups"
"""The count (`counts_out`) of groups with strays that an ingest folded: later ones look at them again."""

_GUARD = "/ingest"


def require_facts(seen: attempts.LedgerView, location: LedgerLocation) -> None:
    """Raise LedgerFault("NOTHING_INGESTED") where no ingest was ever committed: there is nothing to compute from."""
    if all(commit.kind != attempts.INGEST for commit in seen.commits):
        what = f"nothing was ever ingested into the ledger at {location}"
        raise LedgerFault("NOTHING_INGESTED", f"{what}: run `groupledger ingest` first, and see that it succeeds")


def guard_of(cluster_id: str) -> str:
    """Return the guard that no two ingests of a cluster commit side by side."""
    return f"{cluster_id}{_GUARD}"


def cluster_of(guard: str) -> str | None:
    """Return the cluster whose ingests a guard is of; None for other guards."""
    return guard.removesuffix(_GUARD) if guard.endswith(_GUARD) else None


@dataclass(frozen=True, slots=True)
class Past:
    """The ledger as of some commits, for an ingest under these guards.

    `stated`: by cluster, the number of log partitions that the configuration states.
    """

    spark: SparkSession
    location: LedgerLocation
    commits: tuple[Run, ...]
    guards: tuple[str, ...]
    stated: Mapping[str, int] = field(default_factory=dict)

    @property
    def clusters(self) -> list[str]:
        """Return the clusters of the ingest."""
        return [cluster for guard in self.guards if (cluster := cluster_of(guard)) is not None]

    @property
    def empty(self) -> bool:
        """Return whether no ingest of these clusters was committed."""
        return not any(guard in commit.guards for commit in self.commits for guard in self.guards)

    def rows(self, table: Table, *attempts: str) -> DataFrame:
        """Return the rows of these attempts in a table."""
        return self.location.rows(self.spark, table, attempts).where(written_by(attempts))

    def current(self, table: Table, attempts: Collection[str] | None = None) -> DataFrame:
        """Return the rows of a table that count; with `attempts` those of these."""
        return current(self.spark, self.location, table, self.commits, attempts)

    def reads(self) -> dict[str, Ranges] | None:
        """Return by attempt the first and last offset of each log partition that it read; None: one does not say."""
        found: dict[str, Ranges] = {}
        for commit in self.commits:
            if commit.read is not None:
                found[commit.attempt_id] = {
                    (cluster, int(partition)): (first, last)
                    for cluster, partitions in commit.read.items()
                    for partition, (first, last) in partitions.items()
                }
            elif commit.counts_out.get(LOG_RECORDS.name):
                return None
        return found

    @property
    def met_strays(self) -> list[str]:
        """Return the attempts that met strays."""
        counted = f"/quarantined.{OTHER_LOG_PARTITION}"
        return [
            commit.attempt_id
            for commit in self.commits
            if commit.counts_out.get(STRAY_GROUPS)
            or any(number and name.endswith(counted) for name, number in commit.counts_in.items())
        ]

    def strayed(self) -> DataFrame | None:
        """Return the groups of these clusters of which an earlier ingest met strays; None: none did."""
        attempts = self.met_strays
        if not attempts:
            return None
        strays = F.col(c.CODE) == OTHER_LOG_PARTITION
        return (
            self.rows(QUARANTINE, *attempts)
            .where(strays & F.col(c.CLUSTER_ID).isin(self.clusters))
            .select(*GROUP)
            .distinct()
        )


# Which records an earlier ingest has. Looked for only where offsets lie in ranges that `runs` says were read.
#
# A scheduled ingest brings offsets that no ingest read, so that none of `log_records` is opened for it. If some of the
# new offsets were read, only the attempts that read them are.

COPIES, KNOWN, MAYBE = "copies", "known", "maybe_known"
"""Columns: how often a record was read now; whether an earlier ingest has it; whether one may have it."""

POSITION_AND_CONTENT = [name for name in LOG_RECORDS.columns if name not in (c.LEADER_EPOCH, c.ATTEMPT_ID)]
"""A record is the same whether its source has leader epochs or not."""
_NAMED = 1_000
_RANGES = f"map<string,array<struct<{c.FROM_OFFSET}:bigint,{c.OFFSET}:bigint>>>"


def sorted_out(past: Past, records: DataFrame) -> DataFrame:
    """Return each position and content once, with COPIES; MAYBE if it has to be looked for, else whether it is KNOWN.

    It is without a look if its records were removed since they were read.
    """
    copies = F.count(F.lit(1)).alias(COPIES), F.max(c.LEADER_EPOCH).alias(c.LEADER_EPOCH)
    rows = records.groupBy(*POSITION_AND_CONTENT).agg(*copies)
    if past.empty:
        return rows.withColumns({MAYBE: F.lit(False), KNOWN: F.lit(False)})
    gone = forgotten(past.commits)
    known = F.lit(False) if gone is None else gone
    return rows.withColumns({MAYBE: _was_read(past) & ~known, KNOWN: known})


def looked_for(past: Past, maybe: DataFrame) -> DataFrame:
    """Decide the rows of `sorted_out` that are MAYBE known; `maybe` is read twice, so it should be persisted."""
    extents = maybe.groupBy(c.CLUSTER_ID, c.LOG_PARTITION).agg(F.min(c.OFFSET), F.max(c.OFFSET)).collect()
    wanted: dict[LogPlace, Range] = {(cluster, at): (first, last) for cluster, at, first, last in extents}
    offsets = [offset for extent in wanted.values() for offset in extent]
    within = F.col(c.OFFSET).between(min(offsets), max(offsets)) if offsets else F.lit(False)
    read = past.current(LOG_RECORDS, _attempts(past, wanted)).where(within)
    known = read.select(*POSITION_AND_CONTENT).alias(KNOWN)
    same = F.expr(" AND ".join(f"{MAYBE}.{name} <=> {KNOWN}.{name}" for name in POSITION_AND_CONTENT))
    joined = maybe.drop(KNOWN).alias(MAYBE).join(known, same, "left")
    found = F.col(f"{KNOWN}.{c.OFFSET}").isNotNull().alias(KNOWN)
    return joined.select(f"{MAYBE}.*", found).withColumn(MAYBE, F.lit(False))


def _was_read(past: Past) -> Column:
    """Return whether the position is in a range that was read.

    The ranges are one literal: thousands of them would take as many calls into the JVM.
    """
    reads = past.reads()
    if reads is None:
        return F.lit(True)
    by_place: Mapping[str, list[dict[str, int]]] = {
        f"{cluster}/{partition}": [{c.FROM_OFFSET: first, c.OFFSET: last} for first, last in ranges]
        for (cluster, partition), ranges in united(reads.values()).items()
    }
    if not by_place:
        return F.lit(False)
    ranges = F.from_json(F.lit(json.dumps(by_place)), _RANGES)
    here = F.try_element_at(ranges, F.concat_ws("/", c.CLUSTER_ID, F.col(c.LOG_PARTITION).cast("string")))
    inside = F.exists(here, lambda each: F.col(c.OFFSET).between(each[c.FROM_OFFSET], each[c.OFFSET]))
    return F.coalesce(inside, F.lit(False))


def _attempts(past: Past, wanted: Mapping[LogPlace, Range]) -> list[str] | None:
    """Return the attempts that read any of the offsets; None: any may have."""
    reads = past.reads()
    attempts = None if reads is None else sorted(overlapping(reads, wanted))
    return None if attempts is None or len(attempts) > _NAMED else attempts


# Retention: which runs' rows a table no longer keeps, and what an ingest must know of records that are gone.
#
# The rows of an attempt in a table stay or go together, so that the doctor can still account for every row. Of the raw
# log and of quarantine they go once they are old; of any other table once, in addition, no reader sees one of them:
# what current results rest on stays. Heads of groups, which the next ingest starts from, and `runs` stay for ever.

FORGOTTEN = "forgotten."
"""In `counts_out` of a maintain: `forgotten.<cluster>/<log partition>` is the last offset whose record may be gone."""

_INPUT = (LOG_RECORDS, QUARANTINE)


def due(
    spark: SparkSession,
    location: LedgerLocation,
    settings: Iterable[RetentionSettings],
    stored: Mapping[tuple[str, str], int],
    seen: LedgerView,
    now: datetime,
) -> dict[str, list[str]]:
    """Return by table the committed attempts whose rows are to be removed; tables with none are left out."""
    found: dict[str, list[str]] = {}
    committed = attempts.read_commits(spark, location).commits
    for setting in settings:
        table, before = BY_NAME[setting.table], now - timedelta(days=setting.days)
        old = {each.attempt_id for each in committed if each.finished_at < before}
        old &= {attempt for name, attempt in stored if name == table.name}
        if old and table not in _INPUT:
            rows = current(spark, location, table, seen.commits).select(c.ATTEMPT_ID).distinct()
            old -= {row[c.ATTEMPT_ID] for row in rows.collect()}  # of which a reader sees a row
        if old:
            found[table.name] = sorted(old)
    return found


def forgetting(spark: SparkSession, location: LedgerLocation, attempts: list[str]) -> dict[str, int]:
    """Return what a commit records of the log partitions from which records of these attempts are removed."""
    rows = location.rows(spark, LOG_RECORDS).where(F.col(c.ATTEMPT_ID).isin(attempts))
    ends = rows.groupBy(c.CLUSTER_ID, c.LOG_PARTITION).agg(F.max(c.OFFSET)).collect()
    return {f"{FORGOTTEN}{cluster_id}/{partition}": last for cluster_id, partition, last in sorted(ends)}


def forgotten_ends(commits: Iterable[Run]) -> dict[str, int]:
    """Return by `<cluster>/<log partition>` the last offset whose record may have been removed."""
    ends: dict[str, int] = {}
    for commit in commits:
        for name, last in commit.counts_out.items():
            if name.startswith(FORGOTTEN):
                place = name.removeprefix(FORGOTTEN)
                ends[place] = max(last, ends.get(place, last))
    return ends


def forgotten(commits: Iterable[Run]) -> Column | None:
    """Return whether a position was read, or passed over, before its records were removed; None: none ever was.

    Such a record is no news: what it said has been folded, or came too late for this ledger.
    """
    ends = forgotten_ends(commits)
    if not ends:
        return None
    by_place = F.create_map(*(F.lit(value) for pair in sorted(ends.items()) for value in pair))
    here = F.concat_ws("/", c.CLUSTER_ID, F.col(c.LOG_PARTITION).cast("string"))
    return F.coalesce(F.col(c.OFFSET) <= F.try_element_at(by_place, here), F.lit(False))
