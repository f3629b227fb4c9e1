"""A group with other members: against what its assignor gives by hand."""

import pytest

from groupledger.answers.changed_group import ORDER_DECIDES, what_if
from groupledger.core.faults import Fault
from tests.answers.histories import History, listed, rows_of


def group(name, *states, **more):
    history = History(name)
    for number, state in enumerate(states, 1):
        history.state(number, state, complete=True, **more)
    return history


FAULTY = "tests.core.custom.faulty"
UNIFORM = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(scope="module")
def ledger(written):
    several = group("several", "m a:0 | n a:1", shared_topics=None, subscribed_topics=["a", "b"])
    for row in several.rows["member_snapshots"]:
        row["topics"] = ["a"] if row["member_id"] == "m" else ["a", "b"]
    lag = group("lag", "m a:0,1,2 | n")
    lag.rows["member_snapshots"][0]["user_data"] = b'{"a": {"0": 9, "1": 2, "2": 2}}'
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
            group("some", "m a:0 | n a:2"),
            several,
            lag,
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
        ("pay", {"members": -1}, {"m": "0,1,2", "n": ""}, 0, (2, 1, 3, 3)),
        ("pay", {"without": ["m"]}, {"n": "0,1,2", "m": ""}, 0, (2, 1, 3, 3)),
        ("pay", {"without": ["m"], "members": 1}, {"n": "0,1", "new-1": "2", "m": ""}, 1, (2, 1, 2, 1)),
        ("pay", {"assignor": "roundrobin"}, {"m": "0,2", "n": "1"}, 2, (2, 1, 2, 1)),
        ("gone", {}, {"m": "0,1,2"}, 0, (3, 3, 3, 3)),
        ("keep", {"members": 1}, {"m": "0", "n": "1", "new-1": "2"}, 2, (3, 0, 1, 1)),
        ("new", {"members": 1}, {"m": "0,1", "new-1": "2"}, 1, (3, 3, 2, 1)),
        ("new", {"members": 1, "assignor": "kafka-python-range"}, {"m": "0,1", "new-1": "2"}, 1, (3, 3, 2, 1)),
        ("pay", {"assignor": f"{FAULTY}:in_turns"}, {"m": "0,2", "n": "1"}, 2, (2, 1, 2, 1)),
        ("pay", {"assignor": f"{FAULTY}:in_turns_in_steps"}, {"m": "0,2", "n": "1"}, 2, (2, 1, 2, 1)),
        ("lag", {"assignor": "examples.lag_weighted:assign"}, {"m": "0", "n": "1,2"}, 2, (3, 0, 2, 1)),
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


BY_IDS = "range goes by the order of member ids: who moves what depends on the ids that new members get"
OLDER = "the group's newest state has no members, or not all of it is recorded: this is the last one that has them"
CONVERTED = "a {} assigns in this group: {} is a {}'s, for after a conversion (KIP-848)"


def test_what_was_assumed_is_said(ledger):
    more = what_if(ledger, "several", members=3)
    assert more.notes == ("members differ in topics or rack: new ones are like those there are, in turn: m, n", BY_IDS)
    assert (more.joined, more.gone) == (("new-1", "new-2", "new-3"), ())
    assert what_if(ledger, "several").notes == what_if(ledger, "pay").notes == ()
    assert what_if(ledger, "new").notes == (
        "members whose subscription is not in the record are taken to subscribe to every topic of the group",
    )
    assert what_if(ledger, "racks").notes == ("members name racks: those of replicas are not known",)
    other = what_if(ledger, "racks", assignor="franz-go-range")
    assert other.notes == ("members name racks: those of replicas are left aside by franz-go-range here",)
    assert what_if(ledger, "gone").notes == (OLDER,)
    assert what_if(ledger, "gone", generation=1).notes == ()
    assert what_if(ledger, "pay", assignor="uniform").notes == (
        CONVERTED.format("client", "server-uniform", "coordinator"),
    )
    assert what_if(ledger, "new", assignor="sticky").notes[1:] == (CONVERTED.format("coordinator", "sticky", "client"),)


