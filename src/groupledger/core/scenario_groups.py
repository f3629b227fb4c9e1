"""Convert a JSON scenario (see `core.scenario`) to one group, in plain values or as a batch, and back."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupledger.core.assignors.kip315 import read_memory
from groupledger.core.batch import NONE, GroupBatch
from groupledger.core.custom.group import Group, Member, TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.javaorder import computed_map_order, hash_texts, rank_present, rank_texts
from groupledger.core.registry import STREAM_JOIN
from groupledger.core.wire.user_data import COOPERATIVE_STICKY, STICKY, decode_user_data, taken

ClaimedPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class EncodedScenario:
    """A batch of one group, and the names of its local topics."""

    batch: GroupBatch
    topics: list[str]


def encode(scenario: dict[str, Any]) -> EncodedScenario:
    """Encode the scenario as a batch of one group."""
    members = scenario["members"]
    claims = [read_claim(scenario["assignor"], member) for member in members]
    names = list(dict.fromkeys(topic for member in members for topic in member["topics"]))
    local = {name: at for at, name in enumerate(names)}
    kept = [[(local[t], p) for t, p in owned if t in local] for owned, _ in claims]
    subscribed = [local[topic] for member in members for topic in member["topics"]]
    batch = GroupBatch(
        member_start=_ints([0, len(members)]),
        member_hash=hash_texts([member["id"] for member in members]),
        member_rank=rank_texts([member["id"] for member in members]),
        instance_rank=rank_present([member.get("instance_id") for member in members], NONE),
        member_rack=_rack_codes(scenario)[1],
        subscription_generation=_small([_or_none(stated_generation(member)) for member in members]),
        claim_generation=_small([_or_none(generation) for _, generation in claims]),
        topic_start=_ints([0, len(names)]),
        topic_hash=hash_texts(names),
        topic_rank=rank_texts(names),
        topic_partitions=_small([scenario["topics"].get(name, NONE) for name in names]),
        member_subscription=np.arange(len(members)),
        subscription_start=_starts([len(member["topics"]) for member in members]),
        subscription_topic=_small(subscribed),
        claim_start=_starts([len(owned) for owned in kept]),
        claim_topic=_small([topic for owned in kept for topic, _ in owned]),
        claim_partition=_small([partition for owned in kept for _, partition in owned]),
        **_racks(scenario, names),
    )
    return EncodedScenario(batch, names)


def group_of(scenario: dict[str, Any]) -> Group:
    """Convert a well-formed scenario to one group in plain values, with the subscribed topics."""
    members = tuple(
        Member(
            member_id=told["id"],
            topics=tuple(told["topics"]),
            owned=tuple(TopicPartition(*pair) for pair in told.get("owned") or []),
            generation=stated_generation(told),
            group_instance_id=told.get("instance_id"),
            rack=told.get("rack") or None,
            user_data=None if told.get("user_data") is None else base64.b64decode(told["user_data"]),
        )
        for told in scenario["members"]
    )
    subscribed = {topic for member in members for topic in member.topics}
    return Group(members, {name: count for name, count in scenario["topics"].items() if name in subscribed})


def scenario_of(group: Group, assignor: str) -> dict[str, Any]:
    """Return the group as a scenario."""
    members = [
        {
            "id": member.member_id,
            "instance_id": member.group_instance_id,
            "topics": list(member.topics),
            "owned": [list(pair) for pair in member.owned],
            "generation": member.generation,
            "rack": member.rack,
            "user_data": None if member.user_data is None else base64.b64encode(member.user_data).decode(),
        }
        for member in group.members
    ]
    return {"id": None, "assignor": assignor, "topics": dict(group.topics), "members": members}


def read_claim(assignor: str, member: dict[str, Any]) -> tuple[list[ClaimedPartition], int | None]:
    """Return what Kafka's assignor takes as the member's claims, and their generation."""
    data = member.get("user_data")
    raw = None if data is None else base64.b64decode(data)
    owned = [(topic, partition) for topic, partition in member.get("owned") or []]
    if assignor == STREAM_JOIN.name:
        return (owned, stated_generation(member)) if raw is None else _stream_join_memory(member, raw)
    if assignor == STICKY and raw is None:
        return through_user_data(owned), stated_generation(member)
    if assignor == STICKY:
        sent = decode_user_data(raw, STICKY)
        lists, generation = taken(STICKY, sent.owned, sent.generation, None, raw)
        return [(topic, number) for topic, numbers in lists for number in numbers], generation
    _, generation = taken(COOPERATIVE_STICKY, owned, None, stated_generation(member), raw)
    return owned, generation


def _stream_join_memory(member: dict[str, Any], raw: bytes) -> tuple[list[ClaimedPartition], int | None]:
    """Read KIP-315's partition numbers, of whatever topic, and their epoch; unreadable bytes claim nothing."""
    try:
        memory = read_memory(raw)
    except Fault:
        return [], None
    return [(topic, number) for topic in member["topics"][:1] for number in memory.partitions], memory.epoch


def through_user_data(owned: list[ClaimedPartition]) -> list[ClaimedPartition]:
    """Order claims as StickyAssignor writes them: by topic, in iteration order of its hash map of topics."""
    names = list(dict.fromkeys(topic for topic, _ in owned))
    order = np.arange(len(names), dtype=np.int32)
    called_again = bool(owned) and owned[-1][0] in {topic for topic, _ in owned[:-1]}
    computed_map_order(hash_texts(names), order, len(names), called_again)
    return [(topic, partition) for at in order for topic, partition in owned if topic == names[at]]


def stated_generation(member: dict[str, Any]) -> int | None:
    """Return the generation of the member's subscription; None for a negative one, as Kafka reads it."""
    generation = member.get("generation")
    return None if generation is None or generation < 0 else int(generation)


def _racks(scenario: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return replica racks of all partitions of all topics, in the batch's layout; empty without racks."""
    racks = scenario.get("racks")
    if not racks:
        return {}
    codes, _ = _rack_codes(scenario)
    starts, first, flat = [0], [0], []
    for name in names:
        known = racks.get(name, [])
        for partition in range(max(scenario["topics"].get(name, 0), 0)):
            replicas = known[partition] if partition < len(known) else []
            flat += [NONE if rack is None else codes[rack] for rack in replicas]
            starts.append(len(flat))
        first.append(len(starts) - 1)
    return {"rack_start": _ints(starts), "rack_code": _small(flat), "rack_topic_start": _ints(first)}


def _rack_codes(scenario: dict[str, Any]) -> tuple[dict[str, int], np.ndarray]:
    """Return a number for each rack, and the rack of each member; an empty one is none."""
    replicas = [rack for topic in (scenario.get("racks") or {}).values() for each in topic for rack in each]
    mine = [member.get("rack") or None for member in scenario["members"]]
    codes = {rack: code for code, rack in enumerate(sorted({rack for rack in replicas + mine if rack is not None}))}
    return codes, _small([NONE if rack is None else codes[rack] for rack in mine])


def _or_none(generation: int | None) -> int:
    return NONE if generation is None else generation


def _ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def _small(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


def _starts(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
