"""Emulate a Java HashMap (or HashSet) key by key, trees included: exact and slow, for tables with overflowing buckets.

The kernels order a table by sorting on buckets, which holds as long as every bucket is a list. A bucket that gets its
ninth key (its eighth by `computeIfAbsent`) doubles a table below 64 and becomes a red-black tree above. A tree also
keeps a list, which is what Java iterates over: its root comes first, and a new key follows its parent. So the shape of
the tree decides the order, and is kept here as Java 17 keeps it.

Worked example: `JavaTable(64)` with 0, 64, 128, .., 512 iterates 192, 0, 64, 128, 256, ..: the root comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from groupledger.core.arrays.java_orders import spread

TREE_FROM = 8  # a bucket with this many keys becomes a tree at the next one
LIST_UPTO = 6  # half of a split tree with at most this many keys becomes a list again
TREE_CAPACITY = 64


@dataclass(frozen=True, slots=True)
class HashedKey:
    """What a table knows of a key: Java's hash code, what `compareTo` compares, and the caller's own name for it."""

    hashed: int
    rank: Any
    name: Any


def number_key(number: int) -> HashedKey:
    """Return the key of an Integer, whose hash code it is."""
    return HashedKey(number, number, number)


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
        """Make an empty table; `capacity` is a power of two, as from `orders.table_size`."""
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


def walk_keys(keys: Iterable[HashedKey], capacity: int) -> list[int]:
    """Return the names of keys put into a table of `capacity`, in iteration order."""
    table = JavaTable(capacity)
    for key in keys:
        table.put(key)
    return list(table)


# Implement a textbook red-black tree (Cormen et al., ch. 13), the tree inside a bucket of Java's HashMap.
#
# Only its shape matters here: which key is the root, and which is the parent of a new key. Keys are never equal.

LEFT, RIGHT = 0, 1


class Leaf:
    """A key in a bucket, with its place in the tree, if any. Keys sort by spread hash, then by `compareTo`."""

    __slots__ = ("below", "key", "order", "red", "up")

    def __init__(self, key: Any, order: tuple[int, Any]) -> None:
        self.key = key
        self.order = order
        self.red = False
        self.up = NIL
        self.below = [NIL, NIL]

    def uproot(self) -> None:
        """Detach from any tree."""
        self.red = False
        self.up = NIL
        self.below = [NIL, NIL]

    def side(self) -> int:
        """Return which child of its parent this is."""
        return LEFT if self.up.below[LEFT] is self else RIGHT


NIL: Leaf = Leaf.__new__(Leaf)
"""Sentinel for a missing leaf; black. Its `up` is scratch for one removal at a time."""
NIL.red, NIL.up, NIL.below = False, NIL, [NIL, NIL]


class Tree:
    """Leaves in a red-black tree."""

    def __init__(self) -> None:
        self.root = NIL

    def insert(self, leaf: Leaf) -> Leaf:
        """Insert a leaf; return its parent at that moment (NIL for the first)."""
        parent, child, side = NIL, self.root, LEFT
        while child is not NIL:
            parent, side = child, LEFT if leaf.order < child.order else RIGHT
            child = parent.below[side]
        leaf.red = True
        self._hang(parent, side, leaf)
        self._repair_insert(leaf)
        return parent

    def is_small(self) -> bool:
        """Run Java's test, made before a removal, for a tree not worth keeping (2 to 6 keys, by its shape)."""
        left, right = self.root.below
        return right is NIL or left is NIL or left.below[LEFT] is NIL

    def remove(self, leaf: Leaf) -> None:
        """Remove a leaf. A leaf with two children first swaps places with the next larger one."""
        if NIL not in leaf.below:
            self._trade_places(leaf, _least(leaf.below[RIGHT]))
        child = leaf.below[RIGHT] if leaf.below[LEFT] is NIL else leaf.below[LEFT]
        self._hang(leaf.up, leaf.side(), child)
        if not leaf.red:
            self._repair_remove(child)
        leaf.uproot()

    def _hang(self, parent: Leaf, side: int, child: Leaf) -> None:
        if parent is NIL:
            self.root = child
        else:
            parent.below[side] = child
        child.up = parent

    def _trade_places(self, leaf: Leaf, successor: Leaf) -> None:
        leaf.red, successor.red = successor.red, leaf.red
        left, right = leaf.below
        further, parent = successor.below[RIGHT], successor.up
        self._hang(leaf.up, leaf.side(), successor)
        self._hang(successor, LEFT, left)
        if parent is leaf:
            self._hang(successor, RIGHT, leaf)
        else:
            self._hang(successor, RIGHT, right)
            self._hang(parent, LEFT, leaf)
        leaf.below = [NIL, NIL]
        self._hang(leaf, RIGHT, further)

    def _rotate(self, leaf: Leaf, side: int) -> None:
        """Rotate `leaf` down to `side`; its child of the other side moves up."""
        riser = leaf.below[1 - side]
        inner = riser.below[side]
        self._hang(leaf.up, leaf.side(), riser)
        self._hang(riser, side, leaf)
        leaf.below[1 - side] = inner
        if inner is not NIL:
            inner.up = leaf

    def _repair_insert(self, leaf: Leaf) -> None:
        while leaf.up.red:
            parent, top = leaf.up, leaf.up.up
            side = parent.side()
            uncle = top.below[1 - side]
            if uncle.red:
                parent.red, uncle.red, top.red = False, False, True
                leaf = top
                continue
            if leaf is parent.below[1 - side]:
                self._rotate(parent, side)
                leaf, parent = parent, leaf
            parent.red, top.red = False, True
            self._rotate(top, 1 - side)
        self.root.red = False

    def _repair_remove(self, leaf: Leaf) -> None:
        """Rebalance at `leaf` (possibly NIL), where a black leaf is missing."""
        while leaf is not self.root and not leaf.red:
            parent, side = leaf.up, LEFT if leaf.up.below[LEFT] is leaf else RIGHT
            sibling = parent.below[1 - side]
            if sibling.red:
                sibling.red, parent.red = False, True
                self._rotate(parent, side)
                sibling = parent.below[1 - side]
            if not sibling.below[LEFT].red and not sibling.below[RIGHT].red:
                sibling.red = True
                leaf = parent
                continue
            if not sibling.below[1 - side].red:
                sibling.below[side].red, sibling.red = False, True
                self._rotate(sibling, 1 - side)
                sibling = parent.below[1 - side]
            sibling.red, parent.red, sibling.below[1 - side].red = parent.red, False, False
            self._rotate(parent, side)
            leaf = self.root
        leaf.red = False


