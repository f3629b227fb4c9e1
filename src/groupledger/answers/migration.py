"""Groups that went from one way of being assigned to another: when, what moved, and whether they got there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from groupledger.answers.causes import DELETED, CauseKind
from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.rows import matching, one_of, records
from groupledger.answers.scope import Scope, any_members, gaps, scope, why_empty
from groupledger.answers.states import States, states
from groupledger.answers.ways import GroupWay, Stage, alike, began, changing, is_mixed, stages

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import RequestedScope


class MigrationEnd(StrEnum):
    """What became of a migration."""

    UNDER_WAY = "under way"  # both kinds of members are in the group
    STOPPED = "stopped"  # the group emptied while both were in it
    WENT_BACK = "went back"  # it is assigned as it was at first
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class WayChange:
    """A group that is assigned in another way from `at` on.

    `converted`: by an online conversion to or from KIP-848, while members were in it. `moved` partitions went from one
    member to another in that state, `given` to a member from nobody. `unowned` had nobody in it, or, where members of
    both kinds are in the group from then on, while that lasted; the longest for `unowned_seconds`, and `still_unowned`
    of them to the end. `empty_seconds`: how long nobody was in the group before, None where somebody was; at most so
    long, unless `empty_is_known`: the record of the moment at which it emptied is there.
    """

    at: datetime
    snapshot_id: str
    before: GroupWay
    after: GroupWay
    moved: int
    given: int
    unowned: int
    unowned_seconds: float | None
    still_unowned: int
    empty_seconds: float | None
    empty_is_known: bool
    converted: bool


@dataclass(frozen=True, slots=True)
class BothKinds:
    """A stretch in which members of both kinds were in a group. `until` is None where that is so at the end."""

    way: GroupWay
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Migration:
    """The changes of one group in a period, in order; `first` and `last` are how it was assigned before and after."""

    cluster_id: str
    group_id: str
    end: MigrationEnd
    first: GroupWay
    last: GroupWay
    began: datetime
    ended: datetime
    members: int
    changes: tuple[WayChange, ...]
    both_kinds: tuple[BothKinds, ...]


@dataclass(frozen=True, slots=True)
class Migrations:
    """Those under way first, then the stopped ones, those that went back, and the finished; `total` counts all."""

    scope: Scope
    groups: tuple[Migration, ...]
    total: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """A group with its stages and its last state."""

    group: tuple[str, str]
    stages: Sequence[Stage]
    last: Record
    end: MigrationEnd


def migrations(reader: Reader, asked: RequestedScope, limit: int) -> Migrations:
    """Find the groups that are assigned in another way than before, or have members of both kinds.

    Raises as `scope.scope`.
    """
    within = scope(reader, asked)
    found = [each for group, rows in changing(reader, within) for each in _found(group, rows)]
    order = list(MigrationEnd)
    found.sort(key=lambda each: (order.index(each.end), -began(each.stages[-1]).timestamp(), each.group))
    shown = found[:limit]
    sides = _sides(reader, shown)
    groups = tuple(_migration(reader, each, sides) for each in shown)
    notes = (() if found else (_why_none(reader, within),)) + gaps(reader, within)
    return Migrations(within, groups, len(found), notes)


def _found(group: tuple[str, str], rows: Sequence[Record]) -> Iterator[_Found]:
    """The group, if it has several stages or members of both kinds."""
    of_group = stages(rows)
    if len(of_group) > 1 or any(is_mixed(stage.way) for stage in of_group):
        yield _Found(group, of_group, rows[-1], _end(of_group, rows[-1]))


def _end(of_group: Sequence[Stage], last: Record) -> MigrationEnd:
    if is_mixed(of_group[-1].way):
        return MigrationEnd.UNDER_WAY if last["members"] else MigrationEnd.STOPPED
    if len(of_group) > 1 and alike(of_group[0].way, of_group[-1].way):
        return MigrationEnd.WENT_BACK
    return MigrationEnd.FINISHED


def _sides(reader: Reader, found: Sequence[_Found]) -> States:
    """The states at which groups changed, and those before."""
    wanted: dict[str, str] = {}
    for each in found:
        for stage in each.stages[1:]:
            for row in (stage.before, stage.first):
                if row is not None:
                    wanted[row["snapshot_id"]] = each.group[1]
    ids, read = list(wanted), States({}, {})
    for begin in range(0, len(ids), MOST_ASKED):
        some = ids[begin : begin + MOST_ASKED]
        of_groups, values = one_of("t.group_id", "group", sorted({wanted[each] for each in some}))
        read = read.with_more(states(reader, of_groups, values, some, computed=False))
    return read


def _migration(reader: Reader, found: _Found, sides: States) -> Migration:
    cluster, group = found.group
    pairs = list(pairwise(found.stages))
    ends = [*(began(after) for _, after in pairs), None][1:]
    unowned = _unowned(reader, found.group, began(pairs[0][1])) if pairs else []
    changes = tuple(_change(found.group, pair, end, (sides, unowned)) for pair, end in zip(pairs, ends, strict=True))
    emptied = None if found.last["members"] else found.last["observed_at"]
    until = [*(began(stage) for stage in found.stages[1:]), emptied]
    both = tuple(
        BothKinds(stage.way, began(stage), end)
        for stage, end in zip(found.stages, until, strict=True)
        if is_mixed(stage.way)
    )
    first, last = found.stages[0], found.stages[-1]
    begin = changes[0].at if changes else began(first)
    return Migration(
        *(cluster, group, found.end, first.way, last.way, begin, began(last)),
        members=last.last["members"],
        changes=changes,
        both_kinds=both,
    )


_Stretch = tuple["datetime", "datetime | None"]


def _change(
    group: tuple[str, str],
    stage_pair: tuple[Stage, Stage],
    end: datetime | None,
    known: tuple[States, Sequence[_Stretch]],
) -> WayChange:
    (before, after), (sides, unowned) = stage_pair, known
    previous = after.before
    previous_id = None if previous is None else previous["snapshot_id"]
    differs = sides.difference(*group, previous_id, after.first["snapshot_id"])
    at = began(after)
    lasting = is_mixed(after.way)
    stretches = [
        each for each in unowned if each[0] == at or (lasting and at < each[0] and (end is None or each[0] < end))
    ]
    longest = max(((until - since).total_seconds() for since, until in stretches if until is not None), default=None)
    emptied = after.emptied
    if emptied is not None and emptied["snapshot_kind"] == DELETED:  # it emptied after the last state with members
        emptied = before.last
    return WayChange(
        at,
        after.first["snapshot_id"],
        before.way,
        after.way,
        moved=sum(each.from_member_id is not None and each.to_member_id is not None for each in differs.moved),
        given=sum(each.from_member_id is None for each in differs.moved),
        unowned=len(stretches),
        unowned_seconds=longest,
        still_unowned=sum(until is None for _, until in stretches),
        empty_seconds=None if emptied is None else (at - emptied["observed_at"]).total_seconds(),
        empty_is_known=emptied is not None and emptied is after.emptied,
        converted=any(cause.kind is CauseKind.CONVERTED for cause in differs.causes),
    )


def _unowned(reader: Reader, group: tuple[str, str], begin: datetime) -> list[_Stretch]:
    """Stretches from then on in which a partition that had an owner had none; None: to the end of the record."""
    condition, values = matching("t.", cluster_id=group[0], group_id=group[1])
    rows = records(
        reader,
        "SELECT coalesce(t.topic, t.topic_id) AS topic, t.partition, t.at, t.to_member_id "
        f"FROM current_ownership_changes t WHERE {condition} AND t.at >= :begin ORDER BY t.offset, t.to_member_id",
        begin=begin,
        **values,
    )
    found: list[_Stretch] = []
    running: dict[tuple[str, int], datetime] = {}
    for row in rows:
        place = row["topic"], row["partition"]
        if row["to_member_id"] is None:
            running.setdefault(place, row["at"])
        elif place in running:
            found.append((running.pop(place), row["at"]))
    return [*found, *((since, None) for since in running.values())]


def _why_none(reader: Reader, within: Scope) -> str:
    if any_members(reader, within):
        return "every group was assigned in one way all through this period, and none has members of both kinds"
    return why_empty(reader, within)
