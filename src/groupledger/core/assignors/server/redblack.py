"""Implement a textbook red-black tree (Cormen et al., ch. 13), the tree inside a bucket of Java's HashMap.

Only its shape matters here: which key is the root, and which is the parent of a new key. Keys are never equal.
"""

from __future__ import annotations

from typing import Any

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
