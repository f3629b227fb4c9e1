"""`groupledger demo`: run the main job on real Kafka data, and print a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from groupledger.cli.options import Job, takes_sample, takes_timings
from groupledger.cli.output import Output
from groupledger.cli.runs import explain_verdicts, ingest_json, print_accounts, print_timings, print_verdicts

if TYPE_CHECKING:
    from groupledger.pipeline.demo import DemoSummary

NEXT = (
    "show",
    "show --group java-cooperative-sticky --cluster dev",
    "show --group java-cooperative-sticky --generation 4",
    "who orders-4 --at 2026-11-21T12:09Z --cluster dev",
    "timeline java-cooperative-sticky --cluster dev",
    "show --findings --cluster edge",
    "assign --assignor cooperative-sticky --snapshots every",
)
"""Commands to try on the demo's ledger."""


@click.command(short_help="Run the whole pipeline on four captured logs, and show the result.")
@takes_timings
@takes_sample
def demo(job: Job, *, timings: bool) -> None:
    """Run init, ingest and assign on logs captured from a real broker, in one Spark session, and print a summary.

    A second run finds its work committed and shows the same.
    """
    from groupledger.pipeline.demo import demo as run

    spark = job.spark()
    with job.output.status("starting") as telling:
        summary = run(spark, job.config, lambda: job.invocation(None), telling)
    print_demo(job, summary)
    if timings:
        stages = (("ingest", summary.ingest.timings), ("assign", summary.assign.timings))
        named = {f"{name}: {stage}": seconds for name, of in stages for stage, seconds in of.items()}
        print_timings(job.output, named)
    told = {"ingest": ingest_json(summary.ingest), "assign": summary.assign, "groups": summary.groups}
    job.output.result({"status": "done", "command": "demo", **told})


def print_demo(job: Job, summary: DemoSummary) -> None:
    """Print the account of the records, the groups, the verdicts, and what to try next."""
    from groupledger.pipeline.frames import total

    output = job.output
    ingested, computed = summary.ingest, summary.assign
    repeated = ingested.already_committed and computed.already_committed
    output.title("Every record accounted for" + (" (already committed: nothing was done again)" if repeated else ""))
    print_accounts(output, ingested.accounts)
    cluster = job.config.cluster_id
    output.title(f"Groups of cluster {cluster}: what was recorded, and whether we compute the same")
    print_verdicts(output, [group for group in summary.groups if group.cluster_id == cluster])
    output.title(f"All {computed.groups_in:,} recorded states of all {len(ingested.accounts)} clusters")
    explain_verdicts(output, total(summary.groups))
    _print_next(output, job)


def _print_next(output: Output, job: Job) -> None:
    output.title("Next")
    output.line(f"The ledger is at {job.place()}: Delta tables, each with comments on its columns. Try:")
    for command in NEXT:
        output.line(f"    groupledger {command} --ledger {job.config.ledger.location}")
