"""The calls that members made, from what the offsets log recorded of a classic group: the timelines of KIP-429 again.

The log has each member's claim and assignment, generation by generation; the consumer of `core.protocol.consumer`, fed
with them, makes the calls. It cannot show how a member ended, nor what was done in a generation that is not recorded:
such calls carry a `Certainty` that says so.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from groupledger.core.custom.custom_group import Protocol, TopicPartition
from groupledger.core.history.fold_rows import Assignment, GroupSnapshotRow, Kind, MemberSnapshotRow, partitions_in
from groupledger.core.history.head import CommittedOffset
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.consumer import NOTHING, Call, Callback, PartitionSet, call
from groupledger.core.rebalance.step import Form

REMEMBERING = frozenset({"sticky"})
"""Assignors whose members state what they remember; it was revoked before they joined."""


CLASSIC, CONSUMER = "classic", "consumer"
CONSUMERS = (None, "", "consumer")
"""Protocol types of groups of consumers; a group is born without one, and has none while it is empty."""


class Certainty(enum.StrEnum):
    """How sure a call is."""

    RECORDED = "recorded"  # it follows from the record
    AFTER_GAP = "after-gap"  # generations are missing before it: others may have come between
    REVOKED_OR_LOST = "revoked-or-lost"  # given up before joining; a member that fell out under its old id calls lost
    UNKNOWN_END = "unknown-end"  # the member is gone: revoked if it closed, lost if it fell out, nothing if it crashed


class RecordedCall(NamedTuple):
    """One call: of which member at which snapshot, and its place among all calls of that snapshot."""

    snapshot_id: str
    cluster_id: str
    group_id: str
    generation: int | None
    at_ms: int
    order: int
    member_id: str
    client_id: str | None
    call: Call
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of one snapshot: what it had when that came, and what it claims."""

    row: MemberSnapshotRow
    held: PartitionSet
    claimed: PartitionSet


_MemberCall = tuple[_Member, Call, Certainty]


def recorded_calls(groups: Iterable[GroupSnapshotRow], members: Iterable[MemberSnapshotRow]) -> Iterator[RecordedCall]:
    """Yield the calls of one group's snapshots, both in order of offset; none for KIP-848 and Connect groups.

    A classic member keeps through an online conversion what it has: nobody calls it for that.
    """
    rows = {snapshot_id: list(some) for snapshot_id, some in groupby(members, key=lambda row: row.snapshot_id)}
    before: GroupSnapshotRow | None = None
    had: dict[str, _Member] = {}
    for snapshot in groups:
        if snapshot.group_type == CONSUMER or (snapshot.group_type == CLASSIC and snapshot.snapshot_kind == Kind.FOLD):
            had = _taken_over(rows.get(snapshot.snapshot_id, ()))
            before = snapshot
            continue
        if snapshot.group_type != CLASSIC or snapshot.protocol_type not in CONSUMERS:
            before, had = None, {}
            continue
        if before is not None and before.incarnation != snapshot.incarnation:
            before, had = None, {}
        held = {name: each.held for name, each in had.items()}
        has = {
            row.member_id: _Member(row, held.get(row.member_id, NOTHING), assigned_partitions(row.claimed))
            for row in rows.get(snapshot.snapshot_id, ())
        }
        found = list(_calls(snapshot, before, had, has))
        where = snapshot.snapshot_id, snapshot.cluster_id, snapshot.group_id, snapshot.generation, snapshot.observed_at
        for order, (member, made, certainty) in enumerate(found):
            yield RecordedCall(*where, order, member.row.member_id, member.row.client_id, made, certainty)
        given = {
            who.row.member_id: made.partitions for who, made, _ in found if made.callback is Callback.ON_ASSIGNMENT
        }
        before = snapshot
        had = {name: replace(each, held=frozenset(given.get(name, each.held))) for name, each in has.items()}


def _taken_over(rows: Iterable[MemberSnapshotRow]) -> dict[str, _Member]:
    """Return the classic members in, or from, a KIP-848 group, with what is recorded as their own."""
    found = {}
    for row in rows:
        if row.subscription_version is not None:
            recorded = assigned_partitions((*(row.recorded or ()), *(row.pending_revocation or ())))
            found[row.member_id] = _Member(row, recorded, assigned_partitions(row.claimed))
    return found


