"""What counts of a fold in parts: a head that says so supersedes what was said of the records behind its start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from groupledger.core.history import Folded, LogRow, TopicHistory, fold_group

TABLES = ("group_snapshots", "member_snapshots", "ownership_changes", "coverage", "quarantine", "violations")
Facts = dict[str, list[Any]]


def in_parts(rows: Sequence[LogRow], cuts: Iterable[int], topics: TopicHistory) -> list[Folded]:
    """Fold rows in parts, each from the head of the one before."""
    parts, head = list[Folded](), None
    for start, end in pairwise([0, *cuts, len(rows)]):
        parts.append(fold_group("eu-1", rows[start:end], head, topics))
        head = head if parts[-1].head is None else parts[-1].head.state
    return parts


def together(parts: Iterable[Folded]) -> Facts:
    """The rows that count, by table."""
    facts: Facts = {table: [] for table in TABLES}
    for part in parts:
        if part.head is not None and part.head.refolded:
            start = part.head.from_offset
            facts = {table: [row for row in rows if row.offset <= start] for table, rows in facts.items()}
        facts = {table: [*rows, *getattr(part, table)] for table, rows in facts.items()}
    return facts
