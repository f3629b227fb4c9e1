"""KIP-315's own cases, its user data, and fairness and stickiness over any history."""

import base64
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.assignors.kip315 import JoinMemory, read_memory, remember, write_epoch, write_memory
from groupledger.core.faults import Fault
from groupledger.core.rebalance.step import Reason
from groupledger.core.scenarios.solving import solve
from tests.examples import examples

JOIN = ("clicks", "impressions")
BEYOND, NOT_SUBSCRIBED = Reason.BEYOND_LEAST_COUNT.text, Reason.OWNER_NOT_SUBSCRIBED.text


def join(memories, topics=None, subscribed=None):
    """A group: {member: (epoch, numbers) or None}, all on JOIN with ten partitions if nothing else is said."""
    members = [
        {
            "id": member,
            "topics": list((subscribed or {}).get(member, topics or JOIN)),
            "user_data": memory if memory is None else base64.b64encode(write_memory(JoinMemory(*memory))).decode(),
        }
        for member, memory in memories.items()
    ]
    return {"assignor": "sticky-stream-join", "topics": topics or dict.fromkeys(JOIN, 10), "members": members}


def numbers(result):
    """{member: its partition numbers}."""
    return {member: tuple(dict.fromkeys(each for _, each in pairs)) for member, pairs in result["assignment"].items()}


BEFORE = {"A": (4, (0, 1, 2)), "B": (4, (3, 4, 5)), "C": (4, (6, 7)), "D": (4, (8, 9))}


def test_a_consumer_that_got_nothing_sends_the_epoch_all_the_same():
    assert read_memory(write_memory(JoinMemory(4, ()))) == JoinMemory(4, ())


def test_the_kips_four_consumers_share_ten_partitions():
    assert numbers(solve(join(dict.fromkeys("ABCD")))) == {"A": (0, 4, 8), "B": (1, 5, 9), "C": (2, 6), "D": (3, 7)}
    kept = solve(join(BEFORE))
    assert numbers(kept) == {member: had for member, (_, had) in BEFORE.items()}
    assert kept["epoch"] == 5
    assert kept["unassigned"] == []


def test_who_subscribes_only_to_a_topic_without_partitions_takes_no_part():
    asked = join({"A": None, "C": None}, {"t": 4, "none": 0}, {"A": ["t"], "C": ["none"]})
    assert numbers(solve(asked)) == {"A": (0, 1, 2, 3), "C": ()}


def test_when_d_leaves_only_8_and_9_move():
    after = numbers(solve(join({member: BEFORE[member] for member in "ABC"})))
    assert after == {"A": (0, 1, 2, 9), "B": (3, 4, 5), "C": (6, 7, 8)}


def test_all_topics_of_a_number_go_to_one_member():
    result = solve(join(BEFORE))
    assert result["assignment"]["D"] == [["clicks", 8], ["impressions", 8], ["clicks", 9], ["impressions", 9]]


def test_a_member_that_joins_steals_from_the_longest_lists():
    after = numbers(solve(join({**BEFORE, "E": None})))
    assert after == {"A": (0, 1), "B": (3, 4), "C": (6, 7), "D": (8, 9), "E": (2, 5)}


def test_of_equally_long_lists_the_first_by_member_id_is_robbed():
    memories = {"A": (4, (0, 1, 2)), "B": (4, (3, 4, 5)), "C": None}
    assert numbers(solve(join(memories, {"t": 7}))) == {"A": (0, 1), "B": (3, 4, 5), "C": (2, 6)}


def test_a_zombie_loses_to_the_higher_epoch():
    case = {"A": (3, (0, 1, 2, 3)), "B": (4, (0, 1)), "C": (4, (2, 3))}
    after = solve(join(case, topics={"t": 4}))
    assert numbers(after) == {"A": (1,), "B": (0,), "C": (2, 3)}
    assert after["epoch"] == 5


def test_equal_epochs_go_to_the_first_by_id_and_an_epoch_without_successor_is_not_believed():
    tied = join({"B": (4, (0, 1)), "A": (4, (0, 1))}, topics={"t": 4})
    assert numbers(solve(tied)) == {"A": (0, 1), "B": (2, 3)}
    forged = join({"A": (2**31 - 1, (0, 1)), "B": (4, (0, 1))}, topics={"t": 4})
    assert numbers(solve(forged)) == {"A": (2, 3), "B": (0, 1)}
    assert solve(forged)["epoch"] == 5


def test_the_least_partition_count_is_assigned_and_the_rest_left_out_with_its_reason():
    result = solve(join({"A": (1, (0, 1)), "B": (1, (2, 3))}, topics={"grown": 4, "old": 2}))
    assert numbers(result) == {"A": (0,), "B": (1,)}
    assert result["unassigned"] == [["grown", 2, BEYOND], ["grown", 3, BEYOND]]


