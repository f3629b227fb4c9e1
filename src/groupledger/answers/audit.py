"""Every recorded rebalance judged: what is wrong, folded by code and group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, starmap
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import CLUSTER, GROUP, WHEN, computed, listed, shown
from groupledger.answers.causes import StateChange, with_coordinators
from groupledger.answers.joins import Takeover, shared_ids, takeovers
from groupledger.answers.queries import (
    CLASSIC,
    CONSUMER,
    MOST_ASKED,
    SHARE,
    GroupKey,
    Reader,
    Record,
    by_group,
    from_row,
    gathered,
    group_of,
    in_parts,
    literal,
    matching,
    of_each,
    of_snapshots,
    of_their_groups,
    one_of,
    records,
    steps,
)
from groupledger.answers.reader import ingest_findings
from groupledger.answers.scope import RequestedScope, Scope, gaps, require_topics, scope, why_empty
from groupledger.answers.states import (
    ASSIGNED,
    BASELINE,
    TARGET,
    MeasuredStates,
    States,
    baseline,
    listings,
    loads,
    measured,
    of_generations,
    states_of,
)
from groupledger.answers.unowned import PATIENCE, Stretch, describe, unowned
from groupledger.core.moments import iso
from groupledger.core.rebalance.findings import (
    BY_CODE,
    BY_RECORDED,
    CLAIM_DIFFERS,
    COPARTITION_BROKEN,
    DOUBLE_OWNED,
    EXCESS_MOVES,
    INVARIANTS,
    NEVER_SETTLES,
    SHARED_INSTANCE_ID,
    STALE_CLAIM,
    UNBALANCED,
    UNOWNED,
    Invariant,
    Severity,
)
from groupledger.core.text import length, stretch

if TYPE_CHECKING:
    from datetime import datetime


GROUPS_ASKED = 100
"""Groups whose results one query asks for: those of a group are ranked, wanted or not."""


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
    moments_of = gathered((group, side.at) for (_, group, _), side in known.sides.items())
    for some in in_parts(sorted(moments_of), GROUPS_ASKED):
        moments = [at for group in some for at in moments_of[group]]
        period = f"t.observed_at >= {literal(min(moments))} AND t.observed_at <= {literal(max(moments))}"
        yield from baseline(reader, f"{one_of('t.group_id', some)} AND {period}")


# Groups that rebalance again and again while nothing that the log holds of their members changes.

RESTLESS = 5
"""Generations in a row before which nothing changed. One follows where a cooperative rebalance withholds partitions,
two where subscriptions differ."""


def restless(reader: Reader, of_records: str) -> Iterator[list[Record]]:
    """Find runs of generations before which nothing changed, none longer than `PATIENCE` after the last.

    In order of cluster, group and offset. Of classic groups: others count epochs.
    """
    rows = records(reader, f"SELECT * FROM ({_runs(of_records)}) r ORDER BY r.cluster_id, r.group_id, r.offset")
    if not rows:
        return
    causes = caused(reader, rows)
    for _, of_run in groupby(rows, lambda row: (*group_of(row), row["run"])):
        for quiet, same in groupby(of_run, lambda row: causes[row["snapshot_id"]].is_quiet):
            generations = list(same)
            if quiet and len(generations) >= RESTLESS:
                yield generations


def lasting(run: Sequence[Record]) -> str:
    """Format as `7 generations in 12.0 s`."""
    return f"{len(run):,} generations in {length(run[-1]['observed_at'] - run[0]['observed_at'])}"


def _runs(of_records: str) -> str:
    """Select generations in long runs of one number of members, with gaps of no more than `PATIENCE`."""
    group = "PARTITION BY g.cluster_id, g.group_id, g.incarnation ORDER BY g.offset"
    return steps(
        beside="SELECT g.cluster_id, g.group_id, g.group_type, g.members, g.snapshot_id, g.previous_snapshot_id, "
        f"g.number, g.observed_at, g.offset, lag(g.members) OVER ({group}) AS members_before, "
        f"lag(g.observed_at) OVER ({group}) AS at_before FROM ({of_records}) g "
        f"WHERE {of_generations('g.')}",
        cut="SELECT b.*, CASE WHEN b.members = b.members_before AND b.observed_at <= b.at_before + INTERVAL "
        f"'{int(PATIENCE.total_seconds())} seconds' THEN 0 ELSE 1 END AS begins FROM beside b",
        numbered="SELECT c.*, sum(c.begins) OVER (PARTITION BY c.cluster_id, c.group_id ORDER BY c.offset) AS run "
        "FROM cut c",
        counted="SELECT n.*, count(*) OVER (PARTITION BY n.cluster_id, n.group_id, n.run) AS generations "
        "FROM numbered n",
        long_runs="SELECT k.cluster_id, k.group_id, k.group_type, k.run, k.snapshot_id, k.previous_snapshot_id, "
        f"k.number, k.observed_at, k.offset FROM counted k WHERE k.generations >= {RESTLESS}",
    )


# What `ingest` found in some records of groups.

JUDGED = one_of("v.code", BY_RECORDED)
"""Findings `v` that an audit counts."""


def findings_in(reader: Reader, runs: Iterable[Sequence[Record]]) -> list[Record]:
    """Count what was found from one end of each run of a group's records to the other, by group, code and member.

    `records`: how many have the code, `n`: how many have it of this member.
    """
    places = []
    for run in runs:
        (cluster, group), ends = group_of(run[0]), sorted((run[0]["offset"], run[-1]["offset"]))
        of_group = matching("v.", cluster_id=cluster, group_id=group)
        places.append(f"({of_group} AND v.offset >= {ends[0]} AND v.offset <= {ends[1]})")
    if not places:
        return []
    query = steps(
        found="SELECT v.cluster_id, v.group_id, v.code, v.member_id, v.snapshot_id "
        f"FROM ({ingest_findings()}) v WHERE {JUDGED} AND v.severity <> '{Severity.INFO.value}' "
        f"AND ({' OR '.join(places)})",
        by_code="SELECT cluster_id, group_id, code, count(DISTINCT snapshot_id) AS records FROM found "
        "GROUP BY cluster_id, group_id, code",
        by_member="SELECT f.cluster_id, f.group_id, f.code, f.member_id, c.records, count(DISTINCT f.snapshot_id) AS n "
        "FROM found f JOIN by_code c ON c.cluster_id = f.cluster_id AND c.group_id = f.group_id AND c.code = f.code "
        "GROUP BY f.cluster_id, f.group_id, f.code, f.member_id, c.records "
        "ORDER BY f.cluster_id, f.group_id, f.code, f.member_id",
    )
    return records(reader, query)


def most_frequent(findings: Iterable[Record]) -> list[tuple[str, int]]:
    """Return how many records of one group have each code, as an audit names it, the most frequent first."""
    counted, order = {row["code"]: row["records"] for row in findings}, list(BY_RECORDED)
    ordered = sorted(counted.items(), key=lambda pair: (-pair[1], order.index(pair[0])))
    return [(BY_RECORDED[code].code, times) for code, times in ordered]


OTHERS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Found:
    """What is wrong with a group's records under one code and severity.

    `records`: how many of them. `evidence` is the worst where there is a measure of it, else the last, of
    `snapshot_id`. `first` and `last` are None where the record is no snapshot, so that its time is not known.
    """

    code: str
    severity: Severity
    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    records: int = field(metadata=shown("records"))
    first: datetime | None
    last: datetime | None
    evidence: str = field(metadata=shown("evidence", detail=True, place=1))
    snapshot_id: str | None

    def next_step(self, where: str = "") -> str:
        """Return the command that shows more of the worst record, and the page; `where`: as `Invariant.next_step`."""
        at = None if self.last is None else iso(self.last)
        return BY_CODE[self.code].next_step(self.group_id, self.cluster_id, self.snapshot_id, at, where)

    @property
    @computed(WHEN)
    def when(self) -> str | None:
        """From the first record to the last."""
        return None if self.first is None or self.last is None else stretch(self.first, self.last)


@dataclass(frozen=True, slots=True)
class Audit:
    """What was judged, and what is wrong with it.

    `records` of `groups` were judged by what they say; `computed` of them also by what `assign` made of them. `notes`
    say what could not be judged, or why nothing was.
    """

    scope: Scope
    records: int
    groups: int
    computed: int
    found: tuple[Found, ...] = field(metadata=listed(Found))
    notes: tuple[str, ...]

    def failing(self, words: frozenset[str]) -> tuple[Found, ...]:
        """Return the findings of these codes and severities."""
        return tuple(each for each in self.found if each.code in words or each.severity in words)


def audit(reader: Reader, asked: RequestedScope, joined: Sequence[str] = ()) -> Audit:
    """Judge all records of a period. `joined`: topics whose partitions of one number belong together.

    Raises Fault: as `scope.scope`; UNKNOWN_TOPIC for one of them.
    """
    within = scope(reader, asked)
    require_topics(reader, joined, asked.cluster)
    with measured(reader, within) as of_period, reader.kept(results(of_period.recorded)) as computed_again:
        number, groups, computed = _judged(reader, of_period, computed_again)
        found = in_order(_found(reader, of_period, computed_again, joined))
    return Audit(within, number, groups, computed, found, tuple(_notes(reader, within, (number, computed), found)))


def _found(reader: Reader, of_period: MeasuredStates, computed: str, joined: Sequence[str]) -> Iterator[Found]:
    within = of_period.within
    yield from recorded_findings(reader, within)
    yield from starmap(_unowned, unowned(reader, of_period))
    yield from _restless(reader, of_period.recorded)
    yield from _shared(shared_ids(takeovers(reader, within, of_period.recorded)))
    yield from unbalanced(reader, of_period)
    yield from excess_moves(reader, computed)
    if joined:
        yield from copartition(reader, of_period, joined)


def _unowned(group: GroupKey, stretches: Sequence[Stretch]) -> Found:
    worst, others = stretches[0], len(stretches) - 1
    text = describe(worst) + (f"; and {others:,} more" if others else "")
    snapshots = {snapshot for each in stretches for snapshot in each.snapshots} or {worst.snapshot_id}
    seen = min(each.since for each in stretches), max(each.until for each in stretches)
    return broken(UNOWNED, group, len(snapshots), seen, text, worst.snapshot_id)


def _restless(reader: Reader, of_records: str) -> Iterator[Found]:
    for group, runs in groupby(restless(reader, of_records), lambda run: group_of(run[0])):
        of_group = list(runs)
        worst = max(of_group, key=len)
        numbers = f"{worst[0]['number']} to {worst[-1]['number']}"
        text = f"{lasting(worst)}, {numbers}, with nothing changed that the log holds"
        others = most_frequent(findings_in(reader, [worst]))[:OTHERS_NAMED]
        if others:
            text += f"; found in them: {', '.join(f'{code} in {n:,}' for code, n in others)}"
        seen = of_group[0][0]["observed_at"], of_group[-1][-1]["observed_at"]
        yield broken(NEVER_SETTLES, group, sum(map(len, of_group)), seen, text, worst[0]["snapshot_id"])


def _shared(found: Iterable[tuple[Sequence[Takeover], str]]) -> Iterator[Found]:
    for of, ids in groupby(found, lambda each: (each[0][0].cluster_id, each[0][0].group_id)):
        shared = list(ids)
        worst, evidence = max(shared, key=lambda each: len(each[0]))
        more = f"; and {len(shared) - 1:,} more ids" if len(shared) > 1 else ""
        every = [each for takeovers_of_id, _ in shared for each in takeovers_of_id]
        seen = min(each.at for each in every), max(each.at for each in every)
        snapshots = {each.snapshot_id for each in every}
        yield broken(SHARED_INSTANCE_ID, of, len(snapshots), seen, evidence + more, worst[-1].snapshot_id)


def _judged(reader: Reader, of_period: MeasuredStates, computed: str) -> tuple[int, int, int]:
    """Count the records of the period, their groups, and the records that a committed `assign` has computed again."""
    groups = "count(DISTINCT concat(s.cluster_id, '/', s.group_id))"
    [counted] = records(reader, f"SELECT count(*) AS n, {groups} AS groups FROM ({of_period.recorded}) s")
    [again] = records(reader, f"SELECT count(*) AS n FROM {computed} r")
    return counted["n"], counted["groups"], again["n"]


def _notes(reader: Reader, within: Scope, judged: tuple[int, int], found: Sequence[Found]) -> Iterator[str]:
    number, computed = judged
    if not number:
        yield why_empty(reader, within)
        return
    if computed < number:
        yield (
            f"{number - computed:,} records are not recomputed: HANDED_OVER_BEFORE_REVOKED, LEFT_OUT and EXCESS_MOVES "
            "are not judged there; run `groupledger assign --snapshots every`"
        )
    if not found:
        yield "nothing is wrong with what could be judged: docs/guides/investigate/audit.md says what that is"
    yield from gaps(reader, within)


# A finding of an audit: one invariant that records of one group break.

_ORDER = {each.code: number for number, each in enumerate(INVARIANTS)}
_GRAVITY = {severity: number for number, severity in enumerate(Severity)}


def broken(
    invariant: Invariant,
    group: GroupKey,
    records: int,
    seen: tuple[datetime, datetime],
    evidence: str,
    snapshot_id: str,
) -> Found:
    """Make a finding with the invariant's own severity; `seen` is the first moment and the last one."""
    return Found(invariant.code, invariant.severity, *group, records, *seen, evidence, snapshot_id)


