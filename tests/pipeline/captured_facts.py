"""A ledger that holds the facts of the captures, as an ingest leaves them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, reduce
from typing import Any

from groupledger.core.history import Folded, fold_group
from groupledger.pipeline.assign import TARGETS
from groupledger.sinks import attempts
from groupledger.sinks.append import append
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import GROUP_SNAPSHOTS, LOG_RECORDS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS, Table
from groupledger.tables import columns as c
from tests.core.history.captured import catalog, log_of, log_rows
from tests.engine.captured_rows import captured_groups, holdings, states

START = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)


@cache
def facts(capture: str, group: str) -> Folded:
    """A captured group's facts, the capture being its cluster."""
    return fold_group(capture, log_rows(log_of(capture))[group], None, catalog(capture))


def moment(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


def group_rows(capture: str) -> list[dict[str, Any]]:
    found = []
    for group in captured_groups(capture):
        for row in facts(capture, group).group_snapshots:
            found.append(row._asdict() | {c.OBSERVED_AT: moment(row.observed_at)})
    return found


def member_rows(capture: str) -> list[dict[str, Any]]:
    lists = (c.CLAIMED, c.RECORDED, c.TARGET, c.PENDING_REVOCATION)
    found = []
    for group in captured_groups(capture):
        for row in facts(capture, group).member_snapshots:
            values = row._asdict()
            found.append(values | {name: holdings(values[name]) for name in lists})
    return found


def topic_rows(capture: str) -> list[dict[str, Any]]:
    return [
        {
            c.CLUSTER_ID: capture,
            c.TOPIC_ID: state.topic_id,
            c.TOPIC: topic,
            c.PARTITION_COUNT: state.partitions,
            c.RACKS: None if state.partitions is None else [["rack-a"]] * state.partitions,
            c.VALID_FROM: moment(state.since // 1000),
        }
        for topic, changes in states(capture).items()
        for state in changes
    ]


def record_rows(capture: str) -> list[dict[str, Any]]:
    return [
        {
            c.CLUSTER_ID: capture,
            c.GROUP_ID: group,
            c.TIMESTAMP: moment(row.timestamp_ms),
            **{name: getattr(row, name) for name in (c.LOG_PARTITION, c.OFFSET, c.KEY, c.VALUE)},
        }
        for group, rows in log_rows(log_of(capture)).items()
        for row in rows
    ]


def write(spark, location: LedgerLocation, rows: dict[Table, list[dict[str, Any]]], attempt_id: str) -> None:
    """One committed attempt with these facts."""
    attempt = attempts.Attempt(f"run of {attempt_id}", attempt_id, "ingest", {}, "config", "code", START)
    for table, values in rows.items():
        if values:
            ordered = [tuple(row.get(name) for name in table.columns[:-1]) for row in values]
            schema = reduce(lambda made, field: made.add(field), table.schema.fields[:-1], type(table.schema)())
            append(location, table, spark.createDataFrame(ordered, schema), attempt_id)
    counts = {table.name: len(values) for table, values in rows.items()}
    seen = attempts.read_commits(spark, location)
    outcome = attempts.Outcome({f"any/used.{TARGETS}": 1}, counts, "digest", "done", START)
    attempts.commit(spark, location, attempt, seen.sequence, outcome)


def fill(spark, location: LedgerLocation, captures: tuple[str, ...]) -> LedgerLocation:
    """Write the facts of these captures into an empty ledger, each its own cluster."""
    rows = {
        GROUP_SNAPSHOTS: [row for capture in captures for row in group_rows(capture)],
        MEMBER_SNAPSHOTS: [row for capture in captures for row in member_rows(capture)],
        TOPIC_SNAPSHOTS: [row for capture in captures for row in topic_rows(capture)],
        LOG_RECORDS: [row for capture in captures for row in record_rows(capture)],
    }
    write(spark, location, rows, "facts")
    return location
