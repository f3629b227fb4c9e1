"""Members and topics of many groups -> a row a group with its members in it: the rows of a bucket, computed as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged
from groupledger.core.batch import NONE
from groupledger.core.registry import BY_NAME
from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import Column, column, valid, whole
from groupledger.engine.arrow_types import arrow_schema
from groupledger.engine.bucket_parts import Parts
from groupledger.engine.buckets import GROUPS_A_BUCKET
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.kinds import numbered, plain
from groupledger.engine.memberships.members import Members, SentClaims, claims_of, sticky_rows
from groupledger.engine.memberships.results import TYPES, result_rows
from groupledger.engine.memberships.topics import SharedTopics, scope_name, topics_of
from groupledger.engine.memberships.wrong_rows import Faults, of_assignors, of_members, of_topics
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.slots import Mask
    from groupledger.engine.memberships.plan import AssignPlan

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
    keys = {name: _key(column(members, plan.members[name])) for name in plan.by}
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


def _key(array: Column) -> Column:
    return array if array.type == plain(array.type) else array.cast(plain(array.type))


def _scoped(members: pa.Table, topics: pa.Table, plan: AssignPlan, first: LongArray) -> tuple[LongArray, SharedTopics]:
    """Return what each group shares with topics, as a number, and the topics under these numbers."""
    groups = len(first)
    scope, of_topic = np.zeros(groups, np.int64), np.zeros(len(topics), np.int64)
    if plan.join:
        keys, nulls = [], np.zeros(len(topics), np.bool_)
        for name in plan.join:
            ours = _key(column(members, plan.members[name])).take(pa.array(first))
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
    claims = claims_of(members, sticky_rows(assignors.take(pa.array(group))) & usable)
    return Parts(
        _group_rows(assignors, scope, faults),
        _member_rows(members, claims, group, scope, usable),
        INPUT.empty_table().select(r.FIELDS[r.RECORD_ROW]),
    )


def _group_rows(assignors: Column, scope: LongArray, faults: Faults) -> pa.Table:
    groups = len(scope)
    chosen = assignors.dictionary_encode()
    joined = [BY_NAME[name].protocol_name if name in BY_NAME else name for name in chosen.dictionary.to_pylist()]
    told = [faults.get(at, (None, None)) for at in range(groups)]
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
            r.FAULT_CODE: pa.array([code for code, _ in told], pa.string()),
            r.FAULT_MESSAGE: pa.array([message for _, message in told], pa.string()),
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
    fields = [INPUT.field(name) for name in r.FIELDS[kind]]
    columns = [
        values[each.name].cast(each.type) if each.name in values else pa.nulls(length, each.type) for each in fields
    ]
    return pa.table(columns, schema=pa.schema([each.with_nullable(True) for each in fields]))


def result_schema(by: dict[str, pa.DataType]) -> pa.Schema:
    """Return the schema of the result's rows, with these columns of `by`."""
    return pa.schema([*by.items(), *((name, TYPES[name]) for name in d.RESULT_NAMES)])
