"""What was there to be read, held against what came of it: physical lines and table rows, counted where they arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.pipeline.accounts import (
    BLANK,
    LINES,
    LISTINGS,
    OTHER_TOPIC,
    QUARANTINED,
    RECORDS,
    ROWS,
    accounts,
)
from groupledger.sources import offsets_log, snapshot_tables, topic_listings
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from groupledger.pipeline.reading import Reading, SourceReading
    from groupledger.sources.opening import Arrivals, Arrived

LISTED = f"{LISTINGS}.listed"
_STAGES = (offsets_log.STAGE, snapshot_tables.STAGE, topic_listings.STAGE)


def count_arrivals(reading: Reading, counts: Counter[str]) -> None:
    """Add lines, rows, blank lines and records of other topics, as they were seen when they passed.

    A task that Spark ran again saw them again: of a cluster whose account does not add up they are counted by queries
    of their own, and only then the account is judged.
    """
    seen = {cluster_id: _of_cluster(reading, cluster_id, _observed) for cluster_id in reading.clusters}
    for cluster_id, first in seen.items():
        counts.update(first)
        if not all(each.balanced for each in accounts(counts) if each.cluster_id == cluster_id):
            counts.subtract(first)
            counts.update(_of_cluster(reading, cluster_id, _counted))


def count_rejected(rejected: DataFrame, reading: Reading, counts: Counter[str]) -> None:
    """Add what the sources rejected, from the rows that were written, under the cluster of its source."""
    by_stage = rejected.where(F.col(c.STAGE).isin(*_STAGES)).groupBy(c.STAGE, c.SOURCE, c.CLUSTER_ID, c.CODE).count()
    for stage, source, named, code, number in by_stage.collect():
        cluster_id = reading.cluster_of(source, named)
        if stage == topic_listings.STAGE:
            counts[f"{cluster_id}/{LISTINGS}.{code}"] += number
        else:
            counts[f"{cluster_id}/{RECORDS}"] += number
            counts[f"{cluster_id}/{QUARANTINED}.{code}"] += number


def count_listed(listed: DataFrame, counts: Counter[str]) -> None:
    """Add the usable lines of topic listings."""
    usable = listed.where(F.col(topic_listings.STATE).isNotNull())
    for cluster_id, number in usable.groupBy(c.CLUSTER_ID).count().collect():
        counts[f"{cluster_id}/{LISTED}"] += number


def _of_cluster(reading: Reading, cluster_id: str, ask: Callable[[Arrivals], Arrived]) -> Counter[str]:
    found: Counter[str] = Counter({f"{cluster_id}/{name}": 0 for name in (LINES, ROWS, BLANK)})
    for arrivals in _arrivals(reading.sources, cluster_id):
        arrived = ask(arrivals)
        found[f"{cluster_id}/{LINES if arrivals.of_lines else ROWS}"] += arrived.entries
        found[f"{cluster_id}/{BLANK}"] += arrived.blank
        for kind, number in {OTHER_TOPIC: arrived.other_topic, **arrived.left_out}.items():
            if number:
                found[f"{cluster_id}/{RECORDS}"] += number
                found[f"{cluster_id}/unused.{kind}"] += number
    return found


def _arrivals(sources: Iterable[SourceReading], cluster_id: str) -> list[Arrivals]:
    return [each for source in sources if source.cluster_id == cluster_id for each in source.arrivals]


def _observed(arrivals: Arrivals) -> Arrived:
    return arrivals.observed()


def _counted(arrivals: Arrivals) -> Arrived:
    return arrivals.counted()
