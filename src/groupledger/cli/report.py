"""`groupledger report`: rank groups by a problem, with the members and partitions that cause it; or as pages."""

from __future__ import annotations

import functools
from datetime import UTC, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupledger.answers.spoken import numbered, spans, told_apart
from groupledger.cli.audit import WHEN
from groupledger.cli.options import Job, takes_config, takes_scope
from groupledger.cli.output import plain
from groupledger.core.moments import iso
from groupledger.core.text import length, shortened, stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from groupledger.answers.joins import HourOfChanges, Joins, MemberJoins, StaticMembers
    from groupledger.answers.migration import GroupWay, Migrations, WayChange
    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import RequestedScope
    from groupledger.answers.skew import Load, RackShares, Skew, Skews
    from groupledger.answers.storms import Share, Stickinesses, Storm, Storms
    from groupledger.cli.output import Output


@click.group(short_help="Rank groups: storms, joins, migrations, skew, ...; or html.")
def report() -> None:
    """Rank groups by one kind of problem, with the members and partitions that cause it.

    docs/guides/index.md leads from the symptom to the answer. `html` writes everything as pages.

    \b
    groupledger report storms --since 24h
    groupledger report skew --group 'payments-*'
    """


def _reported(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Make a report command: it supplies the question and the renderer; the rest is shared."""

    @takes_scope
    @click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Maximum lines.")
    @takes_config
    @functools.wraps(ask)
    def run(job: Job, *, asked: RequestedScope, limit: int, **more: Any) -> None:

        name = click.get_current_context().info_name or ""
        question = ask(asked=asked, limit=limit, **more)
        with job.output.status("reading the ledger"):
            answer = question(job.reader())
        tell_report(job.output, name, answer)
        job.answered(answer, asked.cluster, command="report", report=name, **{name: plain(answer)})

    return run


@report.command(short_help="Groups that rebalance often: how often, why, who.")
@_reported
def storms(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by their rebalances within one hour, with the mix of causes.

    Partitions are those that changed owner most often, members those that causes and findings name most often.

    \b
    groupledger report storms --since 24h
    """
    from groupledger.answers import storms as answers

    return lambda reader: answers.storms(reader, asked, limit)


@report.command(short_help="Members that come and go: how often, when, who.")
@_reported
def joins(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by how often members joined, left and returned, and members by the name that outlives a restart.

    That name is the group.instance.id, else the client id, with the host where several members share it.

    \b
    groupledger report joins --since 24h
    """
    from groupledger.answers import joins as answers

    return lambda reader: answers.joins(reader, asked, limit)


@report.command(short_help="Groups that changed type, protocol or assignor.")
@_reported
def migration(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Show which groups changed from classic to KIP-848, from eager to cooperative or to another assignor, or back.

    Groups that now have members of both kinds come first.

    \b
    groupledger report migration --since 30d
    """
    from groupledger.answers import migration as answers

    return lambda reader: answers.migrations(reader, asked, limit)


@report.command(short_help="Groups whose members have unequal loads.")
@click.option("--weights", metavar="FILE", help="CSV, .parquet or Delta folder: topic, partition, and lag or bytes.")
@_reported
def skew(*, asked: RequestedScope, limit: int, weights: str | None) -> Callable[..., Any]:
    """Rank groups by the difference between their most and least loaded members, and by idle members.

    With --weights, by the weight of the partitions.

    \b
    groupledger report skew
    groupledger report skew --group payments --weights lag.csv
    """
    from groupledger.answers import skew as answers

    def ask(reader: Reader) -> answers.Skews:
        if weights is None:
            return answers.skew(reader, asked, limit)
        from groupledger.answers.weights import read_weights

        return answers.skew(reader, asked, limit, read_weights(weights))

    return ask


@report.command(short_help="Static members: shared ids, restarts that moved work.")
@_reported
def static(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank group.instance.ids by what their restarts moved; ids that two processes seem to share come first.

    \b
    groupledger report static --since 7d
    """
    from groupledger.answers import joins as answers

    return lambda reader: answers.static_members(reader, asked, limit)


@report.command(short_help="How much groups moved, compared with the least moves.")
@_reported
def stickiness(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by their moves beyond the least moves.

    \b
    groupledger report stickiness --since 7d
    """
    from groupledger.answers import storms as answers

    return lambda reader: answers.stickiness(reader, asked, limit)


@report.command(short_help="How much members read from their own rack.")
@_reported
def rack(*, asked: RequestedScope, limit: int) -> Callable[..., Any]:
    """Rank groups by the share of partitions with a replica in their owner's rack, if racks are known.

    \b
    groupledger report rack
    """
    from groupledger.answers import skew as answers

    return lambda reader: answers.racks(reader, asked, limit)


@report.command(short_help="Everything as HTML pages.")
@click.argument("folder", type=click.Path(path_type=Path))
@takes_scope
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Maximum groups with a page.")
@takes_config
def html(job: Job, *, folder: Path, asked: RequestedScope, limit: int) -> None:
    """Write an index and a page for each of the worst groups into FOLDER; each opens without a network.

    An existing report is replaced; a folder with other files in it is refused. docs/guides/use/html-report.md

    \b
    groupledger report html build/report --since 24h
    groupledger report html build/payments --group 'payments-*' --limit 50
    """
    from groupledger.report.html.written import write_report

    with job.output.status("reading the ledger") as doing:
        written = write_report(job.reader(), asked, folder, limit, doing)
    job.output.line(f"{written.index}: {numbered(written.groups, 'group')}, {written.pages:,} with a page")
    for note in written.notes:
        job.output.line(note)
    if written.pages < written.groups:
        job.output.line(f"... and {written.groups - written.pages:,} without one (--limit)")
    job.answered(written, asked.cluster, command="report", report="html", html=plain(written))


# Print the reports of `groupledger report` for a person: a table of groups, then the details of each.

MEMBERS_SHOWN = 5
"""Members of a group; in larger ones, the heaviest and the lightest."""
HOURS_SHOWN = 4
HOUR = "busiest hour (UTC)"
CLASSIC, BOTH_TYPES = "classic", "classic and KIP-848"  # answers are imported only when they are needed


def tell_report(output: Output, name: str, answer: Any) -> None:
    """Print a report: its groups, why there are none, and how many were omitted."""
    tell: dict[str, Callable[[Output, Any], None]] = {
        "storms": tell_storms,
        "joins": tell_joins,
        "migration": tell_migration,
        "skew": tell_skew,
        "static": tell_static,
        "stickiness": tell_stickiness,
        "rack": tell_rack,
    }
    tell[name](output, answer)
    for note in answer.notes:
        output.line(note)
    shown = len(answer.members if name == "static" else answer.groups)
    if answer.total > shown:
        output.line(f"... and {answer.total - shown:,} more (--limit)")


def tell_storms(output: Output, answer: Storms) -> None:
    """Print one line per group, then its causes, members, partitions and findings."""
    output.table(
        ["group", "cluster", "rebalances", "in an hour", WHEN],
        [(g.group_id, g.cluster_id, g.rebalances, g.in_an_hour, stretch(g.first, g.last)) for g in answer.groups],
    )
    for group in answer.groups:
        _tell_storm(output, group)


def _tell_storm(output: Output, group: Storm) -> None:
    times = "rebalance" if group.rebalances == 1 else f"rebalances in {length(group.last - group.first)}"
    output.title(f"{group.group_id} (cluster {group.cluster_id}): {group.rebalances:,} {times}")
    if group.looked_at < group.rebalances:
        output.line(f"causes of the last {group.looked_at:,}:")
    names = shortened(share.what for share in group.members)
    kinds = (
        ("causes", group.causes),
        ("members", group.members),
        ("partitions", group.partitions),
        ("findings", group.findings),
    )
    for name, shares in kinds:
        if shares:
            output.line(f"{name + ':':11}  {_shares(shares, names if name == 'members' else {})}")


def _shares(shares: Iterable[Share], names: Mapping[str, str]) -> str:
    return ", ".join(f"{names.get(share.what, share.what)} {share.times:,}" for share in shares)


def tell_joins(output: Output, answer: Joins) -> None:
    """Print one line per group, then its members with the most changes, and the busiest hours."""
    output.table(
        ["group", "cluster", "joined", "gone", "restarted", HOUR],
        [(g.group_id, g.cluster_id, g.joined, g.gone, g.restarted, _hour(g.hours[0])) for g in answer.groups],
    )
    for group in answer.groups:
        output.title(f"{group.group_id} (cluster {group.cluster_id}), {stretch(group.first, group.last)}")
        names, start = told_apart(each.name for each in group.members[:MEMBERS_SHOWN])
        if start:
            output.line(f"members begin with {start}")
        output.table(
            ["member", "joined", "gone", "restarted", "stays", "hosts", HOUR],
            [_joined(each, names) for each in group.members[:MEMBERS_SHOWN]],
        )
        if len(group.members) > MEMBERS_SHOWN:
            output.line(f"... and {len(group.members) - MEMBERS_SHOWN:,} more (--json has all)")
        if len(group.hours) > 1:
            output.line(f"busiest hours: {', '.join(_hour(each) for each in group.hours[:HOURS_SHOWN])}")


def _joined(each: MemberJoins, names: Mapping[str, str]) -> tuple[object, ...]:
    stay = None if each.stay_seconds is None else length(timedelta(seconds=each.stay_seconds))
    return names[each.name], each.joined, each.gone, each.restarted, stay, len(each.hosts), _hour(each.hours[0])


def _hour(each: HourOfChanges) -> str:
    """Format as `2026-11-21 14h: 12`."""
    return f"{each.hour.astimezone(UTC):%Y-%m-%d %H}h: {each.changes:,}"


def tell_migration(output: Output, answer: Migrations) -> None:
    """Print one line per group, then one per change, and how long it had members of both kinds."""
    output.table(
        ["group", "state", "from", "to"],
        [(g.group_id, g.end.value, _way(g.first), _way(g.last)) for g in answer.groups],
    )
    for group in answer.groups:
        output.title(f"{group.group_id} (cluster {group.cluster_id}), {stretch(group.began, group.ended)}")
        for change in group.changes:
            _tell_change(output, change)
        for both in group.both_kinds:
            lasted = "to the end" if both.until is None else f"for {length(both.until - both.since)}"
            output.line(f"both kinds of members {lasted}, from {iso(both.since)}")


def _tell_change(output: Output, change: WayChange) -> None:
    output.line(f"- {iso(change.at)}  [{change.snapshot_id}]")
    online = ", converted while running" if change.converted else ""
    output.line(f"  {_way(change.before)} -> {_way(change.after)}{online}")
    told = [f"{change.moved:,} partitions went from member to member"] if change.moved else []
    if change.given:
        told.append(f"{change.given:,} that nobody had got an owner")
    if change.unowned:
        longest = None if change.unowned_seconds is None else length(timedelta(seconds=change.unowned_seconds))
        ends = [f"the longest for {longest}"] if longest is not None else []
        ends += [f"{change.still_unowned:,} to the end"] if change.still_unowned else []
        told.append(f"{change.unowned:,} had no owner for a time ({', '.join(ends)})")
    if change.empty_seconds is not None:
        most = "" if change.empty_is_known else " or less"
        told.append(f"nobody was in the group for {length(timedelta(seconds=change.empty_seconds))}{most}")
    output.line(f"  {'; '.join(told) or 'nothing moved'}")


def _way(of: GroupWay) -> str:
    """Format as `range, eager`; `KIP-848 uniform`; `KIP-848 uniform, classic members too`."""
    kind = None if of.kind is None else of.kind.value
    if of.group_type == CLASSIC:
        return ", ".join(each for each in (of.assignor, kind) if each is not None)
    named = f"KIP-848 {of.assignor}" if of.assignor is not None else "KIP-848"
    return f"{named}, classic members too" if kind == BOTH_TYPES else named


def tell_skew(output: Output, answer: Skews) -> None:
    """Print one line per group, then its members."""
    weighed = any(group.most_weight is not None for group in answer.groups)
    heads = ["group", "cluster", "assignor", "members", "idle", "most", "least"]
    rows: list[tuple[object, ...]] = [
        (g.group_id, g.cluster_id, g.assignor, g.members, g.idle, g.most, g.least) for g in answer.groups
    ]
    if weighed:
        heads += ["heaviest", "lightest"]
        rows = [(*row, g.most_weight, g.least_weight) for row, g in zip(rows, answer.groups, strict=True)]
    output.table(heads, rows)
    for group in answer.groups:
        if group.most > group.least or weighed:
            _tell_loads(output, group)


def _tell_loads(output: Output, group: Skew) -> None:
    output.title(f"{group.group_id} (cluster {group.cluster_id}), {iso(group.observed_at)}  [{group.snapshot_id}]")
    short = shortened(load.member_id for load in group.loads)
    shown: list[Load] = list(group.loads)
    if len(shown) > 2 * MEMBERS_SHOWN:
        shown = [*shown[:MEMBERS_SHOWN], *shown[-MEMBERS_SHOWN:]]
    weighed = group.most_weight is not None
    output.table(
        ["member", "partitions", *(["weight"] if weighed else []), "which"],
        [
            (short[each.member_id], len(each.partitions), *([each.weight] if weighed else []), spans(each.partitions))
            for each in shown
        ],
    )
    if len(shown) < len(group.loads):
        output.line(f"... and {len(group.loads) - len(shown):,} members between them (--json has all)")
    if group.unweighted:
        output.line(f"{group.unweighted:,} partitions have no weight in the file: they count as 0")


def tell_static(output: Output, answer: StaticMembers) -> None:
    """Print one line per instance id; evidence that one is shared follows below."""
    output.table(
        ["group", "cluster", "instance", "takeovers", "moved", WHEN],
        [
            (m.group_id, m.cluster_id, m.instance_id, m.takeovers, m.moved, stretch(m.first, m.last))
            for m in answer.members
        ],
    )
    for member in answer.members:
        if member.shared is not None:
            output.line(f"- {member.group_id}: {member.shared}")


def tell_stickiness(output: Output, answer: Stickinesses) -> None:
    """Print one line per group and assignor."""
    output.table(
        ["group", "cluster", "assignor", "rebalances", "moves", "least", "excess", "below"],
        [(g.group_id, g.cluster_id, g.assignor, g.certain, g.moves, g.least, g.excess, g.below) for g in answer.groups],
    )
    for group in answer.groups:
        if group.worst_at is not None:
            output.line(
                f"- {group.group_id}: {group.worst:,} too many in generation {group.worst_generation}, "
                f"{iso(group.worst_at)}  [{group.worst_snapshot_id}]"
            )
    others = sum(group.others for group in answer.groups)
    bounds = sum(group.compared - group.certain for group in answer.groups)
    if bounds:
        output.line(f"{bounds:,} more are not summed: of their least moves only a lower bound is known")
    if others:
        output.line(f"{others:,} more are not compared: their record is not what Kafka's own code gives (verdict)")


def tell_rack(output: Output, answer: RackShares) -> None:
    """Print one line per group, then its members that read most from other racks."""
    output.table(
        ["group", "cluster", "local %", "local", "remote", "possible", "unknown"],
        [
            (g.group_id, g.cluster_id, round(100 * g.share), g.local, g.remote, g.possible, g.unknown)
            for g in answer.groups
        ],
    )
    for group in answer.groups:
        if group.remote:
            short = shortened(member.member_id for member in group.members)
            output.title(f"{group.group_id} (cluster {group.cluster_id}), {iso(group.observed_at)}")
            output.table(
                ["member", "rack", "local", "remote", "which"],
                [
                    (short[m.member_id], m.rack_id, m.local, len(m.remote), spans(m.remote))
                    for m in group.members[:MEMBERS_SHOWN]
                    if m.remote
                ],
            )
