"""Every recorded rebalance judged: what is wrong, folded by code and group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.balance import excess_moves, results, unbalanced
from groupledger.answers.copartition import copartition
from groupledger.answers.found import Found, broken, in_order
from groupledger.answers.names import require_topics
from groupledger.answers.recorded_findings import recorded_findings
from groupledger.answers.recorded_states import measured
from groupledger.answers.rows import records
from groupledger.answers.scope import Scope, gaps, scope, why_empty
from groupledger.answers.settling import restless
from groupledger.answers.static_members import SharedId, shared_ids, takeovers
from groupledger.answers.unowned_stretches import UnownedGroup, told, unowned
from groupledger.core.findings import BY_RECORDED, NEVER_SETTLES, SHARED_INSTANCE_ID, UNOWNED
from groupledger.core.length import length

if TYPE_CHECKING:
    from groupledger.answers.recorded_states import MeasuredStates, Query
    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import RequestedScope

OTHERS_NAMED = 3


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
    found: tuple[Found, ...]
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
