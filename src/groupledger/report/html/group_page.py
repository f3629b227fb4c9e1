"""Build the page of one group from its facts: what changed first, everything else folded."""

from __future__ import annotations

import shlex
import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import table
from groupledger.answers.causes import QUIET
from groupledger.answers.queries import CLASSIC, CONSUMER, exactly
from groupledger.answers.skew import Load
from groupledger.answers.spoken import OF_PAIRS, assignor_of, in_short, numbered, pairs, spans
from groupledger.answers.unowned import Stretch, is_found
from groupledger.core.moments import dates_once, iso
from groupledger.core.rebalance.findings import BY_CODE, BY_RECORDED, UNOWNED, Severity
from groupledger.core.text import length, shortened, stretch
from groupledger.report.html.charts import (
    BLACK,
    BLUE,
    COLOURS,
    COLUMNS,
    GREY,
    MOST_BARS,
    ORANGE,
    Drawing,
    Moves,
    days,
    drawing,
    heat,
    heat_picture,
    label,
    load_picture,
    moves_in_time,
    moves_of,
    moves_picture,
    picture,
    time_axis,
    unowned_picture,
    whole_numbers,
)
from groupledger.report.html.gathering import GroupFacts, last_change
from groupledger.report.html.page_parts import NO_ONE_OWNER, PageTable, Section, command, cut, some
from groupledger.report.pictures import draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.group_owners import Size
    from groupledger.answers.owners import OwnerSpan
    from groupledger.answers.queries import NamedPartition
    from groupledger.answers.timeline import TimelineEntry


MOST_CAUSES, MOST_PAIRS, MOST_FINDINGS = 8, 10, 20
LONGEST_LIST, LONGEST_SENTENCE = 160, 600
"""Characters of a list of partitions in a cell, and of a cause or an evidence."""


@dataclass(frozen=True, slots=True)
class GroupPage:
    """The values that the template of a group shows; `marks` are its findings."""

    title: str
    about: str
    marks: tuple[tuple[Severity, str], ...]
    lead: tuple[str, ...]
    changed: Section
    sections: tuple[Section, ...]


def group_page(facts: GroupFacts) -> GroupPage:
    """Build the page."""
    line = facts.line
    counted = "generation" if line.group_type == CLASSIC else "group epoch"
    assignor = assignor_of(line.group_type, line.assignor, line.members)
    number = "" if line.number is None else f", {counted} {line.number:,}"
    was = facts.last_peopled
    ended = line.members == 0 and was is not None
    state = f"{assignor or 'no assignor'} · {line.state}{number} · {numbered(line.members, 'member')}"
    if was is not None and ended:
        before = assignor_of(was.group_type, was.assignor, was.members) or "no assignor"
        state = f"{line.state}{number}; before that {before}, {numbered(was.members, 'member')}"
    records = f"{numbered(line.records, 'record')}, {stretch(line.first, line.last)} UTC"
    about = f"cluster {line.cluster_id} · {line.group_type} · {state} · {records}"
    marks = tuple((each.severity, f"{each.code} {each.records:,}") for each in facts.found)
    unowned = unowned_section(facts, *_period(facts))
    sections = (_findings(facts), unowned, _ownership(facts), _load(facts), _rebalances(facts))
    return GroupPage(line.group_id, about, marks, tuple(_lead(facts)), _changed(facts), sections)


def _lead(facts: GroupFacts) -> Iterator[str]:
    """Summarise the page in a sentence or two."""
    entries = facts.timeline.entries
    if not entries:
        yield from facts.timeline.notes
        return
    quiet = sum(all(cause.kind in QUIET for cause in entry.causes) for entry in entries)
    text = numbered(len(entries) + facts.timeline.left_off, "recorded state")
    if len(entries) > 1:
        text = f"{text} in {length(facts.line.last - facts.line.first)}"
    unexplained = f"; before {quiet:,} of them nothing changed that the log holds" if quiet > 1 else ""
    yield f"{text}{unexplained}."
    if facts.timeline.left_off:
        yield (
            f"This page looks at the last {len(entries):,}, from {iso(entries[0].began_at)} on; "
            f"for the {facts.timeline.left_off:,} before them ask for an earlier end with --until."
        )


