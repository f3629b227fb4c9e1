"""Which groups can go from classic to KIP-848 while they run, what stands in the way, and what would move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupledger.answers.columns import listed
from groupledger.answers.departures import restless
from groupledger.answers.generations import CLASSIC
from groupledger.answers.obstacles import Evidence, Hindrance, copartitioned, obstacles
from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.rows import one_of, partitions, records
from groupledger.answers.scope import Scope, scope, why_empty
from groupledger.answers.states import CONSUMER, recorded
from groupledger.answers.storms import busy
from groupledger.answers.topics import life_at, lives_of
from groupledger.core.assignors.server.conversion import Converted, GroupBefore, MemberBefore
from groupledger.core.conversion import (
    ASSIGNMENT_HAS_USER_DATA,
    BY_CODE,
    CLIENT_LACKS_KIP_848,
    CUSTOM_ASSIGNOR,
    IS_STREAMS,
    NOT_CONSUMERS,
    Readiness,
    readiness,
)
from groupledger.core.protocol.compatibility import KAFKAS_ASSIGNORS, LIBRARIES, libraries
from groupledger.core.text import length
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.consumer_protocol import decode_assignment
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import GroupKey, NamedPartition, Reader, Record, Value
    from groupledger.answers.scope import RequestedScope


UNIFORM, RANGE = "uniform", "range"
DELETED = "deleted"
Convert = Callable[[str, Sequence[GroupBefore]], list[Converted]]
"""`core.assignors.server.conversion.convert`, which loads the assignors."""


@dataclass(frozen=True, slots=True)
class MemberForecast:
    """What a member has now, and what it would have."""

    member_id: str
    before: tuple[NamedPartition, ...]
    after: tuple[NamedPartition, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a server-side assignor makes of the group; `moves` counts partitions that change hands.

    `why` says in words why there is none: then `moves` is None, and nobody has anything after.
    """

    assignor: str
    moves: int | None
    members: tuple[MemberForecast, ...]
    why: str | None


@dataclass(frozen=True, slots=True)
class GroupReadiness:
    """One group: whether it can be converted while it runs, the reasons, and what a conversion would move.

    `plan` is the `plan-migration` that rehearses the way to an assignor that can be converted, where that is needed.
    """

    cluster_id: str
    group_id: str
    readiness: Readiness
    observed_at: datetime
    snapshot_id: str
    assignor: str | None
    members: int
    reasons: tuple[Hindrance, ...]
    forecasts: tuple[Forecast, ...]
    plan: str | None


