"""Rows of a bucket from plain values: what Spark would bring to the UDF, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from groupledger.core.step import Form
from groupledger.engine import rows as r
from groupledger.engine.buckets import Calculation, compute
from groupledger.tables import columns as c

SCHEMA = to_arrow_schema(r.INPUT)
AS_KAFKA = Calculation("baseline", Form.AS_KAFKA, coordinator="uniform")
KIP = Calculation("baseline", Form.KIP)


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


def topic_row(snapshot: str, topic: str, count: int | None, **values: Any) -> dict[str, Any]:
    """A topic that a listing names at the snapshot; None: as deleted."""
    return {
        r.ROW_KIND: r.TOPIC_ROW,
        c.SNAPSHOT_ID: snapshot,
        c.TOPIC: topic,
        r.COUNT_NOW: count,
        r.LISTED: True,
        c.GROUP_ID: snapshot.rsplit("/", 1)[0],
        **values,
    }


def record_row(group: str, log_partition: int, offset: int, **values: Any) -> dict[str, Any]:
    """A record of a KIP-848 group."""
    place = {c.LOG_PARTITION: log_partition, c.OFFSET: offset}
    return {r.ROW_KIND: r.RECORD_ROW, c.GROUP_ID: group, **place, **values}


def change_row(group: str, topic: str, topic_id: str | None, count: int | None, at: int) -> dict[str, Any]:
    """A change of a topic in a KIP-848 group, at a moment in microseconds."""
    values = {c.TOPIC: topic, c.TOPIC_ID: topic_id, r.COUNT_NOW: count, r.CHANGED: at}
    return {r.ROW_KIND: r.CHANGE_ROW, c.GROUP_ID: group, **values}


def table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """The bucket."""
    return pa.Table.from_pylist([{r.BUCKET: 0, c.CLUSTER_ID: "k", **row} for row in rows], schema=SCHEMA)


def computed(rows: Iterable[dict[str, Any]], calculation: Calculation = AS_KAFKA) -> dict[str, list[dict[str, Any]]]:
    """The result rows by table."""
    found = compute(table(rows), calculation).to_pylist()
    return {name: [row[name] for row in found if row[name] is not None] for name in r.OUTPUT.names}


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
