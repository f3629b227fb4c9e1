"""KIP-429, statement by statement: the numbers are those of docs/contributing/kips.md."""

from __future__ import annotations

import pytest

from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import SUPPORTED, ByteCode, protocol_of
from groupledger.core.protocol.consumer import Callback, Memory, Seat, Subscription
from groupledger.core.protocol.leader import Question, plan
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.played import COOPERATIVE, EAGER, calls_of, listener_calls, member, said, t

BOTH = ("range", "cooperative-sticky")


def ask(seats, view=None, assignor="cooperative-sticky", form=Form.KIP, code=ByteCode.KIP_792):
    """The plan for members that own so much, all in generation 4."""
    subscriptions = {name: Subscription(ByteCode.KIP_792, ("t",), t(*owned), 4) for name, owned in seats.items()}
    question = Question(assignor, tuple(Seat(*each) for each in subscriptions.items()), view or {"t": 4}, form, code)
    return plan(question)


def run(*events, topics=None, form=Form.KIP):
    return simulate(Script(topics or {"t": 4}, events, form))


def join(name, assignors=("cooperative-sticky",), **more):
    return e.Join(name, ("t",), assignors, **more)


# Proposed changes, 1: before JoinGroup


def test_kip_429_1_what_left_the_subscription_is_revoked():
    changed = c.change_subscription(member(owned=(*t(0), *t(1, topic="u")), topics=("t", "u")), ["t"], known=True)
    assert changed.joins
    assert said(c.join(changed.consumer).calls) == ["onPartitionsRevoked u-1", "subscriptionUserData"]


def test_kip_429_2_what_is_left_is_sent_as_owned():
    changed = c.change_subscription(member(owned=(*t(0), *t(1, topic="u")), topics=("t", "u")), ["t"], known=True)
    assert c.join(changed.consumer).subscription.owned == t(0)


def test_kip_429_3_what_no_longer_exists_is_lost():
    changed = c.change_metadata(member(owned=t(0, 1, 2)), {"t": 1})
    assert said(changed.calls) == ["onPartitionsLost t-1 t-2"]
    assert changed.consumer.owned == frozenset(t(0))
    assert c.change_metadata(member(owned=t(0)), {"t": 9}).calls == ()


@pytest.mark.parametrize("leads", [True, False])
def test_kip_429_4_only_the_leader_joins_when_metadata_changes(leads):
    assert c.change_metadata(member(leads=leads), {"t": 9}).joins is leads
    assert not c.change_metadata(member(leads=leads), {"t": 8}).joins


def test_kip_429_5_rebalance_in_progress_joins_with_all_that_is_owned():
    joining = c.join(member(owned=t(2, 0)))
    assert joining.subscription.owned == t(0, 2)
    assert said(joining.calls) == ["subscriptionUserData"]


@pytest.mark.parametrize(
    ("error", "member_id"), [(c.Error.UNKNOWN_MEMBER_ID, None), (c.Error.ILLEGAL_GENERATION, "m-1")]
)
@pytest.mark.parametrize("protocol", [EAGER, COOPERATIVE])
def test_kip_429_6_who_fell_out_loses_everything_and_joins_with_nothing(error, member_id, protocol):
    fallen = c.fall_out(member(protocol, owned=t(0, 1)), error)
    assert said(fallen.calls) == ["onPartitionsLost t-0 t-1"]
    assert (fallen.joins, fallen.consumer.member_id, fallen.consumer.generation) == (True, member_id, None)
    assert c.join(fallen.consumer).subscription.owned == ()


def test_kip_429_7_member_id_required_sets_the_id_and_joins_again():
    joining = c.receive_member_id(member(member_id=None, generation=None), "m-2")
    assert joining.consumer.member_id == "m-2"
    assert joining.subscription.owned == ()
    with pytest.raises(AssertionError, match="expected nothing"):
        c.receive_member_id(member(owned=t(0)), "m-2")