def test_a_topic_that_only_one_consumer_subscribes_to_does_not_overload_it():
    """The KIP's topic X: its only subscriber gets the numbers it has anyway."""
    topics = {"clicks": 6, "X": 6}
    result = solve(
        join({"A": None, "B": None, "C": None}, topics, {"A": ["clicks", "X"], "B": ["clicks"], "C": ["clicks"]})
    )
    assert [pair for pair in result["assignment"]["A"] if pair[0] == "X"] == [["X", 0], ["X", 3]]
    assert result["unassigned"] == [["X", each, NOT_SUBSCRIBED] for each in (1, 2, 4, 5)]


def test_topics_that_do_not_exist_and_members_without_any_take_no_part():
    result = solve(join({"A": None, "B": (1, (0,))}, {"clicks": 2}, {"A": ["clicks", "later"], "B": ["later"]}))
    assert numbers(result) == {"A": (0, 1), "B": ()}
    assert solve(join({}))["assignment"] == {}
    assert solve(join({"A": None}, {"other": 3}, {"A": ["later"]}))["assignment"] == {"A": []}


def test_what_a_consumer_keeps_is_what_it_sends():
    memory = remember([3, 1, 3, 1], write_epoch(7))
    assert memory == JoinMemory(7, (1, 3))
    assert write_memory(memory) == bytes.fromhex("000000000007000000020000000100000003")
    assert read_memory(write_memory(memory)) == memory
    assert read_memory(write_memory(memory) + b"later") == memory


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "it has 0 bytes"),
        (b"\xff\xff" + bytes(8), "its version is -1"),
        (bytes(6) + b"\x7f\xff\xff\xff", "announces 2,147,483,647 partitions in 10 bytes"),
        (bytes(6) + b"\xff\xff\xff\xff", "announces -1 partitions"),
    ],
)
def test_broken_user_data_is_named_and_counts_as_none(raw, what):
    with pytest.raises(Fault) as caught:
        read_memory(raw)
    assert what in caught.value.message
    case = join({"A": None}, topics={"t": 2})
    case["members"][0]["user_data"] = base64.b64encode(raw).decode()
    result = solve(case)
    assert numbers(result) == {"A": (0, 1)}
    assert list(result["unreadable"]) == ["A"]
    assert what in result["unreadable"]["A"]
    assert "unreadable" not in solve(join({"A": (4, (0,))}, topics={"t": 2}))


HISTORIES = st.tuples(
    st.integers(1, 24),
    st.dictionaries(
        st.sampled_from("ABCDEFG"),
        st.one_of(st.none(), st.tuples(st.integers(0, 3), st.lists(st.integers(-1, 30), max_size=24).map(tuple))),
        min_size=1,
    ),
)


def believed(count, memories):
    """{number: member that had it}, by epoch, then by id."""
    owner: dict[int, str] = {}
    for member in sorted(memories, key=lambda each: (-(memories[each] or (-1, ()))[0], each)):
        for number in (memories[member] or (-1, ()))[1]:
            if 0 <= number < count:
                owner.setdefault(number, member)
    return owner


def most_kept(count, memories):
    """How many numbers can stay at all when counts differ by one at most."""
    had = Counter(believed(count, memories).values())
    share, more = divmod(count, len(memories))
    ceilings = min(more, sum(1 for each in had.values() if each > share))
    return sum(min(each, share) for each in had.values()) + ceilings


@settings(max_examples=examples(100), deadline=None)
@given(HISTORIES)
def test_fair_complete_and_as_sticky_as_can_be(history):
    count, memories = history
    result = solve(join(memories, topics={"t": count, "u": count}))
    after = numbers(result)
    assert sorted(number for each in after.values() for number in each) == list(range(count))
    assert max(map(len, after.values())) - min(map(len, after.values())) <= 1
    owner = believed(count, memories)
    kept = sum(owner.get(number) == member for member, each in after.items() for number in each)
    assert kept == most_kept(count, memories)
    assert result["unassigned"] == []


@settings(max_examples=examples(100), deadline=None)
@given(HISTORIES, st.randoms(use_true_random=False))
def test_nothing_moves_when_nothing_changed_whatever_the_order(history, draw):
    count, memories = history
    first = solve(join(memories, topics={"t": count}))
    again = {member: (first["epoch"], each) for member, each in numbers(first).items()}
    shuffled = dict(draw.sample(list(again.items()), len(again)))
    assert solve(join(shuffled, topics={"t": count}))["assignment"] == first["assignment"]
    assert solve(join(dict(draw.sample(list(memories.items()), len(memories))), topics={"t": count})) == first


def test_compiled_and_plain_answer_alike(monkeypatch):
    cases = [join(BEFORE), join({**BEFORE, "E": None}), join({"A": None}, {"clicks": 3}, {"A": ["later", "clicks"]})]
    plain = [solve(case) for case in cases]
    monkeypatch.setenv("GROUPLEDGER_KERNELS", "numba")
    assert [solve(case) for case in cases] == plain
