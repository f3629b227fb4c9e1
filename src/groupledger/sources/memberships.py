"""Read tables of memberships, a row a member of a group at a moment, as snapshots; and of their topics.

`groupledger.tables.facts` declares their columns. The rows of a group at one moment are a snapshot. Its position is the
moment in microseconds, and its id is made of cluster, group and moment, so that neither depends on the order of rows. A
row that cannot be used sends the rows of its snapshot to quarantine; other snapshots are unaffected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, IntegralType, MapType, StringType, StructType

from groupledger.core.secrets import without_secrets
from groupledger.sources.files import Files, paths
from groupledger.sources.opening import PROBLEM, Rows, SourceFault
from groupledger.sources.snapshot_tables import (
    SOURCE_KIND,
    GivenTable,
    SnapshotRows,
    of_frame,
    rows_of_topics,
    snapshots_of,
)
from groupledger.tables import columns as c
from groupledger.tables.facts import (
    GROUPS,
    MEMBERS,
    MEMBERSHIP_AS_IS,
    MEMBERSHIPS,
    OWNED,
    RACK,
    TOPIC_COUNTS,
    GivenForm,
)

_ASSIGNORS = "assignors"


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A table as it was opened: its rows as they are, their files, and its name in messages and quarantine rows."""

    frame: DataFrame
    files: Files
    name: str


def read(
    members: OpenedTable, topics: OpenedTable | None, cluster_id: str, columns: Mapping[str, str], *, most_claims: int
) -> SnapshotRows:
    """Read memberships and topics; `columns`: their names of columns, by ours; `cluster_id`: the default cluster.

    Raises SourceFault FOREIGN_SCHEMA.
    """
    opened = [members, *([] if topics is None else [topics])]
    _require(columns, opened)
    given = _given(members, MEMBERSHIPS, columns)
    rows = _placed(given.rows, cluster_id)
    found = snapshots_of(_groups(rows), _members(rows), (members.name, members.name), cluster_id, most_claims)
    counts = None if topics is None else _given(topics, TOPIC_COUNTS, columns)
    listed = None if topics is None or counts is None else _topics(counts, topics.name, cluster_id)
    files = tuple(each.files for each in (given, counts) if each is not None)
    return SnapshotRows(found.groups, replace(found.members, arrivals=given.arrivals), listed, files, derived=True)


def _require(columns: Mapping[str, str], opened: list[OpenedTable]) -> None:
    there = {name for place in opened for name in paths(place.frame.schema)}
    for name, column in columns.items():
        if column not in there:
            place = " and ".join(each.name for each in opened)
            words = f"column {column} (columns.{name}) is missing; it has {', '.join(sorted(there))}"
            raise SourceFault("FOREIGN_SCHEMA", f"{without_secrets(place)}: {words}")


def _given(place: OpenedTable, form: GivenForm, columns: Mapping[str, str]) -> GivenTable:
    known = paths(place.frame.schema)
    own = {name: known[columns.get(name, name)] for name in form.columns if columns.get(name, name) in known}
    values = {name: each.column for name, each in own.items()}
    if OWNED in own:
        values[OWNED] = as_lists(own[OWNED].column, own[OWNED].kind)
    frame = place.frame.select(*(value.alias(name) for name, value in values.items()))
    return of_frame(frame, form, place.files, place.name, {OWNED: WORDS})


def _placed(rows: DataFrame, cluster_id: str) -> DataFrame:
    """Add what the snapshot of a row is: its cluster, position and id; null where the row does not say which."""
    cluster = F.coalesce(c.CLUSTER_ID, F.lit(cluster_id))
    offset = F.unix_micros(c.OBSERVED_AT)
    words = [F.lit(f"{SOURCE_KIND}/"), cluster, F.lit("/"), F.col(c.GROUP_ID), F.lit("/"), offset.cast("string")]
    return rows.withColumns({c.CLUSTER_ID: cluster, c.OFFSET: offset, c.SNAPSHOT_ID: F.concat(*words)})