@dataclass(frozen=True, slots=True)
class ReadinessReport:
    """Blocked groups first, then unknown, ready and converted ones; `counts` are of all, `total` those left off too."""

    scope: Scope
    groups: tuple[GroupReadiness, ...] = field(metadata=listed(GroupReadiness))
    counts: Mapping[str, int]
    total: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A group before its forecast."""

    state: Record
    members: Sequence[Record]
    reasons: tuple[Hindrance, ...]
    readiness: Readiness


def ready_for_consumer(reader: Reader, asked: RequestedScope, limit: int, convert: Convert) -> ReadinessReport:
    """Judge each group by its last state with members, and by what changed in the period. Raises as `scope.scope`."""
    within = scope(reader, asked)
    everything = last_peopled(reader, within)
    rows = [row for row in everything if row["now_type"] in (CLASSIC, CONSUMER) and row["now_kind"] != DELETED]
    members, seen = members_of(reader, rows), evidence(reader, rows, within)
    judged = sorted(
        (_judged(row, members.get(row["snapshot_id"], ()), seen[group_of(row)]) for row in rows),
        key=lambda each: (list(Readiness).index(each.readiness), *group_of(each.state)),
    )
    counts = Counter(each.readiness for each in judged)
    groups = tuple(_with_forecasts(reader, judged[:limit], convert))
    notes = tuple(_notes(reader, within, everything, len(judged)))
    told = {str(each.value): counts[each] for each in Readiness}
    return ReadinessReport(within, groups, told, len(judged), notes)


def _judged(state: Record, members: Sequence[Record], seen: Evidence) -> _Judged:
    if state["now_type"] != state["group_type"]:  # another group of that name, which has had no members yet
        state, members = state | {"group_type": state["now_type"], "members": 0}, ()
    members = members if state["members"] else ()
    reasons = tuple(obstacles(state, members, seen))
    found = readiness(BY_CODE[each.code] for each in reasons)
    return _Judged(state, members, reasons, Readiness.CONVERTED if state["group_type"] == CONSUMER else found)


def _with_forecasts(reader: Reader, judged: Sequence[_Judged], convert: Convert) -> Iterator[GroupReadiness]:
    asked = [each for each in judged if _has_forecast(each)]
    groups = _classic_groups(reader, asked)
    answers = {name: convert(name, groups) for name in (UNIFORM, RANGE)}
    afresh = convert(UNIFORM, [group.owning_nothing() for group in groups])
    forecasts: dict[int, tuple[Forecast, ...]] = {}
    more: dict[int, Hindrance] = {}
    for number, (each, group) in enumerate(zip(asked, groups, strict=True)):
        of_group = {name: answers[name][number] for name in answers}
        forecasts[id(each)] = tuple(_forecast(name, group, answer) for name, answer in of_group.items())
        dealt = afresh[number].after
        beside = None if dealt is None else copartitioned(group, dealt)
        if beside is not None:
            more[id(each)] = beside
    for each in judged:
        yield _told(each, forecasts.get(id(each), ()), more.get(id(each)))


def _has_forecast(each: _Judged) -> bool:
    """Whether the members are consumers whose whole assignment is known."""
    codes = {reason.code for reason in each.reasons}
    is_known = each.members and each.state["group_type"] == CLASSIC and each.state["complete"]
    return bool(is_known) and not codes & {NOT_CONSUMERS.code, IS_STREAMS.code}


def _classic_groups(reader: Reader, judged: Sequence[_Judged]) -> list[GroupBefore]:
    clusters = sorted({each.state["cluster_id"] for each in judged})
    topics = sorted({topic for each in judged for row in each.members for topic in row["topics"] or ()})
    lives = lives_of(reader, clusters, topics) if judged else {}
    found = []
    for each in judged:
        cluster, at = each.state["cluster_id"], each.state["observed_at"]
        listed = {}
        for topic in sorted({topic for row in each.members for topic in row["topics"] or ()}):
            life = life_at(lives.get((cluster, topic), ()), at)
            if life is not None:
                listed[topic] = life.topic_id, life.partition_count
        members = tuple(
            MemberBefore(
                row["member_id"],
                row["group_instance_id"],
                tuple(dict.fromkeys(row["topics"] or ())),
                frozenset(partitions(row["recorded"])),
            )
            for row in each.members
        )
        found.append(GroupBefore(members, listed))
    return found


def _forecast(name: str, group: GroupBefore, answer: Converted) -> Forecast:
    after = answer.after or {}
    members = tuple(
        MemberForecast(each.member_id, tuple(sorted(each.owned)), tuple(sorted(after.get(each.member_id, ()))))
        for each in group.members
    )
    return Forecast(name, None if answer.after is None else answer.moves(group), members, answer.why)


def _told(each: _Judged, forecasts: tuple[Forecast, ...], beside: Hindrance | None) -> GroupReadiness:
    order = list(BY_CODE)
    found = (*each.reasons, *(() if beside is None else (beside,)))
    reasons = tuple(sorted(found, key=lambda reason: order.index(reason.code)))
    state = each.state
    return GroupReadiness(
        state["cluster_id"],
        state["group_id"],
        each.readiness,
        state["observed_at"],
        state["snapshot_id"],
        state["assignor"],
        state["members"],
        reasons,
        forecasts,
        _plan(each),
    )


def _plan(each: _Judged) -> str | None:
    """The rehearsal of the way to `range`, where the assignor is in the way and the libraries are known."""
    codes = {reason.code for reason in each.reasons}
    in_the_way = codes & {ASSIGNMENT_HAS_USER_DATA.code, CUSTOM_ASSIGNOR.code}
    if not in_the_way or CLIENT_LACKS_KIP_848.code in codes or each.state["assignor"] not in KAFKAS_ASSIGNORS:
        return None
    counted: Counter[str] = Counter()
    for row in each.members:
        known = libraries(each.state["assignor"], row["subscription_version"], row["user_data"])
        counted.update([name for name in LIBRARIES if name in known][:1])
    if counted.total() != len(each.members):
        return None
    clients = " ".join(f"--client {name}={number}" for name, number in sorted(counted.items()))
    return f"groupledger plan-migration --from {each.state['assignor']} --to {RANGE} {clients}"


def _notes(reader: Reader, within: Scope, everything: Sequence[Record], told: int) -> Iterator[str]:
    kinds = Counter(
        "deleted" if row["now_kind"] == DELETED else str(row["now_type"])
        for row in everything
        if row["now_kind"] == DELETED or row["now_type"] not in (CLASSIC, CONSUMER)
    )
    if not everything:
        yield why_empty(reader, within)
    for kind, number in sorted(kinds.items()):
        why = "is no more" if kind == "deleted" else "is no consumer group: there is nothing to convert"
        yield f"{number:,} {kind} {'group is' if number == 1 else 'groups are'} left out: each {why}"
    if told:
        yield (
            "the log does not show releases (Java needs 4.0 or later, others the ones of "
            "docs/guides/decide/kip-848-readiness.md), nor whether a subscription is a regular expression, "
            "nor group.consumer.migration.policy of the brokers"
        )


# What a ledger knows about converting groups to KIP-848: last states, recorded bytes, what changed in a period.

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
