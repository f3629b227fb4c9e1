"""The topics that groups share: those of their cluster, of their moment, of a group, or of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.batch import NONE
from groupledger.core.input_codes import GroupCode, SnapshotCode
from groupledger.engine.arrow_lists import Column, column, integers, list_starts, valid
from groupledger.engine.memberships.kinds import ColumnKind, any_of, as_plain, numbered, whole_numbers
from groupledger.engine.topic_catalogue import SCHEMA, SINCE, TopicCatalogue
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray

Wrong = Mapping[tuple[int, str], tuple[str, str]]
"""Code and message by scope and topic."""


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """SharedTopics by scope: the number of the columns that they share with groups."""

    catalogue: TopicCatalogue
    wrong: Wrong


def scope_name(scope: LongArray) -> Column:
    """Return what stands for a cluster in the bucket: the scopes as texts."""
    return pa.array(scope).cast(pa.string())


def topics_of(scope: LongArray, topic: Column, partitions: Column, racks: Column | None) -> SharedTopics:
    """Return the topics of rows; `scope` of each, NONE: that of no group. A row without a name is of no topic."""
    topic = as_plain(topic, ColumnKind.TEXT)
    numbers, not_whole = whole_numbers(partitions)
    racks = pa.nulls(len(topic), SCHEMA.field(c.RACKS).type) if racks is None else as_plain(racks, ColumnKind.RACKS)
    mine = (scope != NONE) & valid(topic)
    low = integers(numbers, 0) < 0
    bad = {
        SnapshotCode.MISSING_VALUE: (~valid(numbers) & ~not_whole, "is null; expected a number >= 0"),
        SnapshotCode.BAD_VALUE: (not_whole, "is not a whole number of 32 bits; expected one >= 0"),
        GroupCode.NEGATIVE_PARTITION_COUNT: (low, "is below 0; expected >= 0"),
    }
    wrong: dict[tuple[int, str], tuple[str, str]] = {}
    for code, (mask, words) in bad.items():
        for row in np.flatnonzero(mask & mine).tolist():
            name = topic[row].as_py()
            wrong[int(scope[row]), name] = code, f"the partition count of topic {name!r} {words}"
    length = pc.list_value_length(racks)
    per_partition = pc.fill_null(pc.equal(length.cast(pa.int64()), numbers), True).to_numpy(zero_copy_only=False)
    lists = pc.list_flatten(racks)
    per_partition &= ~any_of(list_starts(racks), ~valid(lists))
    for row in np.flatnonzero(~per_partition & mine).tolist():
        name = topic[row].as_py()
        wrong.setdefault(
            (int(scope[row]), name), ("BAD_RACKS", f"racks of topic {name!r} are not one list a partition")
        )
    table = pa.table(
        {
            c.CLUSTER_ID: scope_name(scope),
            c.TOPIC: topic,
            c.PARTITION_COUNT: pc.if_else(pa.array(low), None, numbers).cast(pa.int32()),
            c.RACKS: pc.if_else(pa.array(per_partition), racks, None),
        }
    ).filter(pa.array(mine))
    _add_twice(table, wrong)
    empty = {SINCE: pa.repeat(pa.scalar(0, pa.int64()), len(table)), c.TOPIC_ID: pa.nulls(len(table), pa.string())}
    for name, values in empty.items():
        table = table.append_column(name, values)
    return SharedTopics(TopicCatalogue(table.select(SCHEMA.names)), wrong)


def _add_twice(table: pa.Table, wrong: dict[tuple[int, str], tuple[str, str]]) -> None:
    """Refuse topics with rows that differ; rows that are equal say nothing else than one."""
    names = [c.CLUSTER_ID, c.TOPIC]
    table = table.combine_chunks()
    number, _ = numbered([column(table, name) for name in names])
    again = np.bincount(number)[number] > 1 if len(number) else np.zeros(0, np.bool_)
    key = itemgetter(*names)
    rows = table.filter(pa.array(again)).select([*names, c.PARTITION_COUNT, c.RACKS]).to_pylist()
    for (scope, name), same in groupby(sorted(rows, key=key), key):
        told = [(each[c.PARTITION_COUNT], each[c.RACKS]) for each in same]
        if any(each != told[0] for each in told):
            counts = sorted({count for count, _ in told if count is not None})
            said = f"partition counts {' and '.join(map(str, counts))}" if len(counts) > 1 else "different racks"
            wrong.setdefault(
                (int(scope), name), (GroupCode.TOPIC_TWICE, f"topic {name!r} has {said}; expected one row")
            )