def in_order(found: Iterable[Found]) -> tuple[Found, ...]:
    """Sort findings: the gravest first, then by code as `core.rebalance.findings` lists them, then the most records."""

    def rank(each: Found) -> tuple[int, int, int, str, str]:
        return _GRAVITY[each.severity], _ORDER[each.code], -each.records, each.cluster_id, each.group_id

    return tuple(sorted(found, key=rank))


# Findings that `ingest` and `assign` wrote down, folded by code, severity and group.
#
# Which results of `assign` count is asked for the snapshots alone that have a finding: ranking all results of a large
# ledger would take its memory.

Key = tuple[str, str, str, str]
"""Cluster, group, code and severity."""


def recorded_findings(reader: Reader, within: Scope) -> Iterator[Found]:
    """Count the records of each code, severity and group, with the evidence of the last.

    Where `ingest` and `assign` say the same of a record, it is counted once, with the evidence of `ingest`, which
    name members. A finding about a record that is no snapshot has no time, and is in every period.
    """
    of_ingest = _folded(reader, within, f"({ingest_findings()})", f"{within.of_groups('v.')} AND {JUDGED}")
    folded = {_key(row): row for row in of_ingest}
    for row in _of_assign(reader, within):
        known = folded.get(_key(row))
        folded[_key(row)] = row if known is None else _together(known, row)
    for row in folded.values():
        code, severity = BY_RECORDED[row["code"]].code, Severity(row["severity"])
        yield from_row(Found, row, code=code, severity=severity, records=max(1, row["records"]))


