"""Members and topics of many groups -> a row a group with its members in it: the rows of a bucket, computed as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.arrays.java_orders import hash_utf8
from groupledger.core.arrays.snapshots import user_data_order
from groupledger.core.custom.custom_group import Member, TopicPartition
from groupledger.core.log.lines import GroupCode, RecordStandsCode, ScenarioCode, SnapshotCode
from groupledger.core.rebalance.computation import Rebalances
from groupledger.core.rebalance.least_moves import LeastMovesCertainty
from groupledger.core.rebalance.registry import BY_NAME, STICKY
from groupledger.core.scenarios.form import read_claim
from groupledger.core.scenarios.solving import MOST_ROUNDS
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import (
    Column,
    are_true,
    arrow_schema,
    arrow_type,
    column,
    encode,
    filled,
    integers,
    list_starts,
    listed,
    nulled,
    utf8,
    valid,
    whole,
    wire,
    wire_array,
    with_column,
)
from groupledger.engine.bucket_rows import SCHEMA, SINCE, Parts, TopicCatalogue, by_topic
from groupledger.engine.buckets import GROUPS_A_BUCKET, rebalanced
from groupledger.engine.group_arrays import Calculation, DecodedBucket
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.declared import (
    NUMBERS,
    WIRE,
    AssignPlan,
    ColumnKind,
    OwnedLists,
    any_of,
    as_plain,
    known_assignor,
    numbered,
    owned_lists,
    unknown_assignor,
    whole_numbers,
)
from groupledger.engine.result_rows import ResultColumns
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask


INPUT = arrow_schema(r.INPUT)
MEMBERS_A_CALL = 100_000
"""Members computed together, at most, unless one group has more: they bound a worker's memory."""
BEFORE, NOW = "b", "n"


def assigned(
    members: pa.Table, topics: pa.Table, plan: AssignPlan, names: Sequence[str] = d.RESULT_NAMES
) -> Iterator[pa.Table]:
    """Yield rows of the result, some groups at a time, in the order of `by`. Rows come in any order.

    `names`: the columns wanted after those of `by`, of `RESULT_NAMES`, or `MEMBER_NAMES` for a row a member.
    """
    if len(members) == 0:
        return
    members, topics = whole(members.select(sorted({*plan.members.values()}))), whole(topics)
    keys = {name: as_plain(column(members, plan.members[name]), ColumnKind.KEY) for name in plan.by}
    group, first = numbered(list(keys.values()))
    order = np.argsort(group, kind="stable")
    start = ragged.starts(np.bincount(group))
    scope, known = _scoped(members, topics, plan, first)
    for low, high in _portions(np.diff(start)):
        rows = order[start[low] : start[high]]
        taken = members.take(pa.array(rows)).combine_chunks() if high - low < len(first) else members
        own = group[rows] - low if high - low < len(first) else group
        by = {name: values.take(pa.array(first[low:high])) for name, values in keys.items()}
        parts = _parts(Members.of_table(taken, plan), own, by, known, scope[low:high], plan)
        yield result_rows(parts, by, replace(plan.calculation, topics=known.catalogue), names)


def _scoped(members: pa.Table, topics: pa.Table, plan: AssignPlan, first: LongArray) -> tuple[LongArray, SharedTopics]:
    """Return what each group shares with topics, as a number, and the topics under these numbers."""
    groups = len(first)
    scope, of_topic = np.zeros(groups, np.int64), np.zeros(len(topics), np.int64)
    if plan.join:
        keys, nulls = [], np.zeros(len(topics), np.bool_)
        for name in plan.join:
            ours = as_plain(column(members, plan.members[name]), ColumnKind.KEY).take(pa.array(first))
            theirs = column(topics, plan.topics[name])
            nulls |= ~valid(theirs)
            keys.append(pa.concat_arrays([ours, theirs.cast(ours.type)]))
        number, _ = numbered(keys)
        scope, of_topic = number[:groups], np.where(nulls, NONE, number[groups:])
        of_topic = np.where(np.isin(of_topic, scope), of_topic, NONE)
    racks = column(topics, plan.topics[d.RACKS]) if d.RACKS in plan.topics else None
    named, counted = (column(topics, plan.topics[name]) for name in (c.TOPIC, d.PARTITIONS))
    return scope, topics_of(of_topic, named, counted, racks)


