"""Run the two server-side assignors over a batch of groups; rare iteration orders are computed key by key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.assignors.server import exact
from groupledger.core.assignors.server.changes import CurrentTargets
from groupledger.core.assignors.server.range_ import count_batch, sorted_members, write_batch
from groupledger.core.assignors.server.record import fresh_sizes
from groupledger.core.assignors.server.spec import ServerAssignment, ServerBatch
from groupledger.core.assignors.server.uniform import count_records, decide, write_records
from groupledger.core.assignors.server.walks import (
    find_paths,
    group_at,
    walk_members,
    walk_shared,
    walk_targets,
)
from groupledger.core.kernels import run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray


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
    result = ServerAssignment(start, topic, partition, status, path, *_offenders(walks.owned, bad))
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
    result = ServerAssignment(start, topic, partition, np.zeros(groups, np.int32), path, nobody, nobody)
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
    """Return each group's path, and all iteration orders before the decision; `exact` computes what a tree decides."""
    path = _paths(batch)
    cells, groups = _cells(batch), len(path)
    order, crowded = np.empty(len(batch.member_hash), np.int32), np.zeros(groups, np.bool_)
    run(walk_members, batch, order, crowded, cells=cells)
    for group in np.flatnonzero(crowded).tolist():
        seats = slice(batch.member_start[group], batch.member_start[group + 1])
        order[seats] = exact.member_order(batch, group, order[seats])
    shared, count, crowded = np.empty(len(batch.name_hash), np.int32), np.zeros(groups, np.int32), crowded.copy()
    crowded[:] = False
    run(walk_shared, batch, order, path, shared, count, crowded, cells=cells)
    for group in np.flatnonzero(crowded).tolist():
        first = batch.member_start[group] + order[batch.member_start[group]]
        walked = exact.shared_topics(exact.TopicKeys(batch, group), _named(batch, first))
        shared[batch.topic_start[group] :][: len(walked)] = walked
    return path, Walks(order, shared, count, _owned(batch))


def _owned(batch: ServerBatch) -> CurrentTargets:
    topic, partition = np.empty_like(batch.target_topic), np.empty_like(batch.target_partition)
    tree = np.zeros(len(batch.member_hash), np.bool_)
    run(walk_targets, batch, topic, partition, tree, cells=_cells(batch))
    for member in np.flatnonzero(tree).tolist():
        held = slice(batch.target_start[member], batch.target_start[member + 1])
        record = exact.pairs(batch.target_topic[held], batch.target_partition[held])
        topic[held], partition[held] = exact.columns(exact.target(_topics(batch, member), record))
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
        held = slice(batch.target_start[member], batch.target_start[member + 1])
        fresh = fresh_sizes(group_at(batch, group), bool(result.path[group]))
        walked = exact.record(
            exact.TopicKeys(batch, group),
            exact.pairs(owned.topic[held], owned.partition[held]),
            exact.pairs(mine[:, 1], mine[:, 2]),
            fresh,
        )
        _put(result, member, walked)


def _write_range_tree(batch: ServerBatch, result: ServerAssignment, member: int) -> None:
    group = _group_of(batch, member)
    homogeneous = bool(result.path[group])
    first = batch.member_start[group] + sorted_members(group_at(batch, group))[0]
    topics, named = exact.TopicKeys(batch, group), _named(batch, first if homogeneous else member)
    known = len(exact.subscription(topics, named))
    capacity = exact.range_capacity(len(named), known, homogeneous=homogeneous)
    mine = slice(result.assigned_start[member], result.assigned_start[member + 1])
    given = exact.pairs(result.assigned_topic[mine], result.assigned_partition[mine])
    _put(result, member, exact.range_record(topics, named, capacity, given))


def _put(result: ServerAssignment, member: int, walked: exact.Pairs) -> None:
    mine = slice(result.assigned_start[member], result.assigned_start[member + 1])
    result.assigned_topic[mine], result.assigned_partition[mine] = exact.columns(walked)


def _group_of(batch: ServerBatch, member: int) -> int:
    return int(np.searchsorted(batch.member_start, member, side="right")) - 1


def _topics(batch: ServerBatch, member: int) -> exact.TopicKeys:
    return exact.TopicKeys(batch, _group_of(batch, member))


def _named(batch: ServerBatch, member: int) -> IntArray:
    return batch.subscription_topic[batch.subscription_start[member] : batch.subscription_start[member + 1]]
