"""`groupledger hand-overs`: what a recorded group's members had committed when they gave partitions up."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import WIDE, Column
from groupledger.answers.spoken import NOBODY, spans
from groupledger.cli.options import Job, takes
from groupledger.cli.output import Output, plain
from groupledger.core.moments import dates_once
from groupledger.core.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from groupledger.answers.recorded_history import GroupHandOvers, HandOver
    from groupledger.answers.scope import RequestedScope

MEANINGS = {  # by the value of an OffsetVerdict, the worst first
    "set-while-empty": "the offset was changed while the group had no members",
    "went-back": "the last commit was less than an earlier one",
    "sought-back": "the next owner's first commit was less than where it began",
    "deleted": "the offset was deleted: the next owner begins by auto.offset.reset",
    "not-committed": "the owner committed nothing: whatever it read is read again",
    "unknown": "records are missing there, or commits were not kept",
    "idle": "no commit of the partition is recorded at all",
    "committed": "the owner committed; the next one goes on there",
}
QUIET = ("idle", "committed")
"""Verdicts of which a table shows the number alone."""


@click.command(name="hand-overs", short_help="What was committed when partitions were handed over.")
@takes("SCOPE", "limit", "wide", "config")
def hand_overs(job: Job, *, asked: RequestedScope, limit: int, wide: bool) -> None:
    """Judge by the recorded offset commits how members of GROUP gave up partitions, and where the next owners began.

    The ledger must have the commits: a source of kind kafka or segments keeps them with `offset_commits: true`.

    \b
    groupledger hand-overs payments
    groupledger hand-overs payments --since 24h --json
    """
    with job.output.status("reading the group's history"):
        from groupledger.answers.recorded_history import group_hand_overs

        answer = group_hand_overs(job.reader(), asked.group or "", asked)
    print_hand_overs(job.output, answer, limit, wide=wide)
    job.answered(answer, asked.cluster, hand_overs=plain(answer))


def print_hand_overs(output: Output, answer: GroupHandOvers, limit: int, *, wide: bool = False) -> None:
    """Print how many hand-overs have each verdict, then those that left something behind, the worst first."""
    output.title(f"{answer.group_id}: partitions given up (cluster {answer.cluster_id})")
    output.table(
        ("verdict", "partitions", "meaning"), [(name, count, MEANINGS[name]) for name, count in answer.counts.items()]
    )
    lines = _lines([each for each in answer.hand_overs if wide or each.verdict not in QUIET])
    if lines:
        _print_lines(output, lines[:limit], wide=wide)
        output.left_off(len(lines) - limit)
    output.notes(answer.notes)


def _print_lines(output: Output, lines: Sequence[Sequence[HandOver]], *, wide: bool) -> None:
    """Print a line per rebalance, pair of members and verdict."""
    day, times = dates_once([some[0].given_up_at for some in lines])
    output.title(f"The worst first ({f'{day}, ' if day else ''}UTC)")
    named = {name for some in lines for name in (some[0].from_member_id, some[0].to_member_id) if name is not None}
    short = {name: name for name in named} if wide else shortened(named)

    def cells(some: Sequence[HandOver], at: str) -> dict[Column, object]:
        first, begins = some[0], {each.next_at for each in some}
        return {
            Column("verdict"): first.verdict.value,
            Column("given up", 1): at,
            Column("gen"): first.generation,
            Column("partitions", 0, 14): spans((each.topic, each.partition) for each in some),
            Column("by", 0, 14): f"{short[first.from_member_id]}{' (gone)' if first.gone else ''}",
            Column("then", 0, 14): NOBODY if first.to_member_id is None else short[first.to_member_id],
            Column("commits", 4): sum(each.commits for each in some),
            Column("next begins at", 3): begins.pop() if len(begins) == 1 else None,
            Column("twice", 2): _sum(each.read_twice for each in some),
            Column("never", 2): _sum(each.never_read for each in some),
            Column("recorded in", WIDE): first.snapshot_id,
        }

    output.rows(list(map(cells, lines, times)), wide=wide)


def _lines(found: Iterable[HandOver]) -> list[list[HandOver]]:
    """Those of one rebalance, the same two members and one verdict together; the worst verdict first, then by time."""
    order = list(MEANINGS)
    ordered = sorted(found, key=lambda each: (order.index(each.verdict), each.given_up_at, *_alike(each)))
    return [list(some) for _, some in groupby(ordered, _alike)]


def _alike(each: HandOver) -> tuple[str, str, str, str]:
    return each.verdict, each.snapshot_id, each.from_member_id, each.to_member_id or ""


def _sum(counts: Iterable[int | None]) -> int | None:
    """Of those that are known; None: none is."""
    known = [each for each in counts if each is not None]
    return sum(known) if known else None