def assigned_partitions(assignment: Assignment | None) -> PartitionSet:
    """Return the partitions of an assignment; of a topic without a name by its id."""
    return frozenset(partitions_in(assignment))


def _calls(
    snapshot: GroupSnapshotRow, before: GroupSnapshotRow | None, had: Mapping[str, _Member], has: Mapping[str, _Member]
) -> Iterator[_MemberCall]:
    """Yield the calls of one snapshot: of those who are gone, then before JoinGroup, of the leader, after SyncGroup."""
    for gone in (member for name, member in sorted(had.items()) if name not in has and member.held):
        yield gone, call(Callback.REVOKED, gone.held), Certainty.UNKNOWN_END
    rewrite = before is not None and bool(had) and before.generation == snapshot.generation
    taking_part = [member for name, member in has.items() if not rewrite or name not in had]
    last, now = None if before is None else before.generation, snapshot.generation
    sure = Certainty.AFTER_GAP if last is not None and now is not None and now - last > 1 else Certainty.RECORDED
    joining = [(member, *_join(member, snapshot)) for member in taking_part]
    for member, _, calls in joining:
        for made in calls:
            gave_all = made.callback is Callback.REVOKED and not member.claimed and sure is Certainty.RECORDED
            yield member, made, Certainty.REVOKED_OR_LOST if gave_all else sure
    if not rewrite and snapshot.leader is not None and snapshot.leader in has:
        owned = frozenset(each for _, state, _ in joining for each in state.owned)
        asked = call(Callback.ASSIGN, owned)
        yield has[snapshot.leader], asked._replace(topics=snapshot.subscribed_topics or ()), sure
    for member, state, _ in joining:
        for made in c.receive_assignment(state, assigned_partitions(member.row.recorded)).calls:
            yield member, made, sure


def _join(member: _Member, snapshot: GroupSnapshotRow) -> tuple[c.Consumer, tuple[Call, ...]]:
    """Return the member while it waits for SyncGroup, and its calls before JoinGroup.

    Its claims show its protocol, not the assignor's name: who claims something kept it, who had something and claims
    nothing gave it up. Who had nothing makes the same calls either way.
    """
    topics = member.row.topics if member.row.topics is not None else snapshot.shared_topics or ()
    keeps = bool(member.claimed) and snapshot.assignor not in REMEMBERING
    given_up = member.held - member.claimed if keeps else NOTHING
    early = (call(Callback.REVOKED, given_up),) if given_up else ()
    protocol = Protocol.COOPERATIVE if keeps else Protocol.EAGER
    owned = member.claimed if keeps else member.held
    joining = c.join(c.Consumer(protocol, topics, {}, form=Form.AS_KAFKA, owned=owned))
    return joining.consumer, (*early, *joining.calls)


# Who had each partition of a recorded group, one member after another, and whose its committed offsets are.
#
# All records of a group are in one partition of `__consumer_offsets`: their positions order commits and hand-overs, and
# no clock is asked. An eager member of a classic group gives up all that it has at each rebalance, whatever it gets
# back.

SHARE = "share"
GIVEN_UP = frozenset({Callback.REVOKED, Callback.LOST})


class RecordedTenure(NamedTuple):
    """A member had a partition from the snapshot `taken` to `given_up`; None: it has it still.

    `gone`: `given_up` is the first snapshot without the member, which may have given it up, or died.
    """

    partition: TopicPartition
    member_id: str
    taken: GroupSnapshotRow
    given_up: GroupSnapshotRow | None = None
    gone: bool = False


class TenureCommits(NamedTuple):
    """The commits of a partition from when a member took it until the next one did.

    `before` was in force when it was taken; None: none is known. `own` are of the member that had it. `outside` came
    while the group had no members, when anybody may set its offsets.
    """

    tenure: RecordedTenure
    before: CommittedOffset | None
    own: tuple[CommittedOffset, ...]
    outside: tuple[CommittedOffset, ...]

    @property
    def in_force(self) -> CommittedOffset | None:
        """What is committed when the next one takes the partition."""
        return next((each[-1] for each in (self.outside, self.own) if each), self.before)


