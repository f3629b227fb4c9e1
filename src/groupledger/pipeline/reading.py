"""What an ingest reads: every configured source, opened and described before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupledger.config import Config, LimitSettings, SourceSettings
from groupledger.config.settings import ADMIN, DELTA, KAFKA, OFFSETS, SEGMENTS, SNAPSHOTS, SPARK_READER, TABLE
from groupledger.core.digest import digest
from groupledger.core.faults import Fault
from groupledger.core.log.plan import KnownUpTo
from groupledger.core.secrets import without_secrets
from groupledger.pipeline.cluster import OFFSETS_PARTITIONS, SINCE, ClusterReading, read_cluster
from groupledger.pipeline.described import DescribedReading, LastSnapshots, no_snapshots, read_described
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.past import guard_of
from groupledger.sinks.refusals import ENGINE_ERRORS
from groupledger.sinks.runs import Commit
from groupledger.sources import (
    delta_growth,
    kafka_log,
    memberships,
    offsets_log,
    segments,
    snapshot_tables,
    topic_listings,
)
from groupledger.sources.delta_growth import DeltaVersion
from groupledger.sources.files import Files, table_files, unreadable
from groupledger.sources.memberships import OpenedTable
from groupledger.sources.opening import PROBLEM, Arrivals, Rows, SourceFault, opened, split
from groupledger.sources.snapshot_tables import SnapshotRows, opened_frame
from groupledger.tables import LOG_RECORDS
from groupledger.tables import columns as c
from groupledger.tables.facts import FORMS, MEMBERSHIPS, TOPIC_COUNTS, GivenForm

LISTING = "topics-jsonl"
LOGS = (*OFFSETS, SEGMENTS)


@dataclass(frozen=True, slots=True)
class SourceReading:
    """One source of one cluster: its rows, and the files they come from."""

    settings: SourceSettings
    cluster_id: str
    parts: tuple[Rows, ...]
    arrivals: tuple[Arrivals, ...]
    files: tuple[Files, ...] = ()
    cluster: ClusterReading | DescribedReading | None = None
    grown: tuple[TableReading, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it is known that there is nothing in it that the ledger lacks."""
        found = (self.cluster,) if self.cluster else self.grown
        return bool(found) and all(each.is_empty for each in found)

    @property
    def names(self) -> tuple[str, ...]:
        """What quarantine rows call the source."""
        path = self.settings.place
        own = tuple(without_secrets(each) for each in (path, self.settings.topics) if each is not None)
        if self.settings.kind in (SNAPSHOTS, ADMIN):
            return tuple(without_secrets(snapshot_tables.table_path(path, form)) for form in FORMS) + own
        return own

    @property
    def described(self) -> dict[str, Any]:
        """The source and its files for `runs.inputs`: name, size and time of change, without their content."""
        source = self.settings
        what: dict[str, Any] = {
            "kind": source.kind,
            "path": without_secrets(source.place),
            c.CLUSTER_ID: self.cluster_id,
        }
        if self.cluster is not None:
            return {**what, **self.cluster.described}
        what |= {"format": source.format} if source.kind == SNAPSHOTS else {}
        what |= {} if source.offsets_partitions is None else {OFFSETS_PARTITIONS: source.offsets_partitions}
        what |= {"columns": dict(source.columns)} if source.columns else {}
        what |= {"glob": True} if source.glob else {}
        keeps = source.keeps_offset_commits
        what |= {} if keeps == (source.kind in OFFSETS) else {"offset_commits": keeps}
        what |= {"topics": without_secrets(source.topics)} if source.topics else {}
        if self.grown:
            first, *others = (dict(each.described) for each in self.grown)
            return {**what, **first, **({"beside": others} if others else {})}
        found: list[Any] = sorted(list(file) for files in self.files for file in files.found)
        return {**what, "files": len(found), "digest": digest(found)}


