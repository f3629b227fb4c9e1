"""Parquet files of the ledger's tables, written by workers: rows leave a worker once, and a commit takes the files in.

A file has what a writer of the table owes it: no row breaks a constraint, none lacks a required value, and there are
statistics of the columns that readers filter by. Until it is committed nobody sees it, and the files of an attempt that
died are removed by VACUUM as Spark's own are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import TimestampType

from groupledger.engine.arrow_types import arrow_schema
from groupledger.tables import columns as c
from groupledger.tables.data_file import DataFile
from groupledger.tables.declaration import OneOf

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from groupledger.tables import Table
    from groupledger.tables.declaration import ColumnRule

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FilesOfAttempt:
    """Where an attempt's files go: the folder of each table."""

    attempt_id: str
    folders: Mapping[str, str]


def write_file(table: Table, rows: pa.Table, attempt: FilesOfAttempt) -> DataFile:
    """Write rows, which have the table's columns but the attempt, into a new file of the table.

    Raises ValueError where a row breaks a constraint, in the words of Delta, or lacks a required value.
    """
    from pyarrow import parquet

    _require(table, rows)
    stamp = pa.repeat(pa.scalar(attempt.attempt_id, pa.string()), len(rows))
    columns = {name: stamp if name == c.ATTEMPT_ID else rows[name] for name in table.columns}
    place = Path(attempt.folders[table.name], f"part-{os.urandom(16).hex()}.parquet")
    written: list[Any] = []
    schema = arrow_schema(table.schema)
    options = {"compression": "zstd", "store_schema": False, "write_page_checksum": True}
    with parquet.ParquetWriter(str(place), schema, metadata_collector=written, **options) as writer:
        writer.write_table(pa.table(columns, schema=schema))
    told = place.stat()
    return DataFile(place.name, told.st_size, told.st_mtime_ns // 1_000_000, json.dumps(_statistics(table, *written)))


def _require(table: Table, rows: pa.Table) -> None:
    """Raise ValueError at a row that Delta would refuse, in its words: `sinks.refusals` reads them."""
    for field in table.schema:
        if not field.nullable and field.name != c.ATTEMPT_ID and rows[field.name].null_count:
            raise ValueError(f"NOT NULL constraint violated for column: {table.name}.{field.name}")
    for check in table.checks:
        for rule in check.rules:
            broken = rows.filter(_breaks(rows, rule))
            if len(broken):
                values = (f"\n - {name} : {broken[name][0].as_py()}" for name in rule.columns)
                what = f"CHECK constraint {table.name}_{check.name} ({check.condition})"
                raise ValueError(f"{what} violated by row with values:{''.join(values)}")


def _breaks(rows: pa.Table, rule: ColumnRule) -> Any:
    """Whether each row breaks a rule."""
    column = rows[rule.column]
    if isinstance(rule, OneOf):
        return pc.invert(pc.is_in(column, value_set=pa.array(rule.words, pa.string())))
    return pc.less(column, rows[rule.least] if isinstance(rule.least, str) else rule.least).fill_null(False)


def _statistics(table: Table, metadata: Any) -> dict[str, Any]:
    """Return what Delta's log says of a file: its rows, and bounds and nulls of the columns that readers filter by."""
    numbers = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    least, greatest, nulls = {}, {}, {}
    row_groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for name in table.filtered_by:
        groups = [each.column(numbers[name]).statistics for each in row_groups]
        nulls[name] = sum(each.null_count for each in groups)
        kind = table.schema[name].dataType
        bounds = [bound for each in groups if each.has_min_max for bound in (each.min_raw, each.max_raw)]
        if len(bounds) == 2 * sum(each.num_values > 0 for each in groups) > 0:
            told = [_told(bound, kind) for bound in (min(bounds), max(bounds))]
            if None not in told:
                least[name], greatest[name] = told
    return {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _told(bound: Any, kind: DataType) -> Any:
    """Return a bound as Delta's log has it: times in milliseconds, cut; None where a time is beyond the year 9999."""
    if isinstance(bound, bytes):
        return bound.decode()
    if not isinstance(kind, TimestampType):
        return bound
    try:
        moment = _EPOCH + timedelta(milliseconds=bound // 1_000)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