def tenures(
    groups: Sequence[GroupSnapshotRow], members: Iterable[MemberSnapshotRow], topics: Mapping[str, str] | None = None
) -> dict[TopicPartition, list[RecordedTenure]]:
    """Who had each partition, in the order in which they took it. `topics`: names of ids that the rows do not name.

    Of share groups nothing: their members have no partition to themselves, and commit nothing. What the end of a read
    cut is left out.
    """
    members = list(members)
    of_snapshot = attrgetter("snapshot_id")
    calls = {key: list(some) for key, some in groupby(recorded_calls(groups, members), of_snapshot)}
    rows = {key: list(some) for key, some in groupby(members, of_snapshot)}
    known = _Tenures(topics or {})
    for snapshot in groups:
        if snapshot.complete and snapshot.group_type != SHARE:
            present = rows.get(snapshot.snapshot_id, [])
            if snapshot.group_type == CLASSIC and snapshot.snapshot_kind != Kind.FOLD:
                known.called(snapshot, calls.get(snapshot.snapshot_id, ()), {row.member_id for row in present})
            else:
                known.held(snapshot, {row.member_id: assigned_partitions(row.recorded) for row in present})
    return {partition: known.of[partition] for partition in sorted(known.of)}


def with_commits(
    some: Sequence[RecordedTenure], commits: Sequence[CommittedOffset], without_members: Sequence[int]
) -> list[TenureCommits]:
    """Deal the commits of one partition out to those that had it.

    All in order: tenures as they were taken, commits by position, positions of snapshots that have no members.
    """
    places = [each.log_offset for each in commits]
    found = []
    for number, tenure in enumerate(some):
        begin = bisect_right(places, tenure.taken.offset)
        after = some[number + 1].taken.offset if number + 1 < len(some) else None
        end = len(places) if after is None else bisect_right(places, after)
        emptied = _emptied(tenure, after, without_members)
        cut = end if emptied is None else min(max(bisect_right(places, emptied), begin), end)
        before = commits[begin - 1] if begin else None
        found.append(TenureCommits(tenure, before, tuple(commits[begin:cut]), tuple(commits[cut:end])))
    return found


def _emptied(tenure: RecordedTenure, after: int | None, without_members: Sequence[int]) -> int | None:
    """Where the group was first without members after the partition was given up, and before it was taken again."""
    if tenure.given_up is None:
        return None
    at = bisect_left(without_members, tenure.given_up.offset)
    place = without_members[at] if at < len(without_members) else None
    return None if place is None or (after is not None and place >= after) else place