def _changed(facts: GroupFacts) -> Section:
    """Describe the last rebalance with a change, and draw what each one moved."""
    entries = facts.timeline.entries
    if not entries:
        return Section("What changed", "", lines=("Nothing in this period.",))
    last = last_change(entries)
    assert last is not None
    which = "the last rebalance" if last is entries[-1] else "the last rebalance of which the log shows a cause"
    causes = [cut(cause.what, LONGEST_SENTENCE) for cause in last.causes[:MOST_CAUSES]]
    if len(last.causes) > MOST_CAUSES:
        causes.append(f"... and {len(last.causes) - MOST_CAUSES:,} more causes: {_explain(facts, last)}")
    waiting = f"nothing yet; {len(last.moved):,} given up, handed over later" if last.moved else "nothing"
    moved = _moves(moves_of(entries)[entries.index(last)]) or waiting
    lines = (f"Moved: {moved}.", *_nobody(last))
    brief = f"{_name(last)}, {iso(last.began_at)}: {which}"
    pictures = [moves_picture(entries)]
    if facts.change is not None and any(each.added or each.revoked for each in facts.change.members):
        found = facts.change
        alt = f"Who had each partition before and after {found.title}: {_moves(moves_of([last])[0])}."
        pictures.append(drawing(lambda: draw(found), alt))
    return Section("What changed", brief, tuple(pictures), tuple(causes), lines, (_pairs(facts, last),))


def _name(entry: TimelineEntry) -> str:
    if entry.generation is None:
        return entry.snapshot_kind
    return f"{'Generation' if entry.group_type == CLASSIC else 'Group epoch'} {entry.generation:,}"


def _explain(facts: GroupFacts, entry: TimelineEntry) -> str:
    generation = "" if entry.generation is None else f" --generation {entry.generation}"
    return f"groupledger explain {_quoted(facts)}{generation} --cluster {shlex.quote(facts.line.cluster_id)}"


def _moves(of: Moves) -> str:
    between, given, lost = of
    words = ((between, "from member to member"), (given, "from nobody to a member"), (lost, "to nobody"))
    return ", ".join(f"{number:,} {what}" for number, what in words if number)


def _nobody(entry: TimelineEntry) -> Iterator[str]:
    if entry.unowned:
        which = cut(spans(entry.unowned), LONGEST_LIST)
        yield f"Nobody then had {numbered(len(entry.unowned), 'partition')}: {which}."
    elif entry.unowned is None:
        yield "Whether a partition had nobody then cannot be told: no listing counts one of the topics."
    yield from (f"Gap in the log before it: {gap}" for gap in entry.gaps)


def _pairs(facts: GroupFacts, entry: TimelineEntry) -> PageTable:
    """Build a row for each pair of members between which partitions moved, most first."""
    found = sorted(pairs(entry.moved).items(), key=lambda each: (-len(each[1]), each[0]))
    short = shortened(name for pair, _ in found for name in pair)
    rows = [(*(short[name] for name in pair), len(places), cut(spans(places), LONGEST_LIST)) for pair, places in found]
    return some(rows, OF_PAIRS, MOST_PAIRS, _explain(facts, entry) + " --json")


def _findings(facts: GroupFacts) -> Section:
    if not facts.found:
        return Section("Findings", "nothing is wrong with what could be judged")
    (_, _, *heads), rows = table(type(facts.found[0]), facts.found, page=True)  # without group and cluster
    cells = [
        (
            each.severity.value,
            each.code,
            *row[2:-1],
            cut(each.evidence, LONGEST_SENTENCE),
            BY_CODE[each.code].what,
            each.next_step(),
        )
        for each, row in zip(facts.found, rows, strict=True)
    ]
    elsewhere = command("audit", facts.scope, facts.line.cluster_id, exactly(facts.line.group_id))
    found = some(cells, ("severity", "code", *heads, "what it means", "next"), MOST_FINDINGS, elsewhere)
    codes = ", ".join(dict.fromkeys(each.code for each in facts.found))
    grave = any(each.severity is Severity.ERROR for each in facts.found)
    return Section("Findings", codes, tables=(found,), is_open=grave)


