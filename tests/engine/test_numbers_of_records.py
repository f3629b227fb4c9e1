"""The numbers of a row whose verdict is that the record equals the answer, counted again from the record itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from groupledger.core.history import Folded
from groupledger.core.history.fold_rows import GroupSnapshotRow, MemberSnapshotRow
from groupledger.tables import columns as c
from tests.core.history.captured import folded, log_of
from tests.engine.bucket_rows import computed, group_row, member_row, topic_row, wire
from tests.engine.captured_rows import BEFORE_COMPACTION, CAPTURES, captured_groups, rows_of

EQUAL = ("exact", "equal-sets", "topic-unknown-to-leader")
Owned = dict[tuple[str, str, int], str | None]
"""Member, topic, partition -> the topic's id where the log or a listing gives one."""


class Recorded(NamedTuple):
    """What the log says of one snapshot: of its own members before and after, and what they said they own."""

    before: Owned
    after: Owned
    goal: Owned  # of a KIP-848 group its target, else `after`
    claimed: Owned  # still owned: nothing of a claim that is a memory
    left: frozenset[tuple[str, int]] = frozenset()  # of topics still wanted, targets of who left

    @property
    def withheld(self) -> set[tuple[str, int]]:
        """Owned by a member of a classic group, and given to nobody until it has revoked them."""
        return set() if self.claimed is self.before else partitions(self.claimed) - partitions(self.after)


def owned(member: str, lists: Any) -> Owned:
    """Partitions of a member by the name of the topic, or its id where the fold knew no name."""
    return {(member, name or topic_id, p): topic_id for topic_id, name, numbers in lists or () for p in numbers}


def partitions(held: Iterable[tuple[str, str, int]]) -> set[tuple[str, int]]:
    return {(topic, number) for _, topic, number in held}


def same(one: str | None, other: str | None) -> bool:
    """Whether two ids may be of one topic; another of the same name has another."""
    return one is None or other is None or one == other


def records_of(facts: Folded) -> dict[str, Recorded]:
    """Each snapshot of a group as it was folded, nothing computed."""
    members: dict[str, list[MemberSnapshotRow]] = {each.snapshot_id: [] for each in facts.group_snapshots}
    for row in facts.member_snapshots:
        members[row.snapshot_id].append(row)
    found: dict[str, Recorded] = {}
    epochs: dict[str | None, int | None] = {}
    for group in facts.group_snapshots:
        before = group.previous_snapshot_id
        said = recorded_of(group, members[group.snapshot_id], members.get(before or "", []))
        if group.target_epoch is not None and epochs.get(before) == group.target_epoch:
            there, last = {each.member_id for each in members[group.snapshot_id]}, found[before or ""]
            left = last.left | partitions(each for each in last.goal if each[0] not in there)
            wanted = {
                topic for each in members[group.snapshot_id] for topic in each.topics or group.shared_topics or ()
            }
            said = said._replace(left=frozenset(each for each in left - partitions(said.goal) if each[0] in wanted))
        found[group.snapshot_id], epochs[group.snapshot_id] = said, group.target_epoch
    return found


def recorded_of(group: GroupSnapshotRow, own: list[MemberSnapshotRow], earlier: list[MemberSnapshotRow]) -> Recorded:
    """One snapshot; a static member that came back has what its predecessor had."""
    by_id = {each.member_id: each for each in earlier}
    by_instance = {each.group_instance_id: each for each in earlier if each.group_instance_id}
    said = Recorded({}, {}, {}, {})
    for each in own:
        known = by_id.get(each.member_id) or by_instance.get(each.group_instance_id or "")
        said.before.update(owned(each.member_id, known and known.recorded))
        said.after.update(owned(each.member_id, each.recorded))
        said.goal.update(owned(each.member_id, each.recorded if each.target is None else each.target))
        if group.assignor != "sticky" and each.subscription_version != 0:
            said.claimed.update(owned(each.member_id, each.claimed))
    return said if group.group_type == "classic" else said._replace(claimed=said.before)


