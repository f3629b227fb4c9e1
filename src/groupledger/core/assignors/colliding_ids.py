"""Find iteration orders, key by key and slowly, for ids chosen to collide: one bucket of Java's hash map is a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.group import ExactMapOrders
from groupledger.core.assignors.server.javatable import HashedKey, JavaTable
from groupledger.core.batch import GroupBatch
from groupledger.core.javaorder import LEAST_CAPACITY

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray

PER_MEMBER = (
    "member_hash",
    "member_rank",
    "instance_rank",
    "member_rack",
    "subscription_generation",
    "claim_generation",
    "member_subscription",
)


def told_orders(batch: GroupBatch) -> ExactMapOrders:
    """Return the orders in which Kafka iterates over the members and topics of a batch of one group."""
    walk = _walk(batch.member_hash, batch.member_rank, range(batch.members))
    named: dict[int, None] = {}
    for member in walk:
        subscription = batch.member_subscription[member]
        first, last = batch.subscription_start[subscription], batch.subscription_start[subscription + 1]
        named.update(dict.fromkeys(batch.subscription_topic[first:last].tolist()))
    subscribed = _walk(batch.topic_hash, batch.topic_rank, named)
    known = _walk(batch.topic_hash, batch.topic_rank, [each for each in subscribed if batch.topic_partitions[each] > 0])
    keep = _walk(batch.member_hash, batch.member_rank, walk)
    return ExactMapOrders(*(np.array(order, np.int32) for order in (walk, keep, known)))


def _walk(hashes: IntArray, ranks: IntArray, inserted: Iterable[int]) -> list[int]:
    table = JavaTable(LEAST_CAPACITY)
    for each in inserted:
        table.put(HashedKey(int(hashes[each]), int(ranks[each]), each))
    return list(table)


def only(batch: GroupBatch, group: int) -> GroupBatch:
    """Return the group as a batch of its own. Subscriptions and racks stay whole: they are only indexed."""
    m, n = batch.member_start[group], batch.member_start[group + 1]
    t, u = batch.topic_start[group], batch.topic_start[group + 1]
    cut = {field.name: getattr(batch, field.name) for field in fields(batch)}
    cut |= {name: cut[name][m:n] for name in PER_MEMBER}
    cut |= {name: cut[name][t:u] for name in ("topic_hash", "topic_rank", "topic_partitions")}
    cut["member_start"] = np.array([0, n - m], np.int64)
    cut["topic_start"] = np.array([0, u - t], np.int64)
    cut["claim_start"] = batch.claim_start[m : n + 1]
    if batch.rack_topic_start is not None:
        cut["rack_topic_start"] = batch.rack_topic_start[t : u + 1]
    return GroupBatch(**cut)
