"""The history of groups as a person reads it: an entry a rebalance, with its cause and what came of it.

Of a classic group each record is an entry: generations, and rewrites, in which a static member came back. A group that
its coordinator assigns writes many records in an epoch: they are one entry, and one more for each return of a static
member within the epoch (`generations`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import listed
from groupledger.answers.causes import Cause, Moved, with_coordinators
from groupledger.answers.queries import (
    MOST_ASKED,
    GroupKey,
    NamedPartition,
    Reader,
    Record,
    alike,
    by_group,
    first_of,
    from_row,
    group_of,
    is_pattern,
    literal,
    matching,
    one_of,
    records,
)
from groupledger.answers.scope import require_names
from groupledger.answers.states import Difference, baseline, rebalance_states, states
from groupledger.core.moments import iso

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A rebalance in a timeline: what led to `snapshot_id`.

    `began_at` is the time of the first of its `records`, `observed_at` that of `snapshot_id`. `unowned` are partitions
    of subscribed topics that nobody has then; None if that is not known. `gaps`: what the log lacks before it.
    """

    cluster_id: str
    group_id: str
    group_type: str
    incarnation: int
    generation: int | None
    began_at: datetime
    observed_at: datetime
    records: int
    snapshot_id: str
    snapshot_kind: str
    previous_snapshot_id: str | None
    state: str
    assignor: str | None
    members_before: int | None
    members: int
    causes: tuple[Cause, ...]
    moved: tuple[Moved, ...]
    unowned: tuple[NamedPartition, ...] | None
    verdict: str | None
    findings: dict[str, int]
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The newest entries of the groups in a stretch of time, in order; `left_off` older ones are not here.

    None for `since` and `until`: from the beginning, to the end. `notes` say why there is nothing.
    """

    group: str
    since: datetime | None
    until: datetime | None
    entries: tuple[TimelineEntry, ...] = field(metadata=listed(TimelineEntry))
    left_off: int
    notes: tuple[str, ...]


def timeline(
    reader: Reader,
    group: str,
    cluster: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
) -> Timeline:
    """List the rebalances of the group, or of those like it (`payments-*`), between two moments.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP.
    """
    of_cluster, named = matching("t.", cluster_id=cluster), alike("t.group_id", group)
    rows, total = _chosen(reader, f"{of_cluster} AND {named}", since, until, limit)
    if not rows:
        require_names(reader, cluster, group)
        return Timeline(group, since, until, (), 0, (_why_none(reader, f"{of_cluster} AND {named}", group),))
    groups = sorted({row["group_id"] for row in rows})
    if len(groups) <= MOST_ASKED:  # a pattern keeps no group of a view unread
        named = one_of("t.group_id", groups)
    asked = f"{of_cluster} AND {named}"
    ids = {each for row in rows for each in (row["snapshot_id"], row["before_id"]) if each is not None}
    computed = baseline(reader, f"{asked} AND {one_of('t.snapshot_id', sorted(ids))}")
    known = states(reader, asked, ids).with_results(computed).with_given(reader, asked)
    differences = [known.difference(*group_of(row), row["before_id"], row["snapshot_id"]) for row in rows]
    sides = with_coordinators(reader, differences)
    stretches = _stretches(rows, sides)
    begin = f"t.offset >= {min(stretch.start for stretch in stretches)}"
    evidence = "t.code, t.member_id, t.topic, t.partition, t.evidence"
    findings = _Positioned(reader, "current_violations", evidence, f"{asked} AND {begin}")
    of_logs_too = f"{of_cluster} AND ({named} OR t.group_id = '') AND {begin}"
    gaps = _Positioned(reader, "current_coverage", "t.kind, t.reason", of_logs_too)
    entries = [
        _entry(row, differs, findings.within(row, stretch), gaps.within(row, stretch))
        for row, differs, stretch in zip(rows, sides, stretches, strict=True)
    ]
    return Timeline(group, since, until, tuple(_in_order(entries)), total - len(entries), ())


def _stretches(rows: list[Record], sides: list[Difference]) -> list[range]:
    """Return the offsets of each entry: behind the state or the entry before it, up to its own; of a group's last one
    to the last record of its epoch."""
    found: list[range] = []
    for row, differs, before, after in zip(rows, sides, [None, *rows[:-1]], [*rows[1:], None], strict=True):
        behind = -1 if differs.before is None else differs.before.offset
        if before is not None and group_of(before) == group_of(row):
            behind = max(behind, before["offset"])
        is_last = after is None or group_of(after) != group_of(row)
        found.append(range(behind + 1, row["last_offset" if is_last else "offset"] + 1))
    return found


def _entry(row: Record, differs: Difference, findings: list[Record], gaps: list[Record]) -> TimelineEntry:
    return from_row(
        TimelineEntry,
        row,
        generation=row["number"],
        previous_snapshot_id=row["before_id"],
        members_before=None if differs.before is None else len(differs.before.members),
        causes=differs.causes,
        moved=differs.moved,
        unowned=differs.unowned,
        verdict=differs.after.verdict,
        findings=dict(sorted(Counter(each["code"] for each in findings).items())),
        gaps=tuple(f"{each['kind']}: {each['reason']}" for each in gaps),
    )


def _in_order(entries: list[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Sort by time; those of one group by position, whatever its clock says."""
    of_group = attrgetter("cluster_id", "group_id")
    return merge(*(list(some) for _, some in groupby(entries, of_group)), key=attrgetter("began_at"))


