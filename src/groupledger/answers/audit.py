"""Every recorded rebalance judged: what is wrong, folded by code and group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.columns import CLUSTER, GROUP, WHEN, computed, listed, shown
from groupledger.answers.departures import restless
from groupledger.answers.generations import CLASSIC
from groupledger.answers.joins import SharedId, shared_ids, takeovers
from groupledger.answers.names import require_topics
from groupledger.answers.reader import ingest_findings
from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.rows import one_of, records
from groupledger.answers.scope import Scope, gaps, scope, why_empty
from groupledger.answers.states import ASSIGNED, BASELINE, CONSUMER, SHARE, TARGET, Query, listings, loads, measured
from groupledger.answers.unowned import UnownedGroup, told, unowned
from groupledger.core.rebalance.findings import (
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
    Severity,
)
from groupledger.core.text import length, stretch

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.answers.scope import RequestedScope
    from groupledger.answers.states import MeasuredStates
    from groupledger.core.rebalance.findings import Invariant


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
        """Findings of these codes and severities."""
        return tuple(each for each in self.found if each.code in words or each.severity in words)


def audit(reader: Reader, asked: RequestedScope, joined: Sequence[str] = ()) -> Audit:
    """Judge all records of a period. `joined`: topics whose partitions of one number belong together.

    Raises Fault: as `scope.scope`; UNKNOWN_TOPIC for one of them.
    """
    within = scope(reader, asked)
    require_topics(reader, joined, asked.cluster)
    with measured(reader, within) as of_period:
        query, values = results(of_period.recorded)
        with reader.kept(query, **values) as computed_again:
            number, groups, computed = _judged(reader, of_period, computed_again)
            found = in_order(_found(reader, of_period, computed_again, joined))
    return Audit(within, number, groups, computed, found, tuple(_notes(reader, within, (number, computed), found)))


def _found(reader: Reader, of_period: MeasuredStates, computed: str, joined: Sequence[str]) -> Iterator[Found]:
    within = of_period.within
    yield from recorded_findings(reader, within)
    yield from map(_unowned, unowned(reader, of_period))
    yield from _restless(reader, of_period.recorded)
    yield from _shared(shared_ids(takeovers(reader, within, of_period.recorded)))
    yield from unbalanced(reader, of_period)
    yield from excess_moves(reader, computed)
    if joined:
        yield from copartition(reader, of_period, joined)


def _unowned(of: UnownedGroup) -> Found:
    worst = of.stretches[0]
    others = len(of.stretches) - 1
    text = told(worst) + (f"; and {others:,} more" if others else "")
    snapshots = {snapshot for each in of.stretches for snapshot in each.snapshots} or {worst.snapshot_id}
    seen = min(each.since for each in of.stretches), max(each.until for each in of.stretches)
    return broken(UNOWNED, (of.cluster_id, of.group_id), len(snapshots), seen, text, worst.snapshot_id)


def _restless(reader: Reader, of_records: Query) -> Iterator[Found]:
    for group, runs in groupby(restless(reader, of_records), lambda run: (run.cluster_id, run.group_id)):
        of_group = list(runs)
        worst = max(of_group, key=lambda run: len(run.generations))
        first, last = worst.generations[0], worst.generations[-1]
        text = (
            f"{len(worst.generations):,} generations in {length(last['observed_at'] - first['observed_at'])}, "
            f"{first['number']} to {last['number']}, with nothing changed that the log holds"
        )
        if worst.findings:
            named = ", ".join(f"{_audited(code)} in {number:,}" for code, number in worst.findings[:OTHERS_NAMED])
            text += f"; found in them: {named}"
        seen = of_group[0].generations[0]["observed_at"], of_group[-1].generations[-1]["observed_at"]
        number = sum(len(run.generations) for run in of_group)
        yield broken(NEVER_SETTLES, group, number, seen, text, first["snapshot_id"])


def _audited(code: str) -> str:
    return BY_RECORDED[code].code if code in BY_RECORDED else code


def _shared(found: Iterator[SharedId]) -> Iterator[Found]:
    def group(each: SharedId) -> tuple[str, str]:
        return each.takeovers[0].cluster_id, each.takeovers[0].group_id

    for of, ids in groupby(found, group):
        shared = list(ids)
        worst = max(shared, key=lambda each: len(each.takeovers))
        more = f"; and {len(shared) - 1:,} more ids" if len(shared) > 1 else ""
        moments = [each.at for one in shared for each in one.takeovers]
        snapshots = {each.snapshot_id for one in shared for each in one.takeovers}
        last = worst.takeovers[-1].snapshot_id
        seen = min(moments), max(moments)
        yield broken(SHARED_INSTANCE_ID, of, len(snapshots), seen, worst.evidence + more, last)


def _judged(reader: Reader, of_period: MeasuredStates, computed: str) -> tuple[int, int, int]:
    """Records of the period, their groups, and how many of them a committed `assign` has computed again."""
    of_records, _ = of_period.recorded
    [counted] = records(
        reader,
        f"SELECT count(*) AS n, count(DISTINCT concat(s.cluster_id, '/', s.group_id)) AS groups FROM ({of_records}) s",
    )
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
    group: tuple[str, str],
    records: int,
    seen: tuple[datetime, datetime],
    evidence: str,
    snapshot_id: str,
) -> Found:
    """A finding with the invariant's own severity; `seen` is the first moment and the last one."""
    return Found(invariant.code, invariant.severity, *group, records, *seen, evidence, snapshot_id)


