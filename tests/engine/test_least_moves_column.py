"""`rebalances.least_moves`, its certainty and `fewest_rounds` of groups as a job computes them."""

from __future__ import annotations

from typing import Any

import pytest

from groupledger.core.rebalance import least_moves
from groupledger.engine import bucket_rows as r
from groupledger.tables import columns as c
from tests.engine.bucket_rows import computed, group_row, member_row, topic_row, wire

T = [("t", at) for at in range(4)]


def rebalanced(**subscribed: list[str]) -> list[dict[str, Any]]:
    """The rows of a group in which `a` held the four partitions of topic t."""
    rows = [topic_row("g/1", "t", 4), topic_row("g/1", "u", 1)]
    for snapshot, before in (("g/0", None), ("g/1", "g/0")):
        said = {c.ASSIGNOR: "roundrobin", c.MEMBERS: len(subscribed), c.PREVIOUS_SNAPSHOT_ID: before}
        rows.append(group_row(snapshot, **said))
        for order, (name, topics) in enumerate(subscribed.items()):
            held = wire(T) if name == "a" else []
            rows.append(member_row(snapshot, order, name, **{c.TOPICS: topics, c.RECORDED: held}))
    return rows


def rebalance(**subscribed: list[str]) -> dict[str, Any]:
    """The computed row of that group."""
    [row] = [row for row in computed(rebalanced(**subscribed))["rebalances"] if row[c.SNAPSHOT_ID] == "g/1"]
    return row


@pytest.mark.parametrize(
    ("subscribed", "moves", "least", "certainty", "rounds"),
    [
        ({"a": ["t"], "b": ["t"]}, 2, 2, "exact", 1),
        ({"a": ["t"], "b": ["t", "u"]}, 2, 1, "exact", 1),
        ({"a": ["t"], "b": ["t", "x"]}, 2, None, "not-applicable: topic-unknown", None),
        ({}, 0, None, "not-applicable: no-members", None),
    ],
    ids=["one subscription", "a topic more", "a topic that no listing counts", "no members"],
)
def test_least_moves_stand_beside_the_moves(subscribed, moves, least, certainty, rounds):
    """Round-robin gives t-1 and t-3 to b, and u-0 besides: then one of the two would have been enough."""
    row = rebalance(**subscribed)
    assert (row[c.MOVES], row[c.LEAST_MOVES]) == (moves, least)
    assert (row[c.LEAST_MOVES_CERTAINTY], row[c.FEWEST_ROUNDS]) == (certainty, rounds)


def recorded(*listings: tuple[str, int, int], now: dict[str, list[tuple[str, int]]]) -> dict[str, Any]:
    """The computed row of a group whose members subscribe to t and u; `a` held all of t. Listings: topic, count, at."""
    rows = [topic_row("g/1", topic, count, at) for topic, count, at in listings]
    for snapshot, before, has in (("g/0", None, {"a": T}), ("g/1", "g/0", now)):
        said = {c.ASSIGNOR: "range", c.MEMBERS: 2, c.PREVIOUS_SNAPSHOT_ID: before, r.MOMENT: 5}
        rows.append(group_row(snapshot, **said))
        rows += [
            member_row(snapshot, order, name, **{c.TOPICS: ["t", "u"], c.RECORDED: wire(has.get(name, []))})
            for order, name in enumerate("ab")
        ]
    [row] = [row for row in computed(rows)["rebalances"] if row[c.SNAPSHOT_ID] == "g/1"]
    return row


RANGE_OF_T = {"a": T[:2], "b": T[2:]}


@pytest.mark.parametrize(
    ("listings", "now", "verdict", "least"),
    [
        ([("t", 4, 0), ("u", 2, 0)], RANGE_OF_T, "topic-unknown-to-leader", 2),
        ([("t", 4, 0), ("t", 6, 4), ("u", 2, 4)], RANGE_OF_T, "exact-older-topics", 2),
        ([("t", 4, 0)], RANGE_OF_T, "exact", 2),
        ([("t", 4, 0)], {"a": T[:1], "b": T[1:]}, "valid-different", None),
    ],
    ids=["listed before", "listed just before, as more of the other", "never listed", "another answer"],
)
def test_least_moves_are_of_the_topics_that_the_leader_knew_where_the_record_shows_which(listings, now, verdict, least):
    """Nothing of u is assigned: a record that is the answer without it shows that the leader did not know it."""
    row = recorded(*listings, now=now)
    assert (row[c.VERDICT], row[c.MOVES], row[c.LEAST_MOVES]) == (verdict, 2, least)


def test_members_that_keep_what_they_own_need_a_second_round_to_move_it():
    """By what they did: a still owns what it held while it rejoins."""
    rows = rebalanced(a=["t"], b=["t"])
    rows[-2] |= {c.CLAIMED: wire(T)}
    [row] = [row for row in computed(rows)["rebalances"] if row[c.SNAPSHOT_ID] == "g/1"]
    assert (row[c.LEAST_MOVES], row[c.LEAST_MOVES_CERTAINTY], row[c.FEWEST_ROUNDS]) == (2, "exact", 2)


def test_a_bound_is_called_one(monkeypatch):
    monkeypatch.setattr(least_moves, "MOST_CELLS", 0)
    row = rebalance(a=["t"], b=["t", "u"], d=["u"])
    assert row[c.LEAST_MOVES_CERTAINTY] == "lower-bound"


def test_a_rejected_group_has_none():
    fault = {r.FAULT_CODE: "WRONG", r.FAULT_MESSAGE: "it is"}
    rows = [row | fault if row[r.ROW_KIND] == r.GROUP_ROW else row for row in rebalanced(a=["t"])]
    row = computed(rows)["rebalances"][1]
    assert row[c.LEAST_MOVES_CERTAINTY] == "not-applicable: rejected"
    assert row[c.LEAST_MOVES] is row[c.FEWEST_ROUNDS] is None
