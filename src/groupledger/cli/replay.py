"""`groupledger replay`, `rehearse` and `verify`: recorded history once more, under another assignor or a listener."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import columns_of
from groupledger.answers.spoken import numbered
from groupledger.cli.exits import exit_if
from groupledger.cli.options import Job, takes
from groupledger.cli.output import Output, plain
from groupledger.cli.scripts import plain_entry
from groupledger.core.text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from groupledger.answers.replayed import Replayed
    from groupledger.answers.scope import RequestedScope
    from groupledger.listener import Entry
    from groupledger.pipeline.rebuild import Verification


@click.command(short_help="What another assignor would have done with all history.")
@takes("scope", "assignor")
@click.option("--mode", type=click.Choice(["as-kafka", "kip"]), help="Form of the step; default: as configured.")
@click.option("--commit", is_flag=True, help="Keep the results in the ledger, as --scenario.")
@takes("scenario", "html", "limit", "wide", "config")
def replay(
    job: Job,
    *,
    asked: RequestedScope,
    assignor: str | None,
    mode: str | None,
    commit: bool,
    scenario: str | None,
    html: Path | None,
    limit: int,
) -> None:
    """Compute what each recorded rebalance would have been, had the group run --assignor from the start.

    Nothing is written to the ledger without --commit; the scenario is then called replay- and the assignor's name,
    unless --scenario names it. GROUP may be a pattern.

    \b
    groupledger replay --assignor cooperative-sticky --since 30d
    groupledger replay payments --assignor sticky --html payments.html
    """
    if assignor is None:
        raise click.UsageError("Missing option '--assignor'.")
    if scenario is not None and not commit:
        raise click.UsageError("--scenario goes with --commit")
    from groupledger.answers.scope import scope
    from groupledger.pipeline.replays import replay as replayed
    from groupledger.pipeline.replays import settings_of

    recorded, other = map(job.override, settings_of(assignor, scenario, mode))
    scope(job.reader(), asked)  # a wrong question is answered before anything is computed
    spark = other.spark_for_ledger(assigns=True)
    kept = {"run_id": _committed(job, spark, recorded, other)} if commit else {}
    with job.output.status(f"computing what happened, and {assignor}"):
        answer = replayed(spark, job.reader(), (recorded.config, other.config), asked, limit)
    print_replayed(job.output, answer, committed=commit)
    if html is not None:
        from groupledger.report.html.comparison_page import replay_page
        from groupledger.report.html.written import write_page

        write_page(replay_page, answer, html)
        job.output.line(f"picture: {html}")
    job.done({**kept, **plain(answer)})


@click.command(short_help="Call your rebalance listener as members were called.")
@takes("GROUP", "listener", "cluster", "limit", "config")
def rehearse(job: Job, *, group: str, listener: str | None, cluster: str | None, limit: int) -> None:
    """Make the calls that each member of GROUP got, with --listener in each member.

    Exit code 4 if it failed or raised, took longer than the member's rebalance timeout, or gave up a partition without
    committing what was read. What was read is what the recorded offset commits say, if the ledger has any
    (docs/guides/investigate/commits-at-hand-over.md); else one record of each partition before each generation. The log
    does not show how a member ended: revoked is called. `simulate --listener` plays a script of your own.

    \b
    groupledger rehearse payments --listener shop.listeners:Committing
    """
    if listener is None:
        raise click.UsageError("Missing option '--listener'.")
    from groupledger.core.faults import prints_to_stderr
    from groupledger.listener.listener_names import find_listener

    make = find_listener(listener)  # before anything is read
    with job.output.status("reading the group's history"):
        from groupledger.answers.recorded_history import group_log, recorded_history
        from groupledger.core.protocol.recorded import recorded_calls
        from groupledger.listener.rehearsal import rehearse_commits, rehearse_history

        reader = job.reader()
        groups, members = recorded_history(reader, group, cluster)
        log = group_log(reader, groups[-1])
    calls = list(recorded_calls(groups, members))
    with prints_to_stderr():
        if log.commits:
            journal = rehearse_commits(groups, members, log, make)
        else:
            journal = rehearse_history(calls, make, timeouts=log.rebalance_timeout_ms)
    wrong = [entry for entry in journal if entry.error is not None]
    _print_journal(job.output, journal, wrong, limit)
    job.output.line(_basis(len(calls), len(log.commits)))
    did, errors = Counter(entry.did for entry in journal), [plain_entry(entry) for entry in wrong]
    job.done({"calls": len(calls), "commits": len(log.commits), "did": did, "errors": errors})
    exit_if(wrong)


@click.command(short_help="Compute a committed run again, and compare the digests.")
@click.argument("run_id", metavar="RUN")
@takes("config")
def verify(job: Job, *, run_id: str) -> None:
    """Compute the committed run RUN again from the facts that it saw. Exit code 4 if the rows differ.

    \b
    groupledger verify nightly-2026-11-21
    """
    from groupledger.answers.queries import rows_of
    from groupledger.pipeline.rebuild import require_run
    from groupledger.pipeline.rebuild import verify as again

    runs = rows_of(job.reader().query("SELECT t.run_id FROM current_runs t ORDER BY t.sequence"))
    require_run([name for (name,) in runs], run_id)  # before Spark is started
    spark = job.spark_for_ledger()
    with job.output.status("making the run again"):
        answer = again(spark, job.place(), job.config, run_id)
    _print_verified(job.output, answer)
    job.done(plain(answer), "done" if answer.same else "different")
    exit_if(not answer.same)


def _committed(job: Job, spark: SparkSession, recorded: Job, other: Job) -> str:
    """Commit the results of both scenarios; return the run of the other one."""
    from groupledger.pipeline.assign import assign

    with job.output.status("keeping what happened") as doing:
        assign(spark, recorded.config, recorded.invocation(None, doing))
        return assign(spark, other.config, other.invocation(None, doing)).run_id


def print_replayed(output: Output, answer: Replayed, *, committed: bool = False) -> None:
    """Print what the assignor saves in one line, then the groups."""
    from groupledger.answers.replayed import ReplayedGroup

    for note in answer.notes:
        output.line(note)
    if not answer.total:
        return
    output.line(answer.text)
    text = f"{numbered(answer.rebalances, 'rebalance')} of {numbered(answer.total, 'group')}"
    output.title(f"{text}: as they were -> under {answer.assignor}")
    several = len({group.cluster_id for group in answer.groups}) > 1
    columns = [(name, each) for name, each in columns_of(ReplayedGroup) if name != "cluster_id" or several]
    rows = [{each: getattr(group, name) for name, each in columns} for group in answer.groups]
    output.rows(rows)
    output.left_off(answer.total - len(answer.groups), "more groups")
    if committed:
        output.line(f"each rebalance: current_rebalances and current_assignments, scenario {answer.scenario} (`sql`)")


def _print_verified(output: Output, answer: Verification) -> None:
    words = {True: "the same", False: "different", None: "as many"}
    output.table(
        ("table", "rows committed", "rows made now", "they are"),
        [
            (each.table, each.committed, each.made, words[each.same] if each.committed == each.made else "different")
            for each in answer.tables
        ],
    )
    verdict = "bit for bit what it committed" if answer.same else "not what it committed"
    output.line(f"run {answer.run_id} ({answer.kind}, commit {answer.sequence}), made again: {verdict}")
    if not answer.same:
        output.line(f"it was made by code {answer.code_then}; `groupledger doctor --deep` looks at the facts")


def _basis(calls: int, commits: int) -> str:
    """Return what the replay rests on."""
    text = f"replayed: {numbered(calls, 'call')} of the listener and the assignor"
    if commits:
        return f"{text}, {numbered(commits, 'offset commit')}"
    return f"{text}; the ledger has no offset commit of the group, so one record of each partition per generation"


def _print_journal(output: Output, journal: Sequence[Entry], wrong: Sequence[Entry], limit: int) -> None:
    counted = Counter((entry.callback.value, entry.did, entry.error is None) for entry in journal)
    output.title("What the listener did")
    output.table(("callback", "did", "well", "times"), [(*what, times) for what, times in sorted(counted.items())])
    output.title(f"What went wrong: {len(wrong)}")
    columns = ("member", "callback", "did", "partitions", "error")
    short = shortened(entry.member for entry in journal)
    rows = [(short[entry.member], *(plain_entry(entry)[name] for name in columns[1:])) for entry in wrong[:limit]]
    output.table(columns, rows)