def in_order(found: Iterable[Found]) -> tuple[Found, ...]:
    """The gravest first, then by code as `core.rebalance.findings` lists them, then the most records."""
    return tuple(
        sorted(
            found,
            key=lambda each: (
                _GRAVITY[each.severity],
                _ORDER[each.code],
                -each.records,
                each.cluster_id,
                each.group_id,
            ),
        )
    )


# Findings that `ingest` and `assign` wrote down, folded by code, severity and group.
#
# Which results of `assign` count is asked for the snapshots alone that have a finding: ranking all results of a large
# ledger would take its memory.

Key = tuple[str, str, str, str]
"""Cluster, group, code and severity."""


def recorded_findings(reader: Reader, within: Scope) -> Iterator[Found]:
    """Of each code, severity and group: how many records have it, and the evidence of the last.

    Where `ingest` and `assign` say the same of a record, it is counted once and told in the words of `ingest`, which
    name members. A finding about a record that is no snapshot has no time, and is in every period.
    """
    folded = {_key(row): row for row in _of_ingest(reader, within)}
    for row in _of_assign(reader, within):
        known = folded.get(_key(row))
        folded[_key(row)] = row if known is None else _together(known, row)
    for row in folded.values():
        yield Found(
            BY_RECORDED[row["code"]].code,
            Severity(row["severity"]),
            row["cluster_id"],
            row["group_id"],
            max(1, row["records"]),
            row["first"],
            row["last"],
            row["evidence"],
            row["snapshot_id"],
        )


def _key(row: Record) -> Key:
    return row["cluster_id"], row["group_id"], row["code"], row["severity"]


def _together(one: Record, other: Record) -> Record:
    """Both, counted; the evidence is that of the later one."""
    last = one if one["newest"] >= other["newest"] else other
    moments = [each for each in (one["first"], other["first"], one["last"], other["last"]) if each is not None]
    counted = {"records": one["records"] + other["records"]}
    return last | counted | {"first": min(moments, default=None), "last": max(moments, default=None)}


def _of_ingest(reader: Reader, within: Scope) -> list[Record]:
    condition, values = within.of_groups("v.")
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
    return _folded(reader, within, f"({ingest_findings()})", f"{condition} AND {codes}", values | named)


