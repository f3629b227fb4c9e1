"""`groupledger explain`: explain why a group rebalanced, and with what effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from groupledger.cli.options import Job, takes_config
from groupledger.cli.output import plain
from groupledger.core.attributed import in_words
from groupledger.core.length import length
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.causes import Moved
    from groupledger.answers.explanation import Explanation
    from groupledger.cli.output import Output

MOST_SHOWN = 20


@click.command(short_help="Explain a rebalance: the cause, moves, unowned partitions.")
@click.argument("group")
@click.option(
    "--generation", type=int, metavar="N", help="The rebalance to this generation or group epoch; default: the last."
)
@click.option("--cluster", metavar="CLUSTER", help="Only this cluster.")
@takes_config
def explain(job: Job, *, group: str, generation: int | None, cluster: str | None) -> None:
    """Explain what led to a generation: members that joined, left or returned, and other changes.

    The log holds states, not reasons: it does not say whether a member left, crashed or timed out.

    \b
    groupledger explain payments
    groupledger explain payments --generation 7 --json
    """
    from groupledger.answers.explanation import explain as explained

    with job.output.status("reading the ledger"):
        answer = explained(job.reader(), group, cluster, generation)
    tell(job.output, answer)
    job.output.result({"status": "done", "command": "explain", "explanation": plain(answer)})


def tell(output: Output, answer: Explanation) -> None:
    """Print it for a person: cause, moves, unowned partitions, how it settled."""
    told, before = answer.rebalance, answer.before
    output.title(told.title)
    output.line(f"{iso(told.observed_at)}  {told.state}  [{told.snapshot_id}]")
    if before is not None:
        ago = length(told.observed_at - before.observed_at)
        output.line(f"before: generation {before.generation}, {ago} earlier  [{before.snapshot_id}]")
    for gap in told.gaps:
        output.line(f"gap since the snapshot before: {gap}")
    output.title("cause")
    for cause in answer.causes:
        output.line(f"- {cause.what}")
    output.title("moved")
    _tell_moves(output, answer)
    if answer.unowned:
        output.title("nobody had")
        _tell_unowned(output, answer)
    if answer.rounds is not None:
        generations = "generation" if answer.rounds == 1 else "generations"
        output.line()
        fewest = told.compared and told.compared.fewest_rounds
        told_fewest = "" if fewest is None else f", fewest: {fewest}"
        output.line(f"settled in generation {answer.settled}: {answer.rounds} {generations}{told_fewest}")


def _tell_unowned(output: Output, answer: Explanation) -> None:
    """Print one line for all partitions without an owner from one moment to another."""
    from groupledger.answers.spoken import spans

    together: dict[tuple[datetime, datetime | None], list[tuple[str, int]]] = {}
    for each in answer.unowned:
        together.setdefault((each.since, each.until), []).append((each.topic, each.partition))
    rows = [
        (iso(since), length(until - since) if until else "to the end", len(places), spans(places))
        for (since, until), places in together.items()
    ]
    output.table(["since", "for", "partitions", "which"], rows[:MOST_SHOWN])
    _tell_rest(output, len(rows))


def _tell_moves(output: Output, answer: Explanation) -> None:
    """Print one line per pair of members between which partitions moved."""
    from groupledger.answers.spoken import NOBODY, spans, told_apart
    from groupledger.cli.answers import least

    pairs: dict[tuple[str, str], list[Moved]] = {}
    for each in answer.moved:
        pairs.setdefault((each.from_member_id or NOBODY, each.to_member_id or NOBODY), []).append(each)
    names, start = told_apart(name for pair in pairs for name in pair if name != NOBODY)
    if start:
        output.line(f"member ids begin with {start}")
    rows = [
        (*(names.get(name, NOBODY) for name in pair), len(some), spans((each.topic, each.partition) for each in some))
        for pair, some in pairs.items()
    ]
    if not rows:
        output.line("nothing")
    output.table(["from", "to", "partitions", "which"], rows[:MOST_SHOWN])
    _tell_rest(output, len(rows))
    result = answer.rebalance.compared
    if result is not None:
        found = least(result)
        fewest = "not known" if found is None else f"{found:,}" if isinstance(found, int) else found
        output.line(f"from member to member: {result.moves:,}, least: {fewest}; verdict: {result.verdict}")
        output.line(f"whose algorithm: {in_words(result.attribution, result.attributed_to)}")


def _tell_rest(output: Output, number: int) -> None:
    if number > MOST_SHOWN:
        output.line(f"... and {number - MOST_SHOWN:,} more (--json has all)")
