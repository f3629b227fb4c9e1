"""Build pages that stand alone: scripts under variants; a group before and after a change; history replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import table
from groupledger.answers.replayed import Replayed, ReplayedGroup
from groupledger.answers.spoken import numbered, spans
from groupledger.core.moments import iso
from groupledger.report.html.charts import MOST_BARS, Drawing, consumption_picture, drawing, missed_partitions
from groupledger.report.html.page_parts import PageTable, Section, some
from groupledger.report.pictures import draw, draw_courses

if TYPE_CHECKING:
    from groupledger.answers.changed_group import WhatIf
    from groupledger.core.protocol.comparison import ComparedScript, ComparedVariant, ScriptComparison

COLUMNS = {
    **{head: f"cost.{head}" for head in ("rounds", "moves", "revoked", "lost")},
    **{"partition-rounds": "cost.unavailable_rounds", "partition-ms": "cost.unavailable_ms"},
    **{"most": "most", "least": "least", "idle": "idle", "read twice": "cost.read_twice"},
    **{"never read": "cost.never_read", "two owners": "cost.double_owners", "not settled": "failures"},
}
"""Where the value of each column is in a `ComparedVariant`."""
MOST_PICTURES = 60


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """The values that the template shows."""

    title: str
    about: str
    sections: tuple[Section, ...]


def comparison_page(found: ScriptComparison) -> ComparisonPage:
    """Build the page, with timelines of the first so many scripts and variants."""
    scripts = found.scripts
    names = [script.id or f"script {number}" for number, script in enumerate(scripts, 1)]
    rows = tuple(_row(name, each) for name, script in zip(names, scripts, strict=True) for each in script.variants)
    counted = f"Events from {found.from_ms:,} ms of the script on." if found.from_ms else "All events."
    costs = Section(
        "What each costs", counted, tables=(PageTable(("script", "variant", *COLUMNS), rows),), is_open=True
    )
    timelines = [each for name, script in zip(names, scripts, strict=True) for each in _timelines(name, script, found)]
    title = names[0] if len(names) == 1 else numbered(len(names), "script")
    left = len(timelines) - MOST_PICTURES
    about = f"groupledger simulate --compare{f' · {left:,} more timelines are left out' if left > 0 else ''}"
    return ComparisonPage(title, about, (costs, *timelines[:MOST_PICTURES]))


def replay_page(found: Replayed) -> ComparisonPage:
    """Build the page of history under another assignor: the sums, a picture of the groups, a row each."""
    drawn = drawing(lambda: draw_courses(found), found.text)
    heads, rows = table(ReplayedGroup, found.groups, page=True)
    groups = some(rows, heads, len(rows), f"groupledger replay --limit {found.total}", found.total)
    what = f"{numbered(found.rebalances, 'rebalance')} of {numbered(found.total, 'group')}"
    brief = f"{what}, as they were -> under {found.assignor}"
    section = Section("By group", brief, (drawn,), lines=found.notes, tables=(groups,), is_open=True)
    return ComparisonPage(found.text, f"groupledger replay --assignor {found.assignor}", (section,))


def _row(name: str, each: ComparedVariant) -> tuple[object, ...]:
    values = (None if each.cost is None else attrgetter(place)(each) for place in COLUMNS.values())
    return name, each.variant, *values


def _timelines(name: str, script: ComparedScript, found: ScriptComparison) -> list[Section]:
    """Draw one timeline per variant, all on the same axes."""
    ends = [each for variant in script.variants for span in variant.consumed for each in (span.since_ms, span.until_ms)]
    known = [each for each in ends if each is not None]
    last_ms = max([found.from_ms, *known, *(row.at_ms for variant in script.variants for row in variant.events)])
    end_ms = last_ms + max((last_ms - found.from_ms) // 20, 1)
    counts = [count for each in script.variants for _, count in missed_partitions(each.consumed, found.from_ms, end_ms)]
    most = max(counts, default=0)
    return [_timeline(name, each, found.from_ms, end_ms, most) for each in script.variants]


def _timeline(name: str, each: ComparedVariant, begin_ms: int, end_ms: int, most: int) -> Section:
    title = f"{name}: {each.variant}"
    if each.cost is None:
        return Section(title, "", lines=(f"cannot be played: {each.error}",), is_open=True)
    pictures: Sequence[Drawing] = (consumption_picture(each.consumed, begin_ms, end_ms, most),) if each.consumed else ()
    failures = tuple(
        f"event {row.number}, {row.event}: {row.failure}" for row in each.events if row.failure is not None
    )
    moves = "" if each.cost.moves is None else f", {numbered(each.cost.moves, 'move')}"
    brief = f"{each.cost.unavailable_ms:,} partition-ms{moves}"
    return Section(title, brief, tuple(pictures), lines=failures, is_open=True)


# The page of `what-if GROUP`.

MOST_MEMBERS = 1_000
MEMBER_HEADS = ("member", "change", "had", "would have", "gains", "loses", "client", "instance")


def what_if_page(found: WhatIf) -> ComparisonPage:
    """Build the page: numbers before and after, who has what as squares, and a row a member."""
    new = set(found.joined)
    rows = [
        (
            *(each.member_id, "new" if each.member_id in new else None if each.stays else "gone"),
            *(len(each.held), len(each.assigned), spans(each.added) or None, spans(each.revoked) or None),
            *(each.client_id, each.group_instance_id),
        )
        for each in found.members
    ]
    squares = drawing(
        lambda: draw(found), f"Who has which partition before and after: {found.cost}. The table has all."
    )
    numbers = PageTable(("", "before", "after"), found.numbers)
    members = some(rows, MEMBER_HEADS, MOST_MEMBERS, "groupledger what-if --json")
    sections = (
        Section("Before and after", found.cost, (squares,), lines=found.notes, tables=(numbers,), is_open=True),
        Section("Members", numbered(len(rows), "member"), tables=(members,), is_open=len(rows) <= MOST_BARS),
    )
    about = f"groupledger what-if · as of generation {found.generation}, {iso(found.observed_at)} · {found.snapshot_id}"
    return ComparisonPage(found.title, about, sections)