def _key(row: Record) -> Key:
    return row["cluster_id"], row["group_id"], row["code"], row["severity"]


def _together(one: Record, other: Record) -> Record:
    """Both, counted; the evidence is that of the later one."""
    last = one if one["newest"] >= other["newest"] else other
    moments = [each for each in (one["first"], other["first"], one["last"], other["last"]) if each is not None]
    counted = {"records": one["records"] + other["records"]}
    return last | counted | {"first": min(moments, default=None), "last": max(moments, default=None)}


def _of_assign(reader: Reader, within: Scope) -> Iterator[Record]:
    """Fold what `assign` found by code, severity and group, but for what `ingest` found in the same record."""
    condition = f"{within.of_groups('v.')} AND {JUDGED}"
    found = records(
        reader,
        f"SELECT DISTINCT v.group_id, v.snapshot_id FROM violations v WHERE {condition} "
        f"AND v.scenario = '{BASELINE}' ORDER BY v.group_id, v.snapshot_id",
    )
    for which in of_snapshots("v.", found):
        among = f"{condition} AND {which}"
        said = f"SELECT v.snapshot_id, v.code FROM ({ingest_findings()}) v WHERE {among}"
        known = f"NOT EXISTS (SELECT 1 FROM ({said}) k WHERE k.snapshot_id = v.snapshot_id AND k.code = v.code)"
        of_assign = f"{among} AND v.scenario = '{BASELINE}' AND {known}"
        yield from _folded(reader, within, "current_violations", of_assign)


