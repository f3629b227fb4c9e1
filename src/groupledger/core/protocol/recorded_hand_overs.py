"""What became of the offsets of a partition when a recorded group handed it over: judged by the commits of its log.

The log has no records of topics: where a member stopped reading is not known, only what it committed. So a member that
committed nothing is told of, and how much was read again is told only where offsets show it.

Worked example: a commits 100, later 250, and is revoked; the offset is set back to 0; b takes the partition and begins
at 0: 250 records are read twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from groupledger.core.history.group_log import CommittedOffset
from groupledger.core.protocol.recorded_tenures import TenureCommits


class OffsetVerdict(StrEnum):
    """What became of a partition's committed offset at a hand-over, the worst first."""

    SET_WHILE_EMPTY = "set-while-empty"  # it was changed while the group had no members: others read again, or skip
    WENT_BACK = "went-back"  # the last commit was less than an earlier one: what lies between is read twice
    SOUGHT_BACK = "sought-back"  # the next one committed less than where it began: it sought back
    DELETED = "deleted"  # no offset is committed any more: the next one begins where auto.offset.reset says
    NOT_COMMITTED = "not-committed"  # who had it committed nothing: whatever it read is read again
    UNKNOWN = "unknown"  # records are missing, or commits were not kept
    IDLE = "idle"  # nobody ever committed an offset of it: nothing tells that it was read
    COMMITTED = "committed"


class OffsetJudgement(NamedTuple):
    """`read_twice` and `never_read`: records, as far as offsets tell; None: they do not."""

    verdict: OffsetVerdict
    read_twice: int | None = None
    never_read: int | None = None


def judge(one: TenureCommits, following: TenureCommits | None, *, ever: bool, known: bool) -> OffsetJudgement:
    """Judge how a member left a partition behind, and where the next one began; None: nobody has taken it yet.

    `ever`: whether any commit of the partition is recorded. `known`: whether all of the time in between is.
    """
    if not ever:
        return OffsetJudgement(OffsetVerdict.IDLE if known else OffsetVerdict.UNKNOWN)
    if not known:
        return OffsetJudgement(OffsetVerdict.UNKNOWN)
    start = None if one.in_force is None else one.in_force.offset
    if start is None and (one.own or one.outside):
        return OffsetJudgement(OffsetVerdict.DELETED)
    reached = _highest(one.own, one.before)
    if one.outside and start is not None and reached not in (None, start):
        return OffsetJudgement(OffsetVerdict.SET_WHILE_EMPTY, max(reached - start, 0), max(start - reached, 0))
    if start is not None and reached is not None and start < reached:
        return OffsetJudgement(OffsetVerdict.WENT_BACK, reached - start)
    first = next((each.offset for each in following.own), None) if following is not None else None
    if start is not None and first is not None and first < start:
        return OffsetJudgement(OffsetVerdict.SOUGHT_BACK, start - first)
    if not any(each.offset is not None for each in one.own):
        return OffsetJudgement(OffsetVerdict.NOT_COMMITTED)
    return OffsetJudgement(OffsetVerdict.COMMITTED, 0)


def _highest(own: Iterable[CommittedOffset], before: CommittedOffset | None) -> int | None:
    """The highest offset committed since a tombstone, of what its owner committed and what it began with."""
    reached = None if before is None else before.offset
    for each in own:
        reached = each.offset if reached is None or each.offset is None else max(reached, each.offset)
    return reached
