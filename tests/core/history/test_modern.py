"""KIP-848 groups: folds, epochs, what is complete, conversions."""

import pytest

from groupledger.core.history import FoldSettings, fold_group
from groupledger.core.wire.consumer_protocol import ConsumerProtocolSubscription
from groupledger.core.wire.offsets_log import RecordKind
from tests.core.history.captured import CLUSTER, catalog, folded, log_rows
from tests.core.history.histories import conversions
from tests.core.history.records import CLICKS, GROW, TOPICS, Log, head_of

EDGE = "edge/offsets"


def epochs(fold):
    return [(s.group_epoch, s.target_epoch, s.state, s.complete) for s in fold.group_snapshots]


def stable_pair():
    log = Log()
    log.joined("m")
    log.joined("n")
    log.step(2, {"m": {CLICKS: (0, 1)}, "n": {CLICKS: (2,)}})
    return log


def test_one_step_is_folded_where_the_target_is_complete_and_where_ownership_changes():
    """Epoch 3 of a captured group: target at 25-29, current assignments at 30-43."""
    fold = folded(EDGE, "del-new")
    step = [(s.offset, s.group_epoch, s.target_epoch, s.state) for s in fold.group_snapshots if 25 <= s.offset <= 43]
    assert step == [
        (29, 3, 3, "Reconciling"),
        (31, 3, 3, "Reconciling"),
        (33, 3, 3, "Reconciling"),
        (43, 3, 3, "Stable"),
    ]
    members = [m for m in fold.member_snapshots if m.offset == 31]
    assert [(m.recorded[0][2] if m.recorded else (), m.pending_revocation, m.member_epoch) for m in members] == [
        ((0, 1, 2), ((CLICKS, "clicks", (3, 4, 5)),), 2),
        ((), (), 3),
    ]
    assert [m.target for m in members] == [((CLICKS, "clicks", (0, 1, 2)),), ((CLICKS, "clicks", (3, 4, 5)),)]


def test_a_pending_partition_is_held_until_the_member_acknowledges():
    changes = [
        (c.partition, c.offset, c.from_member_id is None, c.to_member_id is None)
        for c in folded(EDGE, "del-new").ownership_changes
    ]
    assert [c for c in changes if c[0] == 3][:3] == [(3, 19, True, False), (3, 33, False, True), (3, 43, True, False)]


@pytest.mark.parametrize("name", ["dev/offsets", "edge/offsets"])
def test_all_folds_of_whole_histories_are_complete(name):
    folds = [s for g in log_rows(name) for s in folded(name, g).group_snapshots if s.group_type == "consumer"]
    assert len(folds) > 80
    assert all(s.complete for s in folds)
    assert {s.state for s in folds} == {"Stable", "Reconciling", "Empty", "Dead"} - (
        {"Dead"} if name[0] == "d" else set()
    )


def test_regular_expressions_subscribe_to_what_they_resolved_to():
    fold = folded(EDGE, "rc-new-re")
    assert {s.shared_topics for s in fold.group_snapshots if s.members} == {("re-fast", "re-less", "re-slow")}
    log = Log()
    log.joined("m", ("clicks",), regex="g.*")
    log.expression("g.*", ("grow", "clicks"))
    log.step(2, {"m": {CLICKS: (0,)}})
    log.put(RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION, None, regular_expression="g.*")
    log.step(3, {"m": {CLICKS: (0,)}})
    assert [s.shared_topics for s in log.fold().group_snapshots[::2]] == [("clicks", "grow"), ("clicks",)]


def test_a_fold_that_compaction_cut_is_not_complete_until_all_members_are_at_one_epoch():
    fold = folded("compacted/offsets", "c-new")
    assert [(s.offset, s.state, s.complete) for s in fold.group_snapshots] == [
        (58, "Reconciling", False),
        (59, "Reconciling", False),
        (61, "Stable", True),
    ]
    assert [(gap.kind, gap.from_value, gap.to_value) for gap in fold.coverage] == [("history-begins-late", None, 5)]
    before = folded("compacted/offsets-before", "c-new")
    assert {row.member_id: row.recorded for row in fold.member_snapshots[-2:]} == {
        row.member_id: row.recorded for row in before.member_snapshots if row.offset == 61
    }