def _portions(members: LongArray) -> Iterator[tuple[int, int]]:
    """Cut groups into portions of limited size."""
    low, total = 0, 0
    for at, count in enumerate(members.tolist()):
        if at > low and (total + count > MEMBERS_A_CALL or at - low >= GROUPS_A_BUCKET):
            yield low, at
            low, total = at, 0
        total += count
    yield low, len(members)


def _parts(
    members: Members, group: LongArray, by: dict[str, Column], topics: SharedTopics, scope: LongArray, plan: AssignPlan
) -> Parts:
    groups = len(scope)
    names: list[str | None] = [plan.assignor] * groups
    faults = of_members(members, group, {name: keys.take(pa.array(group)) for name, keys in by.items()})
    if plan.assignor is None:
        names, of_names = of_assignors(members, group, groups)
        faults = of_names | faults
    faults = of_topics(members, group, topics, scope) | faults
    refused = np.zeros(groups, np.bool_)
    refused[list(faults)] = True
    usable = ~refused[group]
    assignors = pa.array(names, pa.string())
    sticky = are_true(pc.equal(assignors.take(pa.array(group)), STICKY.name))
    claims = claims_of(members, sticky & usable)
    return Parts(
        _group_rows(assignors, scope, faults),
        _member_rows(members, claims, group, scope, usable),
        INPUT.empty_table().select(r.FIELDS[r.RECORD_ROW]),
    )


def _group_rows(assignors: Column, scope: LongArray, faults: Faults) -> pa.Table:
    groups = len(scope)
    chosen = assignors.dictionary_encode()
    joined = [BY_NAME[name].protocol_name if name in BY_NAME else name for name in chosen.dictionary.to_pylist()]
    causes = [faults.get(at, (None, None)) for at in range(groups)]
    return _rows(
        r.GROUP_ROW,
        groups,
        {
            c.SNAPSHOT_ID: _snapshots(NOW, groups),
            c.CLUSTER_ID: scope_name(scope),
            c.GROUP_ID: pa.repeat("", groups),
            c.GROUP_TYPE: pa.repeat("classic", groups),
            c.PROTOCOL_TYPE: pa.repeat("consumer", groups),
            c.ASSIGNOR: pa.array(joined, pa.string()).take(chosen.indices),
            r.CHOSEN: assignors,
            c.PREVIOUS_SNAPSHOT_ID: _snapshots(BEFORE, groups),
            r.FAULT_CODE: pa.array([code for code, _ in causes], pa.string()),
            r.FAULT_MESSAGE: pa.array([message for _, message in causes], pa.string()),
        },
    )


def _snapshots(when: str, groups: int) -> Column:
    """Return what stands for the snapshots of groups: in their order."""
    return pa.array([f"{when}{number:010}" for number in range(groups)], pa.string())


def _member_rows(members: Members, claims: SentClaims, group: LongArray, scope: LongArray, usable: Mask) -> pa.Table:
    """Return the rows of members now, and of what they had before."""
    of_group = pa.array(group)
    shared = {
        c.CLUSTER_ID: scope_name(scope).take(of_group),
        c.GROUP_ID: pa.repeat("", len(group)),
        c.MEMBER_ID: members.ids,
    }
    now = shared | {
        c.SNAPSHOT_ID: _snapshots(NOW, len(scope)).take(of_group),
        c.MEMBER_ORDER: pc.fill_null(members.order, 0),
        c.GROUP_INSTANCE_ID: members.instance_ids,
        c.RACK_ID: members.rack,
        c.TOPICS: members.topics,
        c.CLAIMED: claims.claimed,
        c.CLAIMED_GENERATION: claims.generation,
        c.SUBSCRIPTION_GENERATION: members.generation,
        c.USER_DATA: claims.user_data,
    }
    before = shared | {c.SNAPSHOT_ID: _snapshots(BEFORE, len(scope)).take(of_group), c.RECORDED: claims.held}
    rows = [_rows(r.MEMBER_ROW, len(group), values) for values in (now, before)]
    masks = usable, usable & valid(claims.held)
    return pa.concat_tables(
        each if mask.all() else each.filter(pa.array(mask)) for each, mask in zip(rows, masks, strict=True)
    ).combine_chunks()


