"""Groups that went from one way of being assigned to another: when, what moved, and whether they got there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Annotated

from groupledger.answers.answer_columns import GROUP, shown
from groupledger.answers.causes import DELETED, CauseKind, assigned_by
from groupledger.answers.owners import owners_of
from groupledger.answers.queries import (
    CLASSIC,
    CONSUMER,
    GroupKey,
    Reader,
    Record,
    group_of,
    literal,
    matching,
    one_of,
    records,
    steps,
)
from groupledger.answers.scope import Ranking, RequestedScope, Scope, limits, scope
from groupledger.answers.states import States, recorded_states, states_of
from groupledger.core.protocol.recorded import REMEMBERING
from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR

if TYPE_CHECKING:
    from datetime import datetime


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
    group_id: str = field(metadata=GROUP)
    end: MigrationEnd = field(metadata=shown("state", text=str))
    first: GroupWay = field(metadata=shown("from", text=str))
    last: GroupWay = field(metadata=shown("to", text=str))
    began: datetime
    ended: datetime
    members: int
    changes: tuple[WayChange, ...]
    both_kinds: tuple[BothKinds, ...]


Migrations = Annotated[
    Ranking[Migration],
    "Those under way first, then the stopped ones, those that went back, and the finished; `total` counts all.",
]


@dataclass(frozen=True, slots=True)
class _Found:
    """A group with its stages and its last state."""

    group: GroupKey
    stages: Sequence[Stage]
    last: Record
    end: MigrationEnd


def migrations(reader: Reader, asked: RequestedScope, limit: int) -> Migrations:
    """Find the groups that are assigned in another way than before, or have members of both kinds.

    Raises as `scope.scope`.
    """
    within = scope(reader, asked)
    found = []
    for group, rows in changing(reader, within):
        of_group = stages(rows)
        if len(of_group) > 1 or any(stage.way.is_mixed for stage in of_group):
            found.append(_Found(group, of_group, rows[-1], _end(of_group, rows[-1])))
    order = list(MigrationEnd)
    found.sort(key=lambda each: (order.index(each.end), -each.stages[-1].at.timestamp(), each.group))
    changes = (stage for each in found[:limit] for stage in each.stages[1:])
    sides = states_of(reader, [row for stage in changes for row in (stage.before, stage.first) if row is not None])
    groups = tuple(_migration(reader, each, sides) for each in found[:limit])
    return Ranking(Migration, within, groups, len(found), limits(reader, within, found, with_members=NONE_CHANGED))


NONE_CHANGED = "every group was assigned in one way all through this period, and none has members of both kinds"


def _end(of_group: Sequence[Stage], last: Record) -> MigrationEnd:
    if of_group[-1].way.is_mixed:
        return MigrationEnd.UNDER_WAY if last["members"] else MigrationEnd.STOPPED
    if len(of_group) > 1 and alike(of_group[0].way, of_group[-1].way):
        return MigrationEnd.WENT_BACK
    return MigrationEnd.FINISHED


def _migration(reader: Reader, found: _Found, sides: States) -> Migration:
    pairs = list(pairwise(found.stages))
    ends = [*(after.at for _, after in pairs), None][1:]
    unowned = _unowned(reader, found.group, pairs[0][1].at) if pairs else []
    changes = tuple(_change(found.group, pair, end, (sides, unowned)) for pair, end in zip(pairs, ends, strict=True))
    emptied = None if found.last["members"] else found.last["observed_at"]
    until = [*(stage.at for stage in found.stages[1:]), emptied]
    both = tuple(
        BothKinds(stage.way, stage.at, end)
        for stage, end in zip(found.stages, until, strict=True)
        if stage.way.is_mixed
    )
    first, last = found.stages[0], found.stages[-1]
    begin = changes[0].at if changes else first.at
    return Migration(
        *(*found.group, found.end, first.way, last.way, begin, last.at),
        members=last.last["members"],
        changes=changes,
        both_kinds=both,
    )


_Stretch = tuple["datetime", "datetime | None"]


def _change(
    group: GroupKey, stage_pair: tuple[Stage, Stage], end: datetime | None, known: tuple[States, Sequence[_Stretch]]
) -> WayChange:
    (before, after), (sides, unowned) = stage_pair, known
    previous = after.before
    previous_id = None if previous is None else previous["snapshot_id"]
    differs = sides.difference(*group, previous_id, after.first["snapshot_id"])
    at = after.at
    lasting = after.way.is_mixed
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


def _unowned(reader: Reader, group: GroupKey, begin: datetime) -> list[_Stretch]:
    """Return stretches from then on in which a partition that had an owner had none; None: to the end of the record."""
    condition = matching("t.", cluster_id=group[0], group_id=group[1])
    owners = owners_of(reader, group, f"{condition} AND t.at >= {literal(begin)}")
    spans = (span for _, of_one in owners for span in of_one)
    return [(span.since, span.until) for span in spans if span.member_id is None and span.since is not None]


# How groups were assigned over time: by whom, under which assignor, and by what kinds of members.
#
# The kind follows from what members did, never from the assignor's name: a member that had partitions and claims some
# when it joins again kept them (cooperative), one that claims none gave them up (eager). In a KIP-848 group, classic
# members are those that brought a subscription of the classic protocol.


class MemberKind(StrEnum):
    """What the members of a state are."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    BOTH_CLASSIC = "eager and cooperative"
    KIP_848 = "KIP-848"
    BOTH_TYPES = "classic and KIP-848"


