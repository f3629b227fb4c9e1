"""What the hash of a row of a table is made of, for all who compute it: SQL in `sinks.append`, columns in the engine.

Two hashes of 64 bits are computed of each row, in halves of 32 bits that are summed up: no order is in the sums, and
they do not overflow below 2^31 rows. Each begins with its seed; a number before each column says where it begins, since
the hash passes over nulls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.tables.declaration import Table

SEEDS = (1, 2)
SUMS = tuple(f"{half}_{seed}" for seed in SEEDS for half in ("low", "high"))
"""Names of the sums of halves, in order."""
FIRST_VERSION = 1


class HashedColumn(NamedTuple):
    """A column as hash input, behind its number.

    `as_json`: its JSON is hashed, where the hash would not see what stands inside: nulls, bounds of lists. `later`: a
    later schema version added it; where it is null, its number is left out, and an old row keeps its digest.
    """

    number: int
    field: StructField
    as_json: bool
    later: bool


def hashed_columns(table: Table) -> Iterator[HashedColumn]:
    """Yield the columns of a row's hash in order: all but the attempt."""
    later = table.unknown_to(FIRST_VERSION)
    hashed = [field for field in table.schema if field.name != c.ATTEMPT_ID]
    for number, field in enumerate(hashed):
        yield HashedColumn(number, field, _is_ambiguous(field.dataType), field.name in later)


def _is_ambiguous(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return kind.containsNull or isinstance(kind.elementType, ArrayType) or _is_ambiguous(kind.elementType)
    if isinstance(kind, StructType):
        return any(inner.nullable or _is_ambiguous(inner.dataType) for inner in kind)
    return False
