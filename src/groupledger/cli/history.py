"""`groupledger timeline` and `diff`: what groups went through, and two moments of one group compared."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import WIDE, Column, differing
from groupledger.answers.spoken import NOBODY, OF_MEMBERS, assignor_of, cause_lines, in_short, spans
from groupledger.cli.options import Job, comma_separated, moment, read_time, takes
from groupledger.core.log.topic_partitions import topic_partition
from groupledger.core.moments import Bound, clock, dates_once, iso, point
from groupledger.core.text import length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from groupledger.answers.explanation import ComparedState, GroupDifference, MemberMove, ScenarioDifference
    from groupledger.answers.owners import OwnerSpan, PartitionTimeline
    from groupledger.answers.queries import Reader
    from groupledger.answers.timeline import Timeline, TimelineEntry
    from groupledger.cli.output import Output


# `groupledger timeline`: print the history of a group or a partition for a person.

Bounds = tuple["Bound | None", "Bound | None"]
"""Since and until, as given."""


@click.command(short_help="What happened in a group, or to a partition.")
@takes("group")
@click.option("--partition", metavar="TOPIC-N", help="The owners of a partition, one after another.")
@takes("since", "until", "cluster", "limit", "wide", "config")
def timeline(
    job: Job,
    *,
    group: str | None,
    partition: str | None,
    since: Bound | None,
    until: Bound | None,
    cluster: str | None,
    limit: int,
) -> None:
    """Print the history of a group (or those matching 'payments-*'), a line per rebalance; or a partition's owners.

    Of more lines than --limit, the newest are kept.

    \b
    groupledger timeline payments
    groupledger timeline 'payments-*' --since 24h
    groupledger timeline payments --partition orders-7
    """
    if group is None and partition is None:
        raise click.UsageError("expected a group (timeline payments), a --partition, or both")
    asked = since, until
    if partition is not None:
        _ask_owners(job, partition, group, cluster, asked, limit)
        return

    def ask(reader: Reader) -> Timeline:
        from groupledger.answers.timeline import timeline as history

        return history(reader, group or "", cluster, *_window(reader, cluster, asked, group), limit)

    job.answer(ask, print_group, cluster, "timeline")


def _ask_owners(job: Job, partition: str, group: str | None, cluster: str | None, asked: Bounds, limit: int) -> None:
    topic, number = topic_partition(partition)

    def ask(reader: Reader) -> PartitionTimeline:
        from groupledger.answers.owners import partition_timeline
        from groupledger.answers.scope import newest

        since, until = _window(reader, cluster, asked, group)
        until = until or newest(reader, cluster, group)
        return partition_timeline(reader, topic, number, until, since, cluster, group, limit)

    job.answer(ask, print_partition, cluster, "partition_timeline")


def _window(
    reader: Reader, cluster: str | None, asked: Bounds, group: str | None
) -> tuple[datetime | None, datetime | None]:
    """Return both ends as moments; a length of time counts back from now."""
    from groupledger.answers.scope import moments

    since, until = moments(reader, cluster, asked, group)
    if since is not None and until is not None and since > until:
        raise click.UsageError(f"--since {clock(since, None)} is after --until {clock(until, None)}")
    return since, until


def print_group(output: Output, answer: Timeline) -> None:
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
    names = output.names(ids)
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

    output.rows(map(cells, answer.entries, times))
    output.left_off(answer.left_off, "older")
    output.notes(answer.notes)


def print_partition(output: Output, answer: PartitionTimeline) -> None:
    """Print one line per owner, by group: since when, for how long, and which state began it."""
    partition = f"{answer.topic}-{answer.partition}"
    clusters, groups, ids = (
        sorted({each or "" for each in map(attrgetter(name), answer.spans)})
        for name in ("cluster_id", "group_id", "topic_id")
    )
    day, times = dates_once([span.since for span in answer.spans if span.since is not None])
    shared = _shared(groups if len(groups) == 1 else [], clusters, day)
    output.title(f"{partition}{shared}{_stretch(answer.since, answer.until)}, as recorded")
    members = [span.member_id for span in answer.spans if span.member_id is not None]
    short = output.short(members)
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

    output.rows(map(cells, answer.spans))
    output.left_off(answer.left_off, "older")
    output.notes(answer.notes)


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


# `groupledger diff`: compare two states of a group, or two results for one state.

LIMIT = 50
"""Members shown by default."""
MOST_NAMED = 3
"""Unowned partitions named in a cell; the others are only counted."""
_EITHER = "expected --from 5 [--to 6], or --scenarios a,b [--generation 5 or --at TIME]"


@click.command(short_help="Compare two states of a group, or two scenarios.")
@takes("GROUP")
@click.option("--from", "begin", metavar="POINT", help="A generation or group epoch, or a time as for --at.")
@click.option("--to", "end", metavar="POINT", help="Same format; default: the last state.")
@click.option("--scenarios", metavar="A,B", help="Compare two results of `assign` for one state, by name.")
@takes("generation", "at", "cluster", "limit", "wide", "config")
def diff(
    job: Job,
    *,
    group: str,
    begin: str | None,
    end: str | None,
    scenarios: str | None,
    generation: int | None,
    at: Bound | None,
    cluster: str | None,
    limit: int,
) -> None:
    """Show what members gained and lost, who joined and left, and what else changed between two states of a group.

    --generation or --at name the one state of --scenarios; default: the last.

    \b
    groupledger diff payments --from 12 --to 15
    groupledger diff payments --from 24h
    groupledger diff payments --scenarios baseline,uniform --generation 12
    """
    others = (end,) if begin is None else (generation, at)
    if (begin is None) == (scenarios is None) or any(each is not None for each in others):
        raise click.UsageError(_EITHER)
    if scenarios is None:
        first, last = read_time(begin, point), read_time(end, point)

        def ask(reader: Reader) -> GroupDifference:
            from groupledger.answers.explanation import difference

            assert first is not None
            return difference(reader, group, first, last, cluster)

        job.answer(ask, functools.partial(print_states, limit=limit), cluster, "difference")
        return
    names = comma_separated("--scenarios", scenarios, "two names", most=2)

    def ask_scenarios(reader: Reader) -> ScenarioDifference:
        from groupledger.answers.explanation import scenario_difference

        return scenario_difference(
            reader, group, (names[0], names[-1]), generation, cluster, at=moment(reader, cluster, at, group)
        )

    job.answer(ask_scenarios, functools.partial(print_scenarios, limit=limit), cluster, "scenario_difference")


def print_states(output: Output, answer: GroupDifference, limit: int = LIMIT) -> None:
    """Print it for a person: the two states, what changed, who gained and lost what."""
    before, after = answer.before, answer.after
    later = length(after.observed_at - before.observed_at)
    output.title(f"{answer.group_id} (cluster {answer.cluster_id}), {answer.group_type}: two states, {later} apart")
    sides = zip(_side(before).items(), _side(after).values(), strict=True)
    output.table(["", "before", "after"], [(*named, then) for named, then in sides])
    output.line(f"states recorded from the one to the other: {answer.records:,}")
    output.title("what changed")
    for line in cause_lines(answer.changes):
        output.line(line)
    if not answer.changes:
        output.line("neither members, subscriptions, topics nor the assignor")
    output.title(f"partitions: {len(answer.moved):,} with another owner")
    joined = {change.about for change in answer.changes if change.kind == "member-joined" and change.about}
    print_members(output, answer.members, joined, limit)
    output.notes(answer.notes)


def _side(of: ComparedState) -> dict[str, object]:
    return {
        "generation": of.generation,
        "time": iso(of.observed_at),
        "state": of.state,
        "assignor": of.assignor,
        "members": of.members,
        "partitions owned": of.partitions,
        "most, least of a member": None if of.most is None else f"{of.most:,}, {of.least:,}",
        "nobody has": _nobody(of),
        "recorded in": of.snapshot_id,
    }


def _nobody(side: ComparedState) -> str:
    if side.unowned is None:
        return "not known"
    if len(side.unowned) > MOST_NAMED:
        return f"{len(side.unowned):,} partitions"
    return spans(side.unowned) if side.unowned else "none"


def print_scenarios(output: Output, answer: ScenarioDifference, limit: int = LIMIT) -> None:
    """Print it for a person: the two results, then each partition with another owner."""
    one, other = answer.before, answer.after
    output.title(f"{answer.group_id} (cluster {answer.cluster_id}), generation {answer.generation}: two results")
    output.line(f"{iso(answer.observed_at)}  [{answer.snapshot_id}]")
    compared = ("assignor", "protocol", "outcome", "moves", "least_moves", "fewest_rounds", "unassigned", "verdict")
    rows = [(name.replace("_", " "), getattr(one, name), getattr(other, name)) for name in compared]
    output.table(["", one.scenario, other.scenario], rows)
    output.title(f"partitions: {len(answer.moved):,} with another owner at last")
    print_members(output, answer.members, (), limit, counts=(one.scenario, other.scenario))


# Print what each member of a group gains and loses, as a table.


def print_members(
    output: Output,
    members: Sequence[MemberMove],
    joined: Iterable[str],
    limit: int = LIMIT,
    *,
    counts: tuple[str, str] = ("had", "has"),
) -> None:
    """Print one line per member that gains or loses anything, joins or leaves; count the unchanged ones."""
    new = set(joined)
    changed = [each for each in members if each.added or each.revoked or not each.stays or each.member_id in new]
    names = output.names(each.member_id for each in changed)

    def cells(each: MemberMove) -> dict[Column, object]:
        return {
            Column("member", 0, 16): names[each.member_id],
            Column("change"): "new" if each.member_id in new else None if each.stays else "gone",
            Column(counts[0]): len(each.held),
            Column(counts[1], place=1): len(each.assigned),
            Column("gains", 0, 16): spans(each.added) if each.added else None,
            Column("loses", 0, 16): spans(each.revoked) if each.revoked else None,
            Column("client", 2, 12): each.client_id,
            Column("instance", 1, 12): each.group_instance_id,
        }

    output.rows(map(cells, changed[:limit]))
    output.left_off(len(changed) - limit)
    same = len(members) - len(changed)
    if same:
        output.line("1 member keeps what it has" if same == 1 else f"{same:,} members keep what they have")
