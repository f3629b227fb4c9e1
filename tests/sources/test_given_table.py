"""Users' own tables that have types of their own: which ones fit, and what becomes of values that do not."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from groupledger.pipeline.reading import union
from groupledger.sources.opening import SourceFault
from groupledger.sources.snapshot_tables import read
from groupledger.tables import columns as c

MILLIS = 1_795_269_780_000


def write(folder, name, kind, columns):
    """Write columns, each as its Arrow type and its values, without a job of Spark."""
    table = pa.table({column: pa.array(values, arrow) for column, (arrow, values) in columns.items()})
    if kind == "delta":
        write_deltalake(str(folder / name), table)
    else:
        (folder / name).mkdir()
        pq.write_table(table, folder / name / "part-0.parquet")


def write_groups(folder, snapshots):
    places = range(len(snapshots))
    texts = {name: (pa.string(), snapshots) for name in ("snapshot_id", "group_id")}
    numbers = {"offset": (pa.int64(), [*places]), "observed_at": (pa.int64(), [MILLIS for _ in places])}
    write(folder, "group_snapshots", "parquet", texts | numbers)


@pytest.mark.parametrize("zone", ["UTC", None], ids=["timestamp", "timestamp_ntz"])
def test_a_timestamp_that_python_cannot_hold_is_refused_with_its_row(spark, tmp_path, zone):
    write_groups(tmp_path, ["a1"])
    write(
        tmp_path, "member_snapshots", "parquet", {name: (pa.string(), ["a1"]) for name in ("snapshot_id", "member_id")}
    )
    moments = [MILLIS * 1_000, -(2**63), -1, 2**63 - 1]
    topics = {"topic": (pa.string(), ["t0", "t1", "t2", "t3"]), "partition_count": (pa.int32(), [1] * 4)}
    topics["valid_from"] = pa.timestamp("us", zone), pa.array(moments, pa.int64())
    write(tmp_path, "topic_snapshots", "parquet", topics)
    rows = read(spark, str(tmp_path), "parquet", "dev")
    assert [row["topic"] for row in rows.topics.good.collect()] == ["t0"]
    refused = rows.topics.rejected.select(c.CODE, c.MESSAGE).collect()
    assert [code for code, _ in refused] == ["BAD_VALUE"] * 3
    assert all(message.startswith("column valid_from is ") for _, message in refused)


FOREIGN = [
    pytest.param({"offset": pa.string()}, "column offset is string, expected bigint", id="text for a number"),
    pytest.param({"observed_at": None}, "column observed_at is missing, expected timestamp", id="a required column"),
    pytest.param(
        {"offset": pa.int64(), "members": pa.string()},
        "column members is string, expected int",
        id="an optional column",
    ),
    pytest.param(
        {"offset": pa.int64(), "shared_topics": pa.string()},
        "column shared_topics is string, expected array<string>",
        id="list",
    ),
]


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize(("columns", "words"), FOREIGN)
def test_a_foreign_schema_names_table_column_got_and_expected(spark, tmp_path, kind, columns, words):
    schema = {"snapshot_id": pa.string(), "group_id": pa.string(), "observed_at": pa.timestamp("us", "UTC")} | columns
    write(tmp_path, "group_snapshots", kind, {name: (arrow, []) for name, arrow in schema.items() if arrow is not None})
    with pytest.raises(SourceFault, match="table group_snapshots in") as caught:
        read(spark, str(tmp_path), kind, "dev")
    assert caught.value.code == "FOREIGN_SCHEMA"
    assert words in caught.value.message


def lists_of(partitions):
    return pa.list_(pa.struct({"topic": pa.string(), "partitions": partitions}))


LISTS = {
    "claimed": lists_of(pa.list_(pa.int64())),
    "recorded": lists_of(pa.int64()),
    "target": lists_of(pa.list_(pa.float64())),
    "pending_revocation": lists_of(pa.map_(pa.string(), pa.int32())),
}
MISFITS = {  # by snapshot: the column of its member that has a list that does not fit, and that list
    "beyond int": ("claimed", {"topic": "orders", "partitions": [0, 1 << 40]}),
    "a hole": ("claimed", {"topic": "orders", "partitions": [None]}),
    "no topic": ("claimed", None),
    "a number for a list": ("recorded", {"topic": "orders", "partitions": 5}),
    "fractions": ("target", {"topic": "orders", "partitions": [1.5]}),
    "a map": ("pending_revocation", {"topic": "orders", "partitions": [("a", 1)]}),
}
FITS = {"fits": ("claimed", {"topic": "orders", "partitions": [0, 1]}), "no list": (None, None)}


@pytest.fixture(scope="module")
def listed(spark, tmp_path_factory):
    """What is read of members with FITS and MISFITS, each in a snapshot of its own: good members, rejected rows."""
    folder = tmp_path_factory.mktemp("lists")
    cases = FITS | MISFITS
    write_groups(folder, [*cases])
    names = {"snapshot_id": [*cases], "member_id": ["m1" for _ in cases]}
    members: dict[str, Any] = {name: (pa.string(), values) for name, values in names.items()}
    for name, arrow in LISTS.items():
        members[name] = arrow, [[value] if column == name else None for column, value in cases.values()]
    write(folder, "member_snapshots", "parquet", members)
    rows = read(spark, str(folder), "parquet", "dev")
    assert rows.topics is None
    good = {row["group_id"]: row.asDict(recursive=True) for row in rows.members.good.collect()}
    return good, union(each.rejected for each in rows.parts()).collect()


def test_a_list_of_wider_numbers_is_read_where_they_fit(listed):
    good, rejected = listed
    assert set(good) == set(FITS)
    assert good["fits"]["claimed"] == [{"topic_id": None, "topic": "orders", "partitions": [0, 1]}]
    assert [good["no list"][name] for name in LISTS] == [None] * len(LISTS)
    assert {row[c.GROUP_ID] for row in rejected} == set(MISFITS)


@pytest.mark.parametrize("name", MISFITS)
def test_a_list_that_does_not_fit_is_refused(listed, name):
    rejected = [row for row in listed[1] if row[c.GROUP_ID] == name]
    assert [row[c.CODE] for row in rejected] == ["BAD_VALUE"] * 2
    assert all(row[c.MESSAGE].startswith(f"column {MISFITS[name][0]} is ") for row in rejected)
