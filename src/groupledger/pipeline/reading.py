"""What an ingest reads: every configured source, opened and described before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from groupledger.core.digest import digest
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.sources import offsets_log, snapshot_tables, topic_listings
from groupledger.sources.opening import PROBLEM, Rows, split
from groupledger.tables import LOG_RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import Config, LimitSettings, SourceSettings
    from groupledger.sources.snapshot_tables import Snapshots

OFFSETS_PARTITIONS = "offsets_partitions"
LOG_KINDS = {"offsets-parquet": "parquet", "offsets-delta": "delta"}


@dataclass(frozen=True, slots=True)
class Reading:
    """The sources as frames. `described` says which files were read, for `runs.inputs`.

    Rows of `logs` have the columns of `log_records` without the attempt, those of `listings` are as `topic_listings`
    reads them.
    """

    logs: tuple[Rows, ...]
    listings: tuple[Rows, ...]
    tables: tuple[tuple[str, Snapshots], ...]  # with the cluster of each
    clusters: tuple[str, ...]
    described: Mapping[str, Any]

    @property
    def stated(self) -> dict[str, int]:
        """By cluster, the number of log partitions that its sources state."""
        return stated_partitions(self.described["sources"])

    @property
    def digest(self) -> str:
        """The same files give the same digest."""
        return digest(self.described)

    def rejected(self) -> DataFrame | None:
        """What no source could use, as rows of `quarantine` without the attempt; None where there is nothing.

        Asked after `logs`, `listings` and `tables` have been read.
        """
        given = [rows for _, tables in self.tables for rows in tables.parts()]
        return union(rows.rejected for rows in [*self.logs, *self.listings, *given] if rows.rejections())


def read_sources(spark: SparkSession, config: Config) -> Reading:
    """Open every source. Raises Fault: NO_SOURCES, SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA."""
    if not config.sources:
        raise Fault("NO_SOURCES", "sources is empty; expected at least one, such as {kind: offsets-jsonl, path: ...}")
    logs, listings, given = [], [], []
    for source in config.sources:
        cluster_id = source.cluster_id or config.cluster_id
        if source.kind == "topics-jsonl":
            listings.append(topic_listings.read_json(spark, source.path, cluster_id))
        elif source.kind == "snapshots":
            given.append((cluster_id, _snapshots(spark, source, cluster_id, config.limits)))
        else:
            logs.append(_within_limits(_log(spark, source, cluster_id), source, config.limits))
    described = [_described(spark, source, config.cluster_id) for source in config.sources]
    stated_partitions(described)
    return Reading(
        tuple(logs),
        tuple(listings),
        tuple(given),
        tuple(sorted({source.cluster_id or config.cluster_id for source in config.sources})),
        {"sources": described},
    )


def stated_partitions(sources: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By cluster, the number of log partitions that described sources state. Raises Fault PARTITIONS_DIFFER."""
    found: dict[str, int] = {}
    for source in sources:
        number, cluster_id = source.get(OFFSETS_PARTITIONS), source[c.CLUSTER_ID]
        if number is not None and found.setdefault(cluster_id, number) != number:
            said = f"offsets_partitions of cluster {cluster_id!r} is {found[cluster_id]} in one source and {number}"
            raise Fault("PARTITIONS_DIFFER", f"{said} in another; expected one number: that of its __consumer_offsets")
    return found


def _snapshots(
    spark: SparkSession, source: SourceSettings, cluster_id: str, limits: LimitSettings
) -> snapshot_tables.Snapshots:
    most = limits.max_partitions_per_group
    return snapshot_tables.read(spark, source.path, source.format, cluster_id, most_claims=most)


def _log(spark: SparkSession, source: SourceSettings, cluster_id: str) -> Rows:
    if source.kind == "offsets-jsonl":
        return offsets_log.read_json(spark, source.path, cluster_id)
    return offsets_log.read_table(spark, source.path, LOG_KINDS[source.kind], cluster_id)


def _within_limits(rows: Rows, source: SourceSettings, limits: LimitSettings) -> Rows:
    """Records that are too large never reach a shuffle or a worker; their bytes are kept."""
    size = F.coalesce(F.length(c.KEY), F.lit(0)) + F.coalesce(F.length(c.VALUE), F.lit(0))
    text = F.concat(
        F.lit("RECORD_TOO_LARGE: the record has "),
        size.cast("string"),
        F.lit(f" bytes; expected at most {limits.max_record_bytes} (limits.max_record_bytes)"),
    )
    checked = rows.good.withColumn(PROBLEM, F.when(size > limits.max_record_bytes, text))
    known = {name: F.col(name) for name in (c.CLUSTER_ID, c.LOG_PARTITION, c.OFFSET, c.GROUP_ID, c.KEY, c.VALUE)}
    good = [F.col(name) for name in LOG_RECORDS.columns if name != c.ATTEMPT_ID]
    found = split(checked, good, source.path, {c.STAGE: F.lit(offsets_log.STAGE), **known})
    return Rows(found.good, rows.rejected.unionByName(found.rejected), rows.watches + found.watches)


def _described(spark: SparkSession, source: SourceSettings, cluster_id: str) -> dict[str, Any]:
    """The source and its files, without reading them: name, size and time of change; for Delta the files of now."""
    what: dict[str, Any] = {
        "kind": source.kind,
        "path": without_secrets(source.path),
        c.CLUSTER_ID: source.cluster_id or cluster_id,
    }
    what |= {"format": source.format} if source.kind == "snapshots" else {}
    what |= {} if source.offsets_partitions is None else {OFFSETS_PARTITIONS: source.offsets_partitions}
    if source.kind == "offsets-delta":
        files: list[Any] = sorted(spark.read.format("delta").load(source.path).inputFiles())
    else:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(source.path)
        named = listed.select("path", "length", F.unix_micros("modificationTime").alias(c.AT))
        files = sorted([row["path"], row["length"], row[c.AT]] for row in _rows(named))
    return {**what, "files": len(files), "digest": digest(files)}


def _rows(frame: DataFrame) -> list[Any]:
    try:
        return frame.collect()
    except AnalysisException as error:
        raise Fault("SOURCE_UNREADABLE", f"the files of a source cannot be listed: {error.getCondition()}") from error


def union(frames: Iterable[DataFrame]) -> DataFrame | None:
    """All rows of the frames; None without a frame."""
    rows = list(frames)
    return reduce(lambda left, right: left.unionByName(right), rows) if rows else None
