"""Describe a what-if: a group with other members, or another assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.cli.member_changes import tell_members
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from groupledger.answers.what_if import WhatIf
    from groupledger.cli.output import Output


def tell_what_if(output: Output, answer: WhatIf, limit: int = 50) -> None:
    """Print it for a person: what was changed, what would move, who would have what."""
    output.title(f"{answer.group_id} (cluster {answer.cluster_id}) under {answer.assignor}, if {_changed(answer)}")
    output.line(f"as of generation {answer.generation}, {iso(answer.observed_at)}  [{answer.snapshot_id}]")
    output.line(f"from member to member: {answer.moves:,}; nobody has: {answer.unassigned:,}")
    spread = f"{answer.most:,}, {answer.least:,} (before: {answer.most_before:,}, {answer.least_before:,})"
    output.line(f"most, least of a member: {spread}")
    output.title("members")
    tell_members(output, answer.members, answer.joined, limit, counts=("had", "would have"))
    for note in answer.notes:
        output.line(f"note: {note}")


def _changed(answer: WhatIf) -> str:
    """Format as `2 members more`."""
    told = [
        f"{len(names):,} {'member' if len(names) == 1 else 'members'} {word}"
        for names, word in ((answer.joined, "more"), (answer.gone, "fewer"))
        if names
    ]
    return " and ".join(told) or "it were assigned anew"
