"""`groupledger what-if`: a recorded group with other members, partitions or another assignor; or a grid of changes."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupledger.answers.answer_columns import Column
from groupledger.cli.history import LIMIT, print_members
from groupledger.cli.options import Job, moment, takes
from groupledger.cli.output import Output, plain
from groupledger.core.moments import Bound, iso

if TYPE_CHECKING:
    from groupledger.answers.changed_group import WhatIf
    from groupledger.answers.queries import Reader
    from groupledger.pipeline.grid import GridCell


def _change(_context: click.Context, _option: click.Parameter, text: str) -> int:
    if re.fullmatch("[+-]?[0-9]{1,9}", text) is None:
        raise click.BadParameter(f"{text!r} is no number of members; expected +3 or -2")
    return int(text)


@click.command("what-if", short_help="A group with other members, partitions or another assignor.")
@takes("group")
@click.option("--members", default="0", callback=_change, metavar="+N|-N", help="Members that join, or leave.")
@click.option("--without", multiple=True, metavar="MEMBER", help="This member leaves; may be given several times.")
@click.option(
    "--partitions", multiple=True, metavar="TOPIC=+N", help="Partitions of a topic: +N more, xN times as many."
)
@takes("assignor", "generation", "at")
@click.option(
    "--grid", type=click.Path(path_type=Path, dir_okay=False), help="Changes in YAML, to every group, by Spark."
)
@takes("html")
@click.option("--rows", metavar="FOLDER", help="With --grid: write who has what, a row a group and cell.")
@takes("cluster", "limit", "wide", "config")
def what_if(
    job: Job,
    *,
    group: str | None,
    members: int,
    without: tuple[str, ...],
    partitions: tuple[str, ...],
    assignor: str | None,
    generation: int | None,
    at: Bound | None,
    grid: Path | None,
    html: Path | None,
    rows: str | None,
    cluster: str | None,
    limit: int,
) -> None:
    """Show who would have what, and what would move, if GROUP changed from a recorded state; default: the last.

    --grid applies each change in a file to the last state of every group, or those matching GROUP, in one Spark job:
    docs/guides/decide/what-if.md. Nothing is written to the ledger.

    \b
    groupledger what-if payments --members +3 --partitions orders=+10
    groupledger what-if payments --assignor cooperative-sticky
    groupledger what-if --grid grid.yaml
    """
    if grid is not None:
        alone = {"--members": members, "--without": without, "--partitions": partitions, "--assignor": assignor}
        _require_alone(alone | {"--html": html, "--generation": generation, "--at": at})
        _compute_grid(job, grid, group, cluster, rows)
        return
    if group is None:
        raise click.UsageError("Missing argument 'GROUP'.")
    if rows is not None:
        raise click.UsageError("--rows goes with --grid.")
    changed = _partitions(partitions)

    def ask(reader: Reader) -> WhatIf:
        from groupledger.answers.changed_group import what_if as answered

        found = answered(
            reader,
            group,
            cluster,
            members=members,
            without=without,
            partitions=changed,
            assignor=assignor,
            generation=generation,
            at=moment(reader, cluster, at, group),
        )
        if html is not None:
            from groupledger.report.html.comparison_page import what_if_page
            from groupledger.report.html.written import write_page

            write_page(what_if_page, found, html)
        return found

    job.answer(ask, functools.partial(print_what_if, limit=limit, page=html), cluster, "what_if")


def _require_alone(others: dict[str, Any]) -> None:
    """Refuse what goes without a grid."""
    other = next((name for name, value in others.items() if value), None)
    if other is not None:
        raise click.UsageError(f"{other} goes without --grid, whose file has the changes.")


def _partitions(given: tuple[str, ...]) -> dict[str, str]:
    """Read TOPIC=+N, or several with commas between them."""
    changed = {}
    for each in (part for words in given for part in words.split(",")):
        topic, equals, change = each.rpartition("=")
        if not equals or not topic:
            raise click.UsageError(f"--partitions {each!r}: expected TOPIC=+N or TOPIC=xN, such as orders=+10.")
        if topic in changed:
            raise click.UsageError(f"--partitions {each!r}: {topic} is there already; expected each topic once.")
        changed[topic] = change
    return changed


def print_what_if(output: Output, answer: WhatIf, limit: int = LIMIT, *, page: Path | None = None) -> None:
    """Print it for a person: what was changed, before and after in numbers, what would move, who would have what."""
    output.title(answer.title)
    output.line(f"as of generation {answer.generation}, {iso(answer.observed_at)}  [{answer.snapshot_id}]")
    output.table(["", "before", "after"], answer.numbers)
    output.line(answer.cost)
    output.title("members")
    print_members(output, answer.members, answer.joined, limit, counts=("had", "would have"))
    output.notes(answer.notes)
    if page is not None:
        output.line(f"page: {page}")


# Print what a grid's changes would do to all groups, in one table.


def _compute_grid(job: Job, file: Path, group: str | None, cluster: str | None, folder: str | None) -> None:
    """Compute the grid, and print one line per cell."""
    from groupledger.config.loading import load_grid
    from groupledger.pipeline.grid import grid

    settings = load_grid(file)
    spark = job.spark()
    with job.output.status("computing the grid"):
        answer = grid(spark, job.config, settings, groups=group, cluster=cluster, output=folder)
    job.output.title(f"{answer.groups:,} groups in {len(answer.cells):,} cells, sums over all groups")
    job.output.rows(map(_cells, answer.cells))
    if folder is not None:
        job.output.line(f"{answer.rows:,} rows, one a group and cell: {folder}")
    job.done(plain(answer))


def _cells(of: GridCell) -> dict[Column, object]:
    return {
        Column("assignor", least=18): of.assignor,
        Column("change", least=16): of.change,
        Column("groups", rank=2): of.groups,
        Column("moves"): of.moves,
        Column("least", rank=1): of.least_moves,
        Column("given up"): of.revoked,
        Column("no owner", rank=1): of.unassigned,
        Column("uneven"): of.spread,
        Column("two rounds", rank=2): of.two_rounds,
        Column("refused", rank=3): of.refused or None,
    }
