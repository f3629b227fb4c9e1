"""The rows of a bucket by kind: one table of all of them comes from Spark, with empty lists for null ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import column, integers, nulled, whole
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray


class Parts(NamedTuple):
    """The rows of a bucket by kind, with their null lists; groups by snapshot id."""

    groups: pa.Table
    members: pa.Table
    records: pa.Table


def parts_of(table: pa.Table) -> Parts:
    """Take a bucket's table apart. Every row is used: a row of no known kind is a bug of ours."""
    kind = integers(column(whole(table.select([r.ROW_KIND])), r.ROW_KIND), -1)
    groups, *others = parts = [_of_kind(table, kind, each) for each in r.FIELDS]
    if sum(map(len, parts)) != len(table):
        unknown = sorted(set(kind.tolist()) - r.FIELDS.keys())
        raise AssertionError(f"rows of kinds {unknown} in a bucket; expected {sorted(r.FIELDS)}")
    return Parts(groups.take(pc.sort_indices(column(groups, c.SNAPSHOT_ID))).combine_chunks(), *others)


def _of_kind(table: pa.Table, kind: LongArray, wanted: int) -> pa.Table:
    """The rows of one kind with the columns that are theirs, and their null lists null again."""
    rows = whole(table.select(r.FIELDS[wanted]).filter(pa.array(kind == wanted)))
    absent = integers(column(rows, r.ABSENT), 0)
    for place, name in enumerate(r.LISTS):
        missing = (absent >> place) & 1 == 1
        if name in r.FIELDS[wanted] and missing.any():
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), nulled(column(rows, name), missing))
    return rows
