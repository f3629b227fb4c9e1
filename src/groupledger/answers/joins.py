"""How often members joined, went and came back, by group and by the name that outlives a restart: the flapping pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from statistics import median
from typing import Annotated, Any

from groupledger.answers.answer_columns import CLUSTER, GROUP, WHEN, computed, listed, shown
from groupledger.answers.causes import CauseKind
from groupledger.answers.queries import GroupKey, Reader, Record, gathered, group_of, one_of, records, steps
from groupledger.answers.scope import Ranking, RequestedScope, Scope, limits, scope
from groupledger.answers.states import recorded, recorded_states
from groupledger.core.text import length, stretch


@dataclass(frozen=True, slots=True)
class HourOfChanges:
    """An hour (UTC, by its beginning) in which members joined, went or came back, and how many did."""

    hour: datetime
    changes: int

    def __str__(self) -> str:
        """Format as `2026-11-21 14h: 12`."""
        return f"{self.hour.astimezone(UTC):%Y-%m-%d %H}h: {self.changes:,}"


_BUSIEST = shown("busiest hour (UTC)", text=lambda hours: str(hours[0]))


@dataclass(frozen=True, slots=True)
class MemberJoins:
    """What one name did in a period: several members may bear it, one after another or at once.

    `restarted`: a static member came back under a new id while the group still had the old one. `stay_seconds`: the
    median time from joining to going, of those that did both in the period; None where none did. `hosts` are all that
    it was seen on, `hours` all in which it changed, the busiest first.
    """

    name: str = field(metadata=shown("member", named=True))
    joined: int = field(metadata=shown("joined"))
    gone: int = field(metadata=shown("gone"))
    restarted: int = field(metadata=shown("restarted"))
    first: datetime
    last: datetime
    stay_seconds: float | None = field(metadata=shown("stays", text=lambda seconds: length(timedelta(seconds=seconds))))
    hosts: tuple[str, ...] = field(metadata=shown("hosts", text=len))
    hours: tuple[HourOfChanges, ...] = field(metadata=_BUSIEST)

    @property
    def changes(self) -> int:
        """How often it joined, went or came back."""
        return self.joined + self.gone + self.restarted


@dataclass(frozen=True, slots=True)
class GroupJoins:
    """The changes of a group's membership in a period; the members with most of them first."""

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    joined: int = field(metadata=shown("joined"))
    gone: int = field(metadata=shown("gone"))
    restarted: int = field(metadata=shown("restarted"))
    first: datetime
    last: datetime
    hours: tuple[HourOfChanges, ...] = field(metadata=_BUSIEST)
    members: tuple[MemberJoins, ...]

    @property
    def changes(self) -> int:
        """How often a member joined, went or came back."""
        return self.joined + self.gone + self.restarted


Joins = Annotated[Ranking[GroupJoins], "The groups with most changes first; `total` counts those left off."]


def joins(reader: Reader, asked: RequestedScope, limit: int) -> Joins:
    """Rank groups, and the members of each, by how often they joined, went or came back. Raises as `scope.scope`."""
    within = scope(reader, asked)
    changes = membership_changes(reader, within)
    found = [
        _group(key, tuple(of_group))
        for key, of_group in groupby(changes, lambda each: (each.cluster_id, each.group_id))
    ]
    found.sort(key=lambda each: (-each.changes, each.cluster_id, each.group_id))
    notes = limits(reader, within, found, with_members=NO_CHANGE)
    return Ranking(GroupJoins, within, tuple(found[:limit]), len(found), notes)


def _group(key: GroupKey, changes: Sequence[MembershipChange]) -> GroupJoins:
    members = [_member(name, some) for name, some in gathered((each.name, each) for each in changes).items()]
    members.sort(key=lambda member: (-member.changes, member.name))
    return GroupJoins(*key, **_counted(changes), members=tuple(members))


def _member(name: str, changes: Sequence[MembershipChange]) -> MemberJoins:
    stays = [(each.at - each.since).total_seconds() for each in changes if each.since is not None]
    hosts = sorted({each.host for each in changes if each.host})
    stay = median(stays) if stays else None
    return MemberJoins(name, **_counted(changes), stay_seconds=stay, hosts=tuple(hosts))


def _counted(changes: Sequence[MembershipChange]) -> dict[str, Any]:
    """Return the fields that a group and a member have in common: how many changes of each kind, and when."""
    kinds, moments = Counter(each.kind for each in changes), [each.at for each in changes]
    counted = zip(("joined", "gone", "restarted"), (kinds[kind] for kind in CHANGES), strict=True)
    hours = Counter(at.replace(minute=0, second=0, microsecond=0) for at in moments)
    busiest = sorted(hours.items(), key=lambda pair: (-pair[1], pair[0]))
    bounds = {"first": min(moments), "last": max(moments)}
    return dict(counted) | bounds | {"hours": tuple(HourOfChanges(*each) for each in busiest)}


# When members came into a group and went from it: every change of membership in a period, by member.
#
# The same differences as `causes.causes` names, found by the engine in one pass, so that a group of 1,000 members is
# not read state by state. The log does not say whether a member left, crashed or timed out: it is gone.

