"""Mutants that are no other program, each with the reason: what survives them is no gap in the tests."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A change of one line of a file below the core, wherever the line stands."""

    path: str
    line: str
    old: str
    new: str


ROOM = "room of a work array: more of it than is written"

SHAPE = "a shape to number entries by: in a larger one they have other numbers, as distinct"

EQUIVALENT: dict[Key, str] = {
    Key(
        "assignors/server/homogeneous.py", "held = g.target_start[g.members] - g.target_start[0]", "-", "+"
    ): "room of the log: `with_room` is asked for more than is written",
    Key(
        "assignors/server/homogeneous.py",
        "pool = np.empty((total + g.target_start[g.members] - g.target_start[0], 2), np.int32)",
        "-",
        "+",
    ): ROOM,
    Key(
        "assignors/movements.py", "while buckets < slots // 4:", "//", "*"
    ): "buckets of a table of our own, which is walked in no order: more of them hold the same",
    Key(
        "assignors/kip615.py", "short += floor - plan.size[member]", "-", "+"
    ): "one pass more, which finds nobody below the floor",
    Key(
        "assignors/rejoin.py", "topics = 1 + max(self.topic.max(initial=0), other.topic.max(initial=0))", "0", "1"
    ): SHAPE,
    Key(
        "assignors/rejoin.py", "topics = 1 + max(self.topic.max(initial=0), other.topic.max(initial=0))", "1", "2"
    ): SHAPE,
    Key(
        "assignors/rejoin.py",
        "partitions = 1 + max(self.partition.max(initial=0), other.partition.max(initial=0))",
        "0",
        "1",
    ): SHAPE,
    Key(
        "assignors/rejoin.py",
        "partitions = 1 + max(self.partition.max(initial=0), other.partition.max(initial=0))",
        "1",
        "2",
    ): SHAPE,
}
