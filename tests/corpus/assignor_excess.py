"""Kafka's own sticky assignors where subscriptions differ: more moves than a balance asks for.

Found by a search among groups that the simulator played; the fewest moves are proved by `core.rebalance.least_moves`.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupledger.core.protocol import events as e
from tests.corpus.classic_log import ClassicLog
from tests.corpus.played import Story, written


def sticky_moves_one_partition_too_many_when_a_third_member_joins():
    """Six partitions move where five had to."""
    log = _joined("s12", "sticky", {"a": 5, "b": 6, "c": 4}, {"c1": "a c", "c2": "a b", "c3": "b c"})
    log.label.find("EXCESS_MOVES", 3)
    return log


def sticky_moves_one_partition_too_many_when_a_fourth_member_joins():
    """Four partitions move where three had to."""
    log = _joined("s1", "sticky", {"a": 4, "b": 3, "c": 6}, {"c1": "c", "c2": "a b", "c3": "a b c", "c4": "a b c"})
    log.label.find("EXCESS_MOVES", 4)
    return log


def cooperative_sticky_moves_one_partition_too_many():
    """Four partitions move where three had to, in the first of two rounds."""
    subscriptions = {"c1": "a b", "c2": "b c", "c3": "a b c", "c4": "a b"}
    log = _joined("s48", "cooperative-sticky", {"a": 2, "b": 6, "c": 5}, subscriptions)
    log.label.find("EXCESS_MOVES", 6)
    return log


def _joined(seed: str, assignor: str, counts: Mapping[str, int], subscriptions: Mapping[str, str]) -> ClassicLog:
    steps = [
        e.Join(member=name, topics=tuple(topics.split()), assignors=(assignor,))
        for name, topics in subscriptions.items()
    ]
    [(_, log)] = written([Story(seed, "", counts, steps)])
    return log
