"""When members came into a group and went from it: every change of membership in a period, by member.

The same differences as `causes.causes` names, found by the engine in one pass, so that a group of 1,000 members is not
read state by state. The log does not say whether a member left, crashed or timed out: it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind
from groupledger.answers.recorded_states import states
from groupledger.answers.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import Scope

CHANGES = (CauseKind.MEMBER_JOINED, CauseKind.MEMBER_GONE, CauseKind.MEMBER_RESTARTED)


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """A member that joined, is gone, or is static and came back under a new id.

    `name` outlives a restart: the instance id, else the client id, with the host where several members share that; the
    member id where there is neither. `since`: when a member that is gone, or that came back, had joined; None where the
    period does not show it.
    """

    cluster_id: str
    group_id: str
    snapshot_id: str
    at: datetime
    kind: CauseKind
    member_id: str
    name: str
    host: str | None
    since: datetime | None


def membership_changes(reader: Reader, within: Scope) -> Iterator[MembershipChange]:
    """All of the period, by cluster, group and offset. Members of a group's first state joined nobody knows when."""
    rows = _rows(reader, within)
    for _, of_group in groupby(rows, lambda row: (row["cluster_id"], row["group_id"])):
        of_one = list(of_group)
        shared = {row["client_id"] for row in of_one if row["alike"] > 1}
        since: dict[str, datetime] = {}
        for _, of_state in groupby(of_one, lambda row: row["offset"]):
            for change in _of_state(list(of_state), shared, since):
                if within.since is None or change.at >= within.since:
                    yield change


def _of_state(rows: list[Record], shared: set[str | None], since: dict[str, datetime]) -> Iterator[MembershipChange]:
    """What one state changed: a static member that is gone and joined in it came back."""
    gone = {row["group_instance_id"]: row for row in rows if row["is_gone"] and row["group_instance_id"] is not None}
    back = {row["group_instance_id"] for row in rows if not row["is_gone"]} & gone.keys()
    for row in rows:
        instance, member = row["group_instance_id"], row["member_id"]
        if row["is_gone"] and instance in back:
            continue
        kind = CauseKind.MEMBER_GONE if row["is_gone"] else CauseKind.MEMBER_JOINED
        was = member
        if instance in back:
            kind, was = CauseKind.MEMBER_RESTARTED, gone[instance]["member_id"]
        joined = None if kind is CauseKind.MEMBER_JOINED else since.pop(was, None)
        if not row["is_gone"]:
            since[member] = row["at"]
        place = row["cluster_id"], row["group_id"], row["snapshot_id"], row["at"]
        yield MembershipChange(*place, kind, member, _name(row, shared), row["host"], joined)


def _name(row: Record, shared: set[str | None]) -> str:
    if row["group_instance_id"] is not None:
        return str(row["group_instance_id"])
    if not row["client_id"]:
        return str(row["member_id"])
    with_host = row["client_id"] in shared and row["host"]
    return f"{row['client_id']} on {row['host'].removeprefix('/')}" if with_host else str(row["client_id"])


def _rows(reader: Reader, within: Scope) -> list[Record]:
    """A row for each member that is in a state and not in its neighbour of the same incarnation.

    `alike`: the most members of one state with this client id.
    """
    query, values = states(within)
    condition, _ = within.of_groups("m.")
    of_one = "PARTITION BY s.cluster_id, s.group_id, s.incarnation"
    placed = (
        "SELECT s.cluster_id, s.group_id, s.incarnation, s.snapshot_id, s.offset, s.observed_at, "
        f"row_number() OVER ({of_one} ORDER BY s.offset) AS place, "
        f"lead(s.snapshot_id) OVER ({of_one} ORDER BY s.offset) AS next_id, "
        f"lead(s.offset) OVER ({of_one} ORDER BY s.offset) AS next_offset, "
        f"lead(s.observed_at) OVER ({of_one} ORDER BY s.offset) AS next_at FROM ({query}) s"
    )
    of_member = "PARTITION BY p.cluster_id, p.group_id, p.incarnation, m.member_id ORDER BY p.place"
    beside = (
        "SELECT p.*, m.member_id, m.group_instance_id, m.client_id, m.host, m.member_order, "
        f"lag(p.place) OVER ({of_member}) AS before, lead(p.place) OVER ({of_member}) AS after, "
        "count(*) OVER (PARTITION BY p.cluster_id, p.group_id, p.snapshot_id, m.client_id) AS at_once "
        f"FROM ({placed}) p JOIN current_member_snapshots m ON p.cluster_id = m.cluster_id "
        f"AND p.group_id = m.group_id AND p.snapshot_id = m.snapshot_id WHERE {condition}"
    )
    alike = "max(b.at_once) OVER (PARTITION BY b.cluster_id, b.group_id, b.client_id) AS alike"
    known = "c.cluster_id, c.group_id, c.incarnation, c.member_id, c.group_instance_id, c.client_id, c.host, c.alike"
    told = f"SELECT b.*, {alike} FROM ({beside}) b"
    return records(
        reader,
        f"SELECT {known}, c.snapshot_id, c.offset, c.observed_at AS at, c.member_order, false AS is_gone "
        f"FROM ({told}) c WHERE c.place > 1 AND (c.before IS NULL OR c.before < c.place - 1) UNION ALL "
        f"SELECT {known}, c.next_id AS snapshot_id, c.next_offset AS offset, c.next_at AS at, c.member_order, "
        f"true AS is_gone FROM ({told}) c WHERE c.next_id IS NOT NULL AND (c.after IS NULL OR c.after > c.place + 1) "
        "ORDER BY cluster_id, group_id, offset, is_gone, member_order, member_id",
        **values,
    )
