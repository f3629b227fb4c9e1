"""Run the two server-side assignors over a batch of groups; rare iteration orders are computed key by key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.kernels import run
from groupledger.core.arrays.ragged import MemberAssignments, part
from groupledger.core.assignors.server import iteration_orders
from groupledger.core.assignors.server.iteration_orders import (
    find_paths,
    fresh_sizes,
    group_at,
    walk_members,
    walk_shared,
    walk_targets,
)
from groupledger.core.assignors.server.orders import room, table_size
from groupledger.core.assignors.server.server_group import (
    Names,
    ServerAssignment,
    ServerBatch,
    ServerPath,
    ServerStatus,
)
from groupledger.core.assignors.server.server_range import count_batch, sorted_members, write_batch
from groupledger.core.assignors.server.uniform import CurrentTargets, count_records, decide, write_records

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.batch import IntArray


class Walks(NamedTuple):
    """Iteration orders for `uniform`: members [M], topics of homogeneous groups [T], how many [G], current targets."""

    members: IntArray
    shared: IntArray
    shared_count: IntArray
    owned: CurrentTargets


def assign(name: str, batch: ServerBatch) -> ServerAssignment:
    """Assign every group of the batch by `uniform` or `range`; KeyError for another name.

    3 partitions over 2 members without targets -> 2 for the first in iteration order, 1 for the other.
    """
    return ASSIGNORS[name](batch)


def uniform(batch: ServerBatch, *, hands_on: bool = True) -> ServerAssignment:
    """Assign by `uniform`: each group by the algorithm for its subscriptions.

    `hands_on`: a member that stays below its quota hands its extra partition on; not so in Kafka 4.0.0.
    """
    groups, members, cells = len(batch.joining), len(batch.member_hash), _cells(batch)
    path, walks = find_walks(batch)
    status, bad = np.zeros(groups, np.int32), np.zeros(groups, np.int64)
    remade = np.zeros(members, np.bool_)
    log, rows = run(
        decide,
        batch,
        walks.members,
        walks.shared,
        walks.shared_count,
        walks.owned,
        hands_on,
        path,
        status,
        bad,
        remade,
        cells=cells,
    )
    start = np.zeros(members + 1, np.int64)
    run(count_records, batch, log, rows, status, start, cells=cells)
    topic, partition = np.empty(start[-1], np.int32), np.empty(start[-1], np.int32)
    tree = np.zeros(members, np.bool_)
    run(write_records, batch, walks.owned, log, rows, path, remade, start, topic, partition, tree, cells=cells)
    result = ServerAssignment(MemberAssignments(start, topic, partition), status, path, *_offenders(walks.owned, bad))
    _write_trees(batch, walks.owned, log, rows, result, tree)
    return result


def range_(batch: ServerBatch) -> ServerAssignment:
    """Assign by `range`: consecutive partitions of each topic for each of its subscribers."""
    groups, members, cells = len(batch.joining), len(batch.member_hash), _cells(batch)
    path = _paths(batch)
    start = np.zeros(members + 1, np.int64)
    run(count_batch, batch, start, cells=cells)
    topic, partition = np.empty(start[-1], np.int32), np.empty(start[-1], np.int32)
    tree = np.zeros(members, np.bool_)
    run(write_batch, batch, path, start, topic, partition, tree, cells=cells)
    nobody = np.full(groups, -1, np.int32)
    assigned = MemberAssignments(start, topic, partition)
    result = ServerAssignment(assigned, np.zeros(groups, np.int32), path, nobody, nobody)
    for member in np.flatnonzero(tree).tolist():
        _write_range_tree(batch, result, member)
    return result


ASSIGNORS: dict[str, Callable[[ServerBatch], ServerAssignment]] = {"range": range_, "uniform": uniform}
EARLIER: dict[str, Callable[[ServerBatch], ServerAssignment]] = {"uniform": partial(uniform, hands_on=False)}
"""The assignors of Kafka 4.0.0 that answer otherwise than those of 4.0.1 to 4.4 (KAFKA-18688)."""


def _cells(batch: ServerBatch) -> int:
    """Return the amount of work, to choose between compiled and plain kernels."""
    wanted = int(np.maximum(batch.topic_partitions, 0).sum())
    return 4 * (wanted + len(batch.target_topic) + len(batch.subscription_topic)) + 8 * len(batch.member_hash)


def _paths(batch: ServerBatch) -> IntArray:
    path = np.zeros(len(batch.joining), np.int32)
    run(find_paths, batch, path, cells=_cells(batch))
    return path


def find_walks(batch: ServerBatch) -> tuple[IntArray, Walks]:
    """Return each group's path, and all iteration orders before the decision; what a tree decides, key by key."""
    path = _paths(batch)
    cells, groups = _cells(batch), len(path)
    order, crowded = np.empty(len(batch.member_hash), np.int32), np.zeros(groups, np.bool_)
    run(walk_members, batch, order, crowded, cells=cells)
    for group in np.flatnonzero(crowded).tolist():
        seats = part(batch.member_start, group)
        order[seats] = iteration_orders.member_order(batch, group, order[seats])
    shared, count = np.empty(len(batch.name_hash), np.int32), np.zeros(groups, np.int32)
    crowded = np.zeros(groups, np.bool_)
    run(walk_shared, batch, order, path, shared, count, crowded, cells=cells)
    for group in np.flatnonzero(crowded).tolist():
        first = batch.member_start[group] + order[batch.member_start[group]]
        walked = iteration_orders.shared_topics(iteration_orders.TopicKeys(batch, group), _named(batch, first))
        shared[batch.topic_start[group] :][: len(walked)] = walked
    return path, Walks(order, shared, count, _owned(batch))


