"""A topology as JSON: {"0": {"source_topics": ["orders"], "repartition_sink_topics": ["by-value"]}}."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from groupledger.core.protocol.consumer_group.topology import Subtopologies, SubtopologyTopics
from groupledger.core.protocol.script_checks import MOST_PARTITIONS, require, require_one_of, require_whole

COUNTED = "repartition_source_topics"
FIELDS = tuple(each.name for each in fields(SubtopologyTopics))


def read_topology(found: Any, place: str) -> Subtopologies:
    """The topology of a script; raises Fault("BAD_SCRIPT"), which says where it is wrong."""
    require(isinstance(found, dict), place, found, "an object of subtopologies by id")
    return {name: _subtopology(each, f"{place}.{name}") for name, each in found.items()}


def _subtopology(found: Any, place: str) -> SubtopologyTopics:
    require(isinstance(found, dict), place, found, "an object of topics")
    told: dict[str, Any] = {}
    for name, value in found.items():
        require_one_of(name, FIELDS, place)
        told[name] = _counts(value, f"{place}.{name}") if name == COUNTED else _names(value, f"{place}.{name}")
    return SubtopologyTopics(**told)


def _names(value: Any, place: str) -> tuple[str, ...]:
    texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    require(texts, place, value, "a list of topics")
    require(len(set(value)) == len(value), place, value, "each topic once")
    return tuple(value)


def _counts(value: Any, place: str) -> dict[str, int]:
    """Partitions that repartition topics are to have; a list of topics leaves that to whoever writes them."""
    if isinstance(value, list):
        return dict.fromkeys(_names(value, place), 0)
    require(isinstance(value, dict), place, value, "a list of topics, or an object of their partition counts")
    for topic, count in value.items():
        require_whole(count, f"{place}.{topic}", MOST_PARTITIONS)
    return dict(value)


def write_topology(topology: Subtopologies) -> dict[str, Any]:
    """The JSON object: `read_topology` gives the topology again."""
    return {
        name: {field: _plain(getattr(each, field)) for field in FIELDS if getattr(each, field)}
        for name, each in topology.items()
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value)