_ORDER = itemgetter("offset", "is_gone", "member_order", "member_id")
CHANGES = (CauseKind.MEMBER_JOINED, CauseKind.MEMBER_GONE, CauseKind.MEMBER_RESTARTED)
NO_CHANGE = "no member joined, went or came back in this period; who was in a group's first record joined before it"


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
    """Return the changes of the period, by cluster, group and offset; members of a group's first state did not join."""
    rows = _rows(reader, within)
    for _, of_group in groupby(rows, group_of):
        of_one = sorted(_events(of_group), key=_ORDER)
        shared = {row["client_id"] for row in of_one if row["alike"] > 1}
        since: dict[str, datetime] = {}
        for _, of_state in groupby(of_one, lambda row: row["offset"]):
            for change in _of_state(list(of_state), shared, since):
                if within.since is None or change.at >= within.since:
                    yield change


def _events(rows: Iterable[Record]) -> Iterator[Record]:
    """Split each row into what it says of its own state and of the next: `is_gone`, `at`, and the state."""
    for row in rows:
        if row["came"]:
            yield row | {"is_gone": False, "at": row["observed_at"]}
        if row["went"]:
            after = {"snapshot_id": row["next_id"], "offset": row["next_offset"], "at": row["next_at"]}
            yield row | after | {"is_gone": True}


def _of_state(rows: list[Record], shared: set[str | None], since: dict[str, datetime]) -> Iterator[MembershipChange]:
    """Return what one state changed: a static member that is gone and joined in it came back."""
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
    """Return the members of a state that are not in its neighbours of the same incarnation, by cluster and group.

    `came`: not in the one before; `went`: not in the next, which is `next_id`. `alike`: the most members of one state
    with this client id.
    """
    of_one = "OVER (PARTITION BY s.cluster_id, s.group_id, s.incarnation ORDER BY s.offset)"
    of_member = "OVER (PARTITION BY p.cluster_id, p.group_id, p.incarnation, m.member_id ORDER BY p.place)"
    changes = steps(
        placed="SELECT s.cluster_id, s.group_id, s.incarnation, s.snapshot_id, s.offset, s.observed_at, "
        f"row_number() {of_one} AS place, lead(s.snapshot_id) {of_one} AS next_id, "
        f"lead(s.offset) {of_one} AS next_offset, lead(s.observed_at) {of_one} AS next_at "
        f"FROM ({recorded_states(within)}) s",
        beside="SELECT p.*, m.member_id, m.group_instance_id, m.client_id, m.host, m.member_order, "
        f"lag(p.place) {of_member} AS before, lead(p.place) {of_member} AS after, "
        "count(*) OVER (PARTITION BY p.cluster_id, p.group_id, p.snapshot_id, m.client_id) AS at_once "
        "FROM placed p JOIN current_member_snapshots m ON p.cluster_id = m.cluster_id "
        f"AND p.group_id = m.group_id AND p.snapshot_id = m.snapshot_id WHERE {within.of_groups('m.')}",
        counted="SELECT b.*, max(b.at_once) OVER (PARTITION BY b.cluster_id, b.group_id, b.client_id) AS alike, "
        "b.place > 1 AND (b.before IS NULL OR b.before < b.place - 1) AS came, "
        "b.next_id IS NOT NULL AND (b.after IS NULL OR b.after > b.place + 1) AS went FROM beside b",
        changed="SELECT t.cluster_id, t.group_id, t.snapshot_id, t.offset, t.observed_at, t.next_id, t.next_offset, "
        "t.next_at, t.member_id, t.group_instance_id, t.client_id, t.host, t.member_order, t.alike, t.came, t.went "
        "FROM counted t WHERE t.came OR t.went ORDER BY t.cluster_id, t.group_id",
    )
    return records(reader, changes)


# Static members: who took over which `group.instance.id`, and where two processes seem to share one.

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


def takeovers(reader: Reader, within: Scope, of_records: str) -> tuple[Takeover, ...]:
    """Return all in these states, the records of the period, in order of cluster, group, instance id and offset."""
    of_one = "m.cluster_id, m.group_id, m.incarnation, m.group_instance_id"
    window = f"OVER (PARTITION BY {of_one} ORDER BY m.offset, m.member_order)"
    before = ", ".join(
        f"lag(m.{name}) {window} AS {name}_before" for name in ("member_id", "client_id", "host", "snapshot_id")
    )
    query = steps(
        static="SELECT m.cluster_id, m.group_id, m.group_instance_id, m.member_id, m.client_id, m.host, m.offset, "
        "m.snapshot_id, m.member_order, s.observed_at, s.incarnation "
        f"FROM ({of_records}) s JOIN current_member_snapshots m ON s.cluster_id = m.cluster_id "
        "AND s.group_id = m.group_id AND s.snapshot_id = m.snapshot_id "
        f"WHERE {within.of_groups('m.')} AND m.group_instance_id IS NOT NULL",
        beside=f"SELECT m.*, {before} FROM static m",
        taken_over="SELECT * FROM beside t WHERE t.member_id_before IS NOT NULL AND t.member_id_before <> t.member_id "
        "ORDER BY t.cluster_id, t.group_id, t.group_instance_id, t.offset, t.member_order",
    )
    return tuple(
        Takeover(
            *(row["cluster_id"], row["group_id"], row["group_instance_id"], row["observed_at"], row["snapshot_id"]),
            *(row["member_id_before"], row["member_id"]),
            (row["client_id_before"], row["host_before"]),
            (row["client_id"], row["host"]),
            row["snapshot_id"] == row["snapshot_id_before"],
        )
        for row in records(reader, query)
    )


