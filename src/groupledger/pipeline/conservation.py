"""What goes in comes out: the equations that every run of `assign` must satisfy, and records both sides of.

- Rows in, by kind, are the rows that reached the assignors; groups in are outcomes out.
- Members of the groups that got an outcome are rows of `assignments`; those of a rejected group are its quarantine row.
- Partitions of subscribed topics, and those assigned beyond them (the record may know a topic better than the listings,
  or name two owners), are kept, added or unassigned; every unassigned one has its reason.

A run that cannot say so is a bug of ours: it ends in an AssertionError, and nothing of it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.tables import ASSIGNMENTS, QUARANTINE
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column

REJECTED = "REJECTED"
GROUPS = "groups"
BEYOND, MISSING, REASONS, MEMBERS_OUT, REFUSED = (
    "sum.beyond",
    "sum.missing",
    "sum.with_reason",
    "sum.members_with_outcome",
    f"outcome.{REJECTED}",
)
_EACH_SIDE = ("partitions", "kept", "added", "unassigned")


def metrics() -> dict[str, Column]:
    """Aggregates over rows of `rebalances`, observed as they are written."""
    over = F.col(c.KEPT) + F.col(c.ADDED) + F.col(c.UNASSIGNED) - F.col(c.PARTITIONS)
    named = F.aggregate(
        c.UNASSIGNED_PARTITIONS, F.lit(0).cast("bigint"), lambda total, entry: total + F.size(entry[c.PARTITIONS])
    )
    return {
        **{f"sum.{name}": F.sum(name) for name in _EACH_SIDE},
        BEYOND: F.sum(F.greatest(over, F.lit(0))),
        MISSING: F.sum(F.greatest(-over, F.lit(0))),
        REASONS: F.sum(named),
        MEMBERS_OUT: F.sum(F.when(F.col(c.OUTCOME) != REJECTED, F.col(c.MEMBERS))),
    }


def assert_conserved(
    counts_in: Mapping[str, int], received: Mapping[str, int], counts_out: Mapping[str, int], outcomes: int
) -> None:
    """AssertionError where an equation does not hold, with both of its sides.

    `counts_in` counts the rows by kind as they were read, `received` as they came out of the shuffle.
    """

    def out(name: str) -> int:
        return counts_out.get(name, 0)

    partitions, kept, added, unassigned = (out(f"sum.{name}") for name in _EACH_SIDE)
    equations = (
        *((f"{kind} read, {kind} received", counts_in[kind], number) for kind, number in received.items()),
        ("groups in, outcomes out", counts_in[GROUPS], outcomes),
        ("groups rejected, rows of quarantine", out(REFUSED), out(QUARANTINE.name)),
        ("members with an outcome, rows of assignments", out(MEMBERS_OUT), out(ASSIGNMENTS.name)),
        ("partitions beyond what is assigned or unassigned, none", out(MISSING), 0),
        ("partitions and those beyond, kept + added + unassigned", partitions + out(BEYOND), kept + added + unassigned),
        ("partitions unassigned, those with a reason", unassigned, out(REASONS)),
    )
    for what, left, right in equations:
        if left != right:
            raise AssertionError(f"{what}: {left} and {right}; expected as many")
