"""Who holds which partition, and since when: the state behind `ownership_changes`.

A holding is a pair of member and partition, so that a partition recorded for two members at once is two holdings, and
each ends by itself. A topic is its id; where a source gives none, its name: an id that was not known before joins the
name's holdings, another id ends them, since a name used again is another topic.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.history.fold_rows import (
    Assignment,
    CoverageRow,
    FindingRow,
    GroupSnapshotRow,
    GroupType,
    LogRow,
    MemberSnapshotRow,
    OwnershipChangeRow,
    QuarantineRow,
)
from groupledger.core.history.members import Kip848Group, PayloadDecoder
from groupledger.core.log.listings import TopicHistory
from groupledger.core.rebalance.findings import Invariant, Severity


class HeldTopic:
    """A topic that somebody holds partitions of: `holder` of each, and the `others` of one that several hold."""

    __slots__ = ("holder", "name", "others", "topic_id")

    def __init__(self, topic_id: str | None, name: str | None) -> None:
        self.topic_id = topic_id
        self.name = name
        self.holder: dict[int, Tenure] = {}
        self.others: dict[int, dict[str, Tenure]] = {}

    def tenures(self) -> Iterator[tuple[int, Tenure]]:
        """Every holding: partition and tenure."""
        yield from self.holder.items()
        for partition, others in self.others.items():
            for tenure in others.values():
                yield partition, tenure


class Tenure(NamedTuple):
    """That a member holds a partition, since `since` ms; None: history does not reach back to it."""

    member_id: str
    since: int | None


class OwnershipChange(NamedTuple):
    """A partition that `from_member_id` lost and `to_member_id` got; None is nobody."""

    topic_id: str | None
    topic: str | None
    partition: int
    from_member_id: str | None
    to_member_id: str | None
    held_since: int | None

    def row(
        self, cluster_id: str, group_id: str, incarnation: int, place: tuple[int, int | None, int, str]
    ) -> OwnershipChangeRow:
        """Return the row of a change at a place: time, log partition, offset and snapshot."""
        what, who = (self.topic_id, self.topic, self.partition), (self.from_member_id, self.to_member_id)
        return OwnershipChangeRow._make((cluster_id, *what, group_id, incarnation, *who, *place, self.held_since))


HeldNumbers = dict[HeldTopic, tuple[int, ...]]


class Ownership:
    """The holdings of one incarnation of a group."""

    __slots__ = ("_by_id", "_by_name", "_held", "_recorded", "doubles")

    def __init__(self) -> None:
        self._by_id: dict[str, HeldTopic] = {}
        self._by_name: dict[str, HeldTopic] = {}
        self._held: dict[str, HeldNumbers] = {}
        self._recorded: dict[str, Assignment] = {}
        self.doubles: set[tuple[HeldTopic, int]] = set()

    def settle(self, recorded: dict[str, Assignment], since: int | None) -> list[OwnershipChange]:
        """Set the group to exactly `recorded`: members that are not in it hold nothing."""
        gone = sorted(self._held.keys() - recorded.keys())
        return self.record([*((member, ()) for member in gone), *recorded.items()], since)

    def record(self, assignments: Iterable[tuple[str, Assignment]], since: int | None) -> list[OwnershipChange]:
        """Set what these members hold, from `since` on; return the changes by topic, partition and member."""
        news = [new for new in assignments if self._recorded.get(new[0]) != new[1]]
        if not news:
            return []
        moves = [(member, self._held.get(member, {}), self._holding(recorded)) for member, recorded in news]
        lost = self._release(moves)
        changes = self._take(moves, lost, since)
        changes += [
            OwnershipChange(topic.topic_id, topic.name, partition, tenure.member_id, None, tenure.since)
            for (topic, partition), tenures in lost.items()
            for tenure in tenures
        ]
        for (member, recorded), (_, _, holding) in zip(news, moves, strict=True):
            if recorded:
                self._held[member], self._recorded[member] = holding, recorded
            else:
                self._held.pop(member, None)
                self._recorded.pop(member, None)
        self._forget_unheld({topic for _, held, _ in moves for topic in held})
        return sorted(changes, key=_change_order)

    def release_others(self, members: Container[str]) -> list[OwnershipChange]:
        """Release what all but these members hold."""
        return self.record([(member, ()) for member in sorted(self._held) if member not in members], None)

    def assignment_of(self, member_id: str) -> Assignment | None:
        """All that the member holds; None: nothing."""
        held = self._held.get(member_id)
        return None if held is None else _assignment({topic: list(numbers) for topic, numbers in held.items()})

    def restore(self, member_id: str, since: int | None, recorded: Assignment) -> None:
        """Take back what `tenures` gave for a member."""
        holding = self._held.setdefault(member_id, {})
        for topic, partitions in self._holding(recorded).items():
            holding[topic] = (*holding.get(topic, ()), *partitions)
            for partition in partitions:
                self._hold(topic, partition, Tenure(member_id, since))

    def tenures(self) -> list[tuple[str, int | None, Assignment]]:
        """All holdings, grouped by member and since, in one order whatever the way there."""
        spans: dict[tuple[str, int | None], dict[HeldTopic, list[int]]] = {}
        for topic in {topic for held in self._held.values() for topic in held}:
            for partition, tenure in topic.tenures():
                spans.setdefault(tenure, {}).setdefault(topic, []).append(partition)
        ordered = sorted(spans.items(), key=lambda span: (span[0][0], span[0][1] is not None, span[0][1] or 0))
        return [(member, since, _assignment(topics)) for (member, since), topics in ordered]

    def held_by(self, member_id: str) -> dict[str, set[int]]:
        """Topic (its id where the name is not known) -> partitions that the member holds."""
        held = self._held.get(member_id, {})
        return {topic.name or topic.topic_id or "": set(partitions) for topic, partitions in held.items()}

    def holders(self, topic: HeldTopic, partition: int) -> list[str]:
        """Members that hold the partition, sorted."""
        holder = topic.holder.get(partition)
        return sorted([*topic.others.get(partition, ()), *([] if holder is None else [holder.member_id])])

    def _holding(self, recorded: Assignment) -> HeldNumbers:
        holding: HeldNumbers = {}
        for topic_id, name, partitions in recorded:
            if partitions:
                topic = self._topic(topic_id, name)
                known = holding.get(topic)
                holding[topic] = partitions if known is None else (*known, *partitions)
        return holding

    def _topic(self, topic_id: str | None, name: str | None) -> HeldTopic:
        known = None if topic_id is None else self._by_id.get(topic_id)
        if known is not None and known.name == name:
            return known
        if known is None and name is not None:
            namesake = self._by_name.get(name)
            if namesake is not None and (topic_id is None or namesake.topic_id is None):
                known = namesake
        return self._know(known or HeldTopic(topic_id, name), topic_id, name)

    def _know(self, topic: HeldTopic, topic_id: str | None, name: str | None) -> HeldTopic:
        if topic_id is not None:
            topic.topic_id = topic_id
            self._by_id[topic_id] = topic
        if name is not None:
            topic.name = name
            self._by_name[name] = topic
        return topic

    def _release(self, moves: list[tuple[str, HeldNumbers, HeldNumbers]]) -> dict[tuple[HeldTopic, int], list[Tenure]]:
        lost: dict[tuple[HeldTopic, int], list[Tenure]] = {}
        for member, held, holding in moves:
            for topic, partitions in held.items():
                now = holding.get(topic, ())
                if now == partitions:
                    continue
                for partition in set(partitions).difference(now):
                    lost.setdefault((topic, partition), []).append(self._let_go(topic, partition, member))
        for tenures in lost.values():
            tenures.sort(key=lambda tenure: tenure.member_id, reverse=True)
        return lost

    def _take(
        self,
        moves: list[tuple[str, HeldNumbers, HeldNumbers]],
        lost: dict[tuple[HeldTopic, int], list[Tenure]],
        since: int | None,
    ) -> list[OwnershipChange]:
        changes = []
        for member, held, holding in moves:
            tenure = Tenure(member, since)
            for topic, partitions in holding.items():
                before = held.get(topic, ())
                if before == partitions:
                    continue
                for partition in set(partitions).difference(before):
                    tenures = lost.get((topic, partition))
                    source, held_since = tenures.pop() if tenures else (None, None)
                    self._hold(topic, partition, tenure)
                    changes.append(OwnershipChange(topic.topic_id, topic.name, partition, source, member, held_since))
        return changes

    def _hold(self, topic: HeldTopic, partition: int, tenure: Tenure) -> None:
        if partition not in topic.holder:
            topic.holder[partition] = tenure
        else:
            topic.others.setdefault(partition, {})[tenure.member_id] = tenure
            self.doubles.add((topic, partition))

    def _let_go(self, topic: HeldTopic, partition: int, member_id: str) -> Tenure:
        others = topic.others.get(partition)
        if others is None:
            return topic.holder.pop(partition)
        gone = topic.holder[partition]
        if gone.member_id == member_id:
            topic.holder[partition] = others.pop(next(iter(others)))
        else:
            gone = others.pop(member_id)
        if not others:
            del topic.others[partition]
            self.doubles.discard((topic, partition))
        return gone

    def _forget_unheld(self, topics: set[HeldTopic]) -> None:
        """Forget topics that nobody holds: after a head they would not be known either."""
        for topic in topics:
            if topic.holder:
                continue
            if topic.topic_id is not None:
                self._by_id.pop(topic.topic_id, None)
            if topic.name is not None and self._by_name.get(topic.name) is topic:
                del self._by_name[topic.name]


def _assignment(topics: dict[HeldTopic, list[int]]) -> Assignment:
    return tuple(
        sorted(
            ((topic.topic_id, topic.name, tuple(sorted(partitions))) for topic, partitions in topics.items()),
            key=lambda holding: (holding[1] or "", holding[0] or ""),
        )
    )


def _change_order(change: OwnershipChange) -> tuple[str, str, int, str, str]:
    topic = change.topic or "", change.topic_id or "", change.partition
    return *topic, change.from_member_id or "", change.to_member_id or ""


# The state of one group's fold, and the rows written on the way.
#
# An incarnation of a group ends with a tombstone, with a change of type that is no conversion, and where its generation
# falls; `previous` and holdings never cross it. What the log does not hold is stated as coverage; whether it was lost
# is not known from it.

SOURCE = "log"
TARGETS_SKIPPED = "target-epochs-skipped"
"""Coverage of group epochs that the coordinator wrote and gave no target."""
STEP_MEMBERS = 200
"""See `FoldSettings.step_members`."""


def snapshot_id(cluster_id: str, log_partition: int, offset: int) -> str:
    """Return a snapshot's id, which is its position: `log/eu-1/17/4711`."""
    return f"{SOURCE}/{cluster_id}/{log_partition}/{offset}"


