"""Why a member of a classic group is gone, as far as its time-outs tell.

A coordinator removes a member that leaves (a client closes, or its poll is later than `max.poll.interval.ms`: it says
so itself), whose session ends, or that does not join again within the rebalance timeout. What takes longer than the
time between two records cannot have happened between them. One exception: the session of a member that never took up
its assignment runs from before the first record.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind
from groupledger.answers.generations import CLASSIC
from groupledger.answers.rows import matching, records
from groupledger.core.length import length
from groupledger.core.wire.faults import DecodeFault
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.answers.causes import Cause, Side
    from groupledger.answers.rows import Reader
    from groupledger.core.wire.records import ClassicGroupMember


def with_departures(
    reader: Reader, group: tuple[str, str], before: Side | None, after: Side, causes: Sequence[Cause]
) -> tuple[Cause, ...]:
    """Say of members that are gone what the time between the two records excludes; the bytes may not be there."""
    gone = {each.about for each in causes if each.kind is CauseKind.MEMBER_GONE}
    if before is None or not gone or {before.group_type, after.group_type} != {CLASSIC}:
        return tuple(causes)
    members = _members(reader, group, before)
    elapsed = after.at - before.at
    return tuple(
        each
        if each.kind is not CauseKind.MEMBER_GONE or each.about not in members
        else replace(each, what=_text(each.what, members[each.about], elapsed))
        for each in causes
    )


def _members(reader: Reader, group: tuple[str, str], state: Side) -> dict[str | None, ClassicGroupMember]:
    condition, values = matching("t.", cluster_id=group[0], group_id=group[1], offset=state.offset)
    found = records(reader, f"SELECT t.key, t.value FROM current_log_records t WHERE {condition}", **values)
    for key, value in sorted((row["key"], row["value"]) for row in found if row["key"] and row["value"]):
        try:
            record = decode(key, value).value
        except DecodeFault:
            continue
        if isinstance(record, GroupMetadata):
            return {member.member_id: member for member in record.members}
    return {}


def _text(what: str, member: ClassicGroupMember, elapsed: timedelta) -> str:
    session = timedelta(milliseconds=member.session_timeout)
    rebalance = session if member.rebalance_timeout is None else timedelta(milliseconds=member.rebalance_timeout)
    excluded = [
        name
        for name, least in (
            (f"its session of {length(session)}", session),
            (f"the rebalance timeout of {length(rebalance)}", rebalance),
        )
        if elapsed < least
    ]
    if not excluded:
        return what
    subject = what.partition(" is gone (")[0]
    others = [] if elapsed < session else ["its session ended"]
    others += [] if elapsed < rebalance else ["it did not join again in time"]
    how = " or ".join(["it left", *others])
    since = f"{length(elapsed)} after the record before, {' and '.join(excluded)} cannot have ended"
    return f"{subject} is gone: {how} ({since}, unless it never took up its assignment)"