def _ownership(facts: GroupFacts) -> Section:
    """Show the partitions of a small group; the size, load and changes of owner of a large one."""
    owners = facts.owners
    if not owners.partitions:
        return Section("Who had what, over time", "nobody was ever assigned a partition")
    begin, end = _period(facts)
    if owners.owners is not None:
        matrix = owner_matrix(owners.owners, owners.names, begin, end, len(COLOURS))
        brief = f"{numbered(owners.partitions, 'partition')} and who had them, {stretch(begin, end)} UTC"
        return Section("Who had what, over time", brief, (owner_picture(matrix, facts.timeline.entries),), is_open=True)
    pictures = [size_picture(facts.sizes, end)] if facts.sizes else []
    of_blocks = heat(facts.hand_overs, facts.unit, in_order=True)
    if of_blocks is not None:
        names = [_block(topic, first, facts.block) for topic, first in of_blocks.rows]
        pictures.append(heat_picture(of_blocks, names, "partitions taken from a member"))
    lines = [
        f"{owners.changes:,} changes of owner in {owners.partitions:,} partitions: too many for a row each. "
        f"For one of them: groupledger timeline --partition TOPIC-NUMBER --group {_quoted(facts)}"
    ]
    if facts.records > len(facts.sizes):
        lines.append(f"Sizes are of the last {len(facts.sizes):,} of {facts.records:,} records.")
    brief = f"{owners.partitions:,} partitions, {stretch(begin, end)} UTC"
    return Section("Who had what, over time", brief, tuple(pictures), lines=tuple(lines), is_open=True)


def _block(topic: str, first: str, size: int) -> str:
    return f"{topic}-{first}" if size == 1 else f"{topic}-{first}...{int(first) + size - 1}"


def _period(facts: GroupFacts) -> tuple[datetime, datetime]:
    """Return the period from the group's first record on, with a little room for its last state."""
    first, last = facts.line.first, facts.line.last
    room = max((last - first) / 20, timedelta(seconds=1))
    return first, last + room


def _load(facts: GroupFacts) -> Section:
    load = facts.load
    if load is None:
        why = "nobody is in the group at the end of this period; ask for an earlier end with --until"
        return Section("Load of members", f"not told: {NO_ONE_OWNER}, or it is cut off" if facts.line.members else why)
    heads, rows = table(Load, load.loads, page=True)
    cells = [(*row[:-1], cut(each.which, LONGEST_LIST)) for each, row in zip(load.loads, rows, strict=True)]
    elsewhere = command("report skew --json", facts.scope, facts.line.cluster_id, exactly(facts.line.group_id))
    found = some(cells, heads, MOST_BARS, elsewhere)
    brief = f"{numbered(load.members, 'member')}, {load.least:,} to {load.most:,} partitions, {load.idle:,} idle"
    brief = brief if facts.line.members else f"{brief}, before it became empty"
    return Section("Load of members", brief, (load_picture(load),), tables=(found,))


def _rebalances(facts: GroupFacts) -> Section:
    entries = facts.timeline.entries[::-1]
    names = shortened(cause.about for entry in entries for cause in entry.causes if cause.about is not None)
    day, times = dates_once([entry.began_at for entry in entries])
    audited = {code: of.code for code, of in BY_RECORDED.items()}  # as the table of findings names them
    rows = [
        (
            time,
            entry.generation,
            _members(entry),
            in_short(entry.causes, names),
            *moved,
            None if entry.unowned is None else len(entry.unowned),
            ", ".join(f"{audited.get(code, code)} {number:,}" for code, number in entry.findings.items()) or None,
            entry.verdict,
        )
        for entry, time, moved in zip(entries, times, moves_of(facts.timeline.entries)[::-1], strict=True)
    ]
    began = f"began, {day} UTC" if day else "began (UTC)"
    heads = (began, "generation", "members", "why", "moved", "given", "lost", "nobody has")
    shown = PageTable((*heads, "findings", "verdict"), tuple(rows))
    kinds = Counter(kind for entry in entries for kind in {cause.kind.value for cause in entry.causes})
    brief = ", ".join(f"{kind} {number:,}" for kind, number in sorted(kinds.items(), key=lambda pair: (-pair[1], pair)))
    return Section("Rebalances, the last first", brief or "none", tables=(shown,))