def _rows(kind: int, length: int, values: dict[str, Any]) -> pa.Table:
    """Return rows of a kind of `rows.INPUT`; what is not given is null."""
    schema = pa.schema([INPUT.field(name).with_nullable(True) for name in r.FIELDS[kind]])
    return filled(schema, values, length)


def result_schema(by: dict[str, pa.DataType]) -> pa.Schema:
    """Return the schema of the result's rows, with these columns of `by`."""
    return pa.schema([*by.items(), *((name, TYPES[name]) for name in d.RESULT_NAMES)])


# Rows of members of any table as plain columns: what is missing is null.


@dataclass(frozen=True, slots=True)
class Members:
    """R rows of members."""

    ids: Column
    topics: Column
    owned: OwnedLists
    held: OwnedLists
    generation: Column
    bad_generation: Mask
    rack: Column
    instance_ids: Column
    order: Column
    bad_order: Mask
    user_data: Column
    assignor: Column

    @staticmethod
    def of_table(rows: pa.Table, plan: AssignPlan) -> Members:
        """Return the columns of a table that `planned` has agreed to."""

        def found(name: str) -> Column:
            place = plan.members.get(name)
            return pa.nulls(len(rows)) if place is None else column(rows, place)

        generation, bad_generation = whole_numbers(found(d.GENERATION))
        order, bad_order = whole_numbers(found(c.MEMBER_ORDER))
        owned = owned_lists(found(d.OWNED))
        return Members(
            ids=as_plain(found(c.MEMBER_ID), ColumnKind.TEXT),
            topics=as_plain(found(c.TOPICS), ColumnKind.TEXTS),
            owned=owned,
            held=owned_lists(found(c.HELD)) if c.HELD in plan.members else owned,
            generation=pc.if_else(pc.less(generation, 0), None, generation).cast(pa.int32()),
            bad_generation=bad_generation,
            rack=as_plain(found(d.RACK), ColumnKind.TEXT),
            instance_ids=as_plain(found(c.GROUP_INSTANCE_ID), ColumnKind.TEXT),
            order=order,
            bad_order=bad_order,
            user_data=as_plain(found(c.USER_DATA), ColumnKind.BYTES),
            assignor=as_plain(found(d.ASSIGNOR), ColumnKind.TEXT),
        )


@dataclass(frozen=True, slots=True)
class SentClaims:
    """What the assignor reads of each member, as wire lists; `held` is where moves are counted from."""

    claimed: Column
    generation: Column
    held: Column
    user_data: Column


def claims_of(members: Members, sticky: Mask) -> SentClaims:
    """Return the claims of members; those in the mask send them in user data (KIP-54), in that one's order."""
    claimed, generation, user_data = members.owned.lists, members.generation, members.user_data
    held = pc.coalesce(members.held.lists, claimed)
    if sticky.any():
        written = sticky & valid(user_data)
        if written.any():
            claimed, generation = _read(members, written)
            held = pc.coalesce(held, claimed)
            user_data = pc.if_else(pa.array(written), None, user_data)
        claimed = _as_written(claimed, sticky & ~written & valid(claimed))
    return SentClaims(claimed, generation, held, user_data)


def _read(members: Members, written: Mask) -> tuple[Column, Column]:
    """Return claims and generations with those that stand in user data."""
    rows = np.flatnonzero(written)
    claims, generation = members.owned.lists.to_pylist(), members.generation.to_pylist()
    for row, data in zip(rows.tolist(), members.user_data.take(pa.array(rows)).to_pylist(), strict=True):
        owned = [TopicPartition(each[c.TOPIC], number) for each in claims[row] or () for number in each[c.PARTITIONS]]
        claim = read_claim(STICKY.name, Member("", (), tuple(owned), generation[row], user_data=data))
        claims[row] = [{c.TOPIC_ID: None, **each} for each in by_topic(claim.partitions)]
        generation[row] = claim.generation
    return pa.array(claims, WIRE), pa.array(generation, pa.int32())


