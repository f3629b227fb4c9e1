"""The leader's part of a cooperative rebalance: KIP-429's own words as a table, and what must hold for any group."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.arrays import ragged
from groupledger.core.arrays.ragged import MemberSlots, Naming, Slots, Topics, number
from groupledger.core.rebalance import step
from groupledger.core.rebalance.step import Form, GroupMembership, Step
from tests.examples import examples

Sets = dict[str, list[int]]


@dataclass(frozen=True)
class Round:
    """One group, topic of `count` partitions; what each member held, kept while rejoining, and is meant to get."""

    held: Sets
    owned: Sets
    target: Sets
    count: int = 8
    form: Form = Form.AS_KAFKA
    want: dict[str, Sets] = field(default_factory=dict)
    follow_up: bool = False
    incremental: bool | None = None


def lists(by_member: Sets, members: list[str]) -> tuple[np.ndarray, np.ndarray]:
    parts = [by_member.get(member, []) for member in members]
    return ragged.starts(np.array([len(part) for part in parts])), np.array([*chain(*parts)], np.int32)


def play(case: Round) -> tuple[list[str], Slots, Step, step.Sets]:
    members = sorted({*case.held, *case.owned, *case.target})
    start, partition = zip(*(lists(each, members) for each in (case.held, case.owned, case.target)), strict=True)
    topics = Topics(np.zeros(1, np.int64), np.array([case.count]), np.zeros(1, bool), np.ones(1, bool))
    slots, slot = number(topics, [Naming(np.zeros(len(each), np.int64), each) for each in partition])
    held, owned, target = (MemberSlots(a, b).distinct(len(slots)) for a, b in zip(start, slot, strict=True))
    incremental = any(case.owned.values()) if case.incremental is None else case.incremental
    party = GroupMembership(np.array([0, len(members)]), np.array([incremental]))
    assigned = step.assign_round(case.form, owned, target, slots)
    return (
        members,
        slots,
        step.measure(party, slots, held, owned, target, assigned),
        step.three_sets(owned, target, slots),
    )


def named(by_slot: MemberSlots, slots: Slots, members: list[str]) -> Sets:
    found: Sets = {}
    for member, slot in zip(by_slot.member, by_slot.slot, strict=True):
        found.setdefault(members[member], []).append(int(slots.partition[slot]))
    return found


CASES = {
    "KIP-429: the owner changes, so the new one waits and the old one revokes": Round(
        held={"a": [0, 1]}, owned={"a": [0, 1]}, target={"a": [0], "b": [1]},
        want={"assigned": {"a": [0]}, "added": {}, "revoked": {"a": [1]}, "awaiting": {"b": [1]}, "lost": {}},
        follow_up=True,
    ),
    "KIP-429: ready to migrate, nobody owns it, the new member gets it at once": Round(
        held={"a": [0]}, owned={"a": [0]}, target={"a": [0], "b": [1]},
        want={"assigned": {"a": [0], "b": [1]}, "added": {"b": [1]}, "revoked": {}, "awaiting": {}},
    ),
    "KIP-429: unknown but owned is given back to its owner": Round(
        held={"a": [0, 1]}, owned={"a": [0, 1]}, target={"a": [0]}, form=Form.KIP,
        want={"assigned": {"a": [0, 1]}, "added": {}, "revoked": {}, "awaiting": {}},
    ),
    "Kafka's client does not give it back: the owner revokes it and joins again": Round(
        held={"a": [0, 1]}, owned={"a": [0, 1]}, target={"a": [0]},
        want={"assigned": {"a": [0]}, "revoked": {"a": [1]}},
        follow_up=True,
    ),
    "two claim an unknown partition: nobody gets it back": Round(
        held={"a": [1]}, owned={"a": [1], "b": [1]}, target={"a": [0]}, form=Form.KIP,
        want={"assigned": {"a": [0]}, "revoked": {"a": [1]}, "added": {"a": [0]}},
        follow_up=True,
    ),
    "two claim it and one of them is meant to have it: it keeps it, the other revokes": Round(
        held={"a": [1]}, owned={"a": [1], "b": [1]}, target={"b": [1]},
        want={"assigned": {"b": [1]}, "added": {"b": [1]}, "revoked": {"a": [1]}, "awaiting": {}},
        follow_up=True,
    ),
    "the second round: nobody owns it any more": Round(
        held={"a": [0]}, owned={"a": [0]}, target={"a": [0], "b": [1]}, count=2,
        want={"assigned": {"a": [0], "b": [1]}, "awaiting": {}},
    ),
    "eager: everything revoked first, everything added": Round(
        held={"a": [0, 1], "b": [2]}, owned={}, target={"a": [0], "b": [1, 2]},
        want={"assigned": {"a": [0], "b": [1, 2]}, "added": {"a": [0], "b": [1, 2]}, "revoked": {"a": [0, 1], "b": [2]},
              "awaiting": {}, "lost": {}},
    ),
    "eager: a partition that is gone was revoked all the same": Round(
        held={"a": [0, 9]}, owned={}, target={"a": [0]}, want={"revoked": {"a": [0, 9]}, "lost": {}},
    ),
    "mixed: only an owner that stated its claim is waited for": Round(
        held={"a": [0, 1], "b": [2, 3]}, owned={"b": [2, 3]}, target={"a": [0, 2], "b": [1, 3]},
        want={"assigned": {"a": [0], "b": [1, 3]}, "awaiting": {"a": [2]}, "revoked": {"a": [0, 1], "b": [2]},
              "added": {"a": [0], "b": [1]}},
        follow_up=True,
    ),
    "cooperative: a partition that no longer exists is lost, not revoked": Round(
        held={"a": [0, 9]}, owned={"a": [0]}, target={"a": [0]},
        want={"assigned": {"a": [0]}, "revoked": {}, "lost": {"a": [9]}},
    ),
    "cooperative: all that a member held is gone, so it claims nothing": Round(
        held={"a": [9], "b": [0]}, owned={"b": [0]}, target={"b": [0]}, want={"revoked": {}, "lost": {"a": [9]}},
    ),
    "nothing changed": Round(
        held={"a": [0, 1]}, owned={"a": [0, 1]}, target={"a": [0, 1]},
        want={"assigned": {"a": [0, 1]}, "added": {}, "revoked": {}, "awaiting": {}, "lost": {}},
    ),
    "a claim of a partition that never was, and a negative one": Round(
        held={"a": [0]}, owned={"a": [0, 2_000_000_000, -7]}, target={"a": [0]},
        want={"assigned": {"a": [0]}, "revoked": {}, "lost": {}},
        follow_up=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_round(case):
    members, slots, taken, _ = play(case)
    found = {name: named(getattr(taken, name), slots, members) for name in case.want}
    assert found == case.want
    assert bool(taken.follow_up[0]) == case.follow_up


def test_the_three_sets_of_the_kip():
    case = Round(held={}, owned={"a": [0, 1, 2]}, target={"a": [0], "b": [1, 3]}, count=4)
    _, slots, _, sets = play(case)
    assert [slots.partition[mask].tolist() for mask in sets] == [[0, 1], [3], [2]]


def test_unassigned_partitions_have_a_reason():
    case = Round(held={"a": [0, 1]}, owned={"a": [0, 1]}, target={"a": [0], "b": [1]}, count=3)
    _, slots, taken, _ = play(case)
    reasons = [(int(slots.partition[slot]), step.Reason(reason).text)
               for slot, reason in zip(taken.unassigned, taken.reason, strict=True)]  # fmt: skip
    assert reasons == [(1, "awaiting-revocation"), (2, "assignor-left-out")]


def test_an_earlier_topic_of_the_same_name_is_another_topic():
    topics = Topics(np.zeros(1, np.int64), np.array([2]), np.zeros(1, bool), np.ones(1, bool))
    zero = np.zeros(1, np.int64)
    slots, (before, now) = number(
        topics, [Naming(zero, np.array([1], np.int32), np.array([True])), Naming(zero, np.array([1], np.int32))]
    )
    assert before != now
    assert [bool(slots.exists[before[0]]), bool(slots.exists[now[0]])] == [False, True]


@pytest.mark.parametrize(
    ("partitions", "gone", "earlier", "exists"),
    [(-1, False, False, True), (-1, False, True, False), (-1, True, False, False), (4, False, False, False)],
)
def test_what_no_listing_knows_is_not_called_gone(partitions, gone, earlier, exists):
    topics = Topics(np.zeros(1, np.int64), np.array([partitions]), np.array([gone]), np.ones(1, bool))
    naming = Naming(np.zeros(1, np.int64), np.array([5], np.int32), np.array([earlier]))
    slots, (slot,) = number(topics, [naming])
    assert bool(slots.exists[slot[0]]) is exists


def test_groups_do_not_touch_one_another():
    """Two groups in one batch give what each gives alone, and a group without members gives nothing."""
    topics = Topics(np.array([0, 2]), np.array([2, 2]), np.zeros(2, bool), np.ones(2, bool))
    rows = np.array([0, 0, 1, 1])
    slots, (owned_slot, target_slot) = number(
        topics, [Naming(rows[:2], np.array([0, 1], np.int32)), Naming(rows, np.array([0, 1, 0, 1], np.int32))]
    )
    party = GroupMembership(np.array([0, 2, 2, 4]), np.array([True, False, False]))
    owned = MemberSlots(np.array([0, 2, 2, 2, 2]), owned_slot)
    target = MemberSlots(np.array([0, 1, 2, 3, 4]), target_slot)
    assigned = step.assign_round(Form.AS_KAFKA, owned, target, slots)
    taken = step.measure(party, slots, owned, owned, target, assigned)
    assert step.by_group(party, assigned).tolist() == [1, 0, 2]
    assert step.by_group(party, taken.revoked).tolist() == [1, 0, 0]
    assert step.moves(party, slots, owned, target).tolist() == [1, 0, 0]
    assert taken.follow_up.tolist() == [True, False, False]
    assert [each.tolist() for each in step.load_range(party, target)] == [[1, 0, 1], [1, 0, 1]]


def test_a_group_of_one_member_has_a_load_too():
    party = GroupMembership(np.array([0, 1, 1, 3]), np.zeros(3, bool))
    target = MemberSlots(np.array([0, 3, 4, 6]), np.arange(6))
    assert [each.tolist() for each in step.load_range(party, target)] == [[3, 0, 1], [3, 0, 2]]


PARTITION = st.integers(-1, 9)
MEMBER_SETS = st.dictionaries(st.sampled_from("abcd"), st.lists(PARTITION, unique=True, max_size=6))


@st.composite
def rounds(draw) -> Round:
    owner = draw(st.dictionaries(st.integers(0, 7), st.sampled_from("abcd")))
    target: Sets = {}
    for partition, member in owner.items():
        target.setdefault(member, []).append(partition)
    count, form = draw(st.integers(6, 9)), draw(st.sampled_from(Form))
    return Round(draw(MEMBER_SETS), draw(MEMBER_SETS), target, count, form)


def pairs(by_slot: MemberSlots) -> set[tuple[int, int]]:
    return set(zip(by_slot.member.tolist(), by_slot.slot.tolist(), strict=True))


@settings(max_examples=examples(100), deadline=None)
@given(rounds())
def test_what_must_hold_of_any_round(case):
    members, slots, taken, sets = play(case)
    place = {member: at for at, member in enumerate(members)}

    def of(by_member: Sets) -> set[tuple[int, int]]:
        known = {(int(p), bool(0 <= p < case.count)): int(s) for s, p in enumerate(slots.partition)}
        return {(place[m], known[p, 0 <= p < case.count]) for m, parts in by_member.items() for p in parts}

    held, owned, target = of(case.held), of(case.owned), of(case.target)
    assigned, added, revoked, lost = (pairs(each) for each in (taken.assigned, taken.added, taken.revoked, taken.lost))
    awaiting = pairs(taken.awaiting)
    kept = assigned - added
    assert np.array(sets).sum(axis=0).max(initial=0) <= 1
    assert set(np.flatnonzero(np.any(sets, axis=0))) == {slot for _, slot in owned | target}
    assert held == kept | revoked | lost
    assert [kept & revoked, kept & lost, revoked & lost] == [set()] * 3
    assert target - assigned == awaiting
    assert assigned - target == (assigned & owned if case.form is Form.KIP else set()) - target
    for member, slot in assigned - owned:
        assert not any(other != member and at == slot for other, at in owned), "given away while another holds it"
    holders = [slot for _, slot in assigned]
    assert len(holders) == len(set(holders))
    assert set(taken.unassigned) == set(range(case.count)) - set(holders)
    for member, slot in awaiting:
        assert any(other != member and at == slot for other, at in owned), "withheld for nobody's sake"
    assert bool(taken.follow_up[0]) == bool(owned - assigned)


@settings(max_examples=examples(100), deadline=None)
@given(rounds())
def test_two_rounds_settle(case):
    """After the first round each member owns what it was assigned; the second round withholds nothing."""
    members, slots, taken, _ = play(case)
    first = named(taken.assigned, slots, members)
    kept = Round(first, first, case.target, case.count, case.form)
    members, again_slots, again, _ = play(kept)
    settled = named(again.assigned, again_slots, members)
    if case.form is Form.AS_KAFKA:
        assert {m: sorted(p) for m, p in settled.items()} == {m: sorted(p) for m, p in case.target.items()}
    assert len(again.awaiting.slot) == 0
