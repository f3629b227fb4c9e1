"""Build the index: findings, folded; storms and uneven load; and every group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import rows_in, table
from groupledger.answers.group_owners import GroupLine
from groupledger.answers.queries import GroupKey
from groupledger.answers.spoken import numbered
from groupledger.core.moments import iso
from groupledger.core.rebalance.findings import BY_CODE, Severity
from groupledger.core.text import length, stretch
from groupledger.core.version import __version__
from groupledger.report.html.charts import Drawing, heat, heat_picture
from groupledger.report.html.page_parts import Link, PageTable, Section, command, some

if TYPE_CHECKING:
    from groupledger.report.html.gathering import Fleet

Pages = Mapping[GroupKey, str]
"""The file of each group that has a page."""

MOST_OF_A_CODE = 20
GRAVE = Severity.ERROR, Severity.WARNING


@dataclass(frozen=True, slots=True)
class IndexPage:
    """The values that the template of the index shows; `findings` are one section per code, most severe first."""

    title: str
    about: str
    headline: str
    numbers: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    findings: tuple[tuple[Severity, Section], ...]
    sections: tuple[Section, ...]


def index_page(of: Fleet, pages: Pages) -> IndexPage:
    """Build the index; `pages` are the groups that have one."""
    judged, scope = of.audit, of.scope
    seen = [moment for line in of.groups for moment in (line.first, line.last)]
    period = f"{stretch(min(seen), max(seen))} UTC" if seen else "nothing in this period"
    parts = [
        f"{numbered(judged.records, 'record')} of {numbered(judged.groups, 'group')}",
        f"{judged.computed:,} of them recomputed",
        period,
        of.known,
        f"ledger {of.ledger}",
        f"groupledger {__version__}",
    ]
    if scope.group is not None:
        parts.append(f"groups like {scope.group}")
    if scope.cluster is not None:
        parts.append(f"cluster {scope.cluster}")
    if scope.since is not None or scope.until is not None:
        begin = "the beginning" if scope.since is None else iso(scope.since)
        end = "the end" if scope.until is None else iso(scope.until)
        parts.append(f"asked for: from {begin} to {end}")
    sections = (_storms(of, pages), _skew(of, pages), _groups(of, pages))
    codes = tuple(_codes(of, pages))
    return IndexPage("Consumer groups", " · ".join(parts), _headline(of), _numbers(of), judged.notes, codes, sections)


def _headline(of: Fleet) -> str:
    """Say in a sentence what is wrong now; else what was, and else what is not known."""
    stuck = [each for each in of.gauges if each.unowned]
    unknown = sum(each.unowned is None and each.members > 0 for each in of.gauges)
    more = f" Of {numbered(unknown, 'group')} it is not known." if unknown else ""
    empty = sum(not each.members for each in of.gauges)
    if empty:
        more += f" {empty:,} of {numbered(len(of.gauges), 'group')} without members: nobody reads for them."
    if stuck:
        have = "has" if len(stuck) == 1 else "have"
        number = numbered(sum(each.unowned or 0 for each in stuck), "partition")
        lasting = max((each.oldest_unowned_seconds or 0.0 for each in stuck), default=0.0)
        longest = f", the longest for {length(timedelta(seconds=lasting))}" if lasting else ""
        return f"{numbered(len(stuck), 'group')} {have} {number} that nobody reads{longest}.{more}"
    now = f"No partition is known to be without an owner now.{more}"
    grave = {(each.cluster_id, each.group_id) for each in of.audit.found if each.severity is Severity.ERROR}
    if grave:
        return f"{now} {numbered(len(grave), 'group')} had errors in this period."
    return now


def _numbers(of: Fleet) -> tuple[tuple[str, str], ...]:
    """Return three numbers, each with its label."""
    ages = [each.oldest_unowned_seconds for each in of.gauges if each.oldest_unowned_seconds is not None]
    oldest = length(timedelta(seconds=max(ages))) if any(ages) else "none" if ages else "not known"
    rebalances = sum(each.rebalances for each in of.gauges)
    return ((f"{of.total:,}", "groups"), (f"{rebalances:,}", "rebalances"), (oldest, "longest without an owner now"))


def _codes(of: Fleet, pages: Pages) -> Iterable[tuple[Severity, Section]]:
    for (severity, code), found in groupby(of.audit.found, lambda each: (each.severity, each.code)):
        of_code = list(found)
        elsewhere = command("audit", of.scope, of.scope.cluster, of.scope.group) + " --limit 1000"
        heads, rows = _linked(type(of_code[0]), of_code, pages)
        shown = some(rows, heads, MOST_OF_A_CODE, elsewhere)
        records = numbered(sum(each.records for each in of_code), "record")
        brief = f"{numbered(len(of_code), 'group')}, {records}: {BY_CODE[code].what}"
        step = f"Next: {of_code[0].next_step()}"
        yield severity, Section(code, brief, lines=(step,), tables=(shown,))


def _linked(kind: type[Any], found: Sequence[Any], pages: Pages) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the heads and rows of a table of groups, the first column of which links to the group's page."""
    heads, rows = table(kind, found, page=True)
    links = (Link(each.group_id, pages.get((each.cluster_id, each.group_id))) for each in found)
    return heads, [(link, *row[1:]) for link, row in zip(links, rows, strict=True)]


