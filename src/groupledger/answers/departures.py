"""Why a member of a classic group is gone, as far as its time-outs tell.

A coordinator removes a member that leaves (a client closes, or its poll is later than `max.poll.interval.ms`: it says
so itself), whose session ends, or that does not join again within the rebalance timeout. What takes longer than the
time between two records cannot have happened between them. One exception: the session of a member that never took up
its assignment runs from before the first record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind
from groupledger.answers.generations import CLASSIC
from groupledger.answers.reader import ingest_findings
from groupledger.answers.rebalance_causes import caused
from groupledger.answers.rows import matching, one_of, records
from groupledger.answers.unowned import PATIENCE
from groupledger.core.rebalance.findings import BY_RECORDED
from groupledger.core.text import length
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata

if TYPE_CHECKING:
    from groupledger.answers.causes import Cause, Side
    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.states import Query
    from groupledger.core.wire.records import ClassicGroupMember


def with_departures(
    reader: Reader, group: tuple[str, str], before: Side | None, after: Side, causes: Sequence[Cause]
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


def _members(reader: Reader, group: tuple[str, str], state: Side) -> dict[str | None, ClassicGroupMember]:
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
    excluded = [
        name
        for name, least in (
            (f"its session of {length(session)}", session),
            (f"the rebalance timeout of {length(rebalance)}", rebalance),
        )
        if elapsed < least
    ]
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
    """Every such run, in order of cluster, group and offset. Of classic groups: others count epochs."""
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
    """Generations in runs of one number of members, with gaps of no more than `PATIENCE`; long runs alone."""
    of_records, values = recorded
    group = "PARTITION BY g.cluster_id, g.group_id, g.incarnation ORDER BY g.offset"
    columns = (
        "g.cluster_id, g.group_id, g.group_type, g.members, g.snapshot_id, g.previous_snapshot_id, g.number, "
        "g.observed_at, g.offset"
    )
    before = f"lag(g.members) OVER ({group}) AS members_before, lag(g.observed_at) OVER ({group}) AS at_before"
    generations = f"g.group_type = '{CLASSIC}' AND g.snapshot_kind = 'generation' AND g.members > 0"
    beside = f"SELECT {columns}, {before} FROM ({of_records}) g WHERE {generations}"
    cut = (
        "SELECT b.*, CASE WHEN b.members = b.members_before AND b.observed_at <= b.at_before + INTERVAL "
        f"'{int(PATIENCE.total_seconds())} seconds' THEN 0 ELSE 1 END AS begins FROM ({beside}) b"
    )
    numbered = (
        "SELECT c.*, sum(c.begins) OVER (PARTITION BY c.cluster_id, c.group_id ORDER BY c.offset) AS run "
        f"FROM ({cut}) c"
    )
    counted = (
        f"SELECT n.*, count(*) OVER (PARTITION BY n.cluster_id, n.group_id, n.run) AS generations FROM ({numbered}) n"
    )
    columns = (
        "k.cluster_id, k.group_id, k.group_type, k.run, k.snapshot_id, k.previous_snapshot_id, k.number, "
        "k.observed_at, k.offset"
    )
    return f"SELECT {columns} FROM ({counted}) k WHERE k.generations >= {RESTLESS}", values


def _findings(reader: Reader, generations: Sequence[Record]) -> tuple[tuple[str, int], ...]:
    """Codes of findings in these records, with the number of records that have each."""
    cluster, group = generations[0]["cluster_id"], generations[0]["group_id"]
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
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
