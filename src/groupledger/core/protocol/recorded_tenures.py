"""Who had each partition of a recorded group, one member after another, and whose its committed offsets are.

All records of a group are in one partition of `__consumer_offsets`: their positions order commits and hand-overs, and
no clock is asked. An eager member of a classic group gives up all that it has at each rebalance, whatever it gets back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.history.group_log import CommittedOffset
from groupledger.core.history.kinds import Kind
from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.protocol.callbacks import Callback, PartitionSet
from groupledger.core.protocol.recorded import (
    CLASSIC,
    Certainty,
    RecordedCall,
    assigned_partitions,
    recorded_calls,
)

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
