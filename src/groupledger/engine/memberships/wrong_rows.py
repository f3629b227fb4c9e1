"""Find the groups whose rows cannot be used, each with the first thing that is wrong; the others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged
from groupledger.core.batch import NONE
from groupledger.core.input_codes import GroupCode, RecordStandsCode, ScenarioCode, SnapshotCode
from groupledger.engine.arrow_lists import Column, encode, integers, list_starts, valid
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.kinds import any_of
from groupledger.engine.memberships.plan import known_assignor, unknown_assignor
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.slots import Mask
    from groupledger.engine.memberships.members import Members
    from groupledger.engine.memberships.topics import SharedTopics

Faults = dict[int, tuple[str, str]]
"""Code and message by group."""


class WrongRows:
    """Collects faults of groups; of several the one that is looked for first counts, for the least member id."""

    def __init__(self, group: LongArray, member_ids: Column) -> None:
        """Rows of members: the group of each, and its id."""
        self.group, self.member_ids = group, member_ids
        self.faults: Faults = {}

    def add(self, code: str, wrong: Mask, say: Callable[[int], str]) -> None:
        """Refuse the groups of rows in the mask; `say` gives the message about a row."""
        rows = np.flatnonzero(wrong)
        if len(rows) == 0:
            return
        ids = pc.fill_null(self.member_ids.take(pa.array(rows)), "")
        order = pc.sort_indices(pa.table({"g": self.group[rows], "id": ids}), [("g", "ascending"), ("id", "ascending")])
        rows = rows[order.to_numpy()]
        first = rows[np.diff(self.group[rows], prepend=NONE) != 0]
        for row in first.tolist():
            self.faults.setdefault(int(self.group[row]), (code, say(row)))

    def of(self, row: int) -> str:
        """Name a row's member."""
        return f"member {self.member_ids[row].as_py()!r}"


def of_members(members: Members, group: LongArray, by: dict[str, Column]) -> Faults:
    """Return what is wrong with the rows of members themselves."""
    rows = WrongRows(group, members.ids)
    for name, keys in by.items():
        rows.add(SnapshotCode.MISSING_VALUE, ~valid(keys), lambda _, name=name: f"{name} is null; expected a value")  # type: ignore[misc]
    rows.add(
        SnapshotCode.MISSING_VALUE,
        ~valid(members.ids),
        lambda _: "member_id is null; expected the id of a member, and no row where a group has none",
    )
    _add_topics(rows, members)
    for name, owned in ((d.OWNED, members.owned), (c.HELD, members.held)):
        for code, mask, words in (
            (SnapshotCode.MISSING_VALUE, owned.null_inside, "has a null in it; expected topics and partitions"),
            (SnapshotCode.NEGATIVE_PARTITION, owned.negative, "has a partition below 0; expected >= 0"),
            (
                SnapshotCode.BAD_VALUE,
                owned.unreadable,
                "has no partition of a topic; expected texts such as 'orders-3'",
            ),
        ):
            rows.add(code, mask, lambda row, name=name, words=words: f"{name} of {rows.of(row)} {words}")  # type: ignore[misc]
    for name, wrong in ((d.GENERATION, members.bad_generation), (c.MEMBER_ORDER, members.bad_order)):
        rows.add(
            SnapshotCode.BAD_VALUE,
            wrong,
            lambda row, name=name: f"{name} of {rows.of(row)} is not a whole number of 32 bits",  # type: ignore[misc]
        )
    _add_places(rows, members, group)
    rows.add(
        GroupCode.MEMBER_TWICE,
        _twice(group, _codes(members.ids)),
        lambda row: f"{rows.of(row)} stands twice; expected once",
    )
    return rows.faults


def _add_topics(rows: WrongRows, members: Members) -> None:
    rows.add(
        SnapshotCode.MISSING_VALUE,
        ~valid(members.topics),
        lambda row: f"topics of {rows.of(row)} is null; expected the topics that it subscribes to, or an empty list",
    )
    names = pc.list_flatten(members.topics)
    if names.null_count:
        inside = any_of(list_starts(members.topics), ~valid(names))
        rows.add(SnapshotCode.MISSING_VALUE, inside, lambda row: f"topics of {rows.of(row)} has a null in it")


