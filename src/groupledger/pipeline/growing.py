"""Tables as sources: what ingests have read of a growing one, and what is new in it.

A Delta table is read from the version on that the last committed ingest read (`runs.inputs`, beside what was reached of
running clusters). Of any other table it is not known what is new: each ingest reads all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupledger.config.settings import TABLE
from groupledger.core.digest import digest
from groupledger.core.secrets import without_secrets
from groupledger.pipeline.cluster import SINCE
from groupledger.pipeline.past import guard_of
from groupledger.sources import delta_growth, offsets_log
from groupledger.sources.files import Files
from groupledger.sources.opening import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import LimitSettings, SourceSettings
    from groupledger.pipeline.invocation import Invocation
    from groupledger.sinks.runs import Commit
    from groupledger.sources.delta_growth import DeltaVersion
    from groupledger.sources.opening import Rows

TABLES, TABLE_ID, VERSION, READ_AS = "tables", "table", "version", "read_as"
READ_AT = "read_at"
"""In the description of a source: when a table was read that has no versions. One with versions has SINCE."""


@dataclass(frozen=True, slots=True)
class TableReading:
    """What an ingest takes from a table.

    `mark` is what `runs` keeps of it, for the next ingest to go on from; None where nothing can be kept. `described`
    tells it apart from other reads of the table.
    """

    rows: Rows
    files: Files
    mark: Mapping[str, Any] | None
    described: Mapping[str, Any]
    is_empty: bool


def read_growing(
    spark: SparkSession,
    source: SourceSettings,
    cluster_id: str,
    limits: LimitSettings,
    commits: Sequence[Commit],
    invocation: Invocation | None,
) -> TableReading:
    """What is new since these commits in a Delta table, or in a table or view of the session's catalog.

    Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA.
    """
    name = source.place if source.kind == TABLE else delta_growth.delta_path(source.place)
    there = opened(lambda: _opened(spark, source), source.place)
    table = delta_growth.present_version(spark, name)
    if table is None:
        now = {} if invocation is None else {READ_AT: invocation.now().isoformat()}
        rows = _rows(there, source, cluster_id)
        return TableReading(rows, Files(source.place, source.place, ()), None, now, is_empty=False)
    mark = {TABLE_ID: table.table_id, VERSION: table.version, READ_AS: _reading(source, limits)}
    last = last_mark(commits, cluster_id, key_of(source))
    if last is not None and all(last[each] == mark[each] for each in (TABLE_ID, READ_AS)):
        found = _since(spark, source, cluster_id, table, last[VERSION], there)
        if found is not None:
            rows, files, names = found
            described = {SINCE: last, "files": len(names), "digest": digest(names)}
            return TableReading(rows, files, mark, described, is_empty=not names)
    frame = delta_growth.whole(spark, table)
    rows = _rows(frame, source, cluster_id)
    names = sorted(opened(frame.inputFiles, source.place))
    files = _files(source, names)
    return TableReading(rows, files, mark, {"files": len(names), "digest": digest(names)}, is_empty=False)


def key_of(source: SourceSettings) -> str:
    """What a mark of the table stands under."""
    return f"{source.kind} {without_secrets(source.place)}"


def last_mark(commits: Sequence[Commit], cluster_id: str, key: str) -> Mapping[str, Any] | None:
    """What the last of these commits that read the table for the cluster keeps of it; they are in their order."""
    for commit in reversed(commits):
        if commit.reached is not None and guard_of(cluster_id) in commit.guards:
            found: Mapping[str, Any] | None = json.loads(commit.reached).get(cluster_id, {}).get(TABLES, {}).get(key)
            if found is not None:
                return found
    return None


def _opened(spark: SparkSession, source: SourceSettings) -> DataFrame:
    if source.kind == TABLE:
        return spark.table(source.place)
    return spark.read.format("delta").load(source.place)


def _since(
    spark: SparkSession, source: SourceSettings, cluster_id: str, table: DeltaVersion, since: int, there: DataFrame
) -> tuple[Rows, Files, list[str]] | None:
    """The rows that came since a version, their files, and the names of these in the table's log; None: read all."""
    added = delta_growth.added(spark, table, since)
    if added is None:
        return None
    if not added:
        nothing = spark.createDataFrame([], offsets_log.FIELDS)
        return offsets_log.of_table(nothing, source.place, cluster_id), _files(source, []), []
    schema = there.schema
    needed = offsets_log.fields_of(schema, source.place, source.columns).values()
    names = [name for name in schema.names if any(each == name or each.startswith(f"{name}.") for each in needed)]
    frame = delta_growth.rows_of(spark, table, schema, added, names)
    if frame is None:
        return None
    rows = _rows(frame, source, cluster_id)
    files = [delta_growth.url_of(table.folder, file.path) for file in added]
    return rows, _files(source, files), [file.path for file in added]


def _rows(frame: DataFrame, source: SourceSettings, cluster_id: str) -> Rows:
    keeps = source.keeps_offset_commits
    return offsets_log.of_table(frame, source.place, cluster_id, source.columns, offset_commits=keeps)


def _files(source: SourceSettings, names: Sequence[str]) -> Files:
    return Files(source.place, source.place, tuple(sorted((name, 1, 0) for name in names)))


def _reading(source: SourceSettings, limits: LimitSettings) -> str:
    """Digest of the settings that say what becomes of a row: under others all rows are read again."""
    settings = {"columns": dict(source.columns), "max_record_bytes": limits.max_record_bytes}
    return digest(settings if source.keeps_offset_commits else {**settings, "offset_commits": False})