def _as_written(claimed: Column, rows: Mask) -> Column:
    """Return the claims with the topics of some members in the order in which StickyAssignor writes them."""
    lists = wire(claimed)
    if not (rows & (np.diff(lists.start) > 1)).any():
        return claimed
    entry = np.repeat(np.arange(len(lists.topic)), np.diff(lists.part_start))
    dictionary, (code,) = encode([lists.topic])
    order = user_data_order(lists.partition_start, code[entry], hash_utf8(*utf8(dictionary)))
    order = np.where(np.repeat(rows, np.diff(lists.partition_start)), order, np.arange(len(order)))
    partition = integers(pa.array(lists.partition).take(pa.array(order)), 0)
    numbers = listed(np.arange(len(order) + 1), pa.array(partition), NUMBERS)
    topics = lists.topic.take(pa.array(entry[order]))
    return listed(lists.partition_start, [pa.nulls(len(order)), topics, numbers], WIRE, valid(claimed))


# Computed groups -> rows of `Assigned.result`, and the rounds that each group takes.

TYPES = {name: arrow_type(field.dataType) for name, field in d.FIELDS.items()}


def result_rows(parts: Parts, by: dict[str, Column], calculation: Calculation, names: Sequence[str]) -> pa.Table:
    """Compute the groups of a bucket, and what `names` needs of them. `by`: the values of its columns, by group row."""
    decoded, result = rebalanced(parts, calculation)
    computed = ResultColumns(decoded, result, calculation)
    refused, members = computed.is_refused, computed.assignments().combine_chunks()
    starts = ragged.starts(np.where(refused, 0, np.diff(result.party.member_start)))
    if c.MEMBER_ID in names:
        group = pa.array(ragged.owners(starts))
        by = {name: values.take(group) for name, values in by.items()}
        return pa.table(by | {name: column(members, name).cast(TYPES[name]) for name in names})
    groups = computed.rebalances().combine_chunks()
    values = {name: column(groups, name) for name in (*d.GROUP_NAMES, *d.REFUSAL_NAMES) if name in groups.schema.names}
    values |= {
        d.MOVED: column(groups, c.MOVES),
        d.EXCESS: _excess(groups),
        d.TO_REVOKE: _to_revoke(members, starts, result.party.incremental),
        d.ROUNDS: _rounds(decoded, result, calculation, refused),
        d.MEMBERS_OF_GROUP: listed(
            starts, [column(members, name) for name in d.MEMBER_NAMES], TYPES[d.MEMBERS_OF_GROUP]
        ),
    }
    absent = pa.array(refused)
    for name in d.GROUP_NAMES:
        if name not in (c.ASSIGNOR, c.OUTCOME, d.TO_REVOKE, c.UNASSIGNED_PARTITIONS):
            values[name] = pc.if_else(absent, None, values[name])
    return pa.table(by | {name: values[name].cast(TYPES[name]) for name in names})


def _excess(groups: pa.Table) -> Column:
    """Return the moves above the fewest; null where that is no more than a bound."""
    exact = pc.equal(column(groups, c.LEAST_MOVES_CERTAINTY), LeastMovesCertainty.EXACT.text)
    more = pc.subtract(column(groups, c.MOVES).cast(pa.int64()), column(groups, c.LEAST_MOVES))
    return pc.if_else(exact, pc.max_element_wise(more, 0), None)


def _to_revoke(members: pa.Table, starts: np.ndarray, cooperative: Mask) -> Column:
    """Return for each group that keeps what it owns what its members must revoke, member by member."""
    lists = nulled(column(members, c.REVOKED), ~cooperative[ragged.owners(starts)])
    begins, entries = list_starts(lists), pc.list_flatten(lists)
    ids = column(members, c.MEMBER_ID).take(pa.array(ragged.owners(begins)))
    return listed(begins[starts], [ids, entries.field(c.TOPIC), entries.field(c.PARTITIONS)], TYPES[d.TO_REVOKE])


