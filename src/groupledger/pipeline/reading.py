"""What an ingest reads: every configured source, opened and described before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from groupledger.core.digest import digest
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.sinks.refusals import ENGINE_ERRORS
from groupledger.sources import offsets_log, segments, snapshot_tables, topic_listings
from groupledger.sources.files import Files, unreadable
from groupledger.sources.opening import PROBLEM, Arrivals, Rows, split
from groupledger.sources.tables import table_files
from groupledger.tables import LOG_RECORDS
from groupledger.tables import columns as c
from groupledger.tables.given import FORMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import Config, LimitSettings, SourceSettings
    from groupledger.sources.snapshot_tables import Snapshots

OFFSETS_PARTITIONS = "offsets_partitions"
LISTING = "topics-jsonl"
SEGMENTS = "segments"
LOGS = ("offsets-jsonl", "offsets-parquet", "offsets-delta", SEGMENTS)
LOG_KINDS = {"offsets-parquet": "parquet", "offsets-delta": "delta"}


@dataclass(frozen=True, slots=True)
class Read:
    """One source of one cluster: its rows, and the files they come from."""

    settings: SourceSettings
    cluster_id: str
    parts: tuple[Rows, ...]
    arrivals: tuple[Arrivals, ...]
    files: tuple[Files, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What quarantine rows call the source."""
        path = self.settings.path
        if self.settings.kind == "snapshots":
            return tuple(without_secrets(snapshot_tables.table_path(path, form)) for form in FORMS)
        return (without_secrets(path),)

    @property
    def described(self) -> dict[str, Any]:
        """The source and its files for `runs.inputs`: name, size and time of change, without their content."""
        source = self.settings
        what: dict[str, Any] = {
            "kind": source.kind,
            "path": without_secrets(source.path),
            c.CLUSTER_ID: self.cluster_id,
        }
        what |= {"format": source.format} if source.kind == "snapshots" else {}
        what |= {} if source.offsets_partitions is None else {OFFSETS_PARTITIONS: source.offsets_partitions}
        what |= {"glob": True} if source.glob else {}
        what |= {"offset_commits": True} if source.offset_commits else {}
        found: list[Any] = sorted(list(file) for files in self.files for file in files.found)
        if source.kind == "offsets-delta":
            found = [name for name, *_ in found]
        return {**what, "files": len(found), "digest": digest(found)}


@dataclass(frozen=True, slots=True)
class Reading:
    """The sources as frames. `described` says which files were read, for `runs.inputs`.

    Rows of `logs` have the columns of `log_records` without the attempt, those of `listings` are as `topic_listings`
    reads them.
    """

    sources: tuple[Read, ...]
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
        return union(rows.rejected for source in self.sources for rows in source.parts if rows.rejections())

    def cluster_of(self, source: str, named: str | None) -> str:
        """The cluster under which rejected rows of a source are accounted for; rows of tables may name their own."""
        clusters = [each.cluster_id for each in self.sources if source in each.names]
        return named if named in clusters else clusters[0]

    @contextmanager
    def faults(self) -> Iterator[None]:
        """A file of a source that cannot be read to its end as a SourceFault that names it; all else as it is."""
        try:
            yield
        except ENGINE_ERRORS as error:
            known = (name for source in self.sources for files in source.files for name, *_ in files.found)
            fault = unreadable(str(error), known)
            if fault is None:
                raise
            raise fault from error


def read_sources(spark: SparkSession, config: Config) -> Reading:
    """Open every source. Raises Fault NO_SOURCES, or a SourceFault."""
    if not config.sources:
        raise Fault("NO_SOURCES", "sources is empty; expected at least one, such as {kind: offsets-jsonl, path: ...}")
    sources: list[Read] = []
    given: list[tuple[str, Snapshots]] = []
    for source in config.sources:
        cluster_id = source.cluster_id or config.cluster_id
        if source.kind == "snapshots":
            found = _snapshots(spark, source, cluster_id, config.limits)
            given.append((cluster_id, found))
            sources.append(Read(source, cluster_id, tuple(found.parts()), found.arrivals, found.files))
        else:
            sources.append(_one_table(spark, source, cluster_id, config.limits))
    logs = [rows for each in sources if each.settings.kind in LOGS for rows in each.parts]
    listings = [rows for each in sources if each.settings.kind == LISTING for rows in each.parts]
    described = [source.described for source in sources]
    stated_partitions(described)
    return Reading(
        tuple(sources),
        tuple(logs),
        tuple(listings),
        tuple(given),
        tuple(sorted({source.cluster_id for source in sources})),
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
    return snapshot_tables.read(spark, source.path, source.format, cluster_id, most_claims=most, glob=source.glob)


def _one_table(spark: SparkSession, source: SourceSettings, cluster_id: str, limits: LimitSettings) -> Read:
    """A log, or listings of topics."""
    if source.kind == SEGMENTS:
        return _segments(spark, source, cluster_id, limits)
    kind = LOG_KINDS.get(source.kind, "json")
    files = table_files(spark, source.path, kind, glob=source.glob)
    if source.kind == LISTING:
        rows = topic_listings.read_json(spark, files, cluster_id)
    elif kind == "json":
        rows = _within_limits(offsets_log.read_json(spark, files, cluster_id), source, limits)
    else:
        rows = _within_limits(offsets_log.read_table(spark, files, kind, cluster_id), source, limits)
    return Read(source, cluster_id, (rows,), () if rows.arrivals is None else (rows.arrivals,), (files,))


def _segments(spark: SparkSession, source: SourceSettings, cluster_id: str, limits: LimitSettings) -> Read:
    found = segments.list_segments(source.path, glob=source.glob)
    rows = segments.read(spark, found, cluster_id, offset_commits=source.offset_commits)
    within = _within_limits(rows, source, limits)
    return Read(source, cluster_id, (within,), () if rows.arrivals is None else (rows.arrivals,), (found.files,))


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
    return Rows(found.good, rows.rejected.unionByName(found.rejected), rows.watches + found.watches, rows.arrivals)


def union(frames: Iterable[DataFrame]) -> DataFrame | None:
    """All rows of the frames; None without a frame."""
    rows = list(frames)
    return reduce(lambda left, right: left.unionByName(right), rows) if rows else None