def _members(entry: TimelineEntry) -> str:
    before = entry.members if entry.members_before is None else entry.members_before
    return f"{before:,} to {entry.members:,}" if before != entry.members else f"{before:,}"


def _quoted(facts: GroupFacts) -> str:
    return shlex.quote(facts.line.group_id)


# Build the section of a group's page on partitions without an owner: which, when, and whether it is a finding.

TITLE = "Partitions that nobody had"
MOST_ROWS = 20


def unowned_section(facts: GroupFacts, begin: datetime, end: datetime) -> Section:
    """Build one row for all partitions without an owner from one moment to another, the longest first."""
    if facts.line.group_type not in (CLASSIC, CONSUMER):
        return Section(TITLE, f"not told: {NO_ONE_OWNER}")
    found, kind = facts.unowned.stretches, facts.line.group_type
    lines = tuple(_unknown(facts))
    if not found:
        return Section(TITLE, "none of a listed topic, while the group had members", lines=lines)
    drawn = unowned_picture(found, begin, end)
    elsewhere = f"groupledger timeline {shlex.quote(facts.line.group_id)} counts them by rebalance"
    shown = _table(_folded(found), kind, elsewhere)
    grave = any(is_found(each, kind) for each in found)
    return Section(TITLE, _brief(found), (drawn,), lines=lines, tables=(shown,), is_open=grave)


def _brief(found: Sequence[Stretch]) -> str:
    places = len({(each.topic, each.partition) for each in found})
    still = sum(each.open_ended for each in found)
    text = f"{numbered(places, 'partition')}, for {length(found[0].length)} at the longest"
    return f"{text}; {still:,} still at the end" if still else text


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


def _unknown(facts: GroupFacts) -> Iterator[str]:
    if facts.unowned.left_off:
        yield f"{numbered(facts.unowned.left_off, 'earlier state')} in which nobody may have had one: not looked at."
    unlisted = sum(entry.unowned is None for entry in facts.timeline.entries)
    if unlisted:
        of = numbered(unlisted, "rebalance")
        yield f"For {of} it cannot be told, or not of every topic: no listing counts one of the topics."


# Draw the ownership timeline: which member had each partition when; for a large group, its size and load over time.

UNKNOWN, NOBODY, SEVERAL, OTHERS = -1, -2, -3, -4
"""Codes of a cell that is of no named member; of those, the number of the member."""
SIDE_BY_SIDE = 1.25
"""Time of owners in a column, as columns, from which on several had the partition at once."""


@dataclass(frozen=True, slots=True)
class OwnerMatrix:
    """`members` are named, those with most partition time first; `others` share one code."""

    places: tuple[NamedPartition, ...]
    members: tuple[str, ...]
    others: int
    cells: tuple[tuple[int, ...], ...]
    begin: datetime
    end: datetime

    @property
    def column(self) -> timedelta:
        """Return how long a column is."""
        return (self.end - self.begin) / COLUMNS

    def runs(self, row: int) -> Iterator[tuple[int, int, int]]:
        """Yield the first column, the number of columns, and the code of each stretch of one code."""
        start = 0
        for code, of_code in groupby(self.cells[row]):
            number = len(list(of_code))
            yield start, number, code
            start += number


