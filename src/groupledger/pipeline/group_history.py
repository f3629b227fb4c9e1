"""One group's recorded history on the driver: its rows as the fold has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from groupledger.answers.names import unknown_group
from groupledger.core.faults import Fault
from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow, as_tuples
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from groupledger.pipeline.frames import GroupFrames

R = TypeVar("R", GroupSnapshotRow, MemberSnapshotRow)


def history(group: GroupFrames) -> tuple[list[GroupSnapshotRow], list[MemberSnapshotRow]]:
    """All snapshots of one group and of its members, in order.

    Raises Fault: UNKNOWN_GROUP where the ledger has no such group, AMBIGUOUS_GROUP where several clusters do.
    """
    groups = list(_rows(group.of(GROUP_SNAPSHOTS).sort(c.LOG_PARTITION, c.OFFSET), GroupSnapshotRow))
    clusters = sorted({row.cluster_id for row in groups})
    if not groups:
        raise unknown_group(group.ledger.reader, group.group_id, group.cluster_id)
    if len(clusters) > 1:
        message = f"{group.group_id!r} is a group of the clusters {', '.join(clusters)}; expected one to be named"
        raise Fault("AMBIGUOUS_GROUP", message)
    members = _rows(group.of(MEMBER_SNAPSHOTS).sort(c.OFFSET, c.MEMBER_ORDER), MemberSnapshotRow)
    return groups, list(members)


def _rows(frame: DataFrame, kind: type[R]) -> Iterator[R]:
    """The frame's rows as the fold has them: moments in milliseconds, lists as tuples."""
    selected = frame
    if c.OBSERVED_AT in kind._fields:
        selected = frame.withColumn(c.OBSERVED_AT, F.unix_millis(c.OBSERVED_AT))
    for row in selected.select(*kind._fields).collect():
        yield kind(*map(as_tuples, row))
