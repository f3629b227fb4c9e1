"""Rows of members of any table as plain columns: what is missing is null."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.claim_order import user_data_order
from groupledger.core.custom.group import Member, TopicPartition
from groupledger.core.javaorder import hash_utf8
from groupledger.core.registry import STICKY
from groupledger.core.scenario_groups import read_claim
from groupledger.engine.arrow_lists import Column, column, encode, integers, utf8, valid, wire
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.kinds import WIRE, ColumnKind, OwnedLists, as_plain, owned_lists, whole_numbers
from groupledger.engine.rows import by_topic
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.slots import Mask
    from groupledger.engine.memberships.plan import AssignPlan


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
    fields = list(WIRE.value_type)
    numbers = pa.ListArray.from_arrays(
        pa.array(np.arange(len(order) + 1, dtype=np.int32)), pa.array(partition), type=fields[-1].type
    )
    topics = lists.topic.take(pa.array(entry[order]))
    single = pa.StructArray.from_arrays([pa.nulls(len(order), pa.string()), topics, numbers], fields=fields)
    return pa.ListArray.from_arrays(
        pa.array(lists.partition_start.astype(np.int32)), single, type=WIRE, mask=pa.array(~valid(claimed))
    )


def sticky_rows(assignors: Column) -> Mask:
    """Return the members whose assignor reads claims from user data."""
    found: Mask = pc.fill_null(pc.equal(assignors, STICKY.name), False).to_numpy(zero_copy_only=False)
    return found