def _folded(reader: Reader, within: Scope, findings: str, condition: str) -> list[Record]:
    """Fold findings of the period by cluster, group, code and severity; `newest` is the offset of the last."""
    key = "f.cluster_id, f.group_id, f.code, f.severity"
    query = steps(
        found="SELECT v.cluster_id, v.group_id, v.code, v.severity, v.snapshot_id, v.evidence, coalesce(v.offset, -1) "
        f"AS offset, s.observed_at FROM {findings} v LEFT JOIN current_group_snapshots s "
        "ON s.cluster_id = v.cluster_id AND s.group_id = v.group_id AND s.snapshot_id = v.snapshot_id "
        f"WHERE {condition} AND NOT (v.code = '{DOUBLE_OWNED.recorded_as}' AND coalesce(s.group_type, '') = '{SHARE}')",
        ranked=f"SELECT f.*, row_number() OVER (PARTITION BY {key} ORDER BY f.offset DESC, f.evidence) AS place "
        f"FROM found f WHERE f.observed_at IS NULL OR ({within.where('f.')})",
        folded=f"SELECT {key}, count(DISTINCT f.snapshot_id) AS records, min(f.observed_at) AS first, "
        "max(f.observed_at) AS last, max(f.offset) AS newest, max(CASE WHEN f.place = 1 THEN f.evidence END) AS "
        f"evidence, max(CASE WHEN f.place = 1 THEN f.snapshot_id END) AS snapshot_id FROM ranked f GROUP BY {key}",
    )
    return records(reader, query)


