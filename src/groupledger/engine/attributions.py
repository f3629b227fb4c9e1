"""Whose algorithm each record of a bucket was, as columns.

Only a record that assignors are asked about becomes Python objects.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged
from groupledger.core.attributable import (
    AttributedTo,
    Judged,
    attributed,
    is_foreign,
    is_javas,
    name_of,
    settled,
    sizes,
    unless_it_ran,
)
from groupledger.core.attributed import Attributed
from groupledger.core.attribution import recorded_round
from groupledger.core.batch import NONE
from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow, as_tuples
from groupledger.core.protocol.handwriting import java_releases
from groupledger.core.verdict import OTHER_RELEASE, Verdict, other_moments, recorded_counts
from groupledger.core.wire.user_data import COOPERATIVE_STICKY, STICKY, STRAY_PREFIX
from groupledger.engine.arrow_lists import Column, assignments, column, integers, whole
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterator

    from groupledger.core.attribution import RecordedRound
    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.rebalance import Rebalances
    from groupledger.core.slots import Mask
    from groupledger.engine.codec import DecodedBucket

SnapshotRow = TypeVar("SnapshotRow", GroupSnapshotRow, MemberSnapshotRow)

GROUP_FIELDS = (c.SNAPSHOT_ID, c.ASSIGNOR, c.LEADER, c.SHARED_TOPICS)
MEMBER_FIELDS = (
    *(c.MEMBER_ORDER, c.MEMBER_ID, c.GROUP_INSTANCE_ID, c.RACK_ID, c.SUBSCRIPTION_VERSION, c.TOPICS),
    *(c.CLAIMED, c.SUBSCRIPTION_GENERATION, c.USER_DATA, c.RECORDED),
)
"""What `recorded_round` reads of a snapshot and its members."""
STICKY_ASSIGNORS = frozenset({STICKY, COOPERATIVE_STICKY})
UNDECIDED = (Attributed.PERHAPS, Attributed.NO_KNOWN_ASSIGNOR, Attributed.TOO_LARGE)
"""Attributions that leave it open which assignor gave a record whose partitions are listed."""
TOGETHER = 100
"""Groups whose rows become Python objects at once."""


class Attributions(NamedTuple):
    """Of G groups: codes of `Attributed`, and a list of names, null where the code says that none applies."""

    code: IntArray
    names: Column


def attributions(decoded: DecodedBucket, result: Rebalances, kind: pa.DataType, *, asks: bool) -> Attributions:
    """Attribute each record; `kind` is the type of the names. What the assignor that ran gives exactly is its own.

    `asks`: ask the assignors of other libraries about the rest, one group at a time: most of the time of a bucket.
    """
    modern = decoded.snapshots.modern
    judged = Judged(
        result.verdict,
        peopled=np.diff(result.party.member_start) > 0,
        modern=modern,
        rejected=decoded.rejections.mask[:-1],
        foreign=_foreign(decoded, (result.verdict == Verdict.EXACT) & ~modern),
    )
    code = settled(judged)
    lists: list[tuple[str, ...]] = [(name_of(name),) for name in decoded.choice.names]
    which = decoded.choice.chosen.copy()
    rows = np.flatnonzero(code == NONE)
    answers = _asked(decoded, result, rows) if asks else _unasked(decoded, result, rows)
    for row, (found, names) in zip(rows.tolist(), answers, strict=True):
        code[row], which[row] = found, len(lists)
        lists.append(names)
    known = code <= Attributed.NO_KNOWN_ASSIGNOR
    return Attributions(code, pa.array(lists, kind).take(pa.array(which, mask=~known)))


def with_releases(decoded: DecodedBucket, verdict: IntArray, attributed: IntArray) -> IntArray:
    """Return the verdicts with `OTHER_RELEASE` for other answers of Java's sticky assignors.

    Those are records that no other library is known to give, of a leader that writes as Java clients do: of releases
    before 3.7.1 the sticky assignors are not computed, and they give other answers. A record of partitions that no
    listing has may be of any release.
    """
    found = verdict.copy()
    among = (verdict == Verdict.VALID_DIFFERENT) & np.isin(attributed, UNDECIDED)
    group, protocol, wrote = _leaders(decoded, among)
    values = (column(wrote, name).to_pylist() for name in (c.SUBSCRIPTION_VERSION, c.USER_DATA))
    for row, name, *said in zip(group.tolist(), protocol.to_pylist(), *values, strict=True):
        if name in STICKY_ASSIGNORS:
            found[row] = OTHER_RELEASE.get(java_releases(name, *said) or "", verdict[row])
    return found


def _leaders(decoded: DecodedBucket, among: Mask) -> tuple[LongArray, Column, pa.Table]:
    """Select the rows of groups that Java's assignor ran for, their protocols, and what their leaders wrote."""
    groups, own, choice = decoded.groups, decoded.members, decoded.choice
    among = among & np.array([is_javas(name) for name in (*choice.names, "")])[choice.chosen]
    group = ragged.owners(decoded.snapshots.batch.member_start)
    leads = pc.equal(column(own, c.MEMBER_ID), column(groups, c.LEADER).take(pa.array(group)))
    rows = np.flatnonzero(pc.fill_null(leads, False).to_numpy(zero_copy_only=False) & among[group])
    wrote = own.select([c.SUBSCRIPTION_VERSION, c.USER_DATA]).take(pa.array(rows)).combine_chunks()
    return group[rows], column(groups, c.ASSIGNOR).take(pa.array(group[rows])), wrote


