"""Run custom assignors over a batch of groups: convert arrays to public types, and the answers back to arrays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core import ragged
from groupledger.core.assignors.outcome import Path, Status
from groupledger.core.batch import NONE, AssignmentBatch, GroupBatch
from groupledger.core.custom.calls import Complaint, SortedPartitions
from groupledger.core.custom.contract import examine_all
from groupledger.core.custom.group import Group, Member, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.custom.naming import CustomAssignor


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
    answer = AssignmentBatch(*assigned, *target, status, np.full(len(found), Path.ONLY, np.int32))
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
    told = tuple(_member(batch, texts, at, names, generations[at]) for at in members)
    subscribed = {topic for member in told for topic in member.topics}
    return Group(
        told,
        {name: count for name, count in zip(names, counts, strict=True) if count != NONE and name in subscribed},
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


def _arrays(batch: GroupBatch, texts: Texts, plans: list[SortedPartitions]) -> tuple[LongArray, IntArray, IntArray]:
    """Return start, local topic and partition of each member's list."""
    lengths, topics, numbers = [], [], []
    begins, topic_begins = batch.member_start.tolist(), batch.topic_start.tolist()
    for at, plan in enumerate(plans):
        local = {name: place for place, name in enumerate(texts.topics[topic_begins[at] : topic_begins[at + 1]])}
        for member_id in texts.member_ids[begins[at] : begins[at + 1]]:
            given = plan.get(member_id, ())
            lengths.append(len(given))
            topics += [local[each.topic] for each in given]
            numbers += [each.partition for each in given]
    return ragged.starts(np.array(lengths, np.int64)), np.array(topics, np.int32), np.array(numbers, np.int32)
