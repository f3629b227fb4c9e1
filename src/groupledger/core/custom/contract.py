"""A custom assignor's answer for one group, held against what any assignor must keep to.

Each partition goes to one member at most, which exists and subscribes to its topic; nothing is handed over before its
owner has given it up (cooperative); the same group gives the same answer, in whatever order it is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from groupledger.core.custom.group import (
    Answer,
    Group,
    Member,
    TopicPartition,
    claimants,
    cooperative_step,
    is_handed_over,
)
from groupledger.core.custom.naming import CustomAssignor

Plan = dict[str, tuple[TopicPartition, ...]]
"""Partitions by member, by topic and number: the order of a custom assignor's lists means nothing."""

WORDS_SHOWN = 200
_ADDRESS = re.compile(r"0x[0-9A-Fa-f]{6,}")


class Complaint(NamedTuple):
    """One rule that an answer breaks."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a group gets. With complaints both plans are empty."""

    assigned: Plan
    target: Plan
    complaints: tuple[Complaint, ...] = ()


def examine(custom: CustomAssignor, group: Group) -> Finding:
    """Call the assignor, hold its answer against the contract, and call it again. A group of nobody gets nothing."""
    if not group.members:
        return Finding({}, {})
    found = _call(custom, group)
    if not found.complaints:
        complaints = (*_breaches(custom, group, found), *_changes(custom, group, found))
        found = found if not complaints else Finding({}, {}, complaints)
    return found


def _call(custom: CustomAssignor, group: Group) -> Finding:
    try:
        answer = custom.function(group)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # code of others may fail in any way: this group's harm
        told = f"{type(error).__name__}: {error}"
        return _refused("ASSIGNOR_RAISED", f"{custom.name} raised {_shown(told)}; expected an answer for any group")
    both = answer if isinstance(answer, Answer) else Answer(answer, answer)
    try:
        return Finding(_plan(both.assigned), _plan(both.target))
    except (TypeError, ValueError, AttributeError) as error:
        return _refused(
            "ASSIGNOR_ANSWER_MALFORMED",
            f"{custom.name} answered {_shown(type(answer).__name__)}: {_shown(str(error))}; "
            "expected partitions as (topic, number) by member id",
        )


def _refused(code: str, message: str) -> Finding:
    return Finding({}, {}, (Complaint(code, message),))


def _shown(text: str) -> str:
    """One line without addresses of this process."""
    return _ADDRESS.sub("0x..", " ".join(text.split()))[:WORDS_SHOWN]


def _plan(lists: Any) -> Plan:
    if not isinstance(lists, Mapping):
        raise TypeError(f"lists are a {type(lists).__name__}")
    plan = {_text(member_id): tuple(sorted(_partition(each) for each in lists[member_id])) for member_id in lists}
    return {member_id: plan[member_id] for member_id in sorted(plan) if plan[member_id]}


def _partition(pair: Any) -> TopicPartition:
    topic, number = pair
    if type(number) is not int:
        raise TypeError(f"a partition number is {number!r}")
    return TopicPartition(_text(topic), number)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name is {value!r}")
    return str(value)


def _breaches(custom: CustomAssignor, group: Group, found: Finding) -> Iterator[Complaint]:
    """Of the target and of what is given now: each rule that is broken, once, with the first case."""
    subscribed = {member.member_id: set(member.topics) for member in group.members}
    for plan in (found.target, found.assigned) if found.target != found.assigned else (found.assigned,):
        broken = [*_strangers(group, subscribed, plan), *_twice(plan)]
        yield from (Complaint(code, f"{custom.name} {words}") for code, words in broken)
        if broken:
            return
    yield from _early(custom, group, found)


def _strangers(group: Group, subscribed: Mapping[str, set[str]], plan: Plan) -> Iterator[tuple[str, str]]:
    pairs = [(member_id, each) for member_id, partitions in plan.items() for each in partitions]
    unknown = [member_id for member_id in plan if member_id not in subscribed]
    absent = [each for _, each in pairs if not 0 <= each.partition < group.topics.get(each.topic, 0)]
    foreign = [(name, each) for name, each in pairs if each.topic not in subscribed.get(name, {each.topic})]
    if unknown:
        yield "ASSIGNOR_UNKNOWN_MEMBER", f"answered for {unknown[0]!r}, who is not in the group"
    if absent:
        yield "ASSIGNOR_UNKNOWN_PARTITION", f"assigned {_named(absent[0])}, which does not exist"
    if foreign:
        name, each = foreign[0]
        yield "ASSIGNOR_NOT_SUBSCRIBED", f"assigned {_named(each)} to {name!r}, who does not subscribe to the topic"


def _twice(plan: Plan) -> Iterator[tuple[str, str]]:
    times = Counter(each for partitions in plan.values() for each in partitions)
    again = sorted(each for each, count in times.items() if count > 1)
    if again:
        more = f"; {len(again)} such partitions" if len(again) > 1 else ""
        yield (
            "ASSIGNOR_DOUBLE_ASSIGNED",
            f"assigned {_named(again[0])} {times[again[0]]} times; expected one owner each{more}",
        )


def _early(custom: CustomAssignor, group: Group, found: Finding) -> Iterator[Complaint]:
    """Cooperative: no hand-over before revocation; and what is given follows from the target (KIP-429)."""
    owners = claimants(group) if custom.cooperative else {}
    early = [
        (member_id, each)
        for member_id, partitions in found.assigned.items()
        for each in partitions
        if is_handed_over(owners, member_id, each)
    ]
    if early:
        member_id, each = early[0]
        yield Complaint(
            "ASSIGNOR_HANDED_OVER",
            f"{custom.name} assigned {_named(each)} to {member_id!r} while {min(owners[each])!r} still owns it; "
            "expected nothing to be handed over before it is revoked (KIP-429): answer with cooperative_step",
        )
    elif found.assigned != (_plan(cooperative_step(group, found.target).assigned) if owners else found.target):
        yield Complaint(
            "ASSIGNOR_OFF_TARGET",
            f"{custom.name} gives another assignment than its own target asks for; answer with cooperative_step",
        )


def _changes(custom: CustomAssignor, group: Group, found: Finding) -> Iterator[Complaint]:
    """Whether the same group, told again and told in other orders, gives another answer."""
    if _call(custom, group) != found:
        yield Complaint(
            "ASSIGNOR_NOT_PURE", f"{custom.name} gave two answers to the same group; expected the same each time"
        )
        return
    if any(_call(custom, told) != found for told in _other_orders(group)):
        yield Complaint(
            "ASSIGNOR_ORDER_DEPENDENT",
            f"{custom.name} answers otherwise when members, topics or owned partitions are told in another order; "
            "expected the same: sort by name before every loop",
        )


def _other_orders(group: Group) -> Iterator[Group]:
    for members in (group.members[::-1], group.members[1::2] + group.members[::2]):
        yield Group(tuple(_backwards(member) for member in members), dict(reversed(list(group.topics.items()))))


def _backwards(member: Member) -> Member:
    return replace(member, topics=member.topics[::-1], owned=member.owned[::-1])


def _named(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
