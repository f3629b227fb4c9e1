"""Handle lists of lists as two flat arrays: `start` [n+1] and values; list i is `values[start[i]:start[i + 1]]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray


def starts(lengths: LongArray) -> LongArray:
    """Return where each list starts, and where the last one ends: [n+1]. Lengths 2, 0, 3 -> 0, 2, 2, 5."""
    start = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    return start


def lengths(start: LongArray) -> LongArray:
    """Return the number of values of each list: [n]."""
    return np.diff(start)


def owners(start: LongArray) -> LongArray:
    """Return the list of each value. Starts 0, 2, 2, 5 -> 0, 0, 2, 2, 2."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def places(start: LongArray) -> LongArray:
    """Return each value's position in its list, from 0. Starts 0, 2, 2, 5 -> 0, 1, 0, 1, 2."""
    return np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))


def take(start: LongArray, chosen: LongArray) -> tuple[LongArray, LongArray]:
    """Take the lists `chosen`, in that order: their own `start`, and the index of each of their values."""
    taken = starts(np.diff(start)[chosen])
    at = np.arange(taken[-1]) + np.repeat(start[:-1][chosen] - taken[:-1], np.diff(taken))
    return taken, at
