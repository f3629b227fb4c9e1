"""Groups that none of our assignors can answer for: the record stands, nothing is quarantined, and the row says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.tables import columns as c
from tests.engine.bucket_rows import AS_KAFKA, computed, group_row, member_row, topic_row, wire
from tests.engine.test_compute import good

NOT_OURS = "cannot-tell: Kafka has no assignor of this name"


def kafka_js(chosen="RoundRobinAssigner", **of_group):
    """A had both partitions of t, B joined: A keeps one, B gets the other."""
    return [
        group_row(
            "js/1",
            **{"assignor": "RoundRobinAssigner", "chosen": chosen, "shared_topics": ["t"], **of_group},
            previous_snapshot_id="js/0",
        ),
        member_row("js/1", 0, "A", recorded=wire([("t", 0)])),
        member_row("js/1", 1, "B", recorded=wire([("t", 1)])),
        member_row("js/0", 0, "A", recorded=wire([("t", 0), ("t", 1)])),
        topic_row("js/1", "t", 2),
    ]


@pytest.mark.parametrize("name", ["RoundRobinAssigner", "stream", "com.example.Ours", "\u202ename"])
def test_an_assignor_that_is_not_ours_is_no_wrong_input(name):
    """Its record stands as in the scenario `recorded`; nothing is quarantined, its neighbours are as without it."""
    result = computed([*kafka_js(name, assignor=name), *good()])
    as_recorded = computed(kafka_js(None, assignor=name), replace(AS_KAFKA, coordinator=None))
    (found,) = [row for row in result["rebalances"] if row[c.GROUP_ID] == "js"]
    (recorded,) = as_recorded["rebalances"]
    assert (found[c.OUTCOME], found[c.VERDICT], found[c.CODE]) == ("NOT_RECOMPUTED", NOT_OURS, "UNKNOWN_ASSIGNOR")
    assert found[c.MESSAGE].startswith(f"assignor is {name!r}; expected one of constrained-cooperative-sticky, ")
    assert "custom assignor of this name" in found[c.MESSAGE]
    assert "assign.overrides" in found[c.MESSAGE]
    told = {c.OUTCOME, c.VERDICT, c.CODE, c.MESSAGE, c.ATTRIBUTION, c.ATTRIBUTED_TO}
    known = {"RoundRobinAssigner": ("exact", ["kafkajs-roundrobin"])}.get(name, ("no-known-assignor", []))
    assert (found[c.ATTRIBUTION], found[c.ATTRIBUTED_TO]) == known
    assert (recorded[c.OUTCOME], recorded[c.VERDICT], recorded[c.CODE]) == ("ASSIGNED", "not-compared", None)
    assert {k: v for k, v in found.items() if k not in told} == {k: v for k, v in recorded.items() if k not in told}
    assert (found[c.ASSIGNOR], found["protocol"], found["moves"]) == ("recorded", "EAGER", 1)
    assert [row for row in result["assignments"] if row[c.GROUP_ID] == "js"] == as_recorded["assignments"]
    assert result["quarantine"] == result["violations"] == []
    neighbours = [row for row in result["rebalances"] if row[c.GROUP_ID] != "js"]
    assert neighbours == computed(good())["rebalances"]


@pytest.mark.parametrize(
    ("of_group", "outcome", "verdict", "code"),
    [
        ({"chosen": "", "assignor": None}, "NOT_RECOMPUTED", "cannot-tell: no assignor recorded", "NO_ASSIGNOR"),
        ({"snapshot_kind": "rewrite"}, "NOT_RECOMPUTED", "rewrite", "UNKNOWN_ASSIGNOR"),
        ({"complete": False}, "NOT_RECOMPUTED", "cannot-tell: incomplete snapshot", "UNKNOWN_ASSIGNOR"),
        ({"chosen": "range"}, "ASSIGNED", "not-compared", None),
        (
            {"chosen": None, "protocol_type": "connect", "assignor": "sessioned"},
            *("NOT_RECOMPUTED", "cannot-tell: other protocol type", "OTHER_PROTOCOL_TYPE"),
        ),
        (
            {"chosen": None, "protocol_type": "sr", "assignor": "v0"},
            *("NOT_RECOMPUTED", "cannot-tell: other protocol type", "OTHER_PROTOCOL_TYPE"),
        ),
        (
            {"chosen": None, "group_type": "share", "protocol_type": None},
            *("NOT_RECOMPUTED", "cannot-tell: a share group", "OTHER_GROUP_TYPE"),
        ),
        (
            {"chosen": None, "group_type": "streams", "protocol_type": None},
            *("NOT_RECOMPUTED", "cannot-tell: a streams group", "OTHER_GROUP_TYPE"),
        ),
        (
            {"chosen": None, "group_type": "share", "protocol_type": None, "complete": False},
            *("NOT_RECOMPUTED", "cannot-tell: incomplete snapshot", "OTHER_GROUP_TYPE"),
        ),
    ],
)
def test_what_becomes_of_others_that_cannot_be_asked(of_group, outcome, verdict, code):
    result = computed(kafka_js(**of_group))
    (row,) = result["rebalances"]
    assert (row[c.OUTCOME], row[c.VERDICT], row[c.CODE]) == (outcome, verdict, code)
    assert (row[c.MESSAGE] is None) == (code is None)
    assert result["quarantine"] == []


def test_the_state_of_a_group_that_went_back_from_kip_848_was_computed_by_nobody():
    """t-1 is held by no member any more, and no assignor has run since: nothing was left out."""
    back = [
        group_row("g/1", assignor="range", chosen="range", snapshot_kind="fold", shared_topics=["t"]),
        member_row("g/1", 0, "A", recorded=wire([("t", 0)])),
        topic_row("g/1", "t", 2),
    ]
    result = computed(back)
    (row,) = result["rebalances"]
    assert (row[c.VERDICT], row[c.OUTCOME]) == ("not-compared", "ASSIGNED")
    assert result["violations"] == []


@pytest.mark.parametrize("coordinator", ["uniform", None])
def test_partitions_with_several_owners_break_no_rule_in_a_share_group(coordinator):
    share = [
        group_row("g/1", group_type="share", protocol_type=None, assignor=None, chosen=None, shared_topics=["t"]),
        *(member_row("g/1", place, name, recorded=wire([("t", 0), ("t", 1)])) for place, name in enumerate("AB")),
        topic_row("g/1", "t", 2),
    ]
    result = computed(share, replace(AS_KAFKA, coordinator=coordinator))
    (row,) = result["rebalances"]
    assert (row[c.OUTCOME], row[c.VERDICT]) == ("NOT_RECOMPUTED", "cannot-tell: a share group")
    assert [each[c.ASSIGNED] for each in result["assignments"]] == [[{"topic": "t", "partitions": [0, 1]}]] * 2
    assert result["violations"] == result["quarantine"] == []


def test_one_that_is_rejected_stays_rejected():
    (row,) = computed([*kafka_js(), member_row("js/1", 2, "A")])["rebalances"]
    assert (row[c.OUTCOME], row[c.CODE]) == ("REJECTED", "MEMBER_TWICE")


def test_a_group_of_nobody_has_no_assignor_to_complain_of():
    (row,) = computed([group_row("e/1", assignor="magic", chosen="magic")])["rebalances"]
    assert (row[c.OUTCOME], row[c.CODE], row[c.VERDICT]) == ("EMPTY", None, "no-members")
