"""All that a ledger has of one group: its snapshots and members as the fold wrote them, its records as they came."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from groupledger.answers.answer_columns import listed
from groupledger.answers.queries import Reader, matching, one_of, records
from groupledger.answers.scope import RequestedScope, commits_left_out, scope
from groupledger.answers.states import BEGINS_LATE, cluster_of
from groupledger.core.faults import Fault
from groupledger.core.history.fold_rows import GroupSnapshotRow, LogRow, MemberSnapshotRow, as_tuples
from groupledger.core.history.head import RecordedLog, read_group_log
from groupledger.core.moments import from_millis, millis
from groupledger.core.protocol.recorded import OffsetVerdict, TenureCommits, judge, tenures, with_commits
from groupledger.core.protocol.recorded_clients import GroupStart, RecordedGroup, recorded_group, recorded_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime


R = TypeVar("R", GroupSnapshotRow, MemberSnapshotRow)


RecordedHistory = tuple[list[GroupSnapshotRow], list[MemberSnapshotRow]]
"""A group of one cluster: its snapshots, of which there is one at least, and their members, in order of position."""


def recorded_history(reader: Reader, group_id: str, cluster: str | None = None) -> RecordedHistory:
    """Return all snapshots of the group and members. Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, AMBIGUOUS_GROUP."""
    condition = matching("t.", cluster_id=cluster_of(reader, group_id, cluster), group_id=group_id)
    groups = _rows(reader, GroupSnapshotRow, f"current_group_snapshots t WHERE {condition}", "log_partition")
    return groups, _rows(reader, MemberSnapshotRow, f"current_member_snapshots t WHERE {condition}", "member_order")


def group_log(reader: Reader, of: GroupSnapshotRow) -> RecordedLog:
    """Return the records of a snapshot's group, decoded: those in its partition of `__consumer_offsets`."""
    condition = matching("t.", cluster_id=of.cluster_id, group_id=of.group_id, log_partition=of.log_partition)
    found = records(
        reader,
        f"SELECT t.offset, t.timestamp, t.key, t.value FROM current_log_records t WHERE {condition} ORDER BY t.offset",
    )
    return read_group_log(
        LogRow(of.log_partition, row["offset"], millis(row["timestamp"]), row["key"], row["value"]) for row in found
    )


def _rows(reader: Reader, kind: type[R], rows: str, order: str) -> list[R]:
    """Return rows as the fold has them: moments in milliseconds, lists and structs as tuples."""
    columns = ", ".join(f"t.{name}" for name in kind._fields)
    found = records(reader, f"SELECT {columns} FROM {rows} ORDER BY t.offset, t.{order}")
    read: dict[str, Any] = {name: millis if name == "observed_at" else as_tuples for name in kind._fields}
    return [kind(*(of(row[name]) for name, of in read.items())) for row in found]


# Members of a recorded group as `plan-migration` rehearses them, and as `simulate --from-ledger` continues with them.


def recorded_members(
    reader: Reader, group_id: str, cluster: str | None = None, library: str | None = None
) -> tuple[RecordedGroup, dict[str, int]]:
    """Return the group as it last had members, and the partitions of those of its topics that a listing names.

    `library`: that of all members for which the log does not show it. Raises Fault: UNKNOWN_GROUP, AMBIGUOUS_GROUP, and
    as `recorded_group`.
    """
    recorded = recorded_group(*recorded_history(reader, group_id, cluster), library)
    topics = sorted({topic for client in recorded.clients for topic in client.topics})
    counts = _partitions(reader, recorded.snapshot.cluster_id, topics)
    return recorded, {topic: count for topic, count in counts.items() if count is not None}


