"""Who had a partition: every row a question an auditor asks, answered from facts written down here."""

import pytest

from groupledger.answers.owners import MemberIdentity, ownership
from groupledger.core.faults import Fault
from tests.answers.rows import at


def change(minute, before, after, offset, **more):
    base = {"cluster_id": "dev", "group_id": "pay", "topic": "orders", "partition": 7, "at": at(minute)}
    moved = {"from_member_id": before, "to_member_id": after, "offset": offset, "snapshot_id": f"log/dev/0/{offset}"}
    return base | moved | more


def listed(topic, topic_id, count, minute, cluster="dev"):
    seen = {"cluster_id": cluster, "topic": topic, "topic_id": topic_id}
    return seen | {"partition_count": count, "valid_from": at(minute)}


CHANGES = [
    change(10, None, "m1", 5),
    change(20, "m1", "m2", 9, held_since=at(10)),
    change(19, "m2", "m3", 12, held_since=at(20)),  # the clock went back: offsets say it came later
    change(15, None, "c1", 6, group_id="audit"),
    change(40, "c1", None, 14, group_id="audit"),
    change(12, None, "x1", 3, cluster_id="eu"),
    change(10, None, "other", 4, partition=6),
    change(10, None, "other", 4, topic="orders-7"),
]
SNAPSHOTS = [
    {"cluster_id": cluster, "group_id": "pay", "snapshot_id": f"log/{cluster}/{minute}", "observed_at": at(minute)}
    for cluster, minute in [("dev", 10), ("dev", 50), ("eu", 12)]
]
SNAPSHOTS += [{"cluster_id": "dev", "group_id": "new", "snapshot_id": "log/dev/new", "observed_at": at(20)}]
MEMBERS = [
    {"cluster_id": "dev", "group_id": "pay", "snapshot_id": "log/dev/0/5"} | member
    for member in (
        {"member_id": "m1", "client_id": "app-1", "group_instance_id": "i1", "host": "/h"},
        {"member_id": "m2", "client_id": "app-2"},
    )
]
TOPICS = [listed("orders", "A", 8, 0), listed("orders", None, None, 30), listed("orders", "B", 4, 35)]


@pytest.fixture(scope="module")
def ledger(written):
    gap = {"cluster_id": "dev", "group_id": "pay", "kind": "generations-skipped", "reason": "3 to 5", "offset": 8}
    return written(
        ownership_changes=CHANGES,
        group_snapshots=SNAPSHOTS,
        member_snapshots=MEMBERS,
        topic_snapshots=TOPICS,
        coverage=[gap],
    )


def holders(answer):
    return {
        (holding.cluster_id, holding.group_id): holding.member and holding.member.member_id
        for holding in answer.holdings
        if holding.last is not None
    }


@pytest.mark.parametrize(
    ("minute", "expected"),
    [
        (9, {}),
        (10, {("dev", "pay"): "m1"}),
        (12, {("dev", "pay"): "m1", ("eu", "pay"): "x1"}),
        (18, {("dev", "pay"): "m1", ("eu", "pay"): "x1", ("dev", "audit"): "c1"}),
        (19, {("dev", "pay"): "m3", ("eu", "pay"): "x1", ("dev", "audit"): "c1"}),
        (20, {("dev", "pay"): "m3", ("eu", "pay"): "x1", ("dev", "audit"): "c1"}),
        (40, {("dev", "pay"): "m3", ("eu", "pay"): "x1", ("dev", "audit"): None}),
    ],
)
def test_the_last_change_by_offset_tells_the_holder(ledger, minute, expected):
    assert holders(ownership(ledger, "orders", 7, at(minute))) == expected


def test_the_answer_says_since_when_who_it_was_and_what_came_next(ledger):
    answer = ownership(ledger, "orders", 7, at(11), "dev")
    (pay,) = (holding for holding in answer.holdings if holding.group_id == "pay")
    assert pay.member == MemberIdentity("m1", "app-1", "i1", "/h")
    assert (pay.since, pay.last.snapshot_id) == (at(10), "log/dev/0/5")
    assert (pay.next.at, pay.next.to_member_id) == (at(20), "m2")


