"""librdkafka's `cooperative-sticky` as its leader sends it: `assignors.librdkafka`, then its own withholding.

If several members claim a partition, the last claimant in JoinGroup order counts as its owner. A claimed partition
that the assignor did not hand out (gone, unknown to the leader, without subscribers) is returned to the claimant.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from groupledger.core.assignors.clients.plan import LeaderPlan, read_by_librdkafka
from groupledger.core.assignors.librdkafka import librdkafka_cooperative_sticky as target_of
from groupledger.core.batch import GroupBatch
from groupledger.core.custom.group import Group, TopicPartition
from groupledger.core.scenario_groups import encode_group


def librdkafka_cooperative_sticky(group: Group, leader: str | None) -> LeaderPlan:
    """librdkafka 2.16; see `read_by_librdkafka`. Its leader crashes if that leaves no member.

    Racks (KIP-881) and other crashes are not modelled.
    """
    group = read_by_librdkafka(group)
    if not group.members:
        return LeaderPlan(failure="no members")
    encoded = encode_group(group, "cooperative-sticky")
    answer = target_of(_by_code_point(group, encoded.batch, encoded.topics))
    pairs = [
        TopicPartition(encoded.topics[topic], number)
        for topic, number in zip(answer.target_topic.tolist(), answer.target_partition.tolist(), strict=True)
    ]
    lists = {
        member.member_id: pairs[low:high]
        for member, (low, high) in zip(group.members, pairwise(answer.target_start.tolist()), strict=True)
    }
    owner = {each: member.member_id for member in group.members for each in member.owned}
    handed_out = {each for mine in lists.values() for each in mine}
    return LeaderPlan(
        {
            member_id: (
                *(each for each in mine if owner.get(each) == member_id),
                *(each for each in mine if each not in owner),
                *(each for each, claimant in owner.items() if claimant == member_id and each not in handed_out),
            )
            for member_id, mine in lists.items()
        }
    )


def _by_code_point(group: Group, batch: GroupBatch, topics: list[str]) -> GroupBatch:
    """Return the batch with members and topics ranked as C compares them; Java's order differs beyond U+FFFF."""
    ids = [member.member_id for member in group.members]
    return replace(batch, member_rank=_ranks(ids), topic_rank=_ranks(topics))


def _ranks(names: list[str]) -> np.ndarray:
    place = {name: at for at, name in enumerate(sorted(names))}
    return np.array([place[name] for name in names], np.int32)
