"""`groupledger audit` and `readiness`: what is wrong, and what stands between a group and KIP-848."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import Column, table
from groupledger.answers.spoken import assignor_of, numbered, spans
from groupledger.cli.exits import Exit
from groupledger.cli.options import Job, takes
from groupledger.cli.output import Output, plain
from groupledger.core.moments import Bound, iso
from groupledger.core.obstacles import Obstacle, Readiness
from groupledger.core.rebalance.findings import BY_CODE, failing
from groupledger.core.text import shortened

if TYPE_CHECKING:
    from groupledger.answers.audit import Audit
    from groupledger.answers.readiness import Forecast, GroupReadiness, ReadinessReport
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
    topics = _topics(joined)
    with job.output.status("reading the ledger"):
        answer = audited(job.reader(), asked, topics)
    failed = answer.failing(words)
    print_audit(job.output, answer, limit)
    if failed:
        codes = ", ".join(dict.fromkeys(each.code for each in failed))
        job.output.line()
        job.output.line(f"--fail-on {','.join(fail_on)}: {codes}")
    failed_on = sorted({each.code for each in failed})
    job.answered(answer, asked.cluster, failed_on=failed_on, audit=plain(answer))
    if failed:
        click.get_current_context().exit(Exit.VIOLATIONS)


def _topics(joined: str | None) -> tuple[str, ...]:
    if joined is None:
        return ()
    topics = tuple(dict.fromkeys(filter(None, (each.strip() for each in joined.split(",")))))
    if len(topics) < 2:
        raise click.UsageError(f"--joined takes two or more topics, with a comma between them; got {joined!r}")
    return topics


def print_audit(output: Output, answer: Audit, limit: int) -> None:
    """Print it for a person: one table per code, with the evidence of each group below."""
    output.line(
        f"{numbered(answer.records, 'record')} of {numbered(answer.groups, 'group')} judged, "
        f"{answer.computed:,} of them recomputed"
    )
    for (severity, code), found in groupby(answer.found, lambda each: (each.severity, each.code)):
        of_code = list(found)
        output.title(f"{severity.value}: {code}")
        output.line(BY_CODE[code].what)
        output.line()
        output.table(*table(type(of_code[0]), of_code[:limit]))
        for each in of_code[:limit]:
            where = f"  [{each.snapshot_id}]" if each.snapshot_id else ""
            output.line(f"- {each.group_id}: {each.evidence}{where}")
        if len(of_code) > limit:
            output.line(f"... and {numbered(len(of_code) - limit, 'more group')} (--limit)")
        output.line(f"next: {of_code[0].next_step}")
    for note in answer.notes:
        output.line()
        output.line(note)


# `groupledger readiness`: report which groups can convert to KIP-848 while they run, and what prevents it.

PERIOD = timedelta(days=7)
MEMBERS_SHOWN = 5
"""Members of a group that the before/after table names."""


@click.command(short_help="Which groups can convert to KIP-848, and why not.")
@takes("group")
@click.option("--to", type=click.Choice(["consumer"]), expose_value=False, hidden=True)  # what scripts still say
@takes("cluster", "since", "limit", "wide", "config")
def readiness(job: Job, *, group: str | None, cluster: str | None, since: Bound | None, limit: int, wide: bool) -> None:
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
    with job.output.status("reading the ledger"):
        answer = ready_for_consumer(job.reader(), asked, limit, convert)
    print_readiness(job.output, answer, wide=wide)
    job.answered(answer, cluster, to="consumer", readiness=plain(answer))


def print_readiness(output: Output, answer: ReadinessReport, *, wide: bool = False) -> None:
    """Print it for a person: one line per group, then the obstacles of each, and what would move."""
    if answer.total:
        output.line(", ".join(f"{number:,} {state}" for state, number in answer.counts.items() if number))
        output.line("uniform, range: how many partitions would go to another member under it")
        output.line()
    output.rows(list(map(_cells, answer.groups)), wide=wide)
    for each in answer.groups:
        _print_group(output, each)
    if answer.total > len(answer.groups):
        output.line()
        output.line(f"... and {answer.total - len(answer.groups):,} more (--limit)")
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
    )
    output.left_off(len(changed) - MEMBERS_SHOWN, "members more", how="--json has all")
