"""What the runs say of each group: generations, assignors, members, and how often we agree with the record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.tables import GROUP_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Row

    from groupledger.pipeline.frames import LedgerFrames

SNAPSHOTS, MEMBERS_MAX, ASSIGNORS, FIRST, LAST = "snapshots", "members_max", "assignors", "first", "last"


@dataclass(frozen=True, slots=True)
class GroupVerdicts:
    """One group in one scenario. `verdicts` counts its snapshots by verdict; `first` and `last` are generations."""

    cluster_id: str
    group_id: str
    group_type: str
    assignors: tuple[str, ...]
    snapshots: int
    first: int | None
    last: int | None
    members: int
    verdicts: Mapping[str, int]


def group_verdicts(ledger: LedgerFrames, scenario: str) -> tuple[GroupVerdicts, ...]:
    """Every group of every cluster, in order; a few rows a group leave Spark, however long its history is."""
    number = F.coalesce(c.GENERATION, c.GROUP_EPOCH)
    snapshots = ledger.current(GROUP_SNAPSHOTS).groupBy(c.CLUSTER_ID, c.GROUP_ID)
    groups = snapshots.agg(
        F.count("*").alias(SNAPSHOTS),
        F.min(number).alias(FIRST),
        F.max(number).alias(LAST),
        F.max(c.MEMBERS).alias(MEMBERS_MAX),
        F.array_sort(F.collect_set(c.ASSIGNOR)).alias(ASSIGNORS),
        F.max_by(c.GROUP_TYPE, c.OFFSET).alias(c.GROUP_TYPE),
    )
    results = ledger.results(scenario).where(F.col(c.ROUND) == 1)
    counted = results.groupBy(c.CLUSTER_ID, c.GROUP_ID, c.VERDICT).agg(F.count("*").alias(SNAPSHOTS))
    by_group: dict[tuple[str, str], list[Row]] = {}
    for row in counted.sort(c.CLUSTER_ID, c.GROUP_ID, c.VERDICT).collect():
        by_group.setdefault((row[c.CLUSTER_ID], row[c.GROUP_ID]), []).append(row)
    rows = groups.sort(c.CLUSTER_ID, c.GROUP_ID).collect()
    return tuple(_verdicts(row, by_group.get((row[c.CLUSTER_ID], row[c.GROUP_ID]), [])) for row in rows)


def _verdicts(group: Row, results: list[Row]) -> GroupVerdicts:
    return GroupVerdicts(
        group[c.CLUSTER_ID],
        group[c.GROUP_ID],
        group[c.GROUP_TYPE],
        tuple(group[ASSIGNORS]),
        group[SNAPSHOTS],
        group[FIRST],
        group[LAST],
        group[MEMBERS_MAX],
        {row[c.VERDICT]: row[SNAPSHOTS] for row in sorted(results, key=_by_number)},
    )


def _by_number(row: Row) -> tuple[int, str]:
    return -row[SNAPSHOTS], row[c.VERDICT]


def total(groups: Iterable[GroupVerdicts]) -> dict[str, int]:
    """All snapshots by verdict, the most frequent first."""
    counted: Counter[str] = Counter()
    for group in groups:
        counted.update(group.verdicts)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
