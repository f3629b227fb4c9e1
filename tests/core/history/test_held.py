"""Ownership changes between given snapshots are those of the log that the snapshots were made from."""

from operator import attrgetter

import pytest

from groupledger.core.history import HeldSnapshot, HoldingMember, held_by, held_changes
from tests.core.history.captured import every_group, folded
from tests.core.history.histories import conversions


def snapshots(fold):
    holders = {row.snapshot_id: [] for row in fold.group_snapshots}
    for row in fold.member_snapshots:
        holders[row.snapshot_id].append(HoldingMember(row.member_id, row.recorded, row.target, row.pending_revocation))
    return [
        HeldSnapshot(
            row.cluster_id,
            row.group_id,
            row.snapshot_id,
            row.incarnation,
            row.offset,
            row.observed_at,
            row.generation,
            row.group_epoch,
            held_by(holders[row.snapshot_id]),
        )
        for row in fold.group_snapshots
    ]


def plainly(fold):
    return [row._replace(log_partition=None) for row in fold.ownership_changes]


@pytest.mark.parametrize(("log", "group"), every_group())
def test_snapshots_of_a_captured_group_say_what_its_log_says(log, group):
    fold = folded(log, group)
    given = sorted(snapshots(fold), key=attrgetter("incarnation", "offset", "snapshot_id"))
    assert list(held_changes(given)) == plainly(fold)


def test_and_so_do_those_of_a_group_that_changes_its_type():
    fold = conversions().fold()
    assert list(held_changes(snapshots(fold))) == plainly(fold)


def snapshot(offset, held, *, incarnation=1, generation=None):
    return HeldSnapshot("c", "g", f"table/c/{offset}", incarnation, offset, 1_000 * offset, generation, None, held)


T0 = ((None, "t", (0,)),)


def told(changes):
    return [
        (row.offset, row.incarnation, row.from_member_id, row.to_member_id, row.held_since, row.at) for row in changes
    ]


def test_since_when_is_known_only_where_the_snapshot_before_says_who_held_what():
    first = [snapshot(1, {"a": T0}), snapshot(2, {"a": (), "b": T0})]
    assert told(held_changes(first)) == [(1, 1, None, "a", None, 1_000), (2, 1, "a", "b", None, 2_000)]
    born = [snapshot(1, {"a": T0}, generation=1), *first[1:]]
    assert told(held_changes(born))[1] == (2, 1, "a", "b", 1_000, 2_000)
    unsaid = [*first, snapshot(3, None), snapshot(4, {"c": T0}), snapshot(5, {})]
    assert told(held_changes(unsaid))[2:] == [(4, 1, "b", "c", 2_000, 4_000), (5, 1, "c", None, None, 5_000)]


def test_an_incarnation_ends_what_was_held():
    rows = [snapshot(1, {"a": T0}), snapshot(2, {"a": T0}, incarnation=2)]
    assert told(held_changes(rows)) == [
        (1, 1, None, "a", None, 1_000),
        (2, 1, "a", None, None, 2_000),
        (2, 2, None, "a", None, 2_000),
    ]
    assert list(held_changes([])) == []
