"""A Java HashMap (or HashSet) key by key, trees included: the exact, slow answer where a bucket of a table overflows.

The kernels order a table by sorting on buckets, which holds as long as every bucket is a list. A bucket that gets its
ninth key (its eighth by `computeIfAbsent`) doubles a table below 64 and becomes a red-black tree above. A tree keeps a
list beside it, and that list is what is walked: its root stands first, and a new key stands behind its parent. So the
shape of the tree decides the order, and is kept here as Java 17 keeps it.

Worked example: `JavaTable(64)` with 0, 64, 128, .., 512 is walked 192, 0, 64, 128, 256, ..: the root comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from groupledger.core.assignors.server.redblack import NIL, Leaf, Tree
from groupledger.core.javaorder import spread

TREE_FROM = 8  # keys in a bucket when one more makes it a tree
LIST_UPTO = 6  # keys in half a split tree that fall back to a list
TREE_CAPACITY = 64


@dataclass(frozen=True, slots=True)
class HashedKey:
    """What a table knows of a key: Java's hash code, what `compareTo` compares, and the caller's own name for it."""

    hashed: int
    rank: Any
    name: Any


class Bucket:
    """The keys of one bucket in the order they are walked in, with a tree over them once there were too many."""

    def __init__(self, leaves: list[Leaf]) -> None:
        self.leaves = leaves
        self.tree = Tree()

    def is_tree(self) -> bool:
        """Whether it was planted."""
        return self.tree.root is not NIL

    def plant(self) -> None:
        """Make a tree of the list, key by key in its order; the root moves to the front."""
        self.tree = Tree()
        for leaf in self.leaves:
            leaf.uproot()
            self.tree.insert(leaf)
        self._root_first()

    def grow(self, leaf: Leaf) -> None:
        """Add a key to the tree: behind its parent in the list."""
        parent = self.tree.insert(leaf)
        self.leaves.insert(self.leaves.index(parent) + 1, leaf)
        self._root_first()

    def fell(self, leaf: Leaf) -> None:
        """Remove a key from the tree; a tree that was too small already becomes a list."""
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
        """`capacity` is a power of two, as `order.table_size` gives it."""
        self.capacity = capacity
        self.leaves: dict[Any, Leaf] = {}
        self.buckets: dict[int, Bucket] = {}

    def __iter__(self) -> Iterator[Any]:
        """The names of the keys as Java walks them."""
        for index in sorted(self.buckets):
            yield from (leaf.key.name for leaf in self.buckets[index].leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    def __contains__(self, name: object) -> bool:
        return name in self.leaves

    def put(self, key: HashedKey) -> None:
        """`Map.put` or `Set.add`: a new key goes behind its bucket; the table doubles after it, when over full."""
        if key.name in self.leaves:
            return
        self._add(key, behind=True)
        if 4 * len(self) > 3 * self.capacity:
            self._double()

    def compute_if_absent(self, key: HashedKey) -> None:
        """`Map.computeIfAbsent`: doubles first, also for a key that is there; a new key goes before its bucket."""
        if 4 * len(self) > 3 * self.capacity:
            self._double()
        if key.name not in self.leaves:
            self._add(key, behind=False)

    def remove(self, name: Any) -> None:
        """`Map.remove`; a table never shrinks."""
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