def test_new_members_are_like_those_there_are_in_turn(ledger):
    """`several`: m subscribes to a alone, n to b too; so only every second new member may get b."""
    found = what_if(ledger, "several", members=2, assignor="roundrobin", partitions={"b": "+3"})
    topics = {each.member_id: {topic for topic, _ in each.assigned} for each in found.members}
    assert topics == {"m": {"a"}, "n": {"a", "b"}, "new-1": {"a"}, "new-2": {"b"}}


@pytest.mark.parametrize(
    ("group", "asked", "title", "given_up", "partitions", "unassigned"),
    [
        ("pay", {}, "pay (cluster dev), if nothing changes", 3, (3, 3), (0, 0)),
        ("pay", {"members": 1}, "pay (cluster dev), if 1 member joins", 3, (3, 3), (0, 0)),
        ("pay", {"members": -1}, "pay (cluster dev), if 1 member leaves", 2, (3, 3), (0, 0)),
        *(
            (
                "pay",
                {"assignor": f"{FAULTY}:{name}"},
                f"pay (cluster dev), if {FAULTY}:{name} assigns instead of range",
                *cost,
            )
            for name, *cost in (("in_turns", 3, (3, 3), (0, 0)), ("in_turns_in_steps", 2, (3, 3), (0, 0)))
        ),
        ("keep", {"members": 1}, "keep (cluster dev), if 1 member joins", 2, (3, 3), (0, 0)),
        ("new", {"members": 1}, "new (cluster dev), if 1 member joins", 1, (3, 3), (0, 0)),
        ("some", {}, "some (cluster dev), if nothing changes", 2, (3, 3), (1, 0)),
        (
            "pay",
            {"members": 2, "without": ["m"], "partitions": {"a": "x2"}, "assignor": "cooperative-sticky"},
            "pay (cluster dev), if 2 members join, 1 member leaves, a has 6 partitions instead of 3 and "
            "cooperative-sticky assigns instead of range",
            0,
            (3, 6),
            (0, 0),
        ),
        (
            *("new", {"assignor": "uniform"}, "new (cluster dev), if server-uniform assigns instead of server-range"),
            *(0, (3, 3), (0, 0)),
        ),
        ("unnamed", {"assignor": "range"}, "unnamed (cluster dev), if range assigns", 1, (3, 3), (2, 0)),
    ],
)
def test_it_says_what_changes_and_what_it_costs(ledger, group, asked, title, given_up, partitions, unassigned):
    """Under an eager protocol members give up all they have, under others what moves."""
    found = what_if(ledger, group, **asked)
    assert (found.title, found.given_up) == (title, given_up)
    assert (found.partitions_before, found.partitions) == partitions
    assert (found.unassigned_before, found.unassigned) == unassigned


@pytest.mark.parametrize("more", ["+2", "x2"])
def test_partitions_are_added_to_those_there_are(ledger, more):
    found = what_if(ledger, "pay", partitions={"a": more})
    assert found.partitions == (6 if more == "x2" else 5)
    assert not any("as members have" in note for note in found.notes)


def test_racks_of_replicas_count_where_the_listing_has_them(written):
    """`range` gives a member the partitions in its rack; of a topic with more partitions no racks are known."""
    near = group("near", "m a:0,1 | n a:2,3")
    for row, rack in zip(near.rows["member_snapshots"], ("r1", "r2"), strict=True):
        row["rack_id"] = rack
    racked = listed("a", 4) | {"racks": [["r2"], ["r2"], ["r1"], ["r1"]]}
    ledger = written(**rows_of(near, topic_snapshots=[listed("a", 2), racked]))
    found = what_if(ledger, "near")
    assert [[number for _, number in each.assigned] for each in found.members] == [[2, 3], [0, 1]]
    assert found.notes == ()
    more = what_if(ledger, "near", partitions={"a": "+2"})
    assert [[number for _, number in each.assigned] for each in more.members] == [[0, 1, 2], [3, 4, 5]]
    assert more.notes == ("members name racks: those of replicas are not known",)


