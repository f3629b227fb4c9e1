"""Read users' own `group_snapshots`, `member_snapshots` and `topic_snapshots`, as facts.

`groupledger.tables.given` declares their columns. A snapshot whose rows contradict each other goes to quarantine as a
whole, its group row and its member rows; other snapshots are unaffected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from groupledger.core.bounds import OFFSET
from groupledger.sources.files import Files
from groupledger.sources.given_table import GivenTable, is_given, of_lines, read_given
from groupledger.sources.lines import given_lines
from groupledger.sources.opening import PROBLEM, Arrivals, Rows, split
from groupledger.sources.topic_listings import canonical_topic_id
from groupledger.tables import columns as c
from groupledger.tables.given import GROUPS, MEMBERS, TOPICS, GivenForm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.core.described_groups import DescribedLines

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

    `arrivals` and `files` are those of the existing tables. `derived`: the groups are no rows of a user's, but made of
    those of `members`.
    """

    groups: Rows
    members: Rows
    topics: Rows | None
    arrivals: tuple[Arrivals, ...] = ()
    files: tuple[Files, ...] = ()
    derived: bool = False

    def parts(self) -> list[Rows]:
        """Return the tables that there are."""
        groups = None if self.derived else self.groups
        return [rows for rows in (groups, self.members, self.topics) if rows is not None]

    def rejected(self) -> DataFrame:
        """Return the rejected rows of all three."""
        return reduce(lambda left, right: left.unionByName(right), [rows.rejected for rows in self.parts()])


def are_there(spark: SparkSession, folder: str, kind: str, *, glob: bool = False) -> bool:
    """Return whether a folder has one of the tables that `read` needs, or no table of another form can be in it."""
    return kind not in ("parquet", "delta") or any(
        is_given(spark, folder, form, kind, glob=glob) for form in (GROUPS, MEMBERS)
    )


def read(
    spark: SparkSession,
    folder: str,
    kind: str,
    cluster_id: str,
    *,
    most_claims: int = MOST_CLAIMS,
    glob: bool = False,
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
    given = [table for table in (groups, members, topics) if table is not None]
    places = (table_path(folder, GROUPS), table_path(folder, MEMBERS))
    found = snapshots_of(groups.rows, members.rows, places, cluster_id, most_claims, named=_named)
    return replace(
        found,
        topics=None if topics is None else rows_of_topics(topics.rows, table_path(folder, TOPICS), cluster_id),
        arrivals=tuple(table.arrivals for table in given),
        files=tuple(table.files for table in given),
    )


def _as_it_is(rows: DataFrame) -> DataFrame:
    return rows


def snapshots_of(
    groups: DataFrame,
    members: DataFrame,
    places: tuple[str, str],
    cluster_id: str,
    most_claims: int,
    named: Callable[[DataFrame], DataFrame] = _as_it_is,
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
    return counted.withColumn(PROBLEM, F.coalesce(PROBLEM, _WRONG, problems, _over_limit(most_claims)))


def _member_counts(members: DataFrame) -> DataFrame:
    """Return, per snapshot, counts of rows, distinct members, places and all topics, and a row's first problem."""
    topics = F.array_sort(F.array_distinct(F.flatten(F.collect_set(c.TOPICS))))
    return members.groupBy(c.SNAPSHOT_ID).agg(
        F.count(F.lit(1)).alias(_COUNT),
        F.count_distinct(c.MEMBER_ID).alias(_IDS),
        F.count_distinct(c.MEMBER_ORDER).alias(_PLACES),
        F.min(F.coalesce(PROBLEM, _member_problem())).alias(_WRONG),
        topics.alias(_TOPICS_OF),
        F.sum(F.coalesce(_partitions_in(c.CLAIMED), F.lit(0))).alias(_CLAIMS),
    )


def _partitions_in(lists: str) -> Column:
    """Count the partitions in the member's lists; null without lists."""
    return F.aggregate(lists, F.lit(0).cast("bigint"), lambda total, topic: total + F.size(topic[c.PARTITIONS]))


def _over_limit(most_claims: int) -> Column:
    claims = F.col(_CLAIMS)
    words = f" partitions; expected at most {most_claims} (limits.max_partitions_per_group)"
    return F.when(claims > most_claims, _said("CLAIMS_OVER_LIMIT", "members claim ", claims, words))


def _member_problem() -> Column:
    """Report a negative partition, or a negative place."""
    negative = F.lit(False)
    for name in _PARTITION_LISTS:
        negative |= F.coalesce(F.exists(name, _has_negative), F.lit(False))
    text = F.concat(F.lit("NEGATIVE_PARTITION: member "), c.MEMBER_ID, F.lit(" has a partition below 0"))
    place = F.concat(F.lit("BAD_MEMBER_ORDER: member_order of member "), c.MEMBER_ID, F.lit(" is below 0"))
    return F.when(negative, text).when(F.col(c.MEMBER_ORDER) < 0, place)


def _has_negative(topic: Column) -> Column:
    return F.exists(topic[c.PARTITIONS], lambda partition: partition < 0)


def _group_problem(same_id: Column, same_position: Column) -> Column:
    """Return the first contradiction between the rows of a snapshot, or null."""
    rows, ids, places = (F.col(name).cast("string") for name in (_COUNT, _IDS, _PLACES))
    told = F.col(c.MEMBERS)
    alive = ~F.col(c.STATE).isin(*_EMPTY_STATES) & (F.coalesce(told, F.lit(1)) != 0)
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
        (told != F.col(_COUNT), _said("MEMBER_COUNT", "members is ", told, ", and there are ", rows, " member rows")),
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


def rows_of_topics(topics: DataFrame, source: str, cluster_id: str) -> Rows:
    """Return rows of `topic_snapshots` from rows of TOPICS."""
    count = F.col(c.PARTITION_COUNT)
    negative = F.concat(
        F.lit("BAD_PARTITION_COUNT: partition count of topic "),
        c.TOPIC,
        F.lit(" is "),
        count.cast("string"),
        F.lit("; expected 0 or more, or null where the topic was deleted"),
    )
    filled = topics.withColumns(
        {
            c.CLUSTER_ID: F.coalesce(c.CLUSTER_ID, F.lit(cluster_id)),
            c.TOPIC_ID: canonical_topic_id(F.col(c.TOPIC_ID)),
            PROBLEM: F.coalesce(PROBLEM, F.when(count < 0, negative)),
        }
    )
    return _split(filled, TOPICS, source, (c.CLUSTER_ID, c.ROW))


def _split(rows: DataFrame, form: GivenForm, source: str, known: Iterable[str]) -> Rows:
    kinds = {field.name: field.dataType for field in form.table.schema if field.name != c.ATTEMPT_ID}
    values = {name: F.col(name) if name in rows.columns else F.lit(None) for name in kinds}  # users provide no tasks
    good = [values[name].cast(kind.simpleString()).alias(name) for name, kind in kinds.items()]
    return split(rows, good, source, {c.STAGE: F.lit(STAGE), **{name: F.col(name) for name in known}})
