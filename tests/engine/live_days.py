"""Days of real clients on real brokers (tests/data/live-truth) as rows of a bucket, without Spark."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

from groupledger.core.history import LogRow, fold_group
from groupledger.core.log.listings import TopicHistory
from groupledger.core.wire.offsets_log import decode_key
from tests.core.history.captured import CLUSTER, changes_of
from tests.engine.captured_rows import bucket_of, states_of
from tests.live.truth.replay import Kept, turns

FOLDER = Path(__file__).parents[1] / "data/live-truth"
DAYS = ("4.0.0", "4.2.0", "4.4.0")


def day_rows(release: str, way: str) -> list[dict[str, Any]]:
    """All groups of a day, read in one of the ways of `turns`: with the topics as they were listed at each turn."""
    read = list(turns(Kept(FOLDER / release), way))
    listed = [topic | {"ts": turn.at_ms} for turn in read for topic in turn.topics]
    history, topics = TopicHistory(changes_of(listed)), states_of(listed)
    groups: dict[str, list[LogRow]] = {}
    for record in read[-1].records:
        key, value = b64decode(record["key"]), record["value"]
        place = record["partition"], record["offset"], record["timestamp"]
        row = LogRow(*place, key, None if value is None else b64decode(value))
        groups.setdefault(decode_key(key).group_id or "", []).append(row)
    rows = []
    for group, records in sorted(groups.items()):
        facts = fold_group(CLUSTER, sorted(records, key=lambda row: row.offset), None, history)
        if facts.group_snapshots:
            rows += bucket_of(group, facts, records, topics)
    return rows
