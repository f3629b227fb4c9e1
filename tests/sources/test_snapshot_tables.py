"""Users' own tables: what must be there, what may be missing, and what is wrong with one snapshot only."""

import csv
import json
from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F

from groupledger.sources.opening import SourceFault
from groupledger.sources.snapshot_tables import read
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, QUARANTINE, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c
from groupledger.tables.given import FORMS

MOMENT = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
MILLIS = int(MOMENT.timestamp() * 1000)
KINDS = ("json", "csv", "parquet", "delta")

GROUPS = [
    {"snapshot_id": "a1", "group_id": "a", "offset": 1, "observed_at": MILLIS},
    {"snapshot_id": "b1", "group_id": "b", "offset": 2, "observed_at": MILLIS, "assignor": "range", "generation": 7},
    {"snapshot_id": "a2", "group_id": "a", "offset": 3, "observed_at": MILLIS},
]
ORDERS = [{"topic": "orders", "partitions": [0, 1]}]
MEMBERS = [
    {"snapshot_id": "a1", "member_id": "m2", "member_order": 0, "topics": ["orders"], "recorded": ORDERS},
    {"snapshot_id": "a1", "member_id": "m1", "member_order": 1, "topics": ["orders", "clicks"], "recorded": []},
    {"snapshot_id": "b1", "member_id": "m1", "member_order": 0, "topics": ["orders"], "recorded": ORDERS},
    {"snapshot_id": "a2", "member_id": "m1", "member_order": 0, "topics": ["orders"], "user_data": "AAE="},
]
TOPICS = [
    {"topic": "orders", "topic_id": "+/a=", "partition_count": 2, "valid_from": MILLIS, "racks": [["r1"], ["r1"]]},
    {"topic": "gone", "topic_id": None, "partition_count": None, "valid_from": MILLIS, "racks": None},
]
TYPED = {
    "group_snapshots": (
        "snapshot_id string, group_id string, offset bigint, observed_at bigint, assignor string, generation int,"
        " state string, members int, cluster_id string, group_type string"
    ),
    "member_snapshots": (
        "snapshot_id string, member_id string, member_order int, topics array<string>,"
        " recorded array<struct<topic string, partitions array<int>>>, user_data string"
    ),
    "topic_snapshots": (
        "topic string, topic_id string, partition_count int, valid_from bigint, racks array<array<string>>"
    ),
}


