"""Generated groups: the arrays an assignor of ours takes, a job's buckets of rows, and the files for the peers."""

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
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch
from groupledger.core.arrays.java_orders import hash_texts, hash_utf8, rank_texts, rank_utf8, utf8
from groupledger.core.assignors import assign
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.rebalance.step import Form
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import listed
from groupledger.engine.bucket_rows import SINCE, TopicCatalogue
from groupledger.engine.buckets import GROUPS_A_BUCKET, enveloped
from groupledger.engine.envelope import Envelope, FilesOfAttempt
from groupledger.engine.group_arrays import Calculation
from groupledger.tables import columns as c

SEED = 41
GENERATION = 7
TOPIC_POOL = 2_000
"""Topics of one cluster; many small groups share them."""
CLUSTER = "bench"
INPUT = to_arrow_schema(r.INPUT)


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of one shape, strings beside the arrays."""

    batch: GroupBatch
    member_ids: list[str]  # [M]
    names: list[str]  # topic names
    topic_code: np.ndarray  # [T] index into names


@dataclass(frozen=True, slots=True)
class Buckets:
    """Rows of `rows.INPUT`, a table a bucket, and what they are computed with."""

    tables: list[pa.Table]
    calculation: Calculation


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
        "claim_start": answer.target.start,
        "claim_topic": answer.target.topic,
        "claim_partition": answer.target.partition,
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


def buckets(groups: Groups, assignor: str) -> Buckets:
    """The groups as snapshots of one cluster, as `assign` hands them to its workers: at most so many a bucket."""
    batch = groups.batch
    of_groups, of_members = _group_rows(groups, assignor), _member_rows(groups)
    tables = []
    for first in range(0, batch.groups, GROUPS_A_BUCKET):
        last = min(first + GROUPS_A_BUCKET, batch.groups)
        low, high = batch.member_start[first], batch.member_start[last]
        tables.append(pa.concat_tables([of_groups.slice(first, last - first), of_members.slice(low, high - low)]))
    counts = dict(zip(groups.topic_code.tolist(), batch.topic_partitions.tolist(), strict=True))
    listed_topics = [
        {c.CLUSTER_ID: CLUSTER, c.TOPIC: groups.names[code], c.PARTITION_COUNT: count, SINCE: 0}
        for code, count in counts.items()
    ]
    return Buckets(tables, Calculation(CLUSTER, Form.AS_KAFKA, topics=TopicCatalogue.of_rows(listed_topics)))


def run_worker(given: Buckets, folder: Path) -> list[Envelope]:
    """What a job's worker does with each bucket, and the files it writes, which are removed."""
    files = FilesOfAttempt(CLUSTER, {table.name: str(folder) for table in r.RESULTS})
    found = [each for bucket in given.tables for each in enveloped(bucket, given.calculation, files)]
    for each in found:
        if each.file is not None:
            (folder / each.file.name).unlink()
    return found


def _group_rows(groups: Groups, assignor: str) -> pa.Table:
    """A complete generation of a classic group each, without a record to compare with."""
    batch = groups.batch
    same = {
        r.ROW_KIND: r.GROUP_ROW,
        c.GROUP_TYPE: "classic",
        c.PROTOCOL_TYPE: "consumer",
        c.SNAPSHOT_KIND: "generation",
        c.COMPLETE: True,
        c.GENERATION: GENERATION,
        c.ASSIGNOR: assignor,
        r.CHOSEN: assignor,
        r.MOMENT: 1,
    }
    shared = {c.SHARED_TOPICS: _subscribed(groups)} if _is_shared(groups) else {}
    sizes = pa.array(np.diff(batch.member_start).astype(np.int32))
    return _rows(np.arange(batch.groups), same, {c.MEMBERS: sizes} | shared)


def _member_rows(groups: Groups) -> pa.Table:
    batch = groups.batch
    owner = ragged.owners(batch.member_start)
    place = (np.arange(batch.members) - batch.member_start[owner]).astype(np.int32)
    own = {} if _is_shared(groups) else {c.TOPICS: _subscribed(groups).take(pa.array(batch.member_subscription))}
    generation = pa.array(batch.subscription_generation)
    varied = {
        c.MEMBER_ORDER: pa.array(place),
        c.MEMBER_ID: pa.array(groups.member_ids),
        c.CLAIMED: _claims(groups),
        c.CLAIMED_GENERATION: generation,
        c.SUBSCRIPTION_GENERATION: generation,
    }
    return _rows(owner, {r.ROW_KIND: r.MEMBER_ROW, c.SUBSCRIPTION_VERSION: 3}, varied | own)


def _rows(group: np.ndarray, same: dict[str, object], varied: dict[str, Any]) -> pa.Table:
    """Rows of `rows.INPUT`, of these groups; a list that is not given is empty, and ABSENT says that it is null."""
    count = len(group)
    ids = pa.array([f"group-{at:06}" for at in range(int(group.max(initial=-1)) + 1)]).take(pa.array(group))
    absent = sum(1 << place for place, name in enumerate(r.LISTS) if name not in varied)
    same = {r.BUCKET: 0, c.CLUSTER_ID: CLUSTER, c.SNAPSHOT_ID: None, r.ABSENT: absent} | same
    varied = {c.GROUP_ID: ids, c.SNAPSHOT_ID: pc.binary_join_element_wise(ids, "0", "/")} | varied
    columns = []
    for field in INPUT:
        if field.name in varied:
            columns.append(varied[field.name])
        elif field.name in r.LISTS:
            columns.append(listed(np.zeros(count + 1, np.int32), pa.array([], field.type.value_type), field.type))
        else:
            columns.append(pa.repeat(pa.scalar(same.get(field.name), field.type), count))
    return pa.table(columns, INPUT)


def _is_shared(groups: Groups) -> bool:
    """Whether the members of a group have one list of topics."""
    b = groups.batch
    return len(b.subscription_start) == b.groups + 1 and b.groups < b.members


def _subscribed(groups: Groups) -> pa.Array:
    """The lists of topics."""
    b = groups.batch
    kind = INPUT.field(c.TOPICS).type
    return listed(b.subscription_start, _named(groups, b.subscription_topic, _group_starts(groups)), kind)


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
    kind = INPUT.field(c.CLAIMED).type
    fields = list(kind.value_type)
    partitions = listed(at, pa.array(b.claim_partition), fields[-1].type)
    entry = pa.StructArray.from_arrays([pa.nulls(len(topics), fields[0].type), topics, partitions], fields=fields)
    return listed(entries, entry, kind)


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
    start = answer.assigned.start
    members = np.arange(len(start) - 1)
    out = np.empty(len(members) + 2 * len(answer.assigned.topic), ">i4")
    out[members + 2 * start[:-1]] = np.diff(start)
    at = 2 * np.arange(len(answer.assigned.topic)) + ragged.owners(start) + 1
    out[at] = answer.assigned.topic
    out[at + 1] = answer.assigned.partition
    return zlib.crc32(out.tobytes())
