"""Surrogates for the names of many groups at once, and heads that no longer know any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice, pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from groupledger.core.arrays.java_orders import hash_texts
from groupledger.core.history import HeldSnapshot, HoldingMember, OwnershipChangeRow, held_by, held_changes
from groupledger.core.history.head import closed_head
from groupledger.engine.arrow_lists import assignments, list_starts, tuples
from groupledger.engine.buckets import by_group
from groupledger.engine.envelope import SCHEMAS, columns_of
from groupledger.tables import OWNERSHIP_CHANGES
from groupledger.tables import columns as c

MARK = "~"
"""First character of every surrogate."""

_WIDTH = 8
_LOWEST = ord("0")
_BASE = 31  # String.hashCode multiplies by this: 31 consecutive characters are the digits of a number, `0` to `N`
_DIGITS = 7  # the least with 31 ** 7 >= 2 ** 32: enough digits for every hash


def surrogates(names: Iterable[str], series: int) -> dict[str, str]:
    """Return a surrogate for each name: same hash code, same order among themselves, all distinct.

    Surrogates of another `series` (at least 0) differ. `{"b": "~0-00000002-...", "a": "~0-00000001-..."}`
    """
    in_order = sorted(set(names), key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    hashes = hash_texts(in_order)
    stems = (f"{MARK}{series:x}-{number:0{_WIDTH}x}-" for number in range(1, len(in_order) + 1))
    return {name: _with_hash(stem, int(code)) for name, stem, code in zip(in_order, stems, hashes, strict=True)}


def _with_hash(stem: str, code: int) -> str:
    """Append seven characters to the ASCII stem so that the result has this hash code."""
    reached = 0
    for character in stem + chr(_LOWEST) * _DIGITS:
        reached = reached * _BASE + ord(character)
    rest = (code - reached) % 2**32
    digits = []
    for _ in range(_DIGITS):
        rest, digit = divmod(rest, _BASE)
        digits.append(chr(_LOWEST + digit))
    return stem + "".join(reversed(digits))


KIND, NAME, SURROGATE = "kind", "name", "surrogate"
_NAMED = (c.CLUSTER_ID, c.GROUP_ID, KIND, NAME)


def with_surrogates(names: DataFrame, series: int, tasks: int) -> DataFrame:
    """Give the distinct names (cluster_id, group_id, kind, name) a surrogate each.

    Order and hash codes are kept among the names of one kind in one group, as `engine.renaming` promises; the same
    names give the same surrogates. One group's names of one kind are in a worker's memory at a time.
    """
    schema = StructType([StructField(name, StringType()) for name in (*_NAMED, SURROGATE)])

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for key, rows in groupby(_rows(batches), key=lambda row: row[:-1]):
            found = surrogates([name for *_, name in rows], series)
            columns = [*([value] * len(found) for value in key), [*found], [*found.values()]]
            yield pa.RecordBatch.from_arrays([pa.array(each, pa.string()) for each in columns], schema.names)

    return by_group(names.select(*_NAMED), tasks, KIND).mapInArrow(call, schema)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, ...]]:
    for batch in batches:
        yield from tuples(batch, *_NAMED)


def closed(state: Column) -> Column:
    """Heads (`group_heads.state`) as `core.history.head.closed_head` leaves them."""
    return F.udf(lambda head: closed_head(bytes(head)), "binary", useArrow=False)(state)


# Derive the changes of ownership between snapshots of users' own tables, one group after another.

HOLDERS = "holders"
OUTPUT, _SCHEMA = columns_of(OWNERSHIP_CHANGES), SCHEMAS[OWNERSHIP_CHANGES.name]
TOGETHER = 100
"""Snapshots that become Python objects at once."""
CHANGES_A_BATCH = 20_000
_SNAPSHOT = tuple(name for name in HeldSnapshot._fields if name != "held")


def ownership_changes(groups: DataFrame, members: DataFrame, tasks: int) -> DataFrame:
    """Rows of `ownership_changes` (without the attempt) from all snapshots of some groups, and their members."""
    holder = F.collect_list(F.struct(*HoldingMember._fields)).alias(HOLDERS)
    held = members.groupBy(c.SNAPSHOT_ID).agg(holder)
    snapshots = groups.withColumn(c.OBSERVED_AT, F.unix_micros(c.OBSERVED_AT)).select(*_SNAPSHOT)
    rows = snapshots.join(held, c.SNAPSHOT_ID, "left").select(*_SNAPSHOT, HOLDERS)
    return by_group(rows, tasks, c.INCARNATION, c.OFFSET, c.SNAPSHOT_ID).mapInArrow(changes_of, OUTPUT)


def changes_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the changes of groups whose snapshots come in order, group after group: no group is in memory whole."""
    snapshots = chain.from_iterable(map(_snapshots, batches))
    groups = groupby(snapshots, key=lambda snapshot: (snapshot.cluster_id, snapshot.group_id))
    changes = chain.from_iterable(held_changes(own) for _, own in groups)
    while rows := list(islice(changes, CHANGES_A_BATCH)):
        columns = dict(zip(OwnershipChangeRow._fields, zip(*rows, strict=True), strict=True))  # times in microseconds
        yield pa.RecordBatch.from_pydict({name: columns[name] for name in OUTPUT.names}, schema=_SCHEMA)


def _snapshots(batch: pa.RecordBatch) -> Iterator[HeldSnapshot]:
    for at in range(0, batch.num_rows, TOGETHER):
        rows = batch.slice(at, TOGETHER)
        holders = rows.column(HOLDERS)
        each = pc.list_flatten(holders)
        member_ids, *lists = (each.field(name) for name in HoldingMember._fields)
        members = list(map(HoldingMember, member_ids.to_pylist(), *map(assignments, lists)))
        held = [held_by(members[low:high]) for low, high in pairwise(list_starts(holders).tolist())]
        yield from map(HeldSnapshot, *(rows.column(name).to_pylist() for name in _SNAPSHOT), held)
