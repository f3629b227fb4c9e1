"""Read users' own `group_snapshots`, `member_snapshots` and `topic_snapshots`, as facts.

`groupledger.tables.facts` declares their columns. A snapshot whose rows contradict each other goes to quarantine as a
whole, its group row and its member rows; other snapshots are unaffected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from groupledger.core.log.described_groups import DescribedLines
from groupledger.core.log.lines import MOMENT, OFFSET, NumberRange, table_row
from groupledger.core.secrets import without_secrets
from groupledger.sources.files import Files, given_lines, open_table, parsed, paths, read_text, table_files, whole
from groupledger.sources.opening import BLANK, CORRUPT, PROBLEM, Arrivals, Rows, SourceFault, opened, split
from groupledger.sources.topic_listings import canonical_topic_id
from groupledger.tables import columns as c
from groupledger.tables.facts import (
    GROUPS,
    MEMBERS,
    MEMBERSHIP_AS_IS,
    MEMBERSHIPS,
    OWNED,
    RACK,
    TOPIC_COUNTS,
    TOPICS,
    GivenForm,
)

STAGE = "tables"
SOURCE_KIND = "table"
GROUP_TYPES = ("classic", "consumer", "share", "streams")
_EMPTY_STATES = ("Empty", "Dead")

_IDS, _PLACES, _COUNT, _WRONG, _TOPICS_OF = "ids", "places", "count", "wrong", "topics_of_members"
_CLAIMS = "claims"
MOST_CLAIMS = 2**62
_PARTITION_LISTS = (c.CLAIMED, c.RECORDED, c.TARGET, c.PENDING_REVOCATION)


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Rows of the three tables and of `quarantine`, all without the attempt. `topics` is None if not provided.

    `files` are those of the existing tables. `derived`: the groups are no rows of a user's, but made of `members`.
    """

    groups: Rows
    members: Rows
    topics: Rows | None
    files: tuple[Files, ...] = ()
    derived: bool = False

    def parts(self) -> list[Rows]:
        """Return the tables that there are."""
        groups = None if self.derived else self.groups
        return [rows for rows in (groups, self.members, self.topics) if rows is not None]


def are_there(spark: SparkSession, folder: str, kind: str, *, glob: bool = False) -> bool:
    """Return whether a folder has one of the tables that `read` needs, or no table of another form can be in it."""
    return kind not in ("parquet", "delta") or any(
        is_given(spark, folder, form, kind, glob=glob) for form in (GROUPS, MEMBERS)
    )


def read(
    spark: SparkSession, folder: str, kind: str, cluster_id: str, *, most_claims: int = MOST_CLAIMS, glob: bool = False
) -> SnapshotRows:
    """Read the tables in a folder; `kind` is parquet, delta, json or csv; `cluster_id` is the default cluster of rows.

    A snapshot whose members together claim more than `most_claims` partitions is rejected. Raises SourceFault as
    `read_given` does.
    """
    groups = read_given(spark, folder, GROUPS, kind, glob=glob)
    members = read_given(spark, folder, MEMBERS, kind, glob=glob)
    topics = read_given(spark, folder, TOPICS, kind, optional=True, glob=glob)
    assert groups is not None, "a required table is there or a fault"
    assert members is not None, "a required table is there or a fault"
    return _judged_together(folder, groups, members, topics, cluster_id, most_claims)


def described(
    spark: SparkSession, lines: DescribedLines, place: str, cluster_id: str, *, most_claims: int = MOST_CLAIMS
) -> SnapshotRows:
    """Return snapshots of groups described by an admin client; `place` replaces the folder in quarantine rows."""
    files = Files(place, place, ())
    groups = of_lines(given_lines(spark, list(lines.groups)), files, GROUPS)
    members = of_lines(given_lines(spark, list(lines.members)), files, MEMBERS)
    return _judged_together(place, groups, members, None, cluster_id, most_claims)


def _judged_together(
    folder: str, groups: GivenTable, members: GivenTable, topics: GivenTable | None, cluster_id: str, most_claims: int
) -> SnapshotRows:
    places = (table_path(folder, GROUPS), table_path(folder, MEMBERS))
    found = snapshots_of(groups.rows, members.rows, places, cluster_id, most_claims, named=_named)
    listed = None if topics is None else rows_of_topics(topics, table_path(folder, TOPICS), cluster_id)
    return SnapshotRows(
        replace(found.groups, arrivals=groups.arrivals),
        replace(found.members, arrivals=members.arrivals),
        listed,
        tuple(table.files for table in (groups, members, topics) if table is not None),
    )


