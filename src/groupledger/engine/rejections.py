"""Groups that cannot be computed, found before anything is: code and message each, and the others go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import Column, column, encode, integers, valid
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.core.batch import LongArray
    from groupledger.core.slots import Mask

MEMBER_TWICE = "MEMBER_TWICE"
NEGATIVE_PARTITION_COUNT = "NEGATIVE_PARTITION_COUNT"
UNKNOWN_ASSIGNOR = "UNKNOWN_ASSIGNOR"
PARTITIONS_OVER_LIMIT = "PARTITIONS_OVER_LIMIT"
ID_OVER_LIMIT = "ID_OVER_LIMIT"


class Ties(NamedTuple):
    """The group row that each member row and each topic row belongs to; NONE: its snapshot is only one before."""

    member: LongArray
    topic: LongArray


@dataclass(frozen=True, slots=True)
class Rejections:
    """Code and message by group row; `mask` [G+1] is True there (and False at the end, for rows of no group)."""

    by_group: dict[int, tuple[str, str]]
    mask: Mask

    @staticmethod
    def find(
        groups: pa.Table, members: pa.Table, topics: pa.Table, ties: Ties, max_partitions: int, names: Sequence[str]
    ) -> Rejections:
        """All rejections of a bucket; of several for one group the last kind here counts. `names`: of assignors."""
        found = {
            **_unknown_assignors(groups, ties.member, names),
            **_too_many_partitions(topics, ties.topic, len(groups), max_partitions),
            **_negative_counts(topics, ties.topic),
            **_twice(members, ties.member),
            **_unnamed(members, ties.member),
            **_before(groups),
        }
        mask = np.zeros(len(groups) + 1, np.bool_)
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


def _negative_counts(topics: pa.Table, group: LongArray) -> dict[int, tuple[str, str]]:
    count = integers(column(topics, r.COUNT_NOW), 0)
    names = column(topics, c.TOPIC)
    return {
        int(group[row]): (
            NEGATIVE_PARTITION_COUNT,
            f"partition count of topic {names[int(row)].as_py()!r} is {int(count[row])}; expected >= 0; "
            "mend the rows of topic_snapshots",
        )
        for row in np.flatnonzero((count < 0) & (group >= 0))
    }


def _too_many_partitions(
    topics: pa.Table, group: LongArray, groups: int, max_partitions: int
) -> dict[int, tuple[str, str]]:
    """By the largest count of any moment that may be tried: nothing is laid out for a group that claims too much."""
    moments = (r.COUNT_NOW, r.COUNT_BEFORE, r.COUNT_BEFORE_THAT, r.COUNT_AFTER)
    most = np.max([integers(column(topics, name), 0) for name in moments], axis=0)
    own = group >= 0
    total = np.bincount(group[own], weights=most[own], minlength=groups)
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


def _unknown_assignors(groups: pa.Table, member_group: LongArray, names: Sequence[str]) -> dict[int, tuple[str, str]]:
    chosen = column(groups, r.CHOSEN)
    known = pc.is_in(chosen, value_set=pa.array(sorted(names)))
    unknown = pc.and_(chosen.is_valid(), pc.invert(known)).to_numpy(zero_copy_only=False)
    peopled = np.bincount(member_group[member_group >= 0], minlength=len(groups)) > 0
    return {
        int(row): (
            UNKNOWN_ASSIGNOR,
            f"assignor is {chosen[int(row)].as_py()!r}; expected one of {', '.join(sorted(names))}; "
            "name one for this group in assign.overrides, or use the scenario 'recorded'",
        )
        for row in np.flatnonzero(unknown & peopled)
    }
