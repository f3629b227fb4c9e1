"""Convert the usual shapes of owned partitions to lists of topics, each with its partitions.

- `array<struct<topic, partitions: array<int>>>`, as the ledger has them;
- `array<struct<topic, partition: int>>`;
- `map<string, array<int>>`, by topic;
- `array<string>` of `topic-3`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegralType, MapType, StringType, StructType

from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

WORDS = (
    "array<struct<topic:string,partitions:array<int>>>, array<struct<topic:string,partition:int>>, "
    "map<string,array<int>> or array<string> of topic-3"
)
_NUMBERED = r"^(.+)-([0-9]+)$"


def as_lists(value: Column, kind: DataType) -> Column:
    """Return the partitions by topic, topics and partitions in order of appearance; what has another shape as it is.

    Topics of a map come in the order of their names. A text without a number gives its topic a partition that is null.
    """
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return F.transform(F.array_sort(F.map_entries(value)), lambda entry: _entry(entry["key"], entry["value"]))
    if not isinstance(kind, ArrayType):
        return value
    each = kind.elementType
    if isinstance(each, StringType):
        return _by_topic(F.transform(value, _numbered))
    if isinstance(each, StructType) and c.PARTITIONS not in each.names and _is_number(each, c.PARTITION):
        return _by_topic(F.transform(value, lambda pair: F.struct(pair[c.TOPIC], pair[c.PARTITION])))
    return value


def _is_number(pair: StructType, name: str) -> bool:
    return {c.TOPIC, name} <= set(pair.names) and isinstance(pair[name].dataType, IntegralType)


def _numbered(text: Column) -> Column:
    whole = text.rlike(_NUMBERED)
    topic = F.when(whole, F.regexp_extract(text, _NUMBERED, 1)).otherwise(text)
    number = F.when(whole, F.regexp_extract(text, _NUMBERED, 2).try_cast("int"))
    return F.struct(topic.alias(c.TOPIC), number.alias(c.PARTITION))


def _by_topic(pairs: Column) -> Column:
    """Gather pairs of a topic and a partition."""

    def of(topic: Column) -> Column:
        own = F.filter(pairs, lambda pair: pair[c.TOPIC].eqNullSafe(topic))
        return _entry(topic, F.transform(own, lambda pair: pair[c.PARTITION]))

    return F.transform(F.array_distinct(F.transform(pairs, lambda pair: pair[c.TOPIC])), of)


def _entry(topic: Column, partitions: Column) -> Column:
    return F.struct(topic.alias(c.TOPIC), partitions.alias(c.PARTITIONS))
