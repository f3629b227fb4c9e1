"""Holdings: the changes, played back, give what was recorded."""

from hypothesis import given
from hypothesis import strategies as st

from groupledger.core.history.ownership import Ownership

topics = st.sampled_from([("A", "a"), ("B", "b"), (None, "c")])
assignments = st.lists(
    st.tuples(topics, st.lists(st.integers(0, 5), unique=True, max_size=6)), unique_by=lambda item: item[0], max_size=3
).map(lambda items: tuple((*topic, tuple(partitions)) for topic, partitions in items))
histories = st.lists(st.dictionaries(st.sampled_from("mnop"), assignments, max_size=4), max_size=8)


def held(recorded):
    return {
        (topic_id or topic, partition, member)
        for member, assignment in recorded.items()
        for topic_id, topic, partitions in assignment
        for partition in partitions
    }


def play(holdings, changes):
    """A change takes the partition from one member and gives it to another; nothing else changes."""
    for change in changes:
        place = change.topic_id or change.topic, change.partition
        if change.from_member_id is not None:
            holdings.remove((*place, change.from_member_id))
        if change.to_member_id is not None:
            assert (*place, change.to_member_id) not in holdings
            holdings.add((*place, change.to_member_id))
    return holdings


@given(histories)
def test_changes_played_back_give_what_was_recorded(history):
    ownership = Ownership()
    holdings: set[tuple[str, int, str]] = set()
    for moment, recorded in enumerate(history):
        holdings = play(holdings, ownership.settle(recorded, moment))
        assert holdings == held(recorded)
        counts = [(topic, partition) for topic, partition, _ in holdings]
        doubles = {(topic.topic_id or topic.name, partition) for topic, partition in ownership.doubles}
        assert doubles == {place for place in counts if counts.count(place) > 1}


@given(histories, histories)
def test_restored_holdings_go_on_as_the_first_ones(history, rest):
    first, again = Ownership(), Ownership()
    for moment, recorded in enumerate(history):
        first.settle(recorded, moment)
    for tenure in first.tenures():
        again.restore(*tenure)
    assert again.tenures() == first.tenures()
    for moment, recorded in enumerate(rest, 100):
        assert again.settle(recorded, moment) == first.settle(recorded, moment)


@given(histories)
def test_nothing_changes_when_nothing_changed(history):
    ownership = Ownership()
    for moment, recorded in enumerate(history):
        ownership.settle(recorded, moment)
        before = ownership.tenures()
        shuffled = {member: assignment[::-1] for member, assignment in reversed(recorded.items())}
        assert ownership.settle(recorded, moment + 50) == []
        assert ownership.settle(shuffled, moment + 50) == []
        assert ownership.tenures() == before


def test_a_change_says_since_when_the_partition_was_held():
    ownership = Ownership()
    ownership.settle({"m": (("A", "a", (0, 1)),)}, 10)
    ownership.settle({"m": (("A", "a", (0,)),), "n": (("A", "a", (1,)),)}, 20)
    (change,) = ownership.settle({"m": (("A", "a", (0,)),)}, 30)
    assert change == ("A", "a", 1, "n", None, 20)
    assert ownership.tenures() == [("m", 10, (("A", "a", (0,)),))]


def test_another_id_under_a_name_is_another_topic_and_an_unknown_id_is_the_same():
    ownership = Ownership()
    ownership.settle({"m": ((None, "a", (0,)),)}, 10)
    assert ownership.settle({"m": (("A", "a", (0,)),)}, 20) == []
    assert ownership.settle({"m": ((None, "a", (0,)),)}, 30) == []
    assert ownership.settle({"m": (("B", "a", (0,)),)}, 40) == [
        ("A", "a", 0, "m", None, 10),
        ("B", "a", 0, None, "m", None),
    ]


def test_two_holders_of_a_partition_end_one_by_one():
    ownership = Ownership()
    ownership.settle({"m": (("A", "a", (0,)),)}, 10)
    assert ownership.settle({"m": (("A", "a", (0,)),), "n": (("A", "a", (0,)),)}, 20) == [
        ("A", "a", 0, None, "n", None)
    ]
    assert len(ownership.doubles) == 1
    assert ownership.settle({"m": (("A", "a", (0,)),)}, 30) == [("A", "a", 0, "n", None, 20)]
    assert ownership.doubles == set()
