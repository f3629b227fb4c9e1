"""The answers of `show` in words and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groupledger.answers.rebalance import Rebalance
from groupledger.answers.spoken import spans
from groupledger.cli.output import plain
from groupledger.core.attributed import NOT_APPLICABLE, Attributed, in_words
from groupledger.core.moment import iso
from groupledger.core.short_names import shortened

if TYPE_CHECKING:
    from groupledger.answers.listings import Listing
    from groupledger.answers.rebalance import MemberMove, Result
    from groupledger.cli.output import Output

NOT_COMPARED = Attributed.NOT_COMPARED.text
LOWER_BOUND = "lower-bound"

Answer = Rebalance | list["Listing"]


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer in what JSON has; a listing's rows as objects."""
    if isinstance(answer, list):
        return {listing.title: _listing_json(listing) for listing in answer}
    return {"rebalance": plain(answer)}


def _listing_json(listing: Listing) -> dict[str, Any]:
    rows = [dict(zip(listing.columns, row, strict=True)) for row in listing.rows]
    return {"total": listing.total, "rows": plain(rows)}


def tell(output: Output, answer: Answer) -> None:
    """Print the answer for a person."""
    if isinstance(answer, Rebalance):
        tell_rebalance(output, answer)
    else:
        for listing in answer:
            tell_listing(output, listing)


def tell_listing(output: Output, listing: Listing) -> None:
    """A table; how many rows were left off, and that there are none, is said."""
    output.title(listing.title)
    if not listing.rows:
        output.line("none")
    output.table([name.replace("_", " ") for name in listing.columns], listing.rows)
    if listing.left_off:
        output.line(f"... and {listing.left_off:,} more (--limit)")


def tell_rebalance(output: Output, answer: Rebalance) -> None:
    """Who had what, who was given what, and what our own run says."""
    output.title(answer.title)
    output.line(f"{iso(answer.observed_at)}  {answer.state}  {answer.snapshot_kind}  [{answer.snapshot_id}]")
    if not answer.complete:
        output.line("incomplete: the log was cut here, no verdict rests on it")
    if answer.previous_snapshot_id is None:
        output.line("no snapshot before it in this incarnation of the group: nothing held is known")
    if answer.same_generation:
        output.line(f"other records of this generation: {', '.join(answer.same_generation)}")
    short = shortened(move.member_id for move in answer.members)
    rows = [_member(move, short[move.member_id]) for move in answer.members]
    output.table(["member", "held", "assigned", "added", "revoked"], rows)
    output.title("computed")
    if not answer.results:
        output.line("nothing yet: run `groupledger assign`")
    output.table(
        ["scenario", "assignor", "protocol", "outcome", "verdict", "moves", "least moves", "unassigned", "follow-up"],
        [(r.scenario, r.assignor, r.protocol, r.outcome, r.verdict, r.moves, least(r), r.unassigned, r.follow_up)
         for r in answer.results],
    )  # fmt: skip
    for result in answer.results:
        if result.attribution != NOT_COMPARED:
            said = in_words(result.attribution, result.attributed_to)
            output.line(f"whose algorithm (scenario {result.scenario}): {said}")
    for finding in answer.findings:
        output.line(f"finding: {finding}")
    for gap in answer.gaps:
        output.line(f"gap since the snapshot before: {gap}")
    if answer.topics_not_listed:
        names = ", ".join(answer.topics_not_listed)
        output.line(f"in no topic listing at that time, so that partition counts are not known: {names}")


def least(result: Result) -> int | str | None:
    """The least moves; in words where they are a bound (`4 or more`) or there is no number (`topic unknown`)."""
    certainty = result.least_moves_certainty
    if result.least_moves is None and certainty is not None:
        return certainty.removeprefix(NOT_APPLICABLE).replace("-", " ")
    return f"{result.least_moves:,} or more" if certainty == LOWER_BOUND else result.least_moves


def _member(move: MemberMove, name: str) -> tuple[str, ...]:
    return name if move.stays else f"{name} (gone)", *(
        spans(places) for places in (move.held, move.assigned, move.added, move.revoked)
    )