def _add_places(rows: WrongRows, members: Members, group: LongArray) -> None:
    placed = valid(members.order)
    if not placed.any():
        return
    some = np.bincount(group[placed], minlength=int(group.max()) + 1) > 0
    rows.add(
        SnapshotCode.MISSING_VALUE,
        ~placed & some[group],
        lambda row: f"member_order of {rows.of(row)} is null; expected a place of each member of a group, or of none",
    )
    place = integers(members.order, NONE)
    rows.add(
        SnapshotCode.BAD_MEMBER_ORDER, placed & (place < 0), lambda row: f"member_order of {rows.of(row)} is below 0"
    )
    rows.add(
        SnapshotCode.PLACE_TWICE,
        placed & _twice(group, np.where(placed, place, NONE)),
        lambda row: f"member_order of {rows.of(row)} is that of another member too",
    )


def _codes(texts: Column) -> LongArray:
    _, (code,) = encode([texts])
    return code.astype(np.int64)


def _twice(group: LongArray, code: LongArray | IntArray) -> Mask:
    """Return the rows whose value stands in another row of the group too; NONE is no value."""
    key = group * (int(code.max(initial=0)) + 2) + code
    order = np.argsort(key, kind="stable")
    same = np.diff(key[order]) == 0
    found = np.zeros(len(key), np.bool_)
    found[order[1:][same]] = True
    found[order[:-1][same]] = True
    found &= code != NONE
    return found


def of_assignors(members: Members, group: LongArray, groups: int) -> tuple[list[str | None], Faults]:
    """Return the assignor of each group by the column of members, and what is wrong with it."""
    rows = WrongRows(group, members.ids)
    dictionary, (code,) = encode([members.assignor])
    rows.add(
        RecordStandsCode.NO_ASSIGNOR,
        code == NONE,
        lambda row: f"the assignor of {rows.of(row)} is null; expected a name",
    )
    chosen = np.full(groups, NONE, np.int32)
    chosen[group] = code  # of equal ones any
    rows.add(
        SnapshotCode.BAD_VALUE,
        code != chosen[group],
        lambda row: "members name different assignors; expected one name in all rows of a group",
    )
    names = dictionary.to_pylist()
    known = [known_assignor(name) for name in names]
    unknown = np.array([each is None for each in (*known, "")], np.bool_)
    rows.add(
        ScenarioCode.UNKNOWN_ASSIGNOR,
        unknown[code],
        lambda row: unknown_assignor(names[code[row]], in_rows=True),
    )
    return [known[at] if at != NONE else None for at in chosen.tolist()], rows.faults


def of_topics(members: Members, group: LongArray, topics: SharedTopics, scope: LongArray) -> Faults:
    """Return the groups whose members subscribe to a topic that has a row which cannot be used. `scope`: [G]."""
    if not topics.wrong:
        return {}
    start, names = list_starts(members.topics), pc.list_flatten(members.topics)
    owner = ragged.owners(start)
    dictionary, (code,) = encode([names])
    texts = dictionary.to_pylist()
    wrong: dict[tuple[int, int], Any] = {}
    numbers = {name: at for at, name in enumerate(texts)}
    for (of_scope, name), fault in topics.wrong.items():
        if name in numbers:
            wrong[of_scope, numbers[name]] = fault
    keys = scope[group[owner]] * (len(texts) + 1) + code
    sought = np.array([of_scope * (len(texts) + 1) + at for of_scope, at in wrong], np.int64)
    found: Faults = {}
    for at in np.flatnonzero(np.isin(keys, sought) & (code != NONE)).tolist():
        of_group = int(group[owner[at]])
        fault = wrong[int(scope[of_group]), int(code[at])]
        found[of_group] = min(found.get(of_group, fault), fault)
    return found