def _rounds(decoded: DecodedBucket, result: Rebalances, calculation: Calculation, refused: Mask) -> Column:
    """Return the rounds after which nothing changes: the next one is played wherever one is not the last."""
    rounds = np.ones(len(refused), np.int32)
    row = np.arange(len(refused))
    for number in range(2, MOST_ROUNDS + 2):
        again = np.flatnonzero(result.step.follow_up & ~(refused[row]))
        if len(again) == 0:
            break
        row = row[again]
        rounds[row] = number
        if number > MOST_ROUNDS:
            break
        decoded, result = rebalanced(_next_round(decoded, result, again), calculation)
    return pa.array(rounds, mask=refused | (rounds > MOST_ROUNDS))


def _next_round(decoded: DecodedBucket, result: Rebalances, groups: np.ndarray) -> Parts:
    """Return the rows of some groups as they rejoin: every member owns what it was assigned, in one generation."""
    lists = wire_array(
        result.step.assigned,
        result.slots,
        {c.TOPIC: decoded.topic_names, c.TOPIC_ID: pa.nulls(len(decoded.topic_names), pa.string())},
        WIRE,
    )
    start = decoded.snapshots.batch.member_start
    _, at = ragged.take(start, groups)
    members, chosen = decoded.members.take(pa.array(at)), pa.array(at)
    generation = pa.repeat(pa.scalar(1, pa.int32()), len(at))
    for name, values in (
        (c.CLAIMED, lists.take(chosen)),
        (c.CLAIMED_GENERATION, generation),
        (c.SUBSCRIPTION_GENERATION, generation),
    ):
        members = with_column(members, name, values)
    rows = decoded.groups.take(pa.array(groups))
    return Parts(rows.combine_chunks(), members.combine_chunks(), decoded.groups.slice(0, 0))


# Find the groups whose rows cannot be used, each with the first thing that is wrong; the others are computed.

Faults = dict[int, tuple[str, str]]
"""Code and message by group."""


class WrongRows:
    """Collects faults of groups; of several the one that is looked for first counts, for the least member id."""

    def __init__(self, group: LongArray, member_ids: Column) -> None:
        """Rows of members: the group of each, and its id."""
        self.group, self.member_ids = group, member_ids
        self.faults: Faults = {}

    def add(self, code: str, wrong: Mask, say: Callable[[int], str]) -> None:
        """Refuse the groups of rows in the mask; `say` gives the message about a row."""
        rows = np.flatnonzero(wrong)
        if len(rows) == 0:
            return
        ids = pc.fill_null(self.member_ids.take(pa.array(rows)), "")
        order = pc.sort_indices(pa.table({"g": self.group[rows], "id": ids}), [("g", "ascending"), ("id", "ascending")])
        rows = rows[order.to_numpy()]
        first = rows[np.diff(self.group[rows], prepend=NONE) != 0]
        for row in first.tolist():
            self.faults.setdefault(int(self.group[row]), (code, say(row)))

    def of(self, row: int) -> str:
        """Name a row's member."""
        return f"member {self.member_ids[row].as_py()!r}"


def of_members(members: Members, group: LongArray, by: dict[str, Column]) -> Faults:
    """Return what is wrong with the rows of members themselves."""
    rows = WrongRows(group, members.ids)
    for name, keys in by.items():
        rows.add(SnapshotCode.MISSING_VALUE, ~valid(keys), lambda _, name=name: f"{name} is null; expected a value")  # type: ignore[misc]
    rows.add(
        SnapshotCode.MISSING_VALUE,
        ~valid(members.ids),
        lambda _: "member_id is null; expected the id of a member, and no row where a group has none",
    )
    _add_topics(rows, members)
    for name, owned in ((d.OWNED, members.owned), (c.HELD, members.held)):
        for code, mask, words in (
            (SnapshotCode.MISSING_VALUE, owned.null_inside, "has a null in it; expected topics and partitions"),
            (SnapshotCode.NEGATIVE_PARTITION, owned.negative, "has a partition below 0; expected >= 0"),
            (
                SnapshotCode.BAD_VALUE,
                owned.unreadable,
                "has no partition of a topic; expected texts such as 'orders-3'",
            ),
        ):
            rows.add(code, mask, lambda row, name=name, words=words: f"{name} of {rows.of(row)} {words}")  # type: ignore[misc]
    for name, wrong in ((d.GENERATION, members.bad_generation), (c.MEMBER_ORDER, members.bad_order)):
        rows.add(
            SnapshotCode.BAD_VALUE,
            wrong,
            lambda row, name=name: f"{name} of {rows.of(row)} is not a whole number of 32 bits",  # type: ignore[misc]
        )
    _add_places(rows, members, group)
    _, (member,) = encode([members.ids])
    rows.add(
        GroupCode.MEMBER_TWICE,
        ragged.repeated(group, member) & (member != NONE),
        lambda row: f"{rows.of(row)} stands twice; expected once",
    )
    return rows.faults


