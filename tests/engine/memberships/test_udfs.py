"""The functions for `applyInPandas` and `applyInArrow` give what `assign` gives; here without Spark."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import groupledger as gl
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.memberships.user_tables import register
from groupledger.tables import columns as c
from tests.core.assignors.golden import pairs
from tests.engine.memberships.frames import lists_of, tables

COUNTS = pa.map_(pa.string(), pa.int32())


def with_counts(scenarios, moments=1):
    """Members that bring their topics along."""
    members, _ = tables(scenarios, moments)
    counts = [list(each["topics"].items()) for each in scenarios for _ in each["members"]]
    return members.append_column("topic_partition_counts", pa.array(counts, COUNTS))


@pytest.mark.parametrize("profile", ["homog", "static", "conflict"])
def test_both_forms_give_what_assign_gives_for_several_groups_in_one_call(profile):
    scenarios = [each for each, _ in pairs(profile, 10) if each["assignor"] == "cooperative-sticky"]
    rows = with_counts(scenarios, 5)
    whole = gl.assign(*tables(scenarios, 5), assignor="cooperative-sticky")
    by_arrow = gl.assignor_arrow("cooperative-sticky")(rows)
    by_pandas = gl.assignor_udf("cooperative-sticky")(rows.to_pandas(maps_as_pydicts="strict"))
    assert by_arrow.schema == arrow_schema(gl.ASSIGNOR_SCHEMA)
    assert list(by_pandas.columns) == gl.ASSIGNOR_SCHEMA.names
    expected = lists_of(whole.members.to_pylist())
    assert lists_of(row for row in by_arrow.to_pylist() if row["member_id"] is not None) == expected
    found = by_pandas[by_pandas.member_id.notna()].to_dict("records")
    assert lists_of(found) == expected
    refused = [row[c.CODE] for row in by_arrow.to_pylist() if row[c.CODE] is not None]
    assert refused == whole.refused["code"].to_pylist()


def test_groups_of_one_call_are_kept_apart_by_all_keys_that_are_there():
    rows = pd.DataFrame(
        {
            "cluster_id": cluster,
            "group_id": "g",
            "member_id": member,
            "topics": ["t"],
            "topic_partition_counts": {"t": 2},
        }
        for cluster in ("x", "y")
        for member in ("a", "b")
    )
    found = gl.assignor_udf("range")(rows)
    assert found[["cluster_id", "member_id"]].to_numpy().tolist() == [["x", "a"], ["x", "b"], ["y", "a"], ["y", "b"]]
    assert [row[0]["partitions"] for row in found["assigned"]] == [[0], [1], [0], [1]]


def test_the_arrays_of_spark_are_lists_though_one_without_values_is_of_floats():
    owned = [np.array([]), np.array([{"topic": "t", "partitions": np.array([1, 0], np.int32)}]), None]
    rows = pd.DataFrame({"group_id": "g", "member_id": list("abc"), "topics": [np.array(["t"], object)] * 3})
    rows["owned"], rows["topic_partition_counts"] = pd.Series(owned, dtype=object), pd.Series([{"t": 2}] * 3)
    held = gl.assignor_udf("range")(rows).held.tolist()
    assert held == [[], [{"topic": "t", "partitions": [1, 0]}], []]


def test_nulls_are_refused_as_rows_and_an_empty_table_gives_an_empty_one():
    row = {"group_id": "g", "member_id": "a", "topics": None, "topic_partition_counts": None}
    found = gl.assignor_udf("range")(pd.DataFrame([row]))
    assert found[["group_id", "code"]].to_numpy().tolist() == [["g", "MISSING_VALUE"]]
    assert gl.assignor_udf("range")(pd.DataFrame([row | {"group_id": None}]))["group_id"].tolist() == [None]
    assert gl.ASSIGNOR_SCHEMA["group_id"].nullable
    assert gl.assignor_arrow("range")(with_counts([]).slice(0, 0)).num_rows == 0


def test_wrong_use_is_said_in_one_line():
    with pytest.raises(gl.Fault, match=r"did you mean range\? expected one of .*cooperative-sticky"):
        gl.assignor_udf("ranje")
    with pytest.raises(gl.Fault, match="columns topics, topic_partition_counts are missing; got group_id, member_id"):
        gl.assignor_udf("range")(pd.DataFrame([{"group_id": "g", "member_id": "A"}]))


def test_spark_40_has_no_table_function():
    session = type("Session", (), {"version": "4.0.5"})()
    with pytest.raises(gl.Fault, match=r"this is Spark 4\.0\.5, which has no table functions over Arrow") as refused:
        register(session)
    assert refused.value.code == "SPARK_UNSUPPORTED"
