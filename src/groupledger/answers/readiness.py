"""Which groups can go from classic to KIP-848 while they run, what stands in the way, and what would move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.conversion_evidence import evidence, group_of, last_peopled, members_of
from groupledger.answers.generations import CLASSIC
from groupledger.answers.obstacles import Hindrance, copartitioned, obstacles
from groupledger.answers.recorded_states import CONSUMER
from groupledger.answers.scope import Scope, scope, why_empty
from groupledger.answers.topic_partitions import partitions
from groupledger.answers.topics import life_at, lives_of
from groupledger.core.assignors.server.conversion import Converted, GroupBefore, MemberBefore
from groupledger.core.conversion import (
    ASSIGNMENT_HAS_USER_DATA,
    BY_CODE,
    CLIENT_LACKS_KIP_848,
    CUSTOM_ASSIGNOR,
    NOT_CONSUMERS,
    STREAMS,
    Readiness,
    readiness,
)
from groupledger.core.protocol.compatibility import KAFKAS_ASSIGNORS, LIBRARIES
from groupledger.core.protocol.handwriting import libraries

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.obstacles import Evidence
    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import RequestedScope
    from groupledger.answers.topic_partitions import NamedPartition

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
    groups: tuple[GroupReadiness, ...]
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
    return bool(is_known) and not codes & {NOT_CONSUMERS.code, STREAMS.code}


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
