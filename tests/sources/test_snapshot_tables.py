"""Users' own tables: what must be there, what may be missing, and what is wrong with one snapshot only."""

import csv
import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from groupledger.pipeline.reading import union
from groupledger.sources.opening import SourceFault
from groupledger.sources.snapshot_tables import read
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, QUARANTINE, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c
from groupledger.tables.facts import FORMS

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


def given(spark, folder, kind):
    for name, rows in (("group_snapshots", GROUPS), ("member_snapshots", MEMBERS), ("topic_snapshots", TOPICS)):
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
    assert union(rows.rejected for rows in found.parts()).count() == 0
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


def numbered(groups, members, number):
    """The rows as those of another group, at another position."""
    own = {"snapshot_id": f"bad{number}", "group_id": f"group{number}", "offset": 100 + number}
    return [
        [row | {name: own[name] for name in own if name in row and row[name] == GROUP[name]} for row in rows]
        for rows in (groups, members)
    ]


WHEN = ["2026-11-21T14:03:00Z", "2026-11-21 15:03:00+01:00", str(MILLIS), MILLIS]
HALF = '{"snapshot_id": "z", "gro'
CLAIMS = {"claimed": ORDERS}  # two partitions a member, and the limit is three


def case(snapshot, *members, group=None, **values):
    """Return the group row and the member rows of a snapshot; its group has its name unless it has another."""
    row = {"snapshot_id": snapshot, "group_id": group or snapshot, "offset": 7, "observed_at": MILLIS}
    return [row | values], [{"snapshot_id": snapshot, "member_id": "m1", "topics": ["orders"]} | its for its in members]


CASES = [
    *(case(f"when{at}", {}, observed_at=when) for at, when in enumerate(WHEN)),
    case("unordered", {"member_id": "m2"}, {"member_id": "m1"}),
    case("elsewhere", {}, cluster_id="prod"),
    case("greedy", CLAIMS, CLAIMS | {"member_id": "m2"}),
    case("modest", CLAIMS),
    case("position1", {}, group="position"),
    case("position2", {}, group="position"),
    case("refused", {"recorded": [{"topic": "orders", "partitions": [-1]}]}, group="later"),
    case("after it", {}, group="later", offset=8),
    case("empty", state="Empty"),
    case("dead", state="Dead"),
]


class Found(NamedTuple):
    """What one reading of all cases gives: rows by the snapshot id that the user gave."""

    groups: dict[str, dict[str, Any]]
    members: dict[str, list[dict[str, Any]]]
    topics: list[str]
    rejected: dict[str, list[Row]]
    columns: list[str]


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory):
    """Good snapshots of a group, CASES, BAD, a line that is cut off, and a topic of -1 partitions, read at once.

    One reading is a plan that takes seconds to compile, whatever its rows are.
    """
    folder = tmp_path_factory.mktemp("cases")
    groups, members = [GROUPS[0], GROUPS[2]], [*MEMBERS[:2], MEMBERS[3]]
    for its_groups, its_members in [*CASES, *(numbered(*bad[:2], number) for number, bad in enumerate(BAD.values()))]:
        groups += its_groups
        members += its_members
    save(spark, folder, "group_snapshots", groups, "json")
    with (folder / "group_snapshots.json").open("a") as file:
        file.write(HALF)
    save(spark, folder, "member_snapshots", members, "json")
    save(spark, folder, "topic_snapshots", [TOPICS[0] | {"partition_count": -1}, TOPICS[1]], "json")
    rows = read(spark, str(folder), "json", "dev", most_claims=3)
    rejected, millis = union(each.rejected for each in rows.parts()), F.unix_millis(c.OBSERVED_AT)
    return Found(
        {name: row for name, [row] in by_given_id(rows.groups.good.withColumn("millis", millis)).items()},
        by_given_id(rows.members.good.orderBy(c.MEMBER_ORDER)),
        [row["topic"] for row in collected(rows.topics, c.TOPIC)],
        by_row(rejected.collect()),
        rejected.columns,
    )


def by_given_id(rows):
    given_id = F.substring_index(c.SNAPSHOT_ID, "/", -1)
    found = defaultdict(list)
    for row in rows.withColumn("given_id", given_id).collect():
        found[row["given_id"]].append(row.asDict(recursive=True))
    return dict(found)


