"""A bucket's snapshots in waves, so that each can start from what an assignor gave at the one before.

`assign.carried` asks what a group's whole history would have been under an assignor, not what one rebalance would have
been. The snapshots that follow no other are the first wave, those that follow them the second, and so on: the groups of
a bucket are still computed together, one snapshot of each at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.batch import NONE
from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import column, integers, valid, wire_array
from groupledger.engine.bucket_parts import Parts
from groupledger.engine.codec import held_rows
from groupledger.engine.results import refusals
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.rebalance import Rebalances
    from groupledger.engine.arrow_lists import Column
    from groupledger.engine.codec import DecodedBucket


class History:
    """The snapshots of a bucket, computed all at once, or wave by wave where results are `carried` on.

    What is carried on is the target: partitions that a cooperative group withholds have moved by the next event. A
    rewrite of a generation runs no assignor, so its members have what they had. A group whose snapshot was rejected
    goes on from what was recorded there.
    """

    def __init__(self, parts: Parts, *, carried: bool) -> None:
        """Snapshots of which an assignor is not asked start from what was recorded."""
        self._parts = parts
        self._depth = _depth(parts.groups) if carried else np.zeros(len(parts.groups), np.int64)
        self._before: pa.Table | None = None

    @property
    def groups(self) -> pa.Table:
        """All group rows."""
        return self._parts.groups

    def waves(self) -> Iterator[Parts]:
        """The rows of each wave; `go_on` must be told of it before the next."""
        last = int(self._depth.max(initial=0))
        if last == 0:
            yield self._parts
            return
        groups, members, records = self._parts
        owner = integers(pc.index_in(column(members, c.SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID)), NONE)
        depth = np.append(self._depth, 0)[owner]  # of no snapshot here: one before the first
        for wave in range(last + 1):
            rows = groups.take(pa.array(np.flatnonzero(self._depth == wave))).combine_chunks()
            own = members.take(pa.array(np.flatnonzero(depth == wave))).combine_chunks()
            yield Parts(rows, self._beside(rows, own), records if wave == 0 else records.slice(0, 0))

    def go_on(self, parts: Parts, decoded: DecodedBucket, result: Rebalances) -> None:
        """Keep what members have after a wave, for the next one."""
        if int(self._depth.max(initial=0)) == 0:
            return
        place = parts.members.schema.get_field_index(c.RECORDED)
        field = parts.members.schema.field(place)
        topics = {c.TOPIC: decoded.topic_names, c.TOPIC_ID: decoded.topic_ids}
        given = wire_array(result.target, result.slots, topics, _small(field.type)).cast(field.type)
        refused = np.isin(np.arange(len(decoded.groups)), list(refusals(decoded, result)))[result.party.group]
        given = pc.if_else(pa.array(refused), column(decoded.members, c.RECORDED), given)
        kept = decoded.members.set_column(place, field, given)
        computed = column(kept, c.SNAPSHOT_ID) if len(kept) else pa.array([], pa.string())
        rejected = parts.members.filter(pc.invert(pc.is_in(column(parts.members, c.SNAPSHOT_ID), value_set=computed)))
        self._before = pa.concat_tables([kept, rejected]).combine_chunks()

    def _beside(self, groups: pa.Table, own: pa.Table) -> pa.Table:
        """The wave's members and what those before them were given."""
        if self._before is None:
            return own
        kept = pc.is_in(column(self._before, c.SNAPSHOT_ID), value_set=column(groups, c.PREVIOUS_SNAPSHOT_ID))
        before = self._before.filter(kept)
        return pa.concat_tables([_with_rewrites(groups, own, before), before]).combine_chunks()


def _depth(groups: pa.Table) -> LongArray:
    """How many snapshots with an assignor to ask each one follows in this bucket: [G]."""
    before = integers(
        pc.index_in(column(groups, c.PREVIOUS_SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID), skip_nulls=True),
        NONE,
    ).astype(np.int64)
    follows = (before != NONE) & valid(column(groups, r.CHOSEN))
    depth: LongArray = follows.astype(np.int64)
    ancestor = np.where(follows, before, np.arange(len(groups)))
    for _ in range(len(groups).bit_length()):  # each turn looks twice as far back
        depth, ancestor = depth + depth[ancestor], ancestor[ancestor]
    return depth


def _with_rewrites(groups: pa.Table, own: pa.Table, before: pa.Table) -> pa.Table:
    """The wave's members; those of a rewrite are recorded to have what the same member was given before."""
    rewritten = groups.filter(pc.fill_null(pc.equal(column(groups, c.SNAPSHOT_KIND), "rewrite"), False))
    if len(rewritten) == 0:
        return own
    rows = integers(pc.index_in(column(own, c.SNAPSHOT_ID), value_set=column(rewritten, c.SNAPSHOT_ID)), NONE)
    at = np.flatnonzero(rows != NONE)
    everyone = pa.concat_tables([own, before]).combine_chunks()
    found = held_rows(rewritten.combine_chunks(), everyone, own.take(pa.array(at)).combine_chunks(), rows[at])
    held: Column = column(everyone, c.RECORDED).take(found)
    place = own.schema.get_field_index(c.RECORDED)
    spread = np.full(len(own), NONE, np.int64)
    spread[at] = np.arange(len(at))
    again = held.take(pa.array(spread, mask=spread == NONE))
    return own.set_column(place, own.schema.field(place), pc.coalesce(again, column(own, c.RECORDED)))


def _small(kind: pa.DataType) -> pa.DataType:
    """The type with 32-bit offsets, as results are built."""
    entry = [pa.field(each.name, pa.string(), each.nullable) for each in list(kind.value_type)[:-1]]
    numbers = pa.list_(pa.field("element", pa.int32(), nullable=False))
    return pa.list_(pa.field("element", pa.struct([*entry, pa.field(c.PARTITIONS, numbers, False)]), nullable=False))