@dataclass(frozen=True, slots=True)
class GroupWay:
    """How a group is assigned. `kind` is None if no record shows it: nobody who had partitions joined again."""

    group_type: str
    assignor: str | None
    kind: MemberKind | None

    @property
    def is_mixed(self) -> bool:
        """Whether members of both kinds are in it."""
        return self.kind in (MemberKind.BOTH_CLASSIC, MemberKind.BOTH_TYPES)

    def __str__(self) -> str:
        """Format as `range, eager`; `KIP-848 uniform`; `KIP-848 uniform, classic members too`."""
        if self.group_type == CLASSIC:
            return ", ".join(filter(None, (self.assignor, self.kind)))
        named = f"KIP-848 {self.assignor}" if self.assignor is not None else "KIP-848"
        return f"{named}, classic members too" if self.kind is MemberKind.BOTH_TYPES else named


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive states with members that are assigned in one way; `first` and `last` are the first and last of them.

    `before` is the state before the first one, whether it has members or not; None where the record begins. `emptied`:
    the first one without members behind the stage before; None where there is none.
    """

    way: GroupWay
    first: Record
    last: Record
    before: Record | None
    states: int
    emptied: Record | None = None

    @property
    def at(self) -> datetime:
        """When its first state was recorded."""
        at: datetime = self.first["observed_at"]
        return at


def stages(rows: Sequence[Record]) -> list[Stage]:
    """Cut the states of one group into stages. One odd state among cooperative ones is not a stage of its own."""
    found: list[Stage] = []
    before: Record | None = None
    emptied: Record | None = None
    for row in rows:
        if not row["members"]:
            emptied = emptied or row
        else:
            kind = None if row["kind"] is None else MemberKind(row["kind"])
            way = GroupWay(row["group_type"], row["assignor"], kind)
            if found and alike(found[-1].way, way):
                found[-1] = _with(found[-1], row, 1, way)
            else:
                found.append(Stage(way, row, row, before, 1, emptied))
            emptied = None
        before = row
    return _without_slips(found)


def alike(last: GroupWay, way: GroupWay) -> bool:
    """Return whether two ways are one, as far as is known."""
    return _same_but_kind(last, way) and (last.kind is None or way.kind is None or last.kind is way.kind)


def _with(stage: Stage, last: Record, states: int, way: GroupWay) -> Stage:
    """Return the stage with more states, the last of them `last`."""
    known = replace(stage.way, kind=way.kind or stage.way.kind)
    return replace(stage, way=known, last=last, states=stage.states + states)


def _without_slips(found: list[Stage]) -> list[Stage]:
    """Join what a single state parts: a cooperative member that lost its assignment claims nothing once."""
    kept: list[Stage] = []
    for at, stage in enumerate(found):
        last = kept[-1] if kept else None
        if last is None or not _same_but_kind(last.way, stage.way):
            kept.append(stage)
            continue
        after = found[at + 1].way if at + 1 < len(found) else last.way
        slip = last.way.kind is MemberKind.COOPERATIVE and stage.states == 1 and after == last.way
        if slip or stage.way == last.way:
            kept[-1] = _with(last, stage.last, stage.states, last.way)
        else:
            kept.append(stage)
    return kept


def _same_but_kind(one: GroupWay, other: GroupWay) -> bool:
    by_whom = (assigned_by(way.group_type, way.assignor) for way in (one, other))
    return one.group_type == other.group_type and len(set(by_whom)) == 1


def changing(reader: Reader, within: Scope) -> Iterator[tuple[GroupKey, list[Record]]]:
    """Yield the states, in order, of each group that is not assigned in one way all the time.

    `kind` is what the members of a state are, null if no record shows it. The last state before the period is included.
    """
    query = recorded_states(within)
    kinds = f"s.group_type IN ('{CLASSIC}', '{CONSUMER}') AND s.snapshot_kind <> 'rewrite'"
    of_member = "PARTITION BY s.cluster_id, s.group_id, s.incarnation, m.member_id ORDER BY s.offset"
    of_group = "OVER (PARTITION BY t.cluster_id, t.group_id)"
    bounds = ", ".join(
        f"{of}(t.{name}) {of_group} AS {of}_{name}" for name in ("by_whom", "kind") for of in ("min", "max")
    )
    changes = steps(
        claimed="SELECT s.snapshot_id, CASE WHEN m.subscription_version IS NULL THEN 0 ELSE 1 END AS classic, "
        "CASE WHEN cardinality(m.claimed) > 0 THEN 1 ELSE 0 END AS claims, "
        f"CASE WHEN lag(cardinality(m.recorded)) OVER ({of_member}) > 0 THEN 1 ELSE 0 END AS had "
        f"FROM ({query}) s JOIN current_member_snapshots m ON s.cluster_id = m.cluster_id "
        f"AND s.group_id = m.group_id AND s.snapshot_id = m.snapshot_id WHERE {within.of_groups('m.')} AND {kinds}",
        counted="SELECT c.snapshot_id, sum(c.had) AS staying, sum(c.had * c.claims) AS keeping, sum(c.classic) AS "
        "classic FROM claimed c GROUP BY c.snapshot_id",
        of_kinds=_of_kinds(query, kinds),
        bounded=f"SELECT t.*, {bounds} FROM of_kinds t",
        changing="SELECT q.* FROM bounded q WHERE q.min_by_whom <> q.max_by_whom OR q.min_kind <> q.max_kind "
        "OR q.max_kind LIKE '% and %' ORDER BY q.cluster_id, q.group_id, q.offset, q.snapshot_id",
    )
    for group, some in groupby(records(reader, changes), group_of):
        yield group, list(some)


def _of_kinds(query: str, kinds: str) -> str:
    """Select the states with `by_whom` they are assigned, null where they have no members, and the `kind` of these."""
    kind = (
        f"CASE WHEN s.group_type = '{CONSUMER}' AND n.classic > 0 THEN '{MemberKind.BOTH_TYPES}' "
        f"WHEN s.group_type = '{CONSUMER}' AND s.members > 0 THEN '{MemberKind.KIP_848}' "
        f"WHEN coalesce(n.staying, 0) = 0 THEN NULL "
        f"WHEN n.keeping = 0 OR {one_of('s.assignor', sorted(REMEMBERING))} THEN '{MemberKind.EAGER}' "
        f"WHEN n.keeping < n.staying THEN '{MemberKind.BOTH_CLASSIC}' ELSE '{MemberKind.COOPERATIVE}' END"
    )
    columns = (
        "s.cluster_id, s.group_id, s.snapshot_id, s.offset, s.observed_at, s.group_type, s.assignor, s.members, "
        "s.snapshot_kind"
    )
    assignor = f"coalesce(s.assignor, CASE WHEN s.group_type = '{CONSUMER}' THEN '{DEFAULT_ASSIGNOR}' ELSE '' END)"
    by_whom = f"CASE WHEN s.members > 0 THEN concat(s.group_type, ' ', {assignor}) END AS by_whom"
    return (
        f"SELECT {columns}, {by_whom}, {kind} AS kind "
        f"FROM ({query}) s LEFT JOIN counted n ON n.snapshot_id = s.snapshot_id WHERE {kinds}"
    )
