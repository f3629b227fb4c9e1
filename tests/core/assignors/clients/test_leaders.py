"""What leaders do around their assignors, by hand; as librdkafka 2.16.0 was seen to do."""

from __future__ import annotations

import pytest

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.custom.group import Group, Member, TopicPartition

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
