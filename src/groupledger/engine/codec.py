"""One Arrow table of group and member rows, and the topics -> the arrays the core takes. Strings become integers once.

Rows come in any order. Groups are put in the order of their snapshot ids, members in JoinGroup order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged
from groupledger.core.batch import NONE, GroupBatch
from groupledger.core.choice import Choice
from groupledger.core.custom.batches import Texts
from groupledger.core.javaorder import hash_utf8, rank_utf8
from groupledger.core.kernels import run
from groupledger.core.registry import BY_NAME, REMEMBERING
from groupledger.core.snapshots import GREATEST, NamedLists, Snapshots, number_topics
from groupledger.core.verdict import Verdict
from groupledger.core.wire.user_data import COOPERATIVE_STICKY, INT32_BYTES, STICKY, STRAY_PREFIX, taken
from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import (
    Column,
    WireLists,
    column,
    encode,
    integers,
    list_starts,
    nulled,
    utf8,
    valid,
    wire,
)
from groupledger.engine.bucket_parts import Parts
from groupledger.engine.coordinators import coordinator_verdicts
from groupledger.engine.rejections import Rejections
from groupledger.engine.replica_racks import with_racks
from groupledger.engine.topic_catalogue import TopicCatalogue, TopicsAt
from groupledger.engine.unrecomputed import reasons, without_assignor
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.custom.naming import CustomAssignor
    from groupledger.core.slots import Mask
    from groupledger.core.step import Form
    from groupledger.engine.calculation import Calculation

NAMES = tuple(sorted(BY_NAME))


@dataclass(frozen=True, slots=True)
class DecodedBucket:
    """A bucket as arrays. A rejected group has no members here."""

    groups: pa.Table  # group rows, in the order of the arrays
    members: pa.Table  # member rows, likewise
    snapshots: Snapshots
    choice: Choice
    topic_names: Column  # [T]
    topic_ids: Column  # [T] of the topics that are listed then, else null
    rejections: Rejections
    unrecomputed: Mapping[int, tuple[str, str]]  # code and message by group row: no assignor of ours can be asked


def decode(parts: Parts, calculation: Calculation, custom: Mapping[str, CustomAssignor]) -> DecodedBucket:
    """The rows of a bucket as arrays."""
    groups, members, _ = parts
    tie = group_row_of_member(groups, members)
    rejections = Rejections.of_rows(groups, members, tie)
    bucket = _Bucket(groups, members, np.where(rejections.mask[tie], NONE, tie), calculation.catalogue)
    found = rejections.with_topics(bucket.topics, bucket.topic_group, bucket.topic_names, calculation.max_partitions)
    if found is not rejections:
        bucket = _Bucket(groups, members, np.where(found.mask[tie], NONE, tie), calculation.catalogue)
    names = (*NAMES, *custom)
    without = without_assignor(groups, names, np.diff(bucket.member_start) > 0)
    prejudged = _prejudge(groups, bucket.own, bucket.member_start, without, found.mask[:-1])
    judged = coordinator_verdicts(parts, bucket.topics, bucket.topic_start, calculation.coordinator)
    stands = (judged.verdict != NONE) & (prejudged == Verdict.CANNOT_TELL_ASSIGNOR)
    prejudged = np.where(stands, judged.verdict, prejudged)
    bucket.look_up(calculation.catalogue, np.where(stands, judged.moment, NONE))
    bucket.count({row: counts for row, counts in judged.counts.items() if stands[row]})
    choice = _choice(groups, found, prejudged, calculation.form, custom)
    choice = replace(choice, carried=calculation.carried, stated=calculation.stated)
    if choice.stated:
        choice = replace(choice, recorded=choice.chosen)
    if (choice.chosen >= len(NAMES)).any():
        choice = replace(choice, texts=_texts(bucket.own, bucket.topic_names))
    unrecomputed = reasons(groups, without, prejudged, names)
    return DecodedBucket(
        groups, bucket.own, bucket.snapshots(), choice, bucket.topic_names, bucket.topic_ids, found, unrecomputed
    )


def group_row_of_member(groups: pa.Table, members: pa.Table) -> LongArray:
    """The group row that each member row belongs to; NONE: its snapshot is only one before."""
    rows = pc.index_in(column(members, c.SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID))
    return integers(rows, NONE).astype(np.int64)


def _member_order(members: pa.Table, group: LongArray, groups: int) -> tuple[LongArray, LongArray]:
    """The rows of members that are in a group, by group and place in the JoinGroup response; where groups begin."""
    own = np.flatnonzero(group >= 0)
    place = integers(column(members, c.MEMBER_ORDER), 0).astype(np.int64)[own]
    key = (group[own] << 32) | place
    steps = np.diff(key)
    if (steps <= 0).any():
        ids = column(members, c.MEMBER_ID).take(pa.array(own))
        order = pc.sort_indices(
            pa.table({"key": key, "id": ids}), sort_keys=[("key", "ascending"), ("id", "ascending")]
        )
        own = own[order.to_numpy()]
    return own, ragged.starts(np.bincount(group[own], minlength=groups))


def held_rows(groups: pa.Table, members: pa.Table, own: pa.Table, group: LongArray) -> Column:
    """For each member, its row in the snapshot before: by member id, else by instance id (KIP-345); null without."""
    snapshots = column(members, c.SNAPSHOT_ID).dictionary_encode()
    previous = pc.index_in(column(groups, c.PREVIOUS_SNAPSHOT_ID), value_set=snapshots.dictionary)
    before = integers(previous, NONE).astype(np.int64)
    snapshot = integers(snapshots.indices, NONE).astype(np.int64)
    wanted = np.zeros(len(snapshots.dictionary) + 1, np.bool_)
    wanted[before] = True
    candidates = np.flatnonzero(wanted[:-1][snapshot])
    found = np.full(len(own), NONE, np.int64)
    for name in (c.MEMBER_ID, c.GROUP_INSTANCE_ID):
        _, (ids, sought) = encode([column(members, name).take(pa.array(candidates)), column(own, name)])
        missing = (found == NONE) & (sought != NONE) & (before[group] != NONE)
        _look_up(snapshot[candidates], ids, candidates, before[group], sought, missing, found)
    return pa.array(found, mask=found == NONE)


def _look_up(
    snapshot: LongArray,
    ids: IntArray,
    row: LongArray,
    before: LongArray,
    sought: IntArray,
    missing: Mask,
    found: LongArray,
) -> None:
    """Fill `found` where `missing`: the row of the same id in the snapshot before."""
    named = ids != NONE
    width = int(max(ids.max(initial=0), sought.max(initial=0))) + 1
    keys = snapshot[named] * width + ids[named]
    order = np.argsort(keys, kind="stable")
    asked = before[missing] * width + sought[missing]
    if len(keys) == 0 or len(asked) == 0:
        return
    at = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
    hit = keys[order][at] == asked
    found[np.flatnonzero(missing)[hit]] = row[named][order[at[hit]]]


def _choice(
    groups: pa.Table, rejections: Rejections, prejudged: IntArray, form: Form, custom: Mapping[str, CustomAssignor]
) -> Choice:
    """A record is of the chosen assignor where its members joined by the name that one has."""
    names = pa.array([*NAMES, *custom])
    by_name = [BY_NAME[name].protocol_name for name in NAMES]
    joined = pa.array([*by_name, *(each.protocol_name for each in custom.values())], pa.string())
    chosen = integers(pc.index_in(column(groups, r.CHOSEN), value_set=names), NONE)
    recorded = integers(pc.index_in(column(groups, c.ASSIGNOR), value_set=joined, skip_nulls=True), NONE)
    same = pc.equal(joined.take(pa.array(chosen, mask=chosen == NONE)), column(groups, c.ASSIGNOR))
    recorded = np.where(pc.fill_null(same, False).to_numpy(zero_copy_only=False), chosen, recorded)
    uncomputed = _is(groups, c.SNAPSHOT_KIND, "rewrite") | _is(groups, c.SNAPSHOT_KIND, "fold")
    chosen = np.where(rejections.mask[:-1] | uncomputed, NONE, chosen)
    return Choice(
        (*NAMES, *custom),
        chosen.astype(np.int32),
        recorded.astype(np.int32),
        prejudged.astype(np.int32),
        form,
        custom,
    )


def _texts(own: pa.Table, topics: Column) -> Texts:
    """Strings as they are: custom assignors take names, not numbers."""
    return Texts(
        member_ids=column(own, c.MEMBER_ID).to_pylist(),
        instance_ids=column(own, c.GROUP_INSTANCE_ID).to_pylist(),
        racks=column(own, c.RACK_ID).to_pylist(),
        user_data=column(own, c.USER_DATA).to_pylist(),
        topics=topics.to_pylist(),
    )


def _is(table: pa.Table, name: str, value: str) -> Mask:
    mask: Mask = pc.fill_null(pc.equal(column(table, name), value), False).to_numpy(zero_copy_only=False)
    return mask


def _prejudge(groups: pa.Table, own: pa.Table, member_start: LongArray, without: IntArray, rejected: Mask) -> IntArray:
    """Verdicts that need no comparison; a later rule overrides an earlier one. `without`: see `without_assignor`."""
    classic = _is(groups, c.GROUP_TYPE, "classic")
    written = np.concatenate(([0], np.cumsum(valid(column(own, c.RECORDED)))))
    verdict = np.full(len(groups), NONE, np.int32)
    verdict[np.diff(written[member_start]) == 0] = Verdict.CANNOT_TELL_NO_RECORD
    verdict = np.where(without != NONE, without, verdict)
    verdict[~classic & (without == NONE)] = Verdict.CANNOT_TELL_ASSIGNOR
    verdict[classic & ~_is(groups, c.PROTOCOL_TYPE, "consumer")] = Verdict.CANNOT_TELL_PROTOCOL_TYPE
    verdict[classic & _is(groups, c.SNAPSHOT_KIND, "fold")] = Verdict.CANNOT_TELL_ASSIGNOR  # converted from KIP-848
    verdict[np.diff(member_start) == 0] = Verdict.NO_MEMBERS
    verdict[rejected] = Verdict.NOT_COMPARED  # its members are left out of the arrays
    verdict[_is(groups, c.SNAPSHOT_KIND, "rewrite")] = Verdict.REWRITE
    complete = pc.fill_null(column(groups, c.COMPLETE), True).to_numpy(zero_copy_only=False)
    verdict[~complete] = Verdict.CANNOT_TELL_INCOMPLETE
    return verdict


class _Bucket:
    """Builds the arrays of one bucket. Attributes are set once, in the order in which they build on one another."""

    def __init__(self, groups: pa.Table, members: pa.Table, tie: LongArray, catalogue: TopicCatalogue) -> None:
        """`tie`: the group row of each member row, NONE for those that are not to be used."""
        self.groups = groups
        order, self.member_start = _member_order(members, tie, len(groups))
        self.own = members.take(pa.array(order)).combine_chunks()
        held = held_rows(groups, members, self.own, ragged.owners(self.member_start))
        recorded, target = column(self.own, c.RECORDED), column(self.own, c.TARGET)
        before = column(members, c.RECORDED).take(held)
        stated = integers(column(self.own, c.SUBSCRIPTION_GENERATION), NONE)
        self.subscription_generation = np.maximum(stated, NONE)  # to Kafka any negative one is none
        believed, self.claim_generation = self._taken()
        claimed = column(self.own, c.CLAIMED)
        claimed = claimed if believed.all() else nulled(claimed, ~believed)
        lists = (claimed, before, recorded, pc.coalesce(target, recorded))
        self.wires = [wire(each) for each in lists]
        self._read_subscriptions()
        self._number_topics()
        self.topic_group = ragged.owners(self.topic_start)
        self.topic_names = self.dictionary.cast(pa.string()).take(pa.array(self.topic_code))
        self.look_up(catalogue, np.full(len(groups), NONE, np.int64))

    @property
    def topic_ids(self) -> Column:
        """The id of each topic row as it is listed at the snapshot: [T]; null where it is not."""
        return self.topics.catalogue.ids(self.topics.change)

    def _read_subscriptions(self) -> None:
        """A list shared by a group stands once; the group's list is dropped where no member uses it."""
        shared, single = column(self.groups, c.SHARED_TOPICS), column(self.own, c.TOPICS)
        has_own = valid(single)
        group = ragged.owners(self.member_start)
        uses = np.bincount(group[~has_own], minlength=len(self.groups)) > 0
        shared = shared.filter(pa.array(uses))
        single = single.filter(pa.array(has_own))
        place = np.cumsum(uses) - 1
        self.member_subscription = np.where(has_own, int(uses.sum()) + np.cumsum(has_own) - 1, place[group])
        self.subscriptions = [pc.list_flatten(shared), pc.list_flatten(single)]
        self.shared_start, self.single_start = list_starts(shared), list_starts(single)
        used = np.concatenate(([0], np.cumsum(uses)))
        singles = np.concatenate(([0], np.cumsum(has_own)))
        self.subscription_groups = [self.shared_start[used], self.single_start[singles[self.member_start]]]

    def _number_topics(self) -> None:
        """Topic rows of all groups, from every list that names a topic."""
        naming = [*self.subscriptions, *(each.topic for each in self.wires)]
        self.dictionary, codes = encode(naming)
        starts = [*self.subscription_groups, *(each.start[self.member_start] for each in self.wires)]
        first = np.cumsum([0, *(len(each) for each in codes)])
        start = np.stack([each + offset for each, offset in zip(starts, first[:-1], strict=True)])
        code = np.concatenate(codes)
        row, topic_code = np.empty(len(code), np.int64), np.empty(len(code), np.int32)
        work = np.full(len(self.dictionary), NONE, np.int32), np.zeros(len(self.dictionary), np.int64)
        count = run(number_topics, start, code, *work, row, topic_code, cells=len(code))
        self.topic_code = topic_code[:count]
        self.topic_row = np.split(row, first[1:-1])
        self.topic_start = self._topic_starts(start, row)

    def _topic_starts(self, start: LongArray, row: LongArray) -> LongArray:
        """Topic rows are numbered group by group: a group's begin after the highest row of those before."""
        highest = np.zeros(len(self.groups) + 1, np.int64)
        for each in start:
            named = np.diff(each) > 0
            if named.any():
                most = np.maximum.reduceat(row[: each[-1]], each[:-1][named])
                highest[1:][named] = np.maximum(highest[1:][named], most + 1)
        begins: LongArray = np.maximum.accumulate(highest)
        return begins

    def look_up(self, catalogue: TopicCatalogue, moment: LongArray) -> None:
        """Look the topics up at the moments (microseconds) of groups [G]; NONE: at those of their snapshots."""
        clusters = column(self.groups, c.CLUSTER_ID).dictionary_encode()
        cluster = integers(clusters.indices, NONE).astype(np.int64)[self.topic_group]
        topic = catalogue.numbers(clusters.dictionary, cluster, self.dictionary, self.topic_code.astype(np.int64))
        recorded = integers(column(self.groups, r.MOMENT), GREATEST)
        self.topics = TopicsAt.find(catalogue, topic, np.where(moment == NONE, recorded, moment)[self.topic_group])

    def count(self, counts: Mapping[int, Mapping[str, int]]) -> None:
        """Take these partition counts by topic, of some group rows, in place of those that are listed."""
        views = self.topics.views
        now, gone = views.now.copy(), views.gone.copy()
        for group, of_topic in counts.items():
            rows = slice(*self.topic_start[group : group + 2].tolist())
            names = self.topic_names.slice(rows.start, rows.stop - rows.start).to_pylist()
            now[rows] = [of_topic.get(name, NONE) for name in names]
            gone[rows] = now[rows] == NONE
        self.topics = replace(self.topics, views=replace(views, now=now, gone=gone))

    def snapshots(self) -> Snapshots:
        """The arrays."""
        claims, held, recorded, goal = (self._named(at) for at in range(4))
        held = NamedLists(held.start, held.topic, held.partition, self._earlier())
        first = self.topic_start[ragged.owners(self.member_start)]
        local = (claims.topic - np.repeat(first, ragged.lengths(claims.start))).astype(np.int32)
        views = self.topics.views
        batch = with_racks(self._batch(claims, local, views.now), self.own, self.topics)
        modern = ~_is(self.groups, c.GROUP_TYPE, "classic")
        return Snapshots(batch, views, held, recorded, goal, self._memory(), modern)

    def _named(self, which: int) -> NamedLists:
        lists: WireLists = self.wires[which]
        topic = np.repeat(self.topic_row[2 + which], ragged.lengths(lists.part_start))
        return NamedLists(lists.partition_start, topic, lists.partition)

    def _earlier(self) -> Mask | None:
        """Held partitions of a topic whose id is not the one listed now: another topic of the same name."""
        held = self.wires[1]
        if held.topic_id.null_count == len(held.topic_id):
            return None
        _, (held_id, now) = encode([held.topic_id, self.topic_ids])
        expected = now[self.topic_row[3]]
        other: Mask = (held_id != NONE) & (expected != NONE) & (held_id != expected)
        return np.repeat(other, ragged.lengths(held.part_start))

    def _batch(self, claims: NamedLists, claim_topic: IntArray, counts: IntArray) -> GroupBatch:
        subscription_start = np.concatenate((self.shared_start, self.shared_start[-1] + self.single_start[1:]))
        rows = np.concatenate(self.topic_row[:2])
        groups = self.topic_group[rows]
        offsets, data = utf8(self.dictionary)
        ids = utf8(column(self.own, c.MEMBER_ID))
        return GroupBatch(
            member_start=self.member_start,
            member_hash=hash_utf8(*ids),
            member_rank=rank_utf8(*ids, self.member_start),
            instance_rank=self._instance_ranks(),
            member_rack=np.full(len(self.own), NONE, np.int32),
            subscription_generation=self.subscription_generation,
            claim_generation=self.claim_generation,
            topic_start=self.topic_start,
            topic_hash=hash_utf8(offsets, data)[self.topic_code],
            topic_rank=rank_utf8(offsets, data, np.array([0, len(self.dictionary)]))[self.topic_code],
            topic_partitions=counts,
            member_subscription=self.member_subscription,
            subscription_start=subscription_start,
            subscription_topic=(rows - self.topic_start[groups]).astype(np.int32),
            claim_start=claims.start,
            claim_topic=claim_topic,
            claim_partition=claims.partition,
        )

    def _taken(self) -> tuple[Mask, IntArray]:
        """Of each member, whether Kafka's assignor takes its claim at all, and of which generation.

        Asked only of members whose user data may say something else to Kafka than to the client that wrote them.
        """
        believed = np.ones(len(self.own), np.bool_)
        generation = integers(column(self.own, c.CLAIMED_GENERATION), NONE).astype(np.int32)
        data = column(self.own, c.USER_DATA)
        long_enough = pc.greater_equal(pc.binary_length(data), INT32_BYTES)
        undated = pa.array(self.subscription_generation == NONE)
        otherwise_read = {
            STICKY: pc.starts_with(data, pattern=STRAY_PREFIX),
            COOPERATIVE_STICKY: pc.and_(long_enough, undated),
        }
        for assignor, asked in otherwise_read.items():
            asked = pc.fill_null(asked, False).to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(asked & _is(self.groups, c.ASSIGNOR, assignor)[ragged.owners(self.member_start)])
            topics = pc.fill_null(pc.list_value_length(column(self.own, c.CLAIMED).take(pa.array(rows))), 0)
            sent = data.take(pa.array(rows))
            for row, number, head in zip(rows.tolist(), topics.to_pylist(), sent.to_pylist(), strict=True):
                owned, decisive = taken(assignor, range(number), int(generation[row]), None, head)
                believed[row] = len(owned) == number
                generation[row] = NONE if decisive is None else decisive
        return believed, generation

    def _instance_ranks(self) -> IntArray:
        instance = column(self.own, c.GROUP_INSTANCE_ID)
        ranks = np.full(len(instance), NONE, np.int32)
        static = valid(instance)
        if static.any():
            begins = np.concatenate(([0], np.cumsum(static)))[self.member_start]
            ranks[static] = rank_utf8(*utf8(instance.filter(pa.array(static))), begins)
        return ranks

    def _memory(self) -> Mask:
        """Claims that were sent in user data alone: ownedPartitions came with version 1."""
        protocol = column(self.groups, c.ASSIGNOR)
        remembering = pc.is_in(protocol, value_set=pa.array(sorted(REMEMBERING))).to_numpy(zero_copy_only=False)
        unversioned = integers(column(self.own, c.SUBSCRIPTION_VERSION), 1) == 0
        memory: Mask = remembering[ragged.owners(self.member_start)] | unversioned
        return memory
