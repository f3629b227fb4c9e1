"""`groupledger who`: show who had a partition at a moment, and which partitions have no owner."""

from __future__ import annotations

import functools
import re
from collections import Counter
from datetime import UTC, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import WIDE, Column, differing
from groupledger.answers.spoken import NOBODY, numbered, spans
from groupledger.cli.exits import exit_if
from groupledger.cli.options import Job, moment, read_time, takes
from groupledger.core.log.topic_partitions import topic_partition
from groupledger.core.moments import Bound, bound, clock
from groupledger.core.text import is_opaque, length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.answers.owners import Holding, OwnershipAt
    from groupledger.answers.queries import Reader
    from groupledger.answers.unowned import UnownedPartition, UnownedPartitions
    from groupledger.cli.output import Output

_NUMBERED = re.compile(r"[-:][0-9]+$")
NOT_KNOWN = "not known: its record begins later"
MOST_LINES = 20
"""Above this many lines of unowned partitions, those of one moment share a line, whatever their last owner."""
MOST_STACKED = 3
"""Owners printed in full, one below the other, if they do not fit on a line."""
_WHY = {
    "given-up": "its owner lost it",
    "subscribed": "subscribed to, and given to nobody",
    "partition-added": "partition added",
    "first-listed": "not listed before",
}


@click.command(short_help="Who had a partition at a moment; which have no owner.")
@click.argument("partition", metavar="[TOPIC-PARTITION]", required=False)
@takes("group", "at")
@click.option("--unowned-since", is_flag=False, flag_value="", metavar="[TIME]",
              help="Unowned partitions of subscribed topics; with a time, or a length of time before --at such as 10m, "
              "those unowned at least since then.")  # fmt: skip
@click.option("--fail", is_flag=True, help="With --unowned-since: exit with 4 if there is such a partition.")
@takes("cluster", "limit", "wide", "config")
def who(
    job: Job,
    *,
    partition: str | None,
    at: Bound | None,
    unowned_since: str | None,
    fail: bool,
    group: str | None,
    cluster: str | None,
    limit: int,
) -> None:
    """Show who was assigned a partition, in each group, as the coordinator recorded it; or unowned partitions.

    Without --at: now, up to when the ledger is known. GROUP may be a pattern.

    \b
    groupledger who orders-7
    groupledger who orders-7 'payments-*' --at 2026-11-21T14:03Z
    groupledger who --unowned-since
    groupledger who --unowned-since 10m --fail
    """
    partition, group = _partition(partition, group, unowned=unowned_since is not None)
    if (partition is None) == (unowned_since is None):
        raise click.UsageError("expected a partition (who orders-7) or --unowned-since, one of them")
    if fail and unowned_since is None:
        raise click.UsageError("--fail goes with --unowned-since")
    if partition is not None:
        ask_owner(job, partition, at, cluster, group, limit)
        return
    since = read_time(unowned_since or None, bound)

    def ask(reader: Reader) -> UnownedPartitions:
        from groupledger.answers.scope import newest
        from groupledger.answers.unowned import unowned_partitions

        time = moment(reader, cluster, at, group) or newest(reader, cluster, group)
        return unowned_partitions(reader, time, since, cluster, group, limit)

    found = job.answer(ask, print_unowned, cluster, "unowned")
    exit_if(fail and found.partitions)


def _partition(partition: str | None, group: str | None, *, unowned: bool) -> tuple[str | None, str | None]:
    """Read `orders 7` as `orders-7`, and the one argument beside --unowned-since as the group."""
    if unowned and group is None:
        return None, partition
    if partition is not None and group is not None and group.isdecimal() and not _NUMBERED.search(partition):
        return f"{partition}-{group}", None
    return partition, group


def ask_owner(job: Job, partition: str, at: Bound | None, cluster: str | None, group: str | None, limit: int) -> None:
    """Print who had the partition; errors in the question are reported before the ledger is read."""
    topic, number = topic_partition(partition)

    def ask(reader: Reader) -> OwnershipAt:
        from groupledger.answers.owners import ownership
        from groupledger.answers.scope import newest

        time = moment(reader, cluster, at, group) or newest(reader, cluster, group)
        return ownership(reader, topic, number, time, cluster, group)

    job.answer(ask, functools.partial(print_ownership, limit=limit), cluster, "ownership")


