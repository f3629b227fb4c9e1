"""One group's log records folded into facts: snapshots, ownership changes, coverage, and the head to go on from."""

from groupledger.core.history.chronicle import snapshot_id
from groupledger.core.history.fold import FoldSettings, fold_group
from groupledger.core.history.head import decode_head, heads_agree, start_of_refold
from groupledger.core.history.rows import (
    Counts,
    CoverageRow,
    FindingRow,
    Folded,
    GroupHeadRow,
    GroupSnapshotRow,
    LogRow,
    MemberSnapshotRow,
    OwnershipChangeRow,
    QuarantineRow,
    Unfinished,
)
from groupledger.core.history.topics import TopicCatalog, TopicChange, canonical_topic_id

__all__ = [
    "Counts",
    "CoverageRow",
    "FindingRow",
    "FoldSettings",
    "Folded",
    "GroupHeadRow",
    "GroupSnapshotRow",
    "LogRow",
    "MemberSnapshotRow",
    "OwnershipChangeRow",
    "QuarantineRow",
    "TopicCatalog",
    "TopicChange",
    "Unfinished",
    "canonical_topic_id",
    "decode_head",
    "fold_group",
    "heads_agree",
    "snapshot_id",
    "start_of_refold",
]
