"""How much members read in their own rack, where racks are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.last_states import assigned, last_states
from groupledger.answers.rows import one_of, records
from groupledger.answers.scope import Scope, any_record, scope, why_empty

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.last_states import AssignedMember
    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import RequestedScope
    from groupledger.answers.topic_partitions import NamedPartition

Replicas = Mapping[tuple[str, str], Sequence[tuple["datetime", Sequence[Sequence[str]] | None]]]
"""(cluster, topic) -> from when on, the racks of each partition's replicas."""


@dataclass(frozen=True, slots=True)
class RackMember:
    """A member in a rack: partitions with a replica there, and those without one."""

    member_id: str
    client_id: str | None
    rack_id: str
    local: int
    remote: tuple[NamedPartition, ...]


@dataclass(frozen=True, slots=True)
class RackShare:
    """A group's last state: of the partitions whose racks are known on both sides, how many are local.

    `possible`: how many have a replica in the rack of any member. `unknown`: a member or a replica names no rack.
    """

    cluster_id: str
    group_id: str
    observed_at: datetime
    snapshot_id: str
    local: int
    remote: int
    possible: int
    unknown: int
    members: tuple[RackMember, ...]

    @property
    def share(self) -> float:
        """Local ones of those that are known."""
        return self.local / (self.local + self.remote)


@dataclass(frozen=True, slots=True)
class RackShares:
    """The groups with the least local share first; `total` counts those left off."""

    scope: Scope
    groups: tuple[RackShare, ...]
    total: int
    notes: tuple[str, ...]


def racks(reader: Reader, asked: RequestedScope, limit: int) -> RackShares:
    """Rank groups whose members name racks. Raises as `scope.scope`."""
    within = scope(reader, asked)
    rows = _in_racks(reader, within)
    members = assigned(reader, rows)
    replicas = _replicas(reader, within, rows)
    shares = (_share(row, members.get(row["snapshot_id"], ()), replicas) for row in rows)
    found = sorted(
        (each for each in shares if each.local + each.remote),
        key=lambda each: (each.share, -each.remote, each.cluster_id, each.group_id),
    )
    notes = () if found else (_why_empty(reader, within, members=bool(rows)),)
    return RackShares(within, tuple(found[:limit]), len(found), notes)


def _in_racks(reader: Reader, within: Scope) -> list[Record]:
    """The last states of groups of which a member names a rack."""
    query, values = last_states(within)
    condition, _ = within.of_groups("m.")
    named = (
        "SELECT DISTINCT m.cluster_id, m.group_id, m.snapshot_id FROM current_member_snapshots m "
        f"WHERE {condition} AND m.rack_id IS NOT NULL AND m.rack_id <> ''"
    )
    return records(
        reader,
        f"SELECT l.* FROM ({query}) l JOIN ({named}) n ON n.cluster_id = l.cluster_id AND n.group_id = l.group_id "
        "AND n.snapshot_id = l.snapshot_id ORDER BY l.cluster_id, l.group_id",
        **values,
    )


def _replicas(reader: Reader, within: Scope, rows: Sequence[Record]) -> Replicas:
    topics = sorted({topic for row in rows for topic in row["shared_topics"] or row["subscribed_topics"] or ()})
    which, values = one_of("t.topic", "topic", topics)
    found: dict[tuple[str, str], list[tuple[datetime, Sequence[Sequence[str]] | None]]] = {}
    query = f"SELECT t.cluster_id, t.topic, t.racks, t.valid_from FROM current_topic_snapshots t WHERE {which}"
    for row in records(reader, f"{query} ORDER BY t.valid_from, t.topic_id", **values):
        found.setdefault((row["cluster_id"], row["topic"]), []).append((row["valid_from"], row["racks"]))
    return found


def _share(row: Record, members: Sequence[AssignedMember], replicas: Replicas) -> RackShare:
    inside = {each.rack_id for each in members if each.rack_id}
    told, counted = [], Counter[str]()
    for member in members:
        remote, local = [], 0
        for place in member.partitions:
            there = _racks_of(replicas.get((row["cluster_id"], place[0]), ()), place[1], row["observed_at"])
            if not there or not member.rack_id:
                counted["unknown"] += 1
                continue
            counted["possible"] += bool(there & inside)
            if member.rack_id in there:
                local += 1
            else:
                remote.append(place)
        if member.rack_id:
            told.append(RackMember(member.member_id, member.client_id, member.rack_id, local, tuple(remote)))
    told.sort(key=lambda each: (-len(each.remote), each.member_id))
    return RackShare(
        cluster_id=row["cluster_id"],
        group_id=row["group_id"],
        observed_at=row["observed_at"],
        snapshot_id=row["snapshot_id"],
        local=sum(each.local for each in told),
        remote=sum(len(each.remote) for each in told),
        possible=counted["possible"],
        unknown=counted["unknown"],
        members=tuple(told),
    )


def _racks_of(
    known: Sequence[tuple[datetime, Sequence[Sequence[str]] | None]], partition: int, at: datetime
) -> set[str]:
    """The racks of a partition's replicas, as they were last listed; a listing after the state is better than none."""
    before = [racks_then for when, racks_then in known if when <= at]
    of_topic = (before or [racks_then for _, racks_then in known[:1]] or [None])[-1]
    if of_topic is None or partition >= len(of_topic):
        return set()
    return {each for each in of_topic[partition] or () if each}


def _why_empty(reader: Reader, within: Scope, *, members: bool) -> str:
    if members:
        return "members name racks, but no listing names those of the replicas (topic_snapshots.racks)"
    if any_record(reader, within.from_the_beginning):
        return "no member names a rack (client.rack) in the last state of these groups"
    return why_empty(reader, within.from_the_beginning)
