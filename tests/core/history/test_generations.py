"""Generations and incarnations: identity-edge-cases, "Generations", and what no capture has."""

import pytest

from tests.core.history.captured import folded
from tests.core.history.records import CLICKS, Log, member

EDGE = "edge/offsets"


def course(fold):
    """(incarnation, type, kind, generation or group epoch) of each snapshot."""
    return [
        (s.incarnation, s.group_type, s.snapshot_kind, s.generation if s.group_type == "classic" else s.group_epoch)
        for s in fold.group_snapshots
    ]


def gaps(fold):
    return [(gap.kind, gap.from_value, gap.to_value, gap.offset) for gap in fold.coverage]


@pytest.mark.parametrize("group", ["del-java", "del-rdk", "expire"])
def test_a_deleted_classic_group_starts_again_at_generation_0(group):
    snapshots = folded(EDGE, group).group_snapshots
    second = [s for s in snapshots if s.incarnation == 2]
    assert [s.snapshot_kind for s in snapshots if s.incarnation == 1][-2:] == ["empty", "deleted"]
    assert (second[0].snapshot_kind, second[0].generation) == ("birth", 0)
    assert second[0].previous_snapshot_id is None
    assert second[1].previous_snapshot_id == second[0].snapshot_id
    assert gaps(folded(EDGE, group)) == []


@pytest.mark.parametrize("group", ["del-new", "expire-new"])
def test_a_kip_848_group_starts_and_starts_again_at_epoch_2(group):
    fold = folded(EDGE, group)
    first = [next(s for s in fold.group_snapshots if s.incarnation == incarnation) for incarnation in (1, 2)]
    assert [(s.group_epoch, s.target_epoch, s.previous_snapshot_id, s.complete) for s in first] == [
        (2, 2, None, True)
    ] * 2
    assert {gap.kind for gap in fold.coverage} == {"target-epochs-skipped"}


def test_a_deleted_classic_name_comes_back_as_kip_848():
    assert course(folded(EDGE, "del-to-new"))[3:6] == [
        (1, "classic", "generation", 3),
        (1, "classic", "empty", 4),
        (1, "classic", "deleted", None),
    ]
    assert course(folded(EDGE, "del-to-new"))[6] == (2, "consumer", "fold", 2)
    assert gaps(folded(EDGE, "del-to-new")) == []


def test_previous_never_crosses_an_incarnation():
    for group in ("del-java", "del-rdk", "expire", "del-new", "expire-new", "del-to-new"):
        snapshots = folded(EDGE, group).group_snapshots
        by_id = {s.snapshot_id: s for s in snapshots}
        for s in snapshots:
            assert s.previous_snapshot_id is None or by_id[s.previous_snapshot_id].incarnation == s.incarnation
        assert sum(s.previous_snapshot_id is None for s in snapshots) == 2


def test_a_group_that_only_went_empty_goes_on_counting():
    assert course(folded(EDGE, "empty-again"))[4:6] == [
        (1, "classic", "empty", 4),
        (1, "classic", "generation", 5),
    ]


@pytest.mark.parametrize(
    ("group", "gap"),
    [("mute-java", (3, 5, 225)), ("mute-rdk", (3, 5, 41)), ("up-coop-first", (0, 2, 163))],
)
def test_skipped_generations_are_stated_and_not_called_loss(group, gap):
    assert gaps(folded(EDGE, group)) == [("generations-skipped", *gap)]
    assert "los" not in folded(EDGE, group).coverage[0].reason


def test_a_skipped_generation_can_still_be_cited():
    (newcomer,) = [
        m
        for m in folded(EDGE, "mute-java").member_snapshots
        if m.offset == 225 and m.subscription_generation == 4 and not m.claimed
    ]
    assert newcomer.client_id == "mute-java-m3"


def test_target_epochs_are_skipped_where_group_epochs_are_not():
    assert gaps(folded(EDGE, "st-rdk-new")) == [
        ("target-epochs-skipped", 3, 5, 46),
        ("target-epochs-skipped", 7, 9, 96),
    ]


def test_offset_gaps_are_no_coverage():
    for group in ("tx-classic", "tx-new"):
        assert gaps(folded(EDGE, group)) == []


def test_a_group_that_hangs_looks_healthy_in_the_log():
    fold = folded(EDGE, "rc-java-re")
    last = fold.group_snapshots[-1]
    assert (last.generation, last.state, last.complete) == (7, "Stable", True)
    assert gaps(fold) == []


