"""A red-black tree as textbooks have it (Cormen et al., ch. 13), which is the tree inside a bucket of Java's HashMap.

Only its shape matters here: which key is the root, and below which one a new key hangs. Keys are never equal.
"""

from __future__ import annotations

from typing import Any

LEFT, RIGHT = 0, 1


class Leaf:
    """A key in a bucket: its place in the tree, if there is one. Keys sort by spread hash, then by `compareTo`."""

    __slots__ = ("below", "key", "order", "red", "up")

    def __init__(self, key: Any, order: tuple[int, Any]) -> None:
        self.key = key
        self.order = order
        self.reset()

    def reset(self) -> None:
        """Out of any tree."""
        self.up: Leaf | None = None
        self.below: list[Leaf | None] = [None, None]
        self.red = False

    def side(self) -> int:
        """Which child of its parent this is."""
        assert self.up is not None
        return LEFT if self.up.below[LEFT] is self else RIGHT


class Tree:
    """Leaves in a red-black tree."""

    def __init__(self) -> None:
        self.root: Leaf | None = None

    def insert(self, leaf: Leaf) -> Leaf:
        """Hang a leaf in; returns its parent at that moment (itself where it is the first)."""
        if self.root is None:
            self.root = leaf
            return leaf
        parent = self.root
        while (child := parent.below[_side(leaf, parent)]) is not None:
            parent = child
        parent.below[_side(leaf, parent)] = leaf
        leaf.up, leaf.red = parent, True
        self._repair_insert(leaf)
        return parent

    def is_small(self) -> bool:
        """Java's test for a tree not worth keeping (2 to 6 keys, by its shape), made before a key is removed."""
        root = self.root
        if root is None or root.below[RIGHT] is None or root.below[LEFT] is None:
            return True
        return root.below[LEFT].below[LEFT] is None

    def remove(self, leaf: Leaf) -> None:
        """Take a leaf out. A leaf with two children first changes places with the next larger one."""
        if leaf.below[LEFT] is not None and leaf.below[RIGHT] is not None:
            self._trade_places(leaf, _least(leaf.below[RIGHT]))
        child = leaf.below[LEFT] or leaf.below[RIGHT]
        if child is not None:
            self._replace(leaf, child)
            if not leaf.red:
                self._repair_remove(child)
        else:
            if not leaf.red:
                self._repair_remove(leaf)
            self._replace(leaf, None)
        leaf.reset()

    def _replace(self, leaf: Leaf, other: Leaf | None) -> None:
        if leaf.up is None:
            self.root = other
        else:
            leaf.up.below[leaf.side()] = other
        if other is not None:
            other.up = leaf.up

    def _trade_places(self, leaf: Leaf, successor: Leaf) -> None:
        leaf.red, successor.red = successor.red, leaf.red
        below, further = list(leaf.below), successor.below[RIGHT]
        if successor.up is leaf:
            self._replace(leaf, successor)
            _hang(successor, RIGHT, leaf)
        else:
            parent = successor.up
            assert parent is not None
            self._replace(leaf, successor)
            _hang(parent, LEFT, leaf)
            _hang(successor, RIGHT, below[RIGHT])
        _hang(successor, LEFT, below[LEFT])
        _hang(leaf, LEFT, None)
        _hang(leaf, RIGHT, further)

    def _rotate(self, leaf: Leaf, side: int) -> None:
        """`leaf` goes down to its `side`, its child of the other side comes up."""
        riser = leaf.below[1 - side]
        assert riser is not None
        self._replace(leaf, riser)
        _hang(leaf, 1 - side, riser.below[side])
        _hang(riser, side, leaf)

    def _repair_insert(self, leaf: Leaf) -> None:
        while leaf.up is not None and leaf.up.red and leaf.up.up is not None:
            parent, top = leaf.up, leaf.up.up
            side = parent.side()
            uncle = top.below[1 - side]
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                top.red = True
                leaf = top
                continue
            if leaf is parent.below[1 - side]:
                leaf = parent
                self._rotate(leaf, side)
                assert leaf.up is not None
                parent = leaf.up
            parent.red, top.red = False, True
            self._rotate(top, 1 - side)
        assert self.root is not None
        self.root.red = False

    def _repair_remove(self, leaf: Leaf) -> None:
        while leaf.up is not None and not leaf.red:
            parent, side = leaf.up, leaf.side()
            sibling = parent.below[1 - side]
            if sibling is not None and sibling.red:
                sibling.red, parent.red = False, True
                self._rotate(parent, side)
                sibling = parent.below[1 - side]
            if sibling is None:
                leaf = parent
                continue
            near, far = sibling.below[side], sibling.below[1 - side]
            if not _is_red(near) and not _is_red(far):
                sibling.red = True
                leaf = parent
                continue
            if not _is_red(far):
                assert near is not None
                near.red, sibling.red = False, True
                self._rotate(sibling, 1 - side)
                sibling = parent.below[1 - side]
                assert sibling is not None
                far = sibling.below[1 - side]
            assert far is not None
            sibling.red, parent.red, far.red = parent.red, False, False
            self._rotate(parent, side)
            break
        else:
            leaf.red = False
        if self.root is not None:
            self.root.red = False


def _side(leaf: Leaf, parent: Leaf) -> int:
    return LEFT if leaf.order < parent.order else RIGHT


def _hang(parent: Leaf, side: int, child: Leaf | None) -> None:
    parent.below[side] = child
    if child is not None:
        child.up = parent


def _least(leaf: Leaf) -> Leaf:
    while (smaller := leaf.below[LEFT]) is not None:
        leaf = smaller
    return leaf


def _is_red(leaf: Leaf | None) -> bool:
    return leaf is not None and leaf.red