@dataclass(frozen=True, slots=True)
class Reading:
    """The sources as frames. `described` says which files were read, for `runs.inputs`.

    Rows of `logs` have the columns of `log_records` without the attempt, those of `listings` are as `topic_listings`
    reads them.
    """

    sources: tuple[SourceReading, ...]
    logs: tuple[Rows, ...]
    listings: tuple[Rows, ...]
    tables: tuple[tuple[str, SnapshotRows], ...]  # with the cluster of each
    clusters: tuple[str, ...]
    described: Mapping[str, Any]

    @property
    def left(self) -> dict[str, int]:
        """By cluster that was read itself, how many offsets are left for later ingests."""
        return {each.cluster_id: each.cluster.left for each in self.sources if isinstance(each.cluster, ClusterReading)}

    @property
    def known(self) -> dict[str, KnownUpTo]:
        """By cluster that was read itself, up to when it is known once this has been read."""
        return {each.cluster_id: each.cluster.known for each in self.sources if each.cluster is not None}

    @property
    def behind(self) -> dict[str, tuple[int, ...]]:
        """By cluster of which something is left, the log partitions in which."""
        read = (each.cluster for each in self.sources if isinstance(each.cluster, ClusterReading))
        return {each.cluster_id: each.plan.behind for each in read if each.left}

    @property
    def may_be_empty(self) -> bool:
        """Whether nothing is new in clusters and tables that say so; other sources may hold something."""
        said = [each.is_empty for each in self.sources if each.cluster or each.grown]
        return bool(said) and all(said)

    def adds_to(self, inputs: Mapping[str, Any]) -> bool:
        """Whether a source has anything new that `inputs` of the last run does not name just so."""
        return not all(each.is_empty or each.described in inputs["sources"] for each in self.sources)

    @property
    def stated(self) -> dict[str, int]:
        """By cluster, the number of log partitions that its sources state."""
        return stated_partitions(self.described["sources"])

    def with_frames(self, limits: LimitSettings) -> Reading:
        """The same reading, with frames of the records that are here already."""
        sources = tuple(
            _cluster(found, each.settings, limits)
            if isinstance(found := each.cluster, ClusterReading) and found.few is not None
            else each
            for each in self.sources
        )
        return replace(self, sources=sources, logs=_logs(sources))

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
            fault = self._fault_of_cluster(str(error)) or unreadable(str(error), known)
            if fault is None:
                raise
            raise fault from error

    def _fault_of_cluster(self, error: str) -> Fault | None:
        """The fault of the running cluster that a read failed at."""
        spoken = [each.settings for each in self.sources if each.settings.reader == SPARK_READER]
        through_spark = (kafka_log.fault_of_spark(error, source.place) for source in spoken)
        return kafka_log.fault_of(error) or next((fault for fault in through_spark if fault is not None), None)


def read_sources(
    spark: SparkSession,
    config: Config,
    commits: Sequence[Commit] = (),
    invocation: Invocation | None = None,
    before: LastSnapshots = no_snapshots,
) -> Reading:
    """Open every source. Raises Fault NO_SOURCES, SOURCE_TWICE, a SourceFault, or one of `read_cluster`.

    A running cluster is read from where these commits ended; it needs the clock of the invocation, and where its groups
    are described, what the ledger had of them `before`.
    """
    if not config.sources:
        raise Fault("NO_SOURCES", "sources is empty; expected at least one, such as {kind: offsets-jsonl, path: ...}")
    sources: list[SourceReading] = []
    given: list[tuple[str, SnapshotRows]] = []
    for source in config.sources:
        cluster_id = source.cluster_id or config.cluster_id or ""
        if source.kind == KAFKA:
            assert invocation is not None, "a running cluster is read by an ingest only"
            cluster = read_cluster(spark, source, cluster_id or None, commits, invocation)
            sources.append(_cluster(cluster, source, config.limits, framed=cluster.few is None))
        elif source.kind == ADMIN:
            assert invocation is not None, "a running cluster is read by an ingest only"
            most = config.limits.max_partitions_per_group
            told = read_described(spark, source, cluster_id or None, commits, before, invocation, most_claims=most)
            given += [] if told.snapshots is None else [(told.cluster_id, told.snapshots)]
            sources.append(_described(told, source))
        elif source.kind == SNAPSHOTS:
            found, reading = _snapshots(spark, source, cluster_id, config.limits, commits, invocation)
            given.append((cluster_id, found))
            sources.append(reading)
        elif source.kind in (DELTA, TABLE):
            table = read_growing(spark, _growing_log(source, config.limits), cluster_id, commits, invocation)
            sources.append(_growing(table, source, cluster_id, config.limits))
        else:
            sources.append(_one_table(spark, source, cluster_id, config.limits))
    _require_once(sources)
    listings = [rows for each in sources if each.settings.kind == LISTING for rows in each.parts]
    for each in sources:
        listings += each.cluster.listings if each.cluster else ()
    described = [source.described for source in sources]
    stated_partitions(described)
    return Reading(
        tuple(sources),
        _logs(sources),
        tuple(listings),
        tuple(given),
        tuple(sorted({source.cluster_id for source in sources})),
        {"sources": described, **({"reached": reached} if (reached := _reached(sources)) else {})},
    )


