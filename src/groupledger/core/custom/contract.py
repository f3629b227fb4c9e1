"""Check a custom assignor's answer for one group against the contract of any assignor.

Each partition goes to at most one member, which exists and subscribes to its topic; nothing is handed over before its
owner has revoked it (cooperative); the same group gets the same answer, in whatever order it is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch, LongArray
from groupledger.core.arrays.ragged import MemberAssignments
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.group import Path, Status
from groupledger.core.custom.custom_group import (
    CustomAssignor,
    Group,
    Member,
    TopicPartition,
    claimants,
    cooperative_step,
    is_handed_over,
)
from groupledger.core.custom.messages import Complaint, Finding, SortedPartitions, call_all, printable


def examine(custom: CustomAssignor, group: Group) -> Finding:
    """Examine one group as `examine_all` does."""
    return examine_all(custom, [group])[0]


def examine_all(custom: CustomAssignor, groups: Sequence[Group]) -> list[Finding]:
    """Call the assignor for each group, in a process of its own, and check its answers against the contract.

    A group without members gets nothing.
    """
    heard = iter(_heard(custom, [group for group in groups if group.members]))
    return [_judged(custom, group, next(heard)) if group.members else Finding({}, {}) for group in groups]


def _heard(custom: CustomAssignor, groups: Sequence[Group]) -> list[Finding]:
    """Return the function's answers, and what is wrong with its calls."""
    if custom.function is not None:
        return [call_all(custom.name, custom.function, group) for group in groups]
    from groupledger.core.custom import children  # most runs need no process of custom code

    return children.ask_all(custom, groups)


def _judged(custom: CustomAssignor, group: Group, found: Finding) -> Finding:
    broken = (*_breaches(custom, group, found), *found.complaints)
    return Finding({}, {}, tuple(Complaint(code, printable(words)) for code, words in broken)) if broken else found


def _breaches(custom: CustomAssignor, group: Group, found: Finding) -> Iterator[Complaint]:
    """Check the target and this round's assignment: yield each broken rule once, with the first case."""
    subscribed = {member.member_id: set(member.topics) for member in group.members}
    for plan in (found.target, found.assigned) if found.target != found.assigned else (found.assigned,):
        broken = [*_strangers(group, subscribed, plan), *_twice(plan)]
        yield from (Complaint(code, f"{custom.name} {words}") for code, words in broken)
        if broken:
            return
    yield from _early(custom, group, found)


def _strangers(group: Group, subscribed: Mapping[str, set[str]], plan: SortedPartitions) -> Iterator[tuple[str, str]]:
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


def _twice(plan: SortedPartitions) -> Iterator[tuple[str, str]]:
    times = Counter(each for partitions in plan.values() for each in partitions)
    again = sorted(each for each, count in times.items() if count > 1)
    if again:
        more = f"; {len(again)} such partitions" if len(again) > 1 else ""
        yield (
            "ASSIGNOR_DOUBLE_ASSIGNED",
            f"assigned {_named(again[0])} {times[again[0]]} times; expected one owner each{more}",
        )


def _early(custom: CustomAssignor, group: Group, found: Finding) -> Iterator[Complaint]:
    """Check cooperative rules: no hand-over before revocation; the assignment follows from the target (KIP-429).

    An outdated claim may be set aside or respected (KIP-792, decision 0119).
    """
    owners = claimants(group, stale=False) if custom.cooperative else {}
    claimed = claimants(group)
    early = [
        (member_id, each)
        for member_id, partitions in found.assigned.items()
        for each in partitions
        if is_handed_over(owners, member_id, each) and is_handed_over(claimed, member_id, each)
    ]
    if early:
        member_id, each = early[0]
        yield Complaint(
            "ASSIGNOR_HANDED_OVER",
            f"{custom.name} assigned {_named(each)} to {member_id!r} while {min(owners[each])!r} still owns it; "
            "expected nothing to be handed over before it is revoked (KIP-429): answer with cooperative_step",
        )
    elif not (_steps(group, found) if custom.cooperative else found.assigned == found.target):
        yield Complaint(
            "ASSIGNOR_OFF_TARGET",
            f"{custom.name} gives another assignment than its own target asks for; answer with cooperative_step",
        )


def _steps(group: Group, found: Finding) -> bool:
    """Return whether the assignment is a valid cooperative step of the target.

    It must give everything that the step gives both with and without stale claims; of what only one of the two gives,
    it may give all, some or nothing. The target's order is kept.
    """
    one, other = (cooperative_step(group, found.target, set_stale_aside=aside).assigned for aside in (False, True))
    for member_id in {*found.assigned, *one, *other}:
        ways = set(one.get(member_id, ())), set(other.get(member_id, ()))
        given = found.assigned.get(member_id, ())
        known = set(given)
        in_order = tuple(each for each in found.target.get(member_id, ()) if each in known)
        if given != in_order or not ways[0] & ways[1] <= known <= ways[0] | ways[1]:
            return False
    return True


