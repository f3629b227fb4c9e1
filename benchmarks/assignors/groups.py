"""Generated groups: the arrays an assignor of ours takes, the Arrow table, and the files for the peers."""

from __future__ import annotations

import dataclasses
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from groupledger.core import ragged
from groupledger.core.assignors import assign
from groupledger.core.batch import NONE, AssignmentBatch, GroupBatch
from groupledger.core.javaorder import hash_texts, hash_utf8, rank_texts, rank_utf8, utf8
from groupledger.engine.arrow_groups import GROUPS, MEMBER, OWNED
from groupledger.engine.arrow_lists import listed

SEED = 41
GENERATION = 7
TOPIC_POOL = 2_000
"""Topics of one cluster; many small groups share them."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of one shape, strings beside the arrays."""

    batch: GroupBatch
    member_ids: list[str]  # [M]
    names: list[str]  # topic names
    topic_code: np.ndarray  # [T] index into names


def alike(groups: int, members: int, topics: int, partitions: int) -> Groups:
    """Groups whose members all subscribe to all topics of the group."""
    lists = [np.arange(topics, dtype=np.int32)] * groups
    return _groups(groups, members, topics, partitions, lists, np.repeat(np.arange(groups), members))


def halves(members: int, topics: int, partitions: int) -> Groups:
    """One group; each member subscribes to a random half of the topics."""
    draw = np.random.default_rng(SEED)
    lists = [np.flatnonzero(draw.random(topics) < 0.5).astype(np.int32) for _ in range(members)]
    return _groups(1, members, topics, partitions, lists, np.arange(members))


def disjoint(members: int, topics: int, partitions: int, parts: int) -> Groups:
    """One group in `parts` that have no topic in common."""
    each = topics // parts
    lists = [np.arange(m % parts * each, (m % parts + 1) * each, dtype=np.int32) for m in range(members)]
    return _groups(1, members, topics, partitions, lists, np.arange(members))