def _logs(sources: Iterable[SourceReading]) -> tuple[Rows, ...]:
    """The parts that are records of the log; behind those of a cluster stand its listings."""
    found: list[Rows] = []
    for each in sources:
        if each.settings.kind in LOGS:
            found += each.parts
        elif isinstance(each.cluster, ClusterReading):
            found += each.parts[: len(each.parts) - len(each.cluster.listings)]
    return tuple(found)


def _cluster(
    found: ClusterReading, source: SourceSettings, limits: LimitSettings, *, framed: bool = True
) -> SourceReading:
    logs = tuple(_within_limits(rows, source, limits) for rows in (found.logs() if framed else ()))
    parts = (*logs, *found.listings)
    arrivals = tuple(rows.arrivals for rows in parts if rows.arrivals is not None)
    return SourceReading(source, found.cluster_id, parts, arrivals, cluster=found)


def _described(found: DescribedReading, source: SourceSettings) -> SourceReading:
    tables = () if found.snapshots is None else found.snapshots.parts()
    arrivals = () if found.snapshots is None else found.snapshots.arrivals
    listed = tuple(rows.arrivals for rows in found.listings if rows.arrivals is not None)
    return SourceReading(source, found.cluster_id, (*tables, *found.listings), (*arrivals, *listed), cluster=found)


def _growing(found: TableReading, source: SourceSettings, cluster_id: str, limits: LimitSettings) -> SourceReading:
    keeps = source.keeps_offset_commits
    log = offsets_log.of_table(found.frame, source.place, cluster_id, source.columns, offset_commits=keeps)
    rows = _within_limits(log, source, limits)
    arrivals = () if rows.arrivals is None else (rows.arrivals,)
    return SourceReading(source, cluster_id, (rows,), arrivals, (found.files,), grown=(found,))


def _growing_log(source: SourceSettings, limits: LimitSettings) -> GrowingTable:
    settings = {"columns": dict(source.columns), "max_record_bytes": limits.max_record_bytes}
    read_as = digest(settings if source.keeps_offset_commits else {**settings, "offset_commits": False})

    def fields(schema: StructType) -> Iterable[str]:
        return offsets_log.fields_of(schema, source.place, source.columns).values()

    return GrowingTable(source.place, source.kind, source.kind == TABLE, read_as, fields)


def _reached(sources: Iterable[SourceReading]) -> dict[str, Any]:
    """By cluster, where the next ingest goes on: in the cluster itself, and in tables of its log."""
    found: dict[str, Any] = {}
    for each in sources:
        if each.cluster is not None:
            found.setdefault(each.cluster_id, {}).update(each.cluster.reached)
        for table in each.grown:
            if table.mark is not None:
                found.setdefault(each.cluster_id, {}).setdefault(TABLES, {})[table.key] = table.mark
    return found


def _require_once(sources: Iterable[SourceReading]) -> None:
    """Raises Fault SOURCE_TWICE where two sources read the log of one cluster itself."""
    seen: dict[str, str] = {}
    for each in sources:
        if each.cluster is None:
            continue
        if each.cluster_id in seen:
            places = f"{seen[each.cluster_id]} and {each.settings.place}"
            raise Fault("SOURCE_TWICE", f"{places} are one cluster, {each.cluster_id}; expected one source for it")
        seen[each.cluster_id] = each.settings.place


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
    spark: SparkSession,
    source: SourceSettings,
    cluster_id: str,
    limits: LimitSettings,
    commits: Sequence[Commit],
    invocation: Invocation | None,
) -> tuple[SnapshotRows, SourceReading]:
    """Read a table of memberships, or a folder of three tables."""
    most = limits.max_partitions_per_group
    grown: tuple[TableReading, ...] = ()
    is_folder = source.table is None and not (source.topics or source.columns)
    if is_folder and snapshot_tables.are_there(spark, source.place, source.format, glob=source.glob):
        place, kind, glob = source.place, source.format, source.glob
        found = snapshot_tables.read(spark, place, kind, cluster_id, most_claims=most, glob=glob)
    else:
        found, grown = read_memberships(spark, source, cluster_id, most, commits, invocation)
    return found, SourceReading(source, cluster_id, tuple(found.parts()), found.arrivals, found.files, grown=grown)