def _add_topics(rows: WrongRows, members: Members) -> None:
    rows.add(
        SnapshotCode.MISSING_VALUE,
        ~valid(members.topics),
        lambda row: f"topics of {rows.of(row)} is null; expected the topics that it subscribes to, or an empty list",
    )
    names = pc.list_flatten(members.topics)
    if names.null_count:
        inside = any_of(list_starts(members.topics), ~valid(names))
        rows.add(SnapshotCode.MISSING_VALUE, inside, lambda row: f"topics of {rows.of(row)} has a null in it")


def _add_places(rows: WrongRows, members: Members, group: LongArray) -> None:
    placed = valid(members.order)
    if not placed.any():
        return
    some = np.bincount(group[placed], minlength=int(group.max()) + 1) > 0
    rows.add(
        SnapshotCode.MISSING_VALUE,
        ~placed & some[group],
        lambda row: f"member_order of {rows.of(row)} is null; expected a place of each member of a group, or of none",
    )
    place = integers(members.order, NONE)
    rows.add(
        SnapshotCode.BAD_MEMBER_ORDER, placed & (place < 0), lambda row: f"member_order of {rows.of(row)} is below 0"
    )
    rows.add(
        SnapshotCode.PLACE_TWICE,
        placed & ragged.repeated(group, place),
        lambda row: f"member_order of {rows.of(row)} is that of another member too",
    )


def of_assignors(members: Members, group: LongArray, groups: int) -> tuple[list[str | None], Faults]:
    """Return the assignor of each group by the column of members, and what is wrong with it."""
    rows = WrongRows(group, members.ids)
    dictionary, (code,) = encode([members.assignor])
    rows.add(
        RecordStandsCode.NO_ASSIGNOR,
        code == NONE,
        lambda row: f"the assignor of {rows.of(row)} is null; expected a name",
    )
    chosen = np.full(groups, NONE, np.int32)
    chosen[group] = code  # of equal ones any
    rows.add(
        SnapshotCode.BAD_VALUE,
        code != chosen[group],
        lambda row: "members name different assignors; expected one name in all rows of a group",
    )
    names = dictionary.to_pylist()
    known = [known_assignor(name) for name in names]
    unknown = np.array([each is None for each in (*known, "")], np.bool_)
    rows.add(ScenarioCode.UNKNOWN_ASSIGNOR, unknown[code], lambda row: unknown_assignor(names[code[row]], in_rows=True))
    return [known[at] if at != NONE else None for at in chosen.tolist()], rows.faults


def of_topics(members: Members, group: LongArray, topics: SharedTopics, scope: LongArray) -> Faults:
    """Return the groups whose members subscribe to a topic that has a row which cannot be used. `scope`: [G]."""
    if not topics.wrong:
        return {}
    start, names = list_starts(members.topics), pc.list_flatten(members.topics)
    owner = ragged.owners(start)
    dictionary, (code,) = encode([names])
    texts = dictionary.to_pylist()
    wrong: dict[tuple[int, int], Any] = {}
    numbers = {name: at for at, name in enumerate(texts)}
    for (of_scope, name), fault in topics.wrong.items():
        if name in numbers:
            wrong[of_scope, numbers[name]] = fault
    keys = scope[group[owner]] * (len(texts) + 1) + code
    sought = np.array([of_scope * (len(texts) + 1) + at for of_scope, at in wrong], np.int64)
    found: Faults = {}
    for at in np.flatnonzero(np.isin(keys, sought) & (code != NONE)).tolist():
        of_group = int(group[owner[at]])
        fault = wrong[int(scope[of_group]), int(code[at])]
        found[of_group] = min(found.get(of_group, fault), fault)
    return found