def test_a_coordinator_starts_from_the_targets_it_gave(written):
    """n is to have 2 and 3, which m has not given up yet: `uniform` keeps to the target."""
    moving = History("moving", kind="consumer").state(1, "m a:0,1,2,3 | n", complete=True, assignor="uniform")
    for row, target in zip(moving.rows["member_snapshots"], ((0, 3), (1, 2)), strict=True):
        row["target"] = [{"topic_id": UNIFORM, "topic": "a", "partitions": list(target)}]
    found = what_if(written(**rows_of(moving, topic_snapshots=[listed("a", 4, topic_id=UNIFORM)])), "moving")
    assert [[number for _, number in each.assigned] for each in found.members] == [[0, 3], [1, 2]]
    assert (found.moves, found.given_up) == (2, 2)


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_members_of_one_hash_have_an_order_that_no_record_shows(written, name):
    """`Aa` and `BB` are equal to `String.hashCode`; a new member is the last in any case, and `range` sorts by id."""
    alike = History("alike", kind="consumer").state(1, "Aa a:0 | BB a:1", complete=True, assignor=name)
    reader = written(**rows_of(alike, topic_snapshots=[listed("a", 3, topic_id=UNIFORM)]))
    assert [ORDER_DECIDES in what_if(reader, "alike", members=more).notes for more in (-1, 0, 1)] == (
        [False, True, True] if name == "uniform" else [False] * 3
    )


def test_no_code_is_loaded_by_a_name_that_the_record_supplies(written, tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    named = History("named").state(1, "m a:0,1", complete=True, assignor="planted:assign")
    reader = written(**rows_of(named, topic_snapshots=[listed("a", 2)]))
    with pytest.raises(Fault, match="names 'planted:assign': name the assignor to have its code run") as caught:
        what_if(reader, "named", members=1)
    assert caught.value.code == "NOT_COMPUTED"
    assert not (tmp_path / "ran").exists()


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
        ("pay", {"without": ["x"]}, "UNKNOWN_MEMBER", "no member 'x' in this state; expected one of m, n"),
        ("dark", {}, "TOPIC_NOT_LISTED", "no topic listing has x at the time of log/dev/dark/1: the partition counts"),
        ("share", {}, "NOT_COMPUTED", "group 'share' is a share group; expected classic or consumer"),
        (
            "pay",
            {"assignor": "ranje"},
            "UNKNOWN_ASSIGNOR",
            "assignor is 'ranje'; did you mean range? expected one of range",
        ),
        ("pay", {"partitions": {"b": "+1"}}, "UNKNOWN_TOPIC", "no member subscribes to topic 'b'; expected one of a"),
        (
            "pay",
            {"partitions": {"a": 10}},
            "BAD_PARTITIONS",
            "partitions of a is 10; expected '+3' (three more) or 'x2'",
        ),
        ("pay", {"partitions": {"a": "10"}}, "BAD_PARTITIONS", "partitions of a is '10'; expected '+3' (three more) o"),
        ("pay", {"partitions": "a=+1"}, "USAGE", "partitions is 'a=+1'; expected a change by topic, such as {'orders'"),
        ("pay", {"members": "+3"}, "USAGE", "members is '+3'; expected a whole number, such as 3 (join) or -2 (leave)"),
        ("pay", {"without": "nobody"}, "UNKNOWN_MEMBER", "no member 'nobody' in this state; expected one of m, n"),
        (
            "pay",
            {"assignor": "server-sticky"},
            "UNKNOWN_ASSIGNOR",
            "assignor is 'server-sticky'; expected one of server-unif",
        ),
        (
            "pay",
            {"assignor": "nosuch:b"},
            "ASSIGNOR_NOT_FOUND",
            "cannot import nosuch:b: ModuleNotFoundError: No module",
        ),
        (
            "pay",
            {"assignor": f"{FAULTY}:raises"},
            "ASSIGNOR_FAILS",
            f"{FAULTY}:raises fails on this group: ASSIGNOR_RA",
        ),
        ("several", {"assignor": "uniform"}, "TOPIC_NOT_LISTED", "no topic listing has the id of b, by which server-"),
        ("unnamed", {}, "NOT_COMPUTED", "log/dev/unnamed/1 names no assignor: name the one to compute"),
        ("pya", {}, "UNKNOWN_GROUP", "no group 'pya' in this ledger; did you mean pay? (12 known"),
        ("p*", {}, "UNKNOWN_GROUP", "this is answered for one group; the pattern 'p*' matches pay: name one"),
        ("q*", {}, "UNKNOWN_GROUP", "no group 'q*' in this ledger; 12 known, such as "),
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
