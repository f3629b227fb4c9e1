"""A group with other members: against what its assignor gives by hand."""

import pytest

from groupledger.answers.changed_group import what_if
from groupledger.core.faults import Fault
from tests.answers.histories import History, listed, rows_of


def group(name, *states, **more):
    history = History(name)
    for number, state in enumerate(states, 1):
        history.state(number, state, complete=True, **more)
    return history


UNIFORM = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(scope="module")
def ledger(written):
    several = group("several", "m a:0 | n a:1")
    for row in several.rows["member_snapshots"]:
        row["topics"] = ["a"] if row["member_id"] == "m" else ["a", "b"]
    racks = group("racks", "m a:0,1,2")
    racks.rows["member_snapshots"][0]["rack_id"] = "r1"
    coordinator = History("new", kind="consumer")
    coordinator.state(1, "m a:0,1,2", complete=True, assignor="range", shared_topics=None, subscribed_topics=["a"])
    share = History("share", kind="share")
    share.state(1, "m a:0", complete=True)
    return written(
        **rows_of(
            group("pay", "m a:0,1 | n a:2"),
            group("gone", "m a:0,1,2", None),
            group("keep", "m a:0,1,2 | n", assignor="cooperative-sticky"),
            group("dark", "m x:0", shared_topics=["x"]),
            group("nobody", None),
            group("unnamed", "m a:0", assignor=None),
            several,
            racks,
            coordinator,
            share,
            topic_snapshots=[listed("a", 3, topic_id=UNIFORM), listed("b", 1)],
        )
    )


@pytest.mark.parametrize(
    ("group", "asked", "expected", "moves", "loads"),
    [
        ("pay", {}, {"m": "0,1", "n": "2"}, 0, (2, 1, 2, 1)),
        ("pay", {"members": 1}, {"m": "0", "n": "1", "new-1": "2"}, 2, (2, 1, 1, 1)),
        ("pay", {"members": 2}, {"m": "0", "n": "1", "new-1": "2", "new-2": ""}, 2, (2, 1, 1, 0)),
        ("pay", {"members": -1}, {"m": "0,1,2", "n": ""}, 1, (2, 1, 3, 3)),
        ("pay", {"without": ["m"]}, {"n": "0,1,2", "m": ""}, 2, (2, 1, 3, 3)),
        ("pay", {"without": ["m"], "members": 1}, {"n": "0,1", "new-1": "2", "m": ""}, 3, (2, 1, 2, 1)),
        ("pay", {"assignor": "roundrobin"}, {"m": "0,2", "n": "1"}, 2, (2, 1, 2, 1)),
        ("gone", {}, {"m": "0,1,2"}, 0, (3, 3, 3, 3)),
        ("keep", {"members": 1}, {"m": "0", "n": "1", "new-1": "2"}, 2, (3, 0, 1, 1)),
        ("new", {"members": 1}, {"m": "0,1", "new-1": "2"}, 1, (3, 3, 2, 1)),
        ("new", {"members": 1, "assignor": "kafka-python-range"}, {"m": "0,1", "new-1": "2"}, 1, (3, 3, 2, 1)),
    ],
)
def test_the_assignor_gives_the_group_its_partitions(ledger, group, asked, expected, moves, loads):
    found = what_if(ledger, group, **asked)
    given = {each.member_id: ",".join(str(number) for _, number in each.assigned) for each in found.members}
    assert given == expected
    assert (found.moves, found.unassigned) == (moves, 0)
    assert (found.most_before, found.least_before, found.most, found.least) == loads


def test_a_cooperative_group_is_told_as_it_settles_not_after_its_first_round(ledger):
    """In the first round what must move is given to nobody."""
    assert what_if(ledger, "keep", members=2, assignor="kafka-python-cooperative-sticky").unassigned == 0
    assert what_if(ledger, "keep", members=2).unassigned == 0