@pytest.fixture(scope="module", params=(*CAPTURES, BEFORE_COMPACTION))
def equal_rows(request):
    """(row of `rebalances`, its record) of each row whose verdict is that answer and record are equal."""
    groups = captured_groups(request.param)
    told = {id_: said for group in groups for id_, said in records_of(folded(log_of(request.param), group)).items()}
    rows = [row for group in groups for row in rows_of(request.param, group)]
    return [
        (row, told[row[c.SNAPSHOT_ID]])
        for row in computed(rows)["rebalances"]
        if row[c.VERDICT].startswith(EQUAL) and row[c.MEMBERS]
    ]


def places(equal_rows, differs):
    """Group, generation, verdict of each row that `differs`."""
    return [
        (row[c.GROUP_ID], row[c.GENERATION], row[c.VERDICT], wrong)
        for row, said in equal_rows
        if (wrong := differs(row, said))
    ]


def test_kept_and_added_are_what_was_recorded(equal_rows):
    def differs(row, said):
        found = row[c.KEPT] + row[c.ADDED], row[c.KEPT] + row[c.REVOKED] + row[c.LOST]
        expected = len(said.after), len(said.before)
        return found != expected and (found, expected)

    assert places(equal_rows, differs) == []


def test_kept_is_what_a_member_had_and_still_has(equal_rows):
    def differs(row, said):
        stated = {member for member, *_ in said.claimed}
        kept = sum(each[0] in stated for each in said.before.keys() & said.after.keys())
        return row[c.KEPT] != kept and (row[c.KEPT], kept)

    assert places(equal_rows, differs) == []


def test_partitions_are_those_recorded_and_those_withheld(equal_rows):
    """An answer that equals the record gives away all that it knows of; so it knows of nothing else."""

    def differs(row, said):
        if row[c.LOST]:
            return False
        goal = partitions(said.goal) | said.left | said.withheld
        found = row[c.PARTITIONS], row[c.PARTITIONS] - row[c.UNASSIGNED]
        expected = len(goal), len(partitions(said.after) & goal)
        return found != expected and (found, expected)

    assert places(equal_rows, differs) == []


def test_a_follow_up_is_what_a_member_owns_and_is_not_given(equal_rows):
    def differs(row, said):
        expected = bool(said.claimed.keys() - said.after.keys() or said.goal.keys() - said.after.keys())
        return row[c.FOLLOW_UP] != expected and (row[c.FOLLOW_UP], expected)

    assert places(equal_rows, differs) == []


def test_moves_are_from_the_member_that_had_a_partition_to_another(equal_rows):
    """A partition that is withheld moves too: to whom is seen in the follow-up rebalance."""

    def differs(row, said):
        if row[c.LOST]:
            return False
        had = {each[1:]: (each[0], topic_id) for each, topic_id in said.before.items()}
        gets = [(had[each[1:]], each[0], topic_id) for each, topic_id in said.goal.items() if each[1:] in had]
        moved = sum(owner != member and same(earlier, now) for (owner, earlier), member, now in gets)
        moved += len(said.withheld & had.keys())
        return row[c.MOVES] != moved and (row[c.MOVES], moved)

    assert places(equal_rows, differs) == []


def test_partitions_that_a_leader_left_out_are_named():
    rows = [
        group_row("g/1", assignor="range", shared_topics=["t"]),
        member_row("g/1", 0, "A", recorded=wire([("t", 0)])),
        member_row("g/1", 1, "B", recorded=wire([("t", 1)])),
        topic_row("g/1", "t", 3),
    ]
    result = computed(rows)
    (found,) = (row for row in result["violations"] if row[c.CODE] == "LEFT_OUT")
    assert found[c.EVIDENCE] == "t 2: assigned to nobody, though others of the topic were assigned"
    assert result["rebalances"][0][c.VERDICT] == "invalid"
