"""Convert a JSON scenario (see `core.scenario`) to one group, in plain values or as a batch."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from groupledger.core.assignors.kip315 import read_memory
from groupledger.core.claim_order import user_data_order
from groupledger.core.custom.group import Group, Member, TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.group_encoding import EncodedGroups, MemberClaim, ReplicaRacks, encode_groups
from groupledger.core.javaorder import hash_texts
from groupledger.core.registry import STREAM_JOIN
from groupledger.core.wire.user_data import COOPERATIVE_STICKY, STICKY, decode_user_data, taken


def encode(scenario: dict[str, Any]) -> EncodedGroups:
    """Encode the scenario as a batch of one group."""
    return encode_group(group_of(scenario), scenario["assignor"], scenario.get("racks") or {})


def encode_group(group: Group, assignor: str, racks: ReplicaRacks | None = None) -> EncodedGroups:
    """Encode one group as an assignor of Kafka's reads it."""
    return encode_groups([group], [read_claim(assignor, member) for member in group.members], [racks or {}])


def group_of(scenario: dict[str, Any]) -> Group:
    """Convert a well-formed scenario to one group in plain values, with the subscribed topics."""
    members = tuple(
        Member(
            member_id=told["id"],
            topics=tuple(told["topics"]),
            owned=tuple(TopicPartition(*pair) for pair in told.get("owned") or []),
            generation=_stated_generation(told),
            group_instance_id=told.get("instance_id"),
            rack=told.get("rack") or None,
            user_data=None if told.get("user_data") is None else base64.b64decode(told["user_data"]),
        )
        for told in scenario["members"]
    )
    subscribed = {topic for member in members for topic in member.topics}
    return Group(members, {name: count for name, count in scenario["topics"].items() if name in subscribed})


def read_claim(assignor: str, member: Member) -> MemberClaim:
    """Return what Kafka's assignor takes as the member's claims, and their generation."""
    raw = member.user_data
    if assignor == STREAM_JOIN.name:
        return MemberClaim(member.owned, member.generation) if raw is None else _stream_join_memory(member, raw)
    if assignor == STICKY and raw is None:
        return MemberClaim(through_user_data(member.owned), member.generation)
    if assignor == STICKY:
        sent = decode_user_data(raw, STICKY)
        lists, generation = taken(STICKY, sent.owned, sent.generation, None, raw)
        return MemberClaim([(topic, number) for topic, numbers in lists for number in numbers], generation)
    _, generation = taken(COOPERATIVE_STICKY, member.owned, None, member.generation, raw)
    return MemberClaim(member.owned, generation)


def _stream_join_memory(member: Member, raw: bytes) -> MemberClaim:
    """Read KIP-315's partition numbers, of whatever topic, and their epoch; unreadable bytes claim nothing."""
    try:
        memory = read_memory(raw)
    except Fault:
        return MemberClaim((), None)
    return MemberClaim([(topic, number) for topic in member.topics[:1] for number in memory.partitions], memory.epoch)


def through_user_data(owned: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Order claims as StickyAssignor writes them: by topic, in iteration order of its hash map of topics."""
    names = list(dict.fromkeys(topic for topic, _ in owned))
    numbers = {topic: at for at, topic in enumerate(names)}
    topics = np.array([numbers[topic] for topic, _ in owned], np.int32)
    order = user_data_order(np.array([0, len(owned)]), topics, hash_texts(names))
    return [owned[at] for at in order.tolist()]


def _stated_generation(member: dict[str, Any]) -> int | None:
    """Return the generation of the member's subscription; None for a negative one, as Kafka reads it."""
    generation = member.get("generation")
    return None if generation is None or generation < 0 else int(generation)
