"""When members came into a group and went from it: every change of membership in a period, by member.

The same differences as `causes.causes` names, found by the engine in one pass, so that a group of 1,000 members is not
read state by state. The log does not say whether a member left, crashed or timed out: it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind
from groupledger.answers.recorded_states import states
from groupledger.answers.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import Scope

_ORDER = itemgetter("offset", "is_gone", "member_order", "member_id")
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
        of_one = sorted(_events(of_group), key=_ORDER)
        shared = {row["client_id"] for row in of_one if row["alike"] > 1}
        since: dict[str, datetime] = {}
        for _, of_state in groupby(of_one, lambda row: row["offset"]):
            for change in _of_state(list(of_state), shared, since):
                if within.since is None or change.at >= within.since:
                    yield change


def _events(rows: Iterable[Record]) -> Iterator[Record]:
    """What each row says of its own state and of the next: `is_gone`, `at`, and of which state that is."""
    for row in rows:
        if row["came"]:
            yield row | {"is_gone": False, "at": row["observed_at"]}
        if row["went"]:
            after = {"snapshot_id": row["next_id"], "offset": row["next_offset"], "at": row["next_at"]}
            yield row | after | {"is_gone": True}


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
    """The members of a state that are not in its neighbours of the same incarnation, by cluster and group.

    `came`: not in the one before; `went`: not in the next, which is `next_id`. `alike`: the most members of one state
    with this client id.
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
    came = "c.place > 1 AND (c.before IS NULL OR c.before < c.place - 1)"
    went = "c.next_id IS NOT NULL AND (c.after IS NULL OR c.after > c.place + 1)"
    told = f"SELECT c.*, {came} AS came, {went} AS went FROM (SELECT b.*, {alike} FROM ({beside}) b) c"
    return records(
        reader,
        "SELECT t.cluster_id, t.group_id, t.snapshot_id, t.offset, t.observed_at, t.next_id, t.next_offset, t.next_at, "
        "t.member_id, t.group_instance_id, t.client_id, t.host, t.member_order, t.alike, t.came, t.went "
        f"FROM ({told}) t WHERE t.came OR t.went ORDER BY t.cluster_id, t.group_id",
        **values,
    )
