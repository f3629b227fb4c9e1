"""A day that was kept, read again as a reader of the cluster would have: turn by turn, with the topics of each moment.

A cluster is stood in for at the seam that asks it (`pipeline.cluster`): all behind that is an ingest as it is.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from groupledger.config import Config, LedgerSettings, SourceSettings
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT
from groupledger.core.log.read_plan import LogEnds
from groupledger.core.moments import from_millis
from groupledger.core.wire.offsets_log import OFFSET_COMMITS
from groupledger.pipeline import cluster as clusters
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sources import kafka_log
from groupledger.sources.kafka_log import ClusterState, StretchReader
from groupledger.sources.opening import ENTRIES

CLUSTER = "live"
HOUR_MS = 3_600_000
SOURCE = SourceSettings(kind="kafka", bootstrap="kept:9092")
Line = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """The files of a day, in their folder."""

    folder: Path

    @cached_property
    def truth(self) -> list[Line]:
        """What the clients and the conductor said, in order."""
        return sorted(self._lines("truth"), key=itemgetter("ms"))

    @cached_property
    def records(self) -> list[Line]:
        """Each record of the log, as it was written."""
        return self._lines("offsets")

    @cached_property
    def compacted(self) -> list[Line]:
        """What the log held in the end."""
        return self._lines("compacted")

    @cached_property
    def listings(self) -> list[tuple[int, list[Line]]]:
        """The topics, by the moment at which they were listed."""
        lines = sorted(self._lines("topics"), key=itemgetter("ts"))
        return [(moment, list(some)) for moment, some in groupby(lines, itemgetter("ts"))]

    @property
    def ends_ms(self) -> int:
        """When all was over."""
        return int(max(self.truth[-1]["ms"], *(each["timestamp"] for each in self.records[-1:]))) + 1

    @property
    def begins_ms(self) -> int:
        """When it began."""
        return int(self.truth[0]["ms"])

    def listed(self, moment: int) -> list[Line]:
        """The topics as they were listed last before a moment."""
        at = bisect_right(self.listings, moment, key=itemgetter(0))
        return self.listings[at - 1][1] if at else []

    def _lines(self, name: str) -> list[Line]:
        with gzip.open(self.folder / f"{name}.jsonl.gz", "rt", encoding="ascii") as lines:
            return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Turn:
    """An ingest at a moment: the records that the log holds by then, and the topics that there are."""

    at_ms: int
    records: Sequence[Line]
    topics: Sequence[Line]


def turns(kept: Kept, how: str) -> Iterator[Turn]:
    """The ingests of a way to read: `whole`, `week` (of the compacted log), or so many as time goes on: `turns:60`."""
    if how == "week":
        yield Turn(kept.ends_ms + HOUR_MS, kept.compacted, kept.listings[-1][1])
        return
    number = int(how.partition(":")[2] or 1)
    begin, length = kept.begins_ms, (kept.ends_ms - kept.begins_ms) / number
    for each in range(1, number + 1):
        moment = kept.ends_ms if each == number else int(begin + each * length)
        found = [record for record in kept.records if record["timestamp"] <= moment]
        yield Turn(moment, found, kept.listed(moment))


def replay(spark: Any, location: Any, read: Iterable[Turn]) -> None:
    """Ingest turn by turn into an empty ledger."""
    config = Config(ledger=LedgerSettings(location=location.path), sources=(SOURCE,))
    for number, turn in enumerate(read, 1):
        moment = from_millis(turn.at_ms)
        invocation = Invocation(attempt_id=f"turn-{number}", now=_still(moment), seconds=lambda: 0.0)
        with ExitStack() as stack:
            stack.enter_context(patch.object(clusters, "Cluster", lambda *_: _Asked(turn)))  # noqa: B023 called in here
            stack.enter_context(patch.object(StretchReader, "few", lambda *_: None))
            stack.enter_context(patch.object(kafka_log, "frame", _frame(turn)))
            summary = ingest(spark, location, config, invocation)
            assert summary.quarantined == 0, summary


def _still(moment: datetime) -> Any:
    return lambda: moment


@dataclass(frozen=True)
class _Asked:
    """The cluster as it was at a turn."""

    turn: Turn

    def state(self) -> ClusterState:
        ends: dict[int, int] = {}
        for record in self.turn.records:
            ends[record["partition"]] = max(ends.get(record["partition"], 0), record["offset"] + 1)
        partitions = range(max(ends, default=-1) + 1)
        topics = tuple((each["topic"], each["topic_id"], ((),) * each["partitions"]) for each in self.turn.topics)
        return ClusterState(CLUSTER, {each: LogEnds(0, ends.get(each, 0)) for each in partitions}, topics)


def _frame(turn: Turn) -> Any:
    """In place of `kafka_log.frame`: the records of the stretches, and their counts."""

    def frame(spark: Any, reader: Any, stretches: Any, cluster_id: str) -> Any:
        del reader, cluster_id
        rows: list[tuple[Any, ...]] = []
        for partition, first, end in stretches:
            mine = [r for r in turn.records if r["partition"] == partition and first <= r["offset"] < end]
            kept = [r for r in map(_decoded, mine) if r[3] is None or r[3][:2] not in OFFSET_COMMITS]
            rows += [(*record, None, None) for record in kept]
            rows.append((partition, *(None,) * 5, ENTRIES, len(mine)))
            rows.append((partition, *(None,) * 5, OFFSET_COMMIT_LEFT_OUT, len(mine) - len(kept)))
        return spark.createDataFrame(rows, kafka_log.FIELDS)

    return frame


def _decoded(record: Line) -> tuple[Any, ...]:
    key, value = (None if record[name] is None else b64decode(record[name]) for name in ("key", "value"))
    return record["partition"], record["offset"], record["timestamp"], key, value, record.get("leader_epoch")
