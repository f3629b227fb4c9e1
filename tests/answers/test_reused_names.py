"""Topics that are deleted and made again under the same name: no owner for ever, and no nobody that is not known.

Times are those of a day on a real broker: a classic group reads a topic, which is deleted, made again and read again.
"""

import pytest

from groupledger.answers.owners import ownership, partition_timeline
from tests.answers.rows import at
from tests.answers.test_ownership import change, listed

TWICE = [listed("orders", "A", 8, 11), listed("orders", None, None, 30), listed("orders", "B", 8, 35)]
ONCE = TWICE[:2]
AT_ONCE = [listed("orders", "A", 8, 0), listed("orders", "B", 8, 48)]
"""Listed once an hour: the name is never seen without a topic."""


def states(*minutes, kind="classic", **more):
    said = {"cluster_id": "dev", "group_id": "pay", "group_type": kind, "complete": True} | more
    return [
        said | {"snapshot_id": f"log/dev/{minute}", "observed_at": at(minute), "offset": minute} for minute in minutes
    ]


GIVEN_UP = [change(10, None, "m", 10), change(33, "m", None, 33, held_since=at(10))]
READ_AGAIN = [*GIVEN_UP, change(40, None, "n", 40)]
KEPT = [change(10, None, "m", 10)]
HANDED_ON = [*KEPT, change(33, "m", "n", 33, held_since=at(10))]
LAGGING = [
    *(change(10, None, "m", 10, topic_id="A"), change(41, "m", None, 41, topic_id="A", held_since=at(10))),
    change(45, None, "n", 45, topic_id="A"),
    *(change(52, "n", None, 52, topic_id="A", held_since=at(45)), change(52, None, "n", 52, topic_id="B")),
]
"""As the fold has them: the id is that of the listing of a record's time, which says A until the hour is over."""


def told(ledger, minute, group=None):
    return [
        (each.member and each.member.member_id, each.topic_id, each.next and each.next.at.minute)
        for each in ownership(ledger, "orders", 7, at(minute), None, group).holdings
    ]


@pytest.mark.parametrize(
    ("changes", "listings", "minute", "expected"),
    [
        (GIVEN_UP, TWICE, 12, [("m", "A", 33)]),
        (GIVEN_UP, TWICE, 31, [("m", "A", 33)]),
        (GIVEN_UP, TWICE, 34, []),
        (GIVEN_UP, TWICE, 50, [(None, "B", None)]),
        (GIVEN_UP, ONCE, 31, [("m", "A", 33)]),
        (GIVEN_UP, ONCE, 50, []),
        (READ_AGAIN, TWICE, 12, [("m", "A", 33)]),
        (READ_AGAIN, TWICE, 50, [("n", "B", None)]),
        (KEPT, TWICE, 20, [("m", "A", None)]),
        (KEPT, TWICE, 50, [("m", None, None)]),
        (HANDED_ON, TWICE, 34, [("n", None, None)]),
        (HANDED_ON, TWICE, 50, [("n", None, None)]),
        (LAGGING, AT_ONCE, 43, [(None, "A", 45)]),
        (LAGGING, AT_ONCE, 46, [("n", "A", 52)]),
        (LAGGING, AT_ONCE, 50, [("n", None, 52)]),
        (LAGGING, AT_ONCE, 55, [("n", "B", None)]),
    ],
    ids=[
        *("before the deletion", "not given up yet", "given up", "made again and not read", "never made again"),
        *("nor read", "read: the first", "read: the second", "kept: the first", "kept: either", "handed on: either"),
        *("handed on and kept", "listed late: nobody", "listed late", "listed since: either", "a record of the second"),
    ],
)
def test_a_classic_group_has_one_owner_at_a_time_under_a_name(written, changes, listings, minute, expected):
    ledger = written(ownership_changes=changes, group_snapshots=states(5, 59), topic_snapshots=listings)
    assert told(ledger, minute) == expected


@pytest.mark.parametrize(
    ("minute", "expected"), [(20, [("m", "A", 33)]), (32, [("m", "A", 33)]), (50, [("n", "B", None)])]
)
def test_a_topic_that_is_not_made_yet_has_no_nobody_beside_the_owner(written, minute, expected):
    changes = [change(10, None, "m", 10, topic_id="A"), change(33, "m", None, 33, topic_id="A", held_since=at(10))]
    changes.append(change(40, None, "n", 40, topic_id="B"))
    ledger = written(
        ownership_changes=changes, topic_snapshots=TWICE, group_snapshots=states(10, 33, 40, kind="consumer")
    )
    assert told(ledger, minute) == expected


def test_a_topic_that_was_deleted_is_not_said_to_be_listed_later(written):
    ledger = written(ownership_changes=KEPT, topic_snapshots=TWICE, group_snapshots=states(10))
    found = {minute: ownership(ledger, "orders", 7, at(minute)).notes for minute in (10, 32)}
    assert "orders is in no topic listing at that time; first listed 2026-11-21T14:11:00.000Z" in found[10]
    assert "orders is in no topic listing at that time; not since 2026-11-21T14:30:00.000Z" in found[32]


def test_which_topic_it_is_is_said_not_to_be_known(written):
    ledger = written(ownership_changes=KEPT, group_snapshots=states(5, 59), topic_snapshots=TWICE)
    note = "the log of pay gives no topic ids: which topic named orders it is is not known"
    assert note in ownership(ledger, "orders", 7, at(50)).notes
    assert note not in ownership(ledger, "orders", 7, at(20)).notes