def members_now(
    reader: Reader, group_id: str, cluster: str | None = None, more: Iterable[str] | None = ()
) -> tuple[GroupStart, dict[str, int | None]]:
    """Return the last recorded state of the group, and the partitions of its topics; None: the topic was deleted.

    `more`: other topics; None: all of the cluster. A topic that no listing names is missing. Raises Fault:
    UNKNOWN_GROUP, AMBIGUOUS_GROUP, and as `recorded_start`.
    """
    groups, members = recorded_history(reader, group_id, cluster)
    found = recorded_start(groups, members)
    topics = {topic for join in found.joins for topic in join.topics}
    topics |= {topic for join in found.joins if join.seat is not None for topic, _ in join.seat.assigned}
    return found, _partitions(reader, groups[-1].cluster_id, None if more is None else sorted({*topics, *more}))


def _partitions(reader: Reader, cluster: str, topics: list[str] | None) -> dict[str, int | None]:
    """Return the counts of the last listing; of all topics where None are named."""
    if topics == []:
        return {}
    which = "true" if topics is None else one_of("t.topic", topics)
    rows = records(
        reader,
        "SELECT t.topic, t.partition_count FROM current_topic_snapshots t "
        f"WHERE {matching('t.', cluster_id=cluster)} AND {which} "
        "ORDER BY t.valid_from, CASE WHEN t.partition_count IS NULL THEN 0 ELSE 1 END, t.partition_count",
    )
    return {row["topic"]: row["partition_count"] for row in rows}


# What became of a group's committed offsets at each hand-over: who left what uncommitted, and where the next began.