def test_what_a_compacted_log_shows_first_is_held_since_nobody_knows_when():
    log = Log()
    log.joined("m")
    log.step(9, {"m": {CLICKS: (0,)}})
    log.epoch(10)
    log.left("m")
    (began, ended) = log.fold().ownership_changes
    assert (began.from_member_id, began.to_member_id, ended.to_member_id) == (None, "m", None)
    assert ended.held_since is None


@pytest.mark.parametrize("cut_after", range(1, 9))
def test_an_epoch_cut_by_the_end_of_a_read_waits_for_the_next_read(cut_after):
    """group epoch 3, two targets, their end, a member's steps: every place the read may end at."""
    log = stable_pair()
    known = len(log.rows)
    log.epoch(3)
    log.target("m", {CLICKS: (0,)})
    log.target("n", {CLICKS: (1, 2)})
    log.target_epoch(3)
    log.current("m", 2, {CLICKS: (0,)}, {CLICKS: (1,)})
    log.current("m", 3, {CLICKS: (0,)})
    log.current("n", 3, {CLICKS: (1, 2)})
    log.current("n", 3, {CLICKS: (1, 2)})
    whole = log.fold()
    first = fold_group("eu-1", log.rows[: known + cut_after], None, TOPICS)
    rest = fold_group("eu-1", log.rows[known + cut_after :], head_of(first).state, TOPICS)
    assert first.group_snapshots + rest.group_snapshots == whole.group_snapshots
    assert all(s.complete for s in whole.group_snapshots)


def test_a_fold_amid_an_open_target_is_not_complete():
    log = stable_pair()
    log.epoch(3)
    log.target("m", {CLICKS: (0, 1, 2)})
    log.current("n", 2, {}, {CLICKS: (2,)})
    assert epochs(log.fold())[-1] == (3, 2, "Reconciling", False)


def test_an_epoch_may_write_no_target_of_a_member_and_epochs_differ():
    log = stable_pair()
    log.epoch(3)
    log.target_epoch(3)
    fold = log.fold()
    assert epochs(fold)[-1] == (3, 3, "Stable", True)
    assert [(m.member_epoch, m.target) for m in fold.member_snapshots[-2:]] == [
        (2, ((CLICKS, "clicks", (0, 1)),)),
        (2, ((CLICKS, "clicks", (2,)),)),
    ]


def test_a_skipped_group_epoch_cuts_the_folds_until_all_members_are_at_one_epoch():
    log = stable_pair()
    log.epoch(5)
    log.target("m", {CLICKS: (0,)})
    log.target("n", {CLICKS: (1, 2)})
    log.target_epoch(5)
    log.current("m", 5, {CLICKS: (0,)})
    log.current("n", 5, {CLICKS: (2, 1)})
    fold = log.fold()
    assert [(gap.kind, gap.from_value, gap.to_value) for gap in fold.coverage] == [
        ("epochs-skipped", 2, 5),
        ("target-epochs-skipped", 2, 5),
    ]
    assert [s.complete for s in fold.group_snapshots[-3:]] == [False, False, True]


def test_a_target_without_its_group_epoch_is_not_complete():
    log = Log()
    log.joined("m")
    log.target("m", {CLICKS: (0,)})
    log.target_epoch(2)
    assert epochs(log.fold()) == [(None, 2, "Reconciling", False)]


def test_a_falling_epoch_starts_an_incarnation_and_keeps_what_no_tombstone_deleted():
    log = stable_pair()
    log.step(3, {"m": {CLICKS: (0, 1, 2)}, "n": {}})
    log.epoch(2)
    fold = log.fold()
    last = fold.group_snapshots[-1]
    assert (last.incarnation, last.previous_snapshot_id, last.complete, last.members) == (2, None, False, 2)
    ended = [c for c in fold.ownership_changes if c.offset == last.offset and c.incarnation == 1]
    began = [c for c in fold.ownership_changes if c.offset == last.offset and c.incarnation == 2]
    assert {(c.partition, c.from_member_id, c.to_member_id) for c in ended} == {(p, "m", None) for p in range(3)}
    assert {(c.partition, c.from_member_id, c.to_member_id) for c in began} == {(p, None, "m") for p in range(3)}
    assert ("tombstone-missing", 3, 2) in [(gap.kind, gap.from_value, gap.to_value) for gap in fold.coverage]