@dataclass(slots=True)
class Generation:
    """What the next record of a classic group is measured by: the last one. `members`: member id -> instance id."""

    number: int
    first_offset: int
    timestamp_ms: int
    members: dict[str, str | None]


@dataclass(slots=True)
class GroupState:
    """What of a group's history the records to come depend on.

    `offset` is the last one folded in, -1 before the first. `incarnation` is 0 before the first one. `number` is the
    last generation or epoch seen, also of an incarnation that ended, since a group that changes its type counts on.
    `hole`: a record could not be read since the last snapshot. `undecided`: the last records that were read, folded as
    far as they go, but not into this state, since the next ones may show that they convert the group.
    """

    group_id: str
    log_partition: int
    offset: int = -1
    incarnation: int = 0
    group_type: str | None = None
    alive: bool = False
    number: int | None = None
    previous_offset: int | None = None
    hole: bool = False
    ownership: Ownership = field(default_factory=Ownership)
    generation: Generation | None = None
    kip848: Kip848Group | None = None
    undecided: tuple[LogRow, ...] = ()


class HistoryWriter:
    """Writes the rows of one group, with what every row of it has in common."""

    def __init__(
        self, cluster_id: str, state: GroupState, topics: TopicHistory, step_members: int = STEP_MEMBERS
    ) -> None:
        self.cluster_id = cluster_id
        self.step_members = step_members
        self.state = state
        self.topics = topics
        self.payloads = PayloadDecoder(topics)
        self.group_snapshots: list[GroupSnapshotRow] = []
        self.member_snapshots: list[MemberSnapshotRow] = []
        self.ownership_changes: list[OwnershipChangeRow] = []
        self.coverage: list[CoverageRow] = []
        self.quarantine: list[QuarantineRow] = []
        self.violations: list[FindingRow] = []

    def snapshot_id(self, offset: int) -> str:
        """Return the snapshot at that offset."""
        return snapshot_id(self.cluster_id, self.state.log_partition, offset)

    def previous_snapshot_id(self) -> str | None:
        """Return the snapshot before, of the same incarnation; None also after a record that could not be read."""
        offset = self.state.previous_offset
        return None if offset is None or self.state.hole else self.snapshot_id(offset)

    def group_row(self, row: LogRow, group_type: str, kind: str) -> GroupSnapshotRow:
        """Return the snapshot at this record of a group without members, as a deleted one is."""
        place = (self.snapshot_id(row.offset), self.cluster_id, SOURCE, row.log_partition, row.offset)
        who = (self.state.group_id, group_type, None, self.state.incarnation, kind)
        said = (None, None, None, None, None, "Dead", True, None, (), 0)
        return GroupSnapshotRow._make([*place, *who, *said, self.previous_snapshot_id(), None, row.timestamp_ms])

    def snapshot(self, group: GroupSnapshotRow, members: Iterable[MemberSnapshotRow]) -> None:
        """Write a snapshot; it is the previous one of the next."""
        self.group_snapshots.append(group)
        self.member_snapshots.extend(members)
        self.state.previous_offset = group.offset
        self.state.hole = False

    def begin(self, group_type: GroupType, row: LogRow) -> None:
        """Start an incarnation at this record; one that is still alive ends here."""
        if self.state.alive:
            self.end(row)
        self.state.incarnation += 1
        self.state.group_type = group_type.value
        self.state.alive = True

    def convert(self, group_type: GroupType, row: LogRow) -> None:
        """Go on as a group of another type: members hold what they held, and the snapshot before is still that."""
        self._give_up_targets(row, "the group became a classic one first")
        self.state.group_type = group_type.value
        self.state.generation = None
        self.state.kip848 = None

    def _give_up_targets(self, row: LogRow, why: str) -> None:
        """State that what waits for a target gets none."""
        group = self.state.kip848
        waiting = None if group is None else group.untargeted
        if group is not None and waiting is not None:
            reason = f"no target of the epochs from {waiting} to {group.group_epoch}: {why}"
            self.gap(TARGETS_SKIPPED, row, (waiting - 1, None), reason)

    def end(self, row: LogRow) -> None:
        """End the incarnation: nobody holds anything any more, and what waits for a target gets none."""
        state = self.state
        self._give_up_targets(row, "the group ended first")
        self.changed(state.ownership.settle({}, None), row)
        state.alive = False
        state.previous_offset = None
        state.hole = False
        state.generation = None
        state.kip848 = None

    def changed(self, changes: list[OwnershipChange], row: LogRow) -> None:
        """Write partitions that changed hands at this record."""
        group = self.cluster_id, self.state.group_id, self.state.incarnation
        place = row.timestamp_ms, row.log_partition, row.offset, self.snapshot_id(row.offset)
        self.ownership_changes += [change.row(*group, place) for change in changes]

    def gap(self, kind: str, row: LogRow, span: tuple[int | None, int | None], reason: str) -> None:
        """State what the log does not hold: `span` is the last value before the gap and the first after it."""
        group = (self.cluster_id, self.state.group_id, max(1, self.state.incarnation))
        self.coverage.append(CoverageRow(*group, kind, *span, reason, row.offset, self.snapshot_id(row.offset)))

    def found(
        self,
        broken: Invariant,
        row: LogRow,
        evidence: str,
        *,
        severity: Severity | None = None,
        member_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        """Write a finding about the snapshot at this record; its severity, unless one is given, is the invariant's."""
        about = (self.cluster_id, self.state.group_id, self.snapshot_id(row.offset), member_id, topic, partition)
        grave = (severity or broken.severity).value
        found = FindingRow(broken.recorded_as, grave, None, *about, evidence, row.log_partition, row.offset)
        self.violations.append(found)
