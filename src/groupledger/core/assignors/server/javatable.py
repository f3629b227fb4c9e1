"""Emulate a Java HashMap (or HashSet) key by key, trees included: exact and slow, for tables with overflowing buckets.

The kernels order a table by sorting on buckets, which holds as long as every bucket is a list. A bucket that gets its
ninth key (its eighth by `computeIfAbsent`) doubles a table below 64 and becomes a red-black tree above. A tree also
keeps a list, which is what Java iterates over: its root comes first, and a new key follows its parent. So the shape of
the tree decides the order, and is kept here as Java 17 keeps it.

Worked example: `JavaTable(64)` with 0, 64, 128, .., 512 iterates 192, 0, 64, 128, 256, ..: the root comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from groupledger.core.assignors.server.redblack import NIL, Leaf, Tree
from groupledger.core.javaorder import spread

TREE_FROM = 8  # a bucket with this many keys becomes a tree at the next one
LIST_UPTO = 6  # half of a split tree with at most this many keys becomes a list again
TREE_CAPACITY = 64


@dataclass(frozen=True, slots=True)
class HashedKey:
    """What a table knows of a key: Java's hash code, what `compareTo` compares, and the caller's own name for it."""

    hashed: int
    rank: Any
    name: Any


class Bucket:
    """The keys of one bucket in iteration order, with a tree over them once there were too many."""

    def __init__(self, leaves: list[Leaf]) -> None:
        self.leaves = leaves
        self.tree = Tree()

    def is_tree(self) -> bool:
        """Return whether the bucket is a tree."""
        return self.tree.root is not NIL

    def plant(self) -> None:
        """Make a tree of the list, key by key in its order; the root moves to the front."""
        self.tree = Tree()
        for leaf in self.leaves:
            leaf.uproot()
            self.tree.insert(leaf)
        self._root_first()

    def grow(self, leaf: Leaf) -> None:
        """Add a key to the tree; in the list it follows its parent."""
        parent = self.tree.insert(leaf)
        self.leaves.insert(self.leaves.index(parent) + 1, leaf)
        self._root_first()

    def fell(self, leaf: Leaf) -> None:
        """Remove a key from the tree; a tree that was already too small becomes a list."""
        self.leaves.remove(leaf)
        if self.tree.is_small():
            self.tree = Tree()
            return
        self.tree.remove(leaf)
        self._root_first()

    def _root_first(self) -> None:
        if self.leaves[0] is not self.tree.root:
            self.leaves.remove(self.tree.root)
            self.leaves.insert(0, self.tree.root)


class JavaTable:
    """The table of a HashMap made by `new HashMap(capacity)`; `JavaTable(16)` is `new HashMap()`."""

    def __init__(self, capacity: int) -> None:
        """Make an empty table; `capacity` is a power of two, as from `order.table_size`."""
        self.capacity = capacity
        self.leaves: dict[Any, Leaf] = {}
        self.buckets: dict[int, Bucket] = {}

    def __iter__(self) -> Iterator[Any]:
        """Yield the names of the keys in Java's iteration order."""
        for index in sorted(self.buckets):
            yield from (leaf.key.name for leaf in self.buckets[index].leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    def __contains__(self, name: object) -> bool:
        return name in self.leaves

    def put(self, key: HashedKey) -> None:
        """Do `Map.put` or `Set.add`: append a new key to its bucket; the table doubles afterwards if overfull."""
        if key.name in self.leaves:
            return
        self._add(key, behind=True)
        if 4 * len(self) > 3 * self.capacity:
            self._double()

    def compute_if_absent(self, key: HashedKey) -> None:
        """Do `Map.computeIfAbsent`: double first, also for an existing key; a new key goes before its bucket."""
        if 4 * len(self) > 3 * self.capacity:
            self._double()
        if key.name not in self.leaves:
            self._add(key, behind=False)

    def remove(self, name: Any) -> None:
        """Do `Map.remove`; a table never shrinks."""
        leaf = self.leaves.pop(name, None)
        if leaf is None:
            return
        index = spread(leaf.key.hashed) & (self.capacity - 1)
        bucket = self.buckets[index]
        if bucket.is_tree():
            bucket.fell(leaf)
        else:
            bucket.leaves.remove(leaf)
        if not bucket.leaves:
            del self.buckets[index]

    def _add(self, key: HashedKey, *, behind: bool) -> None:
        leaf = self.leaves[key.name] = Leaf(key, (_signed(spread(key.hashed)), key.rank))
        bucket = self.buckets.setdefault(spread(key.hashed) & (self.capacity - 1), Bucket([]))
        if bucket.is_tree():
            bucket.grow(leaf)
            return
        bucket.leaves.insert(len(bucket.leaves) if behind else 0, leaf)
        if len(bucket.leaves) > (TREE_FROM if behind else TREE_FROM - 1):
            if self.capacity < TREE_CAPACITY:
                self._double()
            else:
                bucket.plant()

    def _double(self) -> None:
        before, self.capacity, self.buckets = self.buckets, 2 * self.capacity, {}
        for bucket in before.values():
            halves: dict[int, list[Leaf]] = {}
            for leaf in bucket.leaves:
                halves.setdefault(spread(leaf.key.hashed) & (self.capacity - 1), []).append(leaf)
            for half in sorted(halves):
                self.buckets[half] = _half(bucket, halves[half])


def _half(whole: Bucket, leaves: list[Leaf]) -> Bucket:
    if not whole.is_tree() or len(leaves) <= LIST_UPTO:
        return Bucket(leaves)
    if len(leaves) == len(whole.leaves):
        return whole
    half = Bucket(leaves)
    half.plant()
    return half


def _signed(unsigned: int) -> int:
    return unsigned - (unsigned >> 31 << 32)
