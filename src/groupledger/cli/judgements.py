"""`groupledger audit`, `readiness` and `hand-overs`: what is wrong, what stands between a group and KIP-848, and what
was committed when partitions were given up."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import WIDE, Column, table
from groupledger.answers.spoken import NOBODY, assignor_of, numbered, spans
from groupledger.cli.exits import exit_if
from groupledger.cli.options import Job, comma_separated, place_given, takes
from groupledger.cli.output import Output
from groupledger.core.moments import Bound, dates_once, iso
from groupledger.core.obstacles import Obstacle, Readiness
from groupledger.core.rebalance.findings import BY_CODE, failing
from groupledger.core.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from groupledger.answers.audit import Audit
    from groupledger.answers.queries import Reader
    from groupledger.answers.readiness import Forecast, GroupReadiness, ReadinessReport
    from groupledger.answers.recorded_history import GroupHandOvers, HandOver
    from groupledger.answers.scope import RequestedScope

# `groupledger audit`: judge every recorded rebalance, with an exit code for a gate.


@click.command(short_help="Judge every recorded rebalance; findings by code and group.")
@takes("scope")
@click.option(
    "--fail-on", multiple=True, metavar="CODES", help="Exit with 4 on these codes or severities: UNOWNED,error"
)
@click.option("--joined", metavar="TOPIC,TOPIC", help="Topics whose equal partition numbers need one owner.")
@takes("limit", "config")
def audit(job: Job, *, asked: RequestedScope, fail_on: tuple[str, ...], joined: str | None, limit: int) -> None:
    """Judge what the ledger has recorded: partitions without an owner, stale claims, groups that never settle, ...

    Findings are folded by code and group. docs/guides/investigate/audit.md has the codes, and what cannot be judged.

    \b
    groupledger audit --since 24h
    groupledger audit 'payments-*' --fail-on UNOWNED,DOUBLE_OWNED
    groupledger audit --fail-on error --json
    """
    from groupledger.answers.audit import audit as audited

    words = failing(fail_on)
    topics = () if joined is None else comma_separated("--joined", joined, "two or more topics")
    with job.output.status("reading the ledger"):
        answer = audited(job.reader(), asked, topics)
    failed = answer.failing(words)
    print_audit(job.output, answer, limit, place_given())
    if failed:
        codes = ", ".join(dict.fromkeys(each.code for each in failed))
        job.output.line()
        job.output.line(f"--fail-on {','.join(fail_on)}: {codes}")
    failed_on = sorted({each.code for each in failed})
    job.answered(answer, asked.cluster, failed_on=failed_on, audit=answer)
    exit_if(failed)


def print_audit(output: Output, answer: Audit, limit: int, where: str) -> None:
    """Print it: one table per code, the evidence of each group below, what to type next, with options `where`."""
    output.line(
        f"{numbered(answer.records, 'record')} of {numbered(answer.groups, 'group')} judged, "
        f"{answer.computed:,} of them recomputed"
    )
    for (severity, code), found in groupby(answer.found, lambda each: (each.severity, each.code)):
        of_code = list(found)
        output.title(f"{severity.value}: {code}", severity)
        output.line(BY_CODE[code].what)
        output.line()
        output.table(*table(type(of_code[0]), of_code[:limit]))
        for each in of_code[:limit]:
            record = f"  [{each.snapshot_id}]" if each.snapshot_id else ""
            output.line(f"- {each.group_id}: {each.evidence}{record}")
        output.left_off(len(of_code) - limit, "more groups")
        output.line(f"next: {of_code[0].next_step(where)}")
    for note in answer.notes:
        output.line()
        output.line(note)


# `groupledger readiness`: report which groups can convert to KIP-848 while they run, and what prevents it.

PERIOD = timedelta(days=7)
MEMBERS_SHOWN = 5
"""Members of a group that the before/after table names."""


@click.command(short_help="Which groups can convert to KIP-848, and why not.")
@takes("group")
@click.option("--to", type=click.Choice(["consumer", "kip-848"]), expose_value=False, hidden=True)  # in older scripts
@takes("cluster", "since", "limit", "wide", "config")
def readiness(job: Job, *, group: str | None, cluster: str | None, since: Bound | None, limit: int) -> None:
    """Report for each group (or those matching 'payments-*') whether it is ready for KIP-848, and what would move.

    Storms and changes are searched for in the last 7 days, or from --since on. Each reason has a code:
    docs/guides/decide/kip-848-readiness.md. Only the ledger is read; no broker is contacted.

    \b
    groupledger readiness
    groupledger readiness 'payments-*' --json
    """
    from groupledger.answers.readiness import ready_for_consumer
    from groupledger.answers.scope import RequestedScope
    from groupledger.core.assignors.server.across_conversion import convert

    asked = RequestedScope(cluster, group, since or PERIOD)

    def ask(reader: Reader) -> ReadinessReport:
        return ready_for_consumer(reader, asked, limit, convert)

    job.answer(ask, print_readiness, cluster, "readiness", to="consumer")


def print_readiness(output: Output, answer: ReadinessReport) -> None:
    """Print it for a person: one line per group, then the obstacles of each, and what would move."""
    if answer.total:
        output.line(", ".join(f"{number:,} {state}" for state, number in answer.counts.items() if number))
        output.line("uniform, range: how many partitions would go to another member under it")
        output.line()
    output.rows(map(_cells, answer.groups))
    for each in answer.groups:
        _print_group(output, each)
    if answer.total > len(answer.groups):
        output.line()
        output.left_off(answer.total - len(answer.groups))
    _print_codes(output, answer)
    for note in answer.notes:
        output.line()
        output.line(note)


def _cells(each: GroupReadiness) -> dict[Column, object]:
    from groupledger.answers.queries import CLASSIC, CONSUMER

    uniform, range_ = [forecast.moves for forecast in each.forecasts] or [None, None]
    kind = CONSUMER if each.readiness is Readiness.CONVERTED else CLASSIC
    return {
        Column("group", least=12): each.group_id,
        Column("cluster", 3): each.cluster_id,
        Column("state"): each.readiness.value,
        Column("assignor", 4): assignor_of(kind, each.assignor, each.members),
        Column("members", 5): each.members,
        Column("uniform", 1): uniform,
        Column("range", 2): range_,
        Column("reasons", 6, least=20): ", ".join(reason.code for reason in each.reasons) or None,
    }


def _print_group(output: Output, each: GroupReadiness) -> None:
    moving = next((forecast for forecast in each.forecasts if forecast.moves), None)
    unknown = dict.fromkeys(forecast.why for forecast in each.forecasts if forecast.why)
    if not (each.reasons or moving or unknown):
        return
    output.title(f"{each.group_id} (cluster {each.cluster_id}): {each.readiness.value}")
    output.line(f"as of {iso(each.observed_at)}  [{each.snapshot_id}]")
    for reason in each.reasons:
        output.line(f"- {reason.effect.value}: {reason.code}: {reason.evidence}")
    if each.plan is not None:
        output.line(f"to an assignor that can be converted: {each.plan}")
    if moving is not None:
        _print_forecast(output, moving)
    for why in unknown:
        output.line(f"what would move is not known: {why}")


def _print_codes(output: Output, answer: ReadinessReport) -> None:
    """Explain the codes above, each once."""
    found = {reason.code for each in answer.groups for reason in each.reasons}
    if found:
        output.title("what these mean")
    for obstacle in Obstacle:
        if obstacle.code in found:
            output.line(f"- {obstacle.code}: {obstacle.what}")


def _print_forecast(output: Output, forecast: Forecast) -> None:
    total = sum(len(each.before) for each in forecast.members)
    output.line(f"under `{forecast.assignor}` {forecast.moves:,} of {total:,} partitions go to another member:")
    short = shortened(each.member_id for each in forecast.members)
    changed = [each for each in forecast.members if each.before != each.after]
    output.fitted(
        [Column("member"), Column("now", least=10), Column("then", least=10)],
        [(short[each.member_id], spans(each.before), spans(each.after)) for each in changed[:MEMBERS_SHOWN]],
        wide=False,
    )
    output.left_off(len(changed) - MEMBERS_SHOWN, "members more", how="--json has all")


# `groupledger hand-overs`: what members had committed when they gave partitions up.


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
def hand_overs(job: Job, *, asked: RequestedScope, limit: int) -> None:
    """Judge by the recorded offset commits how members of GROUP gave up partitions, and where the next owners began.

    The ledger must have the commits: a source of kind kafka or segments keeps them with `offset_commits: true`.

    \b
    groupledger hand-overs payments
    groupledger hand-overs payments --since 24h --json
    """
    with job.output.status("reading the group's history"):
        from groupledger.answers.recorded_history import group_hand_overs

        answer = group_hand_overs(job.reader(), asked.group or "", asked)
    print_hand_overs(job.output, answer, limit)
    job.answered(answer, asked.cluster, hand_overs=answer)


def print_hand_overs(output: Output, answer: GroupHandOvers, limit: int) -> None:
    """Print how many hand-overs have each verdict, then those that left something behind, the worst first."""
    output.title(f"{answer.group_id}: partitions given up (cluster {answer.cluster_id})")
    output.table(
        ("verdict", "partitions", "meaning"), [(name, count, MEANINGS[name]) for name, count in answer.counts.items()]
    )
    lines = _lines([each for each in answer.hand_overs if output.wide or each.verdict not in QUIET])
    if lines:
        _print_lines(output, lines[:limit])
        output.left_off(len(lines) - limit)
    output.notes(answer.notes)


def _print_lines(output: Output, lines: Sequence[Sequence[HandOver]]) -> None:
    """Print a line per rebalance, pair of members and verdict."""
    day, times = dates_once([some[0].given_up_at for some in lines])
    output.title(f"The worst first ({f'{day}, ' if day else ''}UTC)")
    named = {name for some in lines for name in (some[0].from_member_id, some[0].to_member_id) if name is not None}
    short = output.short(named)

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

    output.rows(map(cells, lines, times))


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
