"""Hold current targets in iteration order, and the log of what an assignor does to them.

The log has rows (member, topic, partition) in order of time; a removed partition is logged as its complement
(~partition, below 0). From the log alone `record` derives the state of Java's maps and sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray

FIRST_ROWS = 1024


class CurrentTargets(NamedTuple):
    """The current targets of a batch, each member's in iteration order of its maps; `target_start` bounds them."""

    topic: IntArray
    partition: IntArray


@kernel
def with_room(log: IntArray, used: int, more: int) -> IntArray:
    """Return the log, or a longer copy of it, with room for `more` rows after the first `used`."""
    if used + more <= len(log):
        return log
    longer = np.empty((max(2 * len(log), used + more), 3), np.int32)
    longer[:used] = log[:used]
    return longer


@kernel
def write(log: IntArray, used: int, member: int, topic: int, partition: int) -> int:
    """Append a row if there is room; return the new number of rows."""
    log[used, 0] = member
    log[used, 1] = topic
    log[used, 2] = partition
    return used + 1
