"""`groupledger show`: show the ledger's content, for a person or as one JSON line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.options import Job, takes_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from groupledger.answers.queries import Reader

_SCENARIO_ALONE = "--scenario goes with the history of a --group only"


@click.command(short_help="What the ledger knows: groups, a rebalance, who had a partition.")
@click.option("--group", metavar="GROUP", help="History of a group; with --generation or --last one rebalance.")
@click.option("--generation", type=int, metavar="N", help="The rebalance that led to this generation or group epoch.")
@click.option("--last", is_flag=True, help="The last rebalance of the group.")
@click.option("--partition", metavar="TOPIC-N", help="Who was assigned it, as `who` prints; needs --at.")
@click.option("--at", metavar="TIME", help="ISO 8601 (UTC unless it names a zone) or milliseconds since 1970.")
@click.option("--findings", is_flag=True, help="Findings to look at.")
@click.option("--coverage", is_flag=True, help="Gaps in the history.")
@click.option("--quarantine", is_flag=True, help="Rejected input, with the reason.")
@click.option("--cluster", metavar="CLUSTER", help="Only this cluster.")
@click.option("--scenario", metavar="NAME", help="Show moves and verdicts of this scenario; default: assign.scenario.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum rows of a table.")
@click.option("--wide", is_flag=True, help="All columns, and ids in full.")
@takes_config
def show(job: Job, *, wide: bool, findings: bool, coverage: bool, quarantine: bool, **asked: Any) -> None:
    """Show the ledger at a glance, a group, one rebalance, or who was assigned a partition at a time.

    \b
    groupledger show
    groupledger show --group payments
    groupledger show --group payments --generation 7
    groupledger show --partition orders-7 --at 2026-11-21T14:03Z
    """
    kinds = {"findings": findings, "coverage": coverage, "quarantine": quarantine}
    chosen = [name for name, is_wanted in kinds.items() if is_wanted]
    if len(chosen) > 1:
        raise click.UsageError("expected one of --findings, --coverage and --quarantine")
    listing = chosen[0] if chosen else None
    if asked["partition"] is not None or asked["at"] is not None:
        _show_owner(job, listing, wide=wide, **asked)
        return
    ask = _question(listing, **asked, default_scenario=job.config.assign.scenario)  # before the ledger is read
    with job.output.status("reading the ledger"):
        answer = ask(job.reader())
    from groupledger.cli.answers import as_json, print_answer

    print_answer(job.output, answer, asked["limit"], wide=wide)
    job.answered(answer, asked["cluster"], **as_json(answer))


def _show_owner(
    job: Job, listing: str | None, *, partition: str | None, at: str | None, limit: int, wide: bool, **others: Any
) -> None:
    """Print what `groupledger who` says of the partition."""
    from groupledger.cli.who import ask_owner

    if partition is None or at is None:
        raise click.UsageError("--partition and --at go together: --partition orders-7 --at 2026-11-21T14:03Z")
    if listing or others["last"] or others["generation"] is not None:
        raise click.UsageError("--partition goes with --at, --group and --cluster only")
    if others["scenario"] is not None:
        raise click.UsageError(_SCENARIO_ALONE)
    ask_owner(job, partition, at, others["cluster"], others["group"], limit, wide=wide)


def _question(
    listing: str | None,
    *,
    group: str | None,
    generation: int | None,
    last: bool,
    cluster: str | None,
    scenario: str | None,
    default_scenario: str,
    limit: int,
    **_of_an_owner: None,
) -> Callable[[Reader], Any]:
    """Return the question as a function of a reader; options that do not go together are a usage error."""
    if (last or generation is not None) and (group is None or listing):
        raise click.UsageError("--generation and --last tell one rebalance of a --group")
    if last and generation is not None:
        raise click.UsageError("--last or --generation, not both")
    if scenario is not None and (group is None or listing or last or generation is not None):
        raise click.UsageError(_SCENARIO_ALONE)

    def ask(reader: Reader) -> Any:
        from groupledger.answers import at_a_glance, explanation

        if listing is not None:
            return [getattr(at_a_glance, listing)(reader, limit, cluster, group)]
        if group is None:
            overview = at_a_glance.clusters(reader, limit), at_a_glance.groups(reader, limit, cluster)
            return [*overview, at_a_glance.runs(reader, limit)]
        if last or generation is not None:
            return explanation.rebalance(reader, group, cluster, generation)
        name = scenario or default_scenario
        return [at_a_glance.history(reader, group, cluster, name, limit, asked=scenario is not None)]

    return ask