def snapshots_of(
    groups: DataFrame,
    members: DataFrame,
    places: tuple[str, str],
    cluster_id: str,
    most_claims: int,
    named: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> SnapshotRows:
    """Judge group rows and member rows together; `places`: their names in quarantine rows.

    `named` gives snapshots the ids that the ledger has of them.
    """
    in_order = _in_order(members)
    judged = _judged(_filled_groups(groups, cluster_id), in_order, most_claims)
    return SnapshotRows(
        _groups(judged, places[0], named), _members(in_order, judged, places[1], cluster_id, named), None
    )


def table_path(folder: str, form: GivenForm) -> str:
    """Return a table's name in quarantine rows."""
    return f"{folder.rstrip('/')}/{form.table.name}"


def _named(rows: DataFrame) -> DataFrame:
    """Add the source to snapshot ids: `table/<cluster>/<the user's id>`."""
    ids = [name for name in (c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID, c.FIRST_SNAPSHOT_ID) if name in rows.columns]
    return rows.withColumns({name: F.concat(F.lit(f"{SOURCE_KIND}/"), c.CLUSTER_ID, F.lit("/"), name) for name in ids})


def _in_order(members: DataFrame) -> DataFrame:
    """Order members as given; without a given order, by member id."""
    by_id = Window.partitionBy(c.SNAPSHOT_ID).orderBy(c.MEMBER_ID)
    return members.withColumn(c.MEMBER_ORDER, F.coalesce(c.MEMBER_ORDER, F.row_number().over(by_id) - 1))


def _filled_groups(groups: DataFrame, cluster_id: str) -> DataFrame:
    texts = {c.GROUP_TYPE: "classic", c.PROTOCOL_TYPE: "consumer", c.SNAPSHOT_KIND: "generation", c.STATE: "Stable"}
    given = {name: F.coalesce(name, F.lit(text)) for name, text in texts.items()}
    given[c.OFFSET] = F.coalesce(c.OFFSET, F.unix_micros(c.OBSERVED_AT))
    given[c.CLUSTER_ID] = F.coalesce(c.CLUSTER_ID, F.lit(cluster_id))
    given[c.INCARNATION] = F.coalesce(c.INCARNATION, F.lit(0))
    given[c.COMPLETE] = F.coalesce(c.COMPLETE, F.lit(True))
    return groups.withColumns(given)


def _judged(groups: DataFrame, members: DataFrame, most_claims: int) -> DataFrame:
    """Return group rows with counts of their members, and their PROBLEM or that of a member."""
    counted = groups.join(_member_counts(members), c.SNAPSHOT_ID, "left").fillna(0, [_COUNT, _IDS, _PLACES, _CLAIMS])
    same = Window.partitionBy(c.SNAPSHOT_ID)
    position = Window.partitionBy(c.CLUSTER_ID, c.GROUP_ID, c.OFFSET)
    problems = _group_problem(F.count(F.lit(1)).over(same), F.count(F.lit(1)).over(position))
    claims = F.col(_CLAIMS)
    words = f" partitions; expected at most {most_claims} (limits.max_partitions_per_group)"
    over = F.when(claims > most_claims, _said("CLAIMS_OVER_LIMIT", "members claim ", claims, words))
    return counted.withColumn(PROBLEM, F.coalesce(PROBLEM, _WRONG, problems, over))


def _member_counts(members: DataFrame) -> DataFrame:
    """Return, per snapshot, counts of rows, distinct members, places and all topics, and a row's first problem."""
    topics = F.array_sort(F.array_distinct(F.flatten(F.collect_set(c.TOPICS))))
    none = F.lit(0).cast("bigint")
    claimed = F.aggregate(c.CLAIMED, none, lambda total, topic: total + F.size(topic[c.PARTITIONS]))
    return members.groupBy(c.SNAPSHOT_ID).agg(
        F.count(F.lit(1)).alias(_COUNT),
        F.count_distinct(c.MEMBER_ID).alias(_IDS),
        F.count_distinct(c.MEMBER_ORDER).alias(_PLACES),
        F.min(F.coalesce(PROBLEM, _member_problem())).alias(_WRONG),
        topics.alias(_TOPICS_OF),
        F.sum(F.coalesce(claimed, F.lit(0))).alias(_CLAIMS),
    )


def _member_problem() -> Column:
    """Report a negative partition, or a negative place."""
    negative = F.lit(False)
    for name in _PARTITION_LISTS:
        in_topic = F.exists(name, lambda topic: F.exists(topic[c.PARTITIONS], lambda partition: partition < 0))
        negative |= F.coalesce(in_topic, F.lit(False))
    text = F.concat(F.lit("NEGATIVE_PARTITION: member "), c.MEMBER_ID, F.lit(" has a partition below 0"))
    place = F.concat(F.lit("BAD_MEMBER_ORDER: member_order of member "), c.MEMBER_ID, F.lit(" is below 0"))
    return F.when(negative, text).when(F.col(c.MEMBER_ORDER) < 0, place)


def _group_problem(same_id: Column, same_position: Column) -> Column:
    """Return the first contradiction between the rows of a snapshot, or null."""
    rows, ids, places = (F.col(name).cast("string") for name in (_COUNT, _IDS, _PLACES))
    members = F.col(c.MEMBERS)
    alive = ~F.col(c.STATE).isin(*_EMPTY_STATES) & (F.coalesce(members, F.lit(1)) != 0)
    checks = [
        (
            ~F.col(c.OFFSET).between(OFFSET.least, OFFSET.most),
            _said("BAD_OFFSET", "offset is ", F.col(c.OFFSET), f"; expected {OFFSET.words}"),
        ),
        (
            ~F.col(c.GROUP_TYPE).isin(*GROUP_TYPES),
            _said("BAD_VALUE", "group_type is ", F.col(c.GROUP_TYPE), f"; expected {', '.join(GROUP_TYPES)}"),
        ),
        (same_id > 1, _said("SNAPSHOT_TWICE", "snapshot_id stands in ", same_id, " rows; expected one")),
        (
            same_position > 1,
            _said("POSITION_TWICE", "group and offset stand in ", same_position, " rows; expected one"),
        ),
        (F.col(_COUNT) > F.col(_IDS), _said("MEMBER_TWICE", rows, " member rows for ", ids, " different member ids")),
        (F.col(_COUNT) > F.col(_PLACES), _said("PLACE_TWICE", rows, " member rows for ", places, " places")),
        (alive & (F.col(_COUNT) == 0), _said("NO_MEMBERS", "no member row for a group in state ", F.col(c.STATE))),
        (
            members != F.col(_COUNT),
            _said("MEMBER_COUNT", "members is ", members, ", and there are ", rows, " member rows"),
        ),
    ]
    (condition, text), *rest = checks
    chosen = F.when(condition, text)
    for condition, text in rest:
        chosen = chosen.when(condition, text)
    return chosen


def _said(code: str, *parts: Column | str) -> Column:
    texts = [F.lit(part) if isinstance(part, str) else part.cast("string") for part in parts]
    return F.concat(F.lit(f"{code}: "), *texts, F.lit("; correct the rows of this snapshot"))


def _groups(judged: DataFrame, source: str, named: Callable[[DataFrame], DataFrame]) -> Rows:
    filled = judged.withColumns(
        {
            c.SOURCE: F.lit(SOURCE_KIND),
            c.LOG_PARTITION: F.lit(None),
            c.MEMBERS: F.col(_COUNT).cast("int"),
            c.SUBSCRIBED_TOPICS: F.when(
                F.col(c.SHARED_TOPICS).isNull(), F.coalesce(c.SUBSCRIBED_TOPICS, _TOPICS_OF)
            ).otherwise(F.col(c.SUBSCRIBED_TOPICS)),
        }
    )
    return _split(named(filled), GROUPS, source, (c.CLUSTER_ID, c.GROUP_ID, c.OFFSET, c.SNAPSHOT_ID, c.ROW))


def _members(
    members: DataFrame, judged: DataFrame, source: str, cluster_id: str, named: Callable[[DataFrame], DataFrame]
) -> Rows:
    """Return member rows with the group, the position and the problem of their snapshot."""
    names = (c.CLUSTER_ID, c.GROUP_ID, c.OFFSET)
    wrong = F.coalesce(F.min(PROBLEM), F.lit("")).alias(_WRONG)
    snapshots = judged.groupBy(c.SNAPSHOT_ID).agg(*(F.min(name).alias(name) for name in names), wrong)
    missing = F.lit("NO_GROUP_ROW: no row of group_snapshots has this snapshot_id; add it, or remove the members")
    found = F.when(F.col(_WRONG).isNull(), missing).when(F.col(_WRONG) != "", F.col(_WRONG))
    joined = members.join(snapshots, c.SNAPSHOT_ID, "left").withColumns(
        {PROBLEM: F.coalesce(PROBLEM, found), c.CLUSTER_ID: F.coalesce(c.CLUSTER_ID, F.lit(cluster_id))}
    )
    return _split(named(joined), MEMBERS, source, (*names, c.SNAPSHOT_ID, c.ROW))


def rows_of_topics(topics: GivenTable, source: str, cluster_id: str) -> Rows:
    """Return rows of `topic_snapshots` from rows of TOPICS."""
    count = F.col(c.PARTITION_COUNT)
    negative = F.concat(
        F.lit("BAD_PARTITION_COUNT: partition count of topic "),
        c.TOPIC,
        F.lit(" is "),
        count.cast("string"),
        F.lit("; expected 0 or more, or null where the topic was deleted"),
    )
    filled = topics.rows.withColumns(
        {
            c.CLUSTER_ID: F.coalesce(c.CLUSTER_ID, F.lit(cluster_id)),
            c.TOPIC_ID: canonical_topic_id(F.col(c.TOPIC_ID)),
            PROBLEM: F.coalesce(PROBLEM, F.when(count < 0, negative)),
        }
    )
    return replace(_split(filled, TOPICS, source, (c.CLUSTER_ID, c.ROW)), arrivals=topics.arrivals)


def _split(rows: DataFrame, form: GivenForm, source: str, known: Iterable[str]) -> Rows:
    kinds = {field.name: field.dataType for field in form.table.schema if field.name != c.ATTEMPT_ID}
    values = {name: F.col(name) if name in rows.columns else F.lit(None) for name in kinds}  # users provide no tasks
    good = [values[name].cast(kind.simpleString()).alias(name) for name, kind in kinds.items()]
    return split(rows, good, source, {c.STAGE: F.lit(STAGE), **{name: F.col(name) for name in known}})


# Read one table of a user, in the types of its declaration.
#
# Parquet and Delta have types: a column of another kind is a fault of the whole table. JSON and CSV are read as text
# (lists as JSON text): a value that does not fit is a fault of its row. CSV names its columns in a header; each line
# of JSON names them in its keys, so that a missing required one is a fault of the line.

_LIST_FIELDS = {c.TOPIC_ID, c.TOPIC, c.PARTITIONS}
_GOT = "_got_{}"
_LINE = "_line_problem"


@dataclass(frozen=True, slots=True)
class GivenTable:
    """One table of a user: `rows` have every column that a user may provide, ROW (their text) and PROBLEM.

    `arrivals` counts them; `files` are the files read.
    """

    rows: DataFrame
    arrivals: Arrivals
    files: Files


def read_given(
    spark: SparkSession, folder: str, form: GivenForm, kind: str, *, optional: bool = False, glob: bool = False
) -> GivenTable | None:
    """Read the table `<folder>/<name>`, or `<name>.<kind>`; None if it is optional and missing.

    Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FILES_PASSED_OVER, or FOREIGN_SCHEMA with table, column, got
    and expected.
    """
    try:
        files = _find(spark, f"{folder.rstrip('/')}/{form.table.name}", kind, glob=glob)
    except SourceFault as fault:
        if optional and fault.code == "SOURCE_MISSING":
            return None
        raise
    return (
        of_lines(read_text(spark, files, placed=True), files, form)
        if kind == "json"
        else of_frame(opened_frame(spark, files, form, kind), form, files, folder)
    )


def is_given(spark: SparkSession, folder: str, form: GivenForm, kind: str, *, glob: bool = False) -> bool:
    """Return whether `read_given` finds the table."""
    try:
        _find(spark, f"{folder.rstrip('/')}/{form.table.name}", kind, glob=glob)
    except SourceFault as fault:
        return fault.code != "SOURCE_MISSING"
    return True


def of_lines(lines: DataFrame, files: Files, form: GivenForm) -> GivenTable:
    """Read a table of lines from `read_text`."""
    texts = StructType([StructField(name, StringType()) for name in form.columns])
    raw = parsed(lines, texts, partial(table_row, columns=form.columns), files.shown)
    raw = raw.withColumnRenamed(PROBLEM, _LINE)
    given = raw.where(F.col(_LINE).isNull() | (F.col(_LINE) != BLANK))
    rows = _typed(given, form, F.coalesce(c.ROW, F.to_json(F.struct(*form.columns))))
    return GivenTable(rows, Arrivals(lines, raw.select(F.col(_LINE).alias(PROBLEM)), of_lines=True), files)


def opened_frame(spark: SparkSession, files: Files, form: GivenForm, kind: str) -> DataFrame:
    """Return the rows of a table of columns as they are; those of CSV are texts."""
    raw = _csv(spark, files) if kind == "csv" else open_table(spark, files, kind)
    if raw is not None:
        return raw
    declared = [StructField(name, form.table.schema[name].dataType) for name in form.columns]
    return spark.createDataFrame([], StructType(declared))


def of_frame(
    raw: DataFrame, form: GivenForm, files: Files, folder: str, shapes: Mapping[str, str] = MappingProxyType({})
) -> GivenTable:
    """Read the rows of a frame. `shapes`: of columns that may have several types, these in words."""
    _check(raw.schema, form, folder, shapes, textual=CORRUPT in raw.columns)
    line, text = F.lit(None).cast("string"), F.to_json(F.struct(*_named_columns(form, raw)))
    if CORRUPT in raw.columns:
        words = "MALFORMED_LINE: the line has other columns than the header; expected the columns that the header names"
        line, text = F.when(F.col(CORRUPT).isNotNull(), F.lit(words)), F.coalesce(CORRUPT, text)
    rows = _typed(raw.withColumn(_LINE, line), form, text)
    arrived = raw.select(F.lit(None).cast("string").alias(PROBLEM))  # blank lines of CSV are not rows
    return GivenTable(rows, Arrivals(raw, arrived, of_lines=False), files)


def _named_columns(form: GivenForm, raw: DataFrame) -> list[str]:
    return [name for name in form.columns if name in raw.columns]


def _find(spark: SparkSession, path: str, kind: str, *, glob: bool) -> Files:
    """Return the files at the first of the two places that has any."""
    try:
        return table_files(spark, path, kind, glob=glob)
    except SourceFault as fault:
        if fault.code != "SOURCE_MISSING":
            raise
        try:
            return table_files(spark, f"{path}.{kind}", kind, glob=glob)
        except SourceFault as second:
            raise (fault if second.code == "SOURCE_MISSING" else second) from None


def _csv(spark: SparkSession, files: Files) -> DataFrame | None:
    if files.is_empty:
        return None
    reader = spark.read.options(header=True, escape='"', columnNameOfCorruptRecord=CORRUPT, enforceSchema=False)
    reader = reader.option("recursiveFileLookup", str(not files.is_partitioned).lower()).format("csv")
    names = opened(lambda: reader.load(files.place), files.path).drop(CORRUPT).columns
    texts = StructType([StructField(name, StringType()) for name in [*names, CORRUPT]])
    return whole(opened(lambda: reader.schema(texts).load(files.place), files.path), files)


def _check(schema: StructType, form: GivenForm, folder: str, shapes: Mapping[str, str], *, textual: bool) -> None:
    for name in form.columns:
        expected = form.table.schema[name].dataType
        if name not in schema.names:
            if name in form.required:
                raise _foreign(form, folder, name, "missing", expected.simpleString())
        elif not textual and not _fits(schema[name].dataType, expected):
            words = shapes.get(name, expected.simpleString())
            raise _foreign(form, folder, name, schema[name].dataType.simpleString(), words)


def _foreign(form: GivenForm, folder: str, name: str, got: str, expected: str) -> SourceFault:
    message = f"table {form.table.name} in {folder}: column {name} is {got}, expected {expected}"
    return SourceFault("FOREIGN_SCHEMA", f"{message}; docs/operate/your-own-snapshots.md says which columns it has")


def _fits(got: DataType, expected: DataType) -> bool:
    """Return whether values of one type can be read as the other."""
    if isinstance(got, NullType):
        return True
    if isinstance(expected, ArrayType):
        return isinstance(got, ArrayType) and _fits(got.elementType, expected.elementType)
    if isinstance(expected, StructType):
        names = set(got.names) if isinstance(got, StructType) else set()
        return c.PARTITIONS in names and len(names & _LIST_FIELDS) > 1
    if isinstance(expected, TimestampType):
        return isinstance(got, TimestampType | TimestampNTZType | IntegralType)
    if isinstance(expected, IntegralType):
        return isinstance(got, IntegralType)
    if isinstance(expected, BinaryType):
        return isinstance(got, BinaryType | StringType)
    return isinstance(got, type(expected))


def _typed(raw: DataFrame, form: GivenForm, text: Column) -> DataFrame:
    """Return every column of the form in its type, null for values that do not fit, and the row's problem."""
    given = _named_columns(form, raw)
    columns = [_converted(raw, form, name).alias(name) for name in form.columns]
    kept = [F.col(name).alias(_GOT.format(name)) for name in given]
    rows = raw.select(*columns, *kept, F.col(_LINE), text.alias(c.ROW))
    return rows.select(*form.columns, c.ROW, _problem(form, given).alias(PROBLEM))


def _converted(raw: DataFrame, form: GivenForm, name: str) -> Column:
    expected = form.table.schema[name].dataType
    if name not in raw.columns:
        return F.lit(None).cast(expected)
    return _as(F.col(name), raw.schema[name].dataType, expected)


def _as(value: Column, got: DataType, expected: DataType) -> Column:
    """Convert the value to the expected type; null if it does not fit."""
    if isinstance(expected, TimestampType):
        return _moment(value, got)
    if got.simpleString() == expected.simpleString():
        return value
    if isinstance(expected, ArrayType) and isinstance(got, StringType):
        return F.when(F.try_parse_json(value).isNotNull(), F.from_json(value, expected))  # it ignores trailing text
    if isinstance(expected, ArrayType | StructType) or isinstance(got, ArrayType | StructType | MapType):
        return _nested(value, got, expected)
    if isinstance(expected, IntegralType) and not isinstance(got, IntegralType | StringType):
        return F.lit(None).cast(expected)  # a cast would silently truncate 1.5 to 1
    if isinstance(expected, BinaryType) and isinstance(got, StringType):
        return F.try_to_binary(value, F.lit("base64"))
    if isinstance(expected, StringType | BooleanType | IntegralType):
        return value.try_cast(expected)
    return value.cast(expected)


def _nested(value: Column, got: DataType, expected: DataType) -> Column:
    """Convert a list, or a struct by field names: element by element, since a list may have millions of elements."""
    if isinstance(got, ArrayType) and isinstance(expected, ArrayType):
        inner = (got.elementType, expected.elementType)
        return F.transform(value, lambda part: _as(part, *inner))
    if isinstance(got, StructType) and isinstance(expected, StructType):
        fields = [_field(value, got, field).alias(field.name) for field in expected]
        return F.when(value.isNotNull(), F.struct(*fields))
    return F.lit(None).cast(expected)


def _field(value: Column, got: StructType, expected: StructField) -> Column:
    if expected.name not in got.names:
        return F.lit(None).cast(expected.dataType)
    return _as(value[expected.name], got[expected.name].dataType, expected.dataType)


def _moment(value: Column, got: DataType) -> Column:
    """Convert a timestamp, milliseconds since 1970, or the text of either; null outside the valid range."""
    if not isinstance(got, StringType):
        return moment(value, got, MOMENT)
    millis = moment(value.try_cast("bigint"), LongType(), MOMENT)
    return F.coalesce(millis, moment(value.try_cast("timestamp"), TimestampType(), MOMENT))


def _problem(form: GivenForm, given: list[str]) -> Column:
    """Return the first problem of a row: `CODE: message`; null if there is none."""
    chosen = F.when(F.col(_LINE).isNotNull(), F.col(_LINE))
    for name in given:
        got, kind = F.col(_GOT.format(name)), form.table.schema[name].dataType
        wrong = got.isNotNull() & (F.col(name).isNull() | _has_holes(F.col(name), kind))
        text = [F.lit(f"BAD_VALUE: column {name} is "), F.substring(_as_text(got), 1, 100)]
        chosen = chosen.when(wrong, F.concat(*text, F.lit(f"; expected {kind.simpleString()}")))
    for name in form.required:
        if name != c.PARTITION_COUNT:  # null there: the topic was deleted
            chosen = chosen.when(F.col(name).isNull(), F.lit(f"MISSING_VALUE: {name} is missing; every row needs one"))
    return chosen


def _as_text(value: Column) -> Column:
    return F.to_json(F.struct(value.alias("got")))


def _has_holes(value: Column, kind: DataType) -> Column:
    """Return whether a list has a null that its declaration does not allow."""
    if not isinstance(kind, ArrayType):
        return F.lit(False)
    if isinstance(kind.elementType, StructType):
        return F.exists(value, lambda topic: _has_null(topic[c.PARTITIONS]))
    if isinstance(kind.elementType, ArrayType):
        return F.exists(value, _has_null)
    return _has_null(value)


def _has_null(values: Column) -> Column:
    return values.isNull() | F.exists(values, lambda value: value.isNull())


# Apply the bounds of `core.log.lines` to Spark columns: before the cast, so that no number overflows.

_MICROS = 1_000


def within(number: Column, bound: NumberRange) -> Column:
    """Return the whole number if it is in the range, else null."""
    return F.when(number.between(bound.least, bound.most), number)


def moment(value: Column, kind: DataType, bound: NumberRange) -> Column:
    """Convert a timestamp, or milliseconds since 1970, to a timestamp; null outside the range.

    A timestamp without a zone is in UTC, whatever the session's zone.
    """
    if isinstance(kind, IntegralType):
        return F.timestamp_millis(within(value.cast("bigint"), bound))
    if isinstance(kind, TimestampNTZType):
        zero = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
        times = (
            (zero + timedelta(milliseconds=end)).isoformat(" ", "milliseconds") for end in (bound.least, bound.most)
        )
        ends = (F.lit(time).cast("timestamp_ntz") for time in times)
        text = F.when(value.between(*ends), value).cast("string")
        value = F.concat(text, F.lit("Z")).try_cast("timestamp")
    micros = F.unix_micros(value)
    return F.when(micros.between(bound.least * _MICROS, bound.most * _MICROS + _MICROS - 1), value)


# Read tables of memberships, a row a member of a group at a moment, as snapshots; and of their topics.
#
# `groupledger.tables.facts` declares their columns. The rows of a group at one moment are a snapshot. Its position is
# the moment in microseconds, and its id is made of cluster, group and moment, so that neither depends on the order of
# rows. A row that cannot be used sends the rows of its snapshot to quarantine; other snapshots are unaffected.

_ASSIGNORS = "assignors"


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A table as it was opened: its rows as they are, their files, and its name in messages and quarantine rows."""

    frame: DataFrame
    files: Files
    name: str


def read_memberships(
    members: OpenedTable, topics: OpenedTable | None, cluster_id: str, columns: Mapping[str, str], *, most_claims: int
) -> SnapshotRows:
    """Read memberships and topics; `columns`: their names of columns, by ours; `cluster_id`: the default cluster.

    Raises SourceFault FOREIGN_SCHEMA.
    """
    opened = [members, *([] if topics is None else [topics])]
    _require(columns, opened)
    given = _given(members, MEMBERSHIPS, columns)
    rows = _placed(given.rows, cluster_id)
    found = snapshots_of(
        _membership_groups(rows), _membership_members(rows), (members.name, members.name), cluster_id, most_claims
    )
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


def _membership_groups(rows: DataFrame) -> DataFrame:
    """Make the group row of each snapshot."""
    of_group = [c.SNAPSHOT_ID, c.CLUSTER_ID, c.GROUP_ID, c.OFFSET, c.OBSERVED_AT]
    assignor, generation = F.min(c.ASSIGNOR).alias(c.ASSIGNOR), F.max(c.GENERATION).alias(c.GENERATION)
    named = F.collect_set(F.coalesce(c.ASSIGNOR, F.lit(""))).alias(_ASSIGNORS)
    groups = rows.where(F.col(c.SNAPSHOT_ID).isNotNull()).groupBy(*of_group).agg(assignor, generation, named)
    words = "BAD_VALUE: members name different assignors; expected one in all rows of a snapshot, or none"
    wrong = F.when(F.size(_ASSIGNORS) > 1, F.lit(words))
    return _in_form(groups, GROUPS, {}, wrong, F.lit(None).cast("string"))


def _membership_members(rows: DataFrame) -> DataFrame:
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