# The topics that groups share: those of their cluster, of their moment, of a group, or of all.

Wrong = Mapping[tuple[int, str], tuple[str, str]]
"""Code and message by scope and topic."""


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """SharedTopics by scope: the number of the columns that they share with groups."""

    catalogue: TopicCatalogue
    wrong: Wrong


def scope_name(scope: LongArray) -> Column:
    """Return what stands for a cluster in the bucket: the scopes as texts."""
    return pa.array(scope).cast(pa.string())


def topics_of(scope: LongArray, topic: Column, partitions: Column, racks: Column | None) -> SharedTopics:
    """Return the topics of rows; `scope` of each, NONE: that of no group. A row without a name is of no topic."""
    topic = as_plain(topic, ColumnKind.TEXT)
    numbers, not_whole = whole_numbers(partitions)
    racks = pa.nulls(len(topic), SCHEMA.field(c.RACKS).type) if racks is None else as_plain(racks, ColumnKind.RACKS)
    mine = (scope != NONE) & valid(topic)
    low = integers(numbers, 0) < 0
    bad = {
        SnapshotCode.MISSING_VALUE: (~valid(numbers) & ~not_whole, "is null; expected a number >= 0"),
        SnapshotCode.BAD_VALUE: (not_whole, "is not a whole number of 32 bits; expected one >= 0"),
        GroupCode.NEGATIVE_PARTITION_COUNT: (low, "is below 0; expected >= 0"),
    }
    wrong: dict[tuple[int, str], tuple[str, str]] = {}
    for code, (mask, words) in bad.items():
        for row in np.flatnonzero(mask & mine).tolist():
            name = topic[row].as_py()
            wrong[int(scope[row]), name] = code, f"the partition count of topic {name!r} {words}"
    length = pc.list_value_length(racks)
    per_partition = are_true(pc.equal(length.cast(pa.int64()), numbers), null=True)
    lists = pc.list_flatten(racks)
    per_partition &= ~any_of(list_starts(racks), ~valid(lists))
    for row in np.flatnonzero(~per_partition & mine).tolist():
        name = topic[row].as_py()
        wrong.setdefault(
            (int(scope[row]), name), ("BAD_RACKS", f"racks of topic {name!r} are not one list a partition")
        )
    table = pa.table(
        {
            c.CLUSTER_ID: scope_name(scope),
            c.TOPIC: topic,
            c.PARTITION_COUNT: pc.if_else(pa.array(low), None, numbers).cast(pa.int32()),
            c.RACKS: pc.if_else(pa.array(per_partition), racks, None),
        }
    ).filter(pa.array(mine))
    _add_twice(table, wrong)
    empty = {SINCE: pa.repeat(pa.scalar(0, pa.int64()), len(table)), c.TOPIC_ID: pa.nulls(len(table), pa.string())}
    for name, values in empty.items():
        table = table.append_column(name, values)
    return SharedTopics(TopicCatalogue(table.select(SCHEMA.names)), wrong)


def _add_twice(table: pa.Table, wrong: dict[tuple[int, str], tuple[str, str]]) -> None:
    """Refuse topics with rows that differ; rows that are equal say nothing else than one."""
    names = [c.CLUSTER_ID, c.TOPIC]
    table = table.combine_chunks()
    number, _ = numbered([column(table, name) for name in names])
    again = np.bincount(number)[number] > 1 if len(number) else np.zeros(0, np.bool_)
    key = itemgetter(*names)
    rows = table.filter(pa.array(again)).select([*names, c.PARTITION_COUNT, c.RACKS]).to_pylist()
    for (scope, name), same in groupby(sorted(rows, key=key), key):
        variants = [(each[c.PARTITION_COUNT], each[c.RACKS]) for each in same]
        if any(each != variants[0] for each in variants):
            counts = sorted({count for count, _ in variants if count is not None})
            said = f"partition counts {' and '.join(map(str, counts))}" if len(counts) > 1 else "different racks"
            wrong.setdefault(
                (int(scope), name), (GroupCode.TOPIC_TWICE, f"topic {name!r} has {said}; expected one row")
            )
