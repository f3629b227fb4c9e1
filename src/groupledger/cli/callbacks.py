"""`groupledger callbacks`: write all recorded history's listener calls, and their metrics, to tables."""

from __future__ import annotations

import click

from groupledger.cli.options import Job, takes_config, takes_run_id, takes_timings
from groupledger.cli.output import plain
from groupledger.cli.runs import print_rows, print_timings, run_title

MOST_HOURS = 366 * 24


@click.command(short_help="Write members' calls, and KIP-429's metrics, to tables.")
@click.option(
    "--hours", type=click.IntRange(1, MOST_HOURS), default=24, show_default=True, help="Length of the metrics' windows."
)
@takes_run_id
@takes_timings
@takes_config
def callbacks(job: Job, *, hours: int, run_id: str | None, timings: bool) -> None:
    """Derive from all recorded history which listener and assignor calls each member of a classic group got, and
    KIP-429's client metrics by window. Both belong to one run, whose rows replace those of the previous run.

    \b
    groupledger callbacks --hours 1
    """
    from groupledger.pipeline.call_tables import keep_calls

    spark = job.spark_for_ledger()
    with job.output.status("deriving calls"):
        summary = keep_calls(spark, job.config, job.invocation(run_id), hours)
    job.output.title(run_title(job.name, summary.run_id, already_committed=summary.already_committed))
    print_rows(job.output, summary.rows)
    if timings:
        print_timings(job.output, summary.timings)
    job.output.result({"status": "done", "command": job.name, **plain(summary)})