NO_COMMITS = "NO_COMMITS"
MISSING = (BEGINS_LATE, "generations-skipped", "epochs-skipped", "record-unreadable", "tombstone-missing")
"""Coverage of records that are not there: commits may be missing with them."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """A partition that one member had, and another took.

    `snapshot_id` and `generation` (or group epoch) are of the state in which it was given up. `to_member_id`: None
    where nobody has taken it yet. `commits`: how many the owner made; `started_at` and `next_at`: offsets committed
    when it took the partition, and when the next one did, None where none was known. `gone`: its member was gone then.
    """

    topic: str
    partition: int
    from_member_id: str
    to_member_id: str | None
    generation: int | None
    snapshot_id: str
    since: datetime
    given_up_at: datetime
    taken_at: datetime | None
    gone: bool
    commits: int
    started_at: int | None
    next_at: int | None
    last_commit_at: datetime | None
    verdict: OffsetVerdict
    read_twice: int | None
    never_read: int | None


@dataclass(frozen=True, slots=True)
class GroupHandOvers:
    """The partitions that members of a group gave up in a period, in order of time; how many have each verdict."""

    cluster_id: str
    group_id: str
    since: datetime | None
    until: datetime | None
    hand_overs: tuple[HandOver, ...] = field(metadata=listed(HandOver))
    counts: dict[str, int]
    notes: tuple[str, ...]


def group_hand_overs(reader: Reader, group_id: str, asked: RequestedScope) -> GroupHandOvers:
    """Judge the group's recorded hand-overs by its offset commits, where the ledger has them.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, AMBIGUOUS_GROUP, BAD_PERIOD; NO_COMMITS where it has none.
    """
    groups, members = recorded_history(reader, group_id, asked.cluster)
    last = groups[-1]
    within = scope(reader, RequestedScope(last.cluster_id, None, asked.since, asked.until))
    log, left_out = group_log(reader, last), commits_left_out(reader, last.cluster_id)
    if not log.commits:
        why = "it commits nothing to Kafka, or its commits were left out of what was read"
        if left_out:
            kept = "set sources[].offset_commits to keep them"
            why = f"{left_out:,} commits of its cluster were read and left out: {kept}"
        raise Fault(NO_COMMITS, f"the ledger has no offset commit of group {group_id!r}: {why}")
    kept_from = log.commits[0].log_offset if left_out else None
    order = attrgetter("given_up_at", "topic", "partition", "from_member_id")
    found = sorted(_judged((groups, members), log, _missing(reader, last), kept_from), key=order)
    chosen = tuple(
        each
        for each in found
        if (within.since is None or each.given_up_at >= within.since)
        and (within.until is None or each.given_up_at < within.until)
    )
    counted = Counter(each.verdict for each in chosen)
    counts = {each.value: counted[each] for each in OffsetVerdict if counted[each]}
    return GroupHandOvers(
        last.cluster_id, group_id, within.since, within.until, chosen, counts, tuple(_notes(chosen, left_out))
    )


def _judged(history: RecordedHistory, log: RecordedLog, missing: Gaps, kept_from: int | None) -> Iterator[HandOver]:
    """Judge each hand-over; `kept_from`: the first position from which commits were kept; None: from the beginning."""
    commits = log.by_partition()
    without_members = [each.offset for each in history[0] if each.members == 0]
    for partition, some in tenures(*history, log.topics).items():
        dealt = with_commits(some, commits.get(partition, ()), without_members)
        for one, following in zip(dealt, [*dealt[1:], None], strict=True):
            if one.tenure.given_up is not None:
                kept = kept_from is None or one.tenure.taken.offset >= kept_from
                known = kept and missing.hold_all(one, following)
                yield _hand_over(one, one.tenure.given_up, following, ever=partition in commits, known=known)


def _hand_over(
    one: TenureCommits, given_up: GroupSnapshotRow, following: TenureCommits | None, *, ever: bool, known: bool
) -> HandOver:
    tenure, judged = one.tenure, judge(one, following, ever=ever, known=known)
    commits = [each for each in one.own if each.offset is not None]
    return HandOver(
        topic=tenure.partition.topic,
        partition=tenure.partition.partition,
        from_member_id=tenure.member_id,
        to_member_id=None if following is None else following.tenure.member_id,
        generation=given_up.generation if given_up.group_epoch is None else given_up.group_epoch,
        snapshot_id=given_up.snapshot_id,
        since=from_millis(tenure.taken.observed_at),
        given_up_at=from_millis(given_up.observed_at),
        taken_at=None if following is None else from_millis(following.tenure.taken.observed_at),
        gone=tenure.gone,
        commits=len(commits),
        started_at=None if one.before is None else one.before.offset,
        next_at=None if one.in_force is None else one.in_force.offset,
        last_commit_at=from_millis(commits[-1].at_ms) if commits else None,
        verdict=judged.verdict,
        read_twice=judged.read_twice,
        never_read=judged.never_read,
    )


@dataclass(frozen=True, slots=True)
class Gaps:
    """Positions of the group's records behind which others are missing; `begins_late`: of those before all."""

    places: tuple[int, ...]
    begins_late: tuple[int, ...]

    def hold_all(self, one: TenureCommits, following: TenureCommits | None) -> bool:
        """Return whether no record is missing from when a member took a partition to when the next one did.

        A member of the first snapshot may have had it before: it is known to have committed nothing only if it was
        there from the beginning.
        """
        begin, end = one.tenure.taken.offset, None if following is None else following.tenure.taken.offset
        if any(begin < each and (end is None or each <= end) for each in (*self.places, *self.begins_late)):
            return False
        return bool(one.own) or begin not in self.begins_late


def _missing(reader: Reader, last: GroupSnapshotRow) -> Gaps:
    which = one_of("t.kind", MISSING)
    condition = matching("t.", cluster_id=last.cluster_id, group_id=last.group_id)
    query = f"SELECT t.kind, t.offset FROM current_coverage t WHERE {condition} AND {which} ORDER BY t.offset"
    found = records(reader, query)
    late, others = ([row["offset"] for row in found if (row["kind"] == BEGINS_LATE) is of] for of in (True, False))
    return Gaps(tuple(others), tuple(late))


def _notes(chosen: tuple[HandOver, ...], left_out: int) -> Iterator[str]:
    if not chosen:
        yield "no partition was given up in this period"
    if left_out:
        yield (
            f"{left_out:,} offset commits of the cluster were left out of the ledger: what was given up before the "
            "first one that was kept is unknown"
        )
