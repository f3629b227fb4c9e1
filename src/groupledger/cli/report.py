"""`groupledger report`: rank groups by a problem, with the members and partitions that cause it; or as pages."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupledger.answers.spoken import numbered
from groupledger.cli.options import Job, takes_config
from groupledger.cli.output import plain
from groupledger.cli.since import takes_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import RequestedScope


@click.group(short_help="Rank groups: storms, joins, migrations, skew, ...; or html.")
def report() -> None:
    """Rank groups by one kind of problem, with the members and partitions that cause it.

    docs/guides/index.md leads from the symptom to the answer. `html` writes everything as pages.

    \b
    groupledger report storms --since 24h
    groupledger report skew --group 'payments-*'
    """


def _reported(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Make a report command: it supplies the question and the renderer; the rest is shared."""

    @takes_scope
    @click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Maximum lines.")
    @takes_config
    @functools.wraps(ask)
    def run(job: Job, *, asked: RequestedScope, limit: int, **more: Any) -> None:
        from groupledger.cli.rankings import tell_report

        name = click.get_current_context().info_name or ""
        question = ask(asked=asked, limit=limit, **more)
        with job.output.status("reading the ledger"):
            answer = question(job.reader())
        tell_report(job.output, name, answer)
        job.answered(answer, asked.cluster, command="report", report=name, **{name: plain(answer)})

    return run


@report.command(short_help="Groups that rebalance often: how often, why, who.")
@_reported
def storms(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by their rebalances within one hour, with the mix of causes.

    Partitions are those that changed owner most often, members those that causes and findings name most often.

    \b
    groupledger report storms --since 24h
    """
    from groupledger.answers import storms as answers

    return lambda reader: answers.storms(reader, asked, limit)


@report.command(short_help="Members that come and go: how often, when, who.")
@_reported
def joins(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by how often members joined, left and returned, and members by the name that outlives a restart.

    That name is the group.instance.id, else the client id, with the host where several members share it.

    \b
    groupledger report joins --since 24h
    """
    from groupledger.answers import joins as answers

    return lambda reader: answers.joins(reader, asked, limit)


@report.command(short_help="Groups that changed type, protocol or assignor.")
@_reported
def migration(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Show which groups changed from classic to KIP-848, from eager to cooperative or to another assignor, or back.

    Groups that now have members of both kinds come first.

    \b
    groupledger report migration --since 30d
    """
    from groupledger.answers import migration as answers

    return lambda reader: answers.migrations(reader, asked, limit)


@report.command(short_help="Groups whose members have unequal loads.")
@click.option("--weights", metavar="FILE", help="CSV, .parquet or Delta folder: topic, partition, and lag or bytes.")
@_reported
def skew(*, asked: RequestedScope, limit: int, weights: str | None) -> Callable[..., Any]:
    """Rank groups by the difference between their most and least loaded members, and by idle members.

    With --weights, by the weight of the partitions.

    \b
    groupledger report skew
    groupledger report skew --group payments --weights lag.csv
    """
    from groupledger.answers import skew as answers

    def ask(reader: Reader) -> answers.Skews:
        if weights is None:
            return answers.skew(reader, asked, limit)
        from groupledger.answers.weights import read_weights

        return answers.skew(reader, asked, limit, read_weights(weights))

    return ask


@report.command(short_help="Static members: shared ids, restarts that moved work.")
@_reported
def static(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank group.instance.ids by what their restarts moved; ids that two processes seem to share come first.

    \b
    groupledger report static --since 7d
    """
    from groupledger.answers import static_members as answers

    return lambda reader: answers.static_members(reader, asked, limit)


@report.command(short_help="How much groups moved, compared with the least moves.")
@_reported
def stickiness(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by their moves beyond the least moves.

    \b
    groupledger report stickiness --since 7d
    """
    from groupledger.answers import stickiness as answers

    return lambda reader: answers.stickiness(reader, asked, limit)


@report.command(short_help="How much members read from their own rack.")
@_reported
def rack(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by the share of partitions with a replica in their owner's rack, if racks are known.

    \b
    groupledger report rack
    """
    from groupledger.answers import racks as answers

    return lambda reader: answers.racks(reader, asked, limit)


@report.command(short_help="Everything as HTML pages.")
@click.argument("folder", type=click.Path(path_type=Path))
@takes_scope
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Maximum groups with a page.")
@takes_config
def html(job: Job, *, folder: Path, asked: RequestedScope, limit: int) -> None:
    """Write an index and a page for each of the worst groups into FOLDER; each opens without a network.

    An existing report is replaced; a folder with other files in it is refused. docs/guides/use/html-report.md

    \b
    groupledger report html build/report --since 24h
    groupledger report html build/payments --group 'payments-*' --limit 50
    """
    from groupledger.report.html.written import write_report

    with job.output.status("reading the ledger") as doing:
        written = write_report(job.reader(), asked, folder, limit, doing)
    job.output.line(f"{written.index}: {numbered(written.groups, 'group')}, {written.pages:,} with a page")
    for note in written.notes:
        job.output.line(note)
    if written.pages < written.groups:
        job.output.line(f"... and {written.groups - written.pages:,} without one (--limit)")
    job.answered(written, asked.cluster, command="report", report="html", html=plain(written))