class _Positioned:
    """Findings or gaps by group and offset; those without a group are of a whole log partition."""

    def __init__(self, reader: Reader, view: str, columns: str, condition: str) -> None:
        columns = f"t.cluster_id, t.group_id, t.offset, t.snapshot_id, {columns}"
        query = f"SELECT DISTINCT {columns} FROM {view} t WHERE {condition} ORDER BY {columns}"
        self._rows = by_group(records(reader, query))

    def within(self, entry: Record, offsets: range) -> list[Record]:
        """Return the rows of the entry's group and log partition at these offsets."""
        log = entry["snapshot_id"].rpartition("/")[0]
        own = self._of(group_of(entry), offsets)
        of_log = self._of((entry["cluster_id"], ""), offsets) if entry["group_id"] else []
        return own + [row for row in of_log if row["snapshot_id"].rpartition("/")[0] == log]

    def _of(self, group: GroupKey, offsets: range) -> list[Record]:
        rows = self._rows.get(group, [])
        offset = itemgetter("offset")
        return rows[bisect_left(rows, offsets.start, key=offset) : bisect_left(rows, offsets.stop, key=offset)]


def _chosen(
    reader: Reader, asked: str, since: datetime | None, until: datetime | None, limit: int
) -> tuple[list[Record], int]:
    """Return the newest entries, by group and position, and how many there are in all."""
    period, late = "q.represents", "true"
    if since is not None:
        period, late = f"{period} AND q.observed_at >= {literal(since)}", f"t.observed_at >= {literal(since)}"
    if until is not None:
        period += f" AND q.began_at <= {literal(until)}"
    entries = f"SELECT q.* FROM ({rebalance_states(asked, late)}) q WHERE {period}"
    newest = "q.observed_at DESC, q.cluster_id, q.group_id, q.offset DESC"
    rows, total = first_of(reader, entries, newest, limit)
    return sorted(rows[:limit], key=itemgetter("cluster_id", "group_id", "offset")), total


def _why_none(reader: Reader, asked: str, group: str) -> str:
    """Say from when to when the groups are known."""
    bounds = "min(t.observed_at) AS begins, max(t.observed_at) AS ends"
    [row] = records(reader, f"SELECT {bounds} FROM current_group_snapshots t WHERE {asked}")
    which = f"groups like {group}" if is_pattern(group) else group
    return f"nothing in that time: the ledger knows {which} from {iso(row['begins'])} to {iso(row['ends'])}"
