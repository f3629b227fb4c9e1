"""Up to when an ingest leaves each cluster of the ledger known, for `runs` (`core.known_up_to`).

Each run keeps it of all clusters, so that a reader looks at the last runs only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from groupledger.core.digest import digest
from groupledger.core.known_up_to import KNOWN, KnownUpTo, known_in, together
from groupledger.core.moment import from_millis
from groupledger.pipeline.past import cluster_of
from groupledger.sinks import runs
from groupledger.sinks.current import current
from groupledger.sinks.refusals import WriteConflict
from groupledger.tables import GROUP_SNAPSHOTS, LOG_RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from groupledger.pipeline.invocation import Invocation
    from groupledger.pipeline.reading import Reading
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.sinks.runs import Commit, LedgerView

LAST_RUNS = 20
"""Runs that are merged: ingests of several clusters may overtake one another."""


def known_before(spark: SparkSession, location: LedgerLocation, commits: tuple[Commit, ...]) -> dict[str, KnownUpTo]:
    """Return what was known of each cluster; of ingests that kept nothing, the records are asked once."""
    keeping = (commit.known for commit in reversed(commits) if commit.known is not None)
    found = together(known_in({KNOWN: json.loads(known)}) for known in islice(keeping, LAST_RUNS))
    ingested = {cluster for commit in commits for guard in commit.guards if (cluster := cluster_of(guard)) is not None}
    unsaid = sorted(ingested - found.keys())
    return {**found, **(_recorded(spark, location, commits, unsaid) if unsaid else {})}


def _recorded(
    spark: SparkSession, location: LedgerLocation, commits: tuple[Commit, ...], clusters: list[str]
) -> dict[str, KnownUpTo]:
    records = newest(current(spark, location, LOG_RECORDS, commits), c.TIMESTAMP)
    states = newest(current(spark, location, GROUP_SNAPSHOTS, commits), c.OBSERVED_AT)
    found = together([dict.fromkeys(clusters, KnownUpTo()), records, states])
    return {cluster: found[cluster] for cluster in clusters}


def newest(rows: DataFrame, moment: str) -> dict[str, KnownUpTo]:
    """Return the newest moment of rows, by cluster."""
    found = rows.groupBy(c.CLUSTER_ID).agg(F.unix_millis(F.max(moment))).collect()
    return {cluster: KnownUpTo(newest=from_millis(at)) for cluster, at in found}


class NewestRead:
    """The time of the newest record (ms) that an ingest has read of each log partition, by cluster."""

    def __init__(self) -> None:
        self._times: defaultdict[tuple[str, int], int] = defaultdict(int)

    def add(self, rows: Iterable[tuple[str, int, int]]) -> None:
        """Add rows of cluster, log partition and time."""
        for cluster, partition, time in rows:
            self._times[cluster, partition] = max(self._times[cluster, partition], time)

    def add_left_out(self, reading: Reading) -> None:
        """Add the records that sources left out, once they have been read."""
        for source in reading.sources:
            for rows in source.parts:
                if rows.newest_left_out is not None:
                    self.add((source.cluster_id, *each) for each in rows.newest_left_out().items())

    def known(self, reading: Reading) -> dict[str, KnownUpTo]:
        """Up to when the ingest has read each cluster."""
        found = {
            cluster: KnownUpTo(newest=from_millis(time))
            for (cluster, _), time in sorted(self._times.items(), key=itemgetter(1))
        }
        return together([dict.fromkeys(reading.clusters, KnownUpTo()), found, self._of_clusters(reading)])

    def _of_clusters(self, reading: Reading) -> dict[str, KnownUpTo]:
        """Of clusters that were read themselves: of those of which something is left, what was read least far."""
        found = dict(reading.known)
        for cluster, partitions in reading.behind.items():
            read = {partition: time for (of, partition), time in self._times.items() if of == cluster}
            times = [read[each] for each in partitions if each in read] or list(read.values())
            found[cluster] = replace(found[cluster], least=from_millis(min(times)) if times else None)
        return found


def inputs_of(known: Iterable[Mapping[str, KnownUpTo]]) -> dict[str, Any]:
    """Return what `inputs` of a run keep."""
    merged = together(known)
    return {KNOWN: {cluster: each.as_json() for cluster, each in sorted(merged.items())}}


def note_nothing_new(
    spark: SparkSession, location: LedgerLocation, seen: LedgerView, reading: Reading, invocation: Invocation
) -> None:
    """Commit a run that says up to when nothing was new, if its sources can tell.

    It has no guard: no other run rests on it, and none has to yield to it. Where others commit all the time, the next
    ingest says it.
    """
    if not reading.known:
        return
    inputs = {"sources": [], **inputs_of([known_before(spark, location, seen.commits), reading.known])}
    now = invocation.now()
    attempt = runs.Attempt(
        run_id=f"{runs.NOTHING_NEW}-{digest([inputs, invocation.attempt_id])[:16]}",
        attempt_id=invocation.attempt_id,
        kind=runs.NOTHING_NEW,
        inputs=inputs,
        config_digest="",
        code_digest="",
        started_at=now,
    )
    outcome = runs.Outcome({}, {}, "", "done", invocation.now())
    try:
        runs.commit(spark, location, attempt, seen.sequence, outcome)
    except WriteConflict:
        return
