"""`groupledger audit`: judge every recorded rebalance, with an exit code for a gate."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from groupledger.answers.columns import table
from groupledger.answers.spoken import numbered
from groupledger.cli.exits import Exit
from groupledger.cli.options import Job, takes_config, takes_scope
from groupledger.cli.output import plain
from groupledger.core.rebalance.findings import BY_CODE, failing

if TYPE_CHECKING:
    from groupledger.answers.audit import Audit
    from groupledger.answers.scope import RequestedScope
    from groupledger.cli.output import Output


@click.command(short_help="Judge every recorded rebalance; findings by code and group.")
@takes_scope
@click.option(
    "--fail-on", multiple=True, metavar="CODES", help="Exit with 4 on these codes or severities: UNOWNED,error"
)
@click.option("--joined", metavar="TOPIC,TOPIC", help="Topics whose equal partition numbers need one owner.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Maximum groups per code.")
@takes_config
def audit(job: Job, *, asked: RequestedScope, fail_on: tuple[str, ...], joined: str | None, limit: int) -> None:
    """Judge what the ledger has recorded: partitions without an owner, stale claims, groups that never settle, ...

    Findings are folded by code and group. docs/guides/investigate/audit.md has the codes, and what cannot be judged.

    \b
    groupledger audit --since 24h
    groupledger audit --group 'payments-*' --fail-on UNOWNED,DOUBLE_OWNED
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
    for note in answer.notes:
        output.line()
        output.line(note)
