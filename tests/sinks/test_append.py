"""Appending: counted and digested in one pass, whatever the order and the partitioning."""

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupledger.core.digest import rows_digest
from groupledger.sinks import append as append_module
from groupledger.sinks.append import append, digests
from groupledger.tables import ASSIGNMENTS, QUARANTINE, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def place(new_ledger, tmp_path_factory):
    return new_ledger(tmp_path_factory.mktemp("append"))


def member(number=0, **changed):
    row = {
        c.SCENARIO: "recorded",
        c.SNAPSHOT_ID: "log/dev/0/7",
        c.CLUSTER_ID: "dev",
        c.GROUP_ID: "payments",
        c.ROUND: 1,
        c.MEMBER_ORDER: number,
        c.MEMBER_ID: f"m{number}",
        **{name: [] for name in (c.HELD, c.TARGET, c.ASSIGNED, c.ADDED, c.REVOKED, c.AWAITING, c.LOST)},
    }
    return row | changed


def frame(spark, table, rows):
    schema = StructType([field for field in table.schema if field.name != c.ATTEMPT_ID])
    return spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in rows], schema)


def write(spark, place, table, rows, attempt="a"):
    return append(place, table, frame(spark, table, rows), attempt)


def orders(*partitions):
    return [("orders", list(partitions))]


ROWS = [member(number, **{c.TARGET: orders(*range(number))}) for number in range(20)]


def test_rows_are_counted_stamped_and_stored(spark, place):
    rows = frame(spark, ASSIGNMENTS, ROWS)
    shuffled = rows.select(*reversed(rows.columns))
    written = append(place, ASSIGNMENTS, shuffled, "counted", {"lists": F.sum(F.size(c.TARGET))})
    assert (written.table, written.rows, written.metrics) == ("assignments", 20, {"lists": 20})
    stored = place.rows(spark, ASSIGNMENTS).where(F.col(c.ATTEMPT_ID) == "counted").orderBy(c.MEMBER_ORDER)
    assert stored.columns == ASSIGNMENTS.columns
    assert append_module.stored(spark, place, ASSIGNMENTS)["counted"].digest == written.digest, "as it is read back"
    assert [row[c.TARGET][0].partitions for row in stored.collect()] == [list(range(number)) for number in range(20)]


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_order_partitioning_and_attempt_leave_the_digest_alone(spark, place, partitions):
    expected = write(spark, place, ASSIGNMENTS, ROWS).digest
    rows = frame(spark, ASSIGNMENTS, ROWS[::-1]).repartition(partitions, c.TARGET)
    assert append(place, ASSIGNMENTS, rows, f"other-{partitions}").digest == expected


def test_an_attempt_has_one_digest_however_many_appends_wrote_it(spark, place):
    whole = write(spark, place, ASSIGNMENTS, ROWS)
    parts = [write(spark, place, ASSIGNMENTS, rows) for rows in (ROWS[:7], [], ROWS[7:])]
    assert digests(parts) == digests([whole]) == {ASSIGNMENTS.name: whole.digest}
    assert digests([write(spark, place, ASSIGNMENTS, [])]) == {}


def test_no_rows_have_a_digest_too(spark, place):
    written = write(spark, place, ASSIGNMENTS, [])
    assert (written.rows, written.digest) == (0, rows_digest(0, [0, 0, 0, 0]))
    none = frame(spark, ASSIGNMENTS, ROWS).where(F.lit(False))
    assert append(place, ASSIGNMENTS, none, "none") == written


ALIKE = [
    pytest.param(ASSIGNMENTS, [member(0)], [member(1)], id="a number"),
    pytest.param(ASSIGNMENTS, [member(0)], [member(0), member(0)], id="a row twice"),
    pytest.param(
        ASSIGNMENTS, [member(**{c.ADDED: orders(1)})], [member(**{c.REVOKED: orders(1)})], id="added or revoked"
    ),
    pytest.param(
        ASSIGNMENTS,
        [member(**{c.HELD: orders(1), c.TARGET: orders(2)})],
        [member(**{c.HELD: [*orders(1), *orders(2)]})],
        id="one list or two",
    ),
    pytest.param(
        ASSIGNMENTS, [member(**{c.TARGET: orders(0, 1)})], [member(**{c.TARGET: orders(1, 0)})], id="order in a list"
    ),
    pytest.param(
        QUARANTINE,
        [{c.STAGE: "fold", c.SOURCE: "f", c.CODE: "x", c.MESSAGE: "m", c.GROUP_ID: "a"}],
        [{c.STAGE: "fold", c.SOURCE: "f", c.CODE: "x", c.MESSAGE: "m", c.SNAPSHOT_ID: "a"}],
        id="a null before or after",
    ),
    pytest.param(
        QUARANTINE,
        [{c.STAGE: "fold", c.SOURCE: "f", c.CODE: "x", c.MESSAGE: "m", c.VALUE: b""}],
        [{c.STAGE: "fold", c.SOURCE: "f", c.CODE: "x", c.MESSAGE: "m", c.VALUE: None}],
        id="null or empty",
    ),
]


@pytest.mark.parametrize(("table", "one", "other"), ALIKE)
def test_rows_that_differ_have_digests_that_differ(spark, place, table, one, other):
    assert write(spark, place, table, one).digest != write(spark, place, table, other).digest


TOPIC = {c.CLUSTER_ID: "dev", c.TOPIC: "orders", c.PARTITION_COUNT: 2}
RACKS = [None, [], [["a", "b"]], [["a"], ["b"]], [[], ["a", "b"]], [["ab"]]]


def test_bounds_and_nulls_inside_lists_count(spark, place):
    moment = F.timestamp_millis(F.lit(1))
    digests = set()
    for racks in RACKS:
        rows = spark.createDataFrame([(racks,)], f"{c.RACKS} array<array<string>>")
        columns = [F.lit(value).alias(name) for name, value in TOPIC.items()]
        rows = rows.select(c.RACKS, *columns, F.lit(None).alias(c.TOPIC_ID), moment.alias(c.VALID_FROM))
        digests.add(append(place, TOPIC_SNAPSHOTS, rows, "a").digest)
    assert len(digests) == len(RACKS)


def test_a_required_column_without_a_value_is_refused(spark, place):
    rows = frame(spark, ASSIGNMENTS, ROWS).withColumn(c.MEMBER_ID, F.lit(None))
    before = place.rows(spark, ASSIGNMENTS).count()
    with pytest.raises(Exception, match=c.MEMBER_ID):
        append(place, ASSIGNMENTS, rows, "bad")
    assert place.rows(spark, ASSIGNMENTS).count() == before


def test_a_moment_beyond_2262_is_read_without_spark(spark, place):
    """As microseconds; Spark's own default is INT96, which other readers take for nanoseconds."""
    rows = spark.createDataFrame([(*TOPIC.values(),)], list(TOPIC)).withColumns(
        {c.TOPIC_ID: F.lit(None), c.RACKS: F.lit(None), c.VALID_FROM: F.timestamp_seconds(F.lit(253_000_000_000))}
    )
    append(place, TOPIC_SNAPSHOTS, rows, "far")
    found = DeltaTable(f"{place.path}/{TOPIC_SNAPSHOTS.name}").to_pyarrow_table()
    assert {moment.year for moment in found.column(c.VALID_FROM).to_pylist()} >= {9987}