def save(spark, folder, name, rows, kind):
    if kind == "json":
        (folder / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "csv":
        names = [field.split()[0] for field in TYPED[name].replace("struct<topic string, ", "struct<").split(", ")]
        with (folder / f"{name}.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(names)
            lines.writerows([text(row.get(column)) for column in names] for row in rows)
    else:
        spark.createDataFrame(rows, TYPED[name]).write.format(kind).save(str(folder / name))


def text(value):
    return json.dumps(value) if isinstance(value, list) else "" if value is None else str(value)


def given(spark, folder, kind="json", groups=GROUPS, members=MEMBERS, topics=TOPICS):
    for name, rows in (("group_snapshots", groups), ("member_snapshots", members), ("topic_snapshots", topics)):
        if rows is not None:
            save(spark, folder, name, rows, kind)
    return read(spark, str(folder), kind, "dev")


def collected(rows, *order):
    return [row.asDict(recursive=True) for row in rows.good.orderBy(*order).collect()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.long
def test_the_same_rows_come_of_every_format(spark, tmp_path, kind):
    found = given(spark, tmp_path, kind)
    groups = collected(found.groups, c.OFFSET)
    assert [(row["snapshot_id"], row["previous_snapshot_id"], row["members"]) for row in groups] == [
        ("table/dev/a1", None, 2),
        ("table/dev/b1", None, 1),
        ("table/dev/a2", None, 1),
    ]
    assert {(row["source"], row["group_type"], row["state"], row["cluster_id"]) for row in groups} == {
        ("table", "classic", "Stable", "dev")
    }
    assert [(row["assignor"], row["generation"]) for row in groups] == [(None, None), ("range", 7), (None, None)]
    assert groups[0]["subscribed_topics"] == ["clicks", "orders"]
    members = collected(found.members, c.OFFSET, c.MEMBER_ORDER)
    assert [(row["group_id"], row["offset"], row["member_id"]) for row in members] == [
        ("a", 1, "m2"), ("a", 1, "m1"), ("b", 2, "m1"), ("a", 3, "m1")
    ]  # fmt: skip
    assert members[0]["recorded"] == [{"topic_id": None, "topic": "orders", "partitions": [0, 1]}]
    assert [row["recorded"] for row in members[1:]] == [[], members[0]["recorded"], None]
    assert bytes(members[3]["user_data"]) == b"\x00\x01"
    assert members[0]["claimed"] is None
    assert found.rejected().count() == 0
    for rows, table in (
        (found.groups, GROUP_SNAPSHOTS),
        (found.members, MEMBER_SNAPSHOTS),
        (found.topics, TOPIC_SNAPSHOTS),
    ):
        assert rows.good.columns == [name for name in table.columns if name != c.ATTEMPT_ID]
    topics = collected(found.topics, c.TOPIC)
    assert [(row["topic"], row["topic_id"], row["partition_count"], row["racks"]) for row in topics] == [
        ("gone", None, None, None),
        ("orders", "-_a", 2, [["r1"], ["r1"]]),
    ]
    moments = found.groups.good.select(F.unix_millis(c.OBSERVED_AT)).distinct().collect()
    assert [row[0] for row in moments] == [MILLIS]


@pytest.mark.parametrize("when", ["2026-11-21T14:03:00Z", "2026-11-21 15:03:00+01:00", str(MILLIS), MILLIS])
def test_a_moment_is_told_in_several_ways(spark, tmp_path, when):
    found = given(spark, tmp_path, groups=[GROUPS[1] | {"observed_at": when}], members=[MEMBERS[2]], topics=None)
    assert found.topics is None
    assert [row[0] for row in found.groups.good.select(F.unix_millis(c.OBSERVED_AT)).collect()] == [MILLIS]


def test_members_without_an_order_stand_by_their_id(spark, tmp_path):
    members = [{key: row[key] for key in ("snapshot_id", "member_id", "topics")} for row in MEMBERS]
    found = given(spark, tmp_path, members=members)
    rows = found.members.good.where(F.col(c.SNAPSHOT_ID) == "table/dev/a1").orderBy(c.MEMBER_ORDER).collect()
    assert [(row[c.MEMBER_ORDER], row[c.MEMBER_ID]) for row in rows] == [(0, "m1"), (1, "m2")]


def test_rows_may_name_their_own_cluster(spark, tmp_path):
    groups = [row | {"cluster_id": "prod"} for row in GROUPS]
    found = given(spark, tmp_path, groups=groups)
    for rows in (found.groups, found.members):
        assert {row[0] for row in rows.good.select(c.CLUSTER_ID).collect()} == {"prod"}
        assert all(row[0].startswith("table/prod/") for row in rows.good.select(c.SNAPSHOT_ID).collect())


def changed(rows, index, **values):
    return [row | values if place == index else row for place, row in enumerate(rows)]


GROUP, MEMBER = GROUPS[1], MEMBERS[2]


def with_recorded(*partitions):
    return [MEMBER | {"recorded": [{"topic": "orders", "partitions": list(partitions)}]}]


BAD = {  # a snapshot's group rows and member rows: code, whether its group is known, rows rejected
    "member twice": ([GROUP], [MEMBER, MEMBER | {"member_order": 5}], "MEMBER_TWICE", True, 3),
    "place twice": ([GROUP], [MEMBER, MEMBER | {"member_id": "x"}], "PLACE_TWICE", True, 3),
    "negative partition": ([GROUP], with_recorded(0, -1), "NEGATIVE_PARTITION", True, 2),
    "a partition is text": ([GROUP], with_recorded("x"), "BAD_VALUE", True, 2),
    "negative place": ([GROUP], [MEMBER | {"member_order": -1}], "BAD_MEMBER_ORDER", True, 2),
    "no member id": ([GROUP], [MEMBER | {"member_id": None}], "MISSING_VALUE", True, 2),
    "group without members": ([GROUP], [], "NO_MEMBERS", True, 1),
    "members without group": ([], [MEMBER], "NO_GROUP_ROW", False, 1),
    "no group": ([GROUP | {"group_id": None}], [MEMBER], "MISSING_VALUE", False, 2),
    "negative offset": ([GROUP | {"offset": -1}], [MEMBER], "BAD_OFFSET", True, 2),
    "offset is text": ([GROUP | {"offset": "x"}], [MEMBER], "BAD_VALUE", True, 2),
    "members miscounted": ([GROUP | {"members": 3}], [MEMBER], "MEMBER_COUNT", True, 2),
    "unknown type": ([GROUP | {"group_type": "odd"}], [MEMBER], "BAD_VALUE", True, 2),
    "snapshot twice": ([GROUP, GROUP], [MEMBER], "SNAPSHOT_TWICE", True, 3),
}


def numbered(rows, number):
    """The rows as those of another group, at another position."""
    own = {"snapshot_id": f"bad{number}", "group_id": f"group{number}", "offset": 100 + number}
    return [row | {name: own[name] for name in own if name in row and row[name] == GROUP[name]} for row in rows]


def test_one_bad_snapshot_harms_no_other(spark, tmp_path):
    groups, members = [GROUPS[0], GROUPS[2]], [*MEMBERS[:2], MEMBERS[3]]
    for number, (its_groups, its_members, *_) in enumerate(BAD.values()):
        groups += numbered(its_groups, number)
        members += numbered(its_members, number)
    found = given(spark, tmp_path, groups=groups, members=members)
    rejected = found.rejected().collect()
    for number, (name, (_, _, code, known, rows)) in enumerate(BAD.items()):
        mine = [row for row in rejected if f'"bad{number}"' in row[c.ROW]]
        assert [row[c.CODE] for row in mine] == [code] * rows, name
        assert (f"group{number}" in {row[c.GROUP_ID] for row in mine}) == known, name
    assert len(rejected) == sum(rows for *_, rows in BAD.values())
    assert {row[c.STAGE] for row in rejected} == {"tables"}
    assert all(row[c.MESSAGE] for row in rejected)
    assert [row["group_id"] for row in collected(found.groups, c.OFFSET)] == ["a", "a"]
    assert [row["member_id"] for row in collected(found.members, c.OFFSET, c.MEMBER_ORDER)] == ["m2", "m1", "m1"]
    assert found.rejected().columns == [name for name in QUARANTINE.columns if name != c.ATTEMPT_ID]


def test_a_group_that_claims_more_than_the_limit_is_refused_and_the_others_are_not(spark, tmp_path):
    """The limit is on all members of a snapshot together."""
    members = [row | {"claimed": [{"topic": "orders", "partitions": [0, 1]}]} for row in MEMBERS]
    for name, rows in (("group_snapshots", GROUPS), ("member_snapshots", members)):
        save(spark, tmp_path, name, rows, "json")
    found = read(spark, str(tmp_path), "json", "dev", most_claims=3)
    rejected = found.rejected().collect()
    assert {(row[c.GROUP_ID], row[c.CODE]) for row in rejected} == {("a", "CLAIMS_OVER_LIMIT")}
    assert len(rejected) == 3
    assert rejected[0][c.MESSAGE].startswith("members claim 4 partitions; expected at most 3 (limits.max_partitions")
    assert [row["snapshot_id"] for row in collected(found.groups, c.OFFSET)] == ["table/dev/b1", "table/dev/a2"]


def test_two_snapshots_at_one_position_are_both_refused(spark, tmp_path):
    groups = [*GROUPS, GROUPS[1] | {"snapshot_id": "b2"}]
    found = given(spark, tmp_path, groups=groups, members=[*MEMBERS, MEMBERS[2] | {"snapshot_id": "b2"}])
    assert {row[c.CODE] for row in found.rejected().collect()} == {"POSITION_TWICE"}
    assert found.rejected().count() == 4


def test_nothing_is_measured_from_a_snapshot_that_was_refused(spark, tmp_path):
    members = changed(MEMBERS, 0, recorded=[{"topic": "orders", "partitions": [-1]}])
    [_, later] = collected(given(spark, tmp_path, members=members).groups, c.OFFSET)
    assert (later["snapshot_id"], later["previous_snapshot_id"]) == ("table/dev/a2", None)


@pytest.mark.parametrize("state", ["Empty", "Dead"])
def test_an_empty_group_needs_no_members(spark, tmp_path, state):
    found = given(spark, tmp_path, groups=changed(GROUPS, 1, state=state), members=[*MEMBERS[:2], MEMBERS[3]])
    assert [row["members"] for row in collected(found.groups, c.OFFSET)] == [2, 0, 1]


def test_a_negative_partition_count_is_refused_with_its_row(spark, tmp_path):
    found = given(spark, tmp_path, topics=changed(TOPICS, 0, partition_count=-1))
    [row] = found.rejected().collect()
    assert row[c.MESSAGE].startswith("partition count of topic orders is -1; expected 0 or more")
    assert json.loads(row[c.ROW])["topic"] == "orders"
    assert [row["topic"] for row in collected(found.topics, c.TOPIC)] == ["gone"]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_a_timestamp_that_python_cannot_hold_is_refused_with_its_row(spark, tmp_path, kind):
    given(spark, tmp_path, "parquet", topics=None)
    moments = [MILLIS * 1_000, -(2**63), -1, 2**63 - 1]
    rows = [(f"t{at}", None, 1, moment, None) for at, moment in enumerate(moments)]
    topics = spark.createDataFrame(rows, TYPED["topic_snapshots"])
    moment = F.timestamp_micros("valid_from").cast(kind)
    topics.withColumn("valid_from", moment).write.parquet(str(tmp_path / "topic_snapshots"))
    found = read(spark, str(tmp_path), "parquet", "dev")
    assert [row["topic"] for row in collected(found.topics, c.TOPIC)] == ["t0"]
    refused = found.rejected().select(c.CODE, c.MESSAGE).collect()
    assert [code for code, _ in refused] == ["BAD_VALUE"] * 3
    assert all(message.startswith("column valid_from is ") for _, message in refused)


def test_a_half_written_line_is_kept_as_text(spark, tmp_path):
    save(spark, tmp_path, "group_snapshots", GROUPS, "json")
    with (tmp_path / "group_snapshots.json").open("a") as file:
        file.write('{"snapshot_id": "z", "gro')
    save(spark, tmp_path, "member_snapshots", MEMBERS, "json")
    found = read(spark, str(tmp_path), "json", "dev")
    [row] = found.rejected().collect()
    assert (row[c.CODE], row[c.ROW]) == ("MALFORMED_LINE", '{"snapshot_id": "z", "gro')
    assert found.groups.good.count() == 3


FOREIGN = [
    pytest.param("offset string", "column offset is string, expected bigint", id="text for a number"),
    pytest.param(None, "column offset is missing, expected bigint", id="a required column"),
    pytest.param("offset bigint, members string", "column members is string, expected int", id="an optional column"),
    pytest.param(
        "offset bigint, shared_topics string", "column shared_topics is string, expected array<string>", id="list"
    ),
]


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize(("columns", "words"), FOREIGN)
def test_a_foreign_schema_names_table_column_got_and_expected(spark, tmp_path, kind, columns, words):
    schema = ", ".join(filter(None, ["snapshot_id string, group_id string, observed_at timestamp", columns]))
    spark.createDataFrame([], schema).write.format(kind).save(str(tmp_path / "group_snapshots"))
    with pytest.raises(SourceFault, match="table group_snapshots in") as caught:
        read(spark, str(tmp_path), kind, "dev")
    assert caught.value.code == "FOREIGN_SCHEMA"
    assert words in caught.value.message


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_not_there_is_named(spark, tmp_path, kind):
    with pytest.raises(SourceFault, match="group_snapshots") as caught:
        read(spark, str(tmp_path), kind, "dev")
    assert caught.value.code == "SOURCE_MISSING"


def test_a_ragged_csv_row_is_refused(spark, tmp_path):
    save(spark, tmp_path, "member_snapshots", MEMBERS, "csv")
    (tmp_path / "group_snapshots.csv").write_text(
        f"snapshot_id,group_id,offset,observed_at\na1,a,1,{MILLIS}\nb1,b,2,{MILLIS},9,9\na2,a,3,{MILLIS}\n"
    )
    found = read(spark, str(tmp_path), "csv", "dev")
    assert {(row[c.CODE], row[c.ROW]) for row in found.groups.rejected.collect()} == {
        ("MALFORMED_LINE", f"b1,b,2,{MILLIS},9,9")
    }


def test_every_form_speaks_of_columns_there_are():
    for form in FORMS:
        named = {*form.required, *form.filled, *form.ours}
        assert named <= set(form.table.columns)
        assert not set(form.required) & (set(form.ours) | set(form.filled))
        missing = [name for name in form.columns if not form.table.schema[name].nullable]
        assert set(missing) <= {*form.required, *form.filled}, "a NOT NULL column is given or filled"


def claimed_as(spark, folder, kind, *claims):
    """What is read of members that claim these, each in a snapshot of its own."""
    save(spark, folder, "group_snapshots", GROUPS, "parquet")
    rows = [(snapshot, "m1", claim) for snapshot, claim in zip(("a1", "b1", "a2"), claims, strict=True)]
    schema = f"snapshot_id string, member_id string, claimed array<struct<topic string, partitions {kind}>>"
    spark.createDataFrame(rows, schema).write.parquet(str(folder / "member_snapshots"))
    return read(spark, str(folder), "parquet", "dev")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(("orders", [0, 1 << 40]), id="beyond int"),
        pytest.param(("orders", [None]), id="a hole"),
        pytest.param(None, id="no topic"),
    ],
)
def test_a_list_of_wider_numbers_is_read_where_they_fit(spark, tmp_path, bad):
    found = claimed_as(spark, tmp_path, "array<bigint>", [("orders", [0, 1])], [bad], None)
    assert [(row[c.GROUP_ID], row[c.CODE]) for row in found.rejected().collect()] == [("b", "BAD_VALUE")] * 2
    first, last = collected(found.members, c.OFFSET)
    assert first["claimed"] == [{"topic_id": None, "topic": "orders", "partitions": [0, 1]}]
    assert last["claimed"] is None


@pytest.mark.parametrize(
    ("kind", "got"),
    [
        pytest.param("bigint", 5, id="a number for a list"),
        pytest.param("array<double>", [1.5], id="fractions"),
        pytest.param("map<string, int>", {"a": 1}, id="a map"),
    ],
)
def test_a_list_of_what_is_no_number_is_refused(spark, tmp_path, kind, got):
    found = claimed_as(spark, tmp_path, kind, [("orders", got)], [("orders", got)], None)
    rejected = found.rejected().collect()
    assert (
        sorted((row[c.GROUP_ID], row[c.CODE]) for row in rejected)
        == [("a", "BAD_VALUE")] * 2 + [("b", "BAD_VALUE")] * 2
    )
