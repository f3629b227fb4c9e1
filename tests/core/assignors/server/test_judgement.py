"""The verdict on a coordinator's target: what a broker wrote is exact, what was changed afterwards is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from groupledger.core.assignors.server.judgement import (
    IdentifiedChange,
    TargetCertainty,
    TopicView,
    WrittenTarget,
    follow,
    judge,
    judge_snapshots,
    views,
)
from groupledger.core.assignors.server.server_group import ServerMember, Topic, TopicId
from groupledger.core.rebalance.verdict import Verdict
from groupledger.core.wire.codec import uuid_text
from groupledger.core.wire.offsets_log import LogKey, LogRecord, RecordKind
from groupledger.core.wire.records import (
    AssignedTopic,
    ConsumerGroupMetadata,
    MemberMetadata,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from tests.core.assignors.server.test_captures import listings, targets

T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)
TOPICS = {"t": Topic(T, 4), "u": Topic(U, 2)}
NOW = TopicView(Verdict.EXACT, TOPICS)


def written(after, assignor="range", members=("A", "B"), **values):
    told = tuple(ServerMember(each, ("t",)) for each in members)
    given = {"before_known": True, "history_known": True, **values}
    return WrittenTarget(3, 9, 0, assignor, told, (1,) * len(told), None, after, **given)


RANGE = {"A": ((T, (0, 1)),), "B": ((T, (2, 3)),)}


@pytest.mark.parametrize(
    ("after", "views", "text"),
    [
        (RANGE, [NOW], "exact"),
        (
            RANGE,
            [TopicView(Verdict.EXACT, {"t": Topic(T, 5)}), TopicView(Verdict.EXACT_OLDER_TOPICS, TOPICS)],
            "exact-older-topics",
        ),
        ({"A": ((T, (1, 0)),), "B": ((T, (2, 3)),)}, [NOW], "equal-sets"),
        ({"A": ((T, (2, 3)),), "B": ((T, (0, 1)),)}, [NOW], "valid-different"),
        ({"A": ((T, (0, 1)),), "B": ((T, (1, 2)),)}, [NOW], "invalid"),
        ({"A": ((U, (0,)),), "B": ()}, [NOW], "invalid"),
        (RANGE, [TopicView(Verdict.EXACT, {"u": TOPICS["u"]})], "cannot-tell: no partition counts"),
        (RANGE, [], "cannot-tell: no partition counts"),
    ],
)
def test_a_target_is_judged_among_the_topics_of_its_moment(after, views, text):
    assert judge(written(after), views).verdict.text == text


def test_nothing_is_said_where_what_it_was_computed_from_is_unknown():
    said = judge(written(RANGE, before_known=False), [NOW]).verdict.text
    assert said == "cannot-tell: the group before is not known"


def neighbours():
    """Two members that share a bucket and a slot: their hashes are equal, as Java has it."""
    return written({}, "uniform", ("Aa", "BB"), history_known=False)


def test_where_neighbours_may_compete_equality_says_so_and_a_difference_tells_nothing():
    texts = Counter(
        judge(replace(neighbours(), after=after), [NOW]).verdict.text
        for after in (
            {"Aa": ((T, (0, 1)),), "BB": ((T, (2, 3)),)},
            {"Aa": ((T, (2, 3)),), "BB": ((T, (0, 1)),)},
        )
    )
    assert texts == {"exact, unless bucket neighbours compete": 1, "cannot-tell: bucket neighbours compete": 1}


def test_neighbours_do_not_compete_where_all_that_came_before_was_read():
    """Its epoch follows the last one seen, so who caused it was seen too, and stands last in the bucket."""
    read = replace(neighbours(), history_known=True)
    texts = {
        judge(replace(read, after=after), [NOW]).verdict.text
        for after in (
            {"Aa": ((T, (0, 1)),), "BB": ((T, (2, 3)),)},
            {"Aa": ((T, (2, 3)),), "BB": ((T, (0, 1)),)},
        )
    }
    assert texts == {"exact", "valid-different"}


CHANGES = [
    IdentifiedChange(1_000, "t", T, 1),
    IdentifiedChange(2_000, "t", T, 2),
    IdentifiedChange(2_000, "other", U, 9),
    IdentifiedChange(3_000, "t", None, None),
    IdentifiedChange(3_000, "t", U, 3),
    IdentifiedChange(4_000, "t", U, 4),
    IdentifiedChange(5_000, "t", None, None),
]
"""Of t: created, grown, made again within one listing, grown, deleted. Nobody subscribes to the other."""


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0, {"exact-newer-topics": [1], "exact-recorded-topics": [4]}),
        (1, {"exact": [1], "exact-newer-topics": [2], "exact-recorded-topics": [4]}),
        (2, {"exact": [2], "exact-older-topics": [1], "exact-newer-topics": [3], "exact-recorded-topics": [4]}),
        (3, {"exact": [3], "exact-older-topics": [2, 1], "exact-newer-topics": [4], "exact-recorded-topics": [4]}),
        (4, {"exact": [4], "exact-older-topics": [3, 2], "exact-newer-topics": [None], "exact-recorded-topics": [4]}),
        (9, {"exact": [None], "exact-older-topics": [4, 3], "exact-recorded-topics": [4]}),
    ],
)
def test_topics_are_tried_as_they_were_around_the_moment(at, expected):
    found = {}
    for view in views(CHANGES, replace(written(RANGE), timestamp=at)):
        found.setdefault(view.equal.text, []).append(view.topics["t"].partitions if view.topics else None)
    assert found == expected


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ([(9, "t", T, 6)], "exact-recorded-topics"),
        ([(1, "t", T, 3), (9, "t", T, 6)], "exact-recorded-topics"),
        ([(1, "t", T, 3)], "exact-recorded-topics"),
        ([(1, "t", U, 3), (9, "t", T, 6)], "exact-recorded-topics"),
        ([(9, "t", T, 3)], "exact-recorded-topics"),  # by a broker that was behind
        ([(9, "t", U, 6)], "cannot-tell: no partition counts"),  # another topic of its name
        ([(1, "t", T, 5), (9, "t", T, 6)], "valid-different"),
    ],
)
def test_a_target_is_judged_among_the_partitions_it_has_where_no_listing_is_of_its_time(changes, verdict):
    known = [IdentifiedChange(at * 1_000, *change) for at, *change in changes]
    target = replace(written(RANGE), timestamp=5)
    found = judge(target, views(known, target))
    assert found.verdict.text == verdict
    assert found.topics == ({"t": Topic(T, 4)} if found.verdict is Verdict.EXACT_RECORDED_TOPICS else None)


def test_no_other_answer_is_proven_where_only_a_later_listing_has_the_topics():
    swapped = replace(written({"A": ((T, (0, 2)),), "B": ((T, (1, 3)),)}), timestamp=5)
    later, twice = ([IdentifiedChange(at * 1_000, "t", T, 6) for at in times] for times in ((9,), (1, 9)))
    assert judge(swapped, views(later, swapped)).verdict is Verdict.CANNOT_TELL_NO_COUNTS
    assert judge(swapped, views(twice, swapped)).verdict is Verdict.VALID_DIFFERENT
    broken = replace(swapped, after={"A": ((T, (0, 1)),), "B": ((T, (1,)),)})
    assert judge(broken, views(later, broken)).verdict is Verdict.INVALID


def test_a_topic_that_the_next_listing_lacks_may_have_been_deleted_before():
    target = replace(written(RANGE), timestamp=5)
    target = replace(target, members=tuple(replace(each, topics=("t", "u")) for each in target.members))
    known = [IdentifiedChange(1_000, "t", T, 4), IdentifiedChange(1_000, "u", U, 2)]
    remade = [*known, IdentifiedChange(9_000, "u", TopicId(b"v" * 16), 2)]
    assert judge(target, views(remade, target)).verdict is Verdict.EXACT_RECORDED_TOPICS
    deleted = [*known, IdentifiedChange(9_000, "u", None, None)]
    assert judge(target, views(deleted, target)).verdict is Verdict.EXACT_NEWER_TOPICS
    assert judge(target, views(known, target)).verdict is Verdict.VALID_DIFFERENT


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_member_that_keeps_its_partitions_has_no_new_record_so_that_their_order_stays(order):
    """TargetAssignmentBuilder compares maps of sets; the order of the record before is no matter of this target."""
    target = written({"A": ((T, order),), "B": ((T, (2, 3)),)})
    target = replace(target, members=(replace(target.members[0], target=((T, order),)), target.members[1]))
    assert judge(target, [NOW]).verdict is Verdict.EXACT


def test_a_topic_without_an_id_is_not_there():
    (view,) = views([IdentifiedChange(0, "t", None, 4)], written(RANGE))
    assert view.topics == {}


def test_a_snapshot_has_the_verdict_of_the_last_target_at_it():
    """Snapshots between two targets follow the first; before any there is nothing to judge."""
    log = [(offset, 0, record) for offset, record in enumerate(range_log())]
    changes = [IdentifiedChange(0, "t", T, 4)]
    found = judge_snapshots(log, changes, [0, 1, 3, 4, 99], "range")
    assert [each.verdict.text for each in found] == ["cannot-tell: the group before is not known"] * 2 + ["exact"] * 3
    other = judge_snapshots(log, changes, [4], "sticky-server")
    assert [each.verdict.text for each in other] == ["cannot-tell: Kafka has no assignor of this name"]
    cut = judge_snapshots([(0, 0, None), *((at + 1, now, record) for at, now, record in log)], changes, [9], "range")
    assert [each.verdict.text for each in cut] == ["cannot-tell: the group before is not known"]


def test_a_judgement_names_the_moment_of_the_topics_that_give_the_record():
    """It is after the target where the topics were listed later, and None where no view gives the record."""
    log = [(offset, 5, record) for offset, record in enumerate(range_log())]
    grown = [IdentifiedChange(0, "t", T, 2), IdentifiedChange(9_000, "t", T, 4)]
    (later,) = judge_snapshots(log, grown, [4], "range")
    assert (later.verdict, later.moment) == (Verdict.EXACT_NEWER_TOPICS, 9_000)
    (other,) = judge_snapshots(log, [IdentifiedChange(0, "t", T, 9)], [4], "range")
    assert (other.verdict, other.moment) == (Verdict.VALID_DIFFERENT, None)


def test_a_topic_made_again_within_one_listing_is_there_however_its_changes_come():
    changes = [IdentifiedChange(0, "t", T, 4), IdentifiedChange(0, "t", None, None)]
    log = [(offset, 0, record) for offset, record in enumerate(range_log())]
    for order in (changes, changes[::-1]):
        (found,) = judge_snapshots(log, order, [4], "range")
        assert found.verdict is Verdict.EXACT


def test_a_group_that_was_deleted_is_known_from_its_new_birth_on():
    """Whatever could not be read before is gone with it."""
    deletion = LogRecord(LogKey(RecordKind.CONSUMER_GROUP_METADATA, 0, "g", {}), 0, None)
    log = [(offset, 0, record) for offset, record in enumerate((None, deletion, *range_log()))]
    (found,) = judge_snapshots(log, [IdentifiedChange(0, "t", T, 4)], [9], "range")
    assert found.verdict is Verdict.EXACT


def range_log():
    """A group's birth: its epoch, one member, that one's target, and what it holds."""
    kind = RecordKind
    yield record(kind.CONSUMER_GROUP_MEMBER_METADATA, MEMBER, member_id="A")
    yield record(kind.CONSUMER_GROUP_METADATA, ConsumerGroupMetadata(2))
    target = (AssignedTopic(uuid_text(T), (0, 1, 2, 3)),)
    yield record(kind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, TargetAssignmentMember(target), member_id="A")
    yield record(kind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, TargetAssignmentMetadata(2, 1))


@pytest.mark.parametrize(
    ("asked", "computed_with"),
    [
        (["range"], ["range"]),
        (["range", "uniform"], ["range", "uniform"]),  # one each: the new name stands first in the map
        (["uniform", "range"], ["uniform", "range"]),
        (["range", "uniform", "uniform", "range"], ["range", "uniform", "uniform", "uniform"]),
        (["uniform", "range", "range", "uniform"], ["uniform", "range", "range", "uniform"]),
        ([None, "range", None], ["uniform", "range", "range"]),
    ],
)
def test_a_target_is_computed_by_the_assignor_that_most_members_ask_for(asked, computed_with):
    """As `ConsumerGroup` of Kafka 4.4 answered when members joined one after another."""
    assert [target.assignor for target in follow(list(enumerated(asked)))] == computed_with


def enumerated(asked):
    kind = RecordKind
    for number, name in enumerate(asked):
        member = replace(MEMBER, server_assignor=name)
        yield 3 * number, number, record(kind.CONSUMER_GROUP_MEMBER_METADATA, member, member_id=f"m{number}")
        yield 3 * number + 1, number, record(kind.CONSUMER_GROUP_METADATA, ConsumerGroupMetadata(2 + number))
        target = TargetAssignmentMetadata(2 + number, 1)
        yield 3 * number + 2, number, record(kind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, target)


MEMBER = MemberMetadata(None, None, "client", "/host", ("t",), None, 1_000, None)


def record(kind, value, **fields):
    return LogRecord(LogKey(kind, 0, "g", fields), 0, value)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("capture", "name", "count"), [("dev", "offsets", 24), ("edge", "offsets", 59), ("compacted", "offsets-before", 4)]
)
def test_what_a_broker_wrote_is_exact(capture, name, count):
    views = [TopicView(Verdict.EXACT, topics) for topics in listings(capture)]
    found = [judge(target, views) for target in targets(capture, name) if target.before_known]
    assert len(found) == count
    assert {each.verdict.text.split(",")[0] for each in found} == {"exact"}
    assert TargetCertainty.EXACT in {each.certainty for each in found}


def test_what_compaction_took_is_not_judged():
    (left,) = targets("compacted")
    assert judge(left, [TopicView(Verdict.EXACT, topics) for topics in listings("compacted")]).certainty is None
