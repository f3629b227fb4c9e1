"""The shapes in which people have members and topics, and the kinds of tables."""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import groupledger as gl

TWO = {"orders": [0, 2], "payments": [1]}
FORMS = {
    "lists of a topic": (
        [{"topic": topic, "partitions": numbers} for topic, numbers in TWO.items()],
        pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int64()))])),
    ),
    "pairs": (
        [{"topic": topic, "partition": number} for topic, numbers in TWO.items() for number in numbers],
        pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int16())])),
    ),
    "map": (list(TWO.items()), pa.map_(pa.string(), pa.list_(pa.int32()))),
    "texts": (["orders-0", "orders-2", "payments-1"], pa.list_(pa.string())),
}
TOPICS = pa.table({"topic": ["orders", "payments"], "partitions": [3, 2]})


def members(**columns):
    rows = {"group_id": ["g", "g"], "member_id": ["a", "b"], "topics": [["orders", "payments"]] * 2}
    return pa.table({**rows, **columns})


@pytest.mark.parametrize("form", FORMS)
def test_owned_partitions_in_any_form(form):
    value, kind = FORMS[form]
    found = gl.assign(members(owned=pa.array([value, None], kind)), TOPICS).members.to_pylist()
    assert [row["held"] for row in found] == [[{"topic": t, "partitions": p} for t, p in TWO.items()], []]


def test_a_map_has_no_order_and_a_topic_may_have_a_dash():
    kind = FORMS["map"][1]
    one, other = ([("b-1", [0]), ("a-2", [1])], [("a-2", [1]), ("b-1", [0])])
    topics = pa.table({"topic": ["a-2", "b-1"], "partitions": [2, 2]})
    rows = {"topics": [["a-2", "b-1"]] * 2}
    results = [gl.assign(members(owned=pa.array([each, None], kind), **rows), topics).result for each in (one, other)]
    texts = pa.array([["b-1-0", "a-2-1"], None], pa.list_(pa.string()))
    assert results[0].equals(results[1])
    held = gl.assign(members(owned=texts, **rows), topics).members.to_pylist()[0]["held"]
    assert held == [{"topic": "b-1", "partitions": [0]}, {"topic": "a-2", "partitions": [1]}]


def test_other_names_of_columns_and_the_keys_come_back():
    at = dt.datetime(2026, 11, 20, 14, tzinfo=dt.UTC)
    mine = pa.table(
        {"env": ["p", "p"], "app": ["g", "g"], "at": [at, at], "consumer": ["a", "b"], "subscribed": [["t"], ["t"]]}
    )
    topics = pa.table({"name": ["t", "t"], "n": [2, 4], "env": ["p", "q"]})
    names = {"group_id": "app", "member_id": "consumer", "topics": "subscribed", "topic": "name", "partitions": "n"}
    found = gl.assign(mine, topics, "range", ("env", "group_id", "at"), names)
    assert found.members.schema.names[:4] == ["env", "group_id", "at", "member_id"]
    assert found.groups.to_pylist()[0] | {"at": at, "partitions": 2, "env": "p"} == found.groups.to_pylist()[0]


@pytest.mark.parametrize("shared", [(), ("cluster_id",), ("cluster_id", "observed_at"), ("cluster_id", "group_id")])
def test_topics_are_joined_by_the_keys_that_they_have(shared):
    keys = [
        {"cluster_id": cluster, "group_id": group, "observed_at": at}
        for cluster in "xy"
        for group in "gh"
        for at in (1, 2)
    ]
    mine = pa.Table.from_pylist([key | {"member_id": "a", "topics": ["t"]} for key in keys])
    distinct = sorted({tuple(key[name] for name in shared) for key in keys})
    rows = [
        dict(zip(shared, values, strict=True)) | {"topic": "t", "partitions": n + 1}
        for n, values in enumerate(distinct)
    ]
    groups = gl.assign(mine, pa.Table.from_pylist(rows)).groups.to_pylist()
    expected = {values: n + 1 for n, values in enumerate(distinct)}
    assert [row["partitions"] for row in groups] == [expected[tuple(row[name] for name in shared)] for row in groups]