def owner_matrix(
    owners: Mapping[NamedPartition, Sequence[OwnerSpan]],
    names: Mapping[str, str],
    begin: datetime,
    end: datetime,
    named: int,
) -> OwnerMatrix:
    """Find each partition's owner for most of each column; members go by their instance id, if they have one."""
    shares = [_shares(of, names, begin, end) for of in owners.values()]
    totals = Counter[str]()
    for row in shares:
        for column in row.values():
            totals.update({name: share for name, share in column.items() if name is not None})
    members = sorted(totals, key=lambda name: (-round(totals[name], 6), name))
    codes = {name: number for number, name in enumerate(members[:named])}
    cells = tuple(tuple(_code(row.get(column, {}), codes) for column in range(COLUMNS)) for row in shares)
    short = shortened(members)
    shown = tuple(short[name] for name in members[:named])
    return OwnerMatrix(tuple(owners), shown, len(members) - len(shown), cells, begin, end)


def _shares(
    spans: Sequence[OwnerSpan], names: Mapping[str, str], begin: datetime, end: datetime
) -> dict[int, dict[str | None, float]]:
    """Return, by column, the part of it that each owner had."""
    found: dict[int, dict[str | None, float]] = defaultdict(dict)
    width = (end - begin) / COLUMNS
    for span in spans:
        since, until = max(span.since or begin, begin), min(span.until or end, end)
        owner = None if span.member_id is None else names.get(span.member_id, span.member_id)
        first, last = (since - begin) / width, (until - begin) / width
        for column in range(int(first), min(COLUMNS, int(last) + 1)):
            share = min(last, column + 1) - max(first, column)
            if share > 0:
                found[column][owner] = found[column].get(owner, 0.0) + share
    return found


def _code(shares: Mapping[str | None, float], codes: Mapping[str, int]) -> int:
    if not shares:
        return UNKNOWN
    if sum(share for name, share in shares.items() if name is not None) >= SIDE_BY_SIDE:
        return SEVERAL
    owner = max(shares, key=lambda name: (shares[name], name is None, name or ""))
    return NOBODY if owner is None else codes.get(owner, OTHERS)


WHITE, DARK_RED = "#ffffff", "#8b0000"
FIXED = {UNKNOWN: WHITE, NOBODY: BLACK, SEVERAL: DARK_RED, OTHERS: GREY}
WORDS = {NOBODY: "nobody", SEVERAL: "several at once", OTHERS: "another member", UNKNOWN: "not known"}
LETTERS = string.ascii_uppercase
DARK = {BLUE, BLACK, DARK_RED}
LETTER_COLUMNS = 9
"""Columns that a letter needs."""
MOST_LETTERS = 400


def owner_picture(of: OwnerMatrix, entries: Sequence[TimelineEntry] = ()) -> Drawing:
    """Draw one row per partition, a colour and a letter per member; black means no owner.

    Above them, on the same axis of time, what each rebalance moved.
    """
    colours = {**FIXED, **dict(enumerate(COLOURS))}
    seen = Counter(code for row in of.cells for code in row)

    def draw(figure: Figure) -> None:
        from matplotlib.colors import to_rgb

        heights = (1.1, 0.21 * len(of.places) + 0.3)
        upper, axes = (
            figure.subplots(2, 1, sharex=True, height_ratios=heights) if entries else (None, figure.subplots())
        )
        begin, end = days(of.begin), days(of.end)
        if upper is not None:
            moves_in_time(upper, entries, 2 * (end - begin) / COLUMNS)
        axes.imshow(
            [[to_rgb(colours[code]) for code in row] for row in of.cells],
            aspect="auto",
            interpolation="none",
            extent=(begin, end, len(of.places), 0),
        )
        axes.set_yticks(
            [row + 0.5 for row in range(len(of.places))], [label(f"{topic}-{number}") for topic, number in of.places]
        )
        axes.tick_params(axis="y", length=0)
        for row in range(1, len(of.places)):
            axes.axhline(row, color="white", linewidth=0.8)
        _letters(axes, of, colours, begin, (end - begin) / COLUMNS)
        time_axis(axes, of.begin, of.end)
        _legend(figure, of, colours, seen)

    height = 1.4 + 0.21 * len(of.places) + (1.3 if entries else 0)
    return picture(draw, height, _alt(of, seen), _caption(of))


