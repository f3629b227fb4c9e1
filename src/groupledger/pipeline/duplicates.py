"""Which records an earlier ingest has. Looked for only where offsets lie in ranges that `runs` says were read.

A scheduled ingest brings offsets that no ingest read, so that none of `log_records` is opened for it. Where some of the
new offsets were read, only the attempts that read them are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.core.read_ranges import Range, overlapping, united
from groupledger.pipeline.retention import forgotten
from groupledger.tables import LOG_RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from groupledger.core.read_ranges import LogPlace
    from groupledger.pipeline.past import Past

COPIES, KNOWN, MAYBE = "copies", "known", "maybe_known"
"""Columns: how often a record was read now; whether an earlier ingest has it; whether one may have it."""

POSITION_AND_CONTENT = [name for name in LOG_RECORDS.columns if name not in (c.LEADER_EPOCH, c.ATTEMPT_ID)]
"""A record is the same whether its source has leader epochs or not."""
_NAMED = 1_000
_RANGES = f"map<string,array<struct<{c.FROM_OFFSET}:bigint,{c.OFFSET}:bigint>>>"


def sorted_out(past: Past, records: DataFrame) -> DataFrame:
    """Each position and content once, with COPIES; MAYBE where it has to be looked for, else KNOWN says all there is
    to say: true where its records were removed since they were read."""
    copies = F.count(F.lit(1)).alias(COPIES), F.max(c.LEADER_EPOCH).alias(c.LEADER_EPOCH)
    rows = records.groupBy(*POSITION_AND_CONTENT).agg(*copies)
    if past.empty:
        return rows.withColumns({MAYBE: F.lit(False), KNOWN: F.lit(False)})
    gone = forgotten(past.commits)
    known = F.lit(False) if gone is None else gone
    return rows.withColumns({MAYBE: _was_read(past) & ~known, KNOWN: known})


def looked_for(past: Past, maybe: DataFrame) -> DataFrame:
    """The rows of `sorted_out` that are MAYBE known, decided; `maybe` is read twice, so it should be persisted."""
    extents = maybe.groupBy(c.CLUSTER_ID, c.LOG_PARTITION).agg(F.min(c.OFFSET), F.max(c.OFFSET)).collect()
    wanted: dict[LogPlace, Range] = {(cluster, at): (first, last) for cluster, at, first, last in extents}
    offsets = [offset for extent in wanted.values() for offset in extent]
    within = F.col(c.OFFSET).between(min(offsets), max(offsets)) if offsets else F.lit(False)
    read = past.current(LOG_RECORDS, _attempts(past, wanted)).where(within)
    known = read.select(*POSITION_AND_CONTENT).alias(KNOWN)
    same = [F.col(f"{MAYBE}.{name}").eqNullSafe(F.col(f"{KNOWN}.{name}")) for name in POSITION_AND_CONTENT]
    joined = maybe.drop(KNOWN).alias(MAYBE).join(known, reduce(lambda one, other: one & other, same), "left")
    found = F.col(f"{KNOWN}.{c.OFFSET}").isNotNull().alias(KNOWN)
    return joined.select(f"{MAYBE}.*", found).withColumn(MAYBE, F.lit(False))


def _was_read(past: Past) -> Column:
    """Whether the position is in a range that was read. The ranges are one literal: thousands of them would take as
    many calls into the JVM."""
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
    """The attempts that read any of the offsets; None: any may have."""
    reads = past.reads()
    attempts = None if reads is None else sorted(overlapping(reads, wanted))
    return None if attempts is None or len(attempts) > _NAMED else attempts