@dataclass(slots=True)
class _Tenures:
    """Those of a group so far. `lasting`: the place in `of` of those that last."""

    topics: Mapping[str, str]
    of: dict[TopicPartition, list[RecordedTenure]] = field(default_factory=dict)
    lasting: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)

    def called(self, snapshot: GroupSnapshotRow, calls: Iterable[RecordedCall], present: set[str]) -> None:
        """Members of a classic group were called so, and these are in it now."""
        for made in calls:
            partitions = self._named(made.call.partitions)
            if made.call.callback in GIVEN_UP:
                self._give_up(snapshot, made.member_id, partitions, gone=made.certainty is Certainty.UNKNOWN_END)
            elif made.call.callback is Callback.ASSIGNED:
                self._take(snapshot, made.member_id, partitions)
        for member_id, partition in sorted(self.lasting):
            if member_id not in present:
                self._give_up(snapshot, member_id, [partition], gone=True)

    def held(self, snapshot: GroupSnapshotRow, held: Mapping[str, PartitionSet]) -> None:
        """Members hold these, and nobody holds anything else."""
        now = {member_id: self._named(sorted(partitions)) for member_id, partitions in held.items()}
        for member_id, partition in sorted(self.lasting):
            if partition not in now.get(member_id, ()):
                self._give_up(snapshot, member_id, [partition], gone=member_id not in now)
        for member_id, partitions in now.items():
            self._take(snapshot, member_id, partitions)

    def _named(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(self.topics.get(topic, topic), number) for topic, number in partitions]

    def _take(self, snapshot: GroupSnapshotRow, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if (member_id, partition) not in self.lasting:
                known = self.of.setdefault(partition, [])
                self.lasting[member_id, partition] = len(known)
                known.append(RecordedTenure(partition, member_id, snapshot))

    def _give_up(
        self, snapshot: GroupSnapshotRow, member_id: str, partitions: Iterable[TopicPartition], *, gone: bool
    ) -> None:
        for partition in partitions:
            place = self.lasting.pop((member_id, partition), None)
            if place is not None:
                tenure = self.of[partition][place]
                self.of[partition][place] = tenure._replace(given_up=snapshot, gone=gone)


# What became of the offsets of a partition when a recorded group handed it over: judged by the commits of its log.
#
# The log has no records of topics: where a member stopped reading is not known, only what it committed. So a member
# that committed nothing is reported, and how much was read again is reported only if offsets show it.
#
# Worked example: a commits 100, later 250, and is revoked; the offset is set back to 0; b takes the partition and
# begins at 0: 250 records are read twice.


class OffsetVerdict(StrEnum):
    """What became of a partition's committed offset at a hand-over, the worst first."""

    SET_WHILE_EMPTY = "set-while-empty"  # it was changed while the group had no members: others read again, or skip
    WENT_BACK = "went-back"  # the last commit was less than an earlier one: what lies between is read twice
    SOUGHT_BACK = "sought-back"  # the next one committed less than where it began: it sought back
    DELETED = "deleted"  # no offset is committed any more: the next one begins where auto.offset.reset says
    NOT_COMMITTED = "not-committed"  # who had it committed nothing: whatever it read is read again
    UNKNOWN = "unknown"  # records are missing, or commits were not kept
    IDLE = "idle"  # nobody ever committed an offset of it: nothing shows that it was read
    COMMITTED = "committed"


class OffsetJudgement(NamedTuple):
    """`read_twice` and `never_read`: records, as far as offsets show; None: they do not."""

    verdict: OffsetVerdict
    read_twice: int | None = None
    never_read: int | None = None


def judge(one: TenureCommits, following: TenureCommits | None, *, ever: bool, known: bool) -> OffsetJudgement:
    """Judge how a member left a partition behind, and where the next one began; None: nobody has taken it yet.

    `ever`: whether any commit of the partition is recorded. `known`: whether all of the time in between is.
    """
    if not ever:
        return OffsetJudgement(OffsetVerdict.IDLE if known else OffsetVerdict.UNKNOWN)
    if not known:
        return OffsetJudgement(OffsetVerdict.UNKNOWN)
    start = None if one.in_force is None else one.in_force.offset
    if start is None and (one.own or one.outside):
        return OffsetJudgement(OffsetVerdict.DELETED)
    reached = _highest(one.own, one.before)
    if one.outside and start is not None and reached not in (None, start):
        return OffsetJudgement(OffsetVerdict.SET_WHILE_EMPTY, max(reached - start, 0), max(start - reached, 0))
    if start is not None and reached is not None and start < reached:
        return OffsetJudgement(OffsetVerdict.WENT_BACK, reached - start)
    first = next((each.offset for each in following.own), None) if following is not None else None
    if start is not None and first is not None and first < start:
        return OffsetJudgement(OffsetVerdict.SOUGHT_BACK, start - first)
    if not any(each.offset is not None for each in one.own):
        return OffsetJudgement(OffsetVerdict.NOT_COMMITTED)
    return OffsetJudgement(OffsetVerdict.COMMITTED, 0)


def _highest(own: Iterable[CommittedOffset], before: CommittedOffset | None) -> int | None:
    """Return the highest offset committed since a tombstone, by its owner or before that."""
    reached = None if before is None else before.offset
    for each in own:
        reached = each.offset if reached is None or each.offset is None else max(reached, each.offset)
    return reached
