"""The calls that a recorded group's members made: from the ledger's facts, by `core.protocol.recorded`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.core.moment import millis
from groupledger.core.protocol.metrics import Metric, Window, of_history
from groupledger.core.protocol.recorded import RecordedCall, recorded_calls
from groupledger.pipeline.group_history import history

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.pipeline.frames import GroupFrames


def callbacks(group: GroupFrames) -> list[RecordedCall]:
    """All calls of one group in order: its whole history comes to the driver. Raises Fault as `history` does."""
    return list(recorded_calls(*history(group)))


def metrics(group: GroupFrames, start: datetime, end: datetime) -> list[Metric]:
    """KIP-429's metrics of each member id, and of the group, between two moments; what the log cannot know is None."""
    return of_history(callbacks(group), Window(millis(start), millis(end)))
