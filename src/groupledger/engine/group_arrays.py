"""One Arrow table of group and member rows, and the topics -> the arrays the core takes. Strings become integers once.

Rows come in any order. Groups are put in the order of their snapshot ids, members in JoinGroup order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch, IntArray, LongArray
from groupledger.core.arrays.java_orders import hash_utf8, rank_utf8
from groupledger.core.arrays.kernels import run
from groupledger.core.arrays.snapshots import GREATEST, NamedLists, Snapshots, TopicViews, number_topics
from groupledger.core.custom.contract import Texts
from groupledger.core.log.lines import GroupCode, RecordStandsCode
from groupledger.core.rebalance.computation import Choice
from groupledger.core.rebalance.registry import BY_NAME, REMEMBERING
from groupledger.core.rebalance.step import Form
from groupledger.core.rebalance.verdict import Verdict
from groupledger.core.wire.consumer_protocol import COOPERATIVE_STICKY, INT32_BYTES, STICKY, STRAY_PREFIX, taken
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import (
    Column,
    WireLists,
    are_true,
    column,
    encode,
    integers,
    list_starts,
    named,
    nulled,
    tuples,
    utf8,
    valid,
    wire,
)
from groupledger.engine.bucket_rows import RECORD_COLUMNS, Parts, TopicCatalogue, TopicsAt
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.assignors.server.judgement import IdentifiedChange, Judgement, Logged
    from groupledger.core.custom.custom_group import CustomAssignor
    from groupledger.core.log.listings import TopicChange


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


def decode(parts: Parts, calculation: Calculation) -> DecodedBucket:
    """Return the rows of a bucket as arrays."""
    groups, members, _ = parts
    rows = pc.index_in(column(members, c.SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID))
    tie = integers(rows, NONE).astype(np.int64)  # the group row of each member row; NONE: of a snapshot before
    rejections = Rejections.of_rows(groups, members, tie)
    bucket = _Bucket(groups, members, np.where(rejections.mask[tie], NONE, tie), calculation.catalogue)
    found = rejections.with_topics(bucket.topics, bucket.topic_group, bucket.topic_names, calculation.max_partitions)
    if found is not rejections:
        bucket = _Bucket(groups, members, np.where(found.mask[tie], NONE, tie), calculation.catalogue)
    names = (*NAMES, *(each.name for each in calculation.custom))
    without = without_assignor(groups, names, np.diff(bucket.member_start) > 0)
    prejudged = _prejudge(groups, bucket.own, bucket.member_start, without, found.mask[:-1])
    judged = coordinator_verdicts(parts, bucket.topics, bucket.topic_start, calculation.coordinator)
    stands = (judged.verdict != NONE) & (prejudged == Verdict.CANNOT_TELL_ASSIGNOR)
    prejudged = np.where(stands, judged.verdict, prejudged)
    bucket.look_up(calculation.catalogue, np.where(stands, judged.moment, NONE))
    bucket.count({row: counts for row, counts in judged.counts.items() if stands[row]})
    choice = _choice(groups, found, prejudged, calculation)
    if (choice.chosen >= len(NAMES)).any():
        choice = replace(choice, texts=_texts(bucket.own, bucket.topic_names))
    unrecomputed = reasons(groups, without, prejudged, names)
    return DecodedBucket(
        groups, bucket.own, bucket.snapshots(), choice, bucket.topic_names, bucket.topic_ids, found, unrecomputed
    )


def _member_order(members: pa.Table, group: LongArray, groups: int) -> tuple[LongArray, LongArray]:
    """Return the rows of members in a group, by group and place in the JoinGroup response; where groups begin."""
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


def _choice(groups: pa.Table, rejections: Rejections, prejudged: IntArray, calculation: Calculation) -> Choice:
    """Choose each group's assignor; a record is of the chosen one if members joined by the name that it has."""
    custom = {each.name: each for each in calculation.custom}
    names = pa.array([*NAMES, *custom])
    by_name = [BY_NAME[name].protocol_name for name in NAMES]
    joined = pa.array([*by_name, *(each.protocol_name for each in custom.values())], pa.string())
    chosen = integers(pc.index_in(column(groups, r.CHOSEN), value_set=names), NONE)
    recorded = integers(pc.index_in(column(groups, c.ASSIGNOR), value_set=joined, skip_nulls=True), NONE)
    same = pc.equal(named(joined, chosen), column(groups, c.ASSIGNOR))
    recorded = np.where(are_true(same), chosen, recorded)
    uncomputed = _is(groups, c.SNAPSHOT_KIND, "rewrite") | _is(groups, c.SNAPSHOT_KIND, "fold")
    chosen = np.where(rejections.mask[:-1] | uncomputed, NONE, chosen).astype(np.int32)
    return Choice(
        (*NAMES, *custom),
        chosen,
        chosen if calculation.stated else recorded.astype(np.int32),
        prejudged.astype(np.int32),
        calculation.form,
        custom,
        carried=calculation.carried,
        stated=calculation.stated,
        settles=calculation.settles,
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
    return are_true(pc.equal(column(table, name), value))


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
    verdict[~are_true(column(groups, c.COMPLETE), null=True)] = Verdict.CANNOT_TELL_INCOMPLETE
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
        """Keep one copy of a list that a group shares; drop the group's list if no member uses it."""
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
        """Return the arrays."""
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
            rows = np.flatnonzero(
                are_true(asked) & _is(self.groups, c.ASSIGNOR, assignor)[ragged.owners(self.member_start)]
            )
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
        remembering = are_true(pc.is_in(protocol, value_set=pa.array(sorted(REMEMBERING))))
        unversioned = integers(column(self.own, c.SUBSCRIPTION_VERSION), 1) == 0
        memory: Mask = remembering[ragged.owners(self.member_start)] | unversioned
        return memory


# What a bucket is computed with: the same for all buckets of a run.


@dataclass(frozen=True, slots=True)
class Calculation:
    """All that a bucket's call needs to know beside its rows: a few words and the topics, pickled with the UDF."""

    scenario: str
    form: Form
    max_partitions: int = 4_000_000  # of the topics of one group
    custom: tuple[CustomAssignor, ...] = ()  # a worker has these imported, in processes of their own, and no others
    coordinator: str | None = None  # judge KIP-848 targets; the assignor of members that ask for none. None: do not
    topics: TopicCatalogue | None = None  # None: none is listed
    attributes: bool = True  # ask which client library's assignor gave a record that differs from Kafka's
    carried: bool = False  # each snapshot starts from what the one before was given, not from what it recorded
    stated: bool = False  # the rows are nobody's record: see `core.rebalance.computation.Choice`
    settles: bool = False  # likewise

    @property
    def catalogue(self) -> TopicCatalogue:
        """The topics."""
        return TopicCatalogue.of_rows([]) if self.topics is None else self.topics


# Groups that cannot be computed, found before anything is: code and message each, and the others go on.


@dataclass(frozen=True, slots=True)
class Rejections:
    """Code and message by group row; `mask` [G+1] is True there (and False at the end, for rows of no group)."""

    by_group: dict[int, tuple[str, str]]
    mask: Mask

    @staticmethod
    def of_rows(groups: pa.Table, members: pa.Table, tie: LongArray) -> Rejections:
        """Those that the rows alone show; of several for one group the last kind here counts.

        `tie`: the group row of each member row, NONE where its snapshot is only one before.
        """
        found = {**_twice(members, tie), **_unnamed(members, tie), **_before(groups)}
        return Rejections._of(found, len(groups))

    def with_topics(self, topics: TopicsAt, topic_group: LongArray, names: Column, max_partitions: int) -> Rejections:
        """Return these, and those that the topics of the others show. `topic_group`, `names`: of each topic row."""
        found = {
            **_too_many_partitions(topics.views, topic_group, len(self.mask) - 1, max_partitions),
            **_negative_counts(topics, topic_group, names),
        }
        return Rejections._of(found | self.by_group, len(self.mask) - 1) if found else self

    @staticmethod
    def _of(found: dict[int, tuple[str, str]], groups: int) -> Rejections:
        mask = np.zeros(groups + 1, np.bool_)
        mask[list(found)] = True
        return Rejections(found, mask)


def _before(groups: pa.Table) -> dict[int, tuple[str, str]]:
    """Return the groups that the pipeline rejected before the shuffle."""
    codes, messages = column(groups, r.FAULT_CODE), column(groups, r.FAULT_MESSAGE)
    rows = np.flatnonzero(valid(codes))
    return {int(row): (codes[row].as_py(), messages[row].as_py()) for row in rows}


def _twice(members: pa.Table, group: LongArray) -> dict[int, tuple[str, str]]:
    own = np.flatnonzero(group >= 0)
    ids: Column = column(members, c.MEMBER_ID).take(pa.array(own))
    _, (code,) = encode([ids])
    again = np.flatnonzero(ragged.repeated(group[own], code))
    return {
        int(group[own[row]]): (
            GroupCode.MEMBER_TWICE,
            f"member {ids[int(row)].as_py()!r} stands twice in the snapshot; expected once; "
            "mend the rows of member_snapshots",
        )
        for row in again[np.argsort(-code[again], kind="stable")]
    }


def _negative_counts(topics: TopicsAt, group: LongArray, names: Column) -> dict[int, tuple[str, str]]:
    catalogue, change = topics.catalogue, topics.change
    rows = np.flatnonzero(change != NONE)
    return {
        int(group[row]): (
            GroupCode.NEGATIVE_PARTITION_COUNT,
            f"partition count of topic {names[int(row)].as_py()!r} is {int(catalogue.listings.count[change[row]])}; "
            "expected >= 0; mend the rows of topic_snapshots",
        )
        for row in rows[catalogue.negative[change[rows]]]
    }


def _too_many_partitions(
    views: TopicViews, group: LongArray, groups: int, max_partitions: int
) -> dict[int, tuple[str, str]]:
    """By the largest count of any moment that may be tried: nothing is laid out for a group that claims too much."""
    most = np.max([views.now, views.before, views.before_that, views.after], axis=0, initial=0)
    total = np.bincount(group, weights=most, minlength=groups)
    return {
        int(row): (
            GroupCode.PARTITIONS_OVER_LIMIT,
            f"topics of the group have {int(total[row])} partitions; expected at most {max_partitions} "
            "(limits.max_partitions_per_group)",
        )
        for row in np.flatnonzero(total > max_partitions)
    }


def _unnamed(members: pa.Table, group: LongArray) -> dict[int, tuple[str, str]]:
    """Refuse groups with a null member id: the pipeline nulls one over the limit before the shuffle."""
    unnamed = ~valid(column(members, c.MEMBER_ID)) & (group >= 0)
    return {
        int(row): (GroupCode.ID_OVER_LIMIT, "a member id is longer than allowed; expected at most limits.max_id_bytes")
        for row in group[unnamed]
    }


# Groups that none of our assignors can answer for: nothing is wrong with them, so what was recorded stands.

OTHER_TYPES = {"share": Verdict.CANNOT_TELL_SHARE_GROUP, "streams": Verdict.CANNOT_TELL_STREAMS_GROUP}
"""Types of groups that are recorded and not recomputed."""
CANNOT_BE_ASKED = (
    Verdict.CANNOT_TELL_ASSIGNOR,
    Verdict.CANNOT_TELL_NO_ASSIGNOR,
    Verdict.CANNOT_TELL_PROTOCOL_TYPE,
    *OTHER_TYPES.values(),
)
MOST_SHOWN = 200
"""Characters of a name that anybody may have given himself."""


def without_assignor(groups: pa.Table, names: Sequence[str], peopled: Mask) -> IntArray:
    """[G] the verdict on groups with members that are of a type of their own, or whose chosen assignor is none of
    `names`; NONE for others.
    """
    chosen = column(groups, r.CHOSEN)
    unknown = pc.and_(chosen.is_valid(), pc.invert(pc.is_in(chosen, value_set=pa.array(names, pa.string()))))
    verdict = np.where(_is(groups, r.CHOSEN, ""), Verdict.CANNOT_TELL_NO_ASSIGNOR, Verdict.CANNOT_TELL_ASSIGNOR)
    found = np.where(are_true(unknown), verdict, NONE)
    for group_type, cannot_tell in OTHER_TYPES.items():
        found[_is(groups, c.GROUP_TYPE, group_type)] = cannot_tell
    return np.where(peopled, found, NONE).astype(np.int32)


def reasons(
    groups: pa.Table, without: IntArray, prejudged: IntArray, names: Sequence[str]
) -> dict[int, tuple[str, str]]:
    """Code and message by group row. `without` is of `without_assignor`; `prejudged` has other kinds of groups."""
    verdict = np.where(without == NONE, prejudged, without)
    rows = np.flatnonzero(np.isin(verdict, CANNOT_BE_ASKED))
    return {int(row): _reason(groups, int(row), Verdict(int(verdict[row])), names) for row in rows}


def _reason(groups: pa.Table, row: int, verdict: Verdict, names: Sequence[str]) -> tuple[str, str]:
    def of(name: str) -> str:
        return repr(column(groups, name)[row].as_py())[:MOST_SHOWN]

    if verdict is Verdict.CANNOT_TELL_PROTOCOL_TYPE:
        return RecordStandsCode.OTHER_PROTOCOL_TYPE, (
            f"protocol type is {of(c.PROTOCOL_TYPE)}; expected 'consumer': what members say and are given has another "
            "form; its bytes are in log_records"
        )
    if verdict in OTHER_TYPES.values():
        return RecordStandsCode.OTHER_GROUP_TYPE, (
            f"the group is of type {of(c.GROUP_TYPE)}, whose coordinator's assignor is not recomputed here; "
            "what was recorded stands"
        )
    if verdict is Verdict.CANNOT_TELL_NO_ASSIGNOR:
        return RecordStandsCode.NO_ASSIGNOR, (
            "the record names no assignor; what was recorded stands; "
            f"to recompute it, name one of {', '.join(sorted(names))} for this group in assign.overrides"
        )
    if column(groups, c.GROUP_TYPE)[row].as_py() != "classic":
        return RecordStandsCode.UNKNOWN_ASSIGNOR, (
            f"the group is of type {of(c.GROUP_TYPE)}, and its coordinator's assignor is not uniform or range; "
            "what was recorded stands"
        )
    return RecordStandsCode.UNKNOWN_ASSIGNOR, (
        f"assignor is {of(r.CHOSEN)}; expected one of {', '.join(sorted(names))}; what was recorded stands; "
        "to recompute it, write it as a custom assignor of this name and give its module:function for this group in "
        "assign.overrides (docs/guides/decide/write-an-assignor.md)"
    )


# Racks of members and of partition replicas as codes (KIP-881), only where both are known.


def with_racks(batch: GroupBatch, members: pa.Table, topics: TopicsAt) -> GroupBatch:
    """Return the batch with racks. An empty rack is none, as the Java client reads it (librdkafka sends "").

    A listing whose racks are not one list a partition says nothing of them.
    """
    rack = column(members, c.RACK_ID)
    rack = pc.if_else(pc.equal(rack, ""), None, rack)
    if rack.null_count == len(rack) or not topics.catalogue.has_racks():
        return batch
    topic_row = np.flatnonzero(topics.change != NONE)
    racks = topics.catalogue.racks(topics.change[topic_row])
    if racks.null_count == len(racks):
        return batch
    partitions = pc.list_flatten(racks)
    _, (member_rack, replica_rack) = encode([rack, pc.list_flatten(partitions)])
    counts = np.maximum(batch.topic_partitions, 0).astype(np.int64)
    listed, replicas = list_starts(racks), list_starts(partitions)
    first = np.full(len(counts), NONE, np.int64)
    complete = np.diff(listed) == counts[topic_row]
    first[topic_row[complete]] = listed[:-1][complete]
    topic_start = ragged.starts(counts)
    owner = ragged.owners(topic_start)
    known = first[owner] != NONE
    source = np.where(known, first[owner] + ragged.places(topic_start), len(replicas) - 1)
    start, at = ragged.take(np.append(replicas, replicas[-1]), source)
    return replace(
        batch, member_rack=member_rack, rack_topic_start=topic_start, rack_start=start, rack_code=replica_rack[at]
    )


# Verdicts on what the coordinators of KIP-848 groups wrote: from a bucket's log records and its topics, by group.

CLASSIC, CONSUMER = "classic", "consumer"
GroupLog = tuple[str, str, int | None]

_ROW = "row"


class CoordinatorVerdicts(NamedTuple):
    """Of G groups; NONE for those of other types."""

    verdict: IntArray  # `Verdict`
    moment: LongArray  # microseconds: of the topics whose answer equals the target; NONE: of none
    counts: dict[int, Mapping[str, int]]  # by group row, of those topics, where no listing says them


def coordinator_verdicts(
    parts: Parts, topics: TopicsAt, topic_start: LongArray, default: str | None
) -> CoordinatorVerdicts:
    """Judge each snapshot of a KIP-848 group, and a classic one's that was converted from one.

    `default` None: nothing is compared, of no group whose coordinator assigns. `topic_start` [G+1]: the topic rows of
    each group.
    """
    groups = parts.groups
    verdict, moment = np.full(len(groups), NONE, np.int32), np.full(len(groups), NONE, np.int64)
    counts: dict[int, Mapping[str, int]] = {}
    if default is None:
        verdict[:] = Verdict.NOT_COMPARED
        return CoordinatorVerdicts(verdict, moment, counts)
    converted = carried_over(parts)
    for row, carried in converted.items():
        verdict[row] = Verdict.CARRIED_OVER if carried else Verdict.NOT_COMPARED
    rows = np.flatnonzero(_is(groups, c.GROUP_TYPE, CONSUMER))
    if len(rows) == 0:
        return CoordinatorVerdicts(verdict, moment, counts)
    logs = _by_log(parts.records, RECORD_COLUMNS)
    asked = _by_log(groups.take(pa.array(rows)).append_column(_ROW, pa.array(rows)), (c.LOG_PARTITION, c.OFFSET, _ROW))
    for key, snapshots in asked.items():
        offsets = [offset for _, offset, _ in snapshots]
        own = [row for *_, row in snapshots]
        named = np.concatenate([topics.topic[topic_start[row] : topic_start[row + 1]] for row in own])
        changes = topics.catalogue.changes(np.unique(named[named != NONE]))
        taken = {offset: converted[row] for _, offset, row in snapshots if row in converted}
        judged = _judged(logs.get(key, ()), changes, offsets, default, taken)
        verdict[own] = [each.verdict for each in judged]
        moment[own] = [NONE if each.moment is None else each.moment for each in judged]
        for row, each in zip(own, judged, strict=True):
            if each.topics is not None:
                counts[row] = {name: topic.partitions for name, topic in each.topics.items()}
    return CoordinatorVerdicts(verdict, moment, counts)


def carried_over(parts: Parts) -> dict[int, bool]:
    """Return by group row of a group's first snapshot after a conversion whether its assignment is the one before.

    A classic group's snapshot of the kind `fold` is one, a KIP-848 group's if the one before is a classic group's.
    """
    groups, members, _ = parts
    kind = column(groups, c.GROUP_TYPE)
    previous = pc.index_in(column(groups, c.PREVIOUS_SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID))
    up = pc.and_(pc.equal(kind, CONSUMER), pc.equal(kind.take(previous), CLASSIC))
    down = pc.and_(pc.equal(kind, CLASSIC), pc.equal(column(groups, c.SNAPSHOT_KIND), "fold"))
    rows = pc.indices_nonzero(pc.fill_null(pc.or_kleene(up, down), False))
    if len(rows) == 0:
        return {}
    now, before = (column(groups, name).take(rows) for name in (c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID))
    named = members.filter(pc.is_in(column(members, c.SNAPSHOT_ID), value_set=pa.concat_arrays([now, before])))
    lists = pc.coalesce(column(named, c.TARGET), column(named, c.RECORDED)).to_pylist()
    ids = (column(named, name).to_pylist() for name in (c.SNAPSHOT_ID, c.MEMBER_ID))
    owned: defaultdict[str, dict[str, set[tuple[str, int]]]] = defaultdict(dict)
    for snapshot, member, own in zip(*ids, lists, strict=True):
        owned[snapshot][member] = {
            (each[c.TOPIC] or each[c.TOPIC_ID], n) for each in own or () for n in each[c.PARTITIONS]
        }
    return {
        row: old is not None and all(own == owned[old].get(member, set()) for member, own in owned[new].items())
        for row, new, old in zip(rows.to_pylist(), now.to_pylist(), before.to_pylist(), strict=True)
    }


def _by_log(rows: pa.Table, names: Sequence[str]) -> dict[GroupLog, list[tuple[Any, ...]]]:
    """Return these columns of each row, the log partition first, by cluster, group and log partition."""
    found: defaultdict[GroupLog, list[tuple[Any, ...]]] = defaultdict(list)
    for cluster_id, group_id, *value in tuples(rows, c.CLUSTER_ID, c.GROUP_ID, *names):
        found[cluster_id, group_id, value[0]].append(tuple(value))
    return found


def _judged(
    log: Sequence[tuple[Any, ...]],
    changes: Iterable[TopicChange],
    offsets: list[int],
    default: str,
    taken: Mapping[int, bool],
) -> list[Judgement]:
    """Judge each snapshot. Imports are local: small jobs without such groups need none of them."""
    from groupledger.core.assignors.server.judgement import judge_snapshots

    return judge_snapshots(_logged(log), [_as_judged(each) for each in changes], offsets, default, taken)


def _logged(log: Sequence[tuple[Any, ...]]) -> Iterator[Logged]:
    """Rows of RECORD_COLUMNS -> records by offset; of two at one offset the one that the fold kept."""
    from groupledger.core.wire.codec import DecodeFault
    from groupledger.core.wire.offsets_log import decode

    ordered = sorted(log, key=lambda row: (row[1], row[2], row[3] or b"", row[4] is not None, row[4] or b""))
    for offset, same in groupby(ordered, key=itemgetter(1)):
        *_, timestamp, key, value = next(same)
        try:
            yield offset, timestamp, decode(key, value)
        except DecodeFault:
            yield offset, timestamp, None


def _as_judged(change: TopicChange) -> IdentifiedChange:
    from groupledger.core.assignors.server.judgement import IdentifiedChange
    from groupledger.core.assignors.server.server_group import TopicId
    from groupledger.core.wire.codec import uuid_bytes

    try:
        known = TopicId(uuid_bytes(change.topic_id or ""))
    except ValueError:  # tables of users may give none, or another text
        known = None
    return IdentifiedChange(change.valid_from, change.topic, known, change.partition_count)