# Topics that are joined: whether each member has the same partitions of all of them.


def copartition(reader: Reader, of_period: MeasuredStates, joined: Sequence[str]) -> Iterator[Found]:
    """Find groups in which partitions of one number of these topics are with several members; and unequal counts.

    The log does not say which topics an application joins: somebody has to name them.
    """
    counts = _unequal(reader, of_period.within, joined)
    for group, rows in sorted(by_group(_broken(reader, of_period, joined)).items()):
        worst = max(rows, key=lambda row: (row["apart"], row["offset"]))
        seen = min(row["observed_at"] for row in rows), max(row["observed_at"] for row in rows)
        text = f"{worst['apart']:,} partition numbers of {', '.join(joined)} are with two or more members"
        if group[0] in counts:
            text += f"; their partition counts differ: {counts[group[0]]}"
        yield broken(COPARTITION_BROKEN, group, len(rows), seen, text, worst["snapshot_id"])


def _broken(reader: Reader, of_period: MeasuredStates, joined: Sequence[str]) -> list[Record]:
    """Return records of groups that have partitions of two or more of the topics, with how many numbers are apart."""
    key = "cluster_id, group_id, snapshot_id"
    query = steps(
        entries="SELECT m.cluster_id, m.group_id, m.snapshot_id, m.member_id, unnest(m.recorded) AS entry "
        f"FROM current_member_snapshots m WHERE {of_period.within.of_groups('m.')}",
        places=f"SELECT {key}, member_id, e.entry.topic AS topic, unnest(e.entry.partitions) AS number FROM entries e "
        f"WHERE {one_of('e.entry.topic', joined)}",
        topics=f"SELECT {key}, count(DISTINCT topic) AS topics FROM places GROUP BY {key}",
        owners=f"SELECT {key}, number, count(DISTINCT member_id) AS owners, count(DISTINCT topic) AS topics, "
        f"min(topic) AS a, max(topic) AS z FROM places GROUP BY {key}, number",
        apart="SELECT o.cluster_id, o.group_id, o.snapshot_id, min(o.a) AS a, max(o.z) AS z, "
        "sum(CASE WHEN o.owners > 1 OR o.topics < k.topics THEN 1 ELSE 0 END) AS apart FROM owners o "
        "JOIN topics k ON k.cluster_id = o.cluster_id AND k.group_id = o.group_id AND k.snapshot_id = o.snapshot_id "
        "GROUP BY o.cluster_id, o.group_id, o.snapshot_id",
        broken="SELECT s.cluster_id, s.group_id, s.snapshot_id, s.observed_at, s.offset, cast(a.apart AS BIGINT) AS "
        f"apart FROM ({of_period.recorded}) s JOIN apart a ON a.cluster_id = s.cluster_id AND a.group_id = s.group_id "
        f"AND a.snapshot_id = s.snapshot_id WHERE {ASSIGNED} AND a.apart > 0 AND a.a <> a.z ORDER BY s.offset",
    )
    return records(reader, query)


