"""What the oldest Spark we run on lacks, made from what it has (decision 0100): all such code is here."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WORD = 0xFFFFFFFF


def repartition_by_id(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """Rows whose `column` is i in partition i modulo `partitions`: DataFrame.repartitionById, which Spark 4.1 began.

    Spark 4.0 partitions by hash alone: for each partition it is given a number whose hash leads there.
    """
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, column)
    return by_hash(rows, partitions, column)


def by_hash(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """Return the same partitions by hashes alone."""
    keys = F.array(*map(F.lit, keys_of(partitions)))
    return rows.repartition(partitions, F.get(keys, F.pmod(F.col(column), F.lit(partitions))))


def keys_of(partitions: int) -> list[int]:
    """For each partition the least number that Spark's hash partitioning puts into it."""
    found: dict[int, int] = {}
    for key in count():
        found.setdefault(spark_hash(key) % partitions, key)
        if len(found) == partitions:
            return [found[partition] for partition in range(partitions)]
    raise AssertionError("count() does not end")


def spark_hash(number: int) -> int:
    """Spark's `hash` of an INT of 32 bits: Murmur3 with the seed 42, signed."""
    block = _rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    state = (_rotated((42 ^ block) & _WORD, 13) * 5 + 0xE6546B64) & _WORD
    state ^= 4  # bytes in an INT
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> shift) * factor & _WORD
    state ^= state >> 16
    return state - (state >> 31 << 32)


def _rotated(number: int, by: int) -> int:
    number &= _WORD
    return (number << by | number >> (32 - by)) & _WORD
