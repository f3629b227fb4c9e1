"""Retention: which runs' rows a table no longer keeps, and what an ingest must know of records that are gone.

The rows of an attempt in a table stay or go together, so that the doctor can still account for every row. Of the raw
log and of quarantine they go once they are old; of any other table once, besides, no reader sees one of them any more:
what current results rest on stays. Heads of groups, which the next ingest starts from, and `runs` stay for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.sinks.current import current
from groupledger.sinks.runs import committed_before
from groupledger.tables import BY_NAME, LOG_RECORDS, QUARANTINE
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, SparkSession

    from groupledger.config import RetentionSettings
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.sinks.runs import Commit, LedgerView
    from groupledger.tables import Table

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
    """By table, the committed attempts whose rows are there and are to go; tables with none are left out."""
    found: dict[str, list[str]] = {}
    for setting in settings:
        table = BY_NAME[setting.table]
        attempts = committed_before(spark, location, now - timedelta(days=setting.days))
        attempts &= {attempt for name, attempt in stored if name == table.name}
        if attempts and table not in _INPUT:
            attempts -= _seen(spark, location, table, seen.commits)
        if attempts:
            found[table.name] = sorted(attempts)
    return found


def _seen(spark: SparkSession, location: LedgerLocation, table: Table, commits: tuple[Commit, ...]) -> set[str]:
    """The attempts of which a reader sees a row."""
    rows = current(spark, location, table, commits).select(c.ATTEMPT_ID).distinct()
    return {row[c.ATTEMPT_ID] for row in rows.collect()}


def forgetting(spark: SparkSession, location: LedgerLocation, attempts: list[str]) -> dict[str, int]:
    """What a commit says of the log partitions whose records of these attempts go."""
    rows = location.rows(spark, LOG_RECORDS).where(F.col(c.ATTEMPT_ID).isin(attempts))
    ends = rows.groupBy(c.CLUSTER_ID, c.LOG_PARTITION).agg(F.max(c.OFFSET)).collect()
    return {f"{FORGOTTEN}{cluster_id}/{partition}": last for cluster_id, partition, last in sorted(ends)}


def forgotten_ends(commits: Iterable[Commit]) -> dict[str, int]:
    """By `<cluster>/<log partition>`, the last offset whose record may have been removed."""
    ends: dict[str, int] = {}
    for commit in commits:
        for name, last in commit.counts_out.items():
            if name.startswith(FORGOTTEN):
                place = name.removeprefix(FORGOTTEN)
                ends[place] = max(last, ends.get(place, last))
    return ends


def forgotten(commits: Iterable[Commit]) -> Column | None:
    """Whether a record's position is one that was read, or passed over, before its records were removed; None: no
    record was ever removed.

    Such a record is no news: what it said has been folded, or came too late for this ledger.
    """
    ends = forgotten_ends(commits)
    if not ends:
        return None
    by_place = F.create_map(*(F.lit(value) for pair in sorted(ends.items()) for value in pair))
    here = F.concat_ws("/", c.CLUSTER_ID, F.col(c.LOG_PARTITION).cast("string"))
    return F.coalesce(F.col(c.OFFSET) <= F.try_element_at(by_place, here), F.lit(False))