def print_ownership(output: Output, answer: OwnershipAt, limit: int) -> None:
    """Print one line per owner, then the topic's lives if the name had several, then the limits of the answer."""
    day = answer.at.astimezone(UTC).date()
    time = clock(answer.at, None)
    clusters = {each.cluster_id for each in answer.holdings}
    place = f" (cluster {min(clusters)})" if len(clusters) == 1 else ""
    output.title(f"{answer.topic}-{answer.partition} at {time} UTC{place}, as recorded")
    shown = answer.holdings[:limit]
    ids = [name for each in shown for name in (_owner(each), _then(each)) if name]
    short = output.short(ids) | ({} if output.wide else _by_client(answer.holdings))
    several = len({life.topic_id for life in answer.topics}) > 1
    cluster, topic = differing("cluster", clusters, 8), Column("topic id", 0 if several else WIDE, 8)

    def cells(each: Holding) -> dict[Column, object]:
        member, last, following = each.member, each.last, each.next
        owner, then = _owner(each), _then(each)
        nobody = NOBODY if each.is_nobody else NOT_KNOWN
        return {
            cluster: each.cluster_id,
            Column("group", 0, 20): each.group_id,
            Column("owner", 0, 24): short[owner] + " (away)" * (each.away_since is not None) if owner else nobody,
            Column("since"): each.since and clock(each.since, day),
            Column("until", 1): following and clock(following.at, day),
            Column("then", 6, 24): following and (short[then] if then else None if each.shared else NOBODY),
            Column("gen", 2): each.generation,
            Column("recorded in", 3): last and last.snapshot_id,
            Column("client", 7, 12): member
            and (output.wide or not is_opaque(member.member_id) or None)
            and member.client_id,
            Column("instance", 5, 12): member and member.group_instance_id,
            topic: each.topic_id,
        }

    output.rows(map(cells, shown), stacked=MOST_STACKED)
    output.left_off(len(answer.holdings) - len(shown))
    if several:
        output.line()
        lives = [
            (each.cluster_id, each.topic_id, each.partition_count, each.since, each.until) for each in answer.topics
        ]
        output.table(["cluster", "topic id", "partitions", "since", "until"], lives)
    output.notes(answer.notes)


def _by_client(holdings: Sequence[Holding]) -> dict[str, str]:
    """Name each member whose id says nothing by its client and the beginning of the id: `shop-1 (FOCKw4p8)`."""
    members = [each.member for each in holdings if each.member is not None and is_opaque(each.member.member_id)]
    named = {each.member_id: f"{each.client_id} ({each.member_id[:8]})" for each in members if each.client_id}
    counted = Counter(named.values())
    return {member_id: name for member_id, name in named.items() if counted[name] == 1}


def _owner(holding: Holding) -> str | None:
    return holding.member.member_id if holding.member else None


def _then(holding: Holding) -> str | None:
    return holding.next.to_member_id if holding.next else None


def print_unowned(output: Output, answer: UnownedPartitions) -> None:
    """Print a line per topic, group and moment since which its partitions have had no owner, the oldest first."""
    day = answer.at.astimezone(UTC).date()
    since = "" if answer.since is None else f", and had not since {clock(answer.since, day)} or longer"
    clusters = {each.cluster_id for each in answer.partitions}
    place = f" (cluster {min(clusters)})" if len(clusters) == 1 else ""
    output.title(f"what nobody had at {clock(answer.at, None)} UTC{since}{place}")
    ids = [each.last_member_id for each in answer.partitions if each.last_member_id is not None]
    short = output.short(ids)
    cluster = differing("cluster", clusters, 8)

    def cells(some: list[UnownedPartition]) -> dict[Column, object]:
        first = some[0]
        owners = [short[name] for name in {each.last_member_id for each in some} if name is not None]
        return {
            cluster: first.cluster_id,
            Column("group", 0, 20): first.group_id,
            Column("partitions", 0, 16): spans((each.topic, each.partition) for each in some),
            Column("number", 4): len(some),
            Column("since"): "before " * first.from_before + clock(first.since, day),
            Column("for"): length(timedelta(seconds=first.age_seconds)),
            Column("why", 1, 16): _WHY[first.why],
            Column("last owner", 3, 24): numbered(len(owners), "member")
            if len(owners) > 1
            else (owners[0] if owners else None),
            Column("gen", 5): first.generation,
            Column("recorded in", 2): first.snapshot_id,
        }

    output.rows(map(cells, _together(answer.partitions)), stacked=MOST_STACKED)
    output.left_off(answer.left_off)
    output.notes(answer.notes)


def _together(partitions: Sequence[UnownedPartition]) -> list[list[UnownedPartition]]:
    """Group partitions into lines: those with different last owners get lines of their own, if these are few."""
    lines = [list(some) for _, some in groupby(partitions, lambda each: (*_alike(each), each.last_member_id))]
    return lines if len(lines) <= MOST_LINES else [list(some) for _, some in groupby(partitions, _alike)]


def _alike(each: UnownedPartition) -> tuple[object, ...]:
    return each.cluster_id, each.group_id, each.topic, each.since, each.from_before, each.why, each.snapshot_id
