"""What a group's raw records say beside its snapshots: committed offsets, and how long members may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.history.fold_rows import LogRow
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import LogRecord, decode
from groupledger.core.wire.records import GroupMetadata, OffsetCommit


class CommittedOffset(NamedTuple):
    """A committed offset as the log has it (OffsetCommitKey, OffsetCommitValue); no `offset`: it was deleted.

    `log_offset` is its place among all records of the group. The log does not say which member sent it.
    """

    log_offset: int
    at_ms: int
    partition: TopicPartition
    offset: int | None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedLog:
    """Committed offsets in order of position; by member id the rebalance timeout of members of a classic group."""

    commits: tuple[CommittedOffset, ...]
    rebalance_timeout_ms: Mapping[str, int]

    @property
    def topics(self) -> dict[str, str]:
        """Names of topics by topic id, as far as commits have both."""
        return {each.topic_id: each.partition.topic for each in self.commits if each.topic_id is not None}

    def by_partition(self) -> dict[TopicPartition, list[CommittedOffset]]:
        """Return the commits of each partition, in order of position."""
        found: dict[TopicPartition, list[CommittedOffset]] = {}
        for each in self.commits:
            found.setdefault(each.partition, []).append(each)
        return found


def read_group_log(rows: Iterable[LogRow]) -> RecordedLog:
    """Read the records of one group, in any order. What does not decode is left out."""
    commits: dict[int, CommittedOffset] = {}
    timeouts: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row.offset):
        try:
            record = decode(row.key, row.value)
        except DecodeFault:
            continue
        if isinstance(record.value, GroupMetadata):
            for member in record.value.members:
                wait = member.rebalance_timeout
                timeouts[member.member_id] = member.session_timeout if wait is None else wait
        elif "partition" in record.key.fields:
            commits.setdefault(row.offset, _committed(row, record))
    return RecordedLog(tuple(commits.values()), timeouts)


def _committed(row: LogRow, record: LogRecord) -> CommittedOffset:
    named = TopicPartition(str(record.key.fields["topic"]), int(str(record.key.fields["partition"])))
    value = record.value if isinstance(record.value, OffsetCommit) else None
    if value is None:
        return CommittedOffset(row.offset, row.timestamp_ms, named, None)
    return CommittedOffset(row.offset, row.timestamp_ms, named, value.offset, value.topic_id)
