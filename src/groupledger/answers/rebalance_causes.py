"""Why many rebalances came about: their causes, why members are gone, and where coordinators moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from groupledger.answers.causes import Cause, CauseKind
from groupledger.answers.generations import CLASSIC
from groupledger.answers.queries import group_of, matching, one_of, records, steps
from groupledger.answers.reader import ingest_findings
from groupledger.answers.states import BASELINE, States, states_of
from groupledger.answers.unowned import PATIENCE
from groupledger.core.moments import iso
from groupledger.core.rebalance.findings import BY_RECORDED
from groupledger.core.text import length
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from groupledger.answers.causes import Side
    from groupledger.answers.queries import GroupKey, Query, Reader, Record, Value
    from groupledger.core.wire.records import ClassicGroupMember


GROUPS_ASKED = 100
"""Groups whose results one query asks for: those of a group are ranked, wanted or not."""
QUIET = frozenset({CauseKind.NOT_SHOWN, CauseKind.COORDINATOR_MOVED, CauseKind.FOLLOW_UP})
"""Causes of a rebalance before which nothing changed in the group that the log holds."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """Two states of a group of a cluster, and what led from one to the other; `before` is None where none is known."""

    cluster: str
    before: Side | None
    after: Side
    causes: tuple[Cause, ...]

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that the log holds changed before it."""
        return all(each.kind in QUIET for each in self.causes)


def caused(reader: Reader, rows: Sequence[Record]) -> dict[str, StateChange]:
    """Return the changes that led to rows of `current_group_snapshots`, by snapshot id.

    A row needs cluster_id, group_id, group_type, snapshot_id and previous_snapshot_id.
    """
    names = ((row, row[name]) for row in rows for name in ("previous_snapshot_id", "snapshot_id"))
    both = [{"group_id": row["group_id"], "snapshot_id": name} for row, name in names if name is not None]
    known = states_of(reader, both, given=True)
    known = known.with_results(_results(reader, known))
    changes = []
    for row in rows:
        before, after = known.pair(*group_of(row), row["previous_snapshot_id"], row["snapshot_id"])
        changes.append(StateChange(row["cluster_id"], before, after, known.causes(*group_of(row), before, after)))
    return {each.after.snapshot_id: each for each in with_coordinators(reader, changes)}


def _results(reader: Reader, known: States) -> Iterator[Record]:
    """Return what our own run says of these states, and of others of their groups between them, in few queries."""
    by_group: dict[str, list[datetime]] = {}
    for (_, group, _), side in known.sides.items():
        by_group.setdefault(group, []).append(side.at)
    groups = sorted(by_group)
    for begin in range(0, len(groups), GROUPS_ASKED):
        some = groups[begin : begin + GROUPS_ASKED]
        of_groups, values = one_of("t.group_id", "group", some)
        moments = [at for group in some for at in by_group[group]]
        yield from records(
            reader,
            "SELECT t.cluster_id, t.group_id, t.snapshot_id, t.scenario, t.round, t.follow_up, t.verdict "
            f"FROM current_rebalances t WHERE {of_groups} AND t.scenario = :scenario AND t.round = 1 "
            "AND t.observed_at >= :first AND t.observed_at <= :last",
            **(values | {"scenario": BASELINE, "first": min(moments), "last": max(moments)}),
        )


# Where a group's coordinator moved or restarted between two states, by the leader epochs of record batches.
#
# The coordinator of a group is the leader of the log partition that holds it. Each leader that is elected, the same
# broker after a restart too, has a higher epoch (KIP-101). That alone makes no member join again: it is a possible
# cause, and said only if nothing else differs. `log_records` has no epochs from some sources, and none once they are
# removed.

RECENT = timedelta(minutes=10)
"""A state that follows the change later than this is not said to follow from it: by default, the sessions of members
and a rebalance are over earlier (45 s and 5 min)."""


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """A log partition's leader epoch before and after, with the last known record before and the first one after."""

    log_partition: int
    from_epoch: int
    to_epoch: int
    last_offset: int
    last_at: datetime
    first_offset: int
    first_at: datetime

    @property
    def text(self) -> str:
        """Return what the records show."""
        return (
            f"the leader epoch of log partition {self.log_partition} rose from {self.from_epoch} to {self.to_epoch} "
            f"between offsets {self.last_offset} ({iso(self.last_at)}) and {self.first_offset} ({iso(self.first_at)}), "
            "as it does when the coordinator moves or restarts"
        )


def with_coordinators(reader: Reader, changes: Sequence[StateChange]) -> list[StateChange]:
    """Return the changes; where no difference is shown, a change of the coordinator is a possible cause."""
    unexplained = [any(cause.kind is CauseKind.NOT_SHOWN for cause in each.causes) for each in changes]
    leaders = iter(leader_changes(reader, [each for each, asked in zip(changes, unexplained, strict=True) if asked]))
    return [
        replace(each, causes=with_coordinator(each.causes, next(leaders))) if asked else each
        for each, asked in zip(changes, unexplained, strict=True)
    ]