def _ranked(of: Fleet, report: str, answer: Any, pages: Pages) -> PageTable:
    """Build the table of a report, and say how to see the rows that it leaves out."""
    kind, found = rows_in(answer)
    heads, rows = _linked(kind, found, pages)
    elsewhere = command(f"report {report}", of.scope, of.scope.cluster, of.scope.group)
    return some(rows, heads, len(rows), f"{elsewhere} --limit {answer.total}", answer.total)


def _storms(of: Fleet, pages: Pages) -> Section:
    found = of.storms.groups
    hot = heat(of.rebalances, of.unit)
    pictures: tuple[Drawing, ...] = ()
    if hot is not None:
        hot = replace(hot, left_off=of.total - len(hot.rows))  # only the groups with most records were asked for
        several = len({cluster for cluster, _ in hot.rows}) > 1
        names = [f"{group} ({cluster})" if several else group for cluster, group in hot.rows]
        pictures = (heat_picture(hot, names, "rebalances"),)
    brief = f"most in an hour: {found[0].in_an_hour:,} of {found[0].group_id}" if found else "no rebalance"
    tables = (_ranked(of, "storms", of.storms, pages),)
    return Section("When groups rebalanced", brief, pictures, tables=tables, is_open=True)


def _skew(of: Fleet, pages: Pages) -> Section:
    found = of.skew.groups
    brief = "no group has members at the end of this period"
    if found:
        brief = f"widest: {found[0].group_id}, {found[0].least:,} to {found[0].most:,} partitions of a member"
    return Section("Load of members", brief, tables=(_ranked(of, "skew", of.skew, pages),))


def _groups(of: Fleet, pages: Pages) -> Section:
    """List all groups, the worst first; those without a page say how to see one."""
    codes: dict[GroupKey, Counter[Severity]] = defaultdict(Counter)
    for each in of.audit.found:
        codes[each.cluster_id, each.group_id][each.severity] += 1
    heads, cells = _linked(GroupLine, of.groups, pages)
    grave = ([codes[line.key][severity] or None for severity in GRAVE] for line in of.groups)
    rows = tuple((*row[:2], *counts, *row[2:]) for row, counts in zip(cells, grave, strict=True))
    left = of.total - len(rows)
    more = f"... and {left:,} groups that are not worse: choose some with --group" if left else ""
    without = len(rows) - sum(line.key in pages for line in of.groups)
    lines = []
    if without:
        lines.append(
            f"{without:,} groups have no page: the worst do, and those that a table ranks, {len(pages):,} together; "
            "more with --pages, others by name: groupledger report html FOLDER GROUP"
        )
    brief = f"{of.total:,}, the worst first; {len(pages):,} have a page"
    return Section(
        "All groups",
        brief,
        tables=(PageTable((*heads[:2], "errors", "warnings", *heads[2:]), rows, more),),
        lines=tuple(lines),
        is_open=not of.audit.found,
    )
