"""Declare every Delta table of the ledger once: names, types, comments, clustering.

`TABLES` lists those that exist. DDL, Arrow schemas, documentation and checks of foreign input derive from here. Read
`declaration`, `columns`, `facts` (what an ingest writes), `results` (what an assign writes) and `views` (which rows
count, as SQL). Called by `sinks`, `engine`, `pipeline` and `answers`.
"""

from __future__ import annotations

from groupledger.core.ledger_version import SCHEMA_VERSION
from groupledger.tables.declaration import Table
from groupledger.tables.facts import (
    COVERAGE,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    OWNERSHIP_CHANGES,
    QUARANTINE,
    RUNS,
    TOPIC_SNAPSHOTS,
)
from groupledger.tables.results import ASSIGNMENTS, CALLBACKS, METRICS, REBALANCES, VIOLATIONS

TABLES: tuple[Table, ...] = (
    LOG_RECORDS,
    GROUP_SNAPSHOTS,
    MEMBER_SNAPSHOTS,
    TOPIC_SNAPSHOTS,
    OWNERSHIP_CHANGES,
    GROUP_HEADS,
    COVERAGE,
    QUARANTINE,
    ASSIGNMENTS,
    REBALANCES,
    VIOLATIONS,
    CALLBACKS,
    METRICS,
    RUNS,
)

BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
CONSTRAINTS: dict[str, tuple[Table, str]] = {
    name: (table, condition) for table in TABLES for name, condition in table.constraints.items()
}
"""By name: the table, and what holds for each of its rows."""

__all__ = [
    "ASSIGNMENTS",
    "BY_NAME",
    "CALLBACKS",
    "CONSTRAINTS",
    "COVERAGE",
    "GROUP_HEADS",
    "GROUP_SNAPSHOTS",
    "LOG_RECORDS",
    "MEMBER_SNAPSHOTS",
    "METRICS",
    "OWNERSHIP_CHANGES",
    "QUARANTINE",
    "REBALANCES",
    "RUNS",
    "SCHEMA_VERSION",
    "TABLES",
    "TOPIC_SNAPSHOTS",
    "VIOLATIONS",
    "Table",
]