@pytest.mark.parametrize(
    "name",
    [
        "range",
        "RangeAssignor",
        "org.apache.kafka.clients.consumer.RangeAssignor",
        "how",
        "tests.core.custom.faulty:in_turns",
    ],
)
def test_an_assignor_by_name_by_class_by_column_or_of_your_own(name):
    found = gl.assign(members(how=["RangeAssignor"] * 2), TOPICS, name)
    assert [row["assigned"] != [] for row in found.members.to_pylist()] == [True, True]
    assert found.refused.num_rows == 0


def test_an_eager_assignors_members_give_up_all_that_they_held():
    owned = pa.array([FORMS["texts"][0], None], pa.list_(pa.string()))
    [group] = gl.assign(members(owned=owned), TOPICS, "range").groups.to_pylist()
    assert (group["protocol"], group["rounds"], group["to_revoke"]) == ("EAGER", 1, [])
    revoked = gl.assign(members(owned=owned), TOPICS, "range").members.to_pylist()[0]["revoked"]
    assert revoked == [{"topic": t, "partitions": p} for t, p in TWO.items()]


def test_moves_are_counted_from_held_where_it_is_given():
    kind = pa.list_(pa.string())
    found = gl.assign(
        members(owned=pa.array([["orders-0", "orders-1"], None], kind), held=pa.array([["orders-0"], None], kind)),
        TOPICS,
    )
    assert found.members.to_pylist()[0]["held"] == [{"topic": "orders", "partitions": [0]}]


def test_racks_of_members_and_replicas():
    topics = pa.table({"topic": ["orders"], "partitions": [2], "racks": [[["x"], ["y"]]]})
    mine = members(rack=["y", "x"], topics=[["orders"], ["orders"]])
    found = gl.assign(mine, topics, "range").members.to_pylist()
    assert [row["assigned"][0]["partitions"] for row in found] == [[1], [0]]


def test_pandas_polars_and_arrow_give_the_same_and_their_own_kind():
    owned = pa.array([FORMS["lists of a topic"][0], None], FORMS["lists of a topic"][1])
    mine = members(owned=owned, generation=pa.array([3, None], pa.int32()))
    arrow = gl.assign(mine, TOPICS)
    pandas = gl.assign(mine.to_pandas(), TOPICS.to_pandas())
    polars = gl.assign(pl.from_arrow(mine), pl.from_arrow(TOPICS))
    for name in ("members", "groups", "refused", "result"):
        expected = getattr(arrow, name).to_pylist()
        assert isinstance(getattr(pandas, name), pd.DataFrame)
        assert isinstance(getattr(polars, name), pl.DataFrame)
        assert getattr(polars, name).to_dicts() == expected
        assert getattr(pandas, name).astype(object).where(lambda f: f.notna(), None).to_dict("records") == expected


def test_objects_of_pandas_dictionaries_and_missing_numbers():
    mine = pd.DataFrame(
        [
            {"group_id": "g", "member_id": "a", "topics": ["t"], "owned": {"t": [0, 1]}, "generation": 4},
            {"group_id": "g", "member_id": "b", "topics": ["t"], "owned": None, "generation": None},
        ]
    )
    found = gl.assign(mine, pd.DataFrame({"topic": ["t"], "partitions": [2.0]}))
    assert found.members["held"].tolist() == [[{"topic": "t", "partitions": [0, 1]}], []]
    assert found.groups["moved"].tolist() == [1]
    assert repr(found) == "Assigned(by=group_id; members, groups, refused: tables of pandas)"


@pytest.mark.parametrize("empty", ["members", "topics"])
def test_empty_tables_give_whole_schemas(empty):
    found = gl.assign(
        members().slice(0, 0 if empty == "members" else 2), TOPICS.slice(0, 0 if empty == "topics" else 2)
    )
    assert found.members.schema.names == ["group_id", *gl.ASSIGNED_MEMBERS.names[3:]]
    assert found.groups.schema.names == ["group_id", *gl.ASSIGNED_GROUPS.names[3:]]
    assert found.refused.schema.names == ["group_id", "code", "message"]
    assert [row["unassigned_partitions"][0]["reason"] for row in found.groups.to_pylist()] == (
        [] if empty == "members" else ["topic-unknown"]
    )