def by_row(rejected):
    """Return the rejected rows by snapshot id or topic; the line that is cut off stands for itself."""
    found = defaultdict(list)
    for row in rejected:
        whole = {} if row[c.ROW] == HALF else json.loads(row[c.ROW])
        found[whole.get("snapshot_id") or whole.get("topic") or row[c.ROW]].append(row)
    return dict(found)


def refused(found, snapshot):
    return [(row[c.GROUP_ID], row[c.CODE]) for row in found.rejected[snapshot]]


def test_what_is_good_is_kept_and_nothing_else(found):
    good = {"a1", "a2", "unordered", "elsewhere", "modest", "after it", "empty", "dead"}
    good |= {f"when{at}" for at in range(len(WHEN))}
    assert set(found.groups) == good
    assert set(found.members) == good - {"empty", "dead"}
    assert set(found.rejected) == {f"bad{number}" for number in range(len(BAD))} | {
        "greedy", "position1", "position2", "refused", "orders", HALF
    }  # fmt: skip


@pytest.mark.parametrize("at", range(len(WHEN)), ids=map(str, WHEN))
def test_a_moment_is_told_in_several_ways(found, at):
    assert found.groups[f"when{at}"]["millis"] == MILLIS


def test_members_without_an_order_stand_by_their_id(found):
    rows = found.members["unordered"]
    assert [(row[c.MEMBER_ORDER], row[c.MEMBER_ID]) for row in rows] == [(0, "m1"), (1, "m2")]


def test_rows_may_name_their_own_cluster(found):
    [member] = found.members["elsewhere"]
    for row in (found.groups["elsewhere"], member):
        assert (row[c.CLUSTER_ID], row[c.SNAPSHOT_ID]) == ("prod", "table/prod/elsewhere")


@pytest.mark.parametrize(("number", "name"), [*enumerate(BAD)], ids=BAD)
def test_one_bad_snapshot_harms_no_other(found, number, name):
    _, _, code, known, rows = BAD[name]
    mine = found.rejected[f"bad{number}"]
    assert [row[c.CODE] for row in mine] == [code] * rows
    assert (f"group{number}" in {row[c.GROUP_ID] for row in mine}) == known
    assert {row[c.STAGE] for row in mine} == {"tables"}
    assert all(row[c.MESSAGE] for row in mine)


def test_good_snapshots_beside_bad_ones_are_read_whole(found):
    assert [found.groups[name]["group_id"] for name in ("a1", "a2")] == ["a", "a"]
    assert [row["member_id"] for name in ("a1", "a2") for row in found.members[name]] == ["m2", "m1", "m1"]
    assert found.columns == [name for name in QUARANTINE.columns if name != c.ATTEMPT_ID]


def test_a_group_that_claims_more_than_the_limit_is_refused_and_the_others_are_not(found):
    """The limit is on all members of a snapshot together."""
    assert refused(found, "greedy") == [("greedy", "CLAIMS_OVER_LIMIT")] * 3
    words = "members claim 4 partitions; expected at most 3 (limits.max_partitions"
    assert found.rejected["greedy"][0][c.MESSAGE].startswith(words)
    assert "modest" in found.groups


def test_two_snapshots_at_one_position_are_both_refused(found):
    for snapshot in ("position1", "position2"):
        assert refused(found, snapshot) == [("position", "POSITION_TWICE")] * 2


def test_nothing_is_measured_from_a_snapshot_that_was_refused(found):
    assert refused(found, "refused") == [("later", "NEGATIVE_PARTITION")] * 2
    assert found.groups["after it"]["previous_snapshot_id"] is None


@pytest.mark.parametrize("snapshot", ["empty", "dead"])
def test_an_empty_group_needs_no_members(found, snapshot):
    assert [found.groups[name]["members"] for name in ("a1", snapshot, "a2")] == [2, 0, 1]


def test_a_negative_partition_count_is_refused_with_its_row(found):
    [row] = found.rejected["orders"]
    assert row[c.MESSAGE].startswith("partition count of topic orders is -1; expected 0 or more")
    assert json.loads(row[c.ROW])["topic"] == "orders"
    assert found.topics == ["gone"]


def test_a_half_written_line_is_kept_as_text(found):
    [row] = found.rejected[HALF]
    assert (row[c.CODE], row[c.ROW]) == ("MALFORMED_LINE", HALF)


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
