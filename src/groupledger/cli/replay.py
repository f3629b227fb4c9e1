"""`groupledger replay`, `rehearse` and `verify`: recorded history once more, under another assignor or a listener."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import Column
from groupledger.answers.spoken import numbered
from groupledger.cli.exits import Exit
from groupledger.cli.options import (
    Job,
    takes_assignor,
    takes_cluster_name,
    takes_config,
    takes_group,
    takes_limit,
    takes_listener,
    takes_scenario,
    takes_scope,
    takes_wide,
)
from groupledger.cli.output import plain
from groupledger.cli.scripts import plain_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.answers.replayed import Replayed, ReplayedGroup
    from groupledger.answers.scope import RequestedScope
    from groupledger.cli.output import Output
    from groupledger.listener import Entry
    from groupledger.pipeline.rebuild import Verification

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9._-]+")
_LONGEST_NAME = 64


@click.command(short_help="What another assignor would have done with all history.")
@takes_scope
@takes_assignor
@takes_scenario
@click.option("--mode", type=click.Choice(["as-kafka", "kip"]), help="Form of the step; default: as configured.")
@takes_limit
@takes_wide
@takes_config
def replay(
    job: Job,
    *,
    assignor: str | None,
    scenario: str | None,
    mode: str | None,
    wide: bool,
    limit: int,
    asked: RequestedScope,
) -> None:
    """Compute what each recorded rebalance would have been, had the group run --assignor from the start.

    The results are committed as --scenario; default: replay- and the assignor's name. GROUP may be a pattern.

    \b
    groupledger replay --assignor cooperative-sticky --since 30d
    """
    if assignor is None:
        raise click.UsageError("Missing option '--assignor'.")
    _under_assignor(job, assignor, scenario, mode, asked, limit, wide=wide)


@click.command(short_help="Call your rebalance listener as members were called.")
@takes_group(required=True)
@takes_listener
@takes_cluster_name
@takes_limit
@takes_config
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
    _under_listener(job, listener, group, cluster, limit)


@click.command(short_help="Compute a committed run again, and compare the digests.")
@click.argument("run_id", metavar="RUN")
@takes_config
def verify(job: Job, *, run_id: str) -> None:
    """Compute the committed run RUN again from the facts that it saw. Exit code 4 if the rows differ.

    \b
    groupledger verify nightly-2026-11-21
    """
    from groupledger.pipeline.rebuild import verify as again

    spark = job.spark_for_ledger()
    with job.output.status("making the run again"):
        answer = again(spark, job.place(), job.config, run_id)
    _print_verified(job.output, answer)
    status = "done" if answer.same else "different"
    job.output.result({"status": status, "command": "verify", **plain(answer)})
    if not answer.same:
        click.get_current_context().exit(Exit.VIOLATIONS)


def scenario_of(assignor: str, prefix: str = "replay-") -> str:
    """Return the scenario name for results under an assignor: its name, as far as allowed, behind a prefix."""
    return f"{prefix}{_NOT_IN_A_NAME.sub('-', assignor.lower())}"[:_LONGEST_NAME]


def _under_assignor(
    job: Job, assignor: str, scenario: str | None, mode: str | None, asked: RequestedScope, limit: int, *, wide: bool
) -> None:
    from groupledger.answers.replayed import replayed
    from groupledger.answers.scope import scope
    from groupledger.pipeline.assign import assign

    name = scenario or scenario_of(assignor)
    every = {"assign.snapshots": "every", "assign.overrides": "[]"}
    recorded = job.override(every | {"assign.assignor": "recorded", "assign.scenario": "recorded"})
    other = job.override(
        every | {"assign.assignor": assignor, "assign.scenario": name, "assign.mode": mode, "assign.carried": "true"}
    )
    scope(job.reader(), asked)  # a wrong question is answered before anything is computed
    spark = job.spark_for_ledger()
    with job.output.status("computing what happened"):
        assign(spark, recorded.config, recorded.invocation(None))
    with job.output.status(f"computing {assignor}"):
        summary = assign(spark, other.config, other.invocation(None))
    answer = replayed(job.reader(), asked, name, limit)
    _print_replayed(job.output, answer, assignor, wide=wide)
    job.output.result(
        {"status": "done", "command": "replay", "run_id": summary.run_id, "assignor": assignor, **plain(answer)}
    )


def _print_replayed(output: Output, answer: Replayed, assignor: str, *, wide: bool) -> None:
    for note in answer.notes:
        output.line(note)
    if not answer.total:
        return
    text = f"{numbered(answer.rebalances, 'rebalance')} of {numbered(answer.total, 'group')}"
    output.title(f"{text}, as they were and under {assignor}")
    kinds = (
        ("partitions that went to another member", "gained"),
        ("partitions that had to be given up", "revoked"),
        ("rebalances that need another one", "follow_ups"),
        ("most less fewest of a member, summed", "spread"),
    )
    rows = [(words, getattr(answer.happened, name), getattr(answer.replayed, name)) for words, name in kinds]
    output.table(("", "happened", assignor), rows)
    output.title("By group, the greatest difference first")
    output.rows(list(map(_cells, answer.groups)), wide=wide)
    output.left_off(answer.total - len(answer.groups), "more groups")
    output.line(f"each rebalance: current_rebalances and current_assignments, scenario {answer.scenario} (`sql`)")


def _cells(group: ReplayedGroup) -> dict[Column, object]:
    """Return each number as recorded, and as it would have been."""
    was, then = group.happened, group.replayed
    return {
        Column("group", least=12): group.group_id,
        Column("cluster", 2): group.cluster_id,
        Column("rebalances"): group.rebalances,
        Column("gained"): was.gained,
        Column("then", place=1): then.gained,
        Column("given up"): was.revoked,
        Column("then", place=2): then.revoked,
        Column("uneven", 1): was.spread,
        Column("then", 1, place=3): then.spread,
    }


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


def _under_listener(job: Job, listener: str, group: str, cluster: str | None, limit: int) -> None:
    from groupledger.core.faults import prints_to_stderr
    from groupledger.listener.listener_names import find_listener

    make = find_listener(listener)  # before anything is read
    with job.output.status("reading the group's history"):
        from groupledger.answers.recorded_history import group_log, recorded_history
        from groupledger.core.protocol.recorded import recorded_calls
        from groupledger.listener.rehearsal import rehearse_commits, rehearse_history

        reader = job.reader()
        history = recorded_history(reader, group, cluster)
        log = group_log(reader, group, history.cluster_id, history.groups[-1].log_partition)
    calls = list(recorded_calls(history.groups, history.members))
    with prints_to_stderr():
        if log.commits:
            journal = rehearse_commits(history.groups, history.members, log, make)
        else:
            journal = rehearse_history(calls, make, timeouts=log.rebalance_timeout_ms)
    wrong = [entry for entry in journal if entry.error is not None]
    _print_journal(job.output, journal, wrong, limit)
    job.output.line(_basis(len(calls), len(log.commits)))
    job.output.result(
        {
            "status": "done",
            "command": "rehearse",
            "calls": len(calls),
            "commits": len(log.commits),
            "did": dict(Counter(entry.did for entry in journal)),
            "errors": [plain_entry(entry) for entry in wrong],
        }
    )
    if wrong:
        click.get_current_context().exit(Exit.VIOLATIONS)


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
    rows = [tuple(plain[name] for name in columns) for plain in map(plain_entry, wrong[:limit])]
    output.table(columns, rows)
