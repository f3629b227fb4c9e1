"""What audit and explain find in histories: log -> ledger -> answers. No label comes in here.

python -m tests.corpus.found > found.jsonl && python corpus/score.py found.jsonl
"""

from __future__ import annotations

import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupledger.answers.audit import audit, caused
from groupledger.answers.queries import records
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope
from groupledger.answers.states import rebalance_states
from groupledger.core.history import LogRow, TopicHistory, fold_group
from groupledger.core.wire.offsets_log import decode_key
from tests.answers.captured import fact_rows, log_record_rows, topic_rows
from tests.answers.ledgers import write
from tests.core.history.captured import changes_of
from tests.corpus.history import Finding, Line, joined, names, read, text_of
from tests.engine.bucket_rows import computed
from tests.engine.captured_rows import bucket_of, states_of

FACTS = ("group_snapshots", "member_snapshots", "ownership_changes", "coverage", "violations")
RESULTS = ("rebalances", "violations")
Rows = dict[str, list[dict[str, Any]]]


@dataclass(slots=True)
class Found:
    """Findings of one history, and the causes of its generations, in the form of a label."""

    findings: list[Finding] = field(default_factory=list)
    causes: dict[str, list[str]] = field(default_factory=dict)


def ledger_of(folder: Path, histories: Iterable[str]) -> str:
    """A ledger of these histories, each a cluster of its own, with what `assign` makes of them."""
    rows: Rows = {name: [] for name in (*FACTS, *RESULTS, "topic_snapshots", "log_records")}
    bucket: list[dict[str, Any]] = []
    for name in histories:
        lines, listings = read(name)
        bucket += _read_in(rows, name, lines, listings)
    results = computed(bucket)
    for table in RESULTS:
        rows[table] += results[table]
    place: str = write(folder, **rows)
    return place


def _read_in(rows: Rows, name: str, lines: list[Line], listings: list[Line]) -> Iterator[dict[str, Any]]:
    """Write down the facts of a history; gives what is computed from."""
    changes = changes_of(listings)
    rows["topic_snapshots"] += topic_rows(name, changes)
    for group, of_group in by_group(lines).items():
        rows["log_records"] += log_record_rows(name, group, of_group)
        folded = fold_group(name, of_group, None, TopicHistory(changes))
        for table in FACTS:
            rows[table] += fact_rows(getattr(folded, table))
        yield from bucket_of(group, folded, of_group, states_of(listings), cluster_id=name)


def by_group(lines: list[Line]) -> Mapping[str, tuple[LogRow, ...]]:
    groups: dict[str, list[LogRow]] = {}
    for line in lines:
        key, value = b64decode(line["key"]), line["value"]
        place = line["partition"], line["offset"], line["timestamp"]
        row = LogRow(*place, key, None if value is None else b64decode(value))
        groups.setdefault(decode_key(key).group_id or "", []).append(row)
    return {group: tuple(rows) for group, rows in sorted(groups.items())}


def found(reader: LedgerReader, histories: Iterable[str], together: Mapping[str, list[str]]) -> dict[str, Found]:
    """What the answers say of each history; `together` are the topics that its application joins."""
    every = {name: Found() for name in histories}
    rows = records(reader, SNAPSHOTS)
    numbers = {row["snapshot_id"]: row["number"] for row in rows}
    asked: list[tuple[RequestedScope, tuple[str, ...]]] = [(RequestedScope(), ())]
    asked += [(RequestedScope(cluster=name), tuple(topics)) for name, topics in sorted(together.items())]
    for what, topics in asked:
        for each in audit(reader, what, topics).found:
            if bool(topics) == (each.cluster_id in together):
                number = None if each.snapshot_id is None else numbers[each.snapshot_id]
                finding = Finding(each.code, each.severity.value, each.records, number)
                every[each.cluster_id].findings.append(finding)
    for cluster, of_generation, causes in _causes(reader, rows):
        known = every[cluster].causes
        known[of_generation] = sorted([*known.get(of_generation, ()), *causes])
    for one in every.values():
        one.findings.sort()
    return every


SNAPSHOTS = f"SELECT q.* FROM ({rebalance_states('true')}) q ORDER BY q.cluster_id, q.group_id, q.offset"


def _causes(reader: LedgerReader, rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, list[str]]]:
    """Cluster, generation and causes: of each record of a classic group, of each epoch of another."""
    own = [row | {"previous_snapshot_id": row["before_id"]} for row in rows if row["represents"]]
    why = caused(reader, own)
    for row in own:
        number = "deleted" if row["number"] is None else str(row["number"])
        yield row["cluster_id"], number, [each.kind.value for each in why[row["snapshot_id"]].causes]


def scored_lines(answers: Mapping[str, Found]) -> list[Line]:
    """What was found, as corpus/score.py reads it."""
    return [
        {"history": name, "findings": sorted({each.code for each in one.findings}), "causes": one.causes}
        for name, one in sorted(answers.items())
    ]


def main() -> None:
    """All histories."""
    with tempfile.TemporaryDirectory() as folder:
        reader = LedgerReader(ledger_of(Path(folder), names()))
        sys.stdout.write(text_of(scored_lines(found(reader, names(), joined()))))


if __name__ == "__main__":
    main()
