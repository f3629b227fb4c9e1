"""franz-go's last step if subscriptions differ: exchange partitions in cycles until most are back with their owners.

By then it is settled how many partitions each member holds, except that members one level apart may swap loads.
Topics with the same subscribers form one class. A cycle goes from class to member (which takes one) and from member to
class (which gives one up); a level joins members above it that give with members below it that take. A cycle pays if it
leaves more partitions with their previous owners. This is Bellman and Ford's search for negative cycles, whose order
of visits decides which of several equally good cycles is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.assignors.clients.franz_go.seats import NOBODY, Seats

NEVER = 1 << 62
"""The price of giving up a partition that is not held."""


@dataclass(slots=True)
class Cell:
    """How many partitions of a class a member holds, and how many it held before."""

    kind: int  # the class
    member: int
    held: int = 0
    came_with: int = 0

    @property
    def gain(self) -> int:
        """Return the price of one more: a move, unless the member takes back what it had."""
        return int(self.held >= self.came_with)

    @property
    def loss(self) -> int:
        """Return the price of one fewer: minus a move, if the last one came by a move."""
        return NEVER if self.held == 0 else -int(self.held > self.came_with)

    def room(self, change: int) -> int:
        """Return how many steps in this direction have the same price."""
        if change > 0:
            return self.came_with - self.held if self.held < self.came_with else NEVER
        return self.held - self.came_with if self.held > self.came_with else self.held


class Edge(NamedTuple):
    """How a node was reached: from which node, and through which cell (None: a level)."""

    node: int
    cell: Cell | None


@dataclass(slots=True)
class Rings:
    """Search for cycles. Nodes: classes, then members, then the levels of members."""

    cells: list[Cell]
    kinds: int
    loads: list[int]

    def find(self) -> list[list[tuple[Cell | None, int]]]:
        """Return disjoint cycles that pay, as cells with +1 or -1, or None for a level; none: nothing to improve."""
        levels = self._levels()
        nodes = self.kinds + len(self.loads) + len(levels)
        price = [0] * nodes
        via: list[Edge | None] = [None] * nodes
        for _ in range(nodes):
            if not self._relax(levels, price, via):
                return []
            starts = _on_rings(via)
            if starts:
                return [self._ring(start, via) for start in starts]
        return []

    def _levels(self) -> dict[int, int]:
        """Return a node for each load above 0, in order of the members."""
        loads = dict.fromkeys(load for load in self.loads if load > 0)
        return {load: self.kinds + len(self.loads) + at for at, load in enumerate(loads)}

    def _relax(self, levels: dict[int, int], price: list[int], via: list[Edge | None]) -> bool:
        moved = False

        def reach(source: int, to: int, cost: int, cell: Cell | None) -> None:
            nonlocal moved
            if price[source] + cost < price[to]:
                price[to], via[to], moved = price[source] + cost, Edge(source, cell), True

        for cell in self.cells:
            reach(cell.kind, self.kinds + cell.member, cell.gain, cell)
            reach(self.kinds + cell.member, cell.kind, cell.loss, cell)
        for member, load in enumerate(self.loads):
            if load + 1 in levels:
                reach(self.kinds + member, levels[load + 1], 0, None)
            if load > 0:
                reach(levels[load], self.kinds + member, 0, None)
        return moved

    def _ring(self, start: int, via: list[Edge | None]) -> list[tuple[Cell | None, int]]:
        ring: list[tuple[Cell | None, int]] = []
        node = start
        while not ring or node != start:
            edge = via[node]
            assert edge is not None, "a ring has no end"
            ring.append((edge.cell, 1 if node >= self.kinds else -1))
            node = edge.node
        return ring

    def turn(self, ring: list[tuple[Cell | None, int]]) -> None:
        """Move as many partitions around the cycle as have the same price; one, if loads change."""
        cells = [(cell, change) for cell, change in ring if cell is not None]
        count = 1 if len(cells) < len(ring) else min(cell.room(change) for cell, change in cells)
        for cell, change in cells:
            cell.held += change * count
            self.loads[cell.member] += change * count


def _on_rings(via: list[Edge | None]) -> list[int]:
    """Return one node of each cycle among the edges by which nodes were reached."""
    seen: dict[int, int] = {}
    starts = []
    for start in range(len(via)):
        node: int | None = start
        while node is not None and node not in seen:
            seen[node] = start
            edge = via[node]
            node = None if edge is None else edge.node
            if node is not None and seen.get(node) == start:
                starts.append(node)
                break
    return starts


def bring_home(seats: Seats) -> None:
    """Rearrange who holds which partitions."""
    kind_of = _kinds(seats)
    cells = _cells(seats, kind_of)
    loads = [0] * len(seats.members)
    for cell in cells:
        loads[cell.member] += cell.held
    rings = Rings(cells, max(kind_of, default=NOBODY) + 1, loads)
    turned = False
    while found := rings.find():
        turned = True
        for ring in found:
            rings.turn(ring)
    if turned or any(NOBODY != had != now for now, had in zip(seats.owner, seats.came_with, strict=True)):
        _rewrite(seats, kind_of, cells)


def _kinds(seats: Seats) -> list[int]:
    """Return the class of each topic, numbered in order of the topics."""
    classes: dict[tuple[int, ...], int] = {}
    return [classes.setdefault(tuple(takers), len(classes)) for takers in seats.takers]


def _cells(seats: Seats, kind_of: list[int]) -> list[Cell]:
    """Return cells by member, then class, without classes that have no partitions."""
    cells: dict[tuple[int, int], Cell] = {}
    for member in range(len(seats.members)):
        kinds = {kind for kind, takers in zip(kind_of, seats.takers, strict=True) if member in takers}
        cells |= {(member, kind): Cell(kind, member) for kind in sorted(kinds)}
    filled = set()
    for partition, owner in enumerate(seats.owner):
        kind = kind_of[seats.topic_of[partition]]
        for member, column in ((owner, "held"), (seats.came_with[partition], "came_with")):
            cell = cells.get((member, kind))
            if cell is not None:
                setattr(cell, column, getattr(cell, column) + 1)
                filled.add(kind)
    return [cell for cell in cells.values() if cell.kind in filled]


def _rewrite(seats: Seats, kind_of: list[int], cells: list[Cell]) -> None:
    """Deal all partitions again by the counts: first every member takes back what it held before."""
    need = {(cell.member, cell.kind): cell.held for cell in cells}
    everything = [partition for held in seats.held for partition in held]
    seats.held = [[] for _ in seats.members]
    piles: dict[int, list[int]] = {}
    for partition in everything:
        home = seats.came_with[partition], kind_of[seats.topic_of[partition]]
        if need.get(home, 0) > 0:
            need[home] -= 1
            seats.give(partition, home[0])
        else:
            piles.setdefault(home[1], []).append(partition)
    for (member, kind), count in need.items():
        for partition in piles.get(kind, [])[:count]:
            seats.give(partition, member)
        piles[kind] = piles.get(kind, [])[count:]
