"""`groupledger maintain`: regular upkeep of a ledger, safe while jobs run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from groupledger.cli.options import Job, takes_config, takes_timings
from groupledger.cli.output import plain
from groupledger.cli.runs import print_timings

if TYPE_CHECKING:
    from groupledger.cli.output import Output
    from groupledger.pipeline.maintain import MaintainSummary


@click.command(short_help="Delete dead rows, compact files, vacuum; safe while jobs run.")
@click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only this table; may be given several times.")
@click.option(
    "--redact", is_flag=True, help="Replace names permanently, as configured in `redaction`, and delete the raw log."
)
@takes_timings
@takes_config
def maintain(job: Job, *, tables: tuple[str, ...], redact: bool, timings: bool) -> None:
    """Delete rows of dead attempts, compact files, and delete unreferenced files.

    Readers see the same before, during and after. Run it regularly, say once a day; jobs may run at the same time.
    Exit code 5 if another maintain is running.
    """
    from groupledger.pipeline.maintain import maintain as run
    from groupledger.tables import BY_NAME

    if unknown := [name for name in tables if name not in BY_NAME]:
        raise click.BadParameter(f"{unknown[0]!r} is no table; there are: {', '.join(BY_NAME)}", param_hint="--table")
    chosen = [BY_NAME[name] for name in tables or BY_NAME]
    spark = job.spark_for_ledger()
    job.warn_of_writers(spark)
    with job.output.status("tidying up"):
        summary = run(spark, job.place(), job.config, job.invocation(None), chosen, redact=redact)
    print_maintenance(job.output, summary)
    if timings:
        print_timings(job.output, summary.timings)
    told = {**plain(summary), "rows_removed": summary.rows_removed}
    job.output.result({"status": "done", "command": job.name, **told})


def print_maintenance(output: Output, summary: MaintainSummary) -> None:
    """Print one line per table."""
    output.title("maintain")
    output.line(f"attempts given up: {summary.given_up}; rows of dead attempts removed: {summary.rows_removed:,}")
    if summary.redacted:
        output.line(f"names redacted in {summary.redacted} tables; erased for good once their old files are vacuumed")
    output.table(
        ["table", "rows removed", "files", "files now", "MiB", "MiB now"],
        [
            (
                each.table,
                each.rows_removed,
                each.before.files,
                each.after.files,
                _mib(each.before.bytes),
                _mib(each.after.bytes),
            )
            for each in summary.tables
        ],
    )
    for aside in summary.set_aside:
        output.line(f"damaged table {aside.folder}: {f'kept; {aside.kept}' if aside.kept else 'removed'}")


def _mib(size: int) -> float:
    return round(size / 2**20, 2)
