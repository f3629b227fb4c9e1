"""Groups that cannot be computed, found before anything is: code and message each, and the others go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from groupledger.core.batch import NONE
from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import Column, column, encode, valid
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.slots import Mask
    from groupledger.core.snapshots import TopicViews
    from groupledger.engine.topic_catalogue import TopicsAt

MEMBER_TWICE = "MEMBER_TWICE"
NEGATIVE_PARTITION_COUNT = "NEGATIVE_PARTITION_COUNT"
PARTITIONS_OVER_LIMIT = "PARTITIONS_OVER_LIMIT"
ID_OVER_LIMIT = "ID_OVER_LIMIT"


@dataclass(frozen=True, slots=True)
class Rejections:
    """Code and message by group row; `mask` [G+1] is True there (and False at the end, for rows of no group)."""

    by_group: dict[int, tuple[str, str]]
    mask: Mask

    @staticmethod
    def of_rows(groups: pa.Table, members: pa.Table, tie: LongArray) -> Rejections:
        """Those that the rows alone show; of several for one group the last kind here counts.

        `tie`: the group row of each member row, NONE where its snapshot is only one before.
        """
        found = {
            **_twice(members, tie),
            **_unnamed(members, tie),
            **_before(groups),
        }
        return Rejections._of(found, len(groups))

    def with_topics(self, topics: TopicsAt, topic_group: LongArray, names: Column, max_partitions: int) -> Rejections:
        """These, and those that the topics of the others show. `topic_group`, `names`: of each topic row."""
        found = {
            **_too_many_partitions(topics.views, topic_group, len(self.mask) - 1, max_partitions),
            **_negative_counts(topics, topic_group, names),
        }
        return Rejections._of(found | self.by_group, len(self.mask) - 1) if found else self

    @staticmethod
    def _of(found: dict[int, tuple[str, str]], groups: int) -> Rejections:
        mask = np.zeros(groups + 1, np.bool_)
        mask[list(found)] = True
        return Rejections(found, mask)


def _before(groups: pa.Table) -> dict[int, tuple[str, str]]:
    """What the pipeline rejected before the shuffle."""
    codes, messages = column(groups, r.FAULT_CODE), column(groups, r.FAULT_MESSAGE)
    rows = np.flatnonzero(codes.is_valid().to_numpy(zero_copy_only=False))
    return {int(row): (codes[row].as_py(), messages[row].as_py()) for row in rows}


def _twice(members: pa.Table, group: LongArray) -> dict[int, tuple[str, str]]:
    own = np.flatnonzero(group >= 0)
    ids: Column = column(members, c.MEMBER_ID).take(pa.array(own))
    _, (code,) = encode([ids])
    keys = group[own] * (int(code.max(initial=0)) + 1) + code
    order = np.argsort(keys, kind="stable")
    again = order[1:][np.diff(keys[order]) == 0]
    return {
        int(group[own[row]]): (
            MEMBER_TWICE,
            f"member {ids[int(row)].as_py()!r} stands twice in the snapshot; expected once; "
            "mend the rows of member_snapshots",
        )
        for row in again[np.argsort(-code[again], kind="stable")]
    }


def _negative_counts(topics: TopicsAt, group: LongArray, names: Column) -> dict[int, tuple[str, str]]:
    catalogue, change = topics.catalogue, topics.change
    rows = np.flatnonzero(change != NONE)
    return {
        int(group[row]): (
            NEGATIVE_PARTITION_COUNT,
            f"partition count of topic {names[int(row)].as_py()!r} is {int(catalogue.listings.count[change[row]])}; "
            "expected >= 0; mend the rows of topic_snapshots",
        )
        for row in rows[catalogue.negative[change[rows]]]
    }


def _too_many_partitions(
    views: TopicViews, group: LongArray, groups: int, max_partitions: int
) -> dict[int, tuple[str, str]]:
    """By the largest count of any moment that may be tried: nothing is laid out for a group that claims too much."""
    most = np.max([views.now, views.before, views.before_that, views.after], axis=0, initial=0)
    total = np.bincount(group, weights=most, minlength=groups)
    return {
        int(row): (
            PARTITIONS_OVER_LIMIT,
            f"topics of the group have {int(total[row])} partitions; expected at most {max_partitions} "
            "(limits.max_partitions_per_group)",
        )
        for row in np.flatnonzero(total > max_partitions)
    }


def _unnamed(members: pa.Table, group: LongArray) -> dict[int, tuple[str, str]]:
    """The pipeline nulls a member id over the limit before the shuffle."""
    unnamed = ~valid(column(members, c.MEMBER_ID)) & (group >= 0)
    return {
        int(row): (ID_OVER_LIMIT, "a member id is longer than allowed; expected at most limits.max_id_bytes")
        for row in group[unnamed]
    }