# Proposed changes, 2: the leader


def test_kip_429_8_owned_partitions_are_collected_from_all_subscriptions():
    sets = ask({"a": (0, 1), "b": (2,)}).sets
    assert sorted((*sets.maybe_revoking, *sets.unknown_but_owned)) == list(t(0, 1, 2))


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_kip_429_9_the_selected_assignor_decides_on_the_leaders_metadata(assignor):
    target = ask({"a": (), "b": ()}, assignor=assignor).target
    assert sorted(each for given in target.values() for each in given) == list(t(0, 1, 2, 3))


SETS = {
    "maybe revoking: owned and assigned": (0, t(0, 1)),
    "ready to migrate: assigned and not owned": (1, t(2, 3)),
    "unknown but owned: owned and not assigned": (2, t(7)),
}


@pytest.mark.parametrize(("which", "partitions"), SETS.values(), ids=SETS.keys())
def test_kip_429_10_the_three_sets_of_owned_and_assigned(which, partitions):
    assert ask({"a": (0, 1, 7), "b": ()}).sets[which] == partitions


def test_kip_429_11_the_three_sets_exclude_one_another():
    sets = ask({"a": (0, 1, 7), "b": (2, 9)}).sets
    flat = [each for one in sets for each in one]
    assert len(flat) == len(set(flat))


def test_kip_429_12_ready_to_migrate_is_what_was_revoked_or_is_new():
    joined, grown = run(join("a"), join("b"), e.SetPartitions("t", 6))[1:]
    assert joined.rounds[1].sets.ready_to_migrate == t(2, 3)
    assert grown.rounds[0].sets.ready_to_migrate == t(4, 5)
    eager = run(join("a", BOTH), join("b", BOTH))[1]
    assert eager.rounds[0].sets.ready_to_migrate == t(0, 1, 2, 3)


def test_kip_429_13_unknown_but_owned_is_what_a_stale_leader_does_not_know():
    stale = (e.FreezeMetadata("a"), e.SetPartitions("t", 6), e.RefreshMetadata("a"))
    *_, known = run(join("a"), *stale)
    assert known.rounds[-1].sets.unknown_but_owned == ()
    assert ask({"a": (0, 1), "b": (2, 5)}).sets.unknown_but_owned == t(5)


def test_kip_429_14_a_partition_whose_owner_changes_is_kept_from_the_new_one():
    made = ask({"a": (0, 1, 2, 3), "b": ()})
    assert made.target == {"a": t(0, 1), "b": t(2, 3)}
    assert made.assigned == {"a": t(0, 1), "b": ()}


def test_kip_429_15_the_old_owner_revokes_it_and_another_rebalance_gives_it_away():
    joined = run(join("a"), join("b"))[1]
    assert [each.assigned for each in joined.rounds[0].members] == [t(0, 1), ()]
    assert [each.joins_again for each in joined.rounds[0].members] == [True, False]
    assert [each.assigned for each in joined.rounds[1].members] == [t(0, 1), t(2, 3)]
    assert listener_calls(joined, "a")[0] == "onPartitionsRevoked t-2 t-3"


def test_kip_429_16_ready_to_migrate_goes_to_the_new_owner_at_once():
    assert ask({"a": (0, 1), "b": ()}).assigned["b"] == t(2, 3)


def test_kip_429_17_unknown_but_owned_goes_back_to_its_owner():
    assert ask({"a": (0, 7), "b": (1,)}).assigned["a"][-1:] == t(7)
    assert ask({"a": (0, 7), "b": (1, 7)}).assigned == {"a": t(0, 2), "b": t(1, 3)}  # two say so: one of them is wrong


# Proposed changes, 3: after SyncGroup


def test_kip_429_18_newly_added_and_revoked_are_the_two_differences():
    answered = c.receive_assignment(member(owned=t(0, 1)), t(1, 2))
    assert said(answered.calls) == [
        "onPartitionsRevoked t-0",
        "onAssignment t-1 t-2",
        "onPartitionsAssigned t-2",
    ]