def _one_table(spark: SparkSession, source: SourceSettings, cluster_id: str, limits: LimitSettings) -> SourceReading:
    """A log, or listings of topics."""
    if source.kind == SEGMENTS:
        return _segments(spark, source, cluster_id, limits)
    kind, keeps = "parquet" if source.kind == "offsets-parquet" else "json", source.keeps_offset_commits
    files = table_files(spark, source.place, kind, glob=source.glob)
    if source.kind == LISTING:
        rows = topic_listings.read_json(spark, files, cluster_id)
    elif kind == "json":
        found = offsets_log.read_json(spark, files, cluster_id, source.columns, offset_commits=keeps)
        rows = _within_limits(found, source, limits)
    else:
        found = offsets_log.read_table(spark, files, kind, cluster_id, source.columns, offset_commits=keeps)
        rows = _within_limits(found, source, limits)
    return SourceReading(source, cluster_id, (rows,), () if rows.arrivals is None else (rows.arrivals,), (files,))


def _segments(spark: SparkSession, source: SourceSettings, cluster_id: str, limits: LimitSettings) -> SourceReading:
    found = segments.list_segments(source.place, glob=source.glob)
    rows = segments.read(spark, found, cluster_id, offset_commits=source.keeps_offset_commits)
    within = _within_limits(rows, source, limits)
    return SourceReading(
        source, cluster_id, (within,), () if rows.arrivals is None else (rows.arrivals,), (found.files,)
    )


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
    found = split(checked, good, source.place, {c.STAGE: F.lit(offsets_log.STAGE), **known})
    rejected, watches = rows.rejected.unionByName(found.rejected), rows.watches + found.watches
    return Rows(found.good, rejected, watches, rows.arrivals, rows.newest_left_out)


def union(frames: Iterable[DataFrame]) -> DataFrame | None:
    """All rows of the frames; None without a frame."""
    rows = list(frames)
    return reduce(lambda left, right: left.unionByName(right), rows) if rows else None


# Tables as sources: what ingests have read of a growing one, and what is new in it.
#
# A Delta table is read from the version on that the last committed ingest read (`runs.inputs`, beside what was reached
# of
# running clusters). Of any other table it is not known what is new: each ingest reads all of it.

TABLES, TABLE_ID, VERSION, READ_AS = "tables", "table", "version", "read_as"
READ_AT = "read_at"
"""In the description of a source: when a table was read that has no versions. One with versions has SINCE."""


@dataclass(frozen=True, slots=True)
class GrowingTable:
    """A table that ingests read on from where they ended.

    `read_as` is a digest of the settings that say what becomes of a row: under others all rows are read again. `fields`
    names the columns or fields of structs that are needed, by the schema.
    """

    place: str
    kind: str
    in_catalog: bool
    read_as: str
    fields: Callable[[StructType], Iterable[str]]

    @property
    def key(self) -> str:
        """Return what a mark of the table stands under."""
        return f"{self.kind} {without_secrets(self.place)}"


@dataclass(frozen=True, slots=True)
class TableReading:
    """What an ingest takes from a table.

    `mark` is what `runs` keeps of it under `key`, for the next ingest to go on from; None where nothing can be kept.
    `described` tells it apart from other reads of the table.
    """

    key: str
    frame: DataFrame
    files: Files
    mark: Mapping[str, Any] | None
    described: Mapping[str, Any]
    is_empty: bool


