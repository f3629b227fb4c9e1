"""Build the section of a group's page on partitions without an owner: which, when, and whether it is a finding."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.recorded_states import CONSUMER
from groupledger.answers.spoken import numbered, spans
from groupledger.answers.unowned_stretches import is_found
from groupledger.core.findings import UNOWNED
from groupledger.core.length import length
from groupledger.core.moment import dates_once
from groupledger.report.html.page_parts import NO_ONE_OWNER, PageTable, Section, cut, some
from groupledger.report.html.unowned_chart import unowned_counts, unowned_picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from groupledger.answers.unowned_stretches import Stretch
    from groupledger.report.html.gathering import GroupFacts

TITLE = "Partitions that nobody had"
MOST_ROWS, LONGEST_LIST = 20, 160


def unowned_section(facts: GroupFacts, begin: datetime, end: datetime) -> Section:
    """Build one row for all partitions without an owner from one moment to another, the longest first."""
    if facts.line.group_type not in (CLASSIC, CONSUMER):
        return Section(TITLE, f"not told: {NO_ONE_OWNER}")
    found, kind = facts.unowned.stretches, facts.line.group_type
    lines = tuple(_not_told(facts))
    if not found:
        return Section(TITLE, "none of a listed topic, while the group had members", lines=lines)
    picture = unowned_picture(unowned_counts(found, begin, end))
    elsewhere = f"groupledger timeline {shlex.quote(facts.line.group_id)} counts them by rebalance"
    table = _table(_folded(found), kind, elsewhere)
    grave = any(is_found(each, kind) for each in found)
    return Section(TITLE, _brief(found), (picture,), lines=lines, tables=(table,), is_open=grave)


def _brief(found: Sequence[Stretch]) -> str:
    places = len({(each.topic, each.partition) for each in found})
    still = sum(each.open_ended for each in found)
    told = f"{numbered(places, 'partition')}, for {length(found[0].length)} at the longest"
    return f"{told}; {still:,} still at the end" if still else told


def _folded(found: Sequence[Stretch]) -> list[list[Stretch]]:
    """Group those that began and ended together, the longest first."""
    together: dict[tuple[object, ...], list[Stretch]] = defaultdict(list)
    for each in found:
        together[each.since, each.until, *_numbers(each), each.open_ended, each.from_before].append(each)
    return sorted(
        together.values(), key=lambda some: (-some[0].length, some[0].since, some[0].topic, some[0].partition)
    )


def _numbers(of: Stretch) -> list[int]:
    """Return the generations or epochs that began without an owner of it."""
    return sorted(number for number in of.generations if number is not None)


def _table(rows: Sequence[Sequence[Stretch]], group_type: str, elsewhere: str) -> PageTable:
    day, times = dates_once([moment for each in rows for moment in (each[0].since, each[0].until)])
    cells = [
        _row(together, begin, end, group_type)
        for together, begin, end in zip(rows, times[::2], times[1::2], strict=True)
    ]
    began = f"from, {day} UTC" if day else "from (UTC)"
    return some(cells, (began, "to", "for", "generation", "partitions", "which", "finding"), MOST_ROWS, elsewhere)


def _row(together: Sequence[Stretch], begin: str, end: str, group_type: str) -> tuple[object, ...]:
    one, numbers = together[0], _numbers(together[0])
    return (
        f"before {begin}" if one.from_before else begin,
        "still so" if one.open_ended else end,
        length(one.length),
        "-".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else None,
        len(together),
        cut(spans((each.topic, each.partition) for each in together), LONGEST_LIST),
        UNOWNED.code if is_found(one, group_type) else None,
    )


def _not_told(facts: GroupFacts) -> Iterator[str]:
    if facts.unowned.left_off:
        yield f"{numbered(facts.unowned.left_off, 'earlier state')} in which nobody may have had one: not looked at."
    unlisted = sum(entry.unowned is None for entry in facts.timeline.entries)
    if unlisted:
        of = numbered(unlisted, "rebalance")
        yield f"For {of} it cannot be told, or not of every topic: no listing counts one of the topics."
