"""`rebalances.least_moves` of groups as a job computes it."""

from __future__ import annotations

from typing import Any

import pytest

from groupledger.tables import columns as c
from tests.engine.bucket_rows import computed, group_row, member_row, topic_row, wire

T = [("t", at) for at in range(4)]


def rebalance(**subscribed: list[str]) -> dict[str, Any]:
    """The computed row of a group in which `a` held the four partitions of topic t."""
    rows = [topic_row("g/1", "t", 4), topic_row("g/1", "u", 1)]
    for snapshot, before in (("g/0", None), ("g/1", "g/0")):
        said = {c.ASSIGNOR: "roundrobin", c.MEMBERS: len(subscribed), c.PREVIOUS_SNAPSHOT_ID: before}
        rows.append(group_row(snapshot, **said))
        for order, (name, topics) in enumerate(subscribed.items()):
            held = wire(T) if name == "a" else []
            rows.append(member_row(snapshot, order, name, **{c.TOPICS: topics, c.RECORDED: held}))
    [row] = [row for row in computed(rows)["rebalances"] if row[c.SNAPSHOT_ID] == "g/1"]
    return row


@pytest.mark.parametrize(
    ("subscribed", "moves", "least"),
    [
        ({"a": ["t"], "b": ["t"]}, 2, 2),
        ({"a": ["t"], "b": ["t", "u"]}, 2, 1),
        ({"a": ["t"], "b": ["t", "x"]}, 2, None),
        ({}, 0, None),
    ],
    ids=["one subscription", "a topic more", "a topic that no listing counts", "no members"],
)
def test_least_moves_stand_beside_the_moves(subscribed, moves, least):
    """Round-robin gives t-1 and t-3 to b, and u-0 besides: then one of the two would have been enough."""
    row = rebalance(**subscribed)
    assert (row[c.MOVES], row[c.LEAST_MOVES]) == (moves, least)
