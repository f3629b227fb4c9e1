"""The end of a settlement in a group that has times and members of the consumer protocol."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.application import ClockedGroup
from groupledger.core.protocol.ownership import Gap
from groupledger.core.protocol.settlement import Outage, TimedEnd

Since = dict[TopicPartition, int]
"""Partitions that nobody consumes now, and since when."""


def timed_end(
    group: ClockedGroup,
    gaps: Mapping[TopicPartition, Iterable[Gap]],
    lasting: Since,
    *,
    began_ms: int,
    rebalancing: bool,
    held: Collection[TopicPartition],
) -> TimedEnd:
    """How it ended; `lasting` is brought up to date. An outage that lasted then is told from when it began.

    `began_ms`: when the last settlement ended, of which `lasting` is. `held`: what somebody consumes now.
    """
    found = []
    for each, some in sorted(gaps.items()):
        lasted = lasting.pop(each, None)
        if lasted is not None and [gap.since_ms for gap in some][:1] != [began_ms]:
            found.append(Outage(each, lasted, began_ms))  # the event at that very moment ended it
            lasted = None
        for gap in some:
            since_ms, lasted = gap.since_ms if lasted is None else lasted, None
            goes_on = gap.until_ms == group.now_ms and each not in held
            found.append(Outage(each, since_ms, None if goes_on else gap.until_ms))
            if goes_on:
                lasting[each] = since_ms
    for gone in lasting.keys() - gaps.keys():
        del lasting[gone]
    read = None if group.records is None else group.records.found(group.now_ms)
    return TimedEnd(group.now_ms, rebalancing, tuple(found), read)


def join_ends(first: TimedEnd, then: TimedEnd) -> TimedEnd:
    """The end of a settlement in two parts. What lasted after the first one is told by the second, if it is wanted."""
    ended = [each for each in first.outages if each.until_ms is not None]
    return replace(then, outages=tuple(sorted([*ended, *then.outages], key=lambda each: each[:2])))
