"""Sort 64-bit keys in kernels: numba takes ten times as long to compile numpy's own sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

FEW = 24


@kernel
def sort_by(key: IntArray | LongArray, order: IntArray, count: int) -> None:
    """Sort `order[:count]` by key[0], key[1], ..: current keys of its entries, below 2^32; stable."""
    packed = np.empty(count, np.int64)
    for at in range(count):
        packed[at] = (np.int64(key[at]) << 31) | at
    sort(packed)
    before = order[:count].copy()
    for at in range(count):
        order[at] = before[packed[at] & 0x7FFFFFFF]


@kernel
def sort(keys: LongArray) -> None:
    """Sort in place, ascending: by insertion if there are few keys, else by merging existing runs."""
    if len(keys) > FEW:
        spare = np.empty(len(keys), np.int64)
        while _merge_runs(keys, spare):
            pass
        return
    for at in range(1, len(keys)):
        value = keys[at]
        to = at
        while to > 0 and keys[to - 1] > value:
            keys[to] = keys[to - 1]
            to -= 1
        keys[to] = value


@kernel
def _merge_runs(keys: LongArray, spare: LongArray) -> bool:
    """Merge each pair of neighbouring runs; False if there was only one run."""
    low = 0
    while low < len(keys):
        middle = _end_of_run(keys, low)
        if low == 0 and middle == len(keys):
            return False
        high = _end_of_run(keys, middle)
        one = low
        other = middle
        for at in range(low, high):
            if other >= high or (one < middle and keys[one] <= keys[other]):
                spare[at] = keys[one]
                one += 1
            else:
                spare[at] = keys[other]
                other += 1
        low = high
    keys[:] = spare
    return True


@kernel
def _end_of_run(keys: LongArray, low: int) -> int:
    at = low + 1
    while at < len(keys) and keys[at - 1] <= keys[at]:
        at += 1
    return min(at, len(keys))


@kernel
def first_at_least(values: IntArray | LongArray, low: int, high: int, wanted: int) -> int:
    """Return the index of the first of the ascending values[low:high] that is at least `wanted`; else `high`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
