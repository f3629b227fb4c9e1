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
    Key("assignors/sorting.py", "if len(keys) > FEW:", ">", ">="): "where one way of sorting takes over from the other",
    Key(
        "assignors/movements.py", "mixed = (int(topic) * 1_000_003 + int(source)) * 1_000_003 + int(target)", "*", "+"
    ): "buckets of a table of our own, which is walked in no order: others hold the same",
    Key(
        "assignors/general.py", "negative = phantom_partition(claims, claims.total + at) < 0", "<", "<="
    ): "partition 0 of a topic that has partitions is there, so it is no phantom",
    Key(
        "assignors/balance.py", "if len(h.previous) > 0:", "0", "1"
    ): "where there is one partition, nobody has two more than another: nothing moves either way",
    Key(
        "assignors/strict.py", "previous = h.previous[slot] if len(h.previous) > 0 else NONE", "0", "1"
    ): "where there is one partition, nobody has two more than another: nothing moves either way",
    Key(
        "assignors/librdkafka.py", "if not sizes or max(sizes) - min(sizes) <= 1:", "-", "+"
    ): "a short way out: where no two differ by two, the long way finds nobody to take from",
    Key(
        "step.py", "doubtful = shared[slot] & ~found if shared.any() else np.zeros(0, np.bool_)", "&", "|"
    ): "more entries are looked up a second time, to the same end",
    Key(
        "assignors/server/walks.py", "keys[member] = late | (slot << 31) | (g.members - 1 - member)", "31", "32"
    ): "a wider field of a key: the order is the same",
    Key(
        "assignors/server/range_.py",
        "rank = g.instance_rank[member] if static else (np.int64(1) << 31) + g.member_rank[member]",
        "1",
        "2",
    ): "above all ranks of static members, or further above",
    Key(
        "assignors/server/heterogeneous.py",
        "log = with_room(log, used, 2 * (plan.owner_start[topic + 1] - plan.owner_start[topic]))",
        "2",
        "3",
    ): ROOM,
}
