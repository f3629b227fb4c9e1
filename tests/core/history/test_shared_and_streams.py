"""Share groups and Streams groups: who holds what, and what of it can be told."""

import pytest

from groupledger.core.history import TopicChange, TopicHistory, fold_group
from groupledger.core.history.members import has_equal_sources
from groupledger.core.wire.offsets_log import RecordKind
from groupledger.core.wire.records import CopartitionGroup, InternalTopic, Subtopology
from tests.core.history.histories import shared, tasks
from tests.core.history.records import CLICKS, GROW, TOPICS, ShareLog, StreamsLog, subtopology


def holders(fold):
    """(topic, partition) -> who holds it in the end."""
    held = {}
    for change in fold.ownership_changes:
        owners = held.setdefault((change.topic, change.partition), set())
        owners.discard(change.from_member_id)
        owners |= {change.to_member_id} - {None}
    return {partition: owners for partition, owners in held.items() if owners}


def pair():
    log = ShareLog()
    log.share_joined("m")
    log.share_joined("n")
    log.step(2, {"m": {CLICKS: (0, 1)}, "n": {CLICKS: (0,)}})
    return log


def test_a_partition_of_a_share_group_has_several_owners_and_that_is_no_finding():
    fold = pair().fold()
    assert holders(fold) == {("clicks", 0): {"m", "n"}, ("clicks", 1): {"m"}}
    assert fold.violations == []
    last = fold.group_snapshots[-1]
    assert (last.group_type, last.group_epoch, last.target_epoch, last.state, last.complete, last.members) == (
        "share",
        2,
        2,
        "Stable",
        True,
        2,
    )
    assert [(m.member_id, m.recorded, m.target, m.pending_revocation, m.member_state) for m in fold.member_snapshots][
        -2:
    ] == [
        ("m", ((CLICKS, "clicks", (0, 1)),), ((CLICKS, "clicks", (0, 1)),), (), "STABLE"),
        ("n", ((CLICKS, "clicks", (0,)),), ((CLICKS, "clicks", (0,)),), (), "STABLE"),
    ]


def test_one_owner_of_several_leaves_and_the_other_stays():
    log = pair()
    log.left("m")
    log.step(3, {"n": {CLICKS: (0, 1)}})
    fold = log.fold()
    assert holders(fold) == {("clicks", 0): {"n"}, ("clicks", 1): {"n"}}
    assert all(None in (change.from_member_id, change.to_member_id) for change in fold.ownership_changes)


def test_a_share_groups_tombstone_ends_it_and_that_of_another_type_does_not():
    log = pair()
    log.put(RecordKind.STREAMS_GROUP_METADATA, None)
    log.put(RecordKind.CONSUMER_GROUP_MEMBER_METADATA, None, member_id="m")
    assert [s.snapshot_kind for s in log.fold().group_snapshots] == ["fold"] * 3
    log.epoch(None)
    fold = log.fold()
    assert [(s.snapshot_kind, s.group_type) for s in fold.group_snapshots][-1] == ("deleted", "share")
    assert holders(fold) == {}


def test_every_record_of_the_hand_made_histories_is_accounted_for_by_its_kind():
    fold = shared().fold()
    assert fold.counts.quarantined == {"TRUNCATED": 1}
    assert fold.counts.unused == {}
    assert fold.counts.accounted == len(shared().rows)
    assert {s.group_type for s in fold.group_snapshots} == {"share", "classic"}
    assert [gap.kind for gap in fold.coverage] == ["record-unreadable"]


@pytest.mark.parametrize("kind", ["SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT", "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER"])
def test_a_negative_partition_is_quarantined_alone(kind):
    log = pair() if kind.startswith("SHARE") else StreamsLog()
    if kind.startswith("SHARE"):
        log.current("n", 2, {CLICKS: (-1,)})
    else:
        log.tasks_target("m", {"0": (0, -1)})
    assert log.fold().counts.quarantined == {"BAD_PARTITION": 1}


def test_active_tasks_read_their_number_of_each_source_topic_that_has_it():
    """`clicks` has 6 partitions, `grow` 2."""
    log = StreamsLog()
    log.streams_joined("m")
    log.topology(subtopology("0", "clicks", "grow"))
    log.epoch(2)
    log.tasks_target("m", {"0": (1, 2)}, {"0": (5,)})
    log.target_epoch(2)
    log.tasks_current("m", 2, {"0": (1,)}, {"0": (5,)}, {"0": (2,)})
    fold = log.fold()
    member = fold.member_snapshots[-1]
    assert member.recorded == ((CLICKS, "clicks", (1,)), (GROW, "grow", (1,)))
    assert member.pending_revocation == ((CLICKS, "clicks", (2,)),)
    assert member.target == ((CLICKS, "clicks", (1, 2)), (GROW, "grow", (1,)))
    assert member.tasks == (
        ("active", "assigned", "0", (1,)),
        ("standby", "assigned", "0", (5,)),
        ("active", "pending-revocation", "0", (2,)),
        ("active", "target", "0", (1, 2)),
        ("standby", "target", "0", (5,)),
    )
    assert member.member_state == "UNREVOKED_TASKS"
    assert holders(fold) == {("clicks", 1): {"m"}, ("clicks", 2): {"m"}, ("grow", 1): {"m"}}
    assert (fold.group_snapshots[-1].group_type, fold.group_snapshots[-1].shared_topics) == (
        "streams",
        ("clicks", "grow"),
    )
    assert fold.coverage == []


