"""What an `assign` read, counted and digested on its way into the shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.engine import rows as r
from groupledger.tables import columns as c
from groupledger.tables.declaration import TOPIC_ID_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

DIGESTS = ("digest_1", "digest_2")
HASH = "row_hash"


def hashed(rows: DataFrame) -> DataFrame:
    """Rows of `engine.rows.INPUT` with a hash of each (`row_hash`): its bucket apart, of all that it says."""
    return rows.select("*", F.xxhash64(*_input_terms()).alias(HASH))


def input_metrics() -> list[Column]:
    """Rows by kind, and an order-free digest of all of them."""
    halves = {DIGESTS[0]: F.col(HASH).bitwiseAND(F.lit(0xFFFFFFFF)), DIGESTS[1]: F.shiftright(HASH, 32)}
    kinds = [F.count_if(F.col(r.ROW_KIND) == kind).alias(name) for kind, name in enumerate(r.KINDS)]
    return kinds + [F.sum(half).alias(name) for name, half in halves.items()]


def seen_input(rows: DataFrame, watch: Observation, received: Mapping[str, int]) -> Mapping[str, int | None]:
    """The metrics of the input, observed on its way into the shuffle; where they are not those of the rows that came
    out of it, counted anew: Spark adds to an observation once more what a task sees that it has to run once more."""
    seen: dict[str, int | None] = watch.get
    if all((seen[name] or 0) == number for name, number in received.items()):
        return seen
    return rows.agg(*input_metrics()).collect()[0].asDict()


def _input_terms() -> Iterator[Column]:
    """A row as hash input. The hash passes over nulls, so a number says where each column begins, and a list of entries
    is followed by its topic ids, a dash for each that is null (joined as text: Spark would interpret a `transform`).
    """
    for position, field in enumerate(r.INPUT):
        if field.name == r.BUCKET:
            continue
        yield F.lit(position)
        yield F.col(field.name)
        if field.dataType == TOPIC_ID_PARTITIONS:
            yield F.expr(f"array_join({field.name}.{c.TOPIC_ID}, ' ', '-')")