def read_growing(
    spark: SparkSession,
    source: GrowingTable,
    cluster_id: str,
    commits: Sequence[Commit],
    invocation: Invocation | None,
) -> TableReading:
    """Read what is new since these commits in a Delta table, or in a table or view of the session's catalog.

    Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA.
    """
    name = source.place if source.in_catalog else delta_growth.delta_path(source.place)
    there = opened(lambda: _opened(spark, source), source.place)
    source.fields(there.schema)
    table = delta_growth.present_version(spark, name)
    if table is None:
        now = {} if invocation is None else {READ_AT: invocation.now().isoformat()}
        return TableReading(source.key, there, _files(source, []), None, now, is_empty=False)
    mark = {TABLE_ID: table.table_id, VERSION: table.version, READ_AS: source.read_as}
    last = last_mark(commits, cluster_id, source.key)
    if last is not None and all(last[each] == mark[each] for each in (TABLE_ID, READ_AS)):
        found = _since(spark, source, table, last[VERSION], there)
        if found is not None:
            frame, files, names = found
            described = {SINCE: last, "files": len(names), "digest": digest(names)}
            return TableReading(source.key, frame, files, mark, described, is_empty=not names)
    frame = delta_growth.whole(spark, table)
    names = sorted(opened(frame.inputFiles, source.place))
    described = {"files": len(names), "digest": digest(names)}
    return TableReading(source.key, frame, _files(source, names), mark, described, is_empty=False)


def last_mark(commits: Sequence[Commit], cluster_id: str, key: str) -> Mapping[str, Any] | None:
    """What the last of these commits that read the table for the cluster keeps of it; they are in their order."""
    for commit in reversed(commits):
        if commit.reached is not None and guard_of(cluster_id) in commit.guards:
            found: Mapping[str, Any] | None = json.loads(commit.reached).get(cluster_id, {}).get(TABLES, {}).get(key)
            if found is not None:
                return found
    return None


def _opened(spark: SparkSession, source: GrowingTable) -> DataFrame:
    return spark.table(source.place) if source.in_catalog else spark.read.format("delta").load(source.place)


def _since(
    spark: SparkSession, source: GrowingTable, table: DeltaVersion, since: int, there: DataFrame
) -> tuple[DataFrame, Files, list[str]] | None:
    """The rows that came since a version, their files, and the names of these in the table's log; None: read all."""
    added = delta_growth.added(spark, table, since)
    if added is None:
        return None
    schema = there.schema
    if not added:
        return spark.createDataFrame([], schema), _files(source, []), []
    needed = tuple(source.fields(schema))
    names = [name for name in schema.names if any(each == name or each.startswith(f"{name}.") for each in needed)]
    frame = delta_growth.rows_of(spark, table, schema, added, names)
    if frame is None:
        return None
    files = [delta_growth.url_of(table.folder, file.path) for file in added]
    return frame, _files(source, files), [file.path for file in added]


def _files(source: GrowingTable, names: Sequence[str]) -> Files:
    return Files(source.place, source.place, tuple(sorted((name, 1, 0) for name in names)))


# Open tables of memberships and of their topics: folders, catalog tables, views; of a Delta table what is new.

FORMATS = ("parquet", "delta")


def read_memberships(
    spark: SparkSession,
    source: SourceSettings,
    cluster_id: str,
    most_claims: int,
    commits: Sequence[Commit],
    invocation: Invocation | None,
) -> tuple[SnapshotRows, tuple[TableReading, ...]]:
    """Read a table of memberships, and its topics; with what the next ingest goes on from.

    Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA.
    """
    if source.table is None and source.format not in FORMATS:
        words = f"format is {source.format}; expected {' or '.join(FORMATS)} for a table of memberships"
        raise SourceFault("SOURCE_UNREADABLE", f"{without_secrets(source.place)}: {words}")
    forms = {source.place: MEMBERSHIPS, **({source.topics: TOPIC_COUNTS} if source.topics else {})}
    places: list[OpenedTable] = []
    grown: list[TableReading] = []
    for place, form in forms.items():
        if source.table is None and source.format != "delta":
            files = table_files(spark, place, source.format, glob=source.glob)
            places.append(OpenedTable(opened_frame(spark, files, form, source.format), files, place))
        else:
            found = read_growing(spark, _growing_memberships(source, place, form), cluster_id, commits, invocation)
            places.append(OpenedTable(found.frame, found.files, place))
            grown.append(found)
    members, *topics = places
    rows = memberships.read(members, next(iter(topics), None), cluster_id, source.columns, most_claims=most_claims)
    return rows, tuple(grown)


def _growing_memberships(source: SourceSettings, place: str, form: GivenForm) -> GrowingTable:
    def fields(schema: StructType) -> Iterable[str]:
        return [source.columns.get(name, name) for name in form.columns]

    kind = f"{source.kind} {form.table.name}"
    return GrowingTable(place, kind, source.table is not None, digest({"columns": dict(source.columns)}), fields)