def test_a_classic_group_goes_on_as_kip_848_and_back_without_a_gap():
    """The broker writes the old type's tombstone, then the members; epochs count on from the generation."""
    fold = conversions().fold()
    assert fold.coverage == []
    assert sorted({(s.incarnation, s.group_type) for s in fold.group_snapshots}) == [(1, "classic"), (1, "consumer")]
    assert all(s.complete for s in fold.group_snapshots)
    inside = next(m for m in fold.member_snapshots if m.member_id == "c" and m.member_epoch == 6)
    assert (inside.claimed, inside.claimed_generation, inside.subscription_version) == (
        ((CLICKS, "clicks", (0, 1)),),
        6,
        3,
    )
    native = next(m for m in fold.member_snapshots if m.member_id == "m")
    assert (native.claimed, native.subscription_version) == (None, None)


def test_topics_that_members_share_stand_once():
    log = Log()
    log.joined("m", ("clicks", "grow"))
    log.joined("n", ("clicks", "grow"))
    log.step(2, {"m": {CLICKS: (0,)}, "n": {GROW: (0,)}})
    log.joined("o", ("grow",))
    log.step(3, {"m": {CLICKS: (1,)}, "n": {GROW: (0,)}, "o": {}})
    fold = log.fold()
    first, last = fold.group_snapshots[0], fold.group_snapshots[-1]
    assert (first.shared_topics, first.subscribed_topics) == (("clicks", "grow"), None)
    assert {m.topics for m in fold.member_snapshots if m.offset == first.offset} == {None}
    assert (last.shared_topics, last.subscribed_topics) == (None, ("clicks", "grow"))
    assert [m.topics for m in fold.member_snapshots if m.offset == last.offset] == [("clicks", "grow")] * 2 + [
        ("grow",)
    ]


def test_a_partition_held_twice_is_a_finding():
    log = stable_pair()
    log.current("n", 2, {CLICKS: (1, 2)})
    (finding,) = log.fold().violations
    assert (finding.code, finding.severity, finding.topic, finding.partition) == (
        "DOUBLE_ASSIGNED",
        "error",
        "clicks",
        1,
    )
    assert finding.evidence == "clicks 1 recorded for 2 members at once: m, n"


def test_a_topic_whose_name_is_not_known_is_its_id():
    log = Log()
    log.joined("m")
    log.step(2, {"m": {"AAAAAAAAAAAAAAAAAAAAAQ": (0,)}})
    fold = log.fold()
    assert fold.member_snapshots[-1].recorded == (("AAAAAAAAAAAAAAAAAAAAAQ", None, (0,)),)
    assert (fold.ownership_changes[0].topic_id, fold.ownership_changes[0].topic) == ("AAAAAAAAAAAAAAAAAAAAAQ", None)


def test_a_broken_record_leaves_a_hole_and_the_fold_goes_on():
    log = stable_pair()
    log.broken(RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_id="n")
    log.epoch(3)
    log.target("m", {CLICKS: (0,)})
    log.target("n", {CLICKS: (1, 2)})
    log.target_epoch(3)
    log.current("m", 3, {CLICKS: (0,)})
    log.current("n", 3, {CLICKS: (2, 1)})
    fold = log.fold()
    assert [(gap.kind, gap.from_value, gap.to_value) for gap in fold.coverage] == [("record-unreadable", 2, None)]
    assert [s.complete for s in fold.group_snapshots[-3:]] == [False, False, True]
    assert [s.previous_snapshot_id is None for s in fold.group_snapshots[-3:]] == [True, False, False]
    assert fold.counts.quarantined == {"TRUNCATED": 1}


