"""The answers of `show` in words and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groupledger.answers.ownership import Ownership
from groupledger.answers.rebalance import Rebalance
from groupledger.cli.output import plain
from groupledger.core.attributed import NOT_APPLICABLE, Attributed, in_words
from groupledger.core.moment import iso
from groupledger.core.short_names import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.answers.listings import Listing
    from groupledger.answers.ownership import Holding
    from groupledger.answers.rebalance import MemberMove, Result, TopicPartition
    from groupledger.cli.output import Output

NOT_COMPARED = Attributed.NOT_COMPARED.text
LOWER_BOUND = "lower-bound"

Answer = Ownership | Rebalance | list["Listing"]


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer in what JSON has; a listing's rows as objects."""
    if isinstance(answer, list):
        return {listing.title: _listing_json(listing) for listing in answer}
    kind = "ownership" if isinstance(answer, Ownership) else "rebalance"
    return {kind: plain(answer)}


def _listing_json(listing: Listing) -> dict[str, Any]:
    rows = [dict(zip(listing.columns, row, strict=True)) for row in listing.rows]
    return {"total": listing.total, "rows": plain(rows)}


def tell(output: Output, answer: Answer) -> None:
    """Print the answer for a person."""
    if isinstance(answer, Ownership):
        tell_ownership(output, answer)
    elif isinstance(answer, Rebalance):
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


def tell_ownership(output: Output, answer: Ownership) -> None:
    """A line a group, then the topic's lives where the name had several, then what limits the answer."""
    output.title(f"{answer.topic}-{answer.partition} at {iso(answer.at)}, as the coordinator recorded it")
    columns = [
        "cluster",
        "group",
        "assigned to",
        "client",
        "instance",
        "since",
        "until",
        "then",
        "recorded at",
        "topic id",
    ]
    output.table(columns, [_holding(holding) for holding in answer.holdings])
    if len({life.topic_id for life in answer.topics}) > 1:
        output.line()
        output.table(
            ["cluster", "topic id", "partitions", "since", "until"],
            [(life.cluster_id, life.topic_id, life.partition_count, life.since, life.until) for life in answer.topics],
        )
    for note in answer.notes:
        output.line(f"note: {note}")


def _holding(holding: Holding) -> tuple[object, ...]:
    member, last, following = holding.member, holding.last, holding.next
    return (
        holding.cluster_id,
        holding.group_id,
        member.member_id if member else "nobody" if last or holding.covered else "not known: its record begins later",
        member and member.client_id,
        member and member.group_instance_id,
        holding.since,
        following and following.at,
        following and (following.to_member_id or (None if holding.shared else "nobody")),
        last and last.snapshot_id,
        holding.topic_id,
    )


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


def spans(places: Iterable[TopicPartition]) -> str:
    """(orders, 0), (orders, 1), (orders, 3), (audit, 2) -> `audit:2 orders:0-1,3`; nothing is `-`."""
    numbers: dict[str, list[int]] = {}
    for topic, number in sorted(places):
        numbers.setdefault(topic, []).append(number)
    return " ".join(f"{topic}:{_runs(found)}" for topic, found in numbers.items()) or "-"


def _runs(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
