"""What is promised where an answer is left to chance, by hand: kept, and broken."""

from __future__ import annotations

import pytest

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.wire.consumer_protocol import UserData, UserDataForm, encode_user_data


def member(name, topics, owned=(), generation=None):
    """A member that says what it owns in its subscription and in KIP-54's user data."""
    pairs = tuple(TopicPartition("t", number) for number in owned)
    said = UserData(UserDataForm.OWNED_GENERATION, (("t", tuple(owned)),) if owned else (), generation)
    return Member(name, tuple(topics), pairs, generation, user_data=encode_user_data(said))


def given(**lists):
    return {name: [TopicPartition("t", number) for number in numbers] for name, numbers in lists.items()}


CLAIMED_TWICE = member("a", "t", [0], 2), member("b", "u", [0], 1), member("c", "t")
CLAIMED_ONCE = member("a", "t"), member("b", "u", [0], 1), member("c", "t")
NAMED_TWICE = member("a", "tt"), member("b", "t")


@pytest.mark.parametrize(
    ("name", "members", "lists", "kept"),
    [
        pytest.param("sarama-sticky", CLAIMED_TWICE, given(a=[1], b=[0], c=[2]), True, id="back to an older claimant"),
        pytest.param("sarama-sticky", CLAIMED_TWICE, given(a=[1], c=[2]), True, id="or to nobody"),
        pytest.param("sarama-sticky", CLAIMED_ONCE, given(a=[1], c=[2]), False, id="to nobody for no reason"),
        pytest.param("sarama-sticky", CLAIMED_TWICE, given(a=[0, 1], c=[0, 2]), False, id="to two members"),
        pytest.param("sarama-sticky", CLAIMED_ONCE, given(a=[1], b=[0], c=[2]), False, id="to the only claimant"),
        pytest.param("franz-go-sticky", CLAIMED_TWICE, given(a=[1], b=[0], c=[2]), False, id="Sarama alone does so"),
        pytest.param("sarama-sticky", CLAIMED_TWICE, given(a=[1, 2], b=[0], c=[]), False, id="and not balanced"),
        pytest.param("sarama-cooperative-sticky", CLAIMED_TWICE, given(a=[1], b=[0], c=[2]), True, id="back again"),
        pytest.param("sarama-cooperative-sticky", CLAIMED_ONCE, given(b=[0], a=[1], c=[2]), False, id="no subscriber"),
        pytest.param("kafka-go-rack-affinity", NAMED_TWICE, given(a=[0], b=[1]), True, id="one left out"),
        pytest.param("kafka-go-rack-affinity", NAMED_TWICE, given(a=[0], b=[0]), False, id="one given twice"),
        pytest.param("kafka-go-rack-affinity", NAMED_TWICE[1:], given(b=[0, 1]), False, id="left out for no reason"),
    ],
)
def test_the_promise(name, members, lists, kept):
    assert CLIENT_ASSIGNORS[name].promise(Group(members, {"t": 3, "u": 0}), lists) is kept


def test_who_got_one_back_without_subscribing_need_get_no_more():
    group = Group(CLAIMED_TWICE[:2], {"t": 4, "u": 0})
    assert CLIENT_ASSIGNORS["sarama-sticky"].promise(group, given(a=[1, 2, 3], b=[0]))