def _letters(axes: Axes, of: OwnerMatrix, colours: dict[int, str], begin: float, width: float) -> None:
    runs = [(row, *run) for row in range(len(of.places)) for run in of.runs(row)]
    wide = sorted((run for run in runs if run[3] >= 0 and run[2] >= LETTER_COLUMNS), key=lambda run: (-run[2], run))
    for row, first, number, code in wide[:MOST_LETTERS]:
        colour = "white" if colours[code] in DARK else "black"
        middle = begin + (first + number / 2) * width
        axes.text(middle, row + 0.5, LETTERS[code], ha="center", va="center", color=colour, fontsize=7)


def _legend(figure: Figure, of: OwnerMatrix, colours: dict[int, str], seen: Counter[int]) -> None:
    from matplotlib.patches import Patch

    named = [(number, f"{LETTERS[number]}  {label(name)}") for number, name in enumerate(of.members)]
    fixed = [(code, words) for code, words in WORDS.items() if seen[code]]
    patches = [Patch(facecolor=colours[code], edgecolor="#888888", label=words) for code, words in (*named, *fixed)]
    figure.legend(handles=patches, loc="outside lower left", ncols=4, fontsize=8, frameon=False)


def _alt(of: OwnerMatrix, seen: Counter[int]) -> str:
    everything = sum(seen.values()) or 1
    parts = [f"{name} {seen[number] / everything:.0%}" for number, name in enumerate(of.members)]
    parts += [f"{words} {seen[code] / everything:.0%}" for code, words in WORDS.items() if seen[code]]
    return (
        f"Who had each of {len(of.places):,} partitions, {stretch(of.begin, of.end)} UTC. "
        f"Share of all partition time: {', '.join(parts)}."
    )


def _caption(of: OwnerMatrix) -> str:
    others = f" {of.others:,} more members with less share one grey." if of.others else ""
    return (
        f"A column is {length(of.column)} and shows who had the partition for most of it; what was shorter is in "
        f"the list of rebalances.{others}"
    )


def size_picture(sizes: Sequence[Size], end: datetime) -> Drawing:
    """Draw members, assigned partitions, and the load of the most and the least loaded member, over time."""
    members, assigned, most, least = (
        [getattr(each, name) for each in sizes] for name in ("members", "assigned", "most", "least")
    )

    def draw(figure: Figure) -> None:
        upper, middle, lower = figure.subplots(3, 1, sharex=True)
        times = [each.at for each in sizes] + [end]
        for axes, title, values in ((upper, "members", members), (middle, "assigned partitions", assigned)):
            axes.step(times, [*values, values[-1]], where="post", color=BLUE)
            axes.set_title(title)
        lower.fill_between(times, [*least, least[-1]], [*most, most[-1]], step="post", color=ORANGE, alpha=0.35)
        lower.step(times, [*most, most[-1]], where="post", color="#b35c00", label="most")
        lower.step(times, [*least, least[-1]], where="post", color=BLUE, linestyle="--", label="least")
        lower.set_title("partitions of the member with most and of the one with least")
        lower.legend(loc="lower right", bbox_to_anchor=(1, 1), fontsize=8, frameon=False, ncols=2)
        for axes, values in ((upper, members), (middle, assigned), (lower, most + least)):
            whole_numbers(axes, min(values), max(values))
        time_axis(lower, sizes[0].at, end)

    caption = "The axes of numbers begin near the least value, not at 0."
    return picture(draw, 5.2, " ".join(_size_words(sizes)), caption)


def _size_words(sizes: Sequence[Size]) -> Iterator[str]:
    yield f"{len(sizes):,} records of the group, {stretch(sizes[0].at, sizes[-1].at)} UTC."
    for words, name in (("Members", "members"), ("Assigned partitions", "assigned")):
        values = [getattr(each, name) for each in sizes]
        yield f"{words}: {values[0]:,} at first, {values[-1]:,} at last, between {min(values):,} and {max(values):,}."
    last = sizes[-1]
    yield f"At last the member with most has {last.most:,} partitions, the one with least {last.least:,}."
