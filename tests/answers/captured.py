"""The captured logs as ledgers: folded, and written down without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from groupledger.core.history import LogRow, canonical_topic_id, fold_group
from groupledger.core.moment import from_micros, from_millis
from tests.answers.ledgers import write
from tests.core.history.captured import catalog, log_rows, topic_changes

TABLES = ("group_snapshots", "member_snapshots", "ownership_changes", "coverage", "violations")
MOMENTS = {"observed_at", "at", "held_since"}
ASSIGNMENTS = {"claimed", "recorded", "target", "pending_revocation"}


def ledger_of(folder, captures):
    """A ledger of these captures, each a cluster of its own; nothing is computed again. Gives the folder as text."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (*TABLES, "topic_snapshots", "log_records")}
    for capture in captures:
        rows["topic_snapshots"] += _topics(capture)
        for group, of_group in log_rows(f"{capture}/offsets").items():
            rows["log_records"] += _log_records(capture, group, of_group)
            folded = fold_group(capture, of_group, None, catalog(capture))
            for name in TABLES:
                rows[name] += _plain(getattr(folded, name))
    return write(folder, **rows)


def _log_records(capture: str, group: str, rows: Iterable[LogRow]) -> Iterator[dict[str, Any]]:
    for row in rows:
        place = {"cluster_id": capture, "group_id": group, "log_partition": row.log_partition, "offset": row.offset}
        yield place | {"timestamp": from_millis(row.timestamp_ms), "key": row.key, "value": row.value}


def _plain(rows: Iterable[NamedTuple]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {name: _value(name, value) for name, value in row._asdict().items()}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in MOMENTS:
        return from_millis(value)
    if name in ASSIGNMENTS:
        return [dict(zip(("topic_id", "topic", "partitions"), entry, strict=True)) for entry in value]
    if name == "tasks":
        return [dict(zip(("role", "state", "subtopology", "partitions"), entry, strict=True)) for entry in value]
    return list(value) if isinstance(value, tuple) else value


def _topics(capture: str) -> Iterator[dict[str, Any]]:
    for change in topic_changes(capture):
        told = {"cluster_id": capture, "topic": change.topic, "topic_id": canonical_topic_id(change.topic_id)}
        yield told | {"partition_count": change.partition_count, "valid_from": from_micros(change.valid_from)}
