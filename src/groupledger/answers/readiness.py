"""Which groups can go from classic to KIP-848 while they run, what prevents it, and what would move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import listed
from groupledger.answers.audit import lasting, restless
from groupledger.answers.causes import DELETED
from groupledger.answers.queries import (
    CLASSIC,
    CONSUMER,
    GroupKey,
    NamedPartition,
    Reader,
    Record,
    by_group,
    from_row,
    gathered,
    group_of,
    in_parts,
    life_at,
    lives_of,
    members_of,
    newest,
    of_their_groups,
    partitions,
    records,
)
from groupledger.answers.scope import RequestedScope, Scope, scope, why_empty
from groupledger.answers.states import recorded
from groupledger.answers.storms import busy
from groupledger.core.assignors.server.across_conversion import Converted, GroupBefore, MemberBefore, Owned
from groupledger.core.obstacles import Effect, Obstacle, Readiness, readiness
from groupledger.core.protocol.compatibility import (
    JAVA_WRITER,
    KAFKAS_ASSIGNORS,
    LIBRARIES,
    SPEAK_KIP_848,
    STREAMS,
    is_older_java,
    libraries,
    named_writers,
)
from groupledger.core.protocol.recorded import CONSUMERS
from groupledger.core.text import shortened
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.consumer_protocol import NEWEST_VERSION, decode_assignment
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata

if TYPE_CHECKING:
    from datetime import datetime


UNIFORM, RANGE = "uniform", "range"
Convert = Callable[[str, Sequence[GroupBefore]], list[Converted]]
"""`core.assignors.server.across_conversion.convert`, which loads the assignors."""


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
class Hindrance:
    """One obstacle of one group, and what says so."""

    code: str
    effect: Effect
    evidence: str


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
    columns = ("subscription_version", "topics", "user_data", "recorded")
    members, seen = members_of(reader, rows, columns), evidence(reader, rows, within)
    judged = sorted(
        (_judged(row, members.get(row["snapshot_id"], ()), seen[group_of(row)]) for row in rows),
        key=lambda each: (list(Readiness).index(each.readiness), *group_of(each.state)),
    )
    counts = Counter(each.readiness for each in judged)
    groups = tuple(_with_forecasts(reader, judged[:limit], convert))
    notes = tuple(_notes(reader, within, everything, len(judged)))
    by_name = {str(each.value): counts[each] for each in Readiness}
    return ReadinessReport(within, groups, by_name, len(judged), notes)


def _judged(state: Record, members: Sequence[Record], seen: Evidence) -> _Judged:
    if state["now_type"] != state["group_type"]:  # another group of that name, which has had no members yet
        state, members = state | {"group_type": state["now_type"], "members": 0}, ()
    shared = state["shared_topics"]
    members = [row if row["topics"] is not None else row | {"topics": shared} for row in members if state["members"]]
    reasons = tuple(obstacles(state, members, seen))
    found = readiness(Obstacle[each.code] for each in reasons)
    return _Judged(state, members, reasons, Readiness.CONVERTED if state["group_type"] == CONSUMER else found)


def _with_forecasts(reader: Reader, judged: Sequence[_Judged], convert: Convert) -> Iterator[GroupReadiness]:
    asked = [each for each in judged if _has_forecast(each)]
    groups = _classic_groups(reader, asked)
    answers = {name: convert(name, groups) for name in (UNIFORM, RANGE)}
    afresh = convert(UNIFORM, [group.owning_nothing() for group in groups])
    forecasts: dict[int, tuple[tuple[Forecast, ...], Hindrance | None]] = {}
    for number, (each, group) in enumerate(zip(asked, groups, strict=True)):
        of_group = tuple(_forecast(name, group, of[number]) for name, of in answers.items())
        dealt = afresh[number].after
        forecasts[id(each)] = of_group, None if dealt is None else copartitioned(group, dealt)
    order = list(Obstacle.__members__)
    for each in judged:
        of_each, beside = forecasts.get(id(each), ((), None))
        reasons = tuple(sorted((*each.reasons, *filter(None, [beside])), key=lambda reason: order.index(reason.code)))
        more = {"readiness": each.readiness, "reasons": reasons, "forecasts": of_each, "plan": _plan(each)}
        yield from_row(GroupReadiness, each.state, **more)


def _forecast(name: str, group: GroupBefore, answer: Converted) -> Forecast:
    after = answer.after or {}
    members = tuple(
        MemberForecast(each.member_id, tuple(sorted(each.owned)), tuple(sorted(after.get(each.member_id, ()))))
        for each in group.members
    )
    return Forecast(name, None if answer.after is None else answer.moves(group), members, answer.why)


def _has_forecast(each: _Judged) -> bool:
    """Return whether the members are consumers whose whole assignment is known."""
    codes = {reason.code for reason in each.reasons}
    is_known = each.members and each.state["group_type"] == CLASSIC and each.state["complete"]
    return bool(is_known) and not codes & {Obstacle.NOT_CONSUMERS.code, Obstacle.STREAMS.code}


def _classic_groups(reader: Reader, judged: Sequence[_Judged]) -> list[GroupBefore]:
    clusters = sorted({each.state["cluster_id"] for each in judged})
    topics = sorted({topic for each in judged for row in each.members for topic in row["topics"] or ()})
    lives = lives_of(reader, clusters, topics) if judged else {}
    found = []
    for each in judged:
        of_group = sorted({topic for row in each.members for topic in row["topics"] or ()})
        cluster, at = each.state["cluster_id"], each.state["observed_at"]
        then = ((topic, life_at(lives.get((cluster, topic), ()), at)) for topic in of_group)
        listed = {topic: (life.topic_id, life.partition_count) for topic, life in then if life is not None}
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


def _plan(each: _Judged) -> str | None:
    """Name the rehearsal of the way to `range`, if the assignor prevents a conversion and the libraries are known."""
    codes = {reason.code for reason in each.reasons}
    in_the_way = codes & {Obstacle.ASSIGNMENT_HAS_USER_DATA.code, Obstacle.CUSTOM_ASSIGNOR.code}
    if not in_the_way or Obstacle.CLIENT_LACKS_KIP_848.code in codes or each.state["assignor"] not in KAFKAS_ASSIGNORS:
        return None
    counted: Counter[str] = Counter()
    for row in each.members:
        known = libraries(each.state["assignor"], row["subscription_version"], row["user_data"])
        counted.update([name for name in LIBRARIES if name in known][:1])
    if counted.total() != len(each.members):
        return None
    clients = " ".join(f"--client {name}={number}" for name, number in sorted(counted.items()))
    return f"groupledger plan-migration --listed {each.state['assignor']} --assignor {RANGE} {clients}"


def _notes(reader: Reader, within: Scope, everything: Sequence[Record], judged: int) -> Iterator[str]:
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
    if judged:
        yield (
            "the log does not show releases (Java needs 4.0 or later, others the ones of "
            "docs/guides/decide/kip-848-readiness.md), nor whether a subscription is a regular expression, "
            "nor group.consumer.migration.policy of the brokers"
        )


# What a ledger knows about converting groups to KIP-848: last states, recorded bytes, what changed in a period.

OFTEN = 20
"""Rebalances within an hour from which on a group is called a storm, whatever causes them."""


def last_peopled(reader: Reader, within: Scope) -> list[Record]:
    """Return the last state with members of each group, or its very last one if none has any, by cluster and group.

    `now_type` and `now_kind` are those of its last record; `is_empty`: that one has no members.
    """
    condition = within.of_groups("t.")
    last = newest(
        condition,
        "n.*, t.snapshot_id AS now_id, t.group_type AS now_type, t.snapshot_kind AS now_kind, t.members AS members_now",
        ", max(CASE WHEN t.members > 0 THEN t.offset END) AS peopled",
    )
    query = (
        "SELECT s.cluster_id, s.group_id, s.snapshot_id, s.log_partition, s.offset, s.group_type, s.protocol_type, "
        "s.assignor, s.leader, s.complete, s.members, s.shared_topics, s.observed_at, b.now_type, b.now_kind, "
        f"b.members_now = 0 AS is_empty FROM ({last}) b JOIN current_group_snapshots s "
        "ON b.cluster_id = s.cluster_id AND b.group_id = s.group_id AND s.offset = coalesce(b.peopled, b.newest) "
        "ORDER BY s.cluster_id, s.group_id, s.snapshot_id, b.now_id"
    )
    return list({group_of(row): row for row in records(reader, query)}.values())


def evidence(reader: Reader, rows: Sequence[Record], within: Scope) -> dict[GroupKey, Evidence]:
    """Return what else is known of these groups; of a period what changed in it."""
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


def _user_data(reader: Reader, rows: Sequence[Record]) -> dict[str, frozenset[str]]:
    """Map snapshots to members whose assignment has user data; a snapshot whose bytes are not kept is left out."""
    places = {(*group_of(row), row["log_partition"], row["offset"]): row["snapshot_id"] for row in rows}
    found: dict[str, frozenset[str]] = {}
    for some in in_parts(rows):
        offsets = ", ".join(str(row["offset"]) for row in some)
        query = (
            "SELECT r.cluster_id, r.group_id, r.log_partition, r.offset, r.timestamp, r.key, r.value "
            f"FROM current_log_records r WHERE {of_their_groups('r.', some)} "
            f"AND r.offset IN ({offsets}) AND r.value IS NOT NULL"
        )
        kept = records(reader, query)
        kept.sort(key=lambda row: (row["timestamp"], row["key"] or b"", row["value"]))
        for row in kept:
            snapshot = places.get((*group_of(row), row["log_partition"], row["offset"]))
            members = None if snapshot is None or snapshot in found else _with_user_data(row["key"], row["value"])
            if snapshot is not None and members is not None:
                found[snapshot] = members
    return found


def _with_user_data(key: bytes | None, value: bytes) -> frozenset[str] | None:
    """Return the members that a recorded generation gives user data; None if these bytes are not a generation."""
    try:
        record = decode(key, value).value
        if not isinstance(record, GroupMetadata):
            return None
        return frozenset(each.member_id for each in record.members if decode_assignment(each.assignment).user_data)
    except DecodeFault:
        return None


def _rejected(reader: Reader, within: Scope) -> dict[GroupKey, list[Record]]:
    """Return the quarantined records of each group, in the order of the log."""
    condition = within.of_groups("t.")
    query = (
        "SELECT t.cluster_id, t.group_id, t.log_partition, t.offset, t.code, t.message FROM current_quarantine t "
        f"WHERE {condition} AND t.group_id IS NOT NULL ORDER BY t.offset, t.code, t.message"
    )
    return by_group(records(reader, query))


def _unread(state: Record, rejected: Sequence[Record]) -> str | None:
    """Return the first record behind a state, in its log partition, that could not be read."""
    for row in rejected:
        if row["log_partition"] == state["log_partition"] and (row["offset"] or 0) > state["offset"]:
            return f"offset {row['offset']} of partition {row['log_partition']}: {row['code']}: {row['message']}"
    return None


def _changed(reader: Reader, within: Scope) -> dict[GroupKey, list[Record]]:
    """Return members whose classic group had several assignors (`a`, `b`), or that changed topics (`c`, `d`)."""
    condition = within.where("s.")
    of_groups = within.of_groups("m.")
    topics = "array_join(array_sort(coalesce(m.topics, s.shared_topics)), ' ')"
    query = (
        "SELECT m.cluster_id, m.group_id, m.member_id, min(s.assignor) AS a, max(s.assignor) AS b, "
        f"min({topics}) AS c, max({topics}) AS d FROM current_group_snapshots s JOIN current_member_snapshots m "
        "ON s.cluster_id = m.cluster_id AND s.group_id = m.group_id AND s.snapshot_id = m.snapshot_id "
        f"WHERE {condition} AND {of_groups} AND s.group_type = '{CLASSIC}' "
        "GROUP BY m.cluster_id, m.group_id, m.member_id"
    )
    differing = f"SELECT * FROM ({query}) q WHERE q.a <> q.b OR q.c <> q.d ORDER BY q.member_id"
    return by_group(records(reader, differing))


def _storms(reader: Reader, within: Scope) -> Mapping[GroupKey, str]:
    """Return groups that never settle, or that rebalance OFTEN within an hour of the period."""
    found = {group: f"{most:,} rebalances within an hour" for group, most in busy(reader, within, OFTEN).items()}
    for run in restless(reader, recorded(within)):
        found[group_of(run[0])] = f"{lasting(run)} with nothing changed that the log holds"
    return found


# What stands between one recorded group and KIP-848: `core.obstacles`'s reasons, with the evidence of each.

KNOWN_ASSIGNORS = frozenset(name for each in LIBRARIES.values() for name in each.assignors)
NAMED = 3
"""Members or topics that an evidence names."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a ledger knows of a group beside its last state.

    `user_data`: members whose recorded assignment has some; None: the record's bytes are not kept. `assignors` and
    `subscriptions`: members that had several in the period without a restart, with those. `unread`: a later record that
    is in quarantine. `storm`: what says that it is one.
    """

    user_data: frozenset[str] | None = frozenset()
    assignors: Mapping[str, tuple[str, ...]] | None = None
    subscriptions: frozenset[str] = frozenset()
    storm: str | None = None
    unread: str | None = None


def obstacles(state: Record, members: Sequence[Record], seen: Evidence) -> Iterator[Hindrance]:
    """Find what prevents a conversion, from the last state with members; `state` also has `is_empty`: it is by now.

    Of a group that is converted already only what is left to do.
    """
    if state["group_type"] == CONSUMER:
        classic = [row["member_id"] for row in members if row["subscription_version"] is not None]
        if classic:
            text = f"{len(classic):,} of {len(members):,} members are classic: {few(_short(classic))}"
            yield _reason(Obstacle.MIXED_MEMBERS, text)
        return
    if state["group_type"] != CLASSIC or state["protocol_type"] not in CONSUMERS:
        yield _reason(Obstacle.NOT_CONSUMERS, f"the protocol type is {state['protocol_type']!r}")
        return
    if not members:
        yield _reason(Obstacle.NO_MEMBERS_RECORDED, "no record of it in the ledger has a member")
        return
    if state["assignor"] == STREAMS:
        instead = "docs/guides/decide/kip-848-readiness.md says what to do instead"
        yield _reason(Obstacle.STREAMS, f"the assignor is {STREAMS!r}: {instead}")
        return
    if state["is_empty"]:
        yield _reason(Obstacle.EMPTY_NOW, "what is said here is of its last members")
    yield from _of_assignor(state, seen)
    yield from _of_clients(state, members)
    yield from _of_members(state, members, seen)
    if seen.storm is not None:
        yield _reason(Obstacle.REBALANCE_STORM, seen.storm)


def _reason(obstacle: Obstacle, evidence: str) -> Hindrance:
    return Hindrance(obstacle.code, obstacle.effect, evidence)


def _of_assignor(state: Record, seen: Evidence) -> Iterator[Hindrance]:
    assignor = state["assignor"]
    if not state["complete"]:
        yield _reason(Obstacle.INCOMPLETE_RECORD, "no verdict rests on the last record")
    if seen.unread is not None:
        yield _reason(Obstacle.RECORD_NOT_READ, seen.unread)
    if assignor not in KNOWN_ASSIGNORS:
        yield _reason(Obstacle.CUSTOM_ASSIGNOR, f"the assignor is {assignor!r}")
    if seen.user_data is None:
        yield _reason(Obstacle.ASSIGNMENT_NOT_KEPT, f"the bytes of {state['snapshot_id']} are not in `log_records`")
    elif seen.user_data:
        text = f"{assignor} wrote some for {len(seen.user_data):,} of {state['members']:,} members"
        yield _reason(Obstacle.ASSIGNMENT_HAS_USER_DATA, f"{text}: {few(_short(seen.user_data))}")
    if seen.assignors:
        [member, *_] = _short(seen.assignors)
        more = f"; so did {len(seen.assignors) - 1:,} more" if len(seen.assignors) > 1 else ""
        names = " and under ".join(seen.assignors[min(seen.assignors)])
        yield _reason(Obstacle.SEVERAL_ASSIGNORS, f"{member} took part under {names}{more}")


def _of_clients(state: Record, members: Sequence[Record]) -> Iterator[Hindrance]:
    lacking: dict[str, list[str]] = {}
    strangers, unread = [], dict[str, list[str]]()
    for row in members:
        version = row["subscription_version"]
        if version is None or not 0 <= version <= NEWEST_VERSION:
            what = "an empty subscription" if version is None else f"version {version} of the subscription"
            unread.setdefault(what, []).append(row["member_id"])
            continue
        known = libraries(state["assignor"], version, row["user_data"])
        if not known:
            strangers.append(row["member_id"])
        elif not known & SPEAK_KIP_848 or (is_older_java(version) and known & SPEAK_KIP_848 <= {JAVA_WRITER}):
            lacking.setdefault(" or ".join(named_writers(known, version)), []).append(row["member_id"])
    for named, those in sorted(unread.items()):
        yield _reason(Obstacle.SUBSCRIPTION_NOT_KNOWN, f"{few(_short(those))} {_writes(those)} {named}")
    for named, those in sorted(lacking.items()):
        yield _reason(Obstacle.CLIENT_LACKS_KIP_848, f"{few(_short(those))} {_writes(those)} as {named}")
    if strangers and state["assignor"] in KNOWN_ASSIGNORS:
        yield _reason(Obstacle.CLIENT_NOT_KNOWN, f"{few(_short(strangers))} {_writes(strangers)} as none of them")


def _of_members(state: Record, members: Sequence[Record], seen: Evidence) -> Iterator[Hindrance]:
    static = sorted(row["group_instance_id"] for row in members if row["group_instance_id"] is not None)
    if static:
        yield _reason(Obstacle.STATIC_MEMBERS, f"{len(static):,} of {len(members):,} members: {few(static)}")
    if state["shared_topics"] is None:
        kinds = {tuple(sorted(set(row["topics"] or ()))) for row in members}
        if len(kinds) > 1:
            yield _reason(Obstacle.SUBSCRIPTIONS_DIFFER, f"{len(kinds):,} subscriptions in {len(members):,} members")
    if seen.subscriptions:
        yield _reason(Obstacle.MAY_BE_A_PATTERN, few(_short(seen.subscriptions)))


def copartitioned(group: GroupBefore, afresh: Mapping[str, Owned]) -> Hindrance | None:
    """Find COPARTITIONED: topics of one partition count lie side by side, and do not under `uniform` dealt `afresh`."""
    before = {each.member_id: each.owned for each in group.members}
    sizes = gathered((count, topic) for topic, (_, count) in sorted(group.listed.items()))
    for count, topics in sorted(sizes.items()):
        if count < 2 or len(topics) < 2 or len(before) < 2 or _apart(before, topics, count):
            continue
        apart = _apart(afresh, topics, count)
        if apart:
            each = f"{few(topics)} ({count:,} partitions each)"
            return _reason(
                Obstacle.COPARTITIONED, f"{each}: dealt afresh, `uniform` parts {apart:,} of {count:,} numbers"
            )
    return None


def _apart(owned: Mapping[str, Owned], topics: Sequence[str], count: int) -> int:
    """Count partition numbers whose owners differ from topic to topic, or that nobody has."""
    owner = {place: member for member, places in owned.items() for place in places}
    numbers = ({owner.get((topic, number)) for topic in topics} for number in range(count))
    return sum(len(owners) > 1 or None in owners for owners in numbers)


def few(names: Sequence[str]) -> str:
    """Format as `a, b, c and 4 more`."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _short(member_ids: Iterable[str]) -> list[str]:
    """Shorten ids, in their order, as far as they remain different."""
    names = sorted(member_ids)
    short = shortened(names)
    return [short[name] for name in names]


def _writes(those: Sequence[str]) -> str:
    return "writes" if len(those) == 1 else "write"
