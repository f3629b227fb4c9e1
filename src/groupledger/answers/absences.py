"""Static members of a KIP-848 group that left for the time being: they keep what they have, and nobody reads it.

A coordinator writes such a member's assignment with the epoch -2 alone. Nothing moves, so no snapshot is made of it:
the records themselves are read, and where they are not kept, no member is known to be away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.answers.rows import matching, records
from groupledger.core.moment import iso
from groupledger.core.wire.faults import DecodeFault
from groupledger.core.wire.offsets_log import CurrentMemberAssignment, RecordKind, decode

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import GroupKey, Reader


def absences(reader: Reader, group: GroupKey, behind: int, until: datetime | None = None) -> dict[str, datetime | None]:
    """Return since when each member is away, by the group's records behind an offset, up to a moment; None: it is not.

    A member of which there is no such record is left out.
    """
    from groupledger.core.history.members import LEFT_STATIC  # with the fold, which few answers need

    condition, values = matching("t.", cluster_id=group[0], group_id=group[1])
    values |= {"behind": behind} | ({} if until is None else {"until": until})
    query = f"SELECT t.offset, t.timestamp, t.key, t.value FROM current_log_records t WHERE {condition} "
    query += "AND t.offset > :behind" + ("" if until is None else " AND t.timestamp <= :until")
    found: dict[str, datetime | None] = {}
    for row in records(reader, f"{query} ORDER BY t.offset", **values):
        try:
            record = decode(row["key"], row["value"])
        except DecodeFault:
            continue
        if record.kind is RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            member, now = str(record.key.fields["member_id"]), record.value
            is_away = isinstance(now, CurrentMemberAssignment) and now.epoch == LEFT_STATIC
            found[member] = (found.get(member) or row["timestamp"]) if is_away else None
    return found


def away(instance: str | None, member: str, since: datetime) -> str:
    """Say that a static member is away, and what follows from it."""
    return (
        f"{instance} left for now at {iso(since)} (member epoch -2): {member} keeps its partitions, and nobody reads "
        "them until it comes back or its session ends"
    )