def test_a_generation_that_falls_without_a_tombstone_starts_an_incarnation():
    log = Log()
    log.classic(0)
    log.classic(7, [member("m", {"clicks": (0, 1)})])
    log.classic(1, [member("n", {"clicks": (0,)})])
    fold = log.fold()
    assert course(fold) == [
        (1, "classic", "birth", 0),
        (1, "classic", "generation", 7),
        (2, "classic", "generation", 1),
    ]
    assert gaps(fold) == [
        ("generations-skipped", 0, 7, 1),
        ("tombstone-missing", 7, 1, 2),
    ]
    assert fold.group_snapshots[2].previous_snapshot_id is None
    moved = [
        (c.incarnation, c.partition, c.from_member_id, c.to_member_id, c.held_since) for c in fold.ownership_changes
    ]
    assert moved[2:] == [(1, 0, "m", None, 1_000), (1, 1, "m", None, 1_000), (2, 0, None, "n", None)]


def test_a_change_of_type_without_a_tombstone_starts_an_incarnation_and_ends_what_was_held():
    log = Log()
    log.classic(0)
    log.classic(1, [member("m", {"clicks": (0,)})])
    log.joined("m2")
    log.step(2, {"m2": {CLICKS: (0,)}})
    fold = log.fold()
    assert [c[:3] for c in course(fold)] == [
        (1, "classic", "birth"),
        (1, "classic", "generation"),
        (2, "consumer", "fold"),
        (2, "consumer", "fold"),
    ]
    changes = [(c.incarnation, c.from_member_id, c.to_member_id, c.offset) for c in fold.ownership_changes]
    assert changes == [(1, None, "m", 1), (1, "m", None, 2), (2, None, "m2", 6)]
    assert gaps(fold) == []


def test_a_deleted_group_holds_nothing_any_more():
    log = Log()
    log.classic(0)
    log.classic(1, [member("m", {"clicks": (0, 1)})])
    log.deleted()
    fold = log.fold()
    last = fold.group_snapshots[-1]
    assert (last.snapshot_kind, last.state, last.members, last.generation) == ("deleted", "Dead", 0, None)
    assert last.previous_snapshot_id == fold.group_snapshots[1].snapshot_id
    ended = [(c.partition, c.from_member_id, c.to_member_id, c.snapshot_id) for c in fold.ownership_changes[2:]]
    assert ended == [(0, "m", None, last.snapshot_id), (1, "m", None, last.snapshot_id)]


def test_a_second_tombstone_says_nothing_new_and_one_without_a_group_starts_the_history_late():
    log = Log()
    log.deleted()
    log.deleted()
    fold = log.fold()
    assert course(fold) == [(1, "classic", "deleted", None)]
    assert gaps(fold) == [("history-begins-late", None, None, 0)]
    assert fold.counts.tombstones == {"GroupMetadata": 2}


@pytest.mark.parametrize("first", [1, 4])
def test_a_first_record_after_generation_1_is_stated(first):
    """Before generation 1 a group has no member that was given anything, whether its empty record is there or not."""
    log = Log()
    log.classic(first, [member("m", {"clicks": (0,)})])
    log.classic(first + 1)
    fold = log.fold()
    assert gaps(fold) == ([] if first == 1 else [("history-begins-late", None, first, 0)])
    since = fold.ownership_changes[-1].held_since
    assert since == (0 if first == 1 else None), "nobody held anything before generation 1"


def test_a_tombstone_of_the_type_that_the_group_no_longer_has_ends_nothing():
    log = Log()
    log.joined("m")
    log.step(2, {"m": {CLICKS: (0,)}})
    log.deleted()
    assert {s.snapshot_kind for s in log.fold().group_snapshots} == {"fold"}
    log = Log()
    log.classic(0)
    log.epoch(None)
    assert [s.snapshot_kind for s in log.fold().group_snapshots] == ["birth"]


def test_members_in_the_generation_of_an_empty_record_are_no_rewrite():
    log = Log()
    log.classic(3)
    log.classic(3, [member("m", {"clicks": (0,)})])
    assert [(s.snapshot_kind, s.first_snapshot_id) for s in log.fold().group_snapshots] == [
        ("empty", None),
        ("generation", None),
    ]


def test_only_the_first_empty_record_of_generation_0_is_a_birth():
    log = Log()
    log.classic(0)
    log.classic(0)
    log.classic(1)
    assert [s.snapshot_kind for s in log.fold().group_snapshots] == ["birth", "empty", "empty"]
    assert {s.state for s in log.fold().group_snapshots} == {"Empty"}


def test_a_member_without_topics_that_is_assigned_is_a_finding_of_its_own():
    """Kafka's sticky assignors give to it where it comes first when they compare the subscriptions."""
    log = Log()
    log.classic(1, [member("a", {"clicks": (0, 1)}, topics=()), member("b", {"grow": (0,)}, topics=("clicks",))])
    found = [(each.code, each.member_id, each.evidence) for each in log.fold().violations]
    assert found == [
        ("ASSIGNED_WITHOUT_TOPICS", "a", "assigned clicks 0-1, but its subscription does not name any topic"),
        ("ASSIGNED_NOT_SUBSCRIBED", "b", "assigned grow 0, but its subscription does not name the topic"),
    ]
