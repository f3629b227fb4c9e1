"""Custom assignors in a bucket and in a notebook: as any other, and the harm of one is its group's alone."""

from __future__ import annotations

import random
import sys

import pandas as pd
import pytest

from groupledger.core.custom import Member, TopicPartition
from groupledger.core.custom.assignor_names import find
from groupledger.core.custom.contract import groups
from groupledger.core.faults import Fault
from groupledger.core.rebalance.step import Form
from groupledger.engine.bucket_rows import parts_of
from groupledger.engine.group_arrays import Calculation, decode
from groupledger.engine.memberships.user_tables import assignor_udf
from groupledger.tables import columns as c
from tests.engine.bucket_rows import catalogue, computed, group_row, member_row, table, topic_row, wire

FAULTY = "tests.core.custom.faulty"
STEPS = f"{FAULTY}:in_turns_in_steps"
T = [("t", number) for number in range(4)]


def rows(group, chosen, assignor="range", recorded=None, **of_a):
    """A owns all four partitions of t; B joins."""
    now, before = f"{group}/1", f"{group}/0"
    recorded = recorded or {}
    return [
        group_row(now, assignor=assignor, chosen=chosen, previous_snapshot_id=before, shared_topics=["t"]),
        member_row(now, 0, "B", subscription_version=3, recorded=wire(recorded.get("B", []))),
        member_row(now, 1, "A", subscription_version=3, claimed=wire(T), recorded=wire(recorded.get("A", [])), **of_a),
        member_row(before, 0, "A", recorded=wire(T)),
        topic_row(now, "t", 4),
    ]


def calculation(*names, form=Form.AS_KAFKA):
    return Calculation("baseline", form, custom=tuple(map(find, names)))


def by_group(result, table):
    found: dict[str, list[dict[str, object]]] = {}
    for row in result[table]:
        found.setdefault(row[c.GROUP_ID], []).append(row)
    return found


def lists(row):
    return {
        name: [p for entry in row[name] for p in entry["partitions"]] for name in ("target", "assigned", "awaiting")
    }


@pytest.mark.parametrize("form", list(Form))
def test_a_cooperative_custom_assignor_steps_as_ours_do(form):
    result = computed(rows("g", STEPS), calculation(STEPS, form=form))
    (rebalance,) = result["rebalances"]
    assert (rebalance["assignor"], rebalance["protocol"], rebalance["outcome"]) == (STEPS, "COOPERATIVE", "ASSIGNED")
    assert (rebalance["verdict"], rebalance["code"], rebalance["follow_up"]) == ("not-compared", None, True)
    members = {row["member_id"]: lists(row) for row in result["assignments"]}
    assert members["A"] == {"target": [0, 2], "assigned": [0, 2], "awaiting": []}
    assert members["B"] == {"target": [1, 3], "assigned": [], "awaiting": [1, 3]}


def test_an_eager_custom_assignor_hands_over_at_once():
    name = f"{FAULTY}:in_turns"
    result = computed(rows("g", name), calculation(name))
    members = {row["member_id"]: lists(row) for row in result["assignments"]}
    assert result["rebalances"][0]["protocol"] == "EAGER"
    assert members["B"] == {"target": [1, 3], "assigned": [1, 3], "awaiting": []}


@pytest.mark.parametrize(
    ("recorded", "verdict"),
    [
        ({"A": [("t", 0), ("t", 2)]}, "exact"),
        ({"A": [("t", 0)], "B": []}, "valid-different"),
        ({"A": T[:1], "B": T[1:]}, "invalid"),
    ],
)
def test_a_record_of_members_that_joined_by_its_name_is_judged(recorded, verdict):
    result = computed(rows("g", STEPS, assignor="in-turns-in-steps", recorded=recorded), calculation(STEPS))
    assert result["rebalances"][0]["verdict"] == verdict


BAD = {
    "raises": "ASSIGNOR_RAISED",
    "everything_to_everyone": "ASSIGNOR_DOUBLE_ASSIGNED",
    "in_turns_at_once": "ASSIGNOR_HANDED_OVER",
    "by_calls": "ASSIGNOR_NOT_PURE",
    "first_in_line": "ASSIGNOR_ORDER_DEPENDENT",
}