def _unequal(reader: Reader, within: Scope, joined: Sequence[str]) -> dict[str, str]:
    """Clusters in which the topics have different partition counts now, with the counts in words."""
    rows = records(
        reader,
        f"SELECT l.cluster_id, l.topic, l.partition_count AS n FROM ({listings(within)}) l "
        f"WHERE {one_of('l.topic', joined)} AND l.valid_until IS NULL AND l.partition_count IS NOT NULL "
        "ORDER BY l.cluster_id, l.topic",
    )
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["cluster_id"], {})[row["topic"]] = row["n"]
    unequal = {cluster: counts for cluster, counts in found.items() if len(set(counts.values())) > 1}
    return {of: ", ".join(f"{topic} {number}" for topic, number in counts.items()) for of, counts in unequal.items()}


# Assignments that break what their assignor promises: balance, and no more moves than balance asks for.

BALANCED = ("sticky", "cooperative-sticky", "roundrobin", "uniform")
"""Assignors that give members of one subscription within one partition of each other."""
KEEPING = ("sticky", "cooperative-sticky")
"""Assignors that promise to keep what members have."""
SAME = (
    *("exact", "equal-sets", "exact-older-topics", "exact-newer-topics", "exact-recorded-topics"),
    "topic-unknown-to-leader",
)
"""Verdicts under which the computed target is the recorded one, so that a result's numbers are those of the record."""

PROMISED = f"{one_of('r.verdict', SAME)} AND {one_of('r.assignor', KEEPING)}"
"""That a result `r` is what was recorded, under an assignor that promises to keep what members have."""
CERTAIN = "(r.least_moves_certainty = 'exact' OR (r.least_moves_certainty IS NULL AND s.shared_topics IS NOT NULL))"
"""That the least moves of a result `r` of a snapshot `s` are exact. Rows of older schema versions do not say so: of
these, one subscription for all does."""


def unbalanced(reader: Reader, of_period: MeasuredStates) -> Iterator[Found]:
    """Find settled records of one subscription in which a member has two or more partitions over another."""
    uneven = (
        "SELECT s.*, s.most - CASE WHEN s.owners < s.members THEN 0 ELSE s.least END AS amount "
        f"FROM ({of_period.states}) s WHERE {ASSIGNED} AND s.in_period AND s.shared_topics IS NOT NULL "
        f"AND s.snapshot_kind <> 'rewrite' AND {one_of('s.assignor', BALANCED)} "
        "AND s.fewest = s.greatest AND s.greatest = s.total"
    )
    query = f"SELECT u.* FROM ({uneven}) u WHERE u.amount > 1"
    reached = one_of("v.snapshot_id", _with_what_they_are_to_have(reader, of_period, query))
    settled = f"SELECT v.* FROM ({query}) v WHERE v.state = 'Stable' OR {reached}"
    for row in _folded_balance(reader, settled):
        text = f"a member has {row['most']:,} partitions, another {row['most'] - row['amount']:,}"
        yield _found_balance(UNBALANCED, row, text)


def _with_what_they_are_to_have(reader: Reader, of_period: MeasuredStates, uneven: str) -> list[str]:
    """Return the ids of those of these states, of KIP-848 groups not yet stable, whose members have their targets.

    A record that only says that a member reached the epoch changes nothing, so that no state follows.
    """
    waiting = f"SELECT w.* FROM ({uneven}) w WHERE w.group_type = '{CONSUMER}' AND w.state <> 'Stable' "
    waiting += "AND w.target_epoch = w.number"
    targets = loads(of_period.within, waiting, of=TARGET)
    as_many = (
        f"SELECT b.snapshot_id, b.group_id FROM ({waiting}) b JOIN ({targets}) g ON g.snapshot_id = b.snapshot_id "
        "WHERE g.total = b.total AND g.most = b.most AND g.least = b.least AND g.owners = b.owners ORDER BY 1"
    )
    rows = records(reader, as_many)
    columns = "t.snapshot_id, t.recorded, t.target, t.pending_revocation"
    on_the_way = {
        row["snapshot_id"]
        for row in of_each(reader, columns, "current_member_snapshots", rows)
        if _places(row["recorded"]) != _places(row["target"]) or _places(row["pending_revocation"])
    }
    return [row["snapshot_id"] for row in rows if row["snapshot_id"] not in on_the_way]


