"""Computed groups -> rows of `Assigned.result`, and the rounds that each group takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged
from groupledger.core.least_moves import LeastMovesCertainty
from groupledger.core.rebalance import Rebalances
from groupledger.core.scenario import MOST_ROUNDS
from groupledger.engine.arrow_lists import Column, column, list_starts, listed, nulled, wire_array
from groupledger.engine.arrow_types import arrow_type
from groupledger.engine.bucket_parts import Parts
from groupledger.engine.buckets import rebalanced
from groupledger.engine.codec import DecodedBucket
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.kinds import WIRE
from groupledger.engine.results import ResultColumns, refusals
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.slots import Mask
    from groupledger.engine.calculation import Calculation

TYPES = {name: arrow_type(field.dataType) for name, field in d.FIELDS.items()}


def result_rows(parts: Parts, by: dict[str, Column], calculation: Calculation, names: Sequence[str]) -> pa.Table:
    """Compute the groups of a bucket, and what `names` needs of them. `by`: the values of its columns, by group row."""
    decoded, result = rebalanced(parts, calculation)
    computed = ResultColumns(decoded, result, calculation, refusals(decoded, result))
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
        d.MEMBERS_OF_GROUP: _nested(members, starts),
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
    kind = TYPES[d.TO_REVOKE]
    fields = list(kind.value_type)
    lists = nulled(column(members, c.REVOKED), ~cooperative[ragged.owners(starts)])
    begins, entries = list_starts(lists), pc.list_flatten(lists)
    ids = column(members, c.MEMBER_ID).take(pa.array(ragged.owners(begins)))
    values = [ids, *(entries.field(name) for name in (c.TOPIC, c.PARTITIONS))]
    values = [each.cast(field.type) for each, field in zip(values, fields, strict=True)]
    return listed(begins[starts], pa.StructArray.from_arrays(values, fields=fields), kind)


def _nested(members: pa.Table, starts: np.ndarray) -> Column:
    kind = TYPES[d.MEMBERS_OF_GROUP]
    fields = list(kind.value_type)
    values = [column(members, field.name).cast(field.type) for field in fields]
    return listed(starts, pa.StructArray.from_arrays(values, fields=fields), kind)


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
        place = members.schema.get_field_index(name)
        members = members.set_column(place, members.schema.field(place), values)
    rows = decoded.groups.take(pa.array(groups))
    return Parts(rows.combine_chunks(), members.combine_chunks(), decoded.groups.slice(0, 0))
