"""Sorting of 64-bit keys for kernels: numpy's own sorts take numba ten times as long to compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

FEW = 24


@kernel
def sort_by(key: IntArray | LongArray, order: IntArray, count: int) -> None:
    """Sort `order[:count]` by key[0], key[1], ..: the keys of its entries as they stand now, below 2^32; stable."""
    packed = np.empty(count, np.int64)
    for at in range(count):
        packed[at] = (np.int64(key[at]) << 31) | at
    sort(packed)
    before = order[:count].copy()
    for at in range(count):
        order[at] = before[packed[at] & 0x7FFFFFFF]


@kernel
def sort(keys: LongArray) -> None:
    """Sort in place, ascending: by insertion where there are few, else as a heap."""
    if len(keys) <= FEW:
        for at in range(1, len(keys)):
            value = keys[at]
            to = at
            while to > 0 and keys[to - 1] > value:
                keys[to] = keys[to - 1]
                to -= 1
            keys[to] = value
        return
    for at in range(len(keys) // 2 - 1, -1, -1):
        _sift(keys, at, len(keys))
    for count in range(len(keys) - 1, 0, -1):
        top = keys[0]
        keys[0] = keys[count]
        keys[count] = top
        _sift(keys, 0, count)


@kernel
def _sift(keys: LongArray, at: int, count: int) -> None:
    """Let the key at `at` sink to its place in a heap with the greatest on top."""
    value = keys[at]
    below = 2 * at + 1
    while below < count:
        if below + 1 < count and keys[below + 1] > keys[below]:
            below += 1
        if keys[below] <= value:
            break
        keys[at] = keys[below]
        at = below
        below = 2 * at + 1
    keys[at] = value


@kernel
def first_at_least(values: IntArray | LongArray, low: int, high: int, wanted: int) -> int:
    """Index of the first of the ascending values[low:high] that is at least `wanted`; `high` without one."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
