"""Read Delta tables that grow: the current version, and the rows added since another one.

These rows are read from the files that the table's log names, which are plain Parquet, with exceptions. If the log
cannot be read that way, or no longer reaches back, the answer is None: read the whole table.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupledger.sources.files import local_path
from groupledger.sources.opening import opened
from groupledger.tables.sql_text import literal_path, quoted

READ_AS_PARQUET = frozenset(
    (
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"),
        *("allowColumnDefaults", "columnMapping", "deletionVectors", "timestampNtz", "domainMetadata", "rowTracking"),
        *("v2Checkpoint", "vacuumProtocolCheck", "clustering", "inCommitTimestamp"),
    )
)
"""Features of tables whose files are plain Parquet, except for deletion vectors (marked per file) and a column mapping
by a property)."""
_MAPPING = "delta.columnMapping.mode"


class AddedFile(NamedTuple):
    """A data file: its path as the log says it, relative to the table or whole, and its values of partition columns."""

    path: str
    partition_values: Mapping[str, str | None]


def is_read_as_parquet(features: Collection[str], properties: Mapping[str, str]) -> bool:
    """Return whether the files of a table with these features and properties tell all about their rows."""
    return set(features) <= READ_AS_PARQUET and properties.get(_MAPPING, "none") == "none"


def added_since(commits: Iterable[Iterable[Mapping[str, Any]]]) -> list[AddedFile] | None:
    """Return the files to read for all rows that these commits, in their order, added and kept.

    They may hold older rows as well. None if the commits do not tell: the table's schema or protocol changed, or a
    file to be read has a deletion vector.
    """
    fresh: dict[str, tuple[AddedFile, bool]] = {}
    for commit in commits:
        actions = list(commit)
        if any(action.get(kind) is not None for action in actions for kind in ("metaData", "protocol")):
            return None
        removed = {found["path"] for action in actions if (found := action.get("remove")) is not None}
        added = [found for action in actions if (found := action.get("add")) is not None]
        were_fresh = removed & fresh.keys()
        for path in were_fresh:
            del fresh[path]
        for add in added:
            path = add["path"]
            if path in were_fresh if path in removed else add["dataChange"] or were_fresh:
                file = AddedFile(path, dict(add.get("partitionValues") or {}))
                fresh[path] = file, add.get("deletionVector") is not None
    if any(has_vector for _, has_vector in fresh.values()):
        return None
    return sorted((file for file, _ in fresh.values()), key=lambda file: file.path)


MOST_COMMITS, MOST_FILES = 10_000, 10_000
MOST_PARTITIONS = 100
"""With more new commits, files or values of partition columns than this, the whole table is read."""
_UNREADABLE = (PySparkException, Py4JJavaError)
_ACTIONS = (
    "add struct<path: string, dataChange: boolean, partitionValues: map<string,string>, "
    "deletionVector: struct<storageType: string>>, remove struct<path: string, dataChange: boolean>, "
    "metaData struct<id: string>, protocol struct<minReaderVersion: int>"
)
_WITH_SCHEME = re.compile(r"[a-zA-Z][\w+.-]*:/")
_VERSION, _FILE = "_version", "_metadata.file_name"


@dataclass(frozen=True, slots=True)
class DeltaVersion:
    """A Delta table at a version. `name` is its name in SQL, `folder` a URL; `plain`: its files are plain Parquet."""

    name: str
    table_id: str
    version: int
    folder: str
    partition_columns: tuple[str, ...]
    plain: bool


def delta_path(path: str) -> str:
    """Return the SQL name of the Delta table in a folder; SQL requires absolute paths."""
    place = local_path(path)
    return f"delta.{quoted(str(place.absolute()) if place is not None and place.exists() else path)}"


def present_version(spark: SparkSession, name: str) -> DeltaVersion | None:
    """Return the current version of a table; None if it is not a Delta table."""
    try:
        version = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0]["version"]
        found = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].asDict()
    except _UNREADABLE:
        return None
    if found["format"] != "delta" or not found["id"]:
        return None
    plain = is_read_as_parquet(found.get("tableFeatures") or (), found["properties"] or {})
    columns = tuple(found["partitionColumns"] or ())
    return DeltaVersion(name, found["id"], version, found["location"], columns, plain)


def whole(spark: SparkSession, table: DeltaVersion) -> DataFrame:
    """Return all rows of that version."""
    return opened(
        lambda: spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {table.version}"),  # noqa: S608 - quoted
        table.name,
    )


def added(spark: SparkSession, table: DeltaVersion, since: int) -> list[AddedFile] | None:
    """Return the files that hold all rows added since a version; None if the log does not tell."""
    if not table.plain or not 0 <= table.version - since <= MOST_COMMITS:
        return None
    versions = range(since + 1, table.version + 1)
    if not versions:
        return []
    names = [literal_path(f"{table.folder.rstrip('/')}/_delta_log/{version:020d}.json") for version in versions]
    try:
        log = spark.read.schema(_ACTIONS).option("mode", "FAILFAST").json(names)
        rows = log.select(F.col(_FILE).alias(_VERSION), *log.columns).collect()
    except _UNREADABLE:  # a commit is gone (the log is kept for some weeks), or the folder is not readable
        return None
    commits: dict[int, list[dict[str, Any]]] = {version: [] for version in versions}
    for row in rows:
        commits[int(row[_VERSION].partition(".")[0])].append(row.asDict(recursive=True))
    files = added_since(commits.values()) if all(commits.values()) else None
    return None if files is None or len(files) > MOST_FILES else files


def rows_of(
    spark: SparkSession, table: DeltaVersion, schema: StructType, files: Sequence[AddedFile], names: Sequence[str]
) -> DataFrame | None:
    """Return the rows of these files, with the table's columns that are in `names`.

    None if they have too many values of its partition columns. Raises SourceFault if one of the files is gone.
    """
    if not files:
        return spark.createDataFrame([], schema)
    placed = [name for name in table.partition_columns if name in names]
    by_values: defaultdict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for file in files:
        values = tuple(file.partition_values.get(name) or None for name in placed)  # in the log, empty text means null
        by_values[values].append(literal_path(url_of(table.folder, file.path)))
    if len(by_values) > MOST_PARTITIONS:
        return None
    inside = StructType([schema[name] for name in schema.names if name in names and name not in placed])
    frames = []
    for values, paths in sorted(by_values.items(), key=str):
        reader = spark.read.schema(inside).option("recursiveFileLookup", "true")
        rows = opened(partial(reader.parquet, *paths), table.name)
        constants = {name: F.lit(value).cast(schema[name].dataType) for name, value in zip(placed, values, strict=True)}
        frames.append(rows.withColumns(constants) if constants else rows)
    return reduce(lambda one, other: one.unionByName(other), frames)


def url_of(folder: str, path: str) -> str:
    """Return the location of a table's file: the log has a relative or absolute path, escaped as in URLs.

    >>> url_of("file:/data/log", "date=2026-11-21/part%20a.parquet")
    'file:/data/log/date=2026-11-21/part a.parquet'
    """
    found = unquote(path)
    return found if _WITH_SCHEME.match(found) else f"{folder.rstrip('/')}/{found}"