def _groups(
    groups: int, members: int, topics: int, partitions: int, lists: Sequence[np.ndarray], subscription: np.ndarray
) -> Groups:
    names = [f"topic-{at:04}.events" for at in range(max(topics, min(TOPIC_POOL, groups * topics)))]
    code = (np.arange(groups * topics) + np.repeat(np.arange(groups), topics) // len(names)) % len(names)
    ids = _ids(groups * members)
    nobody = np.zeros(groups * members + 1, np.int64)
    batch = GroupBatch(
        **_members(ids, np.arange(groups + 1) * members),
        topic_start=np.arange(groups + 1) * topics,
        topic_hash=hash_texts(names)[code],
        topic_rank=rank_texts(names)[code],
        topic_partitions=np.full(groups * topics, partitions, np.int32),
        member_subscription=subscription,
        subscription_start=ragged.starts(np.array([len(each) for each in lists])),
        subscription_topic=np.concatenate(lists),
        claim_start=nobody,
        claim_topic=np.zeros(0, np.int32),
        claim_partition=np.zeros(0, np.int32),
    )
    return Groups(batch, ids, names, code)


def _ids(count: int, seed: int = SEED) -> list[str]:
    """Client id and a UUID, as brokers name members."""
    draw = random.Random(seed)  # noqa: S311 reproducible, not secret
    texts = (f"{draw.getrandbits(128):032x}" for _ in range(count))
    return [f"consumer-{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}" for t in texts]


def _members(ids: list[str], member_start: np.ndarray) -> dict[str, np.ndarray]:
    text = utf8(ids)
    absent = np.full(len(ids), NONE, np.int32)
    known = np.full(len(ids), GENERATION, np.int32)
    return {
        "member_start": member_start,
        "member_hash": hash_utf8(*text),
        "member_rank": rank_utf8(*text, member_start),
        "instance_rank": absent,
        "member_rack": absent,
        "subscription_generation": known,
        "claim_generation": known,
    }


def settled(before: Groups, answer: AssignmentBatch) -> Groups:
    """The same groups, each member claiming what it was given."""
    claims: dict[str, Any] = {
        "claim_start": answer.target_start,
        "claim_topic": answer.target_topic,
        "claim_partition": answer.target_partition,
    }
    return dataclasses.replace(before, batch=dataclasses.replace(before.batch, **claims))


def one_more(before: Groups) -> Groups:
    """Each group settled, then joined by a member that subscribes like the last one and claims nothing."""
    held = settled(before, assign("cooperative-sticky", before.batch))
    batch = held.batch
    new = _ids(batch.groups, SEED + 1)
    ids: list[str] = []
    for at in range(batch.groups):
        ids += [*held.member_ids[batch.member_start[at] : batch.member_start[at + 1]], new[at]]
    last = batch.member_start[1:]
    claims = np.insert(ragged.lengths(batch.claim_start), last, 0)
    changed = dataclasses.replace(
        batch,
        **_members(ids, batch.member_start + np.arange(batch.groups + 1)),
        member_subscription=np.insert(batch.member_subscription, last, batch.member_subscription[last - 1]),
        claim_start=ragged.starts(claims),
    )
    return dataclasses.replace(held, batch=changed, member_ids=ids)


def one_less(before: Groups) -> Groups:
    """One group, settled, then left by its middle member."""
    held = settled(before, assign("cooperative-sticky", before.batch))
    batch, gone = held.batch, held.batch.members // 2
    first, last = batch.claim_start[gone], batch.claim_start[gone + 1]
    kept = np.r_[0:first, last : len(batch.claim_topic)]
    ids = held.member_ids[:gone] + held.member_ids[gone + 1 :]
    changed = dataclasses.replace(
        batch,
        **_members(ids, np.array([0, len(ids)])),
        member_subscription=np.delete(batch.member_subscription, gone),
        claim_start=ragged.starts(np.delete(ragged.lengths(batch.claim_start), gone)),
        claim_topic=batch.claim_topic[kept],
        claim_partition=batch.claim_partition[kept],
    )
    return dataclasses.replace(held, batch=changed, member_ids=ids)


def table(groups: Groups) -> pa.Table:
    """The groups as rows of `arrow_groups.GROUPS`."""
    b = groups.batch
    names = pa.array(groups.names)
    topics = names.take(pa.array(groups.topic_code))
    counts = pa.StructArray.from_arrays([topics, pa.array(b.topic_partitions)], names=["topic", "partitions"])
    shared = len(b.subscription_start) == b.groups + 1 and b.groups < b.members
    subscribed = listed(b.subscription_start, _named(groups, b.subscription_topic, _group_starts(groups)), STRINGS)
    none = pa.nulls(b.members, STRINGS)
    own = none if shared else subscribed.take(pa.array(b.member_subscription))
    fields = [pa.array(groups.member_ids), pa.nulls(b.members, pa.string()), pa.array(b.subscription_generation)]
    members = pa.StructArray.from_arrays([*fields, own, _claims(groups)], fields=list(MEMBER))
    rows = [
        subscribed if shared else pa.nulls(b.groups, STRINGS),
        listed(b.topic_start, counts, GROUPS.field("topics").type),
        listed(b.member_start, members, GROUPS.field("members").type),
    ]
    return pa.table(rows, GROUPS)


STRINGS = pa.list_(pa.string())


def _group_starts(groups: Groups) -> np.ndarray:
    """Where each group's subscriptions begin in `subscription_topic`: lists stand group by group."""
    b = groups.batch
    first = np.append(b.member_subscription[b.member_start[:-1]], len(b.subscription_start) - 1)
    starts: np.ndarray = b.subscription_start[first]
    return starts


def _named(groups: Groups, topic: np.ndarray, start: np.ndarray) -> pa.Array:
    """Names of local topics; `start` says where each group's begin."""
    first = groups.batch.topic_start[:-1]
    return pa.array(groups.names).take(pa.array(groups.topic_code[topic + np.repeat(first, np.diff(start))]))


def _claims(groups: Groups) -> pa.Array:
    b = groups.batch
    key = b.claim_topic.astype(np.int64)
    begins = np.ones(len(key) + 1, np.bool_)
    begins[1:-1] = key[1:] != key[:-1]
    begins[b.claim_start] = True
    at = np.flatnonzero(begins)
    entries = np.searchsorted(at, b.claim_start)
    topics = _named(groups, b.claim_topic, b.claim_start[b.member_start]).take(pa.array(at[:-1]))
    partitions = listed(at, pa.array(b.claim_partition), OWNED.value_type[1].type)
    return listed(entries, pa.StructArray.from_arrays([topics, partitions], fields=list(OWNED.value_type)), OWNED)


FOR_PEERS = (
    *("member_start", "topic_start", "topic_partitions", "member_subscription", "subscription_start"),
    *("subscription_topic", "claim_start", "claim_topic", "claim_partition"),
)


def write(groups: Groups, folder: Path) -> None:
    """For the peers: a name a line, and arrays of big-endian 32-bit integers, each behind its length."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "members.txt").write_text("\n".join(groups.member_ids) + "\n", encoding="utf-8")
    names = [groups.names[at] for at in groups.topic_code]
    (folder / "topics.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    with (folder / "arrays.bin").open("wb") as out:
        for name in FOR_PEERS:
            array = getattr(groups.batch, name)
            out.write(np.array([len(array)], ">i4").tobytes() + array.astype(">i4").tobytes())


def digest(answer: AssignmentBatch) -> int:
    """CRC-32 of each member's list: its length, then topic and partition of each entry, 32 bits each, big-endian."""
    start = answer.assigned_start
    members = np.arange(len(start) - 1)
    out = np.empty(len(members) + 2 * len(answer.assigned_topic), ">i4")
    out[members + 2 * start[:-1]] = np.diff(start)
    at = 2 * np.arange(len(answer.assigned_topic)) + ragged.owners(start) + 1
    out[at] = answer.assigned_topic
    out[at + 1] = answer.assigned_partition
    return zlib.crc32(out.tobytes())
