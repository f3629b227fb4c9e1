"""Print the answers of `show` in words and tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import Column, table
from groupledger.answers.explanation import MemberMove, Rebalance, Result
from groupledger.answers.scope import NO_RECORD
from groupledger.cli.output import Output, plain, room
from groupledger.core.moments import clock, iso
from groupledger.core.rebalance.findings import audited
from groupledger.core.rebalance.registry import NOT_APPLICABLE, Attributed, in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.answers.at_a_glance import Listing

RANKS: dict[str, int | tuple[int, int]] = {
    "group id": (0, 16),
    "evidence": (0, 24),
    "reason": (0, 24),
    "message": (0, 24),
    "observed at": 1,
    "verdict": (2, 12),
    "moves": 2,
    "members": 2,
    "cluster id": (3, 8),
    "offset": 3,
    "least moves": 3,
    "run id": (3, 16),
    "from value": 3,
    "to value": 3,
    "state": 4,
    "started at": 4,
    "assignor": (5, 12),
    "finished at": 5,
    "member id": (6, 16),
    "snapshot id": 6,
    "stage": 6,
    "log partition": 6,
    "snapshots": 6,
    "group type": 7,
    "snapshot kind": 7,
    "algorithm": (7, 16),
    "protocol": 8,
    "gaps": 8,
    "incarnation": 9,
}
"""How soon a column of a listing is left out where there is no room, the greatest first (others never), and the width
down to which its cells may be broken."""
WHY_EMPTY = {
    "clusters": NO_RECORD,
    "groups": NO_RECORD,
    "runs": "no job has committed anything yet",
    "findings": "nothing was found in what `ingest` and `assign` judged; `groupledger audit` judges more",
    "coverage": "the record has no gap, and every topic was listed",
    "quarantine": "no input was rejected",
}
"""What is so where a listing is empty; the history of a group never is."""
_TO_THE_SECOND = len("2026-11-21 14:03:00")
CONSTANT = 9
"""The rank of a column that has the same value in several rows."""

NOT_COMPARED = Attributed.NOT_COMPARED.text
LOWER_BOUND, TOPIC_UNKNOWN = "lower-bound", f"{NOT_APPLICABLE}topic-unknown"
RebalanceOrListings = Rebalance | list["Listing"]


def as_json(answer: RebalanceOrListings) -> dict[str, Any]:
    """Convert the answer to JSON values; a listing's rows become objects."""
    if isinstance(answer, list):
        rows = ([plain(dict(zip(each.columns, row, strict=True))) for row in each.rows] for each in answer)
        return {each.title: {"total": each.total, "rows": found} for each, found in zip(answer, rows, strict=True)}
    return {"rebalance": plain(answer)}


def print_answer(output: Output, answer: RebalanceOrListings, limit: int | None = None) -> None:
    """Print the answer for a person."""
    if isinstance(answer, Rebalance):
        print_rebalance(output, answer, limit)
    else:
        for listing in answer:
            print_listing(output, listing)


def print_listing(output: Output, listing: Listing) -> None:
    """Print a table, how many rows were left off, and why there are none; a wide one has times in full, in each row."""
    wide = output.wide or room() is None
    when, rows = ("", listing.rows) if wide else _with_short_times(listing.rows)
    chosen = [*range(len(listing.columns))]
    if not wide and listing.title != "clusters" and "cluster_id" in listing.columns:
        at = listing.columns.index("cluster_id")
        clusters = {row[at] for row in rows}
        if len(clusters) == 1:
            chosen.remove(at)
            when = f" (cluster {min(clusters)}{when.replace(' (', '; ') or ')'}"
    output.title(listing.title + when)
    if not listing.rows:
        output.line(f"none: {listing.why or WHY_EMPTY[listing.title]}")
    columns = [_column(listing, at) for at in chosen]
    output.fitted(columns, [[row[at] for at in chosen] for row in rows], wide=wide)
    output.left_off(listing.left_off)


