"""Groups that none of our assignors can answer for: nothing is wrong with them, so what was recorded stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.batch import NONE
from groupledger.core.verdict import Verdict
from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import column
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.core.batch import IntArray
    from groupledger.core.slots import Mask

UNKNOWN_ASSIGNOR = "UNKNOWN_ASSIGNOR"
NO_ASSIGNOR = "NO_ASSIGNOR"
OTHER_PROTOCOL_TYPE = "OTHER_PROTOCOL_TYPE"
OTHER_GROUP_TYPE = "OTHER_GROUP_TYPE"

OTHER_TYPES = {"share": Verdict.CANNOT_TELL_SHARE_GROUP, "streams": Verdict.CANNOT_TELL_STREAMS_GROUP}
"""Types of groups that are recorded and not recomputed."""
CANNOT_BE_ASKED = (
    Verdict.CANNOT_TELL_ASSIGNOR,
    Verdict.CANNOT_TELL_NO_ASSIGNOR,
    Verdict.CANNOT_TELL_PROTOCOL_TYPE,
    *OTHER_TYPES.values(),
)
MOST_SHOWN = 200
"""Characters of a name that anybody may have given himself."""


def without_assignor(groups: pa.Table, names: Sequence[str], peopled: Mask) -> IntArray:
    """[G] the verdict on groups with members that are of a type of their own, or whose chosen assignor is none of
    `names`; NONE for others.
    """
    chosen = column(groups, r.CHOSEN)
    unknown = pc.and_(chosen.is_valid(), pc.invert(pc.is_in(chosen, value_set=pa.array(names, pa.string()))))
    unnamed = pc.fill_null(pc.equal(chosen, ""), False).to_numpy(zero_copy_only=False)
    verdict = np.where(unnamed, Verdict.CANNOT_TELL_NO_ASSIGNOR, Verdict.CANNOT_TELL_ASSIGNOR)
    found = np.where(unknown.to_numpy(zero_copy_only=False), verdict, NONE)
    types = column(groups, c.GROUP_TYPE)
    for group_type, cannot_tell in OTHER_TYPES.items():
        found[pc.fill_null(pc.equal(types, group_type), False).to_numpy(zero_copy_only=False)] = cannot_tell
    return np.where(peopled, found, NONE).astype(np.int32)


def reasons(
    groups: pa.Table, without: IntArray, prejudged: IntArray, names: Sequence[str]
) -> dict[int, tuple[str, str]]:
    """Code and message by group row. `without` is of `without_assignor`; `prejudged` has other kinds of groups."""
    verdict = np.where(without == NONE, prejudged, without)
    rows = np.flatnonzero(np.isin(verdict, CANNOT_BE_ASKED))
    return {int(row): _reason(groups, int(row), Verdict(int(verdict[row])), names) for row in rows}


def _reason(groups: pa.Table, row: int, verdict: Verdict, names: Sequence[str]) -> tuple[str, str]:
    def of(name: str) -> str:
        return repr(column(groups, name)[row].as_py())[:MOST_SHOWN]

    if verdict is Verdict.CANNOT_TELL_PROTOCOL_TYPE:
        return OTHER_PROTOCOL_TYPE, (
            f"protocol type is {of(c.PROTOCOL_TYPE)}; expected 'consumer': what members say and are given has another "
            "form; its bytes are in log_records"
        )
    if verdict in OTHER_TYPES.values():
        return OTHER_GROUP_TYPE, (
            f"the group is of type {of(c.GROUP_TYPE)}, whose coordinator's assignor is not recomputed here; "
            "what was recorded stands"
        )
    if verdict is Verdict.CANNOT_TELL_NO_ASSIGNOR:
        return NO_ASSIGNOR, (
            "the record names no assignor; what was recorded stands; "
            f"to recompute it, name one of {', '.join(sorted(names))} for this group in assign.overrides"
        )
    if column(groups, c.GROUP_TYPE)[row].as_py() != "classic":
        return UNKNOWN_ASSIGNOR, (
            f"the group is of type {of(c.GROUP_TYPE)}, and its coordinator's assignor is not uniform or range; "
            "what was recorded stands"
        )
    return UNKNOWN_ASSIGNOR, (
        f"assignor is {of(r.CHOSEN)}; expected one of {', '.join(sorted(names))}; what was recorded stands; "
        "to recompute it, write it as a custom assignor of this name and give its module:function for this group in "
        "assign.overrides (docs/guides/decide/write-an-assignor.md)"
    )
