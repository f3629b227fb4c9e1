"""The captures as rows of a bucket, without Spark: facts from the fold, topics from the listings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from groupledger.core.history import Folded, LogRow, canonical_topic_id
from groupledger.core.wire.offsets_log import COORDINATOR_RECORDS
from groupledger.engine import bucket_rows as r
from groupledger.tables import columns as c
from tests.core.history.captured import every_group, folded, log_of, log_rows, topics_of
from tests.core.wire.captured import lines
from tests.engine.bucket_rows import group_row, member_row, record_row, topic_row

CAPTURES = ("dev", "edge", "compacted", "storm")
BEFORE_COMPACTION = "compacted-before"
"""The same groups as `compacted`, before the log cleaner came."""


class State(NamedTuple):
    """A topic from `since` on (microseconds); None: deleted."""

    since: int
    topic_id: str | None
    partitions: int | None


@cache
def states(capture: str) -> dict[str, list[State]]:
    """The changes of each topic of a capture, in order."""
    return states_of(lines(topics_of(capture)))


def states_of(listed_topics: Iterable[dict[str, Any]]) -> dict[str, list[State]]:
    """What lines of listings say."""
    listings: dict[int, dict[str, tuple[str | None, int]]] = {}
    for line in listed_topics:
        listings.setdefault(line["ts"], {})[line["topic"]] = (
            canonical_topic_id(line["topic_id"]),
            line["partitions"],
        )
    found: dict[str, list[State]] = {}
    for moment, listed in sorted(listings.items()):
        for topic in sorted({*listed, *found}):
            known = found.setdefault(topic, [])
            topic_id, count = listed.get(topic, (None, None))
            if not known or (known[-1].topic_id, known[-1].partitions) != (topic_id, count):
                known.append(State(moment * 1000, topic_id, count))
    return found


def topic_rows(known: Mapping[str, list[State]], group: str, **more: Any) -> list[dict[str, Any]]:
    """What listings ever said."""
    return [
        topic_row(f"{group}/", topic, state.partitions, state.since, topic_id=state.topic_id, **more)
        for topic, of_topic in known.items()
        for state in of_topic
    ]


def holdings(assignment: Any) -> Any:
    """A fold's assignment as rows have it."""
    return assignment and [{"topic_id": i, "topic": t, "partitions": list(p)} for i, t, p in assignment]


@cache
def rows_of(capture: str, group: str) -> tuple[dict[str, Any], ...]:
    """All snapshots of a captured group, its members, and the topics of its cluster."""
    log = log_of(capture)
    return tuple(bucket_of(group, folded(log, group), log_rows(log)[group], states(capture)))


def bucket_of(
    group: str, facts: Folded, records: Iterable[LogRow], topics: Mapping[str, list[State]], **more: Any
) -> list[dict[str, Any]]:
    """All snapshots of a group that was folded, its members and its topics; `more` columns for each of them."""
    rows: list[dict[str, Any]] = []
    for each in facts.group_snapshots:
        values = {name: value for name, value in each._asdict().items() if name in GROUP_NAMES}
        consumers = each.group_type == "classic" and each.protocol_type == "consumer"
        values[r.CHOSEN] = (each.assignor or "") if consumers else None
        values[c.GENERATION] = each.generation if each.generation is not None else each.group_epoch
        values |= {c.GROUP_ID: group, r.MOMENT: each.observed_at * 1000, **more}
        rows.append(group_row(each.snapshot_id, **values))
    for member in facts.member_snapshots:
        values = {name: value for name, value in member._asdict().items() if name in MEMBER_NAMES}
        values |= {name: holdings(values[name]) for name in (c.CLAIMED, c.RECORDED, c.TARGET)}
        order, member_id = values.pop(c.MEMBER_ORDER), values.pop(c.MEMBER_ID)
        rows.append(member_row(member.snapshot_id, order, member_id, **(values | more)))
    return [*rows, *topic_rows(topics, group, **more), *coordinated_rows(group, facts, records, **more)]


def coordinated_rows(group: str, facts: Folded, records: Iterable[LogRow], **more: Any) -> list[dict[str, Any]]:
    """What a KIP-848 group's targets are judged by; nothing of a classic group."""
    if all(each.group_type != "consumer" for each in facts.group_snapshots):
        return []
    return [
        record_row(
            group, row.log_partition, row.offset, timestamp=row.timestamp_ms, key=row.key, value=row.value, **more
        )
        for row in records
        if row.key is not None and row.key[1] in COORDINATOR_RECORDS
    ]


GROUP_NAMES = {field.name for field in r.GROUP_FIELDS} - {c.GENERATION, r.MOMENT}
MEMBER_NAMES = {field.name for field in r.MEMBER_FIELDS}


@cache
def captured_groups(capture: str) -> tuple[str, ...]:
    """The groups of a capture that have snapshots."""
    return tuple(
        group for name, group in every_group() if name == log_of(capture) and folded(name, group).group_snapshots
    )
