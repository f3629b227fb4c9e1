"""The captures as rows of a bucket, without Spark: facts from the fold, topics from the listings."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from groupledger.core.history import canonical_topic_id
from groupledger.core.wire.offsets_log import COORDINATOR_RECORDS
from groupledger.engine import rows as r
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
    listings: dict[int, dict[str, tuple[str | None, int]]] = {}
    for line in lines(topics_of(capture)):
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


def topic_rows(capture: str, group: str) -> list[dict[str, Any]]:
    """What the listings of a capture ever said."""
    return [
        topic_row(f"{group}/", topic, state.partitions, state.since, topic_id=state.topic_id)
        for topic, known in states(capture).items()
        for state in known
    ]


def holdings(assignment: Any) -> Any:
    """A fold's assignment as rows have it."""
    return assignment and [{"topic_id": i, "topic": t, "partitions": list(p)} for i, t, p in assignment]


@cache
def rows_of(capture: str, group: str) -> tuple[dict[str, Any], ...]:
    """All snapshots of a captured group, its members, and the topics of its cluster."""
    facts = folded(log_of(capture), group)
    rows: list[dict[str, Any]] = []
    for each in facts.group_snapshots:
        values = {name: value for name, value in each._asdict().items() if name in GROUP_NAMES}
        consumers = each.group_type == "classic" and each.protocol_type == "consumer"
        values[r.CHOSEN] = (each.assignor or "") if consumers else None
        values[c.GENERATION] = each.generation if each.generation is not None else each.group_epoch
        rows.append(group_row(each.snapshot_id, **values, group_id=group, moment=each.observed_at * 1000))
    for member in facts.member_snapshots:
        values = {name: value for name, value in member._asdict().items() if name in MEMBER_NAMES}
        values |= {name: holdings(values[name]) for name in (c.CLAIMED, c.RECORDED, c.TARGET)}
        rows.append(member_row(member.snapshot_id, values.pop(c.MEMBER_ORDER), values.pop(c.MEMBER_ID), **values))
    return (*rows, *topic_rows(capture, group), *coordinated_rows(capture, group))


def coordinated_rows(capture: str, group: str) -> list[dict[str, Any]]:
    """What a KIP-848 group's targets are judged by; nothing of a classic group."""
    modern = [each for each in folded(log_of(capture), group).group_snapshots if each.group_type == "consumer"]
    if not modern:
        return []
    return [
        record_row(group, row.log_partition, row.offset, timestamp=row.timestamp_ms, key=row.key, value=row.value)
        for row in log_rows(log_of(capture))[group]
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
