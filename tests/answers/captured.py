"""The captured logs as ledgers: folded, and written down without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from groupledger.core.history import LogRow, TopicChange, canonical_topic_id, fold_group
from groupledger.core.moments import from_micros, from_millis
from tests.answers.ledgers import COMMITTED, MOMENT, write
from tests.core.history.captured import catalog, log_rows, topic_changes

TABLES = ("group_snapshots", "member_snapshots", "ownership_changes", "coverage", "violations")
MOMENTS = {"observed_at", "at", "held_since"}
ASSIGNMENTS = {"claimed", "recorded", "target", "pending_revocation"}


def ledger_of(folder, captures):
    """A ledger of these captures, each a cluster of its own; nothing is computed again. Gives the folder as text.

    Its run is one that jobs of Spark read, too.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (*TABLES, "topic_snapshots", "log_records")}
    for capture in captures:
        rows["topic_snapshots"] += topic_rows(capture, topic_changes(capture))
        for group, of_group in log_rows(f"{capture}/offsets").items():
            rows["log_records"] += log_record_rows(capture, group, of_group)
            folded = fold_group(capture, of_group, None, catalog(capture))
            for name in TABLES:
                rows[name] += fact_rows(getattr(folded, name))
    run = COMMITTED | {"inputs": "{}", "counts_in": [], "counts_out": [], "finished_at": MOMENT}
    return write(folder, runs=[run], **rows)


def log_record_rows(cluster: str, group: str, rows: Iterable[LogRow]) -> Iterator[dict[str, Any]]:
    """Rows of `log_records`."""
    for row in rows:
        place = {"cluster_id": cluster, "group_id": group, "log_partition": row.log_partition, "offset": row.offset}
        yield place | {"timestamp": from_millis(row.timestamp_ms), "key": row.key, "value": row.value}


def fact_rows(rows: Iterable[NamedTuple]) -> Iterator[dict[str, Any]]:
    """Rows of a fold as its table has them."""
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


def topic_rows(cluster: str, changes: Iterable[TopicChange]) -> Iterator[dict[str, Any]]:
    """Rows of `topic_snapshots`."""
    for change in changes:
        told = {"cluster_id": cluster, "topic": change.topic, "topic_id": canonical_topic_id(change.topic_id)}
        yield told | {"partition_count": change.partition_count, "valid_from": from_micros(change.valid_from)}