def test_a_failing_one_harms_no_other_group():
    names = [f"{FAULTY}:{name}" for name in BAD]
    bucket = (
        [row for name in BAD for row in rows(name, f"{FAULTY}:{name}")] + rows("fine", STEPS) + rows("ours", "range")
    )
    result = computed(bucket, calculation(STEPS, *names))
    outcomes = {row["group_id"]: (row["outcome"], row["code"]) for row in result["rebalances"]}
    assert outcomes == {
        "fine": ("ASSIGNED", None),
        "ours": ("ASSIGNED", None),
        **{name: ("REJECTED", code) for name, code in BAD.items()},
    }
    assert {name: [row["code"] for row in found] for name, found in by_group(result, "violations").items()} == {
        name: [code] for name, code in BAD.items()
    }
    assert {row["group_id"]: row["code"] for row in result["quarantine"]} == BAD
    assert set(by_group(result, "assignments")) == {"fine", "ours"}
    alone = computed(rows("fine", STEPS), calculation(STEPS))
    assert by_group(result, "assignments")["fine"] == alone["assignments"]


def test_the_order_of_rows_means_nothing():
    bucket = rows("fine", STEPS) + rows("bad", f"{FAULTY}:stranger")
    names = (STEPS, f"{FAULTY}:stranger")
    first = computed(bucket, calculation(*names))
    for seed in range(5):
        shuffled = random.Random(seed).sample(bucket, len(bucket))  # noqa: S311
        assert computed(shuffled, calculation(*names)) == first


def test_data_imports_nothing():
    """A record may say what it likes: only what was configured is looked for."""
    result = computed(rows("g", "antigravity:geohash", assignor="antigravity:geohash"), calculation(STEPS))
    (rebalance,) = result["rebalances"]
    assert (rebalance["outcome"], rebalance["code"]) == ("NOT_RECOMPUTED", "UNKNOWN_ASSIGNOR")
    assert "antigravity" not in sys.modules


def test_the_assignor_reads_user_data_of_members():
    name = "examples.lag_weighted:assign"
    heavy = b'{"t": {"0": 90, "1": 10, "2": 10, "3": 10}}'
    result = computed(rows("g", name, user_data=heavy), calculation(name))
    members = {row["member_id"]: lists(row)["target"] for row in result["assignments"]}
    assert members == {"A": [0], "B": [1, 2, 3]}


def test_what_the_function_is_told():
    now, topics = "g/1", ["t", "without-metadata"]
    bucket = [
        group_row(now, assignor="range", chosen=STEPS),
        member_row(now, 0, "B", topics=topics, claimed_generation=3, subscription_generation=5, rack_id="r1"),
        member_row(now, 1, "A", topics=["t"], claimed=wire([("t", 1), ("u", 0)]), claimed_generation=4),
        member_row(now, 2, "C", topics=["t"], group_instance_id="static", user_data=b"data"),
        topic_row(now, "t", 2),
        topic_row(now, "u", 7),
    ]
    decoded = decode(
        parts_of(table(bucket)),
        Calculation("custom", Form.AS_KAFKA, 100, custom=(find(STEPS),), topics=catalogue(bucket)),
    )
    texts = decoded.choice.texts
    assert texts is not None
    (told,) = groups(decoded.snapshots.batch, texts)
    t1, u0 = TopicPartition("t", 1), TopicPartition("u", 0)
    assert told.topics == {"t": 2}
    assert told.members == (
        Member("B", ("t", "without-metadata"), (), 5, None, "r1", None),
        Member("A", ("t",), (t1, u0), 4),
        Member("C", ("t",), (), None, "static", None, b"data"),
    )


def frame(member_id, claimed, data=None):
    counts = {"topics": ["t"], "topic_partition_counts": {"t": 4}}
    return {"group_id": "g", "member_id": member_id, **counts, "owned": wire(claimed), "user_data": data}


def test_the_notebooks_function_takes_a_custom_name():
    heavy = b'{"t": {"0": 90, "1": 10, "2": 10, "3": 10}}'
    members = pd.DataFrame([frame("A", T, heavy), frame("B", [])])
    found = assignor_udf("examples.lag_weighted:assign")(members).set_index("member_id")
    assert lists(found.loc["B"]) == {"target": [1, 2, 3], "assigned": [], "awaiting": [1, 2, 3]}
    (refused,) = assignor_udf(f"{FAULTY}:raises")(members).to_dict("records")
    assert (refused["member_id"], refused["code"]) == (None, "ASSIGNOR_RAISED")
    with pytest.raises(Fault, match="cannot import no_such_module:assign"):
        assignor_udf("no_such_module:assign")