def test_before_the_first_change_the_holder_is_who_it_was_taken_from(written):
    rows = [change(20, "m0", "m1", 9), change(20, None, "m2", 8, group_id="new")]
    answer = ownership(written(ownership_changes=rows), "orders", 7, at(1))
    found = {holding.group_id: (holding.member, holding.last, holding.since) for holding in answer.holdings}
    assert found == {"pay": (MemberIdentity("m0"), None, None), "new": (None, None, None)}


@pytest.mark.parametrize(("minute", "covered"), [(9, False), (10, True), (45, True)])
def test_whether_the_record_of_the_group_reaches_back_is_said(ledger, minute, covered):
    answer = ownership(ledger, "orders", 6, at(minute), "dev")
    assert [(holding.group_id, holding.covered) for holding in answer.holdings] == [("pay", covered)]


def test_one_group_only(ledger):
    assert set(holders(ownership(ledger, "orders", 7, at(45), None, "audit"))) == {("dev", "audit")}
    assert "group new was never assigned orders-7" in ownership(ledger, "orders", 7, at(45), None, "new").notes


def test_one_cluster_only(ledger):
    assert set(holders(ownership(ledger, "orders", 7, at(45), "eu"))) == {("eu", "pay")}


@pytest.mark.parametrize(
    ("partition", "minute", "note"),
    [
        (7, 1, "history of cluster dev begins at 2026-11-21T14:10:00.000Z: what was before is not known"),
        (7, 55, "cluster dev is known up to 2026-11-21T14:50:00.000Z: what was later is not known"),
        (7, 32, "orders is in no topic listing at that time; not since 2026-11-21T14:30:00.000Z"),
        (7, 36, "orders had partitions 0 to 3 at that time (cluster dev)"),
        (7, 36, "orders was deleted and made again: 2 topic ids, each another topic"),
        (7, 11, "gap in the history of pay (generations-skipped): 3 to 5"),
        (99, 11, "no group in this ledger was ever assigned orders-99"),
    ],
)
def test_what_limits_the_answer_is_said(ledger, partition, minute, note):
    assert note in ownership(ledger, "orders", partition, at(minute)).notes


def test_a_name_in_two_clusters_is_no_topic_that_was_made_again(written):
    rows = [change(10, None, "m1", 5), change(12, None, "x1", 3, cluster_id="eu")]
    topics = [listed("orders", "A", 8, 0), listed("orders", "E", 8, 0, "eu")]
    once = ownership(written(ownership_changes=rows, topic_snapshots=topics), "orders", 7, at(45)).notes
    again = ownership(written(ownership_changes=rows, topic_snapshots=[*TOPICS, topics[1]]), "orders", 7, at(45)).notes
    assert [note for note in once if "made again" in note] == []
    assert "orders was deleted and made again: 2 topic ids, each another topic (cluster dev)" in again


def test_gaps_are_counted(ledger):
    assert [ownership(ledger, "orders", 7, at(minute)).gaps for minute in (11, 45)] == [1, 0]


def test_a_gap_elsewhere_is_not_said(ledger):
    assert not [note for note in ownership(ledger, "orders", 7, at(45), "dev").notes if note.startswith("gap")]


def test_a_topic_known_by_its_id_alone_is_found(written):
    rows = [change(10, None, "m1", 5, topic=None, topic_id="A"), change(10, None, "m2", 6, topic=None, topic_id="Z")]
    ledger = written(ownership_changes=rows, topic_snapshots=[listed("orders", "A", 8, 0)])
    assert [holding.member.member_id for holding in ownership(ledger, "orders", 7, at(11)).holdings] == ["m1"]


def test_a_topic_made_again_has_a_holder_for_each_id(written):
    rows = [change(10, None, "m1", 5, topic_id="A"), change(40, None, "m2", 9, topic_id="B")]
    answer = ownership(written(ownership_changes=rows, topic_snapshots=TOPICS), "orders", 7, at(45))
    assert {holding.topic_id: holding.member.member_id for holding in answer.holdings} == {"A": "m1", "B": "m2"}
    assert [(life.topic_id, life.until) for life in answer.topics] == [("A", at(30)), ("B", None)]