def _places(entries: list[Record] | None) -> set[tuple[str, int]]:
    return {(entry["topic_id"], number) for entry in entries or () for number in entry["partitions"]}


def excess_moves(reader: Reader, results: str) -> Iterator[Found]:
    """Classic groups in which more moved than had to. What a coordinator moves is spread over the folds of an epoch.

    Judged where the least moves are exact and ours to compare with: members claimed what they had, and the record is
    what was recomputed. `results`: a table of the rows of `results`.
    """
    moving = f"SELECT r.group_id, r.snapshot_id FROM {results} r WHERE r.moved_more = 1 ORDER BY 1, 2"
    some: list[Record] = []
    for _, of_group in groupby(records(reader, moving), lambda row: row["group_id"]):
        some += of_group
        if len(some) >= MOST_ASKED:
            yield from _excess(reader, some)
            some = []
    if some:
        yield from _excess(reader, some)


def results(of_records: str) -> str:
    """Select the records that a committed `assign` has computed again; `moved_more` is 1 where one moved too much.

    Whether or not that result counts: to rank all results of a large ledger would take its memory. What counts is asked
    for these alone.
    """
    return (
        f"SELECT r.group_id, r.snapshot_id, max(CASE WHEN r.moves > r.least_moves AND {PROMISED} THEN 1 ELSE 0 END) "
        f"AS moved_more FROM (SELECT t.snapshot_id FROM ({of_records}) t) s "
        "JOIN rebalances r ON r.snapshot_id = s.snapshot_id JOIN current_runs a ON a.attempt_id = r.attempt_id "
        f"WHERE r.scenario = '{BASELINE}' GROUP BY r.group_id, r.snapshot_id"
    )


def _excess(reader: Reader, some: list[Record]) -> Iterator[Found]:
    """Find excess moves in these snapshots, which are all there are of their groups."""
    snapshots = one_of("r.snapshot_id", [row["snapshot_id"] for row in some])
    claims = one_of("v.code", [STALE_CLAIM.recorded_as, CLAIM_DIFFERS.recorded_as])
    query = (
        "SELECT r.cluster_id, r.group_id, r.snapshot_id, r.observed_at, s.offset, r.assignor, r.moves AS most, "
        "r.least_moves AS least, r.moves - r.least_moves AS amount FROM current_rebalances r "
        "JOIN current_group_snapshots s ON s.cluster_id = r.cluster_id AND s.group_id = r.group_id "
        f"AND s.snapshot_id = r.snapshot_id WHERE {of_their_groups('r.', some)} AND {snapshots} "
        f"AND r.scenario = '{BASELINE}' AND r.round = 1 AND {PROMISED} AND r.moves > r.least_moves AND {CERTAIN} "
        f"AND s.group_type = '{CLASSIC}' AND NOT EXISTS "
        f"(SELECT 1 FROM ({ingest_findings()}) v WHERE v.cluster_id = r.cluster_id AND v.group_id = r.group_id "
        f"AND v.snapshot_id = r.snapshot_id AND {claims})"
    )
    for row in _folded_balance(reader, query):
        text = f"{row['assignor']} moved {row['most']:,} partitions where {row['least']:,} had to move"
        yield _found_balance(EXCESS_MOVES, row, text)


def _folded_balance(reader: Reader, query: str) -> list[Record]:
    """Return a row per group: how many records, from when to when, and the one with the greatest `amount`."""
    group = "PARTITION BY q.cluster_id, q.group_id"
    counted = (
        f"SELECT q.*, count(*) OVER ({group}) AS records, min(q.observed_at) OVER ({group}) AS first, "
        f"max(q.observed_at) OVER ({group}) AS last, row_number() OVER ({group} ORDER BY q.amount DESC, q.offset DESC) "
        f"AS place FROM ({query}) q"
    )
    return records(reader, f"SELECT * FROM ({counted}) c WHERE c.place = 1")


def _found_balance(invariant: Invariant, row: Record, evidence: str) -> Found:
    seen = row["first"], row["last"]
    return broken(invariant, group_of(row), row["records"], seen, evidence, row["snapshot_id"])
