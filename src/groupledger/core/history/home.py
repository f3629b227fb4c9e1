"""The log partition that a group's records belong to, where records of it stand in more than one.

Kafka keeps all records of a group in one partition of `__consumer_offsets`: the hash of the group id modulo the number
of partitions. Records elsewhere are strays: a mislabelled copy, or another cluster read under the same cluster id. What
is decided follows from the set of records alone, so that no order and no split of them decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from groupledger.core.javaorder import hash_texts

MOST_PARTITIONS = 1_000
"""The largest number of log partitions that is inferred; Kafka's default is 50."""
LEAST_WITNESSES = 3
"""Fewer groups than these agree on a number by accident."""

_POSITIVE = 0x7FFFFFFF


def log_partition_of(group_id: str, partitions: int) -> int:
    """The log partition of a group, as Kafka computes it: `Utils.abs(groupId.hashCode) % partitions`.

    `log_partition_of("payments", 50)` -> 13.
    """
    return int(hash_texts([group_id])[0] & _POSITIVE) % partitions


def possible_counts(witnesses: Iterable[tuple[str, int]]) -> tuple[int, ...]:
    """The numbers of log partitions that explain where most groups are.

    `witnesses` are (group id, log partition) of groups seen in one log partition only. All numbers that the most of
    them agree on are given; none where fewer than LEAST_WITNESSES, or not more than half of them, do.
    """
    known = sorted(set(witnesses))
    if len(known) < LEAST_WITNESSES:
        return ()
    hashes = (hash_texts([group for group, _ in known]) & _POSITIVE).astype(np.int64)
    seen = np.array([partition for _, partition in known], np.int64)
    agreeing = np.array([np.count_nonzero(hashes % number == seen) for number in range(1, MOST_PARTITIONS + 1)])
    most = int(agreeing.max())
    if most < LEAST_WITNESSES or 2 * most <= len(known):
        return ()
    return tuple(int(number) + 1 for number in np.flatnonzero(agreeing == most))


def home_of(group_id: str | None, records: Mapping[int, int], possible: Iterable[int] = ()) -> int:
    """The log partition a group's records belong to, of those that hold any (log partition -> distinct records).

    Where all `possible` numbers of log partitions give the same one, and the group has records there, it is that one;
    else the one with the most records, of several the lowest. A group is never left without a record.
    """
    named = {log_partition_of(group_id, number) for number in possible} if group_id is not None else set()
    if len(named) == 1 and named <= records.keys():
        return named.pop()
    return min(records, key=lambda partition: (-records[partition], partition))
