"""Wrong columns are refused in one line before anything runs; wrong rows refuse their group, and no other."""

from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import groupledger as gl

TEXTS = pa.list_(pa.string())
PAIRS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int64())]))
LISTS = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int64()))]))
MAP = pa.map_(pa.string(), pa.list_(pa.int64()))


def members(**columns):
    """Three groups of two; the second is what a test makes wrong."""
    rows = {
        "group_id": ["g1", "g1", "g2", "g2", "g3", "g3"],
        "member_id": ["a", "b"] * 3,
        "topics": pa.array([["t"]] * 6, TEXTS),
    }
    return pa.table({**rows, **columns})


def topics(**columns):
    return pa.table({"topic": ["t", "u"], "partitions": [2, 1], **columns})


def third(wrong, right, kind=None):
    """A column whose value is wrong in a row of the second group."""
    return pa.array([right, right, wrong, right, right, right], kind)


COLUMNS: dict[str, tuple[Any, Any, dict[str, Any], str, str]] = {
    "topics as a text": (
        members(topics=["t"] * 6),
        topics(),
        {},
        "COLUMN_TYPE",
        "topics is string; expected array<string>",
    ),
    "no member_id": (
        members().drop_columns(["member_id"]),
        topics(),
        {},
        "COLUMN_MISSING",
        "member_id is missing; got group",
    ),
    "no topics": (members().drop_columns(["topics"]), topics(), {}, "COLUMN_MISSING", "topics is missing"),
    "no group_id": (members().drop_columns(["group_id"]), topics(), {}, "COLUMN_MISSING", "group_id is missing"),
    "no topic": (members(), topics().drop_columns(["topic"]), {}, "COLUMN_MISSING", "topics: column topic is missing"),
    "no partitions": (members(), topics().drop_columns(["partitions"]), {}, "COLUMN_MISSING", "renames"),
    "Decimal": (
        members(),
        topics(partitions=[Decimal(2), Decimal(1)]),
        {},
        "COLUMN_TYPE",
        r"partitions is decimal.*whole",
    ),
    "numbers as texts": (members(), topics(partitions=["2", "1"]), {}, "COLUMN_TYPE", "partitions is string"),
    "ids as numbers": (members(member_id=list(range(6))), topics(), {}, "COLUMN_TYPE", "member_id is bigint"),
    "a list of numbers": (members(topics=[[1]] * 6), topics(), {}, "COLUMN_TYPE", "topics is array<bigint>"),
    "owned as a text": (
        members(owned=["t-0"] * 6),
        topics(),
        {},
        "COLUMN_TYPE",
        "owned is string; expected array<struct",
    ),
    "owned as numbers": (members(owned=[[0]] * 6), topics(), {}, "COLUMN_TYPE", "owned is array<bigint>"),
    "generation as a text": (members(generation=["1"] * 6), topics(), {}, "COLUMN_TYPE", "generation is string"),
    "rack as a number": (members(rack=[1] * 6), topics(), {}, "COLUMN_TYPE", "rack is bigint; expected string"),
    "racks as texts": (members(), topics(racks=[["r"], ["r"]]), {}, "COLUMN_TYPE", "racks is array<string>"),
    "a float key": (members(k=[0.5] * 6), topics(), {"by": ("group_id", "k")}, "COLUMN_TYPE", "k is double"),
    "two types of a key": (
        members(k=list(range(6))),
        topics(k=["1", "2"]),
        {"by": ("group_id", "k")},
        "COLUMN_TYPE",
        "one type in both",
    ),
    "by as a text": (members(), topics(), {"by": "group_id"}, "USAGE", "by is the text 'group_id'"),
    "by without the group": (members(k=[1] * 6), topics(), {"by": ("k",)}, "USAGE", "expected group_id among them"),
    "by of what is not there": (members(), topics(), {"by": ("group_id", "env")}, "COLUMN_MISSING", "env is missing"),
    "a new name of nothing": (members(), topics(), {"columns": {"member": "x"}}, "USAGE", "did you mean member_id"),
    "a new name that is not there": (
        members(),
        topics(),
        {"columns": {"member_id": "x"}},
        "COLUMN_MISSING",
        "column x",
    ),
    "no assignor": (members(), topics(), {"assignor": "ranje"}, "UNKNOWN_ASSIGNOR", "did you mean range"),
    "a coordinator's": (
        members(),
        topics(),
        {"assignor": "uniform"},
        "UNKNOWN_ASSIGNOR",
        "KIP-848.*solve computes server-uniform",
    ),
    "a client library's": (
        members(),
        topics(),
        {"assignor": "aiokafka-range"},
        "UNKNOWN_ASSIGNOR",
        "only in `groupledger solve`",
    ),
    "no module": (members(), topics(), {"assignor": "no_such:assign"}, "ASSIGNOR_NOT_FOUND", "cannot import"),
    "a column of numbers": (members(n=[1] * 6), topics(), {"assignor": "n"}, "COLUMN_TYPE", "n is bigint"),
    "another mode": (members(), topics(), {"mode": "kafka"}, "USAGE", "mode is 'kafka'"),
    "no table": ([{"group_id": "g"}], topics(), {}, "USAGE", "members is a builtins.list; expected a DataFrame"),
    "two kinds": (members().to_pandas(), topics(), {}, "USAGE", "members is of pandas, topics of Arrow"),
    "a lazy frame": (pl.from_arrow(members()).lazy(), topics(), {}, "USAGE", r"LazyFrame; .*collect\(\) it"),
    "mixed values": (
        pd.DataFrame({"group_id": ["g", 1], "member_id": ["a", "b"], "topics": [["t"], ["t"]]}),
        topics().to_pandas(),
        {},
        "COLUMN_TYPE",
        "members: column group_id has values",
    ),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_wrong_column_is_refused_before_anything_runs(case):
    mine, theirs, options, code, words = COLUMNS[case]
    with pytest.raises(gl.Fault, match=words) as refused:
        gl.assign(mine, theirs, **options)
    assert refused.value.code == code
    assert "\n" not in refused.value.message


ROWS: dict[str, tuple[Any, Any, str, str]] = {
    "null group": (
        members(group_id=["g1", "g1", None, "g2", "g3", "g3"]),
        topics(),
        "MISSING_VALUE",
        "group_id is null",
    ),
    "null member": (members(member_id=["a", "b", None, "b", "a", "b"]), topics(), "MISSING_VALUE", "member_id is null"),
    "null topics": (
        members(topics=third(None, ["t"], TEXTS)),
        topics(),
        "MISSING_VALUE",
        "topics of member 'a' is null",
    ),
    "null topic": (members(topics=third([None], ["t"], TEXTS)), topics(), "MISSING_VALUE", "has a null in it"),
    "member twice": (
        members(member_id=["a", "b", "b", "b", "a", "b"]),
        topics(),
        "MEMBER_TWICE",
        "member 'b' stands twice",
    ),
    "null in owned": (
        members(owned=third([None], [], PAIRS)),
        topics(),
        "MISSING_VALUE",
        "owned of member 'a' has a null",
    ),
    "null number": (members(owned=third([("t", None)], [], PAIRS)), topics(), "MISSING_VALUE", "owned"),
    "null list": (members(owned=third([("t", None)], [], LISTS)), topics(), "MISSING_VALUE", "owned"),
    "null in a list": (members(owned=third([("t", [None])], [], LISTS)), topics(), "MISSING_VALUE", "owned"),
    "null in a map": (members(owned=third([("t", None)], [], MAP)), topics(), "MISSING_VALUE", "owned"),
    "negative partition": (members(owned=third([("t", -1)], [], PAIRS)), topics(), "NEGATIVE_PARTITION", "below 0"),
    "64 bits": (members(owned=third([("t", 2**40)], [], PAIRS)), topics(), "BAD_VALUE", "owned of member 'a'"),
    "no partition": (members(owned=third(["t"], ["t-0"], TEXTS)), topics(), "BAD_VALUE", "such as 'orders-3'"),
    "NaN": (members(generation=third(float("nan"), 1.0)), topics(), "BAD_VALUE", "generation of member 'a'"),
    "half a generation": (members(generation=third(1.5, 1.0)), topics(), "BAD_VALUE", "not a whole number"),
    "a place twice": (members(member_order=[0, 1, 1, 1, 0, 1]), topics(), "PLACE_TWICE", "that of another"),
    "a place below 0": (members(member_order=[0, 1, -1, 1, 0, 1]), topics(), "BAD_MEMBER_ORDER", "below 0"),
    "some places": (members(member_order=[0, 1, None, 1, 0, 1]), topics(), "MISSING_VALUE", "member_order"),
    "negative count": (
        members(topics=third(["u"], ["t"], TEXTS)),
        topics(partitions=[2, -1]),
        "NEGATIVE_PARTITION_COUNT",
        "'u' is below 0",
    ),
    "null count": (
        members(topics=third(["u"], ["t"], TEXTS)),
        topics(partitions=[2, None]),
        "MISSING_VALUE",
        "'u' is null",
    ),
    "NaN count": (
        members(topics=third(["u"], ["t"], TEXTS)),
        topics(partitions=pa.array([2, float("nan")])),
        "BAD_VALUE",
        "'u' is not",
    ),
    "two counts": (
        members(topics=third(["u"], ["t"], TEXTS)),
        pa.table({"topic": ["t", "u", "u"], "partitions": [2, 1, 3]}),
        "TOPIC_TWICE",
        "partition counts 1 and 3",
    ),
    "racks of one": (
        members(topics=third(["u"], ["t"], TEXTS)),
        topics(racks=[[["r"], ["r"]], []]),
        "BAD_RACKS",
        "one list a partition",
    ),
    "no assignor": (members(how=third(None, "range")), topics(), "NO_ASSIGNOR", "is null"),
    "two assignors": (members(how=third("sticky", "range")), topics(), "BAD_VALUE", "different assignors"),
    "an unknown one": (
        members(how=["range"] * 2 + ["os:system"] * 2 + ["range"] * 2),
        topics(),
        "UNKNOWN_ASSIGNOR",
        "'os:system'",
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_wrong_row_refuses_its_group_alone(case):
    mine, theirs, code, words = ROWS[case]
    found = gl.assign(mine, theirs, "how" if "how" in mine.schema.names else "cooperative-sticky")
    [refused] = found.refused.to_pylist()
    assert refused["code"] == code
    assert words in refused["message"]
    assert refused["group_id"] == (None if case == "null group" else "g2")
    others = {"g1", "g2", "g3"} if case == "null group" else {"g1", "g3"}
    assert {row["group_id"] for row in found.groups.to_pylist()} == others
    assert {row["group_id"] for row in found.members.to_pylist()} == others


def test_equal_rows_of_a_topic_are_one_and_rows_of_no_group_are_of_none():
    twice = pa.table({"topic": ["t", "t", None], "partitions": [2, 2, 5], "group_id": ["g1", "g1", None]})
    found = gl.assign(members(), twice)
    assert found.refused.num_rows == 0
    assert [row["partitions"] for row in found.groups.to_pylist()] == [2, 0, 0]