@pytest.mark.parametrize(
    ("changes", "listings", "expected"),
    [
        (GIVEN_UP, TWICE, [("m", "A", 10, 33), (None, "B", 33, None)]),
        (READ_AGAIN, TWICE, [("m", "A", 10, 33), (None, "B", 33, 40), ("n", "B", 40, None)]),
        (KEPT, TWICE, [("m", None, 10, None)]),
        (LAGGING, AT_ONCE, [("m", "A", 10, 41), (None, "A", 41, 45), ("n", None, 45, 52), ("n", "B", 52, None)]),
    ],
)
def test_the_owners_of_a_name_follow_one_another(written, changes, listings, expected):
    ledger = written(ownership_changes=changes, group_snapshots=states(5, 59), topic_snapshots=listings)
    found = partition_timeline(ledger, "orders", 7, at(59)).spans
    spans = [(each.member_id, each.topic_id, each.since.minute, each.until and each.until.minute) for each in found]
    assert sorted(spans, key=str) == sorted(expected, key=str)


UNNAMED = [
    change(10, None, "w", 10, topic=None, topic_id="X"),
    change(41, "w", None, 41, topic=None, topic_id="X", held_since=at(10)),
    change(41, None, "w", 41, topic_id="B"),
]
"""A KIP-848 group whose first topic was gone before any listing: the log has its id alone."""
LATE = [listed("orders", "B", 8, 35)]


@pytest.mark.parametrize(
    ("minute", "listings", "expected"),
    [
        (20, LATE, [(None, "X")]),
        (38, LATE, [(None, None)]),
        (50, LATE, [("w", None)]),
        (20, [*LATE, listed("logs", "X", 8, 0)], [(None, None)]),
        (5, LATE, [(None, None)]),
    ],
    ids=["no listing yet", "listed, not read", "read", "the id has another name", "nobody had any"],
)
def test_what_a_group_had_under_an_id_without_a_name_may_be_the_topic(written, minute, listings, expected):
    rows = states(2, 59, kind="consumer")
    ledger = written(ownership_changes=UNNAMED, group_snapshots=rows, topic_snapshots=listings)
    answer = ownership(ledger, "orders", 7, at(minute))
    found = [(each.member and each.member.member_id, each.perhaps) for each in answer.holdings]
    assert found == expected
    note = "pay had partition 7 of topic id X, whose name no listing shows: whether that is orders is not known"
    assert (note in answer.notes) == (expected[0][1] == "X")


def test_a_group_that_only_had_an_id_without_a_name_is_not_said_never_to_have_had_it(written):
    rows = states(2, 59, kind="consumer")
    ledger = written(ownership_changes=UNNAMED[:1], group_snapshots=rows, topic_snapshots=LATE)
    notes = ownership(ledger, "orders", 7, at(20)).notes
    assert any("whether that is orders is not known" in note for note in notes)


def test_the_timeline_does_not_begin_with_nobody_where_that_is_not_known(written):
    rows = states(2, 59, kind="consumer")
    ledger = written(ownership_changes=UNNAMED, group_snapshots=rows, topic_snapshots=LATE)
    spans = partition_timeline(ledger, "orders", 7, at(59), at(20)).spans
    assert [(each.member_id, each.since) for each in spans] == [("w", at(41))]


BY_ID = [
    change(10, None, "c", 10, topic_id="A"),
    change(29, "c", None, 29, topic_id="A", held_since=at(10)),
    change(36, None, "b", 36, topic_id="B"),
]
"""A KIP-848 group, whose log has the topic ids."""


@pytest.mark.parametrize(
    ("minute", "expected"),
    [(5, [(None, "A"), (None, "B")]), (12, [("c", "A")]), (31, [(None, "B")]), (40, [("b", "B")])],
    ids=["neither yet", "the first life", "between them", "the second"],
)
def test_a_topic_that_is_made_later_has_no_nobody_before(written, minute, expected):
    listings = [*TWICE[:2], listed("orders", "B", 8, 35)]
    ledger = written(ownership_changes=BY_ID, group_snapshots=states(2, 59, kind="consumer"), topic_snapshots=listings)
    found = ownership(ledger, "orders", 7, at(minute)).holdings
    assert [(each.member and each.member.member_id, each.topic_id) for each in found] == expected
    assert all(each.is_nobody == (each.member is None) for each in found)


def test_whether_nobody_had_a_topic_that_may_have_gone_by_another_id_is_not_known(written):
    rows = states(2, 59, kind="consumer")
    ledger = written(ownership_changes=UNNAMED, group_snapshots=rows, topic_snapshots=LATE)
    [holding] = ownership(ledger, "orders", 7, at(20)).holdings
    assert (holding.is_nobody, holding.covered) == (False, False)


@pytest.mark.parametrize(
    ("complete", "minute", "is_nobody"),
    [((), 20, False), ((), 32, False), ((12,), 20, True), ((12,), 32, False), ((33,), 32, False), ((33,), 34, True)],
    ids=["before it: cut", "given up: cut", "complete before", "cut again", "complete later", "complete since"],
)
def test_a_record_that_compaction_cut_says_of_nobody_that_it_is_not_known(written, complete, minute, is_nobody):
    changes = [change(30, "m", None, 30), change(40, None, "n", 40)] if minute > 30 else [change(40, None, "n", 40)]
    rows = [state | {"complete": state["offset"] in complete, "members": 1} for state in states(5, 12, 30, 33, 45)]
    ledger = written(ownership_changes=changes, group_snapshots=rows, topic_snapshots=TWICE[:1])
    answer = ownership(ledger, "orders", 7, at(minute))
    assert [each.is_nobody for each in answer.holdings] == [is_nobody]
    note = "the record of pay is incomplete at that time: whether nobody had the partition is not known"
    assert (note in answer.notes) != is_nobody