def _owned(batch: ServerBatch) -> CurrentTargets:
    topic, partition = np.empty_like(batch.target_topic), np.empty_like(batch.target_partition)
    tree = np.zeros(len(batch.member_hash), np.bool_)
    run(walk_targets, batch, topic, partition, tree, cells=_cells(batch))
    for member in np.flatnonzero(tree).tolist():
        held = part(batch.target_start, member)
        record = iteration_orders.pairs(batch.target_topic[held], batch.target_partition[held])
        topics = iteration_orders.TopicKeys(batch, _group_of(batch, member))
        topic[held], partition[held] = iteration_orders.columns(iteration_orders.target(topics, record))
    return CurrentTargets(topic, partition)


def _offenders(owned: CurrentTargets, bad: NDArray[np.int64]) -> tuple[IntArray, IntArray]:
    """Return topic and partition that made each group fail, -1 if none did."""
    none = np.full(len(bad), -1, np.int32)
    if not (bad >= 0).any():
        return none, none
    return np.where(bad >= 0, owned.topic[bad], none), np.where(bad >= 0, owned.partition[bad], none)


def _write_trees(
    batch: ServerBatch,
    owned: CurrentTargets,
    log: IntArray,
    rows: IntArray,
    result: ServerAssignment,
    tree: NDArray[np.bool_],
) -> None:
    """Write the records whose order a tree decides."""
    for member in np.flatnonzero(tree).tolist():
        group = _group_of(batch, member)
        mine = log[rows[group] : rows[group + 1]]
        mine = mine[mine[:, 0] == member - batch.member_start[group]]
        held = part(batch.target_start, member)
        fresh = fresh_sizes(group_at(batch, group), bool(result.path[group]))
        walked = iteration_orders.record(
            iteration_orders.TopicKeys(batch, group),
            iteration_orders.pairs(owned.topic[held], owned.partition[held]),
            iteration_orders.pairs(mine[:, 1], mine[:, 2]),
            fresh,
        )
        _put(result, member, walked)


def _write_range_tree(batch: ServerBatch, result: ServerAssignment, member: int) -> None:
    group = _group_of(batch, member)
    homogeneous = bool(result.path[group])
    first = batch.member_start[group] + sorted_members(group_at(batch, group))[0]
    topics, named = iteration_orders.TopicKeys(batch, group), _named(batch, first if homogeneous else member)
    known = len(iteration_orders.subscription(topics, named))
    capacity = table_size(room(known if homogeneous else len(named)))
    mine = part(result.assigned.start, member)
    given = iteration_orders.pairs(result.assigned.topic[mine], result.assigned.partition[mine])
    _put(result, member, iteration_orders.range_record(topics, named, capacity, given))


def _put(result: ServerAssignment, member: int, walked: iteration_orders.Pairs) -> None:
    mine, assigned = part(result.assigned.start, member), result.assigned
    assigned.topic[mine], assigned.partition[mine] = iteration_orders.columns(walked)


def _group_of(batch: ServerBatch, member: int) -> int:
    return int(np.searchsorted(batch.member_start, member, side="right")) - 1


def _named(batch: ServerBatch, member: int) -> IntArray:
    return batch.subscription_topic[part(batch.subscription_start, member)]


# Convert a server-side assignment to names: the coordinator's records, and Kafka's error if it fails.

TargetRows = dict[str, list[tuple[str, list[int]]]]
"""Topics and partitions of each member, in the order of its record."""


def written(batch: ServerBatch, names: Names, result: ServerAssignment, group: int) -> TargetRows:
    """Return each member's topics and partitions in the order of its target record: {"m": [("orders", [0, 2])]}."""
    first_topic = int(batch.topic_start[group])
    records: TargetRows = {}
    for member in range(batch.member_start[group], batch.member_start[group + 1]):
        record: list[tuple[str, list[int]]] = []
        mine = part(result.assigned.start, member)
        for local, partition in iteration_orders.pairs(result.assigned.topic[mine], result.assigned.partition[mine]):
            topic = names.topics[first_topic + local] or ""
            if not record or record[-1][0] != topic:
                record.append((topic, []))
            record[-1][1].append(partition)
        records[names.members[member]] = record
    return records


def path_word(path: IntArray, group: int) -> str:
    """Return `homogeneous` or `heterogeneous`."""
    return ServerPath(int(path[group])).name.lower()


def failure(batch: ServerBatch, result: ServerAssignment, group: int) -> str | None:
    """Return the class and message of what Kafka throws; None if it answers."""
    status = ServerStatus(int(result.status[group]))
    if status == ServerStatus.OK:
        return None
    if status == ServerStatus.LEFT_UNASSIGNED:
        return "PartitionAssignorException: Partitions were left unassigned"
    partition = int(result.bad_partition[group])
    count = int(batch.topic_partitions[batch.topic_start[group] + result.bad_topic[group]])
    return f"ArrayIndexOutOfBoundsException: Index {partition} out of bounds for length {count}"
