"""`groupledger show`: show the ledger's content, for a person or as one JSON line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.options import Job, moment, takes, was_given

if TYPE_CHECKING:
    from groupledger.answers.queries import Reader
    from groupledger.core.moments import Bound


@click.command(short_help="What the ledger knows: groups, a group, one rebalance.")
@takes("group", "generation", "at")
@click.option("--findings", is_flag=True, help="Findings to look at.")
@click.option("--coverage", is_flag=True, help="Gaps in the history.")
@click.option("--quarantine", is_flag=True, help="Rejected input, with the reason.")
@takes("cluster", "scenario", "limit", "wide", "config")
def show(
    job: Job,
    *,
    group: str | None,
    generation: int | None,
    at: Bound | None,
    findings: bool,
    coverage: bool,
    quarantine: bool,
    cluster: str | None,
    scenario: str | None,
    limit: int,
) -> None:
    """Show the ledger at a glance, a group, or one rebalance of it: to a generation, or the one in force at a time.

    \b
    groupledger show
    groupledger show payments
    groupledger show payments --generation latest
    groupledger show payments --at '10m ago'
    """
    kinds = {"findings": findings, "coverage": coverage, "quarantine": quarantine}
    chosen = [name for name, is_wanted in kinds.items() if is_wanted]
    if len(chosen) > 1:
        raise click.UsageError("expected one of --findings, --coverage and --quarantine")
    listing = chosen[0] if chosen else None
    one = at is not None or was_given("generation", "last")
    if one and (group is None or listing):
        raise click.UsageError("--generation and --at show one rebalance of a GROUP")
    if generation is not None and at is not None:
        raise click.UsageError("--generation or --at, not both")
    if scenario is not None and (group is None or listing or one):
        raise click.UsageError("--scenario goes with the history of a GROUP only")

    def ask(reader: Reader) -> Any:
        from groupledger.answers import at_a_glance
        from groupledger.answers.explanation import rebalance

        if listing is not None:
            return [getattr(at_a_glance, listing)(reader, limit, cluster, group)]
        if group is None:
            lists = at_a_glance.clusters(reader, limit), at_a_glance.groups(reader, limit, cluster)
            return [*lists, at_a_glance.runs(reader, limit)]
        if one:
            return rebalance(reader, group, cluster, generation, at=moment(reader, cluster, at, group))
        name = scenario or job.config.assign.scenario
        return [at_a_glance.history(reader, group, cluster, name, limit, asked=scenario is not None)]

    with job.output.status("reading the ledger"):
        answer = ask(job.reader())
    from groupledger.cli.answers import as_json, print_answer

    print_answer(job.output, answer, limit)
    job.answered(answer, cluster, **as_json(answer))
