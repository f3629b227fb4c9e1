"""The assignors that no Kafka ships, and librdkafka's, chosen in a configuration: in a bucket and in a notebook."""

from __future__ import annotations

import json
from collections import Counter

import pandas as pd
import pytest

from groupledger.config import parse
from groupledger.config.settings import ASSIGNORS as CONFIGURED
from groupledger.core.assignors import ASSIGNORS
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.faults import Fault
from groupledger.core.protocol.script_json import simulate_lines
from groupledger.engine.memberships.user_tables import assignor_udf
from groupledger.tables import columns as c
from tests.engine.bucket_rows import computed, group_row, member_row, topic_row, wire
from tests.engine.captured_rows import CAPTURES, captured_groups, rows_of

STREAM_JOIN, CONSTRAINED = "sticky-stream-join", "constrained-cooperative-sticky"
LIBRDKAFKA = "librdkafka-cooperative-sticky"


def group(assignor, counts, **topics):
    """A what-if: A held t-0 and t-1, B joins; `topics` are their subscriptions."""
    return [
        group_row("g/1", assignor="range", chosen=assignor, previous_snapshot_id="g/0"),
        member_row("g/1", 0, "A", topics=topics["A"], recorded=[]),
        member_row("g/1", 1, "B", topics=topics["B"], recorded=[]),
        member_row("g/0", 0, "A", recorded=wire([("t", 0), ("t", 1)])),
        *(topic_row("g/1", topic, count) for topic, count in counts.items()),
    ]


def test_every_assignor_of_ours_can_be_configured():
    assert set(CONFIGURED) == {"recorded", *ASSIGNORS}
    for name in CONFIGURED:
        settings = parse(f"cluster_id: a\nledger: {{location: b}}\nassign: {{assignor: {name}}}", "test").assign
        assert (settings.assignor, settings.custom_assignors) == (name, ())


def configured(name):
    return parse(f"cluster_id: a\nledger: {{location: b}}\nassign: {{assignor: {name}}}", "test")


def simulated(name):
    [answer] = simulate_lines(
        [
            json.dumps(
                {"topics": {"t": 1}, "events": [{"event": "join", "member": "m", "topics": ["t"], "assignors": [name]}]}
            )
        ]
    )
    raise Fault("IN_ANSWER", json.loads(answer)["error"])


@pytest.mark.parametrize("what_if", [configured, simulated, assignor_udf])
@pytest.mark.parametrize("name", sorted(CLIENT_ASSIGNORS.keys() - ASSIGNORS.keys()))
def test_what_ifs_take_no_other_libraries_assignors_and_say_who_does(what_if, name):
    """Nobody knows what their members would have sent."""
    with pytest.raises(Fault, match=f"{name}'.*; those of other client libraries, .* only in `groupledger solve`"):
        what_if(name)


LEFT_OUT = [
    {"topic": "t", "partitions": [2, 3], "reason": "beyond-least-count"},
    {"topic": "t", "partitions": [1], "reason": "owner-not-subscribed"},
]


def test_a_stream_join_says_why_partitions_are_left_out():
    """Numbers 0 and 1 of t and u are joined: A keeps 0, and 1 is B's, who does not read t."""
    rows = group(STREAM_JOIN, {"t": 4, "u": 2}, A=["t", "u"], B=["u"])
    (rebalance,) = computed(rows)["rebalances"]
    assert (rebalance[c.OUTCOME], rebalance[c.ASSIGNOR], rebalance[c.UNASSIGNED]) == ("ASSIGNED", STREAM_JOIN, 3)
    assert rebalance[c.UNASSIGNED_PARTITIONS] == LEFT_OUT


def test_a_stream_join_says_so_in_a_notebook_too():
    counts = {"t": 4, "u": 2}
    held = {"A": wire([("t", 0), ("t", 1)]), "B": None}
    members = pd.DataFrame(
        {"group_id": "g", "member_id": name, "topics": topics, "topic_partition_counts": counts, "owned": held[name]}
        for name, topics in (("A", ["t", "u"]), ("B", ["u"]))
    )
    *members_rows, left = assignor_udf(STREAM_JOIN)(members).to_dict("records")
    assert [row[c.MEMBER_ID] for row in members_rows] == ["A", "B"]
    assert (left[c.MEMBER_ID], left[c.CODE], left[c.UNASSIGNED_PARTITIONS]) == (None, None, LEFT_OUT)


def test_a_group_whose_subscriptions_differ_is_refused_with_the_kips_advice():
    result = computed(group(CONSTRAINED, {"t": 2, "u": 2}, A=["t", "u"], B=["u"]))
    (rebalance,), (quarantined,) = result["rebalances"], result["quarantine"]
    assert (rebalance[c.OUTCOME], rebalance[c.ASSIGNOR]) == ("REJECTED", CONSTRAINED)
    for row in (rebalance, quarantined):
        assert row[c.CODE] == "SUBSCRIPTIONS_DIFFER"
        assert "use cooperative-sticky instead (KIP-615)" in row[c.MESSAGE]
    assert result["assignments"] == []


def test_where_subscriptions_are_equal_the_transfer_waits():
    result = computed(group(CONSTRAINED, {"t": 2}, A=["t"], B=["t"]))
    (rebalance,) = result["rebalances"]
    assert (rebalance[c.OUTCOME], rebalance[c.PROTOCOL], rebalance[c.FOLLOW_UP]) == ("ASSIGNED", "COOPERATIVE", True)
    waiting = {row[c.MEMBER_ID]: row[c.AWAITING] for row in result["assignments"]}
    assert waiting == {"A": [], "B": [{"topic": "t", "partitions": [1]}]}
    assert rebalance[c.UNASSIGNED_PARTITIONS] == [{"topic": "t", "partitions": [1], "reason": "awaiting-revocation"}]


def test_librdkafkas_records_are_its_own_where_it_is_chosen():
    """Its members join as `cooperative-sticky`: nothing is a what-if, and every record of its groups is exact."""
    found: Counter[str] = Counter()
    for capture in CAPTURES:
        for name in (each for each in captured_groups(capture) if "rdk" in each):
            rows = [
                row | {"chosen": LIBRDKAFKA} if row.get("chosen") == "cooperative-sticky" else row
                for row in rows_of(capture, name)
            ]
            done = computed(rows)["rebalances"]
            found.update(row[c.VERDICT] for row in done if row[c.ASSIGNOR] == LIBRDKAFKA)
    assert found == {"exact": 48}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_the_notebook_takes_each_by_name(name):
    members = pd.DataFrame(
        {"group_id": "g", "member_id": member, "topics": ["t"], "topic_partition_counts": {"t": 2}} for member in "AB"
    )
    rows = assignor_udf(name)(members).to_dict("records")
    given = [(each["topic"], number) for row in rows for each in row[c.ASSIGNED] for number in each["partitions"]]
    assert sorted(given) == [("t", 0), ("t", 1)]