def _named(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


# Run custom assignors over a batch of groups: convert arrays to public types, and the answers back to arrays.


@dataclass(frozen=True, slots=True)
class Texts:
    """The strings behind a batch's integers, for each member and each topic row."""

    member_ids: Sequence[str]  # [M]
    instance_ids: Sequence[str | None]  # [M]
    racks: Sequence[str | None]  # [M]
    user_data: Sequence[bytes | None]  # [M]
    topics: Sequence[str]  # [T]

    def of(self, members: LongArray, topics: LongArray) -> Texts:
        """Return the texts of some members and topic rows, in that order."""
        whose, which = members.tolist(), topics.tolist()
        lists = (self.member_ids, self.instance_ids, self.racks, self.user_data)
        ids, instances, racks, data = ([each[at] for at in whose] for each in lists)
        return Texts(ids, instances, racks, data, [self.topics[at] for at in which])


def assign_custom(
    custom: CustomAssignor, batch: GroupBatch, texts: Texts
) -> tuple[AssignmentBatch, dict[int, tuple[Complaint, ...]]]:
    """Call the assignor once per group. A group with complaints has empty lists and the status CUSTOM_REFUSED."""
    found = examine_all(custom, groups(batch, texts))
    status = np.array([Status.CUSTOM_REFUSED if each.complaints else Status.OK for each in found], np.int32)
    assigned = _arrays(batch, texts, [each.assigned for each in found])
    target = _arrays(batch, texts, [each.target for each in found])
    answer = AssignmentBatch(assigned, target, status, np.full(len(found), Path.ONLY, np.int32))
    return answer, {at: each.complaints for at, each in enumerate(found) if each.complaints}


def groups(batch: GroupBatch, texts: Texts) -> list[Group]:
    """Convert each group to the public types. A member's generation is its subscription's, else its user data's."""
    stated, dated = batch.subscription_generation, batch.claim_generation
    generations = np.where(stated != NONE, stated, dated).tolist()
    begins, topic_begins = batch.member_start.tolist(), batch.topic_start.tolist()
    return [
        _group(batch, texts, range(begin, end), range(first, last), generations)
        for (begin, end), (first, last) in zip(pairwise(begins), pairwise(topic_begins), strict=True)
    ]


def _group(batch: GroupBatch, texts: Texts, members: range, topics: range, generations: list[int]) -> Group:
    names = [texts.topics[at] for at in topics]
    counts = batch.topic_partitions[topics.start : topics.stop].tolist()
    given = tuple(_member(batch, texts, at, names, generations[at]) for at in members)
    subscribed = {topic for member in given for topic in member.topics}
    return Group(
        given, {name: count for name, count in zip(names, counts, strict=True) if count != NONE and name in subscribed}
    )


def _member(batch: GroupBatch, texts: Texts, at: int, names: list[str], generation: int) -> Member:
    subscription = batch.member_subscription[at]
    begin, end = batch.subscription_start[subscription : subscription + 2]
    first, last = batch.claim_start[at : at + 2]
    claims = zip(batch.claim_topic[first:last].tolist(), batch.claim_partition[first:last].tolist(), strict=True)
    return Member(
        member_id=texts.member_ids[at],
        topics=tuple(names[topic] for topic in batch.subscription_topic[begin:end].tolist()),
        owned=tuple(TopicPartition(names[topic], number) for topic, number in claims),
        generation=None if generation < 0 else generation,
        group_instance_id=texts.instance_ids[at],
        rack=texts.racks[at],
        user_data=texts.user_data[at],
    )


def _arrays(batch: GroupBatch, texts: Texts, plans: list[SortedPartitions]) -> MemberAssignments:
    """Return each member's list."""
    lengths, topics, numbers = [], [], []
    begins, topic_begins = batch.member_start.tolist(), batch.topic_start.tolist()
    for at, plan in enumerate(plans):
        local = {name: place for place, name in enumerate(texts.topics[topic_begins[at] : topic_begins[at + 1]])}
        for member_id in texts.member_ids[begins[at] : begins[at + 1]]:
            given = plan.get(member_id, ())
            lengths.append(len(given))
            topics += [local[each.topic] for each in given]
            numbers += [each.partition for each in given]
    start = ragged.starts(np.array(lengths, np.int64))
    return MemberAssignments(start, np.array(topics, np.int32), np.array(numbers, np.int32))