def test_a_standby_task_that_moves_makes_a_snapshot_and_moves_no_partition():
    log = StreamsLog()
    log.streams_joined("m")
    log.topology(subtopology("0", "clicks"))
    log.epoch(2)
    log.tasks_target("m", {"0": (0,)}, {"0": (1,)})
    log.target_epoch(2)
    log.tasks_current("m", 2, {"0": (0,)})
    log.tasks_current("m", 2, {"0": (0,)}, {"0": (1,)})
    fold = log.fold()
    assert [(s.state, s.offset) for s in fold.group_snapshots] == [
        ("Reconciling", 4),
        ("Reconciling", 5),
        ("Stable", 6),
    ]
    assert [change.offset for change in fold.ownership_changes] == [5]


def test_what_no_listing_counts_is_left_out_and_stated_unless_each_task_has_its_partition():
    log = StreamsLog()
    log.streams_joined("m")
    alone, two = subtopology("0", "unlisted"), subtopology("1", "clicks", "unknown", regex=("pay.*",))
    log.topology(alone, two, epoch=4)
    log.epoch(2)
    log.tasks_target("m", {"0": (0,), "1": (0,)})
    log.target_epoch(2)
    log.tasks_current("m", 2, {"0": (0,), "1": (0,)})
    fold = log.fold()
    assert fold.member_snapshots[-1].recorded == ((None, "unlisted", (0,)), (CLICKS, "clicks", (0,)))
    [gap] = fold.coverage
    assert (gap.kind, gap.from_value, gap.to_value, gap.offset) == ("source-topics-unknown", 4, 4, 1)
    assert "topics that match 'pay.*'; the partitions of unknown: " in gap.reason


def test_a_topic_that_is_listed_later_counts_from_then_on():
    log = StreamsLog()
    log.streams_joined("m")
    log.topology(subtopology("0", "early", "late"))
    log.epoch(2)
    log.tasks_target("m", {"0": (0,)})
    log.target_epoch(2)
    log.tasks_current("m", 2, {"0": (0,)})
    log.tasks_current("m", 3, {"0": (0,)}, {"0": (1,)})
    moment = 1_000_000 * log.rows[-1].offset
    topics = TopicHistory([TopicChange("early", CLICKS, 2, None, 0), TopicChange("late", GROW, 2, None, moment)])
    fold = fold_group("eu-1", log.rows, None, topics)
    assert [(change.topic, change.offset) for change in fold.ownership_changes] == [("early", 5), ("late", 6)]


@pytest.mark.parametrize(
    ("sources", "regexes", "internal", "copartitioned", "equal"),
    [
        (1, 0, 0, [], True),
        (0, 0, 1, [], True),
        (1, 1, 0, [], False),
        (2, 0, 0, [], False),
        (2, 0, 0, [((0, 1), (), ())], True),
        (2, 0, 1, [((0, 1), (), ())], False),
        (2, 0, 1, [((0, 1), (), (0,))], True),
        (2, 0, 0, [((0,), (), ()), ((1,), (), ())], False),
    ],
)
def test_sources_are_equal_where_there_is_one_or_all_are_copartitioned(
    sources, regexes, internal, copartitioned, equal
):
    made = tuple(InternalTopic(f"made-{n}", 0, 1, ()) for n in range(internal))
    topics = tuple(f"t-{n}" for n in range(sources))
    patterns = tuple(f"p-{n}" for n in range(regexes))
    groups = tuple(CopartitionGroup(*each) for each in copartitioned)
    assert has_equal_sources(Subtopology("0", topics, patterns, (), (), made, groups)) is equal


def test_an_internal_topic_has_the_partitions_that_the_topology_enforces():
    made = InternalTopic("made", 2, 1, ())
    log = StreamsLog()
    log.streams_joined("m")
    log.topology(Subtopology("0", ("clicks",), (), (), (), (made,), ()))
    log.epoch(2)
    log.tasks_target("m", {"0": (1, 2)})
    log.target_epoch(2)
    assert log.fold().member_snapshots[-1].target == ((CLICKS, "clicks", (1, 2)), (None, "made", (1,)))


def test_another_topology_changes_what_tasks_read_where_it_is_written():
    fold = tasks().fold()
    at = next(row.offset for row in tasks().rows if row.offset > 10 and row.key and row.key[:2] == b"\x00\x17")
    moved = [(c.topic, c.partition, c.from_member_id, c.to_member_id) for c in fold.ownership_changes if c.offset == at]
    assert ("clicks", 0, "m", None) in moved
    assert ("grow", 0, None, "m") not in moved, "it had grow-0 all along, by the other subtopology"
    assert ("grow", 1, None, "n") in moved
    assert [(gap.kind, gap.offset) for gap in fold.coverage] == [("source-topics-unknown", at)]
    assert fold.group_snapshots[-1].snapshot_kind == "deleted"
    assert holders(fold) == {}
    assert TOPICS.as_of("grow", 0) == (GROW, 2)
