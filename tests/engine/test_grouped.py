"""The notebook's UDF gives what the job gives; here without Spark."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

import groupledger
from groupledger.core.faults import Fault
from groupledger.engine.grouped import ASSIGNOR_SCHEMA, LISTS, assignor_udf
from groupledger.tables import columns as c
from tests.engine.bucket_rows import computed, scenario_rows, wire
from tests.engine.test_compute import scenarios


def frame(scenario):
    """The members of a scenario as a notebook has them."""
    return pd.DataFrame(
        {
            "group_id": scenario["id"],
            "member_order": order,
            "member_id": member["id"],
            "group_instance_id": member["instance_id"],
            "topics": member["topics"],
            "topic_partition_counts": scenario["topics"],
            "claimed": wire(map(tuple, member["owned"])),
            "claimed_generation": None if member["generation"] < 0 else member["generation"],
            "subscription_generation": None if member["generation"] < 0 else member["generation"],
        }
        for order, member in enumerate(scenario["members"])
    )


@pytest.mark.parametrize("profile", ["homog", "static", "chain"])
def test_the_same_answer_as_the_job(profile):
    for scenario, _ in scenarios(profile, 25):
        by_hand = assignor_udf(scenario["assignor"])(frame(scenario).sample(frac=1, random_state=7))
        job = {row[c.MEMBER_ID]: row for row in computed(scenario_rows(scenario))["assignments"]}
        assert list(by_hand.columns) == ASSIGNOR_SCHEMA.names
        rows = by_hand.to_dict("records")
        found = {row[c.MEMBER_ID]: row for row in rows if row[c.MEMBER_ID] is not None}
        assert list(found) == [member["id"] for member in scenario["members"]]
        for member, row in job.items():
            for name in (c.TARGET, c.ASSIGNED, c.AWAITING):
                assert found[member][name] == row[name], (scenario["id"], name)


def test_held_is_what_moves_are_measured_from():
    members = pd.DataFrame(
        [
            {"group_id": "g", "member_id": "A", "topics": ["t"], "topic_partition_counts": {"t": 2},
             "claimed": wire([("t", 0), ("t", 1)]), "held": wire([("t", 0)])},
            {"group_id": "g", "member_id": "B", "topics": ["t"], "topic_partition_counts": {"t": 2}, "claimed": None},
        ]
    )  # fmt: skip
    rows = assignor_udf("cooperative-sticky")(members).set_index("member_id")
    assert rows.loc["A", "held"] == [{"topic": "t", "partitions": [0]}]
    assert rows.loc["B", "awaiting"] == [{"topic": "t", "partitions": [1]}]


def test_a_refused_group_says_why():
    members = pd.DataFrame(
        [{"group_id": "g", "member_id": "A", "topics": ["t"], "topic_partition_counts": {"t": 2}}] * 2
    )
    (row,) = assignor_udf("range")(members).to_dict("records")
    assert (row["group_id"], row["code"]) == ("g", "MEMBER_TWICE")
    assert all(pd.isna(row[name]) for name in (*LISTS, "member_id"))


def test_spark_can_take_what_it_gives():
    """Arrow makes plain arrays of every column, also of one that is null throughout (a float one would be cast)."""
    scenario, _ = scenarios("homog", 1)[0]
    result = assignor_udf(scenario["assignor"])(frame(scenario))
    for field in to_arrow_schema(ASSIGNOR_SCHEMA):
        assert isinstance(pa.Array.from_pandas(result[field.name], type=field.type), pa.Array), field.name


def test_wrong_use_is_said_at_once():
    with pytest.raises(Fault, match=r"'ranje'; expected one of .*cooperative-sticky, range, "):
        assignor_udf("ranje")
    with pytest.raises(Fault, match="columns topics, topic_partition_counts are missing; got group_id, member_id"):
        assignor_udf("range")(pd.DataFrame([{"group_id": "g", "member_id": "A"}]))


def test_the_package_offers_it_and_imports_nothing_for_it():
    assert groupledger.assignor_udf is assignor_udf
    assert groupledger.ASSIGNOR_SCHEMA is ASSIGNOR_SCHEMA
    with pytest.raises(AttributeError, match="no attribute 'asignor_udf'"):
        groupledger.asignor_udf  # noqa: B018 - the attribute access is the test
    heavy = "import sys, groupledger; print([m for m in ('pyspark', 'pandas', 'numpy', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "[]\n"