def _with_short_times(rows: Sequence[Sequence[Any]]) -> tuple[str, Sequence[Sequence[Any]]]:
    """Return the text about all times, and the rows with the time of day if all are of one day, else to the second."""
    days = {value.astimezone(UTC).date() for row in rows for value in row if isinstance(value, datetime)}
    if not days:
        return "", rows
    day = min(days) if len(days) == 1 else None

    def short(value: Any) -> Any:
        if not isinstance(value, datetime):
            return value
        return clock(value, day) if day is not None else clock(value, None)[:_TO_THE_SECOND]

    of_all = "UTC" if day is None else f"{day.isoformat()}, UTC"
    return f" ({of_all})", [[short(value) for value in row] for row in rows]


def _column(listing: Listing, at: int) -> Column:
    name = listing.columns[at].replace("_", " ")
    ranked = RANKS.get(name, 0)
    rank, least = ranked if isinstance(ranked, tuple) else (ranked, None)
    same = len(listing.rows) > 1 and len({row[at] for row in listing.rows}) == 1
    return Column(name, CONSTANT if rank and same else rank, least)


def print_rebalance(output: Output, answer: Rebalance, limit: int | None = None) -> None:
    """Print who had what, who was assigned what, and our own result; in large groups, changed members come first."""
    output.title(answer.title)
    output.line(f"{iso(answer.observed_at)}  {answer.state}  {answer.snapshot_kind}  [{answer.snapshot_id}]")
    if not answer.complete:
        output.line("incomplete: the log was cut here, no verdict rests on it")
    if answer.previous_snapshot_id is None:
        output.line("no snapshot before it in this incarnation of the group: nothing held is known")
    if answer.same_generation:
        output.line(f"other records of this generation: {', '.join(answer.same_generation)}")
    _print_members(output, answer.members, limit)
    output.title("computed")
    if not answer.results:
        output.line("nothing yet: run `groupledger assign`")
    output.rows(map(_cells, answer.results), wide=output.wide or room() is None)
    for result in answer.results:
        if result.attribution != NOT_COMPARED:
            said = in_words(result.attribution, result.attributed_to, answer.leader_writes)
            output.line(f"whose algorithm (scenario {result.scenario}): {said}")
    for finding in answer.findings:
        output.line(f"finding: {audited(finding)}")
    for gap in answer.gaps:
        output.line(f"gap since the snapshot before: {gap}")
    if answer.topics_not_listed:
        names = ", ".join(answer.topics_not_listed)
        output.line(f"in no topic listing at that time, so that partition counts are not known: {names}")


def _cells(of: Result) -> dict[Column, object]:
    return {
        Column("scenario"): of.scenario,
        Column("assignor"): of.assignor,
        Column("protocol", 2): of.protocol,
        Column("outcome", 1): of.outcome,
        Column("verdict"): of.verdict,
        Column("moves"): of.moves,
        Column("least moves"): least(of),
        Column("unassigned", 3): of.unassigned,
        Column("follow-up", 4): of.follow_up,
    }


def _print_members(output: Output, members: Sequence[MemberMove], limit: int | None) -> None:
    shown = members
    if limit is not None and len(members) > limit:
        shown = sorted(members, key=lambda move: move.stays and not (move.added or move.revoked))[:limit]
    short = output.names(move.member_id for move in shown)
    states = {each.member_id: " (away)" * each.is_away if each.stays else " (gone)" for each in shown}
    output.table(*table(MemberMove, shown, {name: short[name] + state for name, state in states.items()}))
    output.left_off(len(members) - len(shown), "more members")


def least(result: Result) -> int | str | None:
    """Return the least moves; in words if they are a bound (`4 or more`) or unknown (`topic not listed then`)."""
    certainty = result.least_moves_certainty
    if certainty == TOPIC_UNKNOWN:
        return "topic not listed then"
    if result.least_moves is None and certainty is not None:
        return certainty.removeprefix(NOT_APPLICABLE).replace("-", " ")
    return f"{result.least_moves:,} or more" if certainty == LOWER_BOUND else result.least_moves
