"""Encode groups in plain values as the arrays that assignors take: the one way from strings to a `GroupBatch`.

Tables of many groups are encoded column by column instead, without an object a member (`engine.group_arrays`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch
from groupledger.core.arrays.java_orders import hash_texts, rank_present, rank_texts
from groupledger.core.custom.custom_group import Group, Member

ReplicaRacks = Mapping[str, Sequence[Sequence[str | None]]]
"""For each topic the racks of each partition's replicas, None for one that is unknown."""


class MemberClaim(NamedTuple):
    """What an assignor takes a member to own, in the order in which it was sent, and its generation."""

    partitions: Sequence[tuple[str, int]]
    generation: int | None


@dataclass(frozen=True, slots=True)
class EncodedGroups:
    """A batch, and what its integers stand for."""

    batch: GroupBatch
    members: list[Member]  # [M]
    topics: list[str]  # [T]


def encode_groups(
    groups: Sequence[Group], claims: Iterable[MemberClaim], racks: Sequence[ReplicaRacks] = ()
) -> EncodedGroups:
    """Encode groups; `claims` of all members in their order, which replace what they own; `racks` of each group.

    A claim to a topic that no member of the group subscribes to is left out.
    """
    members = [member for group in groups for member in group.members]
    local = [
        {name: at for at, name in enumerate(dict.fromkeys(topic for each in group.members for topic in each.topics))}
        for group in groups
    ]
    of_member = [numbers for group, numbers in zip(groups, local, strict=True) for _ in group.members]
    claims = list(claims)
    kept = [
        [(numbers[topic], partition) for topic, partition in claim.partitions if topic in numbers]
        for claim, numbers in zip(claims, of_member, strict=True)
    ]
    ids, topics = [each.member_id for each in members], [name for names in local for name in names]
    counts = [group.topics.get(name, NONE) for group, names in zip(groups, local, strict=True) for name in names]
    codes = _codes(members, racks)
    batch = GroupBatch(
        member_start=_starts(len(group.members) for group in groups),
        member_hash=hash_texts(ids),
        member_rank=rank_texts(ids),
        instance_rank=rank_present([each.group_instance_id for each in members], NONE),
        member_rack=_small([NONE if each.rack is None else codes[each.rack] for each in members]),
        subscription_generation=_small([_or_none(each.generation) for each in members]),
        claim_generation=_small([_or_none(each.generation) for each in claims]),
        topic_start=_starts(map(len, local)),
        topic_hash=hash_texts(topics),
        topic_rank=rank_texts(topics),
        topic_partitions=_small(counts),
        member_subscription=np.arange(len(members)),
        subscription_start=_starts(len(each.topics) for each in members),
        subscription_topic=_small(
            [numbers[topic] for each, numbers in zip(members, of_member, strict=True) for topic in each.topics]
        ),
        claim_start=_starts(map(len, kept)),
        claim_topic=_small([topic for each in kept for topic, _ in each]),
        claim_partition=_small([partition for each in kept for _, partition in each]),
        **_replicas(racks, local, counts, codes),
    )
    return EncodedGroups(batch, members, topics)


def _codes(members: Iterable[Member], racks: Iterable[ReplicaRacks]) -> dict[str, int]:
    """Assign numbers to racks by name."""
    replicas = (rack for of in racks for topic in of.values() for each in topic for rack in each)
    named = {*replicas, *(member.rack for member in members)} - {None}
    return {rack: code for code, rack in enumerate(sorted(rack for rack in named if rack is not None))}


def _replicas(
    racks: Sequence[ReplicaRacks], local: list[dict[str, int]], counts: list[int], codes: dict[str, int]
) -> dict[str, Any]:
    """Return replica racks of all partitions of all topics, in the batch's layout; empty without racks."""
    if not any(racks):
        return {}
    starts, first, flat = [0], [0], []
    named = ((of, name) for of, names in zip(racks, local, strict=True) for name in names)
    for (of, name), count in zip(named, counts, strict=True):
        known = of.get(name, [])
        for partition in range(max(count, 0)):
            replicas = known[partition] if partition < len(known) else []
            flat += [NONE if rack is None else codes[rack] for rack in replicas]
            starts.append(len(flat))
        first.append(len(starts) - 1)
    return {
        "rack_start": np.array(starts, np.int64),
        "rack_code": _small(flat),
        "rack_topic_start": np.array(first, np.int64),
    }


def _or_none(generation: int | None) -> int:
    return NONE if generation is None else generation


def _small(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int32)


def _starts(lengths: Iterable[int]) -> np.ndarray:
    return ragged.starts(np.array(list(lengths), np.int64))
