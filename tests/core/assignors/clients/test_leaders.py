"""What leaders do around their assignors, and what they fail with, by hand, as the libraries were seen to do."""

from __future__ import annotations

import pytest

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.wire.consumer_protocol import UserData, UserDataForm, encode_user_data

ALL = tuple(TopicPartition("t", number) for number in range(5))
LIBRDKAFKA = sorted(name for name, each in CLIENT_ASSIGNORS.items() if each.library == "librdkafka")


def plan(name, *members):
    (only,) = CLIENT_ASSIGNORS[name].plans(Group(members, {"t": 5}), members[0].member_id)
    return only


@pytest.mark.parametrize("name", LIBRDKAFKA)
def test_librdkafka_leaves_out_who_names_no_topic_and_what_it_claims(name):
    found = plan(name, Member("a", ("t",)), Member("b", (), ALL[:2], 3))
    assert found.failure is None
    assert {member_id: sorted(mine) for member_id, mine in found.lists.items()} == {"a": list(ALL)}


@pytest.mark.parametrize("name", LIBRDKAFKA)
def test_librdkafka_where_nobody_names_a_topic(name):
    """Of a cooperative group the leader's process ends, with a segmentation fault."""
    found = plan(name, Member("a", ()))
    assert (found.lists, found.failure) == ({}, "no members" if "cooperative" in name else None)


@pytest.mark.parametrize(
    ("name", "form", "failure"),
    [
        ("kafka-python-sticky", UserDataForm.PREFIXED_OWNED_GENERATION, "KeyError: ('a', ())"),
        (
            "aiokafka-sticky",
            UserDataForm.OWNED_GENERATION,
            "KeyError: ConsumerSubscription(consumer='a', partitions=())",
        ),
    ],
)
def test_python_s_sticky_fails_where_the_older_claimant_of_a_partition_names_no_topic(name, form, failure):
    def claiming(member_id, topics, generation, *claimed):
        owned = tuple((topic, (0,)) for topic in claimed)
        return Member(member_id, tuple(topics), user_data=encode_user_data(UserData(form, owned, generation)))

    members = claiming("a", "", 1, "u"), claiming("b", "u", 1, "t", "u"), claiming("c", "tu", 2, "u")
    assert {each.failure for each in CLIENT_ASSIGNORS[name].plans(Group(members, {"t": 1, "u": 1}), "a")} == {failure}
