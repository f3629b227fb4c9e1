"""Print what each member of a group gains and loses, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.answers.spoken import spans, told_apart
from groupledger.cli.fitting import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from groupledger.answers.rebalance import MemberMove
    from groupledger.cli.output import Output

LIMIT = 50
"""Members shown by default."""


def tell_members(
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
    names, start = (
        ({each.member_id: each.member_id for each in changed}, "")
        if wide
        else told_apart(each.member_id for each in changed)
    )
    if start:
        output.line(f"member ids begin with {start}")
    columns = [
        Column("member", 0, 16),
        Column("change"),
        Column(counts[0]),
        Column(counts[1]),
        Column("gains", 0, 16),
        Column("loses", 0, 16),
        Column("client", 2, 12),
        Column("instance", 1, 12),
    ]
    rows = [_row(each, names[each.member_id], new) for each in changed[:limit]]
    output.fitted(columns, rows, wide=wide)
    if len(changed) > limit:
        output.line(f"... and {len(changed) - limit:,} more (--limit)")
    same = len(members) - len(changed)
    if same:
        output.line("1 member keeps what it has" if same == 1 else f"{same:,} members keep what they have")


def _row(each: MemberMove, name: str, new: set[str]) -> tuple[object, ...]:
    state = "new" if each.member_id in new else None if each.stays else "gone"
    return (
        name,
        state,
        len(each.held),
        len(each.assigned),
        spans(each.added) if each.added else None,
        spans(each.revoked) if each.revoked else None,
        each.client_id,
        each.group_instance_id,
    )
