"""Topics deleted and made again, partitions added: identity-edge-cases, "Topics"."""

import pytest

from groupledger.core.history import OwnershipChangeRow, TopicChange, TopicHistory
from tests.core.history.captured import catalog, folded, log_rows
from tests.core.history.records import Log, member

EDGE = "edge/offsets"


def changes_of(group, topic):
    return [c for c in folded(EDGE, group).ownership_changes if c.topic == topic]


@pytest.mark.parametrize("group", ["rc-java", "rc-java-re", "rc-rdk-re", "rc-new", "rc-new-re", "rc-rdk-new"])
def test_deleting_topics_tombstones_their_commits_in_every_group(group):
    assert folded(EDGE, group).counts.tombstones["OffsetCommit"] == 10


@pytest.mark.parametrize("group", ["rc-java", "rc-new", "rc-new-re", "rc-rdk-new"])
@pytest.mark.parametrize("topic", ["re-slow", "re-fast", "re-less"])
def test_a_name_used_again_is_another_topic(group, topic):
    """Holdings of the old id end, holdings of the new one begin: no change has one id on each side."""
    changes = changes_of(group, topic)
    ids = list(dict.fromkeys(c.topic_id for c in changes if c.topic_id))
    assert len(ids) == 2
    for topic_id in ids:
        own = [c for c in changes if c.topic_id == topic_id]
        holders: dict[int, str | None] = {}
        for c in own:
            assert holders.get(c.partition) == c.from_member_id
            holders[c.partition] = c.to_member_id
        assert set(holders.values()) == {None}, "the old topic's end is recorded, and at last the group's"


def test_an_id_listed_only_later_joins_the_holdings_of_its_name():
    """The group took the new re-slow 0.7 s before the topic listing showed it."""
    owners = [(c.topic_id, c.from_member_id is None) for c in changes_of("rc-rdk-re", "re-slow") if c.partition == 0]
    assert owners[-3:-1] == [(None, True), ("z4JxVxC7RdebiXRz_iTCVA", False)]


def test_made_again_at_once_with_the_same_count_the_same_assignment_is_of_another_topic():
    fold = folded(EDGE, "rc-java")
    old, new = "2CiWJor8QOCMimYfbeUGjQ", "5w3TsXcGR16c2uwtsOGPeg"
    turn = next(c for c in changes_of("rc-java", "re-fast") if c.topic_id == new and c.to_member_id).offset
    at_turn = [
        (c.topic_id, c.partition, c.from_member_id, c.to_member_id)
        for c in changes_of("rc-java", "re-fast")
        if c.offset == turn
    ]
    ended = {(partition, member_id) for topic_id, partition, member_id, _ in at_turn if topic_id == old}
    began = {(partition, member_id) for topic_id, partition, _, member_id in at_turn if topic_id == new}
    assert ended == began
    assert len(ended) == 3
    assert {m.recorded for m in fold.member_snapshots if m.offset == turn}


def test_kip_848_knows_ids_and_takes_two_epochs():
    """First the old id goes, then the new one comes, never both in one record."""
    told = sorted({(c.offset, c.topic_id) for c in changes_of("rc-new", "re-fast")})
    assert len({offset for offset, _ in told}) == len(told) == 12
    ids = [topic_id for _, topic_id in told]
    assert ids == ["2CiWJor8QOCMimYfbeUGjQ"] * 7 + ["5w3TsXcGR16c2uwtsOGPeg"] * 5


@pytest.mark.parametrize(("group", "offsets"), [("gr-java", {399}), ("gr-rdk", {26, 27})])
def test_added_partitions_come_from_nobody(group, offsets):
    added = [c for c in changes_of(group, "grow") if c.partition in (2, 3, 4)]
    first: dict[int, OwnershipChangeRow] = {}
    for c in added:
        first.setdefault(c.partition, c)
    assert {c.from_member_id for c in first.values()} == {None}
    assert {c.offset for c in first.values()} <= offsets
    assert catalog("edge").as_of("grow", min(c.at for c in added) + 60_000) == ("y5UtV25JQb2GKdG4vimCbQ", 5)


def test_ids_of_a_classic_group_are_those_of_the_records_time():
    ids = {
        (m.offset, topic_id)
        for m in folded(EDGE, "rc-java").member_snapshots
        for topic_id, topic, _ in m.recorded or ()
        if topic == "re-fast"
    }
    assert {topic_id for _, topic_id in ids} == {"2CiWJor8QOCMimYfbeUGjQ", "5w3TsXcGR16c2uwtsOGPeg", None}
    for offset, topic_id in ids:
        at = next(row.timestamp_ms for row in log_rows(EDGE)["rc-java"] if row.offset == offset)
        state = catalog("edge").as_of("re-fast", at)
        assert topic_id == (state and state[0])


def test_an_id_that_is_not_known_is_none_and_the_partition_stays_the_same():
    topics = TopicHistory(
        [TopicChange("clicks", "id1", 6, None, 1_500_000), TopicChange("clicks", "id2", 6, None, 3_500_000)]
    )
    log = Log()
    for generation in range(1, 6):
        log.classic(generation, [member("m", {"clicks": (0,)})])
    fold = log.fold(topics=topics)
    assert [topic_id for m in fold.member_snapshots for topic_id, _, _ in m.recorded or ()] == [
        None,
        None,
        "id1",
        "id1",
        "id2",
    ]
    assert [(c.topic_id, c.from_member_id, c.to_member_id, c.offset, c.held_since) for c in fold.ownership_changes] == [
        (None, None, "m", 0, None),
        ("id1", "m", None, 4, 0),
        ("id2", None, "m", 4, None),
    ]
