"""Build the index: findings, folded; storms and uneven load; and every group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import rows_in, table
from groupledger.answers.queries import GroupKey
from groupledger.answers.spoken import assignor_of, numbered
from groupledger.core.moments import iso
from groupledger.core.rebalance.findings import BY_CODE, Severity
from groupledger.core.text import stretch
from groupledger.report.html.charts import heat, heat_picture
from groupledger.report.html.page_parts import Link, PageTable, Section, command, some

if TYPE_CHECKING:
    from groupledger.report.html.charts import Drawing
    from groupledger.report.html.gathering import Fleet

Pages = Mapping[GroupKey, str]
"""The file of each group that has a page."""

MOST_OF_A_CODE = 20


@dataclass(frozen=True, slots=True)
class IndexPage:
    """The values that the template of the index shows; `findings` are one section per code, most severe first."""

    title: str
    about: str
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
    return IndexPage("Consumer groups", " · ".join(parts), judged.notes, tuple(_codes(of, pages)), sections)


def _codes(of: Fleet, pages: Pages) -> Iterable[tuple[Severity, Section]]:
    for (severity, code), found in groupby(of.audit.found, lambda each: (each.severity, each.code)):
        of_code = list(found)
        elsewhere = command("audit", of.scope, of.scope.cluster, of.scope.group) + " --limit 1000"
        heads, rows = _linked(of_code, pages)
        shown = some(rows, heads, MOST_OF_A_CODE, elsewhere)
        records = numbered(sum(each.records for each in of_code), "record")
        brief = f"{numbered(len(of_code), 'group')}, {records}: {BY_CODE[code].what}"
        yield severity, Section(code, brief, tables=(shown,))


def _linked(found: Sequence[Any], pages: Pages) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the heads and rows of a table of groups, the first column of which links to the group's page."""
    heads, rows = table(type(found[0]), found, page=True) if found else ([], [])
    links = (Link(each.group_id, pages.get((each.cluster_id, each.group_id))) for each in found)
    return heads, [(link, *row[1:]) for link, row in zip(links, rows, strict=True)]


def _ranked(of: Fleet, report: str, answer: Any, pages: Pages) -> PageTable:
    """Build the table of a report, and say how to see the rows that it leaves out."""
    kind, found = rows_in(answer)
    heads, rows = _linked(found, pages) if found else (table(kind, (), page=True)[0], [])
    left = answer.total - len(rows)
    elsewhere = command(f"report {report}", of.scope, of.scope.cluster, of.scope.group)
    more = f"... and {left:,} more: {elsewhere} --limit {answer.total}" if left else ""
    return PageTable(tuple(heads), tuple(rows), more)


def _storms(of: Fleet, pages: Pages) -> Section:
    found = of.storms.groups
    hot = heat(of.rebalances, of.unit)
    if hot is not None:  # only the groups with most records were asked for
        hot = replace(hot, left_off=of.total - len(hot.rows))
    clusters = {cluster for cluster, _ in hot.rows} if hot is not None else set()
    pictures: tuple[Drawing, ...] = ()
    if hot is not None:
        names = [group if len(clusters) == 1 else f"{group} ({cluster})" for cluster, group in hot.rows]
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
    rows = tuple(
        (
            Link(line.group_id, pages.get(line.key)),
            line.cluster_id,
            codes[line.key][Severity.ERROR] or None,
            codes[line.key][Severity.WARNING] or None,
            line.records,
            line.group_type,
            assignor_of(line.group_type, line.assignor, line.members),
            line.state,
            line.members,
            line.last,
        )
        for line in of.groups
    )
    heads = ("group", "cluster", "errors", "warnings", "records", "type", "assignor", "state", "members", "last record")
    left = of.total - len(rows)
    more = f"... and {left:,} groups that are not worse: choose some with --group" if left else ""
    without = len(rows) - sum(line.key in pages for line in of.groups)
    lines = []
    if without:
        lines.append(
            f"{without:,} groups have no page, only the worst {len(pages):,} do: more with --pages, others with --group"
        )
    brief = f"{of.total:,}, the worst first; {len(pages):,} have a page"
    return Section(
        "All groups", brief, tables=(PageTable(heads, rows, more),), lines=tuple(lines), is_open=not of.audit.found
    )
