"""Real captures, recomputed: what equals the record, and by what name the rest is told apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from groupledger.core.rebalance.step import Form
from groupledger.core.rebalance.verdict import Verdict
from groupledger.engine import bucket_rows as r
from groupledger.engine.bucket_rows import Parts, TopicsAt
from groupledger.engine.group_arrays import Calculation, coordinator_verdicts
from groupledger.tables import columns as c
from tests.core.history.captured import folded
from tests.engine.bucket_rows import AS_KAFKA, TOPIC, catalogue, computed, table
from tests.engine.captured_rows import CAPTURES, captured_groups, rows_of

EXACT = {"exact"}
MEMBER_METADATA = 5  # type of record
VIEWS = {"exact-older-topics", "exact-newer-topics", "topic-unknown-to-leader"}
NOT_RECOMPUTED = {"not-compared", "rewrite"}
JAVA = ("java-", "st-java", "mute-java", "stale-java", "zo-java", "rc-java", "gr-java", "del-java", "up-", "c-java")


@pytest.fixture(scope="module")
def rebalances():
    """(capture, group) -> its rebalances, each capture computed as one bucket."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for capture in CAPTURES:
        rows = [row for group in captured_groups(capture) for row in rows_of(capture, group)]
        for row in computed(rows)["rebalances"]:
            found.setdefault((capture, row[c.GROUP_ID]), []).append(row)
    return found


def verdicts(rows, *assignors):
    return Counter(row[c.VERDICT] for row in rows if row[c.ASSIGNOR] in assignors)


def test_range_and_roundrobin_equal_the_record_whoever_led(rebalances):
    compared = Counter[str]()
    for key, rows in rebalances.items():
        found = verdicts(rows, "range", "roundrobin")
        assert set(found) <= EXACT | VIEWS, key
        compared += found
    assert compared.total() > 50


def test_java_equals_the_record_under_every_assignor(rebalances):
    java = {key: rows for key, rows in rebalances.items() if key[1].startswith(JAVA)}
    assert len(java) >= 15
    for key, rows in java.items():
        found = verdicts(rows, "range", "roundrobin", "sticky", "cooperative-sticky")
        assert set(found) <= EXACT | VIEWS, key
        assert found or {row[c.GROUP_TYPE] for row in rows} != {"classic"}, key


def test_other_clients_own_algorithms_differ_but_keep_the_rules(rebalances):
    """librdkafka keeps its highest partitions where all members share one subscription: 12 records of `edge`."""
    edge = [row for (capture, _), rows in rebalances.items() if capture == "edge" for row in rows]
    assert verdicts(edge, "cooperative-sticky")["valid-different"] == 12
    every = Counter(row[c.VERDICT] for rows in rebalances.values() for row in rows)
    assert every["invalid"] == 0


def test_the_views_of_topics_are_told_apart(rebalances):
    assert verdicts(rebalances["dev", "java-roundrobin"], "roundrobin") == {"exact": 8, "topic-unknown-to-leader": 1}
    assert verdicts(rebalances["edge", "rc-java"], "range") == {
        "exact": 5,
        "exact-older-topics": 1,
        "exact-newer-topics": 1,
    }


def test_a_rewrite_is_not_recomputed(rebalances):
    rewrites = [row for rows in rebalances.values() for row in rows if row[c.VERDICT] == "rewrite"]
    assert len(rewrites) == 16
    assert {row[c.ASSIGNOR] for row in rewrites} == {"recorded"}


def test_each_snapshot_has_one_outcome(rebalances):
    for (capture, group), rows in rebalances.items():
        assert len(rows) == len(folded(f"{capture}/offsets", group).group_snapshots), (capture, group)
        for row in rows:
            assert (row[c.OUTCOME] == "EMPTY") == (row[c.MEMBERS] == 0) == (row[c.VERDICT] == "no-members")


def test_an_upgrade_is_eager_by_what_members_did(rebalances):
    """While members list range as well they claim nothing, though the protocol says cooperative-sticky."""
    protocols = [(row[c.GENERATION], row[c.PROTOCOL]) for row in rebalances["edge", "up-coop-first"]
                 if row[c.ASSIGNOR] == "cooperative-sticky"]  # fmt: skip
    assert [protocol for _, protocol in sorted(protocols)] == ["EAGER"] * 4 + ["COOPERATIVE"] * 8


def of_coordinators(rebalances, capture):
    rows = [row for (own, _), rows in rebalances.items() if own == capture for row in rows]
    return Counter(row[c.VERDICT] for row in rows if row[c.GROUP_TYPE] == "consumer" and row[c.OUTCOME] != "EMPTY")


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        ("dev", {"exact": 64, "exact-newer-topics": 13}),
        ("edge", {"exact": 122, "exact-newer-topics": 56}),
        ("compacted", {"cannot-tell: incomplete snapshot": 2, "cannot-tell: the group before is not known": 1}),
    ],
)
def test_what_a_coordinator_wrote_is_recomputed(rebalances, capture, expected):
    """The targets of KIP-848 groups: never another answer, and nothing is said where the log does not show enough."""
    assert of_coordinators(rebalances, capture) == expected


