"""`groupledger explain`: explain why a group rebalanced, and with what effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from groupledger.answers.spoken import NOBODY, OF_PAIRS, cause_lines, numbered, pairs, spans
from groupledger.cli.options import Job, moment, takes
from groupledger.cli.output import Output
from groupledger.core.moments import Bound, iso
from groupledger.core.rebalance.findings import (
    DOUBLE_OWNED,
    HANDED_OVER_BEFORE_REVOKED,
    LEFT_OUT,
    NOT_SUBSCRIBED,
    audited,
)
from groupledger.core.rebalance.registry import in_words
from groupledger.core.text import length

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.explanation import Explanation

MOST_SHOWN = 20
INVALID = "invalid"
RULES = {each.recorded_as for each in (DOUBLE_OWNED, NOT_SUBSCRIBED, LEFT_OUT, HANDED_OVER_BEFORE_REVOKED)}
"""Codes of the rules that any assignor must keep."""


@click.command(short_help="Explain a rebalance: the cause, moves, unowned partitions.")
@takes("GROUP", "generation")
@click.option("--incarnation", type=int, metavar="N", help="In this incarnation of the group; default: the last.")
@takes("at")
@click.option("--offset", type=int, metavar="N", help="The rebalance recorded at this offset, rewrites included.")
@takes("cluster", "config")
def explain(
    job: Job,
    *,
    group: str,
    generation: int | None,
    incarnation: int | None,
    at: Bound | None,
    offset: int | None,
    cluster: str | None,
) -> None:
    """Explain what led to a generation: members that joined, left or returned, and other changes.

    Without one, the last; with --at the one in force then, that is the last one recorded up to that time.

    The log holds states, not reasons: it does not say whether a member left, crashed or timed out, unless its time-outs
    exclude the others.

    \b
    groupledger explain payments
    groupledger explain payments --at 2026-11-21T12:08:50Z
    groupledger explain payments --generation 7 --json
    """
    if sum(each is not None for each in (generation, at, offset)) > 1:
        raise click.UsageError("--generation, --at or --offset: one of them")
    if incarnation is not None and (at, offset) != (None, None):
        raise click.UsageError("--incarnation goes with --generation, or alone: a time or an offset is of one")
    with job.output.status("reading the ledger"):
        from groupledger.answers.explanation import explain as explained

        reader = job.reader()
        time = moment(reader, cluster, at, group)
        answer = explained(reader, group, cluster, generation, incarnation=incarnation, at=time, offset=offset)
    print_explanation(job.output, answer, time)
    job.answered(answer, cluster, explanation=answer)


def print_explanation(output: Output, answer: Explanation, at: datetime | None = None) -> None:
    """Print it for a person: cause, moves, unowned partitions, how it settled. `at`: the time that was asked for."""
    from groupledger.answers.queries import CLASSIC

    state = answer.rebalance
    output.title(state.title)
    output.line(f"{iso(state.observed_at)}  {state.state}  [{state.snapshot_id}]")
    output.notes(answer.notes)
    if at is not None and not answer.notes:
        output.line(f"{'in force' if state.observed_at <= at else 'under way'} at {iso(at)}")
    for name, each, way, sign in (("before", answer.before, "earlier", 1), ("after", answer.after, "later", -1)):
        if each is not None:
            apart = length((state.observed_at - each.observed_at) * sign)
            number = "" if each.generation is None else f" generation {each.generation},"
            output.line(f"{name}:{number} {apart} {way}  [{each.snapshot_id}]")
    for gap in state.gaps:
        output.line(f"gap since the snapshot before: {gap}")
    output.title("cause")
    _print_causes(output, answer)
    output.title("changed hands")
    _print_moves(output, answer)
    if answer.unowned:
        output.title("nobody had")
        _print_unowned(output, answer)
    if answer.rounds is not None:
        output.line()
        fewest = state.compared and state.compared.fewest_rounds
        fewest_text = "" if fewest is None else f", fewest: {fewest}"
        output.line(f"settled in generation {answer.settled}: {numbered(answer.rounds, 'generation')}{fewest_text}")
    of_verdict = RULES if state.compared and state.compared.verdict == INVALID else ()  # said with the verdict
    for finding in state.findings:
        if finding.partition(":")[0] not in of_verdict:
            output.line(f"finding: {audited(finding)}")
    if state.others:
        counted = "generation" if state.group_type == CLASSIC else "epoch"
        output.title(f"other rebalances to {counted} {state.generation}")
        rows = [
            (iso(each.observed_at), each.group_type, each.incarnation, each.snapshot_kind, f"--offset {each.offset}")
            for each in state.others
        ]
        output.table(["recorded", "type", "incarnation", "kind", "explained by"], rows[:MOST_SHOWN])
        output.left_off(len(rows) - MOST_SHOWN, how="--json has all")


def _print_causes(output: Output, answer: Explanation) -> None:
    """Print the causes, and a change of the leader that none of them names."""
    for line in cause_lines(answer.causes):
        output.line(line)
    change = answer.leader_change
    if change is not None and not any(change.text in each.what for each in answer.causes):
        output.line(f"  meanwhile {change.text}")


def _print_unowned(output: Output, answer: Explanation) -> None:
    """Print one line for all partitions without an owner from one moment to another."""
    together: dict[tuple[datetime | None, datetime | None], list[tuple[str, int]]] = {}
    for each in answer.unowned:
        together.setdefault((each.since, each.until), []).append((each.topic, each.partition))
    rows = [
        (
            "not known" if since is None else iso(since),
            "to the end" if until is None else "not known" if since is None else length(until - since),
            len(places),
            spans(places),
        )
        for (since, until), places in together.items()
    ]
    output.table(["since", "for", "partitions", "which"], rows[:MOST_SHOWN])
    output.left_off(len(rows) - MOST_SHOWN, how="--json has all")


def _print_moves(output: Output, answer: Explanation) -> None:
    """Print one line per pair of members between which partitions moved."""
    from groupledger.answers.audit import SAME
    from groupledger.cli.answers import least

    found = pairs(answer.moved)
    names = output.names(name for pair in found for name in pair if name != NOBODY)
    rows = [(*(names.get(each, NOBODY) for each in pair), len(some), spans(some)) for pair, some in found.items()]
    if not rows:
        output.line("nothing")
    output.table(OF_PAIRS, rows[:MOST_SHOWN])
    output.left_off(len(rows) - MOST_SHOWN, how="--json has all")
    state = answer.rebalance
    result = state.compared
    if result is not None:
        bound = least(result)
        fewest = "not known" if bound is None else f"{bound:,}" if isinstance(bound, int) else bound
        whose = "moves between members that stay" if result.verdict in SAME else "the computed answer would move"
        output.line(f"{whose}: {result.moves:,}, least: {fewest}; verdict: {result.verdict}")
        if result.verdict == INVALID:
            for finding in answer.rebalance.findings:
                if finding.partition(":")[0] in RULES:
                    output.line(f"invalid, {finding}")
        output.line(f"whose algorithm: {in_words(result.attribution, result.attributed_to, state.leader_writes)}")
