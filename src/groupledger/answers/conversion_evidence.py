"""What a ledger knows about converting groups to KIP-848: last states, recorded bytes, what changed in a period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.obstacles import Evidence
from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.recorded_states import recorded
from groupledger.answers.rows import one_of, records
from groupledger.answers.settling import restless
from groupledger.answers.storms import busy
from groupledger.core.length import length
from groupledger.core.wire.consumer_protocol import decode_assignment
from groupledger.core.wire.faults import DecodeFault
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata

if TYPE_CHECKING:
    from groupledger.answers.rows import GroupKey, Reader, Record, Value
    from groupledger.answers.scope import Scope

OFTEN = 20
"""Rebalances within an hour from which on a group is called a storm, whatever causes them."""


def group_of(row: Record) -> GroupKey:
    """The cluster and the group that a row is about."""
    return row["cluster_id"], row["group_id"]


def last_peopled(reader: Reader, within: Scope) -> list[Record]:
    """The last state with members of each group, or its very last one where none has any, by cluster and group.

    `now_type` and `now_kind` are those of its last record; `is_empty`: that one has no members.
    """
    condition, values = within.of_groups("t.")
    bounds = (
        "SELECT t.cluster_id, t.group_id, max(t.offset) AS newest, max(CASE WHEN t.members > 0 THEN t.offset END) AS "
        f"peopled FROM current_group_snapshots t WHERE {condition} GROUP BY t.cluster_id, t.group_id"
    )
    columns = (
        "s.cluster_id, s.group_id, s.snapshot_id, s.log_partition, s.offset, s.group_type, s.protocol_type, "
        "s.assignor, s.leader, s.complete, s.members, s.shared_topics, s.observed_at"
    )
    same = "b.cluster_id = {0}.cluster_id AND b.group_id = {0}.group_id"
    query = (
        f"SELECT {columns}, n.group_type AS now_type, n.snapshot_kind AS now_kind, n.members AS members_now "
        f"FROM ({bounds}) b JOIN current_group_snapshots s ON {same.format('s')} "
        f"AND s.offset = coalesce(b.peopled, b.newest) JOIN current_group_snapshots n ON {same.format('n')} "
        "AND n.offset = b.newest ORDER BY s.cluster_id, s.group_id, s.snapshot_id, n.snapshot_id"
    )
    last = {group_of(row): row | {"is_empty": row["members_now"] == 0} for row in records(reader, query, **values)}
    return list(last.values())


def members_of(reader: Reader, rows: Sequence[Record]) -> dict[str, list[Record]]:
    """The members of these snapshots in JoinGroup order, by snapshot id; each with the topics it subscribes to."""
    shared = {row["snapshot_id"]: row["shared_topics"] for row in rows}
    found: dict[str, list[Record]] = {}
    for which, values in _asked(rows, "t."):
        query = (
            "SELECT t.snapshot_id, t.member_id, t.group_instance_id, t.client_id, t.subscription_version, t.topics, "
            f"t.user_data, t.recorded FROM current_member_snapshots t WHERE {which} ORDER BY t.snapshot_id, "
            "t.member_order"
        )
        for row in records(reader, query, **values):
            topics = row["topics"] if row["topics"] is not None else shared[row["snapshot_id"]]
            found.setdefault(row["snapshot_id"], []).append(row | {"topics": topics})
    return found


def evidence(reader: Reader, rows: Sequence[Record], within: Scope) -> dict[GroupKey, Evidence]:
    """What else is known of these groups; of a period what changed in it."""
    classic = [row for row in rows if row["group_type"] == CLASSIC]
    user_data = _user_data(reader, classic)
    changed, storms, rejected = _changed(reader, within), _storms(reader, within), _rejected(reader, within)
    found = {}
    for row in rows:
        key, snapshot = group_of(row), row["snapshot_id"]
        of_group = changed.get(key, ())
        found[key] = Evidence(
            user_data.get(snapshot),
            {each["member_id"]: (each["a"], each["b"]) for each in of_group if each["a"] != each["b"]},
            frozenset(each["member_id"] for each in of_group if each["c"] != each["d"]),
            storms.get(key),
            _unread(row, rejected.get(key, ())),
        )
    return found


def _asked(rows: Sequence[Record], prefix: str) -> Iterator[tuple[str, dict[str, Value]]]:
    """Conditions that ask for some of these snapshots at a time; the groups keep other files unread."""
    for begin in range(0, len(rows), MOST_ASKED):
        some = rows[begin : begin + MOST_ASKED]
        which, ids = one_of(f"{prefix}snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
        groups, named = one_of(f"{prefix}group_id", "group", sorted({row["group_id"] for row in some}))
        yield f"{groups} AND {which}", ids | named


def _user_data(reader: Reader, rows: Sequence[Record]) -> dict[str, frozenset[str]]:
    """Snapshot -> members whose assignment has user data; a snapshot whose bytes are not kept is left out."""
    places = {(*group_of(row), row["log_partition"], row["offset"]): row["snapshot_id"] for row in rows}
    found: dict[str, frozenset[str]] = {}
    for begin in range(0, len(rows), MOST_ASKED):
        some = rows[begin : begin + MOST_ASKED]
        groups, named = one_of("r.group_id", "group", sorted({row["group_id"] for row in some}))
        offsets = ", ".join(str(row["offset"]) for row in some)
        query = (
            "SELECT r.cluster_id, r.group_id, r.log_partition, r.offset, r.timestamp, r.key, r.value "
            f"FROM current_log_records r WHERE {groups} AND r.offset IN ({offsets}) AND r.value IS NOT NULL"
        )
        kept = records(reader, query, **named)
        kept.sort(key=lambda row: (row["timestamp"], row["key"] or b"", row["value"]))
        for row in kept:
            snapshot = places.get((*group_of(row), row["log_partition"], row["offset"]))
            told = None if snapshot is None or snapshot in found else _with_user_data(row["key"], row["value"])
            if snapshot is not None and told is not None:
                found[snapshot] = told
    return found


def _with_user_data(key: bytes | None, value: bytes) -> frozenset[str] | None:
    """The members that a recorded generation gives user data; None where these bytes are none."""
    try:
        record = decode(key, value).value
        if not isinstance(record, GroupMetadata):
            return None
        return frozenset(each.member_id for each in record.members if decode_assignment(each.assignment).user_data)
    except DecodeFault:
        return None


def _rejected(reader: Reader, within: Scope) -> dict[GroupKey, list[Record]]:
    """Return the quarantined records of each group, in the order of the log."""
    condition, values = within.of_groups("t.")
    query = (
        "SELECT t.cluster_id, t.group_id, t.log_partition, t.offset, t.code, t.message FROM current_quarantine t "
        f"WHERE {condition} AND t.group_id IS NOT NULL ORDER BY t.offset, t.code, t.message"
    )
    found: dict[GroupKey, list[Record]] = {}
    for row in records(reader, query, **values):
        found.setdefault(group_of(row), []).append(row)
    return found


def _unread(state: Record, rejected: Sequence[Record]) -> str | None:
    """Return the first record behind a state, in its log partition, that could not be read."""
    for row in rejected:
        if row["log_partition"] == state["log_partition"] and (row["offset"] or 0) > state["offset"]:
            return f"offset {row['offset']} of partition {row['log_partition']}: {row['code']}: {row['message']}"
    return None


def _changed(reader: Reader, within: Scope) -> dict[GroupKey, list[Record]]:
    """Members of classic groups whose group had several assignors (`a`, `b`), or that subscribed anew (`c`, `d`)."""
    condition, values = within.where("s.")
    of_groups, _ = within.of_groups("m.")
    topics = "array_join(array_sort(coalesce(m.topics, s.shared_topics)), ' ')"
    query = (
        "SELECT m.cluster_id, m.group_id, m.member_id, min(s.assignor) AS a, max(s.assignor) AS b, "
        f"min({topics}) AS c, max({topics}) AS d FROM current_group_snapshots s JOIN current_member_snapshots m "
        "ON s.cluster_id = m.cluster_id AND s.group_id = m.group_id AND s.snapshot_id = m.snapshot_id "
        f"WHERE {condition} AND {of_groups} AND s.group_type = '{CLASSIC}' "
        "GROUP BY m.cluster_id, m.group_id, m.member_id"
    )
    found: dict[GroupKey, list[Record]] = {}
    differing = f"SELECT * FROM ({query}) q WHERE q.a <> q.b OR q.c <> q.d ORDER BY q.member_id"
    for row in records(reader, differing, **values):
        found.setdefault(group_of(row), []).append(row)
    return found


def _storms(reader: Reader, within: Scope) -> Mapping[GroupKey, str]:
    """Groups that never settle, or that rebalance OFTEN within an hour of the period."""
    found = {group: f"{most:,} rebalances within an hour" for group, most in busy(reader, within, OFTEN).items()}
    for run in restless(reader, recorded(within)):
        first, last = run.generations[0], run.generations[-1]
        lasted = length(last["observed_at"] - first["observed_at"])
        found[run.cluster_id, run.group_id] = (
            f"{len(run.generations):,} generations in {lasted} with nothing changed that the log holds"
        )
    return found
