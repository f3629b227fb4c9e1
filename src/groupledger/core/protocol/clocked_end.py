"""The end of a settlement in a group that has times and members of the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.application import ClockedGroup
from groupledger.core.protocol.ownership import Gap
from groupledger.core.protocol.settlement import Outage, TimedEnd

Since = dict[TopicPartition, int]
"""Partitions that nobody consumes now, and since when."""


def timed_end(
    group: ClockedGroup, gaps: Mapping[TopicPartition, Iterable[Gap]], lasting: Since, *, rebalancing: bool
) -> TimedEnd:
    """How it ended; `lasting` is brought up to date. An outage that lasted then is told from when it began."""
    found = []
    for each, some in sorted(gaps.items()):
        lasted = lasting.pop(each, None)
        for place, gap in enumerate(some):
            since_ms = gap.since_ms if lasted is None or place else lasted
            goes_on = gap.until_ms == group.now_ms
            found.append(Outage(each, since_ms, None if goes_on else gap.until_ms))
            if goes_on:
                lasting[each] = since_ms
    for gone in lasting.keys() - gaps.keys():
        del lasting[gone]
    read = None if group.records is None else group.records.found(group.now_ms)
    return TimedEnd(group.now_ms, rebalancing, tuple(found), read)
