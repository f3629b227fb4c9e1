"""Ledgers in a folder, written by delta-rs: each row has what a test says of it, and something wherever it must.

A row that names no attempt is of ATTEMPT, which is committed.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from groupledger.core.ledger_version import SCHEMA_VERSION, VERSION_PROPERTY
from groupledger.tables import TABLES

_BY_NAME = {table.name: table for table in TABLES}
MOMENT = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
ATTEMPT = "a"
COMMITTED: dict[str, Any] = {"status": "committed", "kind": "ingest", "attempt_id": ATTEMPT, "sequence": 1}


def read_to(sequence=2, **clusters):
    """The run of an ingest that keeps up to when clusters are known: the end of the log, or what `KnownUpTo` has."""
    told = {cluster: of if isinstance(of, dict) else {"end": of} for cluster, of in clusters.items()}
    kept = {cluster: {name: _millis(moment) for name, moment in of.items()} for cluster, of in told.items()}
    return COMMITTED | {
        "attempt_id": f"read-{sequence}",
        "sequence": sequence,
        "inputs": json.dumps({"known": kept}, separators=(",", ":")),
    }


def _millis(moment):
    return int(moment.timestamp() * 1000)


def write(folder, version=SCHEMA_VERSION, **rows):
    """`write(path, runs=[{...}], rebalances=[...])`; tables that are not named are empty, runs have the one of ATTEMPT.

    Gives the folder as text.
    """
    rows = {"runs": [COMMITTED]} | rows
    for table in TABLES:
        place, of_table = folder / table.name, list(rows.get(table.name, []))
        if of_table:
            _write_table(place, table.name, of_table, str(version))
        else:
            log = _first_log(place)
            log.parent.mkdir(parents=True)
            log.write_text(_log_of_empty(table.name, str(version)), encoding="utf-8")
    return str(folder)


@cache
def _log_of_empty(name, version):
    """The log of a table without rows: the same in every ledger, and most tables of most ledgers have none."""
    with TemporaryDirectory() as folder:
        _write_table(Path(folder), name, [], version)
        assert not list(Path(folder).rglob("*.parquet"))
        return _first_log(Path(folder)).read_text(encoding="utf-8")


def _write_table(place, name, rows, version):
    schema = _schema(name)
    filled = [{field.name: _value(field, row) for field in schema} for row in rows]
    partitions = list(_BY_NAME[name].partition_by) or None
    write_deltalake(str(place), pa.Table.from_pylist(filled, schema=schema), partition_by=partitions)
    _set_property(_first_log(place), version)


@cache
def _schema(name):
    return to_arrow_schema(_BY_NAME[name].schema, timezone="UTC")


def _first_log(place):
    return place / "_delta_log" / f"{0:020}.json"


def _set_property(log, version):
    """The version of a ledger, as a property that delta-rs reads and does not write."""
    actions = [json.loads(line) for line in log.read_bytes().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = {VERSION_PROPERTY: version}
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _value(field, row):
    if field.name in row or field.nullable:
        return row.get(field.name)
    if field.name == "attempt_id":
        return ATTEMPT
    if field.name == "source" and "snapshot_id" in row:
        return "log" if row["snapshot_id"].startswith("log/") else "table"
    if pa.types.is_string(field.type):
        return ""
    if pa.types.is_timestamp(field.type):
        return MOMENT
    if pa.types.is_list(field.type):
        return []
    if pa.types.is_binary(field.type):
        return b""
    return pa.types.is_boolean(field.type) or 0
