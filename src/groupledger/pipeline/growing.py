"""Tables as sources: what ingests have read of a growing one, and what is new in it.

A Delta table is read from the version on that the last committed ingest read (`runs.inputs`, beside what was reached of
running clusters). Of any other table it is not known what is new: each ingest reads all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupledger.core.digest import digest
from groupledger.core.secrets import without_secrets
from groupledger.pipeline.cluster import SINCE
from groupledger.pipeline.past import guard_of
from groupledger.sources import delta_growth
from groupledger.sources.files import Files
from groupledger.sources.opening import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from groupledger.pipeline.invocation import Invocation
    from groupledger.sinks.runs import Commit
    from groupledger.sources.delta_growth import DeltaVersion

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