def test_kip_429_19_the_assignment_is_updated():
    assert c.receive_assignment(member(owned=t(0, 1)), t(1, 2)).consumer.owned == frozenset(t(1, 2))


@pytest.mark.parametrize(("given", "again"), [(t(0), True), (t(0, 1), False), (t(0, 1, 2), False)])
def test_kip_429_20_who_revokes_something_joins_again(given, again):
    answered = c.receive_assignment(member(owned=t(0, 1)), given)
    assert answered.joins is again
    assert any("Revoked" in each for each in said(answered.calls)) is again


def test_kip_429_21_assigned_is_called_even_with_nothing_new():
    assert said(c.receive_assignment(member(owned=t(0)), t(0)).calls) == ["onAssignment t-0", "onPartitionsAssigned"]


# CooperativeStickyAssignor and custom COOPERATIVE assignors


def test_kip_429_22_cooperative_sticky_reads_owned_and_not_what_user_data_remembers():
    sent = Subscription(ByteCode.KIP_792, ("t",), t(3), 4, Memory(t(0, 1, 2), 4))
    seats = (Seat("a", sent), Seat("b", Subscription(ByteCode.KIP_792, ("t",), (), 4)))
    assert t(3)[0] in plan(Question("cooperative-sticky", seats, {"t": 4}, Form.KIP)).assigned["a"]
    assert t(0)[0] in plan(Question("sticky", seats, {"t": 4}, Form.KIP)).assigned["a"]


@pytest.mark.parametrize(
    ("assignors", "protocol"),
    [(("cooperative-sticky",), COOPERATIVE), (BOTH, EAGER), (("range",), EAGER), (("stream",), COOPERATIVE)],
)
def test_kip_429_23_a_consumer_is_cooperative_if_all_its_assignors_are(assignors, protocol):
    assert protocol_of([SUPPORTED[each] for each in assignors]) is protocol


def test_kip_429_24_the_target_is_as_sticky_as_balance_allows():
    assert ask({"a": (0, 1), "b": (2, 3)}).assigned == {"a": t(0, 1), "b": t(2, 3)}
    kept = ask({"a": (0, 1, 2), "b": (3,), "c": ()}, view={"t": 4}).target
    assert set(kept["b"]) == set(t(3))


def test_kip_429_25_a_target_that_is_all_different_is_the_eager_protocol_again():
    """Whoever owns everything and gets nothing gives up everything, and only the next round gives it away."""
    step = c.receive_assignment(member(owned=t(0, 1)), ())
    assert said(step.calls)[0] == "onPartitionsRevoked t-0 t-1"
    assert step.joins


# Semantics of the callbacks: the two timelines


def test_kip_429_26_the_eager_timeline():
    joined = run(join("a", ("range",)), join("b", ("range",)))[1]
    assert calls_of(joined, "a", 1) == [
        "onPartitionsRevoked t-0 t-1 t-2 t-3",
        "subscriptionUserData",
        "assign",
        "onAssignment t-0 t-1",
        "onPartitionsAssigned t-0 t-1",
    ]
    assert calls_of(joined, "b", 1) == [
        "onPartitionsRevoked",
        "subscriptionUserData",
        "subscriptionUserData",  # JoinGroup goes out twice: the first answer is MEMBER_ID_REQUIRED
        "onAssignment t-2 t-3",
        "onPartitionsAssigned t-2 t-3",
    ]


