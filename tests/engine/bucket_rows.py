"""Rows of a bucket from plain values: what Spark would bring to the UDF, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from groupledger.core.rebalance.step import Form
from groupledger.engine import bucket_rows as r
from groupledger.engine.bucket_rows import SINCE, TopicCatalogue
from groupledger.engine.buckets import compute
from groupledger.engine.group_arrays import Calculation
from groupledger.tables import columns as c

SCHEMA = to_arrow_schema(r.INPUT)
AS_KAFKA = Calculation("baseline", Form.AS_KAFKA, coordinator="uniform")
KIP = Calculation("baseline", Form.KIP)
TOPIC = -1
"""The kind of a row that is none of a bucket's, but of the topic catalogue."""


def wire(partitions: Iterable[tuple[str, int]], ids: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """[(topic, partition), ..] in the layout of facts; each run of one topic is an entry."""
    entries: list[dict[str, Any]] = []
    for topic, partition in partitions:
        if not entries or entries[-1]["topic"] != topic:
            entries.append({"topic_id": (ids or {}).get(topic), "topic": topic, "partitions": []})
        entries[-1]["partitions"].append(partition)
    return entries


def group_row(snapshot: str, **values: Any) -> dict[str, Any]:
    """A classic consumer group; `assignor` runs again unless `chosen` says otherwise."""
    return {
        r.ROW_KIND: r.GROUP_ROW,
        c.SNAPSHOT_ID: snapshot,
        c.GROUP_TYPE: "classic",
        c.PROTOCOL_TYPE: "consumer",
        c.SNAPSHOT_KIND: "generation",
        c.COMPLETE: True,
        r.MOMENT: 0,
        r.CHOSEN: values.get(c.ASSIGNOR),
        c.GROUP_ID: snapshot.rsplit("/", 1)[0],
        **values,
    }


def member_row(snapshot: str, order: int, member_id: str, **values: Any) -> dict[str, Any]:
    """A member; the rest as given."""
    return {
        r.ROW_KIND: r.MEMBER_ROW,
        c.SNAPSHOT_ID: snapshot,
        c.MEMBER_ORDER: order,
        c.MEMBER_ID: member_id,
        c.GROUP_ID: snapshot.rsplit("/", 1)[0],
        **values,
    }


def topic_row(snapshot: str, topic: str, count: int | None, since: int = 0, **values: Any) -> dict[str, Any]:
    """A change of a topic of a group's cluster: its count from a moment on (microseconds); None: deleted."""
    return {
        r.ROW_KIND: TOPIC,
        c.TOPIC: topic,
        c.PARTITION_COUNT: count,
        SINCE: since,
        c.GROUP_ID: snapshot.rsplit("/", 1)[0],
        **values,
    }


def record_row(group: str, log_partition: int, offset: int, **values: Any) -> dict[str, Any]:
    """A record of a KIP-848 group."""
    place = {c.LOG_PARTITION: log_partition, c.OFFSET: offset}
    return {r.ROW_KIND: r.RECORD_ROW, c.GROUP_ID: group, **place, **values}


def table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """The bucket. Each group is in a cluster of its own unless its rows say otherwise: so are its topics."""
    placed = [{r.BUCKET: 0, **_placed(row)} for row in rows if row[r.ROW_KIND] != TOPIC]
    return pa.Table.from_pylist(placed, schema=SCHEMA)


def catalogue(rows: Iterable[dict[str, Any]]) -> TopicCatalogue:
    """The topics among the rows."""
    return TopicCatalogue.of_rows([_placed(row) for row in rows if row[r.ROW_KIND] == TOPIC])


def _placed(row: dict[str, Any]) -> dict[str, Any]:
    return {c.CLUSTER_ID: f"of {row[c.GROUP_ID]}", **row}


def computed(rows: Iterable[dict[str, Any]], calculation: Calculation = AS_KAFKA) -> dict[str, list[dict[str, Any]]]:
    """The result rows by table."""
    rows = list(rows)
    found = compute(table(rows), replace(calculation, topics=catalogue(rows)))
    return {name: rows.to_pylist() for name, rows in found.items()}


def scenario_rows(scenario: Mapping[str, Any], recorded: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """A scenario of tests/data/parity as the snapshot of one group; `recorded` by member."""
    snapshot = f"{scenario['id']}/0"
    topics = sorted({topic for member in scenario["members"] for topic in member["topics"]})
    counts = scenario["topics"]
    racks = scenario.get("racks") or {}
    return [
        group_row(snapshot, assignor=scenario["assignor"]),
        *(topic_row(snapshot, topic, counts[topic], racks=racks.get(topic)) for topic in topics if topic in counts),
        *(
            member_row(
                snapshot,
                order,
                member["id"],
                group_instance_id=member["instance_id"],
                rack_id=member["rack"],
                topics=member["topics"],
                claimed=wire(map(tuple, member["owned"])),
                claimed_generation=member["generation"] if member["generation"] >= 0 else None,
                subscription_generation=member["generation"] if member["generation"] >= 0 else None,
                recorded=None if recorded is None else wire(map(tuple, recorded.get(member["id"], []))),
            )
            for order, member in enumerate(scenario["members"])
        ),
    ]
