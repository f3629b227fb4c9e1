"""`groupledger rebuild`: restore damaged tables from the raw records."""

from __future__ import annotations

import click

from groupledger.cli.options import Job, takes_config
from groupledger.cli.output import plain


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
