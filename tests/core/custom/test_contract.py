"""A custom assignor's answer is held against its contract: each way to break it has a name, and harms one group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.custom import Group, Member, TopicPartition, stale_members
from groupledger.core.custom.assignor_names import find
from groupledger.core.custom.contract import examine

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


STALE = Group(
    (
        Member("B", ("t",), (OWNED_BY_B[0], OWNED_BY_B[1], OWNED_BY_B[3]), 4),
        Member("A", ("t",), (OWNED_BY_B[2],), 5),
        Member("C", ("t",)),
    ),
    {"t": 4},
)
GIVEN_TO_A = {
    "in_turns_in_steps": (),
    "in_turns_without_one_stale_claim": (("t", 0),),
    "in_turns_without_stale_claims": (("t", 0), ("t", 3)),
}


@pytest.mark.parametrize(("name", "given"), GIVEN_TO_A.items())
def test_a_claim_that_is_out_of_date_may_be_respected_or_set_aside(name, given):
    """B missed an assignment: it states generation 4 and A 5. What A claims is held back in any case."""
    found = examined(name, STALE)
    assert found.complaints == ()
    assert found.target == examined("in_turns", STALE).target
    assert {name: owned for name, owned in found.assigned.items() if owned} == {
        **({"A": given} if given else {}),
        "B": (("t", 1),),
    }


@pytest.mark.parametrize("generation", [5, 6, None])
def test_a_claim_of_the_highest_generation_or_of_none_is_no_stale_one(generation):
    """None is what older byte code states: it may be as new as any other."""
    members = [replace(each, generation=generation) if each.member_id == "B" else each for each in STALE.members]
    found = examined("in_turns_at_once", Group(tuple(members), STALE.topics))
    assert [complaint.code for complaint in found.complaints] == ["ASSIGNOR_HANDED_OVER"]
    assert "B" not in stale_members(Group(tuple(members), STALE.topics))


def test_a_partition_that_two_claim_is_held_back_for_the_one_that_is_up_to_date():
    disputed = Group((*STALE.members, Member("D", ("t",), OWNED_BY_B[:1], 5)), {"t": 4})
    assert stale_members(disputed) == {"B"}
    assert ("t", 0) not in examined("in_turns_without_stale_claims", disputed).assigned.get("A", ())
    assert [each.code for each in examined("in_turns_at_once", disputed).complaints] == ["ASSIGNOR_HANDED_OVER"]


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
