"""For how long which partitions of a group had nobody, rounds of a cooperative rebalance among them."""

import pytest
from click.testing import CliRunner

from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope, scope
from groupledger.answers.unowned import unowned_partitions, unowned_time
from groupledger.cli import main
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at, wire

ALL, LACKS = "m a:0,1 | n a:2", "m a:0,1 | n"


def asked(folder, history, since=None, until=None, most=100, topics=(("a", 3, 0),)):
    """Partition -> from minute, to minute, open at its end, from before; and how many states were left off."""
    other = History("other").state(30, "x a:0,1,2", complete=True)
    listings = [listed(*each) for each in topics]
    reader = LedgerReader(write(folder, **rows_of(history, other, topic_snapshots=listings)))
    within = scope(reader, RequestedScope("dev", "pay", since, until))
    found = unowned_time(reader, within, most)
    told = [
        (f"{each.topic}-{each.partition}", _minute(each.since), _minute(each.until), each.open_ended, each.from_before)
        for each in found.stretches
    ]
    return told, found.left_off


def _minute(moment):
    return (moment - at(0)).total_seconds() / 60


def states(*pairs, kind="classic"):
    history = History("pay", kind=kind)
    for number, text in pairs:
        history.state(number, text, complete=True)
    return history


def begun_late(history):
    """The same, of which the log does not have the beginning."""
    gap = {"cluster_id": "dev", "group_id": "pay", "incarnation": 1, "kind": "history-begins-late", "offset": 1}
    history.rows["coverage"] = [gap | {"snapshot_id": "log/dev/pay/1", "reason": "cut"}]
    return history


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (states((1, ALL), (9, ALL)), []),
        (states((1, ALL), (4, LACKS), (5, ALL)), [("a-2", 4, 5, False, False)]),
        (states((1, ALL), (4, LACKS), (6, LACKS), (7, ALL)), [("a-2", 4, 7, False, False)]),
        (states((1, LACKS), (4, ALL)), [("a-2", 1, 4, False, False)]),
        (begun_late(states((1, LACKS), (4, ALL))), [("a-2", 1, 4, False, True)]),
        (states((1, ALL), (4, LACKS)), [("a-2", 4, 30, True, False)]),
        (states((1, ALL), (4, None), (9, ALL)), []),
        (
            states((1, ALL), (4, "m a:0"), (6, LACKS), (7, ALL)),
            [("a-2", 4, 7, False, False), ("a-1", 4, 6, False, False)],
        ),
        (states((1, ALL), (4, LACKS), (5, ALL), kind="share"), []),
    ],
    ids=[
        "none",
        "one round",
        "two",
        "from the first state",
        "from before",
        "still so",
        "empty group",
        "two partitions",
        "share",
    ],
)
def test_every_stretch_is_told_however_short(tmp_path, history, expected):
    assert asked(tmp_path, history) == (expected, 0)


def test_a_partition_counts_from_when_it_is_listed(tmp_path):
    history = states((1, ALL), (9, ALL), (12, "m a:0,1 | n a:2,3"))
    assert asked(tmp_path, history, topics=(("a", 3, 0), ("a", 4, 5)))[0] == [("a-3", 5, 12, False, False)]


def test_a_topic_that_no_listing_counts_is_not_guessed(tmp_path):
    assert asked(tmp_path, states((1, ALL), (4, LACKS)), topics=(("b", 3, 0),)) == ([], 0)


@pytest.mark.parametrize(("lacking", "from_before"), [({15, 17, 19}, False), ({14, 15, 17, 19}, True)])
def test_of_many_states_the_last_are_looked_at_and_the_others_counted(tmp_path, lacking, from_before):
    lacking = lacking | {1, 3}
    history = states((0, ALL), *((number, LACKS if number in lacking else ALL) for number in range(1, 21)))
    found, left_off = asked(tmp_path, history, most=3)
    assert left_off == len(lacking) - 3
    assert found == [("a-2", 15, 16, False, from_before), ("a-2", 17, 18, False, False), ("a-2", 19, 20, False, False)]


def test_a_period_ends_what_goes_on_after_it(tmp_path):
    found = asked(tmp_path, states((1, ALL), (4, LACKS), (20, ALL)), since=at(2), until=at(10))
    assert found == ([("a-2", 4, 10, True, False)], 0)


def test_of_two_groups_with_one_name_it_is_that_of_the_cluster(tmp_path):
    here = states((1, ALL), (4, LACKS), (5, ALL))
    there = History("pay", "prod").state(1, "m a:0", complete=True)
    reader = LedgerReader(
        write(tmp_path, **rows_of(here, there, topic_snapshots=[listed("a", 3), listed("a", 9, cluster="prod")]))
    )
    found = unowned_time(reader, scope(reader, RequestedScope("dev", "pay")), 100)
    assert [(each.partition, each.length.total_seconds()) for each in found.stretches] == [(2, 60)]


def test_what_members_have_under_the_id_of_a_topic_that_was_listed_later_has_an_owner(tmp_path):
    rows = rows_of(states((1, ALL), (4, LACKS), (6, ALL), kind="consumer"))
    for member in rows["member_snapshots"]:
        for entry in member["recorded"] or ():
            entry |= {"topic": None, "topic_id": "A"}
    reader = LedgerReader(write(tmp_path, **rows, topic_snapshots=[listed("a", 3, topic_id="A")]))
    found = unowned_time(reader, scope(reader, RequestedScope("dev", "pay", None, None)), 100)
    assert [(each.topic, each.partition, each.since, each.until) for each in found.stretches] == [
        ("a", 2, at(4), at(6))
    ]


def test_what_a_member_is_still_to_give_up_has_an_owner(tmp_path):
    rows = rows_of(states((1, ALL), (4, LACKS), (5, LACKS), (6, ALL), kind="consumer"))
    for member in rows["member_snapshots"]:
        if (member["offset"], member["member_id"]) == (4, "n"):
            member["pending_revocation"] = wire("a:2")
    reader = LedgerReader(write(tmp_path, **rows, topic_snapshots=[listed("a", 3)]))
    found = unowned_time(reader, scope(reader, RequestedScope("dev", "pay")), 100)
    assert [(each.partition, each.since, each.until) for each in found.stretches] == [(2, at(5), at(6))]


def test_a_period_that_begins_in_a_stretch_shows_when_it_began(tmp_path):
    """The state that lasted into it is the first that is looked at, and took the partition from its owner."""
    found, _ = asked(tmp_path, states((1, ALL), (4, LACKS), (20, ALL)), since=at(6))
    assert found == [("a-2", 4, 20, False, False)]


def test_who_and_audit_say_since_when_in_the_same_words(tmp_path):
    for name, history, since in (
        ("began", states((1, LACKS), (40, LACKS)), "since"),
        ("late", begun_late(states((1, LACKS), (40, LACKS))), "before"),
    ):
        place = write(tmp_path / name, **rows_of(history, topic_snapshots=[listed("a", 3, 0)]))
        [found] = unowned_partitions(LedgerReader(place), at(40)).partitions
        [stretch] = unowned_time(
            LedgerReader(place), scope(LedgerReader(place), RequestedScope("dev", "pay")), 9
        ).stretches
        assert (found.since, found.from_before) == (stretch.since, stretch.from_before) == (at(1), since == "before")
        said = CliRunner().invoke(main, ["who", "--unowned-since", "--ledger", place]).stdout
        assert ("before 14:01:00" in said) is (since == "before")
