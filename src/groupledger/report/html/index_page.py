"""Build the index: findings, folded; storms and uneven load; and every group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.rows import GroupKey
from groupledger.answers.spoken import assignor_of, numbered
from groupledger.core.moments import iso
from groupledger.core.rebalance.findings import BY_CODE, Severity
from groupledger.core.text import shortened, stretch
from groupledger.report.html.charts import heat, heat_picture
from groupledger.report.html.page_parts import Link, PageTable, Section, command, some

if TYPE_CHECKING:
    from groupledger.answers.audit import Found
    from groupledger.answers.storms import Share
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
    told = [
        f"{numbered(judged.records, 'record')} of {numbered(judged.groups, 'group')}",
        f"{judged.computed:,} of them recomputed",
        period,
        of.known,
    ]
    if scope.group is not None:
        told.append(f"groups like {scope.group}")
    if scope.cluster is not None:
        told.append(f"cluster {scope.cluster}")
    if scope.since is not None or scope.until is not None:
        begin = "the beginning" if scope.since is None else iso(scope.since)
        end = "the end" if scope.until is None else iso(scope.until)
        told.append(f"asked for: from {begin} to {end}")
    sections = (_storms(of, pages), _skew(of, pages), _groups(of, pages))
    return IndexPage("Consumer groups", " · ".join(told), judged.notes, tuple(_codes(of, pages)), sections)


def _codes(of: Fleet, pages: Pages) -> Iterable[tuple[Severity, Section]]:
    for (severity, code), found in groupby(of.audit.found, lambda each: (each.severity, each.code)):
        of_code = list(found)
        rows = [
            (_link(each.cluster_id, each.group_id, pages), each.cluster_id, each.records, _when(each), each.evidence)
            for each in of_code
        ]
        elsewhere = command("audit", of.scope, of.scope.cluster, of.scope.group) + " --limit 1000"
        table = some(rows, ("group", "cluster", "records", "when (UTC)", "evidence"), MOST_OF_A_CODE, elsewhere)
        records = numbered(sum(each.records for each in of_code), "record")
        brief = f"{numbered(len(of_code), 'group')}, {records}: {BY_CODE[code].what}"
        yield severity, Section(code, brief, tables=(table,))


def _when(each: Found) -> str | None:
    return None if each.first is None or each.last is None else stretch(each.first, each.last)


def _link(cluster: str, group: str, pages: Pages) -> Link:
    return Link(group, pages.get((cluster, group)))


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
    rows = tuple(
        (
            _link(storm.cluster_id, storm.group_id, pages),
            storm.cluster_id,
            storm.rebalances,
            storm.in_an_hour,
            stretch(storm.first, storm.last),
            _shares(storm.causes),
            _shares(storm.members, shortened(share.what for share in storm.members)),
            _shares(storm.partitions),
        )
        for storm in found
    )
    left = of.storms.total - len(rows)
    elsewhere = command("report storms", of.scope, of.scope.cluster, of.scope.group)
    heads = ("group", "cluster", "rebalances", "in an hour", "when (UTC)", "causes", "members", "partitions")
    table = PageTable(heads, rows, f"... and {left:,} more: {elsewhere} --limit {of.storms.total}" if left else "")
    brief = f"most in an hour: {found[0].in_an_hour:,} of {found[0].group_id}" if found else "no rebalance"
    return Section("When groups rebalanced", brief, pictures, tables=(table,), is_open=True)


def _shares(shares: Iterable[Share], names: Mapping[str, str] | None = None) -> str:
    return ", ".join(f"{(names or {}).get(share.what, share.what)} {share.times:,}" for share in shares)


def _skew(of: Fleet, pages: Pages) -> Section:
    found = of.skew.groups
    rows = tuple(
        (_link(g.cluster_id, g.group_id, pages), g.cluster_id, g.assignor, g.members, g.idle, g.most, g.least)
        for g in found
    )
    left = of.skew.total - len(rows)
    elsewhere = command("report skew", of.scope, of.scope.cluster, of.scope.group)
    table = PageTable(
        ("group", "cluster", "assignor", "members", "idle", "most", "least"),
        rows,
        f"... and {left:,} more: {elsewhere} --limit {of.skew.total}" if left else "",
    )
    brief = "no group has members at the end of this period"
    if found:
        brief = f"widest: {found[0].group_id}, {found[0].least:,} to {found[0].most:,} partitions of a member"
    return Section("Load of members", brief, tables=(table,))


def _groups(of: Fleet, pages: Pages) -> Section:
    """List all groups, the worst first; those without a page say how to see one."""
    codes: dict[GroupKey, Counter[Severity]] = defaultdict(Counter)
    for each in of.audit.found:
        codes[each.cluster_id, each.group_id][each.severity] += 1
    rows = tuple(
        (
            _link(*line.key, pages),
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
            f"{without:,} groups have no page, only the worst {len(pages):,} do: more with --limit, others with --group"
        )
    brief = f"{of.total:,}, the worst first; {len(pages):,} have a page"
    return Section(
        "All groups", brief, tables=(PageTable(heads, rows, more),), lines=tuple(lines), is_open=not of.audit.found
    )
