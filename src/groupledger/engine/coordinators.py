"""Verdicts on what the coordinators of KIP-848 groups wrote: from a bucket's log records and its topics, by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.arrays.batch import NONE
from groupledger.core.rebalance.verdict import Verdict
from groupledger.engine.arrow_lists import column
from groupledger.engine.bucket_rows import RECORD_COLUMNS, Parts
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import IntArray, LongArray
    from groupledger.core.assignors.server.judgement import IdentifiedChange, Judgement, Logged
    from groupledger.core.history.topics import TopicChange
    from groupledger.engine.topic_catalogue import TopicsAt

CLASSIC, CONSUMER = "classic", "consumer"
GroupLog = tuple[str, str, int | None]

_ROW = "row"


class CoordinatorVerdicts(NamedTuple):
    """Of G groups; NONE for those of other types."""

    verdict: IntArray  # `Verdict`
    moment: LongArray  # microseconds: of the topics whose answer equals the target; NONE: of none
    counts: dict[int, Mapping[str, int]]  # by group row, of those topics, where no listing says them


def coordinator_verdicts(
    parts: Parts, topics: TopicsAt, topic_start: LongArray, default: str | None
) -> CoordinatorVerdicts:
    """Judge each snapshot of a KIP-848 group, and a classic one's that was converted from one.

    `default` None: nothing is compared, of no group whose coordinator assigns. `topic_start` [G+1]: the topic rows of
    each group.
    """
    groups = parts.groups
    verdict, moment = np.full(len(groups), NONE, np.int32), np.full(len(groups), NONE, np.int64)
    counts: dict[int, Mapping[str, int]] = {}
    kinds = column(groups, c.GROUP_TYPE)
    if default is None:
        verdict[:] = Verdict.NOT_COMPARED
        return CoordinatorVerdicts(verdict, moment, counts)
    converted = carried_over(parts)
    for row, carried in converted.items():
        verdict[row] = Verdict.CARRIED_OVER if carried else Verdict.NOT_COMPARED
    rows = np.flatnonzero(pc.fill_null(pc.equal(kinds, CONSUMER), False).to_numpy(zero_copy_only=False))
    if len(rows) == 0:
        return CoordinatorVerdicts(verdict, moment, counts)
    logs = _by_log(parts.records, RECORD_COLUMNS)
    asked = _by_log(groups.take(pa.array(rows)).append_column(_ROW, pa.array(rows)), (c.LOG_PARTITION, c.OFFSET, _ROW))
    for key, snapshots in asked.items():
        offsets = [offset for _, offset, _ in snapshots]
        own = [row for *_, row in snapshots]
        named = np.concatenate([topics.topic[topic_start[row] : topic_start[row + 1]] for row in own])
        changes = topics.catalogue.changes(np.unique(named[named != NONE]))
        taken = {offset: converted[row] for _, offset, row in snapshots if row in converted}
        judged = _judged(logs.get(key, ()), changes, offsets, default, taken)
        verdict[own] = [each.verdict for each in judged]
        moment[own] = [NONE if each.moment is None else each.moment for each in judged]
        for row, each in zip(own, judged, strict=True):
            if each.topics is not None:
                counts[row] = {name: topic.partitions for name, topic in each.topics.items()}
    return CoordinatorVerdicts(verdict, moment, counts)


def carried_over(parts: Parts) -> dict[int, bool]:
    """Return by group row of a group's first snapshot after a conversion whether its assignment is the one before.

    A classic group's snapshot of the kind `fold` is one, a KIP-848 group's if the one before is a classic group's.
    """
    groups, members, _ = parts
    kind = column(groups, c.GROUP_TYPE)
    previous = pc.index_in(column(groups, c.PREVIOUS_SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID))
    up = pc.and_(pc.equal(kind, CONSUMER), pc.equal(kind.take(previous), CLASSIC))
    down = pc.and_(pc.equal(kind, CLASSIC), pc.equal(column(groups, c.SNAPSHOT_KIND), "fold"))
    rows = pc.indices_nonzero(pc.fill_null(pc.or_kleene(up, down), False))
    if len(rows) == 0:
        return {}
    now, before = (column(groups, name).take(rows) for name in (c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID))
    named = members.filter(pc.is_in(column(members, c.SNAPSHOT_ID), value_set=pa.concat_arrays([now, before])))
    lists = pc.coalesce(column(named, c.TARGET), column(named, c.RECORDED)).to_pylist()
    ids = (column(named, name).to_pylist() for name in (c.SNAPSHOT_ID, c.MEMBER_ID))
    owned: defaultdict[str, dict[str, set[tuple[str, int]]]] = defaultdict(dict)
    for snapshot, member, own in zip(*ids, lists, strict=True):
        owned[snapshot][member] = {
            (each[c.TOPIC] or each[c.TOPIC_ID], n) for each in own or () for n in each[c.PARTITIONS]
        }
    return {
        row: old is not None and all(own == owned[old].get(member, set()) for member, own in owned[new].items())
        for row, new, old in zip(rows.to_pylist(), now.to_pylist(), before.to_pylist(), strict=True)
    }


def _by_log(rows: pa.Table, names: Sequence[str]) -> dict[GroupLog, list[tuple[Any, ...]]]:
    """Return these columns of each row, the log partition first, by cluster, group and log partition."""
    values = zip(*(column(rows, name).to_pylist() for name in names), strict=True)
    ids = (column(rows, name).to_pylist() for name in (c.CLUSTER_ID, c.GROUP_ID))
    found: defaultdict[GroupLog, list[tuple[Any, ...]]] = defaultdict(list)
    for cluster_id, group_id, value in zip(*ids, values, strict=True):
        found[cluster_id, group_id, value[0]].append(value)
    return found


def _judged(
    log: Sequence[tuple[Any, ...]],
    changes: Iterable[TopicChange],
    offsets: list[int],
    default: str,
    taken: Mapping[int, bool],
) -> list[Judgement]:
    """Judge each snapshot. Imports are local: small jobs without such groups need none of them."""
    from groupledger.core.assignors.server.judgement import judge_snapshots

    return judge_snapshots(_logged(log), [_as_judged(each) for each in changes], offsets, default, taken)


def _logged(log: Sequence[tuple[Any, ...]]) -> Iterator[Logged]:
    """Rows of RECORD_COLUMNS -> records by offset; of two at one offset the one that the fold kept."""
    from groupledger.core.wire.codec import DecodeFault
    from groupledger.core.wire.offsets_log import decode

    ordered = sorted(log, key=lambda row: (row[1], row[2], row[3] or b"", row[4] is not None, row[4] or b""))
    for offset, same in groupby(ordered, key=itemgetter(1)):
        *_, timestamp, key, value = next(same)
        try:
            yield offset, timestamp, decode(key, value)
        except DecodeFault:
            yield offset, timestamp, None


def _as_judged(change: TopicChange) -> IdentifiedChange:
    from groupledger.core.assignors.server.judgement import IdentifiedChange
    from groupledger.core.assignors.server.server_group import TopicId
    from groupledger.core.wire.codec import uuid_bytes

    try:
        known = TopicId(uuid_bytes(change.topic_id or ""))
    except ValueError:  # tables of users may give none, or another text
        known = None
    return IdentifiedChange(change.valid_from, change.topic, known, change.partition_count)
