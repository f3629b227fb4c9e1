"""What a fold takes and gives, row by row. Each class has its table's columns, in order, but for the attempt.

Timestamps are milliseconds since 1970. Partitions of a topic stand as (topic id, topic name, partitions), as a table's
`array<struct<topic_id, topic, partitions>>`; the id or the name is None where it is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, StrEnum, auto
from typing import Any, NamedTuple

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.wire.offsets_log import RecordKind

TopicHolding = tuple[str | None, str | None, tuple[int, ...]]
Assignment = tuple[TopicHolding, ...]
TopicNames = tuple[str, ...]
Tasks = tuple[tuple[str, str, str, tuple[int, ...]], ...]
"""Tasks of a Streams group, as `member_snapshots.tasks` has them: role, state, subtopology, numbers."""


def partitions_in(assignment: Assignment | None) -> Iterator[TopicPartition]:
    """Yield the partitions of an assignment, in its order; of a topic without a name by its id."""
    for topic_id, name, numbers in assignment or ():
        yield from (TopicPartition(name or topic_id or "", number) for number in numbers)


def as_tuples(value: Any) -> Any:
    """Return a value read back from a table as these rows have it: lists and structs as tuples."""
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


# What made a snapshot.


class Kind(StrEnum):
    """What made a snapshot."""

    BIRTH = "birth"
    GENERATION = "generation"
    REWRITE = "rewrite"
    EMPTY = "empty"
    DELETED = "deleted"
    FOLD = "fold"


# What each record of a group that its coordinator assigns is about: the type of the group, and what of it is said.
#
# Consumer groups of KIP-848, share groups (KIP-932) and Streams groups (KIP-1071) write the same kinds of facts under
# record types of their own.


class GroupType(StrEnum):
    """Which protocol a group follows."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Role(Enum):
    """What a record says of its group."""

    EPOCH = auto()
    MEMBER = auto()
    TARGET_EPOCH = auto()
    TARGET = auto()
    CURRENT = auto()
    EXPRESSION = auto()
    TOPOLOGY = auto()
    PARTITION_COUNTS = auto()


_RECORDS = {
    "METADATA": Role.EPOCH,
    "MEMBER_METADATA": Role.MEMBER,
    "TARGET_ASSIGNMENT_METADATA": Role.TARGET_EPOCH,
    "TARGET_ASSIGNMENT_MEMBER": Role.TARGET,
    "CURRENT_MEMBER_ASSIGNMENT": Role.CURRENT,
    "REGULAR_EXPRESSION": Role.EXPRESSION,
    "TOPOLOGY": Role.TOPOLOGY,
    "PARTITION_METADATA": Role.PARTITION_COUNTS,
}
"""By what follows the type of the group in the name of the kind of record."""
ROLES: dict[RecordKind, tuple[GroupType, Role]] = {
    kind: (group_type, role)
    for group_type in (GroupType.CONSUMER, GroupType.SHARE, GroupType.STREAMS)
    for name, role in _RECORDS.items()
    if (kind := RecordKind.__members__.get(f"{group_type.name}_GROUP_{name}")) is not None
}
KINDS: dict[tuple[GroupType, Role], RecordKind] = {about: kind for kind, about in ROLES.items()}


# Partitions in words, for evidence: `clicks 0-3,7`.

MOST_SPANS = 40
"""A hostile assignment must not make an evidence of megabytes."""


def spans(partitions: Iterable[int]) -> str:
    """`{0, 1, 2, 3, 7}` -> `0-3,7`."""
    runs: list[list[int]] = []
    for partition in sorted(partitions):
        if runs and partition <= runs[-1][1] + 1:
            runs[-1][1] = partition
        else:
            runs.append([partition, partition])
    shown = [f"{first}-{last}" if last > first else str(first) for first, last in runs[:MOST_SPANS]]
    return ",".join(shown) + (f",... ({len(runs) - MOST_SPANS} more)" if len(runs) > MOST_SPANS else "")


def topic_spans(partitions: Mapping[str, Iterable[int]]) -> str:
    """`{"clicks": {0, 1}, "grow": {4}}` -> `clicks 0-1; grow 4`; `nothing` for none."""
    texts = [f"{topic} {spans(numbers)}" for topic, numbers in sorted(partitions.items())]
    more = f"; ... ({len(texts) - MOST_SPANS} more topics)" if len(texts) > MOST_SPANS else ""
    return "; ".join(texts[:MOST_SPANS]) + more if texts else "nothing"


# What became of each record, counted: nothing read may vanish.


class Accounts:
    """Counts records by class; `close` proves that the classes add up to the records.

    A record that an earlier ingest counted is not counted again, whatever it turns out to be beside the new ones.
    """

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()
        self.unused: Counter[str] = Counter()
        self.tombstones: Counter[str] = Counter()
        self.quarantined: Counter[str] = Counter()
        self.duplicates: Counter[str] = Counter()

    def count(self, row: LogRow, counter: Counter[str], name: str) -> None:
        """Count a record in one of the classes, under the name of its kind."""
        if not row.known:
            counter[name] += 1

    def close(self, records: int) -> FoldCounts:
        """Return the counts of a fold that was given so many new records."""
        classes = self.used, self.unused, self.tombstones, self.quarantined
        used, unused, tombstones, quarantined = (dict(sorted(counter.items())) for counter in classes)
        counts = FoldCounts(records, used, unused, tombstones, self.duplicates.total(), quarantined)
        if counts.accounted != records:
            raise AssertionError(f"{records} records came, {counts.accounted} are accounted for: {counts}")
        return counts


# What the log does not hold of a classic group, in words: kinds and reasons of rows of `coverage`.

FIRST_GENERATION = 1
"""The first with members: before it there is at most an empty group's generation 0, not written by every broker."""

HISTORY_BEGINS_LATE = "history-begins-late"
TOMBSTONE_MISSING = "tombstone-missing"
GENERATIONS_SKIPPED = "generations-skipped"
RECORD_UNREADABLE = "record-unreadable"

BEGINS_WITH_TOMBSTONE = "the first record of the group is its tombstone: nothing is known of the time before"


def begins_with(generation: int) -> str:
    """Return the reason: the first record is not of the first generation."""
    return f"the first record of this incarnation is of generation {generation}; the ones before are not there"


def generation_fell(before: int, generation: int) -> str:
    """Return the reason: a generation is less than the one before."""
    return (
        f"the generation fell from {before} to {generation} without a tombstone: the group was deleted unseen, or the "
        "log lost its end"
    )


def generations_between(before: int, generation: int) -> str:
    """Return the reason: generations are skipped."""
    return (
        f"no record of the generations between {before} and {generation}: no leader's assignment arrived, or "
        "compaction removed it"
    )


def undecoded(what: str, offset: int, fault: Fault) -> str:
    """Return the reason: a key, or a value of this kind, cannot be read."""
    return f"{what} at offset {offset} does not decode ({fault.code})"


def unreadable(what: str) -> str:
    """Return the reason: a record cannot be read."""
    return f"{what}; the bytes are in quarantine. What it changed is not known: the next snapshot has no previous one"