def _of_assign(reader: Reader, within: Scope) -> Iterator[Record]:
    """The same of what `assign` found, but for what `ingest` found in the same record."""
    condition, values = within.of_groups("v.")
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
    told = records(
        reader,
        f"SELECT DISTINCT v.group_id, v.snapshot_id FROM violations v WHERE {condition} AND {codes} "
        "AND v.scenario = :scenario ORDER BY v.group_id, v.snapshot_id",
        scenario=BASELINE,
        **(values | named),
    )
    for begin in range(0, len(told), MOST_ASKED):
        some = told[begin : begin + MOST_ASKED]
        which, ids = one_of("v.snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
        groups, of_groups = one_of("v.group_id", "group", sorted({row["group_id"] for row in some}))
        among = f"{condition} AND {codes} AND {groups} AND {which}"
        said = f"SELECT v.snapshot_id, v.code FROM ({ingest_findings()}) v WHERE {among}"
        known = f"NOT EXISTS (SELECT 1 FROM ({said}) k WHERE k.snapshot_id = v.snapshot_id AND k.code = v.code)"
        also = values | named | ids | of_groups | {"scenario": BASELINE}
        yield from _folded(
            reader, within, "current_violations", f"{among} AND v.scenario = :scenario AND {known}", also
        )


def _folded(reader: Reader, within: Scope, findings: str, condition: str, values: Mapping[str, Value]) -> list[Record]:
    """These findings of the period by cluster, group, code and severity; `newest` is the offset of the last."""
    period, of_times = within.where("f.")
    key = "f.cluster_id, f.group_id, f.code, f.severity"
    found = (
        "SELECT v.cluster_id, v.group_id, v.code, v.severity, v.snapshot_id, v.evidence, coalesce(v.offset, -1) AS "
        f"offset, s.observed_at FROM {findings} v LEFT JOIN current_group_snapshots s "
        "ON s.cluster_id = v.cluster_id AND s.group_id = v.group_id AND s.snapshot_id = v.snapshot_id "
        f"WHERE {condition} AND NOT (v.code = '{DOUBLE_OWNED.recorded_as}' "
        f"AND coalesce(s.group_type, '') = '{SHARE}')"
    )
    ranked = (
        f"SELECT f.*, row_number() OVER (PARTITION BY {key} ORDER BY f.offset DESC, f.evidence) AS place "
        f"FROM ({found}) f WHERE f.observed_at IS NULL OR ({period})"
    )
    return records(
        reader,
        f"SELECT {key}, count(DISTINCT f.snapshot_id) AS records, min(f.observed_at) AS first, max(f.observed_at) AS "
        "last, max(f.offset) AS newest, max(CASE WHEN f.place = 1 THEN f.evidence END) AS evidence, "
        f"max(CASE WHEN f.place = 1 THEN f.snapshot_id END) AS snapshot_id FROM ({ranked}) f GROUP BY {key}",
        **(dict(values) | of_times),
    )


# Topics that are joined: whether each member has the same partitions of all of them.


def copartition(reader: Reader, of_period: MeasuredStates, joined: Sequence[str]) -> Iterator[Found]:
    """Groups that have partitions of these topics, not all of one number with one member; and unequal counts.

    The log does not say which topics an application joins: somebody has to name them.
    """
    by_group: dict[tuple[str, str], list[Record]] = {}
    for row in _broken(reader, of_period, joined):
        by_group.setdefault((row["cluster_id"], row["group_id"]), []).append(row)
    counts = _unequal(reader, of_period.within, joined)
    for group, rows in sorted(by_group.items()):
        worst = max(rows, key=lambda row: (row["apart"], row["offset"]))
        seen = min(row["observed_at"] for row in rows), max(row["observed_at"] for row in rows)
        text = f"{worst['apart']:,} partition numbers of {', '.join(joined)} are with two or more members"
        if group[0] in counts:
            text += f"; their partition counts differ: {counts[group[0]]}"
        yield broken(COPARTITION_BROKEN, group, len(rows), seen, text, worst["snapshot_id"])


def _broken(reader: Reader, of_period: MeasuredStates, joined: Sequence[str]) -> list[Record]:
    """Records of groups that have partitions of two or more of the topics, with how many numbers are apart."""
    of_records, _ = of_period.recorded
    condition, values = of_period.within.of_groups("m.")
    among, named = one_of("e.entry.topic", "topic", list(joined))
    entries = (
        "SELECT m.cluster_id, m.group_id, m.snapshot_id, m.member_id, unnest(m.recorded) AS entry "
        f"FROM current_member_snapshots m WHERE {condition}"
    )
    places = (
        "SELECT e.cluster_id, e.group_id, e.snapshot_id, e.member_id, e.entry.topic AS topic, "
        f"unnest(e.entry.partitions) AS number FROM ({entries}) e WHERE {among}"
    )
    topics = (
        f"SELECT k.cluster_id, k.group_id, k.snapshot_id, count(DISTINCT k.topic) AS topics FROM ({places}) k "
        "GROUP BY k.cluster_id, k.group_id, k.snapshot_id"
    )
    owners = (
        "SELECT p.cluster_id, p.group_id, p.snapshot_id, p.number, count(DISTINCT p.member_id) AS owners, "
        "count(DISTINCT p.topic) AS topics, min(p.topic) AS a, max(p.topic) AS z "
        f"FROM ({places}) p GROUP BY p.cluster_id, p.group_id, p.snapshot_id, p.number"
    )
    apart = (
        "SELECT o.cluster_id, o.group_id, o.snapshot_id, min(o.a) AS a, max(o.z) AS z, "
        f"sum(CASE WHEN o.owners > 1 OR o.topics < k.topics THEN 1 ELSE 0 END) AS apart FROM ({owners}) o "
        f"JOIN ({topics}) k ON k.cluster_id = o.cluster_id AND k.group_id = o.group_id "
        "AND k.snapshot_id = o.snapshot_id GROUP BY o.cluster_id, o.group_id, o.snapshot_id"
    )
    return records(
        reader,
        f"SELECT s.cluster_id, s.group_id, s.snapshot_id, s.observed_at, s.offset, cast(a.apart AS BIGINT) AS apart "
        f"FROM ({of_records}) s JOIN ({apart}) a ON a.cluster_id = s.cluster_id AND a.group_id = s.group_id "
        f"AND a.snapshot_id = s.snapshot_id WHERE {ASSIGNED} AND a.apart > 0 AND a.a <> a.z ORDER BY s.offset",
        **values,
        **named,
    )


def _unequal(reader: Reader, within: Scope, joined: Sequence[str]) -> dict[str, str]:
    """Clusters in which the topics have different partition counts now, with the counts in words."""
    query, values = listings(within)
    among, named = one_of("l.topic", "topic", list(joined))
    rows = records(
        reader,
        f"SELECT l.cluster_id, l.topic, l.partition_count AS n FROM ({query}) l WHERE {among} "
        "AND l.valid_until IS NULL AND l.partition_count IS NOT NULL ORDER BY l.cluster_id, l.topic",
        **values,
        **named,
    )
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["cluster_id"], {})[row["topic"]] = row["n"]
    return {
        cluster: ", ".join(f"{topic} {number}" for topic, number in counts.items())
        for cluster, counts in found.items()
        if len(set(counts.values())) > 1
    }


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

