"""KIP-792, statement by statement: the numbers are those of docs/contributing/kips.md."""

from __future__ import annotations

import pytest

from groupledger.core.custom.contract import examine
from groupledger.core.custom.custom_group import CustomAssignor, Group, Member, Protocol, validate_subscription
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Memory, Seat, Subscription
from groupledger.core.protocol.leader import Question, plan
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_subscription,
    encode_subscription,
)
from tests.core.protocol.played import listener_calls, member, t

V0, V1, V2 = ByteCode
TOPIC = "00000001 000161"
NO_OWNED = "00000000"


def sent(owned, *, said=4, remembered=None, version=V2):
    """A subscription: what the member says it owns of generation `said`, and what its user data remembers."""
    memory = Memory() if remembered is None else remembered
    stated = owned if version >= V1 else ()
    return Subscription(version, ("t",), stated, said if version >= V2 else None, memory)


def assigned(subscriptions, assignor="cooperative-sticky", form=Form.KIP, custom=None):
    seats = tuple(Seat(name, each) for name, each in subscriptions.items())
    return plan(Question(assignor, seats, {"t": 4}, form), custom)


def test_kip_792_1_version_2_has_a_generation_at_its_end_and_minus_one_is_none():
    bytes_of = f"0002 {TOPIC} ffffffff {NO_OWNED}"
    assert decode_subscription(bytes.fromhex(f"{bytes_of} 00000007")) == ConsumerProtocolSubscription(
        2, ("a",), generation=7
    )
    assert decode_subscription(bytes.fromhex(f"{bytes_of} ffffffff")).generation is None
    assert encode_subscription(ConsumerProtocolSubscription(2, ("a",))) == bytes.fromhex(f"{bytes_of} ffffffff")


def test_kip_792_2_a_newer_version_is_read_by_the_fields_that_are_known():
    newer = bytes.fromhex(f"0009 {TOPIC} ffffffff {NO_OWNED} 00000007 ffff beef")
    assert decode_subscription(newer).generation == 7
    assert decode_subscription(newer).topics == ("a",)


@pytest.mark.parametrize("generation", [0, 4])
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("protocol", list(Protocol))
@pytest.mark.parametrize("owned", [(), t(0)])
def test_kip_792_3_every_consumer_sends_its_generation(generation, form, protocol, owned):
    """All do: eager or cooperative, be there something that it dates or not; -1 before the first and after a reset."""
    someone = member(protocol, owned, generation, form)
    assert c.join(someone).subscription.generation == generation
    assert c.join(c.receive_assignment(someone, t(1)).consumer).subscription.generation == generation
    fallen = c.fall_out(someone, c.Error.ILLEGAL_GENERATION).consumer
    assert fallen.memory.generation == generation
    assert c.join(fallen).subscription.generation is None
    assert c.join(member(protocol, (), None, form)).subscription.generation is None


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize(("older", "newer"), [("a", "b"), ("b", "a")])
def test_kip_792_4_of_two_claims_the_one_of_the_highest_generation_counts(form, older, newer):
    target = assigned({name: sent(t(0, 1), said=5 if name == newer else 3) for name in "ab"}, form=form).target
    assert set(target[newer]) == set(t(0, 1))
    assert set(target[older]) == set(t(2, 3))


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "sticky"])
def test_kip_792_5_version_0_says_nothing_and_is_no_owner(assignor):
    target = assigned({"old": sent(t(0, 1), version=V0), "new": sent(())}, assignor).target
    assert {name: len(owned) for name, owned in target.items()} == {"old": 2, "new": 2}
    assert assigned({"old": sent(t(0, 1), version=V0), "new": sent(())}).sets.maybe_revoking == ()


def test_kip_792_6_a_version_1_claim_is_dated_by_its_user_data():
    """Cooperative-sticky writes the generation there too; the claim of the higher one counts."""
    old = sent(t(0, 1), version=V1, remembered=Memory((), 5))
    new = sent(t(0, 1), said=3)
    target = assigned({"old": old, "new": new}).target
    assert set(target["old"]) == set(t(0, 1))


@pytest.mark.parametrize("version", [V0, V1, V2])
def test_kip_792_7_sticky_goes_by_its_user_data_whatever_the_version(version):
    mine = sent((), version=version, remembered=Memory(t(0, 1), 5))
    other = sent((), remembered=Memory(t(0, 1), 4))
    target = assigned({"mine": mine, "other": other}, "sticky").target
    assert set(target["mine"]) == set(t(0, 1))


