"""What an ingest reads: every configured source, opened and described before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupledger.config import Config, LimitSettings, SourceSettings
from groupledger.config.settings import ADMIN, CLUSTERS, DELTA, KAFKA, OFFSETS, SEGMENTS, SNAPSHOTS, SPARK_READER, TABLE
from groupledger.core.digest import digest
from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import KnownUpTo
from groupledger.core.secrets import without_secrets
from groupledger.pipeline.cluster import (
    OFFSETS_PARTITIONS,
    SINCE,
    ClusterReading,
    DescribedReading,
    LastSnapshots,
    no_snapshots,
    read_cluster,
    read_described,
)
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.past import guard_of
from groupledger.sinks.attempts import Run
from groupledger.sinks.location import ENGINE_ERRORS
from groupledger.sources import delta_growth, kafka_log, offsets_records, segment_files, snapshot_tables, topic_listings
from groupledger.sources.files import Files, local_path, table_files, unreadable
from groupledger.sources.opening import PROBLEM, Arrivals, Rows, SourceFault, missing, opened, split
from groupledger.sources.snapshot_tables import OpenedTable, SnapshotRows, opened_frame
from groupledger.tables import LOG_RECORDS
from groupledger.tables import columns as c
from groupledger.tables.facts import FORMS, MEMBERSHIPS, TOPIC_COUNTS

LISTING = "topics-jsonl"


@dataclass(frozen=True, slots=True)
class SourceReading:
    """One source of one cluster: its rows, and the files they come from.

    Rows of `logs` have the columns of `log_records` without the attempt, those of `listings` are as `topic_listings`
    reads them.
    """

    settings: SourceSettings
    cluster_id: str
    logs: tuple[Rows, ...] = ()
    listings: tuple[Rows, ...] = ()
    snapshots: SnapshotRows | None = None
    files: tuple[Files, ...] = ()
    cluster: ClusterReading | DescribedReading | None = None
    grown: tuple[TableReading, ...] = ()

    @property
    def parts(self) -> tuple[Rows, ...]:
        """Return all its rows."""
        return (*self.logs, *self.listings, *(self.snapshots.parts() if self.snapshots else ()))

    @property
    def arrivals(self) -> tuple[Arrivals, ...]:
        """Return what its lines and rows became."""
        return tuple(rows.arrivals for rows in self.parts if rows.arrivals is not None)

    @property
    def is_empty(self) -> bool:
        """Return whether it is known that there is nothing in it that the ledger lacks."""
        found = (self.cluster,) if self.cluster else self.grown
        return bool(found) and all(each.is_empty for each in found)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the source's names in quarantine rows."""
        path = self.settings.place
        own = tuple(without_secrets(each) for each in (path, self.settings.topics) if each is not None)
        if self.settings.kind in (SNAPSHOTS, ADMIN):
            return tuple(without_secrets(snapshot_tables.table_path(path, form)) for form in FORMS) + own
        return own

    @property
    def described(self) -> dict[str, Any]:
        """Describe the source and its files for `runs.inputs`: name, size and time of change, without their content."""
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
    """The sources as frames. `described` says which files were read, for `runs.inputs`."""

    sources: tuple[SourceReading, ...]
    described: Mapping[str, Any]

    @property
    def logs(self) -> list[Rows]:
        """Return the records of all logs."""
        return [rows for each in self.sources for rows in each.logs]

    @property
    def listings(self) -> list[Rows]:
        """Return the listings of topics."""
        return [rows for each in self.sources for rows in each.listings]

    @property
    def tables(self) -> list[tuple[str, SnapshotRows]]:
        """Return users' own snapshots, with the cluster of each."""
        return [(each.cluster_id, each.snapshots) for each in self.sources if each.snapshots is not None]

    @property
    def clusters(self) -> list[str]:
        """Return the clusters in order."""
        return sorted({each.cluster_id for each in self.sources})

    @property
    def _clusters(self) -> list[ClusterReading]:
        return [each.cluster for each in self.sources if isinstance(each.cluster, ClusterReading)]

    @property
    def left(self) -> dict[str, int]:
        """Return by cluster that was read itself how many offsets are left for later ingests."""
        return {each.cluster_id: each.plan.left for each in self._clusters}

    @property
    def known(self) -> dict[str, KnownUpTo]:
        """Return by cluster that was read itself up to when it is known once this has been read."""
        return {each.cluster_id: each.cluster.known for each in self.sources if each.cluster is not None}

    @property
    def behind(self) -> dict[str, tuple[int, ...]]:
        """Return by cluster the log partitions in which something is left, if there are any."""
        return {each.cluster_id: each.plan.behind for each in self._clusters if each.plan.left}

    @property
    def may_be_empty(self) -> bool:
        """Return whether nothing is new in clusters and tables that know it; other sources may hold something."""
        known = [each.is_empty for each in self.sources if each.cluster or each.grown]
        return bool(known) and all(known)

    def adds_to(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether a source has anything new that `inputs` of the last run does not name just so."""
        return not all(each.is_empty or each.described in inputs["sources"] for each in self.sources)

    @property
    def stated(self) -> dict[str, int]:
        """Return by cluster the number of log partitions that its sources state."""
        return stated_partitions(self.described["sources"])

    def with_frames(self, limits: LimitSettings) -> Reading:
        """Return the same reading, with frames of the records that are here already."""
        sources = tuple(
            replace(each, logs=_within_limits(found.logs(), each.settings, limits))
            if isinstance(found := each.cluster, ClusterReading) and found.few is not None
            else each
            for each in self.sources
        )
        return replace(self, sources=sources)

    @property
    def digest(self) -> str:
        """Return a digest that is the same for the same files."""
        return digest(self.described)

    def rejected(self) -> DataFrame | None:
        """Return what no source could use, as rows of `quarantine` without the attempt; None if there is nothing.

        Asked after `logs`, `listings` and `tables` have been read.
        """
        return union(rows.rejected for source in self.sources for rows in source.parts if rows.rejections())

    def cluster_of(self, source: str, named: str | None) -> str:
        """Return the cluster under which rejected rows of a source count; rows of tables may name their own."""
        clusters = [each.cluster_id for each in self.sources if source in each.names]
        return named if named in clusters else clusters[0]

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Raise a SourceFault that names the file of a source, or the cluster, that cannot be read to its end."""
        try:
            yield
        except ENGINE_ERRORS as error:
            text = str(error)
            known = (name for source in self.sources for files in source.files for name, *_ in files.found)
            by_spark = (each.settings.place for each in self.sources if each.settings.reader == SPARK_READER)
            faults = (kafka_log.fault_of(text), *(kafka_log.fault_of_spark(text, place) for place in by_spark))
            fault = next(filter(None, faults), None) or unreadable(text, known)
            if fault is None:
                raise
            raise fault from error


def require_there(sources: Iterable[SourceSettings]) -> None:
    """Look for the files and folders of these sources on this machine, without Spark; patterns are left to it.

    Raises SourceFault SOURCE_MISSING, and for log segments as `list_segments`.
    """
    for source in sources:
        if source.kind == SEGMENTS:
            segment_files.list_segments(source.place, glob=source.glob)
        for path in filter(None, () if source.glob or source.kind == SEGMENTS else (source.path, source.topics)):
            local = local_path(path)
            if local is not None and not local.exists():
                raise missing(path)


def read_sources(
    spark: SparkSession,
    config: Config,
    commits: Sequence[Run] = (),
    invocation: Invocation | None = None,
    before: LastSnapshots = no_snapshots,
) -> Reading:
    """Open every source. Raises Fault NO_SOURCES, SOURCE_TWICE, a SourceFault, or one of `read_cluster`.

    A running cluster is read from where these commits ended; it needs the clock of the invocation, and if its groups
    are described, what the ledger had of them `before`.
    """
    if not config.sources:
        raise Fault("NO_SOURCES", "sources is empty; expected at least one, such as {kind: offsets-jsonl, path: ...}")
    opener = _Opener(spark, config, commits, invocation, before)
    sources = tuple(map(opener.opened, config.sources))
    _require_once(sources)
    described = [source.described for source in sources]
    stated_partitions(described)
    reached = _reached(sources)
    return Reading(sources, {"sources": described, **({"reached": reached} if reached else {})})


@dataclass(frozen=True, slots=True)
class _Opener:
    """What sources are opened with: the parameters of `read_sources`."""

    spark: SparkSession
    config: Config
    commits: Sequence[Run]
    invocation: Invocation | None
    before: LastSnapshots

    def opened(self, source: SourceSettings) -> SourceReading:
        cluster_id = source.cluster_id or self.config.cluster_id or ""
        if source.kind in CLUSTERS:
            return self._cluster(source, cluster_id or None)
        if source.kind == SNAPSHOTS:
            return self._snapshots(source, cluster_id)
        if source.kind == LISTING:
            files = table_files(self.spark, source.place, "json", glob=source.glob)
            listed = topic_listings.read_json(self.spark, files, cluster_id)
            return SourceReading(source, cluster_id, listings=(listed,), files=(files,))
        return self._log(source, cluster_id)

    def _cluster(self, source: SourceSettings, named: str | None) -> SourceReading:
        assert self.invocation is not None, "a running cluster is read by an ingest only"
        if source.kind == KAFKA:
            found = read_cluster(self.spark, source, named, self.commits, self.invocation)
            logs = () if found.few is not None else _within_limits(found.logs(), source, self.config.limits)
            return SourceReading(source, found.cluster_id, logs, found.listings, cluster=found)
        most = self.config.limits.max_partitions_per_group
        groups = read_described(self.spark, source, named, self.commits, self.before, self.invocation, most_claims=most)
        return SourceReading(source, groups.cluster_id, (), groups.listings, groups.snapshots, cluster=groups)

    def _log(self, source: SourceSettings, cluster_id: str) -> SourceReading:
        spark, place, keeps = self.spark, source.place, source.keeps_offset_commits
        grown: tuple[TableReading, ...] = ()
        if source.kind == SEGMENTS:
            found = segment_files.list_segments(place, glob=source.glob)
            rows, files = segment_files.read(spark, found, cluster_id, offset_commits=keeps), found.files
        elif source.kind in (DELTA, TABLE):
            grown = (self._growing(_growing_log(source, self.config.limits), cluster_id),)
            files = grown[0].files
            rows = offsets_records.of_table(grown[0].frame, place, cluster_id, source.columns, offset_commits=keeps)
        elif source.kind == "offsets-parquet":
            files = table_files(spark, place, "parquet", glob=source.glob)
            rows = offsets_records.read_table(spark, files, "parquet", cluster_id, source.columns, offset_commits=keeps)
        else:
            files = table_files(spark, place, "json", glob=source.glob)
            rows = offsets_records.read_json(spark, files, cluster_id, source.columns, offset_commits=keeps)
        logs = _within_limits((rows,), source, self.config.limits)
        return SourceReading(source, cluster_id, logs, files=(files,), grown=grown)

    def _snapshots(self, source: SourceSettings, cluster_id: str) -> SourceReading:
        """Read a table of memberships, or a folder of three tables."""
        place, kind, glob, most = source.place, source.format, source.glob, self.config.limits.max_partitions_per_group
        grown: list[TableReading] = []
        is_folder = source.table is None and not (source.topics or source.columns)
        if is_folder and snapshot_tables.are_there(self.spark, place, kind, glob=glob):
            found = snapshot_tables.read(self.spark, place, kind, cluster_id, most_claims=most, glob=glob)
        else:
            members, *topics = self._memberships(source, cluster_id, grown)
            counts = next(iter(topics), None)
            found = snapshot_tables.read_memberships(members, counts, cluster_id, source.columns, most_claims=most)
        return SourceReading(source, cluster_id, snapshots=found, files=found.files, grown=tuple(grown))

    def _memberships(self, source: SourceSettings, cluster_id: str, grown: list[TableReading]) -> Iterator[OpenedTable]:
        """Open a table of memberships, and its topics: in a folder or a catalog; of a Delta table what is new.

        Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA.
        """
        if source.table is None and source.format not in FORMATS:
            words = f"format is {source.format}; expected {' or '.join(FORMATS)} for a table of memberships"
            raise SourceFault("SOURCE_UNREADABLE", f"{without_secrets(source.place)}: {words}")
        forms = {source.place: MEMBERSHIPS, **({source.topics: TOPIC_COUNTS} if source.topics else {})}
        for place, form in forms.items():
            if source.table is None and source.format != "delta":
                files = table_files(self.spark, place, source.format, glob=source.glob)
                yield OpenedTable(opened_frame(self.spark, files, form, source.format), files, place)
            else:
                kind, read_as = f"{source.kind} {form.table.name}", digest({"columns": dict(source.columns)})
                fields = partial(_named, [source.columns.get(name, name) for name in form.columns])
                table = GrowingTable(place, kind, source.table is not None, read_as, fields)
                found = self._growing(table, cluster_id)
                grown.append(found)
                yield OpenedTable(found.frame, found.files, place)

    def _growing(self, source: GrowingTable, cluster_id: str) -> TableReading:
        """Read what is new since the commits in a Delta table, or in a table or view of the session's catalog.

        Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA.
        """
        spark, place = self.spark, source.place
        name = place if source.in_catalog else delta_growth.delta_path(place)
        reader = spark.table if source.in_catalog else spark.read.format("delta").load
        there = opened(lambda: reader(place), place)
        schema, needed = there.schema, source.fields(there.schema)
        table = delta_growth.present_version(spark, name)
        if table is None:
            now = {} if self.invocation is None else {READ_AT: self.invocation.now().isoformat()}
            return TableReading(source.key, there, _files(place, []), None, now, is_empty=False)
        mark = {TABLE_ID: table.table_id, VERSION: table.version, READ_AS: source.read_as}
        last = last_mark(self.commits, cluster_id, source.key)
        if last is not None and all(last[each] == mark[each] for each in (TABLE_ID, READ_AS)):
            added = delta_growth.added(spark, table, last[VERSION])
            columns = [name for name in schema.names if any(f"{each}.".startswith(f"{name}.") for each in needed)]
            frame = None if added is None else delta_growth.rows_of(spark, table, schema, added, columns)
            if added is not None and frame is not None:
                names = [file.path for file in added]
                files = _files(place, [delta_growth.url_of(table.folder, each) for each in names])
                described = {SINCE: last, "files": len(names), "digest": digest(names)}
                return TableReading(source.key, frame, files, mark, described, is_empty=not names)
        frame = delta_growth.whole(spark, table)
        names = sorted(opened(frame.inputFiles, place))
        described = {"files": len(names), "digest": digest(names)}
        return TableReading(source.key, frame, _files(place, names), mark, described, is_empty=False)


def _named(names: Sequence[str], _: StructType) -> Sequence[str]:
    return names


def _growing_log(source: SourceSettings, limits: LimitSettings) -> GrowingTable:
    settings = {"columns": dict(source.columns), "max_record_bytes": limits.max_record_bytes}
    read_as = digest(settings if source.keeps_offset_commits else {**settings, "offset_commits": False})

    def fields(schema: StructType) -> Iterable[str]:
        return offsets_records.fields_of(schema, source.place, source.columns).values()

    return GrowingTable(source.place, source.kind, source.kind == TABLE, read_as, fields)


def _reached(sources: Iterable[SourceReading]) -> dict[str, Any]:
    """Return by cluster where the next ingest continues: in the cluster itself, and in tables of its log."""
    found: dict[str, Any] = {}
    for each in sources:
        if each.cluster is not None:
            found.setdefault(each.cluster_id, {}).update(each.cluster.reached)
        for table in each.grown:
            if table.mark is not None:
                found.setdefault(each.cluster_id, {}).setdefault(TABLES, {})[table.key] = table.mark
    return found


def _require_once(sources: Iterable[SourceReading]) -> None:
    """Raise Fault SOURCE_TWICE if two sources read the log of one cluster itself."""
    seen: dict[str, str] = {}
    for each in sources:
        if each.cluster is None:
            continue
        if each.cluster_id in seen:
            places = f"{seen[each.cluster_id]} and {each.settings.place}"
            raise Fault("SOURCE_TWICE", f"{places} are one cluster, {each.cluster_id}; expected one source for it")
        seen[each.cluster_id] = each.settings.place


def stated_partitions(sources: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return by cluster the number of log partitions that described sources state. Raises Fault PARTITIONS_DIFFER."""
    found: dict[str, int] = {}
    for source in sources:
        number, cluster_id = source.get(OFFSETS_PARTITIONS), source[c.CLUSTER_ID]
        if number is not None and found.setdefault(cluster_id, number) != number:
            said = f"offsets_partitions of cluster {cluster_id!r} is {found[cluster_id]} in one source and {number}"
            raise Fault("PARTITIONS_DIFFER", f"{said} in another; expected one number: that of its __consumer_offsets")
    return found


def _within_limits(logs: Iterable[Rows], source: SourceSettings, limits: LimitSettings) -> tuple[Rows, ...]:
    """Reject records that are too large before a shuffle or a worker; their bytes are kept."""
    size = F.coalesce(F.length(c.KEY), F.lit(0)) + F.coalesce(F.length(c.VALUE), F.lit(0))
    text = F.concat(
        F.lit("RECORD_TOO_LARGE: the record has "),
        size.cast("string"),
        F.lit(f" bytes; expected at most {limits.max_record_bytes} (limits.max_record_bytes)"),
    )
    known = {name: F.col(name) for name in (c.CLUSTER_ID, c.LOG_PARTITION, c.OFFSET, c.GROUP_ID, c.KEY, c.VALUE)}
    good = [F.col(name) for name in LOG_RECORDS.columns if name != c.ATTEMPT_ID]

    def within(rows: Rows) -> Rows:
        checked = rows.good.withColumn(PROBLEM, F.when(size > limits.max_record_bytes, text))
        found = split(checked, good, source.place, {c.STAGE: F.lit(offsets_records.STAGE), **known})
        rejected = rows.rejected.unionByName(found.rejected)
        return replace(rows, good=found.good, rejected=rejected, watches=rows.watches + found.watches)

    return tuple(map(within, logs))


def union(frames: Iterable[DataFrame]) -> DataFrame | None:
    """Return all rows of the frames; None without a frame."""
    rows = list(frames)
    return reduce(lambda left, right: left.unionByName(right), rows) if rows else None


# Tables as sources: what ingests have read of a growing one, and what is new in it.
#
# A Delta table is read from the version on that the last committed ingest read (`runs.inputs`, beside what was reached
# of running clusters). Of any other table it is not known what is new: each ingest reads all of it.

TABLES, TABLE_ID, VERSION, READ_AS = "tables", "table", "version", "read_as"
READ_AT = "read_at"
"""In the description of a source: when a table was read that has no versions. One with versions has SINCE."""
FORMATS = ("parquet", "delta")


@dataclass(frozen=True, slots=True)
class GrowingTable:
    """A table that ingests continue to read from where they ended.

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
        """Return the key of the table's mark."""
        return f"{self.kind} {without_secrets(self.place)}"


@dataclass(frozen=True, slots=True)
class TableReading:
    """What an ingest takes from a table.

    `mark` is what `runs` keeps of it under `key`, from which the next ingest continues; None if nothing can be kept.
    `described` distinguishes it from other reads of the table.
    """

    key: str
    frame: DataFrame
    files: Files
    mark: Mapping[str, Any] | None
    described: Mapping[str, Any]
    is_empty: bool


def last_mark(commits: Sequence[Run], cluster_id: str, key: str) -> Mapping[str, Any] | None:
    """Return the mark of the last of these commits that read the table for the cluster; they are in their order."""
    for commit in reversed(commits):
        if guard_of(cluster_id) in commit.guards:
            found: Mapping[str, Any] | None = commit.reached(cluster_id).get(TABLES, {}).get(key)
            if found is not None:
                return found
    return None


def _files(place: str, names: Sequence[str]) -> Files:
    return Files(place, place, tuple(sorted((name, 1, 0) for name in names)))