CERTAIN = "(r.least_moves_certainty = 'exact' OR (r.least_moves_certainty IS NULL AND s.shared_topics IS NOT NULL))"
"""That the least moves of a result `r` of a snapshot `s` are exact. Rows of older schema versions do not say so: of
these, one subscription for all does."""


def unbalanced(reader: Reader, of_period: MeasuredStates) -> Iterator[Found]:
    """Groups with a settled record of one subscription in which a member has two or more partitions over another."""
    among, named = one_of("s.assignor", "assignor", list(BALANCED))
    uneven = (
        "SELECT s.*, s.most - CASE WHEN s.owners < s.members THEN 0 ELSE s.least END AS amount "
        f"FROM ({of_period.states}) s WHERE {ASSIGNED} AND s.in_period AND s.shared_topics IS NOT NULL "
        f"AND s.snapshot_kind <> 'rewrite' AND {among} AND s.fewest = s.greatest AND s.greatest = s.total"
    )
    query = f"SELECT u.* FROM ({uneven}) u WHERE u.amount > 1"
    reached, ids = one_of("v.snapshot_id", "reached", _with_what_they_are_to_have(reader, of_period, (query, named)))
    settled = f"SELECT v.* FROM ({query}) v WHERE v.state = 'Stable' OR {reached}"
    for row in _folded_balance(reader, settled, named | ids):
        least = row["most"] - row["amount"]
        yield _found_balance(UNBALANCED, row, f"a member has {row['most']:,} partitions, another {least:,}")


def _with_what_they_are_to_have(reader: Reader, of_period: MeasuredStates, uneven: Query) -> list[str]:
    """Of these states of KIP-848 groups that are not yet stable: the ids of those whose members have their targets.

    A record that only says that a member reached the epoch changes nothing, so that no state follows.
    """
    query, values = uneven
    waiting = f"SELECT w.* FROM ({query}) w WHERE w.group_type = '{CONSUMER}' AND w.state <> 'Stable' "
    waiting += "AND w.target_epoch = w.number"
    targets = loads(of_period.within, waiting, of=TARGET)
    as_many = (
        f"SELECT b.snapshot_id, b.group_id FROM ({waiting}) b JOIN ({targets}) g ON g.snapshot_id = b.snapshot_id "
        "WHERE g.total = b.total AND g.most = b.most AND g.least = b.least AND g.owners = b.owners ORDER BY 1"
    )
    rows = records(reader, as_many, **(values | of_period.within.of_groups("m.")[1]))
    found: list[str] = []
    for begin in range(0, len(rows), MOST_ASKED):
        found += _reached(reader, rows[begin : begin + MOST_ASKED])
    return found


