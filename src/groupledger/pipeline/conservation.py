"""What goes in comes out: the equations that every run of `assign` must satisfy, and records both sides of.

- Rows in, by kind, are the rows that reached the assignors; groups in are outcomes out.
- Members of the groups that got an outcome are rows of `assignments`; those of a rejected group are its quarantine row.
- Partitions of subscribed topics, and those assigned beyond them (the record may know a topic better than the listings,
  or name two owners), are kept, added or unassigned; every unassigned one has its reason.

A run that cannot say so is a bug of ours: it ends in an AssertionError, and nothing of it counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupledger.engine.result_counts import BEYOND, EACH_SIDE, MEMBERS_OUT, MISSING, OUTCOME, REASONS, SUM
from groupledger.engine.results import REJECTED
from groupledger.tables import ASSIGNMENTS, QUARANTINE

GROUPS = "groups"


def assert_conserved(
    counts_in: Mapping[str, int], received: Mapping[str, int], counts_out: Mapping[str, int], outcomes: int
) -> None:
    """AssertionError where an equation does not hold, with both of its sides.

    `counts_in` counts the rows by kind as they were read, `received` as they came out of the shuffle.
    """

    def out(name: str) -> int:
        return counts_out.get(name, 0)

    def total(name: str) -> int:
        return out(f"{SUM}{name}")

    partitions, kept, added, unassigned = map(total, EACH_SIDE)
    equations = (
        *((f"{kind} read, {kind} received", counts_in[kind], number) for kind, number in received.items()),
        ("groups in, outcomes out", counts_in[GROUPS], outcomes),
        ("groups rejected, rows of quarantine", out(f"{OUTCOME}{REJECTED}"), out(QUARANTINE.name)),
        ("members with an outcome, rows of assignments", total(MEMBERS_OUT), out(ASSIGNMENTS.name)),
        ("partitions beyond what is assigned or unassigned, none", total(MISSING), 0),
        (
            "partitions and those beyond, kept + added + unassigned",
            partitions + total(BEYOND),
            kept + added + unassigned,
        ),
        ("partitions unassigned, those with a reason", unassigned, total(REASONS)),
    )
    for what, left, right in equations:
        if left != right:
            raise AssertionError(f"{what}: {left} and {right}; expected as many")
