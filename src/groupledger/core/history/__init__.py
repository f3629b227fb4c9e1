"""Fold one group's log records into facts: snapshots, ownership changes, coverage, and the head to continue from.

Read `fold_rows` (the facts), `fold` (one group, record by record), `classic` and `kip848` (each record's meaning),
`members`, `ownership` and `head`; `classic_kernels` is the arithmetic of classic groups over
columns. Called by `engine.fold_slices`, `engine.classic` and the answers that read records.
"""

from groupledger.core.history.fold import OTHER_LOG_PARTITION as OTHER_LOG_PARTITION
from groupledger.core.history.fold import FoldSettings as FoldSettings
from groupledger.core.history.fold import HeldSnapshot as HeldSnapshot
from groupledger.core.history.fold import HoldingMember as HoldingMember
from groupledger.core.history.fold import fold_group as fold_group
from groupledger.core.history.fold import held_by as held_by
from groupledger.core.history.fold import held_changes as held_changes
from groupledger.core.history.fold import home_of as home_of
from groupledger.core.history.fold import log_partition_of as log_partition_of
from groupledger.core.history.fold import possible_counts as possible_counts
from groupledger.core.history.fold_rows import CoverageRow as CoverageRow
from groupledger.core.history.fold_rows import FindingRow as FindingRow
from groupledger.core.history.fold_rows import FoldCounts as FoldCounts
from groupledger.core.history.fold_rows import Folded as Folded
from groupledger.core.history.fold_rows import GroupHeadRow as GroupHeadRow
from groupledger.core.history.fold_rows import GroupSnapshotRow as GroupSnapshotRow
from groupledger.core.history.fold_rows import LogRow as LogRow
from groupledger.core.history.fold_rows import MemberSnapshotRow as MemberSnapshotRow
from groupledger.core.history.fold_rows import OwnershipChangeRow as OwnershipChangeRow
from groupledger.core.history.fold_rows import QuarantineRow as QuarantineRow
from groupledger.core.history.fold_rows import as_tuples as as_tuples
from groupledger.core.history.head import decode_head as decode_head
from groupledger.core.history.head import undecided_from as undecided_from
from groupledger.core.history.ownership import snapshot_id as snapshot_id
from groupledger.core.log.listings import TopicChange as TopicChange
from groupledger.core.log.listings import TopicHistory as TopicHistory
from groupledger.core.log.listings import canonical_topic_id as canonical_topic_id