def with_coordinator(causes: tuple[Cause, ...], change: LeaderChange | None) -> tuple[Cause, ...]:
    """Return the causes, with the change in place of NOT_SHOWN."""
    if change is None:
        return causes
    return tuple(
        replace(each, kind=CauseKind.COORDINATOR_MOVED, what=f"{each.what}; {change.text}", possible=True)
        if each.kind is CauseKind.NOT_SHOWN
        else each
        for each in causes
    )


def leader_changes(reader: Reader, changes: Sequence[StateChange]) -> list[LeaderChange | None]:
    """Return for each the last change of the leader within it; None if there is none, or it is not known."""
    epochs = _epochs(reader, changes)
    return [_change(epochs.get((of.cluster, of.after.log_partition), []), of.before, of.after) for of in changes]


def _epochs(reader: Reader, changes: Iterable[StateChange]) -> dict[tuple[str, int | None], list[Record]]:
    """Return the extent of each leader epoch, by log partition, from the first of the states to the last."""
    extents: dict[tuple[str, int | None], list[int]] = {}
    for each in changes:
        before, after = each.before, each.after
        if before is not None and before.log_partition == after.log_partition is not None:
            extents.setdefault((each.cluster, after.log_partition), []).extend((before.offset, after.offset))
    values: dict[str, Value] = {f"cluster_{number}": cluster for number, (cluster, _) in enumerate(extents)}
    places = " OR ".join(
        f"(t.cluster_id = :cluster_{number} AND t.log_partition = {partition} "
        f"AND t.offset >= {min(offsets)} AND t.offset <= {max(offsets)})"
        for number, ((_, partition), offsets) in enumerate(extents.items())
    )
    if not places:
        return {}
    query = (
        "SELECT t.cluster_id, t.log_partition, t.leader_epoch, min(t.offset) AS first_offset, "
        "max(t.offset) AS last_offset, min(t.timestamp) AS first_at, max(t.timestamp) AS last_at "
        f"FROM current_log_records t WHERE t.leader_epoch IS NOT NULL AND ({places}) "
        "GROUP BY t.cluster_id, t.log_partition, t.leader_epoch ORDER BY 1, 2, 3"
    )
    found: dict[tuple[str, int | None], list[Record]] = {}
    for row in records(reader, query, **values):
        found.setdefault((row["cluster_id"], row["log_partition"]), []).append(row)
    return found


def _change(epochs: Sequence[Record], before: Side | None, after: Side) -> LeaderChange | None:
    """Return the last change up to `after`; None if the epochs do not ascend with the offsets: it is another log."""
    if before is None or any(one["last_offset"] >= two["first_offset"] for one, two in pairwise(epochs)):
        return None
    within = [row for row in epochs if before.offset <= row["last_offset"] and row["first_offset"] <= after.offset]
    if len(within) < 2 or within[0]["first_offset"] > before.offset or within[-1]["last_offset"] < after.offset:
        return None
    old, new = within[-2:]
    if after.at - new["first_at"] > RECENT:
        return None
    return LeaderChange(
        log_partition=new["log_partition"],
        from_epoch=old["leader_epoch"],
        to_epoch=new["leader_epoch"],
        last_offset=old["last_offset"],
        last_at=old["last_at"],
        first_offset=new["first_offset"],
        first_at=new["first_at"],
    )


# Why a member of a classic group is gone, as far as its time-outs show.
#
# A coordinator removes a member that leaves (a client closes, or its poll is later than `max.poll.interval.ms`: it says
# so itself), whose session ends, or that does not join again within the rebalance timeout. What takes longer than the
# time between two records cannot have ended between them. One exception: the session of a member that never took up
# its assignment runs from before the first record.


def with_departures(
    reader: Reader, group: GroupKey, before: Side | None, after: Side, causes: Sequence[Cause]
) -> tuple[Cause, ...]:
    """Say of members that are gone what the time between the two records excludes; the bytes may not be there."""
    gone = {each.about for each in causes if each.kind is CauseKind.MEMBER_GONE}
    if before is None or not gone or {before.group_type, after.group_type} != {CLASSIC}:
        return tuple(causes)
    members = _members(reader, group, before)
    elapsed = after.at - before.at
    return tuple(
        each
        if each.kind is not CauseKind.MEMBER_GONE or each.about not in members
        else replace(each, what=_text(each.what, members[each.about], elapsed))
        for each in causes
    )


def _members(reader: Reader, group: GroupKey, state: Side) -> dict[str | None, ClassicGroupMember]:
    condition, values = matching("t.", cluster_id=group[0], group_id=group[1], offset=state.offset)
    found = records(reader, f"SELECT t.key, t.value FROM current_log_records t WHERE {condition}", **values)
    for key, value in sorted((row["key"], row["value"]) for row in found if row["key"] and row["value"]):
        try:
            record = decode(key, value).value
        except DecodeFault:
            continue
        if isinstance(record, GroupMetadata):
            return {member.member_id: member for member in record.members}
    return {}


