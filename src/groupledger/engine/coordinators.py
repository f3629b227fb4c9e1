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

from groupledger.core.batch import NONE
from groupledger.core.verdict import Verdict
from groupledger.engine.arrow_lists import column
from groupledger.engine.rows import RECORD_COLUMNS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.assignors.server.judgement import IdentifiedChange, Judgement
    from groupledger.core.assignors.server.log import Logged
    from groupledger.core.batch import IntArray, LongArray
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
    groups: pa.Table, records: pa.Table, topics: TopicsAt, topic_start: LongArray, default: str | None
) -> CoordinatorVerdicts:
    """Judge each snapshot of a KIP-848 group. `default` None: nothing is compared, of no group whose coordinator
    assigns.

    `topic_start` [G+1]: the topic rows of each group.
    """
    verdict, moment = np.full(len(groups), NONE, np.int32), np.full(len(groups), NONE, np.int64)
    counts: dict[int, Mapping[str, int]] = {}
    kinds = column(groups, c.GROUP_TYPE)
    if default is None:
        verdict[pc.not_equal(kinds, CLASSIC).to_numpy(zero_copy_only=False)] = Verdict.NOT_COMPARED
        return CoordinatorVerdicts(verdict, moment, counts)
    rows = np.flatnonzero(pc.fill_null(pc.equal(kinds, CONSUMER), False).to_numpy(zero_copy_only=False))
    if len(rows) == 0:
        return CoordinatorVerdicts(verdict, moment, counts)
    logs = _by_log(records, RECORD_COLUMNS)
    asked = _by_log(groups.take(pa.array(rows)).append_column(_ROW, pa.array(rows)), (c.LOG_PARTITION, c.OFFSET, _ROW))
    for key, snapshots in asked.items():
        offsets = [offset for _, offset, _ in snapshots]
        own = [row for *_, row in snapshots]
        named = np.concatenate([topics.topic[topic_start[row] : topic_start[row + 1]] for row in own])
        changes = topics.catalogue.changes(np.unique(named[named != NONE]))
        judged = _judged(logs.get(key, ()), changes, offsets, default)
        verdict[own] = [each.verdict for each in judged]
        moment[own] = [NONE if each.moment is None else each.moment for each in judged]
        for row, each in zip(own, judged, strict=True):
            if each.topics is not None:
                counts[row] = {name: topic.partitions for name, topic in each.topics.items()}
    return CoordinatorVerdicts(verdict, moment, counts)


def _by_log(rows: pa.Table, names: Sequence[str]) -> dict[GroupLog, list[tuple[Any, ...]]]:
    """These columns of each row, the log partition first, by cluster, group and log partition."""
    values = zip(*(column(rows, name).to_pylist() for name in names), strict=True)
    ids = (column(rows, name).to_pylist() for name in (c.CLUSTER_ID, c.GROUP_ID))
    found: defaultdict[GroupLog, list[tuple[Any, ...]]] = defaultdict(list)
    for cluster_id, group_id, value in zip(*ids, values, strict=True):
        found[cluster_id, group_id, value[0]].append(value)
    return found


def _judged(
    log: Sequence[tuple[Any, ...]], changes: Iterable[TopicChange], offsets: list[int], default: str
) -> list[Judgement]:
    """Judge each snapshot. Imports are local: small jobs without such groups need none of them."""
    from groupledger.core.assignors.server.judgement import judge_snapshots

    return judge_snapshots(_logged(log), [_as_judged(each) for each in changes], offsets, default)


def _logged(log: Sequence[tuple[Any, ...]]) -> Iterator[Logged]:
    """Rows of RECORD_COLUMNS -> records by offset; of two at one offset the one that the fold kept."""
    from groupledger.core.wire.faults import DecodeFault
    from groupledger.core.wire.offsets_log import decode

    ordered = sorted(log, key=lambda row: (row[1], row[2], row[3] or b"", row[4] is not None, row[4] or b""))
    for offset, same in groupby(ordered, key=itemgetter(1)):
        *_, timestamp, key, value = next(same)
        try:
            yield offset, timestamp, decode(key, value)
        except DecodeFault:
            yield offset, timestamp, None


def _as_judged(change: TopicChange) -> IdentifiedChange:
    from groupledger.core.assignors.server.group import TopicId
    from groupledger.core.assignors.server.judgement import IdentifiedChange
    from groupledger.core.wire.primitives import uuid_bytes

    try:
        known = TopicId(uuid_bytes(change.topic_id or ""))
    except ValueError:  # tables of users may give none, or another text
        known = None
    return IdentifiedChange(change.valid_from, change.topic, known, change.partition_count)
