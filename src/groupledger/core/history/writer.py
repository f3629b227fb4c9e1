"""The state of one group's fold, and the rows written on the way.

An incarnation of a group ends with a tombstone, with a change of type that is no conversion, and where its generation
falls; `previous` and holdings never cross it. What the log does not hold is stated as coverage; whether it was lost
is not known from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from groupledger.core.history.fold_rows import (
    CoverageRow,
    FindingRow,
    GroupSnapshotRow,
    GroupType,
    LogRow,
    MemberSnapshotRow,
    OwnershipChangeRow,
    QuarantineRow,
)
from groupledger.core.history.member_payloads import PayloadDecoder
from groupledger.core.history.members import Kip848Group
from groupledger.core.history.ownership import Ownership, OwnershipChange
from groupledger.core.history.topics import TopicHistory
from groupledger.core.rebalance.findings import Invariant, Severity

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