def shared_ids(found: Sequence[Takeover]) -> Iterator[tuple[tuple[Takeover, ...], str]]:
    """Find instance ids that two processes seem to share: the takeovers of each, and what says so.

    One takeover by a second process and one restart leave the same record. A second process is assumed if it continues:
    two members of one record, an id that goes to another process and back within `NEAR`, three clients within
    `AT_ONCE`, or `OFTEN` takeovers within `NEAR`.
    """
    for _, of_one in groupby(found, _INSTANCE):
        of_id = tuple(of_one)
        evidence = _sharing(of_id)
        if evidence is not None:
            yield of_id, evidence


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
            within, named = length(other.at - one.at), ", ".join(map(str, clients))
            return f"the instance id {instance} was taken over twice within {within}: by {named}"
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

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    instance_id: str = field(metadata=shown("instance"))
    takeovers: int = field(metadata=shown("takeovers"))
    moved: int = field(metadata=shown("moved"))
    first: datetime
    last: datetime
    processes: tuple[str, ...]
    shared: str | None

    @property
    @computed(WHEN)
    def when(self) -> str:
        """From the first takeover to the last."""
        return stretch(self.first, self.last)


@dataclass(frozen=True, slots=True)
class StaticMembers:
    """Shared ids first, then those whose restarts moved most; `total` counts those left off."""

    scope: Scope
    members: tuple[StaticMember, ...] = field(metadata=listed(StaticMember))
    total: int
    notes: tuple[str, ...]


def static_members(reader: Reader, asked: RequestedScope, limit: int) -> StaticMembers:
    """Rank instance ids that were taken over. Raises as `scope.scope`."""
    within = scope(reader, asked)
    found = takeovers(reader, within, recorded(within))
    shared = {id(of_id[0]): evidence for of_id, evidence in shared_ids(found)}
    heirs = _heirs(reader, within, found)
    members = []
    for key, of_one in groupby(found, _INSTANCE):
        of_id = tuple(of_one)
        moved = sum(heirs.get((*key[:2], each.from_member_id, each.to_member_id), 0) for each in of_id)
        processes = dict.fromkeys(_process(name) for each in of_id for name in (each.from_process, each.to_process))
        evidence = shared.get(id(of_id[0]))
        counted = len(of_id), moved
        members.append(StaticMember(*key, *counted, of_id[0].at, of_id[-1].at, tuple(processes), evidence))
    members.sort(key=lambda each: (each.shared is None, -each.moved, -each.takeovers, *_INSTANCE(each)))
    notes = limits(reader, within, members, with_members="" if members else _why_no_takeover(reader, within))
    return StaticMembers(within, tuple(members[:limit]), len(members), notes)


_INSTANCE = attrgetter("cluster_id", "group_id", "instance_id")


def _heirs(reader: Reader, within: Scope, found: Sequence[Takeover]) -> dict[tuple[str, str, str, str], int]:
    """Count, by cluster, group, old member id and new one, the partitions of the old one that a third member got."""
    if not found:
        return {}
    place = "t.cluster_id, t.group_id, t.incarnation, t.topic_id, t.topic, t.partition"
    among = one_of("h.from_member_id", sorted({each.from_member_id for each in found}))
    query = steps(
        changes="SELECT t.cluster_id, t.group_id, t.from_member_id, coalesce(t.to_member_id, "
        f"lead(t.to_member_id) OVER (PARTITION BY {place} ORDER BY t.offset)) AS heir "
        f"FROM current_ownership_changes t WHERE {within.where('t.', 'at')}",
        inherited="SELECT h.cluster_id, h.group_id, h.from_member_id, h.heir, count(*) AS n FROM changes h "
        f"WHERE {among} AND h.heir IS NOT NULL GROUP BY h.cluster_id, h.group_id, h.from_member_id, h.heir",
    )
    successors = {(each.cluster_id, each.group_id, each.from_member_id): each.to_member_id for each in found}
    counted = Counter[tuple[str, str, str, str]]()
    for row in records(reader, query):
        old = (*group_of(row), row["from_member_id"])
        if old in successors and row["heir"] != successors[old]:
            counted[*old, successors[old]] += row["n"]
    return counted


def _why_no_takeover(reader: Reader, within: Scope) -> str:
    condition = f"{within.of_groups('t.')} AND t.group_instance_id IS NOT NULL"
    if records(reader, f"SELECT 1 AS found FROM current_member_snapshots t WHERE {condition} LIMIT 1"):
        return "no static member was taken over in this period: each kept its member id"
    return "no member of these groups has a group.instance.id"