def test_a_change_recorded_before_the_listing_belongs_to_the_topic_that_came(written):
    rows = [
        change(10, None, "m1", 5, topic_id="A"),
        change(31, "m1", None, 7, topic_id="A"),
        change(34, None, "m2", 8, topic_id=None),
        change(45, "m2", "m3", 9, topic_id="B", held_since=at(34)),
    ]
    ledger = written(ownership_changes=rows, topic_snapshots=TOPICS)
    (holding,) = ownership(ledger, "orders", 7, at(40)).holdings
    assert (holding.topic_id, holding.member.member_id, holding.next.to_member_id) == ("B", "m2", "m3")


def test_nobody_has_a_deleted_topic_and_that_is_no_line(written):
    rows = [change(10, None, "m1", 5, topic_id="A"), change(30, "m1", None, 7, topic_id="A")]
    ledger = written(ownership_changes=rows, topic_snapshots=TOPICS)
    assert holders(ownership(ledger, "orders", 7, at(20))) == {("dev", "pay"): "m1"}
    assert ownership(ledger, "orders", 7, at(32)).holdings == ()


@pytest.mark.parametrize(
    ("cluster", "group", "told"),
    [
        ("ue", None, "no cluster 'ue' in this ledger; known: dev, eu"),
        (None, "pya", "no group 'pya' in this ledger; did you mean pay"),
        ("eu", "new", "no group 'new' in cluster 'eu'; known: pay"),
    ],
)
def test_an_unknown_cluster_or_group_is_refused_with_those_alike(ledger, cluster, group, told):
    with pytest.raises(Fault, match=told):
        ownership(ledger, "orders", 7, at(45), cluster, group)


def test_an_unknown_topic_names_those_alike(ledger):
    with pytest.raises(Fault, match="no topic 'ordres' in this ledger; known: orders"):
        ownership(ledger, "ordres", 7, at(11))


def test_each_owner_in_a_share_group_is_told(written):
    share = {"group_id": "fan", "group_type": "share"}
    rows = [
        change(10, None, "a", 1, group_id="fan"),
        change(11, None, "b", 2, group_id="fan"),
        change(20, "a", None, 3, group_id="fan", held_since=at(10)),
        change(25, None, "c", 4, group_id="fan"),
        change(30, "b", None, 5, group_id="fan", held_since=at(11)),
        change(31, "c", None, 6, group_id="fan", held_since=at(25)),
        change(12, None, "m1", 7),
    ]
    seen = [share | {"cluster_id": "dev", "snapshot_id": f"log/dev/{n}", "observed_at": at(n)} for n in (10, 40)]
    ledger = written(ownership_changes=rows, group_snapshots=[*seen, *SNAPSHOTS])

    def told(minute):
        found = ownership(ledger, "orders", 7, at(minute), "dev").holdings
        return [
            (each.member and each.member.member_id, each.since, each.next and each.next.at, each.shared)
            for each in found
            if each.group_id == "fan"
        ]

    assert told(9) == [(None, None, at(10), False)]
    assert told(15) == [("a", at(10), at(20), True), ("b", at(11), at(30), True)]
    assert told(27) == [("b", at(11), at(30), True), ("c", at(25), at(31), True)]
    assert told(35) == [(None, at(31), None, False)]
    assert [each.group_id for each in ownership(ledger, "orders", 7, at(15)).holdings] == ["fan", "fan", "pay"]


def test_owners_in_a_share_group_whose_history_begins_later_are_those_it_was_taken_from(written):
    share = {"cluster_id": "dev", "group_id": "fan", "group_type": "share", "snapshot_id": "s", "observed_at": at(20)}
    rows = [change(minute, name, None, minute, group_id="fan") for minute, name in ((20, "a"), (21, "b"))]
    ledger = written(ownership_changes=rows, group_snapshots=[share])
    found = ownership(ledger, "orders", 7, at(1)).holdings
    assert [(each.member.member_id, each.last, each.since) for each in found] == [("a", None, None), ("b", None, None)]
