"""`groupledger sql` and `views`: query the current rows of a ledger; create the same views for other tools."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.options import Job, takes, was_given
from groupledger.cli.output import Output, plain, print_exact
from groupledger.core.text import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence


AS_JSON = 1_000
"""Rows of a JSON line without --limit."""


@click.command(short_help="Query the ledger's current rows with SQL.")
@click.argument("query", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="All rows as CSV; lists and structs as JSON in it.")
@takes("limit", "config")
def sql(job: Job, *, query: str | None, as_csv: bool, limit: int) -> None:
    """Run a query over the current views: rows of committed runs that nothing later supersedes.

    Without a query, list the views. --json has up to 1,000 rows unless --limit says otherwise.
    delta-rs reads a ledger in a folder, Spark any other. Times are in UTC.

    \b
    groupledger sql
    groupledger sql "SELECT group_id, count(*) FROM current_rebalances GROUP BY 1"
    groupledger sql "SELECT * FROM current_violations" --csv > findings.csv
    """
    from groupledger.answers.queries import rows_of

    if as_csv and job.output.as_json:
        raise click.UsageError("--csv or --json, not both")
    if query is None:
        _list_views(job)
        return
    if job.output.as_json and not was_given("limit"):
        limit = AS_JSON
    with job.output.status("reading the ledger"):
        found = job.reader().query(query)
        names = found.schema.names
        rows = rows_of(found, None if as_csv else limit)
    if as_csv:
        _print_csv(names, rows)
        return
    left_off = found.num_rows - len(rows)
    print_rows(job.output, names, rows, left_off)
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    job.done({"columns": names, "rows": objects, "left_off": left_off})


def print_rows(output: Output, names: Sequence[str], rows: Sequence[Sequence[object]], left_off: int) -> None:
    """Print them for a person; say how many were omitted, or that there are none."""
    output.table(names, [[_shown(value) for value in row] for row in rows])
    if not rows:
        output.line("no rows")
    output.left_off(left_off)


@click.command(short_help="Create the views of current rows in the ledger's catalog.")
@takes("config")
def views(job: Job) -> None:
    """Create the views of `groupledger sql` in the ledger's catalog, for BI tools and other jobs.

    Only for a ledger in a catalog (`ledger.catalog`). Existing views are replaced.
    """
    from groupledger.pipeline.frames import create_views, require_catalog

    place = job.place()
    require_catalog(place)
    made = create_views(job.spark(), place)
    job.output.line(f"{len(made)} views in {place}: {', '.join(made)}")
    job.done({"location": str(place), "views": made})


def _list_views(job: Job) -> None:
    from groupledger.answers.reader import views as known

    job.output.table(["view", "what it holds"], [(view.name, view.comment) for view in known().values()])
    job.done({"views": [{"view": view.name, "comment": view.comment} for view in known().values()]})


def _shown(value: object) -> object:
    """Format a cell: lists and structs as JSON, bytes in hex."""
    found = plain(value) if isinstance(value, list | dict | bytes) else value
    return json_text(found) if isinstance(value, list | dict) else found


def _print_csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_exact(plain(value)) for value in row])
    print_exact(text.getvalue().removesuffix("\n"))


def _exact(value: object) -> object:
    """Format a CSV cell: nothing for null, lists and structs as JSON."""
    return json_text(value) if isinstance(value, list | dict | bool) else "" if value is None else value
