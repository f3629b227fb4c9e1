"""`groupledger ingest` and `assign`: the two jobs, each one run of the ledger."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.cluster import takes_cluster
from groupledger.cli.exits import Exit
from groupledger.cli.following import Following, takes_follow
from groupledger.cli.options import Job, takes_config, takes_run_id, takes_timings
from groupledger.cli.output import plain, say
from groupledger.cli.summaries import ingest_json, tell_assign, tell_ingest, tell_timings, tell_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from groupledger.pipeline.assign import AssignSummary
    from groupledger.pipeline.ingest import IngestSummary

takes_max_quarantined = click.option(
    "--max-quarantined", type=click.IntRange(min=0), metavar="N", help="Exit with 3 on more rejected rows than this."
)


@click.command(short_help="Read the configured sources into the ledger.")
@takes_follow
@takes_max_quarantined
@takes_run_id
@takes_timings
@takes_cluster
@takes_config
def ingest(
    job: Job, *, following: Following | None, run_id: str | None, timings: bool, max_quarantined: int | None
) -> None:
    """Read the offsets log, topic listings and snapshot tables named under `sources`; account for every record.

    Known input is recognised: the same files again are the same run, and change nothing. A running cluster is read from
    where its last ingest stopped.

    \b
    groupledger ingest                           # as configured
    groupledger ingest --bootstrap host:9092     # this cluster, into `ledger`
    groupledger ingest --follow                  # again each minute
    """
    from groupledger.config.settings import CLUSTERS
    from groupledger.pipeline.cluster import require_answers
    from groupledger.pipeline.ingest import ingest as run

    if following is not None and run_id is not None:
        raise click.UsageError("--run-id names one run, and --follow makes many; leave one of them out")
    job = job.override({"limits.max_quarantined": max_quarantined})
    clusters = [source for source in job.config.sources if source.kind in CLUSTERS]
    if clusters:
        with job.output.status("asking the cluster"):
            require_answers(clusters, time.perf_counter)
    only_a_cluster_named = "sources" in job.given
    spark = job.spark() if only_a_cluster_named else job.spark_for_ledger()
    if only_a_cluster_named:
        _make_ledger(job, spark)
    job.warn_of_writers(spark)

    def once() -> IngestSummary:
        with job.output.status("reading and folding the sources"):
            return run(spark, job.place(), job.config, job.invocation(run_id))

    if following is None:
        summary = once()
        tell_ingest(job.output, summary)
        over = _finished(job, summary, ingest_json(summary), timings=timings)
    else:
        over = following.run(job, once, functools.partial(_turn, job, timings=timings))
    _exit(over=over)


@click.command(short_help="Run an assignor over recorded groups; keep targets, steps and verdicts.")
@click.option("--assignor", metavar="NAME", help="Assignor for every group; `recorded`: each group's own.")
@click.option("--scenario", metavar="NAME", help="Name of the results; default with --assignor: its name.")
@click.option("--snapshots", type=click.Choice(["latest", "every"]), help="Which snapshots of each group.")
@click.option("--whole", is_flag=True, help="With latest: compute the groups without newer facts, too.")
@takes_max_quarantined
@takes_run_id
@takes_timings
@takes_config
def assign(
    job: Job,
    *,
    assignor: str | None,
    scenario: str | None,
    snapshots: str | None,
    whole: bool,
    run_id: str | None,
    timings: bool,
    max_quarantined: int | None,
) -> None:
    """Recompute the recorded rebalances, or compute what another assignor would have done, and commit it as one run.

    Of the latest snapshots it computes those of groups with newer facts than the scenario's last run; the results of
    the others stand.

    \b
    groupledger assign                                      # as configured
    groupledger assign --snapshots every                    # all of history
    groupledger assign --assignor cooperative-sticky        # what if
    """
    from groupledger.pipeline.assign import assign as run

    what_if = assignor if assignor != "recorded" else None
    job = job.override(
        {
            "assign.assignor": assignor,
            "assign.scenario": scenario or what_if,
            "assign.snapshots": snapshots,
            "limits.max_quarantined": max_quarantined,
        }
    )
    spark = job.spark_for_ledger()
    job.warn_of_writers(spark)
    with job.output.status("computing"):
        summary = run(spark, job.config, job.invocation(run_id), whole=whole)
    tell_assign(job.output, summary)
    _exit(over=_finished(job, summary, plain(summary), timings=timings))


def _make_ledger(job: Job, spark: SparkSession) -> None:
    """Create the ledger if it is missing: possibly only a cluster was named."""
    from groupledger.sinks.ledger import init, stands
    from groupledger.sinks.placement import require_lasting_catalog
    from groupledger.tables import RUNS

    require_lasting_catalog(spark, job.place())
    if not stands(spark, job.place(), RUNS):
        with job.output.status("making the tables"):
            init(spark, job.place())


def _turn(job: Job, summary: IngestSummary, *, timings: bool) -> bool:
    """Report one run of many; return whether it is over the limit."""
    tell_turn(job.output, summary, job.invocation(None).now())
    return _finished(job, summary, ingest_json(summary), timings=timings)


def _finished(job: Job, summary: IngestSummary | AssignSummary, told: Mapping[str, Any], *, timings: bool) -> bool:
    """Print the JSON line and the timings; return whether the committed run is over the limit."""
    if timings:
        tell_timings(job.output, summary.timings)
    limit = job.config.limits.max_quarantined
    over = summary.quarantined > limit
    job.output.result({"status": "quarantine-over-limit" if over else "done", "command": job.name, **told})
    if over:
        text = f"{summary.quarantined} rejected; limits.max_quarantined is {limit}: see `groupledger show --quarantine`"
        say(f"groupledger: {text}{_one_rejected(job, told['attempt_id'])} [QUARANTINE_OVER_LIMIT]")
    return over


def _one_rejected(job: Job, attempt_id: str) -> str:
    """Return one of what a run rejected, with its reason; its file and line where it was a line."""
    from groupledger.answers.listings import one_rejected

    found = one_rejected(job.reader(), attempt_id)
    return "" if found is None else f"; such as {found}"


def _exit(*, over: bool) -> None:
    if over:
        click.get_current_context().exit(Exit.QUARANTINE)
