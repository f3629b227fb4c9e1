"""What nobody has: since when, why, and what is none."""

from datetime import timedelta

import pytest

from groupledger.answers.unowned import unowned_partitions
from groupledger.core.faults import Fault
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import COMMITTED, read_to
from tests.answers.rows import at


def told(reader, minute, *asked, **more):
    found = unowned_partitions(reader, at(minute), *asked, **more)
    return [
        (f"{each.topic}-{each.partition}", each.since.minute, each.why.value, each.last_member_id, each.snapshot_id)
        for each in found.partitions
    ]


CASES = {
    "an owner that lost it": (
        History("g").state(1, "m a:0,1").state(3, "m a:0"),
        [listed("a", 2)],
        [("a-1", 3, "given-up", "m", "log/dev/g/3")],
    ),
    "never given to anybody": (
        History("g").state(2, "m a:0").state(3, "m a:0"),
        [listed("a", 2)],
        [("a-1", 2, "subscribed", None, "log/dev/g/2")],
    ),
    "a partition that came later": (
        History("g").state(1, "m a:0").state(3, "m a:0"),
        [listed("a", 1), listed("a", 2, 2)],
        [("a-1", 2, "partition-added", None, "log/dev/g/3")],
    ),
    "a partition that came after the last record": (
        History("g").state(1, "m a:0"),
        [listed("a", 1), listed("a", 3, 4)],
        [("a-1", 4, "partition-added", None, "log/dev/g/1"), ("a-2", 4, "partition-added", None, "log/dev/g/1")],
    ),
    "a topic subscribed to again": (
        History("g")
        .state(1, "m a:0")
        .state(2, "m b:0", shared_topics=["b"])
        .state(5, "m b:0", shared_topics=["a", "b"]),
        [listed("a", 1), listed("b", 1)],
        [("a-0", 5, "subscribed", "m", "log/dev/g/5")],
    ),
    "a group that was empty in between": (
        History("g").state(1, "m a:0,1").state(2, None).state(6, "m a:0"),
        [listed("a", 2)],
        [("a-1", 6, "subscribed", "m", "log/dev/g/6")],
    ),
    "a topic made again": (
        History("g").state(1, "m a:0").state(2, "m").state(5, "m"),
        [listed("a", 1, topic_id="A"), listed("a", None, 3), listed("a", 1, 4, topic_id="B")],
        [("a-0", 4, "partition-added", None, "log/dev/g/5")],
    ),
    "given up after it was made again": (
        History("g").state(2, "m a:0").state(6, "m"),
        [listed("a", 1, topic_id="A"), listed("a", 1, 4, topic_id="B")],
        [("a-0", 6, "given-up", None, "log/dev/g/6")],
    ),
    "the oldest first": (
        History("g").state(1, "m a:0,1,2").state(2, "m a:0,2").state(4, "m a:0"),
        [listed("a", 3)],
        [("a-1", 2, "given-up", "m", "log/dev/g/2"), ("a-2", 4, "given-up", "m", "log/dev/g/4")],
    ),
    "lost, and got back": (
        History("g").state(1, "m a:0").state(2, "m").state(3, "m a:0"),
        [listed("a", 1)],
        [],
    ),
    "one owner of two left, in a share group": (
        History("g", kind="share").state(1, "x a:0 | y a:0").state(2, "x a:0"),
        [listed("a", 1)],
        [],
    ),
    "none of a share group's owners left": (
        History("g", kind="share").state(1, "x a:0 | y a:0").state(2, "x a:0 | y").state(4, "x | y"),
        [listed("a", 1)],
        [("a-0", 4, "given-up", "x", "log/dev/g/4")],
    ),
    "an empty group": (History("g").state(1, "m a:0").state(2, None), [listed("a", 1)], []),
    "a deleted topic": (History("g").state(1, "m a:0").state(2, "m"), [listed("a", 1), listed("a", None, 2)], []),
    "a record that is cut": (
        History("g").state(1, "m a:0").state(3, "m", complete=False),
        [listed("a", 1)],
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_nobody_has(written, case):
    history, topics, expected = CASES[case]
    rows = rows_of(history, topic_snapshots=topics, runs=[COMMITTED, read_to(dev=at(9))])
    assert told(written(**rows), 9) == expected


@pytest.fixture(scope="module")
def ledger(written):
    return written(
        **rows_of(
            History("pay").state(1, "m a:0,1,2").state(3, "m a:0").state(6, "m a:0,1,2"),
            History("pay", "eu").state(2, "e a:0 | f a:1"),
            History("audit").state(4, "q a:1,2"),
            History("blind", topics=("a", "unlisted")).state(4, "q a:0,1,2"),
            topic_snapshots=[listed("a", 3), listed("a", 3, cluster="eu")],
            runs=[COMMITTED, read_to(dev=at(7), eu=at(7))],
        )
    )


def groups(found):
    return [(each.cluster_id, each.group_id, each.partition, each.age_seconds) for each in found.partitions]


def test_at_a_moment_in_each_group_and_cluster(ledger):
    assert groups(unowned_partitions(ledger, at(5))) == [
        *(("eu", "pay", 2, 180), ("dev", "pay", 1, 120), ("dev", "pay", 2, 120), ("dev", "audit", 0, 60)),
    ]
    assert groups(unowned_partitions(ledger, at(7), cluster="dev")) == [("dev", "audit", 0, 180)]
    assert groups(unowned_partitions(ledger, at(5), group="pa*", cluster="dev")) == [
        *(("dev", "pay", 1, 120), ("dev", "pay", 2, 120)),
    ]


def test_only_what_nobody_has_had_for_so_long(ledger):
    assert groups(unowned_partitions(ledger, at(5), at(2))) == [("eu", "pay", 2, 180)]
    found = unowned_partitions(ledger, at(5), at(1))
    assert found.partitions == ()
    oldest = "the oldest since 2026-11-21T14:02:00.000Z"
    assert found.notes[0] == f"4 partitions without an owner, none since 2026-11-21T14:01:00.000Z or longer: {oldest}"


def test_what_is_left_off_is_counted(ledger):
    found = unowned_partitions(ledger, at(5), limit=1)
    assert (len(found.partitions), found.left_off) == (1, 3)


def test_what_cannot_be_told_is_said(ledger):
    assert unowned_partitions(ledger, at(5)).notes == (
        "not known of 1 group: no topic listing up to then has unlisted",
    )


def test_nothing_says_why(ledger, written):
    [note] = unowned_partitions(ledger, at(7), group="pay", cluster="dev").notes
    assert note == "every partition of a topic that a group with members subscribes to has an owner (1 group)"
    before = unowned_partitions(ledger, at(0), cluster="dev").notes
    assert before[0] == "no group has a complete record up to that moment"
    assert "the ledger knows cluster dev from 2026-11-21T14:01:00.000Z to 2026-11-21T14:07:00.000Z" in before
    empty = written(**rows_of(History("g").state(1, None)))
    assert (
        "1 group without members: they subscribe to nothing, and are not here" in unowned_partitions(empty, at(2)).notes
    )
    assert unowned_partitions(empty, at(2), timedelta(minutes=10)).notes == unowned_partitions(empty, at(2)).notes
    with pytest.raises(Fault, match="no group 'pya' in this ledger; did you mean pay"):
        unowned_partitions(ledger, at(5), group="pya")


def test_a_classic_group_that_gave_a_topic_up_under_an_id_it_was_not_given_with(written):
    """It was listed between the two records; the name is another topic's by now, which the group subscribes to."""
    rows = rows_of(History("g").state(1, "m a:0").state(3, "m").state(6, "m"))
    rows["ownership_changes"][1]["topic_id"] = "A"
    topics = [listed("a", 1, 2, topic_id="A"), listed("a", None, 4), listed("a", 1, 5, topic_id="B")]
    assert told(written(**rows, topic_snapshots=topics), 9) == [("a-0", 5, "partition-added", None, "log/dev/g/6")]