def test_rows_of_a_capture_come_out_in_the_order_of_their_offsets():
    for group, rows in log_rows(EDGE).items():
        fold = fold_group(CLUSTER, rows, None, catalog("edge"))
        for table in (fold.group_snapshots, fold.member_snapshots, fold.ownership_changes, fold.coverage):
            assert [row.offset for row in table] == sorted(row.offset for row in table), group


def test_a_cut_stays_where_a_member_holds_what_no_target_says():
    """The target record of an epoch that is not there may have been n's: nothing is taken for whole."""
    log = stable_pair()
    log.epoch(5)
    log.target("m", {CLICKS: (0,)})
    log.target_epoch(5)
    log.current("m", 5, {CLICKS: (0,)})
    log.current("n", 5, {CLICKS: (1, 2)})
    assert {s.complete for s in log.fold().group_snapshots[-3:]} == {False}


def test_a_large_group_has_a_snapshot_where_the_target_is_complete_and_where_all_have_reached_it():
    log = Log()
    for name in "abcd":
        log.joined(name)
    log.step(2, {name: {CLICKS: (place,)} for place, name in enumerate("abcd")})
    log.epoch(3)
    log.left("b")
    log.target("a", {CLICKS: (0, 1)})
    log.target_epoch(3)
    log.current("a", 3, {CLICKS: (0, 1)})
    small, large = (fold_group("eu-1", log.rows, None, TOPICS, settings=FoldSettings(step_members=n)) for n in (4, 2))
    assert [(s.offset, s.state) for s in large.group_snapshots] == [
        (9, "Reconciling"),
        (13, "Stable"),
        (19, "Reconciling"),
        (20, "Stable"),
    ]
    assert len(small.group_snapshots) == 8
    assert [row[:11] for row in large.ownership_changes] == [row[:11] for row in small.ownership_changes]
    assert head_of(large).incarnation == 1


def test_a_target_of_an_epoch_that_the_group_has_not_reached_is_not_complete():
    log = stable_pair()
    log.target("m", {CLICKS: (0,)})
    log.target_epoch(3)
    assert epochs(log.fold())[-1] == (2, 3, "Reconciling", False)


def test_a_static_member_that_left_does_not_keep_a_cut_open():
    log = Log()
    log.joined("m")
    log.joined("n")
    log.epoch(9)
    log.target("m", {CLICKS: (0,)})
    log.target("n", {CLICKS: (1,)})
    log.target_epoch(9)
    log.current("m", -2, {CLICKS: (0,)})
    log.current("n", 9, {CLICKS: (1,)})
    assert [s.complete for s in log.fold().group_snapshots] == [False, False, True]


def test_a_member_that_must_still_give_up_a_partition_is_not_settled():
    log = stable_pair()
    log.epoch(3)
    log.target("m", {CLICKS: (0,)})
    log.target_epoch(3)
    log.current("m", 2, {CLICKS: (0,)}, {CLICKS: (1,)})
    log.current("m", 3, {CLICKS: (0,)})
    assert [s.state for s in log.fold().group_snapshots[-3:]] == ["Reconciling", "Reconciling", "Stable"]


def test_the_assignor_is_the_one_most_members_ask_for():
    log = Log()
    for name, assignor in (("a", "range"), ("b", "uniform"), ("c", None), ("d", "uniform")):
        log.joined(name, assignor=assignor)
    log.step(2, {})
    log.joined("e", assignor="range")
    log.step(3, {})
    log.joined("f", assignor="range")
    log.step(4, {})
    log.left("a")
    log.step(5, {})
    assert [s.assignor for s in log.fold().group_snapshots] == ["uniform", "uniform", "range", "uniform"]
    for each in "bdef":
        log.left(each)
    log.step(6, {})
    assert log.fold().group_snapshots[-1].assignor is None


def test_a_classic_members_rack_is_that_of_its_subscription():
    log = Log()
    log.joined("m", classic=ConsumerProtocolSubscription(3, ("clicks",), None, (), None, "rack-a"))
    log.step(2, {"m": {CLICKS: (0,)}})
    assert {m.rack_id for m in log.fold().member_snapshots} == {"rack-a"}
