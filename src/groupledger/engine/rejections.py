"""Groups that cannot be computed, found before anything is: code and message each, and the others go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.assignors import ASSIGNORS
from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import Column, column, encode, integers
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.slots import Mask

MEMBER_TWICE = "MEMBER_TWICE"
NEGATIVE_PARTITION_COUNT = "NEGATIVE_PARTITION_COUNT"
UNKNOWN_ASSIGNOR = "UNKNOWN_ASSIGNOR"


@dataclass(frozen=True, slots=True)
class Rejections:
    """Code and message by group row; `mask` [G+1] is True there (and False at the end, for rows of no group)."""

    by_group: dict[int, tuple[str, str]]
    mask: Mask

    @staticmethod
    def find(
        groups: pa.Table, members: pa.Table, topics: pa.Table, member_group: LongArray, topic_group: LongArray
    ) -> Rejections:
        """All rejections of a bucket; of several for one group the first kind counts."""
        found = {
            **_unknown_assignors(groups, member_group),
            **_negative_counts(topics, topic_group),
            **_twice(members, member_group),
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


def _unknown_assignors(groups: pa.Table, member_group: LongArray) -> dict[int, tuple[str, str]]:
    chosen = column(groups, r.CHOSEN)
    known = pc.is_in(chosen, value_set=pa.array(sorted(ASSIGNORS)))
    unknown = pc.and_(chosen.is_valid(), pc.invert(known)).to_numpy(zero_copy_only=False)
    peopled = np.bincount(member_group[member_group >= 0], minlength=len(groups)) > 0
    return {
        int(row): (
            UNKNOWN_ASSIGNOR,
            f"assignor is {chosen[int(row)].as_py()!r}; expected one of {', '.join(sorted(ASSIGNORS))}; "
            "name one for this group in assign.overrides, or use the scenario 'recorded'",
        )
        for row in np.flatnonzero(unknown & peopled)
    }