def test_what_was_assumed_is_said(ledger):
    more = what_if(ledger, "several", members=2)
    assert more.notes == ("members differ in what they subscribe to: new ones take a, as 1 member does",)
    assert (more.joined, more.gone) == (("new-1", "new-2"), ())
    assert what_if(ledger, "several").notes == what_if(ledger, "pay").notes == ()
    assert what_if(ledger, "new").notes == (
        "members whose subscription is not in the record are taken to subscribe to every topic of the group",
    )
    assert what_if(ledger, "racks").notes == ("members name racks: those of replicas are left aside here",)


def test_a_state_may_be_named(ledger):
    assert what_if(ledger, "gone", generation=1).snapshot_id == "log/dev/gone/1"
    with pytest.raises(Fault, match="no complete state of generation 2 of group 'gone' has members"):
        what_if(ledger, "gone", generation=2)


@pytest.mark.parametrize(
    ("group", "asked", "code", "said"),
    [
        ("nobody", {}, "NO_MEMBERS", "no complete state of group 'nobody' has members: there is nothing to compute"),
        ("pay", {"members": -2}, "NO_MEMBERS", "group 'pay' has 2 members: none would be left"),
        ("pay", {"members": -3}, "NO_MEMBERS", "the state has 2 members: 3 cannot go"),
        ("gone", {"members": -2}, "NO_MEMBERS", "the state has 1 member: 2 cannot go"),
        ("pay", {"without": ["x"]}, "UNKNOWN_MEMBER", "no member 'x' in this state; members: m, n"),
        ("dark", {}, "TOPIC_NOT_LISTED", "no topic listing has x at the time of log/dev/dark/1: the partition counts"),
        ("share", {}, "NOT_COMPUTED", "group 'share' is a share group; expected classic or consumer"),
        (
            "pay",
            {"assignor": "ranje"},
            "UNKNOWN_ASSIGNOR",
            "assignor is 'ranje'; did you mean range? expected one of range",
        ),
        ("unnamed", {}, "NOT_COMPUTED", "log/dev/unnamed/1 names no assignor: name the one to compute"),
        ("pya", {}, "UNKNOWN_GROUP", "no group 'pya' in this ledger; known: pay"),
        ("p*", {}, "UNKNOWN_GROUP", "this is answered for one group; the pattern 'p*' matches pay: name one"),
        ("q*", {}, "UNKNOWN_GROUP", "no group 'q*' in this ledger; known: "),
    ],
)
def test_what_cannot_be_computed_is_said(ledger, group, asked, code, said):
    with pytest.raises(Fault) as raised:
        what_if(ledger, group, **asked)
    assert raised.value.code == code
    assert raised.value.message.startswith(said)


def test_a_new_member_does_not_take_the_name_of_another(written):
    taken = group("taken", "new-1 a:0")
    found = what_if(written(**rows_of(taken, topic_snapshots=[listed("a", 2)])), "taken", members=1)
    assert [each.member_id for each in found.members] == ["new-1", "new-1-"]


@pytest.mark.parametrize(
    ("text", "kind", "expected", "noted"),
    [
        ("m a:0,1,2,3 | n", "classic", {"m": "0,1", "n": "2,3"}, True),
        ("m a/A:0,1,2,3 | n", "consumer", {"m": "0,1", "n": "2,3"}, True),
        ("m a/B:0,1,2,3 | n", "consumer", {"m": "0,1", "n": "2"}, False),
        ("m a:0,1,2 | n", "classic", {"m": "0,1", "n": "2"}, False),
    ],
    ids=["classic", "by id", "of another topic", "as listed"],
)
def test_partitions_that_members_have_count_though_the_listing_is_older(written, text, kind, expected, noted):
    ids = {"A": UNIFORM, "B": "AAAAAAAAAAAAAAAAAAAAAg"}
    history = History("late", kind=kind).state(1, text, complete=True, assignor="range")
    for row in history.rows["member_snapshots"]:
        for entry in row["recorded"] or ():
            entry["topic_id"] = ids.get(entry["topic_id"])
    found = what_if(written(**rows_of(history, topic_snapshots=[listed("a", 3, topic_id=UNIFORM)])), "late")
    assert {each.member_id: ",".join(str(number) for _, number in each.assigned) for each in found.members} == expected
    note = "a is taken to have 4 partitions, as members have: the listing of that time has 3"
    assert (note in found.notes) == noted