def _foreign(decoded: DecodedBucket, among: Mask) -> Mask:
    """Select the groups that Java's assignor ran for, and whose leader wrote what Java does not."""
    group, protocol, wrote = _leaders(decoded, among)
    found = np.zeros(len(decoded.groups), np.bool_)
    found[group] = are_foreign(protocol, column(wrote, c.SUBSCRIPTION_VERSION), column(wrote, c.USER_DATA))
    return found


def are_foreign(protocol: Column, version: Column, data: Column) -> Mask:
    """Whether each is what Java does not write, asked once of each that differs.

    Claims of `sticky` all differ, and without kafka-python's prefix they are in Java's form: as good as none.
    """
    claims = pc.and_(pc.equal(protocol, STICKY), pc.greater(pc.binary_length(data), 0))
    claims = pc.and_(claims, pc.invert(pc.starts_with(data, pattern=STRAY_PREFIX)))
    data = pc.if_else(pc.fill_null(claims, False), pa.scalar(None, data.type), data)
    parts = [each.dictionary_encode() for each in (protocol, version, data)]
    codes = np.stack([integers(each.indices, NONE) for each in parts])
    distinct, which = np.unique(codes, axis=1, return_inverse=True)
    texts = [[*each.dictionary.to_pylist(), None] for each in parts]
    told = [is_foreign(*(text[at] for text, at in zip(texts, key, strict=True))) for key in distinct.T.tolist()]
    found: Mask = np.array(told, np.bool_)[which.ravel()]
    return found


def _unasked(decoded: DecodedBucket, result: Rebalances, rows: LongArray) -> Iterator[AttributedTo]:
    """Yield what the verdicts alone say of the records of some groups, in their order."""
    names, chosen = [*decoded.choice.names, None], decoded.choice.chosen
    for row in rows.tolist():
        yield unless_it_ran(Attributed.NOT_ASKED, Verdict(int(result.verdict[row])), names[chosen[row]])


