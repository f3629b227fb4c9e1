"""The captures as a fold takes them: log rows by group, and the topics of each moment."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from functools import cache
from typing import Any

from groupledger.core.history import Folded, LogRow, TopicChange, TopicHistory, fold_group
from groupledger.core.wire.offsets_log import decode_key
from tests.core.wire.captured import LOGS, lines

CLUSTER = "eu-1"
OTHER_LOGS = {"compacted-before": "compacted/offsets-before"}
"""Captures whose log is not the one that is named after them."""


def log_of(capture: str) -> str:
    """The name of a capture's log."""
    return OTHER_LOGS.get(capture, f"{capture}/offsets")


def topics_of(capture: str) -> str:
    """The name of its topic listings."""
    return f"{log_of(capture).split('/')[0]}/topics"


@cache
def log_rows(name: str) -> dict[str, tuple[LogRow, ...]]:
    """The rows of each group of a log (`edge/offsets`), by offset."""
    groups: dict[str, list[LogRow]] = {}
    for line in lines(name):
        key, value = b64decode(line["key"]), line["value"]
        row = LogRow(
            line["partition"], line["offset"], line["timestamp"], key, None if value is None else b64decode(value)
        )
        groups.setdefault(decode_key(key).group_id or "", []).append(row)
    return {group: tuple(sorted(rows, key=lambda row: row.offset)) for group, rows in sorted(groups.items())}


@cache
def catalog(capture: str) -> TopicHistory:
    """The topics of a capture at each moment."""
    return TopicHistory(topic_changes(capture))


def topic_changes(capture: str) -> list[TopicChange]:
    """The topics of a capture."""
    return changes_of(lines(topics_of(capture)))


def changes_of(listed_topics: Iterable[dict[str, Any]]) -> list[TopicChange]:
    """What lines of listings say: each listing is whole, and a topic that is no longer listed was deleted."""
    listings: dict[int, dict[str, tuple[str, int]]] = {}
    for line in listed_topics:
        listings.setdefault(line["ts"], {})[line["topic"]] = (line["topic_id"], line["partitions"])
    changes: list[TopicChange] = []
    before: dict[str, tuple[str, int]] = {}
    for moment, listed in sorted(listings.items()):
        gone = [
            TopicChange(topic, before[topic][0], None, None, 1_000 * moment) for topic in before.keys() - listed.keys()
        ]
        new = [
            TopicChange(topic, *state, None, 1_000 * moment)
            for topic, state in listed.items()
            if before.get(topic) != state
        ]
        changes += gone + new
        before = listed
    return changes


@cache
def folded(name: str, group: str) -> Folded:
    """One captured group, folded all at once."""
    return fold_group(CLUSTER, log_rows(name)[group], None, catalog(name.split("/")[0]))


def every_group() -> list[tuple[str, str]]:
    """(log, group) of all captures."""
    return [(name, group) for name in LOGS for group in log_rows(name)]