def _reached(reader: Reader, some: list[Record]) -> Iterator[str]:
    """The ids of those of these snapshots in which every member has exactly its target."""
    snapshots, ids = one_of("m.snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
    groups, named = one_of("m.group_id", "group", sorted({row["group_id"] for row in some}))
    query = (
        "SELECT m.snapshot_id, m.recorded, m.target, m.pending_revocation FROM current_member_snapshots m "
        f"WHERE {groups} AND {snapshots}"
    )
    on_the_way = {
        row["snapshot_id"]
        for row in records(reader, query, **ids, **named)
        if _places(row["recorded"]) != _places(row["target"]) or _places(row["pending_revocation"])
    }
    return (row["snapshot_id"] for row in some if row["snapshot_id"] not in on_the_way)


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


def results(recorded: Query) -> Query:
    """The records that a committed `assign` has computed again; `moved_more` is 1 where one moved too much.

    Whether or not that result counts: to rank all results of a large ledger would take its memory. What counts is asked
    for these alone.
    """
    of_records, values = recorded
    promised, named = _promised("r.")
    return (
        f"SELECT r.group_id, r.snapshot_id, max(CASE WHEN r.moves > r.least_moves AND {promised} THEN 1 ELSE 0 END) "
        f"AS moved_more FROM (SELECT t.snapshot_id FROM ({of_records}) t) s "
        "JOIN rebalances r ON r.snapshot_id = s.snapshot_id JOIN current_runs a ON a.attempt_id = r.attempt_id "
        "WHERE r.scenario = :scenario GROUP BY r.group_id, r.snapshot_id"
    ), values | named | {"scenario": BASELINE}


def _promised(prefix: str) -> Query:
    """A condition that a result is what was recorded, under an assignor that promises to keep what members have."""
    verdicts, named = one_of(f"{prefix}verdict", "verdict", list(SAME))
    among, others = one_of(f"{prefix}assignor", "assignor", list(KEEPING))
    return f"{verdicts} AND {among}", named | others


def _excess(reader: Reader, some: list[Record]) -> Iterator[Found]:
    """Findings of these snapshots, which are all there are of their groups."""
    snapshots, ids = one_of("r.snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
    groups, named = one_of("r.group_id", "group", sorted({row["group_id"] for row in some}))
    promised, values = _promised("r.")
    claims, codes = one_of("v.code", "code", [STALE_CLAIM.recorded_as, CLAIM_DIFFERS.recorded_as])
    query = (
        "SELECT r.cluster_id, r.group_id, r.snapshot_id, r.observed_at, s.offset, r.assignor, r.moves AS most, "
        "r.least_moves AS least, r.moves - r.least_moves AS amount FROM current_rebalances r "
        "JOIN current_group_snapshots s ON s.cluster_id = r.cluster_id AND s.group_id = r.group_id "
        f"AND s.snapshot_id = r.snapshot_id WHERE {groups} AND {snapshots} AND r.scenario = :scenario AND r.round = 1 "
        f"AND {promised} AND r.moves > r.least_moves AND {CERTAIN} "
        f"AND s.group_type = '{CLASSIC}' AND NOT EXISTS "
        f"(SELECT 1 FROM ({ingest_findings()}) v WHERE v.cluster_id = r.cluster_id AND v.group_id = r.group_id "
        f"AND v.snapshot_id = r.snapshot_id AND {claims})"
    )
    for row in _folded_balance(reader, query, values | ids | named | codes | {"scenario": BASELINE}):
        text = f"{row['assignor']} moved {row['most']:,} partitions where {row['least']:,} had to move"
        yield _found_balance(EXCESS_MOVES, row, text)


def _folded_balance(reader: Reader, query: str, values: Mapping[str, Value]) -> list[Record]:
    """A row a group: how many records, from when to when, and the one with the greatest `amount`."""
    group = "PARTITION BY q.cluster_id, q.group_id"
    counted = (
        f"SELECT q.*, count(*) OVER ({group}) AS records, min(q.observed_at) OVER ({group}) AS first, "
        f"max(q.observed_at) OVER ({group}) AS last, row_number() OVER ({group} ORDER BY q.amount DESC, q.offset DESC) "
        f"AS place FROM ({query}) q"
    )
    return records(reader, f"SELECT * FROM ({counted}) c WHERE c.place = 1", **values)


def _found_balance(invariant: Invariant, row: Record, evidence: str) -> Found:
    group = row["cluster_id"], row["group_id"]
    return broken(invariant, group, row["records"], (row["first"], row["last"]), evidence, row["snapshot_id"])