def newest(group):
    """A custom assignor that reads owned partitions and generations: all to whoever claims in the highest one."""
    latest = max(group.members, key=lambda each: (-1 if each.generation is None else each.generation, each.member_id))
    return {latest.member_id: list(group.partitions(latest.member_id))}


def unaware(group):
    """One that was written before: it reads neither."""
    first = min(each.member_id for each in group.members)
    return {first: list(group.partitions(first))}


@pytest.mark.parametrize(("function", "winner"), [(newest, "b"), (unaware, "a")])
def test_kip_792_8_custom_assignors_may_read_both_and_need_not(function, winner):
    custom = {"mine": CustomAssignor("mine", function, frozenset({Protocol.EAGER}), None)}
    target = assigned({"a": sent((), said=4), "b": sent((), said=5)}, "mine", custom=custom).target
    assert len(target[winner]) == 4


def test_kip_792_9_validate_subscription_finds_overlapping_claims():
    claims = [Member("a", ("t",), t(0, 1), 4), Member("b", ("t",), t(1), 5)]
    (overlap,) = validate_subscription(claims)
    assert (overlap.partition, overlap.claimants, overlap.owner) == (t(1)[0], ("a", "b"), "b")
    assert validate_subscription(claims[:1]) == ()


def test_kip_792_10_the_coordinator_reads_no_subscription():
    """It chooses an assignor and a leader for members whose subscriptions it could not read."""
    from groupledger.core.protocol.classic_group import Coordinator, Registered

    coordinator = Coordinator()
    unreadable = Subscription(V2, (), generation=-7)
    coordinator.seat(Registered("a", "a-1", ("range",), unreadable, None))
    coordinator.start_generation(["a-1"])
    assert (coordinator.assignor, coordinator.leader, coordinator.generation) == ("range", "a-1", 1)


def test_kip_792_11_an_out_of_date_member_needs_no_round_of_its_own():
    """No error and no extra round: the leader sets its old claim aside in the round that goes on."""
    joins = [e.Join(name, ("t",)) for name in "ab"]
    undisturbed = simulate(Script({"t": 4}, [*joins, e.Join("c", ("t",))]))[-1]
    settled = simulate(Script({"t": 4}, [*joins, e.MissAssignment("a"), e.Join("c", ("t",))]))[-1]
    assert len(settled.rounds) == len(undisturbed.rounds)
    assert not any("Lost" in each for each in listener_calls(settled))
    assert settled.stable
    assert settled.unowned == ()
    assert all(
        len({*row}) == len(row)
        for row in ([each for m in took.members for each in m.assigned] for took in settled.rounds)
    )


def test_kip_792_12_the_same_generation_used_again_does_no_harm():
    """Generations only date claims against one another: shifted by any number they give the same plan."""
    plans = [assigned({"a": sent(t(0, 1), said=n), "b": sent(t(1, 2), said=n + 1)}) for n in (0, 4, 1_000)]
    assert plans[0] == plans[1] == plans[2]


def test_kip_792_13_user_data_stays_where_it_is():
    """The new field stands after it, so an assignor's own bytes come back whole from every version."""
    for version in (0, 1, 2, 3):
        wire = ConsumerProtocolSubscription(version, ("a",), b"\x01\x02")
        assert decode_subscription(encode_subscription(wire)).user_data == b"\x01\x02"


@pytest.mark.parametrize(
    ("generation", "codes"), [(4, []), (5, ["ASSIGNOR_HANDED_OVER"]), (None, ["ASSIGNOR_HANDED_OVER"])]
)
def test_kip_792_15_a_custom_assignor_may_set_stale_claims_aside(generation, codes):
    """a missed an assignment; all goes to b, which states generation 5. A claim that may be fresh is held back."""
    custom = CustomAssignor("mine", everything_to_b, frozenset({Protocol.COOPERATIVE}), None)
    group = Group((Member("a", ("t",), t(0, 1), generation), Member("b", ("t",), t(2, 3), 5)), {"t": 4})
    assert [each.code for each in examine(custom, group).complaints] == codes


def everything_to_b(group):
    return {"b": list(group.partitions("b"))}


@pytest.mark.parametrize("old", [V0, V1])
def test_kip_792_14_old_and_new_byte_code_live_in_one_group(old):
    joins = [e.Join("a", ("t",), byte_code=old), e.Join("b", ("t",)), e.Join("c", ("t",), byte_code=old)]
    settled = simulate(Script({"t": 6}, joins))[-1]
    assert settled.stable
    assert sorted(settled.owners.values()) == ["a", "a", "b", "b", "c", "c"]
