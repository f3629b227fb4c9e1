"""Static members: who took over which `group.instance.id`, and where two processes seem to share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from groupledger.answers.recorded_states import recorded
from groupledger.answers.rows import one_of, records
from groupledger.answers.scope import Scope, any_members, gaps, scope, why_empty
from groupledger.core.length import length

if TYPE_CHECKING:
    from groupledger.answers.recorded_states import Query
    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import RequestedScope

NEAR = timedelta(minutes=10)
OFTEN = 5
"""Takeovers of one instance id within `NEAR`: more than a restart that went wrong once."""

AT_ONCE = timedelta(seconds=10)
"""Two takeovers within it by three clients: one process does not restart so soon, each time under another client id."""

ClientProcess = tuple[str | None, str | None]
"""Client id and host."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """A record in which an instance id has another member id than before. `together`: both are in that one record."""

    cluster_id: str
    group_id: str
    instance_id: str
    at: datetime
    snapshot_id: str
    from_member_id: str
    to_member_id: str
    from_process: ClientProcess
    to_process: ClientProcess
    together: bool


@dataclass(frozen=True, slots=True)
class SharedId:
    """An instance id that two processes seem to share, and what says so."""

    takeovers: tuple[Takeover, ...]
    evidence: str


def takeovers(reader: Reader, within: Scope, states: Query) -> tuple[Takeover, ...]:
    """All in these states, the records of the period, in order of cluster, group, instance id and offset."""
    of_records, values = states
    condition, names = within.of_groups("m.")
    members = (
        "SELECT m.cluster_id, m.group_id, m.group_instance_id, m.member_id, m.client_id, m.host, m.offset, "
        "m.snapshot_id, m.member_order, s.observed_at, s.incarnation "
        f"FROM ({of_records}) s JOIN current_member_snapshots m "
        "ON s.cluster_id = m.cluster_id AND s.group_id = m.group_id "
        f"AND s.snapshot_id = m.snapshot_id WHERE {condition} AND m.group_instance_id IS NOT NULL"
    )
    of_one = "m.cluster_id, m.group_id, m.incarnation, m.group_instance_id"
    window = f"OVER (PARTITION BY {of_one} ORDER BY m.offset, m.member_order)"
    before = ", ".join(
        f"lag(m.{name}) {window} AS {name}_before" for name in ("member_id", "client_id", "host", "snapshot_id")
    )
    rows = records(
        reader,
        f"SELECT * FROM (SELECT m.*, {before} FROM ({members}) m) t WHERE t.member_id_before IS NOT NULL "
        "AND t.member_id_before <> t.member_id "
        "ORDER BY t.cluster_id, t.group_id, t.group_instance_id, t.offset, t.member_order",
        **(values | names),
    )
    return tuple(
        Takeover(
            row["cluster_id"],
            row["group_id"],
            row["group_instance_id"],
            row["observed_at"],
            row["snapshot_id"],
            row["member_id_before"],
            row["member_id"],
            (row["client_id_before"], row["host_before"]),
            (row["client_id"], row["host"]),
            row["snapshot_id"] == row["snapshot_id_before"],
        )
        for row in rows
    )


def shared_ids(found: Sequence[Takeover]) -> Iterator[SharedId]:
    """Instance ids that a restart alone does not explain.

    One takeover by a second process and one restart leave the same record. What tells them apart is that it goes on:
    two members of one record, an id that goes to another process and back within `NEAR`, three clients within
    `AT_ONCE`, or `OFTEN` takeovers within `NEAR`.
    """
    for _, of_one in groupby(found, lambda each: (each.cluster_id, each.group_id, each.instance_id)):
        of_id = tuple(of_one)
        told = _sharing(of_id)
        if told is not None:
            yield SharedId(of_id, told)


def _sharing(of_id: Sequence[Takeover]) -> str | None:
    instance = of_id[0].instance_id
    if any(each.together for each in of_id):
        return f"two members of one record have the instance id {instance}"
    for one, other in pairwise(of_id):
        returned = one.from_process == other.to_process != one.to_process == other.from_process
        if returned and other.at - one.at <= NEAR:
            there, back = (_process(each) for each in (one.to_process, one.from_process))
            return f"the instance id {instance} went from {back} to {there} and back"
        clients = dict.fromkeys(process[0] for process in (one.from_process, one.to_process, other.to_process))
        if len(clients) == len({None, *clients}) - 1 == 3 and other.at - one.at <= AT_ONCE:
            told = ", ".join(map(str, clients))
            return f"the instance id {instance} was taken over twice within {length(other.at - one.at)}: by {told}"
    for one, other in zip(of_id, of_id[OFTEN - 1 :], strict=False):
        if other.at - one.at <= NEAR:
            return f"the instance id {instance} was taken over {len(of_id)} times, by {_process(other.to_process)} last"
    return None


def _process(process: ClientProcess) -> str:
    client, host = process
    return f"{client or '(no client id)'} on {host or '(no host)'}"


@dataclass(frozen=True, slots=True)
class StaticMember:
    """An instance id that was taken over in a period: how often, and how much of its work others got meanwhile.

    `shared` says why two processes seem to share it; None: restarts explain what is recorded.
    """

    cluster_id: str
    group_id: str
    instance_id: str
    takeovers: int
    moved: int
    first: datetime
    last: datetime
    processes: tuple[str, ...]
    shared: str | None


@dataclass(frozen=True, slots=True)
class StaticMembers:
    """Shared ids first, then those whose restarts moved most; `total` counts those left off."""

    scope: Scope
    members: tuple[StaticMember, ...]
    total: int
    notes: tuple[str, ...]


def static_members(reader: Reader, asked: RequestedScope, limit: int) -> StaticMembers:
    """Rank instance ids that were taken over. Raises as `scope.scope`."""
    within = scope(reader, asked)
    found = takeovers(reader, within, recorded(within))
    shared = {id(each.takeovers[0]): each.evidence for each in shared_ids(found)}
    heirs = _heirs(reader, within, found)
    told = []
    for (cluster, group, instance), of_one in groupby(
        found, lambda each: (each.cluster_id, each.group_id, each.instance_id)
    ):
        of_id = tuple(of_one)
        moved = sum(heirs.get((cluster, group, each.from_member_id, each.to_member_id), 0) for each in of_id)
        processes = dict.fromkeys(_process(name) for each in of_id for name in (each.from_process, each.to_process))
        moments = of_id[0].at, of_id[-1].at
        told.append(
            StaticMember(
                *(cluster, group, instance, len(of_id), moved, *moments), tuple(processes), shared.get(id(of_id[0]))
            )
        )
    told.sort(
        key=lambda each: (
            each.shared is None,
            -each.moved,
            -each.takeovers,
            each.cluster_id,
            each.group_id,
            each.instance_id,
        )
    )
    notes = (() if told else (_why_no_takeover(reader, within),)) + gaps(reader, within)
    return StaticMembers(within, tuple(told[:limit]), len(told), notes)


def _heirs(reader: Reader, within: Scope, found: Sequence[Takeover]) -> dict[tuple[str, str, str, str], int]:
    """(cluster, group, old member id, new one) -> partitions of the old one that a third member got."""
    if not found:
        return {}
    condition, values = within.where("t.", "at")
    place = "t.cluster_id, t.group_id, t.incarnation, t.topic_id, t.topic, t.partition"
    following = f"lead(t.to_member_id) OVER (PARTITION BY {place} ORDER BY t.offset)"
    changes = (
        f"SELECT t.cluster_id, t.group_id, t.from_member_id, coalesce(t.to_member_id, {following}) AS heir "
        f"FROM current_ownership_changes t WHERE {condition}"
    )
    among, ids = one_of("h.from_member_id", "member", sorted({each.from_member_id for each in found}))
    rows = records(
        reader,
        f"SELECT h.cluster_id, h.group_id, h.from_member_id, h.heir, count(*) AS n FROM ({changes}) h "
        f"WHERE {among} AND h.heir IS NOT NULL GROUP BY h.cluster_id, h.group_id, h.from_member_id, h.heir",
        **values,
        **ids,
    )
    successors = {(each.cluster_id, each.group_id, each.from_member_id): each.to_member_id for each in found}
    counted: dict[tuple[str, str, str, str], int] = {}
    for row in rows:
        old = (row["cluster_id"], row["group_id"], row["from_member_id"])
        if old in successors and row["heir"] != successors[old]:
            counted[*old, successors[old]] = counted.get((*old, successors[old]), 0) + row["n"]
    return counted


def _why_no_takeover(reader: Reader, within: Scope) -> str:
    if not any_members(reader, within):
        return why_empty(reader, within)
    condition, values = within.of_groups("t.")
    query = f"SELECT 1 AS found FROM current_member_snapshots t WHERE {condition} AND t.group_instance_id IS NOT NULL"
    if records(reader, f"{query} LIMIT 1", **values):
        return "no static member was taken over in this period: each kept its member id"
    return "no member of these groups has a group.instance.id"
