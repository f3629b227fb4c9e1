"""Where a tree inside a bucket decides an order, it is asked key by key; and nowhere else, since that is slow."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from groupledger.core.arrays.java_orders import TREE
from groupledger.core.assignors.server import iteration_orders
from groupledger.core.assignors.server.server_batch import assign, written
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId, encode

CRAFTED = ["".join(pair) for pair in product(("Aa", "BB"), repeat=4)]  # sixteen texts of one hash
PLAIN = [f"plain-{number}" for number in range(16)]


def group(members, topics, *, mixed=False):
    """Everyone subscribes to all topics; mixed: one to fewer."""
    ids = {name: Topic(TopicId(sha256(name.encode()).digest()[:16]), 3) for name in topics}
    named = [tuple(topics) if at or not mixed else tuple(topics[:-1]) for at in range(len(members))]
    return ServerGroup(tuple(ServerMember(*each) for each in zip(members, named, strict=True)), ids)


def holding(some):
    """Return the group with two whole topics for each member to hold, until there are none left."""
    whole = [(topic.topic_id, (0, 1, 2)) for topic in some.topics.values()]
    members = [replace(each, target=tuple(whole[2 * at : 2 * at + 2])) for at, each in enumerate(some.members)]
    return replace(some, members=tuple(members))


@pytest.mark.parametrize(
    ("assignor", "crafted", "asked"),
    [
        ("range", group(["m", "n"], CRAFTED), "range_record"),
        ("range", group(["m", "n"], CRAFTED, mixed=True), "range_record"),
        ("range", group(["m"], CRAFTED), "range_record"),
        ("uniform", group(["m", "n"], CRAFTED), "shared_topics"),
        ("uniform", group(CRAFTED, ["t", "u"]), "member_order"),
        ("uniform", group(CRAFTED, ["t", "u"], mixed=True), "member_order"),
    ],
    ids=["range", "range mixed", "range of one", "topics", "members", "members mixed"],
)
def test_a_tree_is_asked(assignor, crafted, asked, monkeypatch):
    calls = []
    kept = getattr(iteration_orders, asked)

    def counted(*given, **named):
        calls.append(asked)
        return kept(*given, **named)

    monkeypatch.setattr(iteration_orders, asked, counted)
    batch, _ = encode([group(PLAIN, PLAIN), crafted])
    result = assign(assignor, batch)
    assert result.bad_topic.tolist() == result.bad_partition.tolist() == [-1, -1]
    assert len(calls) == (len(crafted.members) if assignor == "range" else 1)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_tree_of_members_decides_alike_wherever_its_group_stands(mixed):
    crafted = group(CRAFTED, ["t", "u"], mixed=mixed)
    (batch, names), (both, all_names) = encode([crafted]), encode([group(PLAIN, PLAIN), crafted])
    alone, second = assign("uniform", batch), assign("uniform", both)
    assert written(both, all_names, second, 1) == written(batch, names, alone, 0)
    assert second.bad_topic.tolist() == second.bad_partition.tolist() == [-1, -1]


@pytest.mark.parametrize("before", [(), (group(PLAIN, PLAIN),)])
def test_the_first_members_subscription_orders_the_topics_of_range(before):
    """All subscribe to the same topics of one hash; `n` joined first, yet the order in which `m` names them counts."""

    def records(*orders):
        members = tuple(ServerMember(each, tuple(names)) for each, names in zip("nm", orders, strict=True))
        batch, names = encode([*before, ServerGroup(members, group(["m"], CRAFTED).topics)])
        return written(batch, names, assign("range", batch), len(before))

    ahead, back = records(CRAFTED, CRAFTED), records(CRAFTED[::-1], CRAFTED[::-1])
    assert ahead != back
    assert records(CRAFTED[::-1], CRAFTED) == ahead
    assert records(CRAFTED, CRAFTED[::-1]) == back


@pytest.mark.parametrize("assignor", ["range", "uniform"])
def test_plain_names_ask_no_tree(assignor, monkeypatch):
    for name in ("range_record", "shared_topics", "member_order", "record", "target"):
        monkeypatch.setattr(iteration_orders, name, lambda *_, **__: pytest.fail("asked"))
    alike, mixed = group(PLAIN, PLAIN), group(PLAIN, PLAIN, mixed=True)
    batch, _ = encode([alike, mixed, holding(alike), holding(mixed)])
    assign(assignor, batch)


@pytest.mark.parametrize(("together", "tree"), [(7, False), (8, True)])
def test_topics_that_a_record_adds_to_one_bucket_count_towards_a_tree(together, tree):
    """From the eighth of one hash on it may be one, and is asked key by key."""
    rows: Any = SimpleNamespace(row_topic=np.arange(together), row_partition=np.zeros(together, np.int32))
    topic, size, row = (np.zeros(together, np.int32) for _ in range(3))
    slots: Any = SimpleNamespace(topic=topic, size=size, row=row)
    id_hash, none_yet = np.zeros(together, np.int32), np.full(together, iteration_orders.NONE_YET)
    capacity, count = iteration_orders._replay_map(id_hash, none_yet, rows, slots, 0)
    assert (capacity == TREE, count) == (tree, together)
