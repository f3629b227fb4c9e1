"""Group epochs that no target was written for: coverage, or the snapshot of a group without members."""

import pytest

from groupledger.core.history import fold_group
from groupledger.core.wire.offsets_log import RecordKind
from groupledger.core.wire.records import ConsumerGroupMetadata
from tests.core.history.records import CLICKS, TOPICS, Log, ShareLog, head_of
from tests.core.history.test_modern import epochs, stable_pair


def test_epochs_that_never_got_a_target_are_coverage():
    """Members that join within the coordinator's delay are one target; of the epochs before it, only coverage tells."""
    log = Log()
    for number, name in enumerate("abc"):
        log.joined(name)
        log.epoch(2 + number)
    log.step(5, {"a": {CLICKS: (0,)}})
    log.epoch(6)
    log.epoch(7)
    log.step(8, {"a": {CLICKS: (1,)}})
    fold = log.fold()
    assert [(gap.kind, gap.from_value, gap.to_value) for gap in fold.coverage] == [
        ("target-epochs-skipped", 1, 5),
        ("target-epochs-skipped", 5, 8),
    ]
    assert {s.group_epoch for s in fold.group_snapshots} == {5, 8}
    assert all(s.complete for s in fold.group_snapshots)


def test_a_target_that_comes_when_the_group_is_an_epoch_further_skips_none():
    log = Log()
    log.joined("m")
    log.epoch(2)
    log.epoch(3)
    log.target("m", {CLICKS: (0,)})
    log.target_epoch(2)
    log.target_epoch(3)
    fold = log.fold()
    assert fold.coverage == []
    assert [(s.group_epoch, s.target_epoch) for s in fold.group_snapshots] == [(3, 2), (3, 3)]


@pytest.mark.parametrize("deleted", [True, False], ids=["its target first", "the group alone"])
def test_epochs_that_no_target_followed_before_the_group_ended_are_coverage(deleted):
    log = stable_pair()
    log.epoch(3)
    log.epoch(4)
    if deleted:
        log.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, None)
    log.epoch(None)
    (gap,) = log.fold().coverage
    assert (gap.kind, gap.incarnation, gap.from_value, gap.to_value) == ("target-epochs-skipped", 1, 2, None)
    assert "from 3 to 4" in gap.reason


@pytest.mark.parametrize("protocol", ["classic", "share"])
def test_epochs_that_another_type_took_the_place_of_are_coverage(protocol):
    log = ShareLog() if protocol == "classic" else Log()
    log.epoch(2)
    if protocol == "classic":
        log.classic(0)
    else:
        log.put(RecordKind.SHARE_GROUP_METADATA, ConsumerGroupMetadata(2, 0))
    gaps = [(gap.kind, gap.incarnation, gap.from_value, gap.to_value) for gap in log.fold().coverage]
    assert gaps == [("target-epochs-skipped", 1, 1, None)]


def emptied():
    """A group as Kafka 3.9 writes it: its epochs begin with 1, and the last of an empty group gets no target."""
    log = Log()
    log.joined("m")
    log.partition_counts(clicks=6)
    log.step(1, {"m": {CLICKS: (0,)}})
    log.left("m")
    log.partition_counts()
    log.epoch(2)
    return log


def test_where_an_epoch_of_an_empty_group_gets_no_target_it_is_a_snapshot():
    log = emptied()
    last = log.fold().group_snapshots[-1]
    assert (last.offset, last.group_epoch, last.target_epoch) == (log.rows[-1].offset, 2, 1)
    assert (last.state, last.snapshot_kind, last.members, last.complete) == ("Empty", "empty", 0, True)
    log.joined("n")
    log.partition_counts(clicks=6)
    log.step(3, {"n": {CLICKS: (0,)}})
    assert [s.group_epoch for s in log.fold().group_snapshots] == [1, 1, 1, 2, 3, 3]


def test_an_epoch_that_falls_in_an_empty_group_is_one_snapshot():
    log = emptied()
    log.epoch(1)
    assert [(s.incarnation, s.group_epoch, s.state) for s in log.fold().group_snapshots[-2:]] == [
        (1, 2, "Empty"),
        (2, 1, "Empty"),
    ]


@pytest.mark.parametrize("cut_after", range(1, 12))
def test_a_read_may_end_anywhere_in_a_group_that_empties(cut_after):
    whole = emptied().fold()
    rows = emptied().rows
    first = fold_group("eu-1", rows[:cut_after], None, TOPICS)
    rest = fold_group("eu-1", rows[cut_after:], head_of(first).state, TOPICS)
    assert first.group_snapshots + rest.group_snapshots == whole.group_snapshots
    assert head_of(rest).state == head_of(whole).state


def test_where_the_counts_are_deleted_the_target_of_an_empty_group_is_waited_for():
    """An upgraded coordinator deletes them, and writes a target of the epoch in which a group becomes empty."""
    log = emptied()
    log.rows.pop()
    log.put(RecordKind.CONSUMER_GROUP_PARTITION_METADATA, None)
    log.epoch(2)
    assert [s.group_epoch for s in log.fold().group_snapshots] == [1, 1, 1]
    log.target_epoch(2)
    assert epochs(log.fold())[-1] == (2, 2, "Empty", True)


@pytest.mark.parametrize("cut_after", range(1, 8))
def test_a_read_may_end_between_epochs_without_a_target(cut_after):
    log = Log()
    log.joined("m")
    log.epoch(2)
    log.epoch(3)
    log.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, None)
    log.epoch(4)
    log.target("m", {CLICKS: (0,)})
    log.target_epoch(4)
    log.epoch(5)
    log.epoch(None)
    whole = log.fold()
    first = fold_group("eu-1", log.rows[:cut_after], None, TOPICS)
    rest = fold_group("eu-1", log.rows[cut_after:], head_of(first).state, TOPICS)
    assert first.coverage + rest.coverage == whole.coverage
    assert [(gap.from_value, gap.to_value) for gap in whole.coverage] == [(1, 4), (4, None)]
