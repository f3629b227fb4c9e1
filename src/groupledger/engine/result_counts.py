"""Count the input and the results of a bucket, for the account of the run (`pipeline.conservation`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from groupledger.core.verdict import Verdict
from groupledger.engine import rows as r
from groupledger.engine.envelope import NamedCount
from groupledger.engine.results import OUTCOMES, REJECTED
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

RECEIVED = "received."
OUTCOME, VERDICT, SUM = "outcome.", "verdict.", "sum."
"""What the names of counts begin with: of input rows by kind; of groups by outcome and by verdict; of all groups."""
BEYOND, MISSING, REASONS, MEMBERS_OUT = "beyond", "missing", "with_reason", "members_with_outcome"
"""Sums over groups: partitions that were assigned beyond those of subscribed topics, or are neither assigned nor
unassigned; unassigned ones with a reason; members of groups that got an outcome."""
SUMS = (c.MOVES, c.LEAST_MOVES, c.UNASSIGNED, c.ADDED, c.REVOKED, c.LOST)
"""Columns of `rebalances` whose sums a run tells."""
EACH_SIDE = (c.PARTITIONS, c.KEPT, c.ADDED, c.UNASSIGNED)
"""Columns of `rebalances` that the account of partitions is made of."""


def bucket_counts(bucket: pa.Table, rebalances: pa.Table) -> list[NamedCount]:
    """Count the rows of `rows.INPUT` that reached a bucket, and its rows of `rebalances`."""
    by_kind = np.bincount(bucket.column(r.ROW_KIND).to_numpy(), minlength=len(r.KINDS))
    received = [(f"{RECEIVED}{name}", int(number)) for name, number in zip(r.KINDS, by_kind, strict=True)]
    return [NamedCount(None, name, number) for name, number in (*received, *_of_results(rebalances)) if number]


def _of_results(rebalances: pa.Table) -> Iterator[tuple[str, int]]:
    for prefix, name, words in (
        (OUTCOME, c.OUTCOME, OUTCOMES),
        (VERDICT, c.VERDICT, [each.text for each in Verdict]),
    ):
        for word in words:
            yield f"{prefix}{word}", _sum(pc.equal(rebalances[name], word))
    for name in dict.fromkeys((*SUMS, *EACH_SIDE)):
        yield f"{SUM}{name}", _sum(rebalances[name])
    partitions, kept, added, unassigned = (rebalances[name] for name in EACH_SIDE)
    over = pc.subtract(pc.add(pc.add(kept, added), unassigned), partitions)
    yield f"{SUM}{BEYOND}", _sum(pc.max_element_wise(over, 0))
    yield f"{SUM}{MISSING}", _sum(pc.max_element_wise(pc.negate(over), 0))
    named = pc.list_flatten(rebalances[c.UNASSIGNED_PARTITIONS])
    yield f"{SUM}{REASONS}", _sum(pc.list_value_length(pc.struct_field(named, c.PARTITIONS)))
    has_outcome = pc.not_equal(rebalances[c.OUTCOME], REJECTED)
    yield f"{SUM}{MEMBERS_OUT}", _sum(rebalances[c.MEMBERS].filter(has_outcome))


def _sum(values: pa.ChunkedArray) -> int:
    return pc.sum(values).as_py() or 0
