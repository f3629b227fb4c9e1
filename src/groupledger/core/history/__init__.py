"""One group's log records folded into facts: snapshots, ownership changes, coverage, and the head to go on from."""

from groupledger.core.history.fold import (
    OTHER_LOG_PARTITION,
    FoldSettings,
    HeldSnapshot,
    HoldingMember,
    fold_group,
    held_by,
    held_changes,
    home_of,
    log_partition_of,
    possible_counts,
)
from groupledger.core.history.head import decode_head, start_of_refold, undecided_from
from groupledger.core.history.rows import (
    CoverageRow,
    FindingRow,
    FoldCounts,
    Folded,
    GroupHeadRow,
    GroupSnapshotRow,
    LogRow,
    MemberSnapshotRow,
    OwnershipChangeRow,
    QuarantineRow,
    Unfinished,
    as_tuples,
)
from groupledger.core.history.topics import TopicChange, TopicHistory, canonical_topic_id
from groupledger.core.history.writer import snapshot_id

__all__ = [
    "OTHER_LOG_PARTITION",
    "CoverageRow",
    "FindingRow",
    "FoldCounts",
    "FoldSettings",
    "Folded",
    "GroupHeadRow",
    "GroupSnapshotRow",
    "HeldSnapshot",
    "HoldingMember",
    "LogRow",
    "MemberSnapshotRow",
    "OwnershipChangeRow",
    "QuarantineRow",
    "TopicChange",
    "TopicHistory",
    "Unfinished",
    "as_tuples",
    "canonical_topic_id",
    "decode_head",
    "fold_group",
    "held_by",
    "held_changes",
    "home_of",
    "log_partition_of",
    "possible_counts",
    "snapshot_id",
    "start_of_refold",
    "undecided_from",
]
