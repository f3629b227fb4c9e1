"""Parse a topic from a line of a listing: ts (ms), topic, topic_id, partitions, racks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from groupledger.core.bounds import MOMENT, PARTITION_COUNT
from groupledger.core.faults import Fault
from groupledger.core.lines.strict_json import NO_VALUES, got, is_text, parse_object

Racks = list[list[str | None]]


class ListedTopic(NamedTuple):
    """The content of a line. `racks`: of each partition's replicas; `rack`: one that applies to all partitions.

    A line with a problem still says that the topic existed, if it has a moment and a name.
    """

    ts: int | None
    topic: str | None
    topic_id: str | None
    partitions: int | None
    racks: Racks | None
    rack: list[str | None] | None
    problem: str | None


LISTING_FIELDS = ListedTopic._fields


def listed_topic(line: bytes, folder: Mapping[str, Any] = NO_VALUES) -> ListedTopic:
    """Parse a line's topic; BAD_MOMENT, BAD_TOPIC, BAD_PARTITION_COUNT, BAD_TOPIC_ID, BAD_RACKS, MALFORMED_LINE."""
    try:
        found = parse_object(line, folder)
    except Fault as fault:
        return ListedTopic(None, None, None, None, None, None, f"{fault.code}: {fault.message}")
    ts, topic, topic_id, count, racks = (found.get(name) for name in ("ts", "topic", "topic_id", "partitions", "racks"))
    by_partition, of_topic, racks_are_good = _racks(racks)
    named = is_text(topic) and topic != ""
    problem = None
    if not MOMENT.holds(ts):
        problem = f"BAD_MOMENT: ts is {got(ts)}; expected {MOMENT.words}"
    elif not named:
        problem = f"BAD_TOPIC: topic is {got(topic)}; expected the topic's name"
    elif not PARTITION_COUNT.holds(count):
        words = f"expected {PARTITION_COUNT.words}; correct the listing"
        problem = f"BAD_PARTITION_COUNT: partition count of topic {topic} is {got(count)}; {words}"
    elif topic_id is not None and not is_text(topic_id):
        problem = f"BAD_TOPIC_ID: topic_id of topic {topic} is {got(topic_id)}; expected a text, or null"
    elif not racks_are_good:
        words = "expected a list of racks, or one for each partition"
        problem = f"BAD_RACKS: racks of topic {topic} are {got(racks)}; {words}"
    moment = ts if MOMENT.holds(ts) else None
    if problem is not None:
        return ListedTopic(moment, topic if named else None, None, None, None, None, problem)
    return ListedTopic(moment, topic, topic_id, count, by_partition, of_topic, None)


def listing_line(ts: int, topic: str, topic_id: str | None, racks: Sequence[Sequence[str | None]]) -> bytes:
    """Write the line of a topic with these racks of each partition's replicas; the inverse of `listed_topic`."""
    found: dict[str, Any] = {"ts": ts, "topic": topic, "topic_id": topic_id, "partitions": len(racks)}
    if any(rack is not None for replicas in racks for rack in replicas):
        found["racks"] = [list(replicas) for replicas in racks]
    return json.dumps(found).encode()


def _racks(racks: Any) -> tuple[Racks | None, list[str | None] | None, bool]:
    """Return racks by partition, the one rack of the topic, and whether their form is known."""
    if racks is None:
        return None, None, True
    if type(racks) is not list:
        return None, None, False
    if _are_racks(racks):
        different = list(dict.fromkeys(racks))
        return None, different if len(different) == 1 else None, True
    good = all(type(replicas) is list and _are_racks(replicas) for replicas in racks)
    return (racks, None, True) if good else (None, None, False)


def _are_racks(values: list[Any]) -> bool:
    return all(value is None or is_text(value) for value in values)