@pytest.mark.parametrize("assignors", [("range",), ("cooperative-sticky",)])
def test_kip_429_27_who_missed_a_rebalance_loses_all_first(assignors):
    gone = (e.Pause("b"), e.Expire("b"), e.Resume("b"))
    back = run(join("a", assignors), join("b", assignors), *gone)[-1]
    assert listener_calls(back, "b")[0] == "onPartitionsLost t-2 t-3"
    nothing = run(join("a", assignors), e.DeleteTopic("t"), e.Pause("a"), e.Expire("a"), e.Resume("a"))[-1]
    assert {row.member for took in nothing.rounds for row in took.members} == {"a"}
    assert not any("Lost" in each for each in listener_calls(nothing))
    static = [join(name, assignors, group_instance_id=f"i-{name}") for name in "ab"]
    kept = run(*static, e.Pause("b"), join("c", assignors), e.Resume("b"))[-1]
    assert listener_calls(kept, "b")[0] == "onPartitionsLost t-2 t-3"  # ILLEGAL_GENERATION: it has its seat still
    assert [row.owned for row in kept.rounds[0].members if row.member_id == "b-1"] == [()]


def test_kip_429_28_the_cooperative_timeline():
    joined = run(join("a"), join("b"))[1]
    assert calls_of(joined, "a", 1) == [
        "subscriptionUserData",
        "assign t-0 t-1 t-2 t-3",  # it sees what everyone owns
        "onPartitionsRevoked t-2 t-3",
        "onAssignment t-0 t-1",
        "onPartitionsAssigned",
    ]
    assert calls_of(joined, "b", 2) == ["subscriptionUserData", "onAssignment t-2 t-3", "onPartitionsAssigned t-2 t-3"]


def test_kip_429_29_before_joining_only_what_left_the_subscription_is_revoked():
    topics = {"t": 2, "u": 2}
    changed = simulate(Script(topics, [e.Join("a", ("t", "u")), e.Subscribe("a", ("t",))]))[1]
    assert calls_of(changed, "a", 1)[:3] == ["onPartitionsRevoked u-0 u-1", "subscriptionUserData", "assign t-0 t-1"]
    assert not any("Revoked" in each for each in listener_calls(run(join("a"), e.SetPartitions("t", 5))[1]))


def test_kip_429_30_the_assignor_sees_what_is_owned_less_what_was_lost():
    changed = simulate(Script({"t": 2, "u": 2}, [e.Join("a", ("t", "u")), e.DeleteTopic("u")]))[1]
    assert calls_of(changed, "a", 0) == ["onPartitionsLost u-0 u-1"]
    assert "assign t-0 t-1" in calls_of(changed, "a", 1)


def test_kip_429_31_a_revocation_means_that_a_follow_up_comes():
    found = []
    for settlement in run(join("a"), join("b"), join("c"), e.Leave("b"), e.SetPartitions("t", 9)):
        for took in settlement.rounds:
            made = [each.call.callback for each in settlement.calls if each.round == took.number]
            gone = any(set(each.owned) - set(each.assigned) for each in took.members)
            found.append((Callback.REVOKED in made, gone, took is not settlement.rounds[-1]))
    assert found == [  # onPartitionsRevoked was called, something was taken away, another round follows
        *[(False, False, False)],  # a is alone
        *[(True, True, True), (False, False, False)],  # b joins
        *[(True, True, True), (False, False, False)],  # c joins
        *[(False, False, False), (False, False, False)],  # b leaves; partitions are added
    ]


def test_kip_429_32_on_assignment_comes_after_revoked_and_before_assigned():
    made = said(c.receive_assignment(member(owned=t(0, 1)), t(1, 2)).calls)
    assert [each.split()[0] for each in made] == ["onPartitionsRevoked", "onAssignment", "onPartitionsAssigned"]


def test_kip_429_33_assigned_never_overlaps_revoked():
    answered = c.receive_assignment(member(owned=t(0, 1, 2)), t(2, 3))
    revoked, _, assigned = (set(each.partitions) for each in answered.calls)
    assert not revoked & assigned


def test_kip_429_34_assigned_tells_that_a_rebalance_is_over_and_revoked_need_not_come():
    left = run(join("a"), join("b"), e.Leave("b"))[2]
    assert listener_calls(left, "a") == ["onPartitionsAssigned t-2 t-3"]
