"""`groupledger timeline`: print the history of a group or a partition for a person."""

from __future__ import annotations

import functools
from datetime import UTC
from operator import attrgetter
from typing import TYPE_CHECKING

import click

from groupledger.answers.columns import WIDE, Column, differing
from groupledger.answers.spoken import NOBODY, OF_MEMBERS, assignor_of, in_short
from groupledger.cli.options import Job, read_time, takes_config
from groupledger.core.log.topics import topic_partition
from groupledger.core.moments import clock, dates_once
from groupledger.core.text import length, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from groupledger.answers.rows import Reader
    from groupledger.answers.tenures import OwnerSpan, PartitionTimeline
    from groupledger.answers.timeline import Timeline, TimelineEntry
    from groupledger.cli.output import Output
    from groupledger.core.moments import Bound

Bounds = tuple["Bound | None", "Bound | None"]
"""Since and until, as given."""


@click.command(short_help="What happened in a group, or to a partition.")
@click.argument("group", required=False)
@click.option("--partition", metavar="TOPIC-N", help="The owners of a partition, one after another.")
@click.option("--group", "among", metavar="GLOB", help="With --partition: only this group, or those matching.")
@click.option("--since", metavar="TIME", help="ISO 8601, milliseconds since 1970, or a length of time (24h, 90m, 7d) "
              "before now, up to when the ledger is known.")  # fmt: skip
@click.option("--until", metavar="TIME", help="End of the period, in the same format.")
@click.option("--cluster", metavar="CLUSTER", help="Only this cluster.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum lines; the newest are kept."
)
@click.option("--wide", is_flag=True, help="All columns, and ids in full.")
@takes_config
def timeline(
    job: Job,
    *,
    group: str | None,
    partition: str | None,
    among: str | None,
    since: str | None,
    until: str | None,
    cluster: str | None,
    limit: int,
    wide: bool,
) -> None:
    """Print the history of a group (or those matching 'payments-*'), a line per rebalance; or a partition's owners.

    \b
    groupledger timeline payments
    groupledger timeline 'payments-*' --since 24h
    groupledger timeline --partition orders-7 --group payments
    """
    if (group is None) == (partition is None):
        raise click.UsageError("expected a group (timeline payments) or --partition, one of them")
    if among is not None and partition is None:
        raise click.UsageError("--group goes with --partition: it says in which groups")
    asked = read_time(since), read_time(until)
    if partition is not None:
        _ask_owners(job, partition, among, cluster, asked, limit, wide=wide)
        return

    def ask(reader: Reader) -> Timeline:
        from groupledger.answers.timeline import timeline as history

        return history(reader, group or "", cluster, *_window(reader, cluster, asked), limit)

    job.answer(ask, functools.partial(print_group, wide=wide), cluster, "timeline")


def _ask_owners(
    job: Job, partition: str, group: str | None, cluster: str | None, asked: Bounds, limit: int, *, wide: bool
) -> None:
    topic, number = topic_partition(partition)

    def ask(reader: Reader) -> PartitionTimeline:
        from groupledger.answers.reach import newest
        from groupledger.answers.tenures import partition_timeline

        since, until = _window(reader, cluster, asked)
        until = until or newest(reader, cluster)
        return partition_timeline(reader, topic, number, until, since, cluster, group, limit)

    job.answer(ask, functools.partial(print_partition, wide=wide), cluster, "partition_timeline")


def _window(reader: Reader, cluster: str | None, asked: Bounds) -> tuple[datetime | None, datetime | None]:
    """Return both ends as moments; a length of time counts back from now."""
    from groupledger.answers.reach import moments

    since, until = moments(reader, cluster, asked)
    if since is not None and until is not None and since > until:
        raise click.UsageError(f"--since {clock(since, None)} is after --until {clock(until, None)}")
    return since, until


