"""`groupledger report`: rank groups by a problem, with the members and partitions that cause it; or as pages."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from groupledger.answers.answer_columns import details, rows_in, table
from groupledger.answers.spoken import numbered
from groupledger.cli.options import Job, takes
from groupledger.cli.output import Output
from groupledger.core.moments import iso
from groupledger.core.text import length, shortened, stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from groupledger.answers.joins import GroupJoins, StaticMember
    from groupledger.answers.migration import Migration, WayChange
    from groupledger.answers.queries import Reader
    from groupledger.answers.scope import RequestedScope
    from groupledger.answers.skew import RackShare, Skew, Weights
    from groupledger.answers.storms import Stickiness, Storm


@click.group(short_help="Rank groups: storms, joins, migrations, skew, ...; or html.")
def report() -> None:
    """Rank groups by one kind of problem, with the members and partitions that cause it.

    docs/guides/index.md leads from the symptom to the answer. `html` writes everything as pages.

    \b
    groupledger report storms --since 24h
    groupledger report skew 'payments-*'
    """


class Report(NamedTuple):
    """A ranking: the function of `answers` that makes it, what it returns, its help, and the options of examples."""

    function: str
    answer: str
    short_help: str
    help: str
    examples: tuple[str, ...]

    def ask(self, reader: Reader, asked: RequestedScope, limit: int, *more: object) -> Any:
        """Rank what was asked for."""
        return resolve_name(f"groupledger.answers.{self.function}")(reader, asked, limit, *more)


REPORTS = {
    "storms": Report(
        *("storms.storms", "Storms", "Groups that rebalance often: how often, why, who."),
        "Rank groups by their rebalances within one hour, with the mix of causes.\n\n"
        "Partitions are those that changed owner most often, members those that causes and findings name most often.",
        ("--since 24h",),
    ),
    "skew": Report(
        *("skew.skew", "Skews", "Groups whose members have unequal loads."),
        "Rank groups by the difference between their most and least loaded members, and by idle members.\n\n"
        "With --weights, by the weight of the partitions.",
        ("", "payments --weights lag.csv"),
    ),
    "static": Report(
        *("joins.static_members", "StaticMembers", "Static members: shared ids, restarts that moved work."),
        "Rank group.instance.ids by what their restarts moved; ids that two processes seem to share come first.",
        ("--since 7d",),
    ),
    "stickiness": Report(
        *("storms.stickiness", "Stickinesses", "How much groups moved, compared with the least moves."),
        "Rank groups by their moves beyond the least moves.",
        ("--since 7d",),
    ),
    "rack": Report(
        *("skew.racks", "RackShares", "How much members read from their own rack."),
        "Rank groups by the share of partitions with a replica in their owner's rack, if racks are known.",
        ("",),
    ),
    "joins": Report(
        *("joins.joins", "Joins", "Members that come and go: how often, when, who."),
        "Rank groups by how often members joined, left and returned, and members by the name that outlives a restart."
        "\n\nThat name is the group.instance.id, else the client id, with the host where several members share it.",
        ("--since 24h",),
    ),
    "migration": Report(
        *("migration.migrations", "Migrations", "Groups that changed type, protocol or assignor."),
        "Show which groups changed from classic to KIP-848, from eager to cooperative or to another assignor, or back."
        "\n\nGroups that now have members of both kinds come first.",
        ("--since 30d",),
    ),
}


def _command(name: str, of: Report) -> None:
    def run(job: Job, *, asked: RequestedScope, limit: int, weights: str | None = None) -> None:
        def ask(reader: Reader) -> Any:
            return of.ask(reader, asked, limit, *_weights(weights))

        job.answer(ask, print_report, asked.cluster, name, command="report", report=name)

    examples = "".join(f"groupledger report {name} {each}".rstrip() + "\n" for each in of.examples)
    run.__doc__ = f"{of.help}\n\n\b\n{examples}"
    command = takes("scope", "limit", "config")(run)
    if name == "skew":
        about = "CSV, .parquet or Delta folder: topic, partition, and lag or bytes."
        command = click.option("--weights", metavar="FILE", help=about)(command)
    report.command(name, short_help=of.short_help)(command)


def _weights(file: str | None) -> list[Weights]:
    if file is None:
        return []
    from groupledger.answers.skew import read_weights  # loads pyarrow

    return [read_weights(file)]


for _name, _report in REPORTS.items():
    _command(_name, _report)


_PAGES = "The worst N groups get a page, and each group that the index ranks; 0: none."


@report.command(short_help="Everything as HTML pages.")
@click.argument("folder", type=click.Path(path_type=Path), default="groupledger-report")
@takes("scope")
@click.option("--pages", type=click.IntRange(0), default=20, show_default=True, metavar="N", help=_PAGES)
@takes("config")
def html(job: Job, *, folder: Path, asked: RequestedScope, pages: int) -> None:
    """Write an index and a page for each of the worst groups into FOLDER (default: groupledger-report).

    Each page opens without a network.
    An existing report is replaced; a folder with other files in it is refused. docs/guides/use/html-report.md

    \b
    groupledger report html build/report --since 24h
    groupledger report html build/payments 'payments-*' --pages 50
    """
    from groupledger.report.html.written import write_report

    with job.output.status("reading the ledger") as doing:
        written = write_report(job.reader(), asked, folder, pages, doing)
    job.output.line(f"{written.index}: {numbered(written.groups, 'group')}, {written.pages:,} with a page")
    for note in written.notes:
        job.output.line(note)
    job.output.left_off(written.groups - written.pages, "without one", how="--pages")
    job.answered(written, asked.cluster, command="report", report="html", html=written)


# Print the reports of `groupledger report` for a person: a table of groups, then the details of each.

MEMBERS_SHOWN = 5
"""Members of a group; in larger ones, the heaviest and the lightest."""
HOURS_SHOWN = 4


def print_report(output: Output, answer: Any) -> None:
    """Print a ranking: its rows, the details of each, why there are none, and how many were omitted."""
    kind, rows = rows_in(answer)
    output.table(*output.of_one_cluster(*table(kind, rows)))
    _DETAILS[kind.__name__](output, rows)
    for note in answer.notes:
        output.line(note)
    output.left_off(answer.total - len(rows))


def _print_storms(output: Output, groups: Sequence[Storm]) -> None:
    """Print the causes, members, partitions and findings of each group."""
    for group in groups:
        times = "rebalance" if group.rebalances == 1 else f"rebalances in {length(group.last - group.first)}"
        output.title(f"{group.group_id}{output.place(group.cluster_id)}: {group.rebalances:,} {times}")
        if group.looked_at < group.rebalances:
            output.line(f"causes of the last {group.looked_at:,}:")
        for name, text in details(group):
            output.line(f"{name + ':':11}  {text}")


def _print_joins(output: Output, groups: Sequence[GroupJoins]) -> None:
    """Print the members with the most changes, and the busiest hours."""
    for group in groups:
        output.title(f"{group.group_id}{output.place(group.cluster_id)}, {stretch(group.first, group.last)}")
        names = output.names((each.name for each in group.members[:MEMBERS_SHOWN]), what="members")
        output.table(*table(type(group.members[0]), group.members[:MEMBERS_SHOWN], names))
        output.left_off(len(group.members) - MEMBERS_SHOWN, how="--json has all")
        if len(group.hours) > 1:
            output.line(f"busiest hours: {', '.join(map(str, group.hours[:HOURS_SHOWN]))}")


def _print_migrations(output: Output, groups: Sequence[Migration]) -> None:
    """Print one line per change, and how long the group had members of both kinds."""
    for group in groups:
        output.title(f"{group.group_id}{output.place(group.cluster_id)}, {stretch(group.began, group.ended)}")
        for change in group.changes:
            _print_change(output, change)
        for both in group.both_kinds:
            lasted = "to the end" if both.until is None else f"for {length(both.until - both.since)}"
            output.line(f"both kinds of members {lasted}, from {iso(both.since)}")


def _print_change(output: Output, change: WayChange) -> None:
    output.line(f"- {iso(change.at)}  [{change.snapshot_id}]")
    online = ", converted while running" if change.converted else ""
    output.line(f"  {change.before} -> {change.after}{online}")
    effects = [f"{change.moved:,} partitions went from member to member"] if change.moved else []
    if change.given:
        effects.append(f"{change.given:,} that nobody had got an owner")
    if change.unowned:
        longest = None if change.unowned_seconds is None else length(timedelta(seconds=change.unowned_seconds))
        ends = [f"the longest for {longest}"] if longest is not None else []
        ends += [f"{change.still_unowned:,} to the end"] if change.still_unowned else []
        effects.append(f"{change.unowned:,} had no owner for a time ({', '.join(ends)})")
    if change.empty_seconds is not None:
        most = "" if change.empty_is_known else " or less"
        effects.append(f"nobody was in the group for {length(timedelta(seconds=change.empty_seconds))}{most}")
    output.line(f"  {'; '.join(effects) or 'nothing moved'}")


def _print_skews(output: Output, groups: Sequence[Skew]) -> None:
    """Print the members of each group whose members have unequal loads."""
    weighed = any(group.most_weight is not None for group in groups)
    for group in groups:
        if group.most > group.least or weighed:
            _print_loads(output, group)


def _print_loads(output: Output, group: Skew) -> None:
    output.title(f"{group.group_id}{output.place(group.cluster_id)}, {iso(group.observed_at)}  [{group.snapshot_id}]")
    shown = group.loads
    if len(shown) > 2 * MEMBERS_SHOWN:
        shown = (*shown[:MEMBERS_SHOWN], *shown[-MEMBERS_SHOWN:])
    if shown:
        output.table(*table(type(shown[0]), shown, shortened(load.member_id for load in group.loads)))
    output.left_off(len(group.loads) - len(shown), "members between them", how="--json has all")
    if group.unweighted:
        output.line(f"{group.unweighted:,} partitions have no weight in the file: they count as 0")


def _print_shared(output: Output, members: Sequence[StaticMember]) -> None:
    """Print the evidence that an instance id is shared."""
    for member in members:
        if member.shared is not None:
            output.line(f"- {member.group_id}: {member.shared}")


def _print_stickiness(output: Output, groups: Sequence[Stickiness]) -> None:
    """Print the worst rebalance of each group, and how many are not in the sums."""
    for group in groups:
        if group.worst_at is not None:
            output.line(
                f"- {group.group_id}: {group.worst:,} too many in generation {group.worst_generation}, "
                f"{iso(group.worst_at)}  [{group.worst_snapshot_id}]"
            )
    others = sum(group.others for group in groups)
    bounds = sum(group.compared - group.certain for group in groups)
    if bounds:
        output.line(f"{bounds:,} more are not summed: of their least moves only a lower bound is known")
    if others:
        output.line(f"{others:,} more are not compared: their record is not what Kafka's own code gives (verdict)")


def _print_racks(output: Output, groups: Sequence[RackShare]) -> None:
    """Print the members of each group that read most from other racks."""
    for group in groups:
        if group.remote:
            output.title(f"{group.group_id}{output.place(group.cluster_id)}, {iso(group.observed_at)}")
            shown = [each for each in group.members[:MEMBERS_SHOWN] if each.remote]
            names = shortened(member.member_id for member in group.members)
            output.table(*table(type(group.members[0]), shown, names))


_DETAILS: dict[str, Callable[[Output, Sequence[Any]], None]] = {
    "Storm": _print_storms,
    "GroupJoins": _print_joins,
    "Migration": _print_migrations,
    "Skew": _print_skews,
    "StaticMember": _print_shared,
    "Stickiness": _print_stickiness,
    "RackShare": _print_racks,
}
"""What is printed below the table, by the type of its rows: their modules are imported for an answer only."""