def _least(leaf: Leaf) -> Leaf:
    while leaf.below[LEFT] is not NIL:
        leaf = leaf.below[LEFT]
    return leaf


# Emulate a `java.util.PriorityQueue`: of equal elements, the order in which they leave it depends on its array.
#
# Worked example: a, b and c of load 0 leave in the order a, c, b: the last element of the array replaces a removed
# head.

T = TypeVar("T")


class JavaHeap(Generic[T]):
    """A queue of elements, least `key` first; a key may change only while its element is not queued."""

    def __init__(self, key: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        """Add the elements one by one, as `addAll` does."""
        self._key = key
        self._array: list[T] = []
        for each in elements:
            self.add(each)

    def __len__(self) -> int:
        return len(self._array)

    def add(self, element: T) -> None:
        """Append the element and move it up past parents that are greater."""
        array, key = self._array, self._key(element)
        array.append(element)
        place = len(array) - 1
        while place and key < self._key(array[(place - 1) // 2]):
            array[place] = array[(place - 1) // 2]
            place = (place - 1) // 2
        array[place] = element

    def poll(self) -> T:
        """Remove the head; the last element takes its place and moves down past children that are less."""
        array = self._array
        head, last = array[0], array.pop()
        if array:
            self._sink(last)
        return head

    def _sink(self, element: T) -> None:
        array, key, place = self._array, self._key(element), 0
        while 2 * place + 1 < len(array):
            child = 2 * place + 1
            if child + 1 < len(array) and self._key(array[child + 1]) < self._key(array[child]):
                child += 1
            if key <= self._key(array[child]):
                break
            array[place] = array[child]
            place = child
        array[place] = element