def print_group(output: Output, answer: Timeline, *, wide: bool = False) -> None:
    """Print one line per rebalance: when, to which generation, who joined and left, why, and the outcome."""
    clusters, groups, kinds = (
        sorted(set(map(attrgetter(name), answer.entries))) for name in ("cluster_id", "group_id", "group_type")
    )
    one = groups[0] if len(groups) == 1 else answer.group
    day, times = dates_once([each.began_at for each in answer.entries])
    output.title(f"{one}{_shared(kinds, clusters, day)}{_stretch(answer.since, answer.until)}")
    ids = [
        name for each in answer.entries for cause in each.causes if cause.kind in OF_MEMBERS and (name := cause.about)
    ]
    names = output.names(ids, wide=wide)
    cluster, group = differing("cluster", clusters, 8), differing("group", groups, 16)

    def cells(each: TimelineEntry, time: str) -> dict[Column, object]:
        before = "" if each.members_before is None else f"{each.members_before} "
        same = each.members == each.members_before
        codes = ", ".join(f"{number} {code}" for code, number in each.findings.items())
        return {
            Column("time"): time,
            cluster: each.cluster_id,
            group: each.group_id,
            Column("gen"): each.generation,
            Column("members", 1): str(each.members) if same else f"{before}-> {each.members}",
            Column("why", 0, 20): in_short(each.causes, names),
            Column("hands"): len(each.moved) or None,
            Column("nobody", 2): None if each.unowned is None else len(each.unowned) or None,
            Column("findings", 3): sum(each.findings.values()) or None,
            Column("gap before", 4, 16): "; ".join(gap.partition(":")[0] for gap in each.gaps) or None,
            Column("state", 5): each.state,
            Column("which findings", 5, 16): codes or None,
            Column("took", 6): length(each.observed_at - each.began_at) if each.records > 1 else None,
            Column("verdict", 7, 12): each.verdict,
            Column("recorded in", 8): each.snapshot_id,
            Column("assignor", 9, 10): assignor_of(each.group_type, each.assignor, each.members),
            Column("kind", WIDE): each.snapshot_kind,
            Column("records", WIDE): each.records,
        }

    output.rows(list(map(cells, answer.entries, times)), wide=wide)
    _print_rest(output, answer.left_off, answer.notes)


def print_partition(output: Output, answer: PartitionTimeline, *, wide: bool = False) -> None:
    """Print one line per owner, by group: since when, for how long, and which state began it."""
    partition = f"{answer.topic}-{answer.partition}"
    clusters, groups, ids = (
        sorted({each or "" for each in map(attrgetter(name), answer.spans)})
        for name in ("cluster_id", "group_id", "topic_id")
    )
    day, times = dates_once([span.since for span in answer.spans if span.since is not None])
    shared = _shared(groups if len(groups) == 1 else [], clusters, day)
    output.title(f"{partition}{shared}{_stretch(answer.since, answer.until)}, as the coordinator recorded it")
    members = [span.member_id for span in answer.spans if span.member_id is not None]
    short = {name: name for name in members} if wide else shortened(members)
    cluster, group = differing("cluster", clusters, 8), differing("group", groups, 20)
    topic, dated, width = differing("topic id", ids, 8), iter(times), max(map(len, times), default=0)

    def cells(span: OwnerSpan) -> dict[Column, object]:
        day = span.since and span.since.astimezone(UTC).date()
        return {
            cluster: span.cluster_id,
            group: span.group_id,
            Column("since"): "earlier".rjust(width) if span.since is None else next(dated),
            Column("for"): _lasts(span),
            Column("owner", 0, 24): NOBODY if span.member_id is None else short[span.member_id],
            Column("gen", 1): span.generation,
            Column("recorded in", 2): span.snapshot_id,
            Column("until", 3): None if span.until is None else clock(span.until, day),
            topic: span.topic_id,
        }

    output.rows(list(map(cells, answer.spans)), wide=wide)
    _print_rest(output, answer.left_off, answer.notes)


def _lasts(span: OwnerSpan) -> str | None:
    """Return how long it lasted, or has lasted as far as is known."""
    ended = span.until or span.known_until
    if span.since is None or ended is None:
        return None
    return length(ended - span.since) + ("" if span.until is not None else ", still")


def _shared(of: list[str], clusters: list[str], day: str) -> str:
    """Return what all lines share: ` (classic, cluster dev; 2026-11-21, UTC)`."""
    parts = [*of, *(f"cluster {each}" for each in clusters if len(clusters) == 1)]
    when = f"{day}, UTC" if day else "UTC"
    return f" ({', '.join(parts)}; {when})" if parts else f" ({when})"


def _stretch(since: datetime | None, until: datetime | None) -> str:
    begins = "" if since is None else f" from {clock(since, None)}"
    return begins if until is None else f"{begins} to {clock(until, None)}"


def _print_rest(output: Output, left_off: int, notes: Sequence[str]) -> None:
    output.left_off(left_off, "older")
    output.notes(notes)
