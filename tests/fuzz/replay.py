"""A ledger in memory: pieces of a log are ingested as `pipeline.ingest` does it, through the real fold of buckets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from groupledger.core.history import FoldSettings, LogRow
from groupledger.engine import fold_schema as schema
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.fold_slices import FoldedBucket, fold_table
from groupledger.tables import columns as c
from tests.core.history.captured import CLUSTER, topic_changes
from tests.fuzz.records import group_key

SCHEMA = arrow_schema(schema.INPUT)
HEADS = "group_heads"
FACTS = ("group_snapshots", "member_snapshots", "ownership_changes", "coverage", "quarantine", "violations")
NUMBERED = ("group_snapshots", "member_snapshots", "ownership_changes", HEADS)
COUNTED = (c.PARTITION, c.OFFSET, c.MEMBERS, c.MEMBER_ORDER)
"""Columns that the tables' constraints hold to 0 or more: one row below it and Delta refuses the whole run."""
Row = dict[str, Any]
State = dict[tuple[str, bytes | None], list[str]]


class Head(NamedTuple):
    """What a group is folded on from."""

    offset: int
    state: bytes


class Ledger:
    """Facts that count, heads, and records read, of every group."""

    def __init__(self, log: str) -> None:
        self.topics = _topics(log.split("/")[0])
        self.heads: dict[bytes, list[Head]] = defaultdict(list)
        self.records: dict[bytes | None, list[LogRow]] = defaultdict(list)
        self.facts: dict[str, list[Row]] = {name: [] for name in FACTS}
        self.counts: Counter[str] = Counter()

    def ingest(self, piece: Iterable[LogRow]) -> None:
        """One more piece: groups of which it holds late records are folded again from the last head before these."""
        new: dict[bytes | None, list[LogRow]] = defaultdict(list)
        for row in piece:
            new[group_key(row.key)].append(row)
        rows = [self.topics]
        for key, records in new.items():
            rows += [_record(schema.RECORD, key, row) for row in records]
            if key is not None and self.heads[key]:
                rows += self._start(key, min(row.offset for row in records))
            self.records[key] += records
        folded = fold_table(pa.Table.from_pylist(rows, schema=SCHEMA), FoldSettings())
        self._take(folded, sum(map(len, new.values())))

    def _start(self, key: bytes, first: int) -> list[Row]:
        """The head to start from, and after it what was read before."""
        late = first <= self.heads[key][-1].offset
        start = next((head for head in reversed(self.heads[key]) if head.offset < first), None)
        own = {c.KIND: schema.HEAD, c.CLUSTER_ID: CLUSTER, schema.GROUP_KEY: key, c.REFOLDED: late}
        known = [row for row in self.records[key] if late and row.offset > (start.offset if start else -1)]
        rows = [own | {c.STATE: start.state if start else None}]
        return rows + [_record(schema.KNOWN, key, row) for row in known]

    def _take(self, folded: FoldedBucket, records: int) -> None:
        counted: Counter[str] = Counter()
        told = {name: folded.tables[name].to_pylist() if name in folded.tables else [] for name in (*FACTS, HEADS)}
        for count in folded.counts:
            assert count.rows >= 0, count
            counted[count.name] += count.rows
        classes = {name: number for name, number in counted.items() if name not in ("records", schema.FOLDED_AGAIN)}
        assert counted["records"] == sum(classes.values()) == records, (records, counted)
        self.counts += counted
        for name in NUMBERED:
            wrong = [row for row in told[name] if any((row.get(each) or 0) < 0 for each in COUNTED)]
            assert not wrong, f"{name} breaks its table's constraint: {wrong[0]}"
        for head in told[HEADS]:
            self._supersede(head)
        for name in FACTS:
            self.facts[name] += told[name]

    def _supersede(self, head: Row) -> None:
        """What earlier pieces said of the offsets that were folded again gives way."""
        key, since = head[c.GROUP_ID].encode(), head[c.FROM_OFFSET]
        kept = [each for each in self.heads[key] if each.offset <= since]
        self.heads[key] = [*kept, Head(head[c.OFFSET], head[c.STATE])]
        if not head[c.REFOLDED]:
            return
        for name, rows in self.facts.items():
            again = [row[c.GROUP_ID] == head[c.GROUP_ID] and since < row[c.OFFSET] <= head[c.OFFSET] for row in rows]
            self.facts[name] = [row for row, gone in zip(rows, again, strict=True) if not gone]

    def state(self) -> State:
        """All that a reader sees, by table and group, without its order; and the head of each group."""
        found: State = defaultdict(list)
        for name, rows in self.facts.items():
            for row in rows:
                group = row[c.GROUP_ID]
                found[name, None if group is None else group.encode()].append(repr(row))
        for key, heads in self.heads.items():
            if heads:
                found[HEADS, key].append(repr(heads[-1]))
        return {place: sorted(rows) for place, rows in found.items()}


def _record(kind: str, key: bytes | None, row: LogRow) -> Row:
    place = {c.KIND: kind, c.CLUSTER_ID: CLUSTER, schema.GROUP_KEY: key, c.LOG_PARTITION: row.log_partition}
    return place | {c.OFFSET: row.offset, c.TIMESTAMP: row.timestamp_ms, c.KEY: row.key, c.VALUE: row.value}


def _topics(capture: str) -> Row:
    names = (c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, c.VALID_FROM)
    changes = [{name: getattr(change, name) for name in names} for change in topic_changes(capture)]
    return {c.KIND: schema.TOPICS, c.CLUSTER_ID: CLUSTER, schema.TOPICS: changes}