def _groups(rows: DataFrame) -> DataFrame:
    """Make the group row of each snapshot."""
    of_group = [c.SNAPSHOT_ID, c.CLUSTER_ID, c.GROUP_ID, c.OFFSET, c.OBSERVED_AT]
    assignor, generation = F.min(c.ASSIGNOR).alias(c.ASSIGNOR), F.max(c.GENERATION).alias(c.GENERATION)
    named = F.collect_set(F.coalesce(c.ASSIGNOR, F.lit(""))).alias(_ASSIGNORS)
    groups = rows.where(F.col(c.SNAPSHOT_ID).isNotNull()).groupBy(*of_group).agg(assignor, generation, named)
    words = "BAD_VALUE: members name different assignors; expected one in all rows of a snapshot, or none"
    wrong = F.when(F.size(_ASSIGNORS) > 1, F.lit(words))
    return _in_form(groups, GROUPS, {}, wrong, F.lit(None).cast("string"))


def _members(rows: DataFrame) -> DataFrame:
    said = {
        c.SNAPSHOT_ID: F.col(c.SNAPSHOT_ID),
        c.MEMBER_ID: F.col(c.MEMBER_ID),
        c.TOPICS: F.col(c.TOPICS),
        c.RACK_ID: F.col(RACK),
        c.SUBSCRIPTION_GENERATION: F.col(c.GENERATION),
        **dict.fromkeys((c.CLAIMED, c.RECORDED), F.col(OWNED)),
        **{name: F.col(name) for name in MEMBERSHIP_AS_IS},
    }
    unsaid = {name: F.lit(None) for name in MEMBERS.columns if name not in said}
    return _in_form(rows, MEMBERS, {**said, **unsaid}, F.col(PROBLEM), F.col(c.ROW))


def _in_form(rows: DataFrame, form: GivenForm, said: Mapping[str, Column], problem: Column, row: Column) -> DataFrame:
    """Return the columns of a form, null unless they are `said` or there."""
    kinds = {name: form.table.schema[name].dataType for name in form.columns}
    there = {name: F.col(name) if name in rows.columns else F.lit(None) for name in kinds}
    values = [(said.get(name, there[name])).cast(kind.simpleString()).alias(name) for name, kind in kinds.items()]
    return rows.select(*values, row.alias(c.ROW), problem.alias(PROBLEM))


def _topics(counts: GivenTable, place: str, cluster_id: str) -> Rows:
    """Return topics as changes; a row without a moment has none yet (`pipeline.ingest`)."""
    renamed = {c.PARTITIONS: c.PARTITION_COUNT, c.OBSERVED_AT: c.VALID_FROM}
    same = Window.partitionBy(F.coalesce(c.CLUSTER_ID, F.lit(cluster_id)), c.TOPIC, c.OBSERVED_AT)
    several = F.size(F.collect_set(c.PARTITIONS).over(same)) > 1
    words = F.concat(F.lit("TOPIC_TWICE: topic "), c.TOPIC, F.lit(" has several partition counts; expected one row"))
    rows = counts.rows.withColumn(PROBLEM, F.coalesce(PROBLEM, F.when(several, words))).withColumnsRenamed(renamed)
    return rows_of_topics(replace(counts, rows=rows), place, cluster_id)


# Convert the usual shapes of owned partitions to lists of topics, each with its partitions.
#
# - `array<struct<topic, partitions: array<int>>>`, as the ledger has them;
# - `array<struct<topic, partition: int>>`;
# - `map<string, array<int>>`, by topic;
# - `array<string>` of `topic-3`.

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
    names = set(each.names) if isinstance(each, StructType) else set()
    if isinstance(each, StructType) and names & {c.TOPIC, c.PARTITION, c.PARTITIONS} == {c.TOPIC, c.PARTITION}:
        if not isinstance(each[c.PARTITION].dataType, IntegralType):
            return value
        return _by_topic(F.transform(value, lambda pair: F.struct(pair[c.TOPIC], pair[c.PARTITION])))
    return value


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
