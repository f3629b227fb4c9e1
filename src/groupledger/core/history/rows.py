"""What a fold takes and gives, row by row. Each class has its table's columns, in order, but for the attempt.

Timestamps are milliseconds since 1970. Partitions of a topic stand as (topic id, topic name, partitions), as a table's
`array<struct<topic_id, topic, partitions>>`; the id or the name is None where it is not known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TopicHolding = tuple[str | None, str | None, tuple[int, ...]]
Assignment = tuple[TopicHolding, ...]
TopicNames = tuple[str, ...]
Tasks = tuple[tuple[str, str, str, tuple[int, ...]], ...]
"""Tasks of a Streams group, as `member_snapshots.tasks` has them: role, state, subtopology, numbers."""


def as_tuples(value: Any) -> Any:
    """A value read back from a table as these rows have it: lists and structs as tuples."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return tuple(map(as_tuples, value.values()))
    return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value


class LogRow(NamedTuple):
    """A record of `__consumer_offsets`, undecoded; no value is a tombstone. `known`: an earlier ingest counted it."""

    log_partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    known: bool = False


class GroupSnapshotRow(NamedTuple):
    """A row of `group_snapshots`."""

    snapshot_id: str
    cluster_id: str
    source: str
    log_partition: int
    offset: int
    group_id: str
    group_type: str
    protocol_type: str | None
    incarnation: int
    snapshot_kind: str
    generation: int | None
    group_epoch: int | None
    target_epoch: int | None
    assignor: str | None
    leader: str | None
    state: str
    complete: bool
    shared_topics: TopicNames | None
    subscribed_topics: TopicNames | None
    members: int
    previous_snapshot_id: str | None
    first_snapshot_id: str | None
    observed_at: int


class MemberSnapshotRow(NamedTuple):
    """A row of `member_snapshots`."""

    snapshot_id: str
    cluster_id: str
    group_id: str
    offset: int
    member_order: int
    member_id: str
    group_instance_id: str | None
    client_id: str | None
    host: str | None
    rack_id: str | None
    subscription_version: int | None
    topics: TopicNames | None
    claimed: Assignment | None
    claimed_generation: int | None
    subscription_generation: int | None
    user_data: bytes | None
    recorded: Assignment | None
    target: Assignment | None
    pending_revocation: Assignment | None
    member_epoch: int | None
    previous_member_epoch: int | None = None
    member_state: str | None = None
    subscribed_regex: str | None = None
    tasks: Tasks | None = None


class OwnershipChangeRow(NamedTuple):
    """A row of `ownership_changes`: `from_member_id` no longer has the partition, `to_member_id` has it now."""

    cluster_id: str
    topic_id: str | None
    topic: str | None
    partition: int
    group_id: str
    incarnation: int
    from_member_id: str | None
    to_member_id: str | None
    at: int
    log_partition: int | None  # None outside the log
    offset: int
    snapshot_id: str
    held_since: int | None


class GroupHeadRow(NamedTuple):
    """A row of `group_heads`; `state` is what `fold_group` takes as `head`."""

    cluster_id: str
    group_id: str
    log_partition: int
    from_offset: int
    offset: int
    incarnation: int
    refolded: bool
    state: bytes


class CoverageRow(NamedTuple):
    """A row of `coverage`."""

    cluster_id: str
    group_id: str
    incarnation: int
    kind: str
    from_value: int | None
    to_value: int | None
    reason: str
    offset: int
    snapshot_id: str


class QuarantineRow(NamedTuple):
    """A row of `quarantine`."""

    stage: str
    source: str
    cluster_id: str
    log_partition: int
    offset: int
    group_id: str | None
    snapshot_id: str | None
    code: str
    message: str
    key: bytes | None
    value: bytes | None
    row: str | None


class FindingRow(NamedTuple):
    """A row of `violations`."""

    code: str
    severity: str
    scenario: str | None
    cluster_id: str
    group_id: str
    snapshot_id: str
    member_id: str | None
    topic: str | None
    partition: int | None
    evidence: str
    log_partition: int
    offset: int


class FoldCounts(NamedTuple):
    """What became of each record that is not `known`: the classes exclude one another and add up to `records`.

    `used`, `unused` and `tombstones` count by kind of record, `quarantined` by code. `duplicates` were read twice with
    the same bytes.
    """

    records: int
    used: dict[str, int]
    unused: dict[str, int]
    tombstones: dict[str, int]
    duplicates: int
    quarantined: dict[str, int]

    @property
    def accounted(self) -> int:
        """The sum of the classes."""
        by_kind = (self.used, self.unused, self.tombstones, self.quarantined)
        return self.duplicates + sum(sum(counts.values()) for counts in by_kind)


class Unfinished(NamedTuple):
    """The fold that the end of the read cut: the group as far as it was told, with `complete` false.

    Not a fact to append with the others: it depends on where the read ended, and the next read completes it.
    """

    group_snapshot: GroupSnapshotRow
    member_snapshots: tuple[MemberSnapshotRow, ...]
    coverage: CoverageRow


class Folded(NamedTuple):
    """All that one group's records say, in order of offset. No head: no record named a group."""

    group_snapshots: list[GroupSnapshotRow]
    member_snapshots: list[MemberSnapshotRow]
    ownership_changes: list[OwnershipChangeRow]
    coverage: list[CoverageRow]
    quarantine: list[QuarantineRow]
    violations: list[FindingRow]
    head: GroupHeadRow | None
    counts: FoldCounts
    unfinished: Unfinished | None
