"""Find the assignors, of Java and of other libraries, that give exactly what a leader recorded.

A record that differs from Java's answer often comes from another library: computed with that library's assignor it is
equal list for list, and the order of the lists is evidence, too. If several libraries give the same, all are named. A
library whose bytes differ from what the leader wrote as a member is left out (`protocol.handwriting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from groupledger.core import registry
from groupledger.core.assignors import Status, assign
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS, ClientAssignor, LeaderPlan, PossiblePlans
from groupledger.core.custom.group import Group, Member, TopicPartition
from groupledger.core.history.rows import Assignment, GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.protocol.compatibility import LIBRARIES
from groupledger.core.protocol.handwriting import libraries
from groupledger.core.scenario_groups import encode_group

MOST_WORK = 10_000
"""Maximum members and partitions processed by all runs of one assignor; one run is tried in any case."""

Recorded = Mapping[str, Sequence[TopicPartition]]
"""Partitions of each member, in the order of the record."""


class Agreement(StrEnum):
    """How closely a record agrees with an assignor."""

    LISTS = "lists"  # each partition, in its order
    SETS = "sets"  # the same partitions to the same members, in another order
    PROMISE = "promise"  # the assignor may have given it: it keeps the promise, and no order is fixed
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Attribution:
    """The assignors that agree best with a record, by name, and how closely."""

    agreement: Agreement
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """A classic generation as its leader saw it, members in JoinGroup order, and its answer.

    `writers`: the libraries that write what the leader wrote as a member; empty: none whose bytes are known.
    """

    protocol: str
    leader: str | None
    members: tuple[Member, ...]
    recorded: Recorded
    writers: frozenset[str] = frozenset()


def recorded_round(snapshot: GroupSnapshotRow, members: Iterable[MemberSnapshotRow]) -> RecordedRound:
    """Build the round from a snapshot of a classic group of consumers and its members."""
    rows = sorted(members, key=lambda row: row.member_order)
    leader = next((row for row in rows if row.member_id == snapshot.leader), None)
    wrote = leader and libraries(snapshot.assignor, leader.subscription_version, leader.user_data)
    return RecordedRound(
        snapshot.assignor or "",
        snapshot.leader,
        tuple(_member(row, snapshot) for row in rows),
        {row.member_id: tuple(_partitions(row.recorded)) for row in rows},
        wrote or frozenset(),
    )


def attribution(happened: RecordedRound, views: Iterable[Mapping[str, int]]) -> Attribution:
    """Return the best agreement over all topic views that the leader may have had, likeliest first.

    A view has partition counts by name. The first with which an assignor gives the recorded lists decides. In groups of
    one member most assignors give the same.
    """
    best = Attribution(Agreement.NONE)
    for view in possible_views(happened, views) if happened.members else ():
        found = _under(happened, Group(happened.members, view))
        if list(Agreement).index(found.agreement) < list(Agreement).index(best.agreement):
            best = found
        if best.agreement is Agreement.LISTS:
            break
    return best


def possible_views(happened: RecordedRound, views: Iterable[Mapping[str, int]]) -> Iterator[dict[str, int]]:
    """Yield each distinct view of the topics that members name, if it has all partitions of the record."""
    least: dict[str, int] = {}
    for topic, number in (each for mine in happened.recorded.values() for each in mine):
        least[topic] = max(least.get(topic, 0), number + 1)
    seen: list[dict[str, int]] = []
    topics = {topic for member in happened.members for topic in member.topics}
    for view in views:
        named = {topic: count for topic, count in view.items() if topic in topics}
        if named not in seen and all(view.get(topic, 0) >= count for topic, count in least.items()):
            seen.append(named)
            yield named


def _under(happened: RecordedRound, group: Group) -> Attribution:
    agreeing: dict[Agreement, list[str]] = {}
    most = max(1, MOST_WORK // (1 + len(group.members) + sum(group.topics.values())))
    for candidate in _candidates(happened):
        agreeing.setdefault(_agreement(happened, candidate, group, most), []).append(candidate.name)
    best = next((each for each in Agreement if each in agreeing), Agreement.NONE)
    return Attribution(best, () if best is Agreement.NONE else tuple(agreeing[best]))


def _candidates(happened: RecordedRound) -> Iterator[ClientAssignor]:
    """Yield the protocol's assignors, except libraries known to write other bytes than the leader's."""
    known = LIBRARIES.keys() if happened.writers else ()
    for each in (*JAVA, *CLIENT_ASSIGNORS.values()):
        if each.protocol == happened.protocol and (each.library in happened.writers or each.library not in known):
            yield each


def _agreement(happened: RecordedRound, candidate: ClientAssignor, group: Group, most: int) -> Agreement:
    """Compare with the plans of at most `most` runs; the assignor's promise counts only if there are more."""
    best = Agreement.NONE
    plans = candidate.plans(group, happened.leader)
    plans = replace(plans, most=min(plans.most, most))
    for plan in plans:
        if plan.failure is None and _as_sets(happened.recorded, plan):
            best = Agreement.SETS
            if _as_lists(happened.recorded, plan, candidate.sorts_topics):
                return Agreement.LISTS
    if best is Agreement.NONE and plans.cut and candidate.promise(group, happened.recorded):
        return Agreement.PROMISE
    return best


def _as_sets(recorded: Recorded, plan: LeaderPlan) -> bool:
    return all(sorted(mine) == sorted(plan.lists.get(member_id, ())) for member_id, mine in recorded.items())


def _as_lists(recorded: Recorded, plan: LeaderPlan, topics_too: bool) -> bool:
    return all(
        _in_topics(mine, topics_too) == _in_topics(plan.lists.get(member_id, ()), topics_too)
        for member_id, mine in recorded.items()
    )


def _in_topics(partitions: Sequence[TopicPartition], topics_too: bool) -> list[tuple[str, list[int]]]:
    """Return partition numbers by topic, as an assignment is written; topics sorted unless their order counts."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return list(topics.items()) if topics_too else sorted(topics.items())


def _java(protocol: str) -> ClientAssignor:
    """Return Kafka's own assignor of this name."""

    def plan(group: Group) -> LeaderPlan:
        encoded = encode_group(group, protocol)
        answer = assign(protocol, encoded.batch)
        if answer.status[0] != Status.OK:
            return LeaderPlan(failure=Status(int(answer.status[0])).name)
        topics = [encoded.topics[topic] for topic in answer.assigned_topic.tolist()]
        pairs = [TopicPartition(*pair) for pair in zip(topics, answer.assigned_partition.tolist(), strict=True)]
        bounds = zip(group.members, pairwise(answer.assigned_start.tolist()), strict=True)
        return LeaderPlan({member.member_id: tuple(pairs[low:high]) for member, (low, high) in bounds})

    return ClientAssignor("java", protocol, lambda group, leader: PossiblePlans(lambda _: plan(group)))


JAVA = tuple(_java(each.name) for each in registry.RECORDS if each.library == registry.JAVA)


def _member(row: MemberSnapshotRow, snapshot: GroupSnapshotRow) -> Member:
    return Member(
        row.member_id,
        row.topics if row.topics is not None else snapshot.shared_topics or (),
        tuple(_partitions(row.claimed)) if snapshot.assignor not in registry.REMEMBERING else (),
        row.subscription_generation,
        row.group_instance_id,
        row.rack_id,
        row.user_data,
    )


def _partitions(assignment: Assignment | None) -> Iterator[TopicPartition]:
    for topic_id, name, numbers in assignment or ():
        yield from (TopicPartition(name or topic_id or "", number) for number in numbers)
