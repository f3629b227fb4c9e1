"""`groupledger maintain`, `migrate` and `rebuild`: keep a ledger small, current and whole."""

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
    result = {**plain(summary), "rows_removed": summary.rows_removed}
    job.output.result({"status": "done", "command": job.name, **result})


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


@click.command(short_help="Migrate a ledger of an older version in place.")
@takes_config
def migrate(job: Job) -> None:
    """Create the tables, columns and layout that the ledger lacks in this version.

    If nothing is missing, nothing changes. No row is rewritten. Jobs of the older version that run meanwhile end with
    exit code 5, and are refused afterwards.
    """
    from groupledger.sinks.ledger import migrate as bring_forward
    from groupledger.tables import SCHEMA_VERSION

    spark = job.spark_for_ledger()
    with job.output.status("bringing the tables forward"):
        moved = bring_forward(spark, job.place())
    text = f"{len(moved)} tables brought to schema version {SCHEMA_VERSION}" if moved else "nothing to do"
    job.output.line(f"{job.place()}: {text}")
    for name, was in moved.items():
        job.output.line(f"    {name} {'made' if was is None else f'was {was}'}")
    job.output.result(
        {"status": "done", "command": job.name, "location": str(job.place()), "version": SCHEMA_VERSION, "moved": moved}
    )


@click.command(short_help="Restore lost or damaged rows from the raw records.")
@takes_config
def rebuild(job: Job) -> None:
    """Read every table; set aside unreadable ones; restore missing rows of committed runs.

    Needs intact `log_records`, `topic_snapshots` and `runs`. Restored rows have the digest that their run committed;
    otherwise the command ends with exit code 2 and says what differs. No other job should write meanwhile.
    """
    from groupledger.pipeline.rebuild import rebuild as run

    spark = job.spark_for_ledger()
    with job.output.status("reading every table"):
        summary = run(spark, job.place(), job.config, job.invocation(None))
    for table, aside in summary.set_aside.items():
        job.output.line(f"{table} could not be read; its files are now at {aside}")
    if summary.remade:
        rows = [(each.table, each.run_id, f"{each.rows:,}") for each in summary.remade]
        job.output.table(["table", "rows made again of run", "rows"], rows)
    else:
        job.output.line(f"{job.place()}: the rows of all {summary.runs} committed runs are there; nothing was done")
    job.output.result({"status": "done", "command": "rebuild", **plain(summary)})