def _asked(decoded: DecodedBucket, result: Rebalances, rows: LongArray) -> Iterator[AttributedTo]:
    """What assignors say of the records of some groups, in their order."""
    if len(rows) == 0:
        return
    topics, topic_group = decoded.snapshots.topics, decoded.snapshots.topic_group
    moments = [topics.now, *other_moments(topics, topic_group, result.subscribed.any(), len(decoded.groups))]
    moments.append(recorded_counts(decoded.snapshots))
    has_view = _has_view(decoded, moments)
    size = sizes(decoded.snapshots, integers(pc.binary_length(column(decoded.members, c.USER_DATA)), 0))
    names, chosen = [*decoded.choice.names, None], decoded.choice.chosen
    protocols = column(decoded.groups, c.ASSIGNOR).take(pa.array(rows)).to_pylist()
    large = np.array([size.too_large(*each) for each in zip(rows.tolist(), protocols, strict=True)], np.bool_)
    snapshots = _snapshots(decoded, rows[~large & has_view[rows]])
    for row, is_large in zip(rows.tolist(), large.tolist(), strict=True):
        verdict, ran = Verdict(int(result.verdict[row])), names[chosen[row]]
        if is_large:
            yield unless_it_ran(Attributed.TOO_LARGE, verdict, ran)
            continue
        if not has_view[row]:
            yield unless_it_ran(Attributed.PARTITIONS_NOT_LISTED, verdict, ran)
            continue
        snapshot, own = next(snapshots)
        if all(member.recorded is None for member in own):
            yield Attributed.NO_RECORD, ()
            continue
        happened = recorded_round(snapshot, own)
        yield attributed(happened, list(_views(decoded, moments, row, happened)), verdict, ran)


def _has_view(decoded: DecodedBucket, moments: list[IntArray]) -> Mask:
    """Tell of each group [G] whether its topics had all recorded partitions at one of the moments (counts [T])."""
    recorded, groups = decoded.snapshots.recorded, len(decoded.groups)
    group = decoded.snapshots.topic_group[recorded.topic]
    missing = [np.bincount(group[recorded.partition >= counts[recorded.topic]], minlength=groups) for counts in moments]
    found: Mask = np.min(missing, axis=0) == 0
    return found


def _snapshots(decoded: DecodedBucket, rows: LongArray) -> Iterator[tuple[GroupSnapshotRow, list[MemberSnapshotRow]]]:
    """Yield groups and their members as the fold made them. They are converted many at a time: one by one is slow."""
    groups, members = decoded.groups.select(GROUP_FIELDS), decoded.members.select(MEMBER_FIELDS)
    start = decoded.snapshots.batch.member_start
    for at in range(0, len(rows), TOGETHER):
        some = rows[at : at + TOGETHER]
        sizes_of = np.diff(start)[some]
        places = np.repeat(start[some] - ragged.starts(sizes_of)[:-1], sizes_of) + np.arange(sizes_of.sum())
        own = iter(_rows(members.take(pa.array(places)), MemberSnapshotRow))
        for snapshot, size in zip(_rows(groups.take(pa.array(some)), GroupSnapshotRow), sizes_of.tolist(), strict=True):
            yield snapshot, list(islice(own, size))


def _rows(table: pa.Table, row: type[SnapshotRow]) -> list[SnapshotRow]:
    """The rows as the fold made them; what is not among the columns is None."""
    unsaid: dict[str, Any] = dict.fromkeys(row._fields)
    table = whole(table)
    values = {name: _values(column(table, name)) for name in table.schema.names}
    return [row(**unsaid | dict(zip(values, each, strict=True))) for each in zip(*values.values(), strict=True)]


def _values(array: Column) -> list[Any]:
    if pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type):
        return assignments(array)
    return [as_tuples(value) for value in array.to_pylist()]


def _views(
    decoded: DecodedBucket, moments: list[IntArray], row: int, happened: RecordedRound
) -> Iterator[dict[str, int]]:
    """The group's topics at each moment: all of them, and those that the record gives partitions of."""
    first, end = decoded.snapshots.batch.topic_start[row : row + 2].tolist()
    names = decoded.topic_names.slice(first, end - first).to_pylist()
    given = {each.topic for mine in happened.recorded.values() for each in mine}
    for counts in moments:
        known = {name: count for name, count in zip(names, counts[first:end].tolist(), strict=True) if count != NONE}
        yield known
        yield {name: count for name, count in known.items() if name in given}
