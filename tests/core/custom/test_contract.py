"""A custom assignor's answer is held against its contract: each way to break it has a name, and harms one group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.custom import Group, Member, TopicPartition
from groupledger.core.custom.contract import examine
from groupledger.core.custom.naming import find

FAULTY = "tests.core.custom.faulty"
OWNED_BY_B = tuple(TopicPartition("t", number) for number in range(4))
GROUP = Group(
    (Member("B", ("t",), OWNED_BY_B, 4), Member("A", ("t", "u")), Member("C", ("t",))), {"t": 4, "u": 2}
)  # fmt: skip


def examined(name, group=GROUP):
    return examine(find(f"{FAULTY}:{name}"), group)


def test_an_answer_that_keeps_the_contract():
    found = examined("in_turns")
    assert found.complaints == ()
    assert found.target == found.assigned
    assert found.assigned == {
        "A": (("t", 0), ("t", 3), ("u", 0), ("u", 1)),
        "B": (("t", 1),),
        "C": (("t", 2),),
    }


def test_a_cooperative_answer_withholds_what_another_owns():
    found = examined("in_turns_in_steps")
    assert found.complaints == ()
    assert found.target == examined("in_turns").target
    assert found.assigned == {"A": (("u", 0), ("u", 1)), "B": (("t", 1),)}


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("raises", "ASSIGNOR_RAISED", "raised KeyError: 'no weight for B'"),
        ("leaves", "ASSIGNOR_RAISED", "raised SystemExit: 3"),
        ("changes_the_group", "ASSIGNOR_RAISED", "raised AttributeError: 'mappingproxy' object has no attribute"),
        ("nothing", "ASSIGNOR_ANSWER_MALFORMED", "answered NoneType: lists are a NoneType; expected partitions as"),
        ("flat", "ASSIGNOR_ANSWER_MALFORMED", "expected partitions as (topic, number) by member id"),
        ("not_a_number", "ASSIGNOR_ANSWER_MALFORMED", "a partition number is True"),
        ("stranger", "ASSIGNOR_UNKNOWN_MEMBER", "answered for 'nobody', who is not in the group"),
        ("beyond", "ASSIGNOR_UNKNOWN_PARTITION", "assigned t-10000, which does not exist"),
        ("everything_to_everyone", "ASSIGNOR_DOUBLE_ASSIGNED", "assigned t-0 3 times; expected one owner each; 4 such"),
        ("twice_to_the_same", "ASSIGNOR_DOUBLE_ASSIGNED", "assigned t-0 2 times; expected one owner each"),
        ("whatever_to_the_last", "ASSIGNOR_NOT_SUBSCRIBED", "assigned u-0 to 'C', who does not subscribe"),
        ("in_turns_at_once", "ASSIGNOR_HANDED_OVER", "assigned t-0 to 'A' while 'B' still owns it"),
        ("off_target", "ASSIGNOR_OFF_TARGET", "gives another assignment than its own target asks for"),
        ("by_calls", "ASSIGNOR_NOT_PURE", "gave two answers to the same group"),
        ("first_in_line", "ASSIGNOR_ORDER_DEPENDENT", "answers otherwise when members, topics or owned partitions"),
    ],
)
def test_each_broken_rule_is_named(name, code, says):
    group = GROUP if name != "off_target" else Group((Member("A", ("t",)), Member("B", ("t",))), {"t": 2})
    found = examined(name, group)
    assert code in [complaint.code for complaint in found.complaints]
    (message,) = [complaint.message for complaint in found.complaints if complaint.code == code]
    assert message.startswith(f"{FAULTY}:{name} ")
    assert says in message
    assert found.assigned == found.target == {}


def test_a_group_of_nobody_gets_nothing_and_asks_nobody():
    found = examined("raises", Group((), {}))
    assert (found.assigned, found.target, found.complaints) == ({}, {}, ())


def test_addresses_of_this_process_are_not_told():
    def raises(group):
        raise ValueError(object())

    custom = find(f"{FAULTY}:raises")
    told = examine(replace(custom, function=raises), GROUP).complaints[0].message
    assert "object at 0x..>" in told
