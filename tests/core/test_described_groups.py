"""Groups as an admin client describes them: which have lines, and what stands in them."""

from __future__ import annotations

import json

from groupledger.core.log.described_groups import (
    DescribedGroup,
    DescribedMember,
    LastDescribed,
    described_in,
    described_lines,
)

A = DescribedMember("a", None, "client-a", "/10.0.0.1", (("orders", 1), ("orders", 0), ("bills", 0)))
B = DescribedMember("b", "static-b", "client-b", "/10.0.0.2", ())
AT = 1_795_262_904_784
IDS = {"orders": "6kTR4yJfQIq7HpOsWZpVHg"}


def group(*members, group_id="payments", state="Stable"):
    return DescribedGroup(group_id, "classic", state, "range", members)


def last(*members, at=AT):
    return LastDescribed(at, group(*members).digest)


def rows(lines):
    return [json.loads(line) for line in lines]


def test_a_stable_group_has_a_line_and_one_for_each_member():
    found = described_lines([group(B, A)], {}, IDS, AT)
    (row,) = rows(found.groups)
    snapshot_id = row["snapshot_id"]
    assert row == {
        "snapshot_id": f"admin/{AT}/{group(A, B).digest}/payments",
        "group_id": "payments",
        "group_type": "classic",
        "offset": AT,
        "observed_at": "2026-11-21T12:08:24.784Z",
        "state": "Stable",
        "assignor": "range",
        "complete": False,
        "members": 2,
    }
    first, second = rows(found.members)
    assert (first["snapshot_id"], first["member_id"], first["host"]) == (snapshot_id, "a", "/10.0.0.1")
    assert first["recorded"] == [
        {"topic_id": None, "topic": "bills", "partitions": [0]},
        {"topic_id": IDS["orders"], "topic": "orders", "partitions": [0, 1]},
    ]
    assert (second["member_id"], second["group_instance_id"], second["recorded"]) == ("b", "static-b", [])
    assert found.left_out == {}


def test_only_stable_groups_that_changed_have_lines():
    groups = [group(A), group(A, group_id="same"), group(A, group_id="moving", state="PreparingRebalance")]
    before = {"payments": last(B), "same": last(A)}
    found = described_lines(groups, before, IDS, AT)
    assert [row["group_id"] for row in rows(found.groups)] == ["payments"]
    assert found.left_out == {"unchanged group": 1, "group in state PreparingRebalance": 1}


def test_a_group_that_became_empty_has_a_line_without_members():
    groups = [group(state="Empty"), group(group_id="never seen", state="Empty"), group(group_id="still", state="Empty")]
    before = {"payments": last(A), "still": last()}
    found = described_lines(groups, before, IDS, AT)
    assert [(row["group_id"], row["state"], row["members"]) for row in rows(found.groups)] == [("payments", "Empty", 0)]
    assert found.members == ()
    assert found.left_out == {"group in state Empty": 1, "unchanged group": 1}


def test_a_group_that_came_back_to_what_it_was_has_a_line_again():
    first = described_lines([group(A)], {}, IDS, AT)
    then = described_lines([group(B)], {"payments": last(A)}, IDS, AT + 1)
    again = described_lines([group(A)], {"payments": last(B, at=AT + 1)}, IDS, AT + 2)
    ids = [row["snapshot_id"] for found in (first, then, again) for row in rows(found.groups)]
    assert len(set(ids)) == 3
    assert [described_in(each) for each in ids] == [last(A), last(B, at=AT + 1), last(A, at=AT + 2)]


def test_a_snapshot_lies_behind_the_last_one_though_the_clock_went_back():
    first = described_lines([group(A), group(B, group_id="other")], {}, IDS, AT)
    before = {row["group_id"]: described_in(row["snapshot_id"]) for row in rows(first.groups)}
    for clock in (AT, AT - 3_600_000):
        then = described_lines([group(B), group(A, group_id="new")], before, IDS, clock)
        found = {row["group_id"]: row for row in rows(then.groups)}
        assert found["payments"]["snapshot_id"] == f"admin/{AT + 1}/{group(B).digest}/payments"
        assert (found["payments"]["offset"], found["new"]["offset"]) == (AT + 1, clock)
        assert found["payments"]["observed_at"] == found["new"]["observed_at"], "when it was seen is the clock's"


def test_no_order_decides_a_digest_and_every_fact_does():
    moved = A._replace(partitions=(("orders", 0), ("bills", 0)))
    shuffled = A._replace(partitions=tuple(reversed(A.partitions)))
    assert group(A, B).digest == group(B, shuffled).digest
    others = [group(A), group(moved, B), group(A._replace(host="/10.0.0.9"), B), group(A, B._replace(member_id="c"))]
    assert len({each.digest for each in (group(A, B), *others)}) == 5
    assert group(A)._replace(assignor="sticky").digest != group(A).digest


def test_a_group_id_may_hold_what_separates():
    found = described_lines([group(A, group_id="a/b\n☃")], {}, IDS, AT)
    (row,) = rows(found.groups)
    assert (row["group_id"], described_in(row["snapshot_id"])) == ("a/b\n☃", last(A))
    assert b"\n" not in found.groups[0]
