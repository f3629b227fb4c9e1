"""The calls that a recorded group's members made: from the ledger's facts, by `core.protocol.recorded`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import functions as F

from groupledger.core.faults import Fault
from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.moment import millis
from groupledger.core.protocol.metrics import Metric, Window, of_history
from groupledger.core.protocol.recorded import RecordedCall, recorded_calls
from groupledger.pipeline.rebalance import unknown_group
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from groupledger.pipeline.ledger import Group

R = TypeVar("R", GroupSnapshotRow, MemberSnapshotRow)


def callbacks(group: Group) -> list[RecordedCall]:
    """All calls of one group in order: its whole history comes to the driver.

    Raises Fault: UNKNOWN_GROUP where the ledger has no such group, AMBIGUOUS_GROUP where several clusters do.
    """
    in_order = (c.LOG_PARTITION, c.OFFSET)
    groups = list(_rows(group.of(GROUP_SNAPSHOTS).sort(*in_order), GroupSnapshotRow))
    clusters = sorted({row.cluster_id for row in groups})
    if not groups:
        raise unknown_group(group)
    if len(clusters) > 1:
        message = f"{group.group_id!r} is a group of the clusters {', '.join(clusters)}; expected one to be named"
        raise Fault("AMBIGUOUS_GROUP", message)
    members = _rows(group.of(MEMBER_SNAPSHOTS).sort(c.OFFSET, c.MEMBER_ORDER), MemberSnapshotRow)
    return list(recorded_calls(groups, members))


def metrics(group: Group, start: datetime, end: datetime) -> list[Metric]:
    """KIP-429's metrics of each member id, and of the group, between two moments; what the log cannot know is None."""
    return of_history(callbacks(group), Window(millis(start), millis(end)))


def _rows(frame: DataFrame, kind: type[R]) -> Iterator[R]:
    """The frame's rows as the fold has them: moments in milliseconds, lists as tuples."""
    selected = frame
    if c.OBSERVED_AT in kind._fields:
        selected = frame.withColumn(c.OBSERVED_AT, F.unix_millis(c.OBSERVED_AT))
    for row in selected.select(*kind._fields).collect():
        yield kind(*(_plain(value) for value in row))


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(_plain(each) for each in value) if isinstance(value, list | tuple) else value
