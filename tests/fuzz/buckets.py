"""Break the rows of captured groups by seed and hold what `assign` computes of a bucket against what it promises.

Of every bucket: no exception, whatever its rows hold; each group has the rows that it has in a bucket of its own,
also with the rows in another order. Out of bounds is an exception where kernels run with NUMBA_BOUNDSCHECK=1.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

from groupledger.core.assignors import ASSIGNORS
from groupledger.engine.bucket_rows import CHOSEN, GROUP_ROW, MEMBER_ROW, ROW_KIND
from groupledger.tables import columns as c
from tests.engine.bucket_rows import AS_KAFKA, KIP, TOPIC, computed
from tests.engine.captured_rows import CAPTURES, captured_groups, rows_of
from tests.fuzz.mutations import INT32

Rows = list[dict[str, Any]]
PARTITIONS = (*INT32[:-2], 7, 1_000_000, INT32[-1])
RACKS = ("r1", "r2", "", None)


def check_buckets(seed: int, buckets: int) -> Counter[str]:
    """Break so many buckets; return the result rows, as text, with how often each was there."""
    rows: Counter[str] = Counter()
    for number in range(buckets):
        dice = random.Random(f"{seed}-{number}-bucket")  # noqa: S311 seeded on purpose, nothing secret
        capture = dice.choice(CAPTURES)
        some = dice.sample(known := captured_groups(capture), min(3, len(known)))
        groups = [broken(copy.deepcopy(rows_of(capture, each)), dice) for each in some]
        try:
            rows += check_bucket(groups, dice)
        except Exception as failure:
            failure.add_note(f"bucket {number} of seed {seed}")
            raise
    return rows


def check_bucket(groups: list[Rows], dice: random.Random) -> Counter[str]:
    """Compute groups together, in some order of rows, and each by itself."""
    calculation = dice.choice((AS_KAFKA, KIP))
    together = [row for rows in groups for row in rows]
    found = placed(computed(dice.sample(together, len(together)), calculation))
    alone: Counter[str] = Counter()
    for rows in groups:
        alone += placed(computed(rows, calculation))
    assert found == alone, next(iter((found - alone) | (alone - found)))
    return found


def placed(result: dict[str, Rows]) -> Counter[str]:
    """Result rows by table, as text: how often each is there."""
    return Counter(f"{table} {sorted(row.items())}" for table, rows in result.items() for row in rows)


def broken(rows: tuple[dict[str, Any], ...], dice: random.Random) -> Rows:
    """A group with rows that are missing, other partition counts, racks, claims, generations and assignors."""
    racked, torn = dice.random() < 0.6, dice.random() < 0.5
    kept = [row for row in rows if not torn or dice.random() > 0.05]
    for row in kept:
        if row[ROW_KIND] == GROUP_ROW and row.get(CHOSEN) and dice.random() < 0.1:
            row[CHOSEN] = dice.choice(sorted(ASSIGNORS))
        if row[ROW_KIND] == TOPIC and row[c.PARTITION_COUNT] is not None:
            _break_topic(row, dice, racked=racked)
        if row[ROW_KIND] == MEMBER_ROW:
            _break_member(row, dice, racked=racked)
    return kept


def _break_topic(row: dict[str, Any], dice: random.Random, *, racked: bool) -> None:
    if dice.random() < 0.15:
        row[c.PARTITION_COUNT] = max(0, row[c.PARTITION_COUNT] + dice.choice((-2, -1, 1, 3)))
    if racked:
        listed = max(0, row[c.PARTITION_COUNT] + dice.choice((0, 0, 0, 0, 1, -1)))
        row[c.RACKS] = [dice.choices(RACKS, k=dice.randint(0, 3)) for _ in range(listed)]


def _break_member(row: dict[str, Any], dice: random.Random, *, racked: bool) -> None:
    if racked and dice.random() < 0.7:
        row[c.RACK_ID] = dice.choice(RACKS)
    for name in (c.CLAIMED, c.RECORDED):
        if row.get(name) and dice.random() < 0.1:
            dice.choice(row[name])["partitions"].append(dice.choice(PARTITIONS))
    if dice.random() < 0.05:
        row |= {name: dice.choice((None, *INT32)) for name in (c.CLAIMED_GENERATION, c.SUBSCRIPTION_GENERATION)}