def _text(what: str, member: ClassicGroupMember, elapsed: timedelta) -> str:
    session = timedelta(milliseconds=member.session_timeout)
    rebalance = session if member.rebalance_timeout is None else timedelta(milliseconds=member.rebalance_timeout)
    limits = (
        (f"its session of {length(session)}", session),
        (f"the rebalance timeout of {length(rebalance)}", rebalance),
    )
    excluded = [name for name, least in limits if elapsed < least]
    if not excluded:
        return what
    subject = what.partition(" is gone (")[0]
    others = [] if elapsed < session else ["its session ended"]
    others += [] if elapsed < rebalance else ["it did not join again in time"]
    how = " or ".join(["it left", *others])
    since = f"{length(elapsed)} after the record before, {' and '.join(excluded)} cannot have ended"
    return f"{subject} is gone: {how} ({since}, unless it never took up its assignment)"


# Groups that rebalance again and again while nothing that the log holds of their members changes.

RESTLESS = 5
"""Generations in a row before which nothing changed. One follows where a cooperative rebalance withholds partitions,
two where subscriptions differ."""


@dataclass(frozen=True, slots=True)
class Restless:
    """Generations in a row before which nothing changed, none longer than `PATIENCE` after the last.

    `findings`: what else was found in these records, the most frequent first.
    """

    cluster_id: str
    group_id: str
    generations: tuple[Record, ...]
    findings: tuple[tuple[str, int], ...] = ()


def restless(reader: Reader, of_records: Query) -> Iterator[Restless]:
    """Find every such run, in order of cluster, group and offset. Of classic groups: others count epochs."""
    runs, values = _runs(of_records)
    rows = records(reader, f"SELECT * FROM ({runs}) r ORDER BY r.cluster_id, r.group_id, r.offset", **values)
    if not rows:
        return
    causes = caused(reader, rows)
    for (cluster, group, _), of_run in groupby(rows, lambda row: (row["cluster_id"], row["group_id"], row["run"])):
        for quiet, same in groupby(of_run, lambda row: causes[row["snapshot_id"]].is_quiet):
            generations = tuple(same)
            if quiet and len(generations) >= RESTLESS:
                yield Restless(cluster, group, generations, _findings(reader, generations))


def _runs(recorded: Query) -> Query:
    """Select generations in long runs of one number of members, with gaps of no more than `PATIENCE`."""
    of_records, values = recorded
    group = "PARTITION BY g.cluster_id, g.group_id, g.incarnation ORDER BY g.offset"
    query = steps(
        beside="SELECT g.cluster_id, g.group_id, g.group_type, g.members, g.snapshot_id, g.previous_snapshot_id, "
        f"g.number, g.observed_at, g.offset, lag(g.members) OVER ({group}) AS members_before, "
        f"lag(g.observed_at) OVER ({group}) AS at_before FROM ({of_records}) g "
        f"WHERE g.group_type = '{CLASSIC}' AND g.snapshot_kind = 'generation' AND g.members > 0",
        cut="SELECT b.*, CASE WHEN b.members = b.members_before AND b.observed_at <= b.at_before + INTERVAL "
        f"'{int(PATIENCE.total_seconds())} seconds' THEN 0 ELSE 1 END AS begins FROM beside b",
        numbered="SELECT c.*, sum(c.begins) OVER (PARTITION BY c.cluster_id, c.group_id ORDER BY c.offset) AS run "
        "FROM cut c",
        counted="SELECT n.*, count(*) OVER (PARTITION BY n.cluster_id, n.group_id, n.run) AS generations "
        "FROM numbered n",
        long_runs="SELECT k.cluster_id, k.group_id, k.group_type, k.run, k.snapshot_id, k.previous_snapshot_id, "
        f"k.number, k.observed_at, k.offset FROM counted k WHERE k.generations >= {RESTLESS}",
    )
    return query, values


def _findings(reader: Reader, generations: Sequence[Record]) -> tuple[tuple[str, int], ...]:
    """Count the records that have each finding, by its code."""
    cluster, group = generations[0]["cluster_id"], generations[0]["group_id"]
    codes, named = one_of("v.code", "code", BY_RECORDED)
    rows = records(
        reader,
        f"SELECT v.code, count(DISTINCT v.snapshot_id) AS n FROM ({ingest_findings()}) v "
        "WHERE v.cluster_id = :cluster_id AND v.group_id = :group_id AND v.offset >= :begins AND v.offset <= :ends "
        f"AND v.severity <> 'info' AND {codes} GROUP BY v.code",
        cluster_id=cluster,
        group_id=group,
        begins=generations[0]["offset"],
        ends=generations[-1]["offset"],
        **named,
    )
    order = list(BY_RECORDED)
    counted = ((row["code"], row["n"]) for row in rows)
    return tuple(sorted(counted, key=lambda pair: (-pair[1], order.index(pair[0]))))
