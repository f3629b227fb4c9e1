"""Hold a group's answer as kernels write it: one list per member, back to back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray


class TargetLists(NamedTuple):
    """The target of one group: member m's list is start[m]:start[m + 1] of topic and partition."""

    start: LongArray  # view from the group's first member on; start[0] is set
    topic: IntArray
    partition: IntArray
    withheld: NDArray[np.bool_]  # in the target, not in a cooperative answer: its owner must revoke it first


@kernel
def clear(out: TargetLists, members: int) -> None:
    """Write empty lists for all members."""
    for member in range(members):
        out.start[member + 1] = out.start[0]