def modern(capture, change, calculation=AS_KAFKA):
    """Verdicts on the KIP-848 group `new-java-uniform`, of rows that `change` keeps or replaces."""
    rows = [changed for row in rows_of(capture, GROUP_848) for changed in change(row)]
    found = computed(rows, calculation)["rebalances"]
    return Counter(row[c.VERDICT] for row in found if row[c.OUTCOME] != "EMPTY")


def is_record(row, record_type=None):
    return row["row_kind"] == r.RECORD_ROW and record_type in (None, row["key"][1])


GROUP_848 = "new-java-uniform"
UNKNOWN_BEFORE = "cannot-tell: the group before is not known"


@pytest.mark.parametrize(
    ("change", "verdicts"),
    [
        (lambda row: [] if is_record(row) else [row], {UNKNOWN_BEFORE}),
        (lambda row: [] if row["row_kind"] == TOPIC else [row], {"cannot-tell: no partition counts"}),
        (
            lambda row: [row | {"topic_id": "no id"}] if row["row_kind"] == TOPIC else [row],
            {"cannot-tell: no partition counts"},
        ),
        (
            lambda row: [row | {"partition_count": -1}] if row["row_kind"] == TOPIC else [row],
            {"not-compared"},  # the group is refused as a whole
        ),
        (lambda row: [row | {"value": b"\0"}] if is_record(row, MEMBER_METADATA) else [row], {UNKNOWN_BEFORE}),
        (lambda row: [row, row] if is_record(row) else [row], {"exact", "exact-newer-topics"}),
        (
            lambda row: [row, row | {"timestamp": row["timestamp"] + 1, "value": b"\0"}] if is_record(row) else [row],
            {"exact", "exact-newer-topics"},
        ),
    ],
    ids=["no records", "no topics", "no topic ids", "bad counts", "undecodable", "read twice", "written twice"],
)
def test_a_coordinator_is_judged_by_what_is_there(change, verdicts):
    assert set(modern("dev", change)) == verdicts


def test_a_listing_that_cannot_be_is_no_evidence_against_a_record():
    """The record shows partitions enough; a pipeline's run refuses such groups before."""
    rows = [row | {"partition_count": -1} if row["row_kind"] == TOPIC else row for row in rows_of("dev", GROUP_848)]
    bucket, topics = table(rows), catalogue(rows)
    parts = Parts(*(bucket.filter(pc.equal(bucket["row_kind"], kind)) for kind in r.FIELDS))
    listed = len(topics.listings.start) - 1
    every = np.tile(np.arange(listed), len(parts.groups))
    at = TopicsAt.find(topics, every, np.zeros(len(every), np.int64))
    found = coordinator_verdicts(parts, at, np.arange(len(parts.groups) + 1) * listed, "uniform")
    assert set(found.verdict.tolist()) == {Verdict.EXACT, Verdict.EXACT_RECORDED_TOPICS}


def test_a_scenario_without_assignor_compares_no_coordinator():
    found = modern("dev", lambda row: [row], Calculation("recorded", Form.AS_KAFKA))
    assert set(found) == {"not-compared"}


def test_the_brokers_own_default_is_a_setting():
    """Members that ask for none are given the first assignor the broker is configured with."""
    wrong = replace(AS_KAFKA, coordinator="range")
    found = {
        name: Counter(row[c.VERDICT] for row in computed(rows_of("edge", "st-java-new"), of)["rebalances"])
        for name, of in (("uniform", AS_KAFKA), ("range", wrong))
    }
    assert not {"valid-different", "invalid"} & found["uniform"].keys()
    assert found["range"]["valid-different"] > 0


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_was_recorded_is_its_own_scenario(capture):
    """Without an assignor the step goes from held to recorded: what is assigned is what was recorded."""
    rows = [row | {"chosen": None} for group in captured_groups(capture) for row in rows_of(capture, group)]
    result = computed(rows, Calculation("recorded", Form.AS_KAFKA))
    recorded = {
        (row["snapshot_id"], row[c.MEMBER_ID]): sorted(
            {(e["topic"] or e["topic_id"], p) for e in row["recorded"] or () for p in e["partitions"]}
        )
        for row in rows
        if row["row_kind"] == 1
    }
    assert {row[c.ASSIGNOR] for row in result["rebalances"]} == {"recorded"}
    for row in result["assignments"]:
        assigned = sorted((e["topic"], p) for e in row[c.ASSIGNED] for p in e["partitions"])
        assert assigned == recorded[row[c.SNAPSHOT_ID], row[c.MEMBER_ID]]
