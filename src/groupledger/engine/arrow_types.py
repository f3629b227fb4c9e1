"""Arrow's types for Spark's, as Spark expects them back from a worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, StructField, StructType, TimestampType


def arrow_schema(fields: Iterable[StructField]) -> pa.Schema:
    """Return the schema of these columns, each of which may be null."""
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in fields])


def arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type Spark expects for a Spark type; timestamps are UTC microseconds."""
    if isinstance(kind, TimestampType):
        return pa.timestamp("us", tz="UTC")
    if isinstance(kind, StructType):
        return pa.struct([pa.field(f.name, arrow_type(f.dataType), f.nullable) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType), kind.containsNull))
    return to_arrow_type(kind)
