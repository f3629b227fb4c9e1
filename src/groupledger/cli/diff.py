"""`groupledger diff`: compare two states of a group, or two results for one state."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from groupledger.answers.columns import Column
from groupledger.answers.spoken import spans
from groupledger.cli.options import Job, read_point, takes_config
from groupledger.core.moments import iso
from groupledger.core.text import length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from groupledger.answers.explanation import ComparedState, GroupDifference, ScenarioDifference
    from groupledger.answers.rebalance import MemberMove
    from groupledger.answers.rows import Reader
    from groupledger.answers.what_if import WhatIf
    from groupledger.cli.output import Output


MOST_NAMED = 3
"""Unowned partitions named in a cell; the others are only counted."""
_POINT = "A generation or group epoch, a moment, or a length of time (24h) before the newest one"
_EITHER = "--from (with or without --to), or --scenarios (with or without --generation)"


@click.command(short_help="Compare two states of a group, or two scenarios.")
@click.argument("group")
@click.option("--from", "begin", metavar="POINT", help=f"{_POINT}.")
@click.option("--to", "end", metavar="POINT", help="Same format; default: the last state.")
@click.option("--scenarios", metavar="A,B", help="Compare two results of `assign` for one state, by name.")
@click.option("--generation", type=int, metavar="N", help="With --scenarios: the state; default: the last.")
@click.option("--cluster", metavar="CLUSTER", help="Only this cluster.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum members.")
@click.option("--wide", is_flag=True, help="All columns, and ids in full.")
@takes_config
def diff(
    job: Job,
    *,
    group: str,
    begin: str | None,
    end: str | None,
    scenarios: str | None,
    generation: int | None,
    cluster: str | None,
    limit: int,
    wide: bool,
) -> None:
    """Show what members gained and lost, who joined and left, and what else changed between two states of a group.

    \b
    groupledger diff payments --from 12 --to 15
    groupledger diff payments --from 24h
    groupledger diff payments --scenarios baseline,uniform --generation 12
    """
    if (begin is None) == (scenarios is None) or (scenarios is not None and end is not None):
        raise click.UsageError(_EITHER)
    if generation is not None and scenarios is None:
        raise click.UsageError(_EITHER)
    if scenarios is None:
        first, last = read_point(begin), read_point(end)

        def ask(reader: Reader) -> GroupDifference:
            from groupledger.answers.explanation import difference

            assert first is not None
            return difference(reader, group, first, last, cluster)

        job.answer(ask, functools.partial(print_states, limit=limit, wide=wide), cluster, "difference")
        return
    names = _names(scenarios)

    def ask_scenarios(reader: Reader) -> ScenarioDifference:
        from groupledger.answers.explanation import scenario_difference

        return scenario_difference(reader, group, names, generation, cluster)

    job.answer(
        ask_scenarios, functools.partial(print_scenarios, limit=limit, wide=wide), cluster, "scenario_difference"
    )


def _names(scenarios: str) -> tuple[str, str]:
    names = [each.strip() for each in scenarios.split(",")]
    if len(names) != 2 or not all(names):
        raise click.UsageError(f"--scenarios takes two names, with a comma between them; got {scenarios!r}")
    return names[0], names[1]


def print_states(output: Output, answer: GroupDifference, limit: int = 50, *, wide: bool = False) -> None:
    """Print it for a person: the two states, what changed, who gained and lost what."""
    before, after = answer.before, answer.after
    later = length(after.observed_at - before.observed_at)
    output.title(f"{answer.group_id} (cluster {answer.cluster_id}), {answer.group_type}: two states, {later} apart")
    output.table(["", "before", "after"], list(_sides(before, after)))
    output.line(f"states recorded from the one to the other: {answer.records:,}")
    output.title("what changed")
    for change in answer.changes:
        output.line(f"- {change.what}")
    if not answer.changes:
        output.line("neither members, subscriptions, topics nor the assignor")
    output.title(f"partitions: {len(answer.moved):,} with another owner")
    joined = {change.about for change in answer.changes if change.kind == "member-joined" and change.about}
    print_members(output, answer.members, joined, limit, wide=wide)
    output.notes(answer.notes)


def _sides(before: ComparedState, after: ComparedState) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("generation", before.generation, after.generation)]
    rows += [("time", iso(before.observed_at), iso(after.observed_at)), ("state", before.state, after.state)]
    rows += [("assignor", before.assignor, after.assignor), ("members", before.members, after.members)]
    rows += [("partitions owned", before.partitions, after.partitions)]
    rows += [("most, least of a member", _loads(before), _loads(after))]
    rows += [("nobody has", _nobody(before), _nobody(after)), ("recorded in", before.snapshot_id, after.snapshot_id)]
    return rows


def _loads(side: ComparedState) -> str | None:
    return None if side.most is None else f"{side.most:,}, {side.least:,}"


def _nobody(side: ComparedState) -> str:
    if side.unowned is None:
        return "not known"
    if len(side.unowned) > MOST_NAMED:
        return f"{len(side.unowned):,} partitions"
    return spans(side.unowned) if side.unowned else "none"


def print_scenarios(output: Output, answer: ScenarioDifference, limit: int = 50, *, wide: bool = False) -> None:
    """Print it for a person: the two results, then each partition with another owner."""
    one, other = answer.before, answer.after
    output.title(f"{answer.group_id} (cluster {answer.cluster_id}), generation {answer.generation}: two results")
    output.line(f"{iso(answer.observed_at)}  [{answer.snapshot_id}]")
    compared = ("assignor", "protocol", "outcome", "moves", "least_moves", "fewest_rounds", "unassigned", "verdict")
    rows = [(name.replace("_", " "), getattr(one, name), getattr(other, name)) for name in compared]
    output.table(["", one.scenario, other.scenario], rows)
    output.title(f"partitions: {len(answer.moved):,} with another owner at last")
    print_members(output, answer.members, (), limit, counts=(one.scenario, other.scenario), wide=wide)


# Print what each member of a group gains and loses, as a table.

LIMIT = 50
"""Members shown by default."""


def print_members(
    output: Output,
    members: Sequence[MemberMove],
    joined: Iterable[str],
    limit: int = LIMIT,
    *,
    counts: tuple[str, str] = ("had", "has"),
    wide: bool = False,
) -> None:
    """Print one line per member that gains or loses anything, joins or leaves; count the unchanged ones."""
    new = set(joined)
    changed = [each for each in members if each.added or each.revoked or not each.stays or each.member_id in new]
    names = output.names((each.member_id for each in changed), wide=wide)

    def cells(each: MemberMove) -> dict[Column, object]:
        return {
            Column("member", 0, 16): names[each.member_id],
            Column("change"): "new" if each.member_id in new else None if each.stays else "gone",
            Column(counts[0]): len(each.held),
            Column(counts[1], place=1): len(each.assigned),
            Column("gains", 0, 16): spans(each.added) if each.added else None,
            Column("loses", 0, 16): spans(each.revoked) if each.revoked else None,
            Column("client", 2, 12): each.client_id,
            Column("instance", 1, 12): each.group_instance_id,
        }

    output.rows(list(map(cells, changed[:limit])), wide=wide)
    output.left_off(len(changed) - limit)
    same = len(members) - len(changed)
    if same:
        output.line("1 member keeps what it has" if same == 1 else f"{same:,} members keep what they have")


# Describe a what-if: a group with other members, or another assignor.


def print_what_if(output: Output, answer: WhatIf, limit: int = 50) -> None:
    """Print it for a person: what was changed, what would move, who would have what."""
    output.title(f"{answer.group_id} (cluster {answer.cluster_id}) under {answer.assignor}, if {_changed(answer)}")
    output.line(f"as of generation {answer.generation}, {iso(answer.observed_at)}  [{answer.snapshot_id}]")
    output.line(f"from member to member: {answer.moves:,}; nobody has: {answer.unassigned:,}")
    spread = f"{answer.most:,}, {answer.least:,} (before: {answer.most_before:,}, {answer.least_before:,})"
    output.line(f"most, least of a member: {spread}")
    output.title("members")
    print_members(output, answer.members, answer.joined, limit, counts=("had", "would have"))
    output.notes(answer.notes)


def _changed(answer: WhatIf) -> str:
    """Format as `2 members more`."""
    parts = [
        f"{len(names):,} {'member' if len(names) == 1 else 'members'} {word}"
        for names, word in ((answer.joined, "more"), (answer.gone, "fewer"))
        if names
    ]
    return " and ".join(parts) or "it were assigned anew"
