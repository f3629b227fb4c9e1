"""Whole groups on paper: what each event leads to, round by round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.custom.custom_group import CustomAssignor, Protocol
from groupledger.core.custom.custom_group import Group as CustomGroup
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import Coordinator, Registered
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Callback, Subscription
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate, simulate_all
from groupledger.core.rebalance.step import Form
from tests.core.protocol.drawn import script
from tests.core.protocol.played import listener_calls, owners_of, t


def join(name, instance=None, topics=("t",), assignors=("cooperative-sticky",)):
    return e.Join(name, topics, assignors, instance)


def run(*events, form=Form.KIP, topics=None, custom=None, pace=None):
    return simulate(Script(topics or {"t": 4}, events, form, pace or Pace()), custom)


A, B = join("a"), join("b")
STATIC = join("a", "i-a"), join("b", "i-b")

# what happens last; rounds; calls of the listeners; owners afterwards
STORIES = {
    "a first member": ([A], 1, ["onPartitionsAssigned t-0 t-1 t-2 t-3"], {"a": 4}),
    "a second one: revoke, then give": (
        [A, B],
        2,
        [
            "onPartitionsRevoked t-2 t-3",
            "onPartitionsAssigned",
            "onPartitionsAssigned",
            "onPartitionsAssigned",
            "onPartitionsAssigned t-2 t-3",
        ],
        {"a": 2, "b": 2},
    ),
    "one leaves": ([A, B, e.Leave("a")], 1, ["onPartitionsRevoked t-0 t-1", "onPartitionsAssigned t-0 t-1"], {"b": 4}),
    "one crashes: nothing happens": ([A, B, e.Crash("a")], 0, [], {"b": 2}),
    "and its session runs out": ([A, B, e.Crash("a"), e.Expire("a")], 1, ["onPartitionsAssigned t-0 t-1"], {"b": 4}),
    "the last one leaves": ([A, e.Leave("a")], 1, ["onPartitionsRevoked t-0 t-1 t-2 t-3"], {}),
    "partitions added: only new ones are given": (
        [A, B, e.SetPartitions("t", 6)],
        1,
        ["onPartitionsAssigned t-4", "onPartitionsAssigned t-5"],
        {"a": 3, "b": 3},
    ),
    "a topic deleted: lost, not revoked": (
        [A, B, e.DeleteTopic("t")],
        1,
        [
            "onPartitionsLost t-0 t-1",
            "onPartitionsLost t-2 t-3",
            "onPartitionsAssigned",
            "onPartitionsAssigned",
        ],
        {},
    ),
    "a static member restarts: no rebalance, its own partitions": (
        [*STATIC, e.Crash("b"), e.Restart("b")],
        0,
        ["onPartitionsAssigned t-2 t-3"],
        {"a": 2, "b": 2},
    ),
    "a static member closes: its partitions wait for it": (
        [*STATIC, e.Leave("b")],
        0,
        ["onPartitionsRevoked t-2 t-3"],
        {"a": 2},
    ),
    "a dynamic member restarts: a newcomer, and its old seat goes": (
        [A, B, e.Crash("b"), e.Restart("b")],
        1,
        ["onPartitionsAssigned", "onPartitionsAssigned t-2 t-3"],
        {"a": 2, "b": 2},
    ),
    "a zombie comes back after its partitions were given away": (
        [A, B, e.Pause("b"), e.Expire("b"), e.Resume("b")],
        2,
        [
            "onPartitionsLost t-2 t-3",
            "onPartitionsRevoked t-2 t-3",
            "onPartitionsAssigned",
            "onPartitionsAssigned",
            "onPartitionsAssigned",
            "onPartitionsAssigned t-2 t-3",
        ],
        {"a": 2, "b": 2},
    ),
    "a static zombie has its seat still, and yet loses what it had: the group went on": (
        [*STATIC, e.Pause("b"), join("c"), e.Resume("b")],
        1,
        ["onPartitionsLost t-2 t-3", "onPartitionsAssigned", "onPartitionsAssigned t-2", "onPartitionsAssigned"],
        {"a": 2, "b": 1, "c": 1},
    ),
    "another process takes a static member's seat: the one that had it is fenced": (
        [*STATIC, join("c", "i-b"), e.SetPartitions("t", 6)],
        1,
        ["onPartitionsAssigned t-4", "onPartitionsAssigned t-5"],
        {"a": 3, "c": 3},
    ),
    "a paused leader sees what changed when it goes on": (
        [A, B, e.Pause("a"), e.SetPartitions("t", 6), e.Resume("a")],
        1,
        ["onPartitionsAssigned t-4", "onPartitionsAssigned t-5"],
        {"a": 3, "b": 3},
    ),
    "unless its metadata is frozen": (
        [A, B, e.FreezeMetadata("a"), e.SetPartitions("t", 6), e.Pause("a"), e.Resume("a")],
        0,
        [],
        {"a": 2, "b": 2},
    ),
    "a paused member that is no leader loses what is gone when it goes on": (
        [A, B, e.Pause("b"), e.FreezeMetadata("a"), e.DeleteTopic("t"), e.SetPartitions("t", 3), e.Resume("b")],
        0,
        ["onPartitionsLost t-3"],
        {"a": 2, "b": 1},
    ),
    "a topic that nobody subscribes to": ([A, e.SetPartitions("other", 3)], 0, [], {"a": 4}),
    "a leader that crashed sees nothing; the next round drops it, and sees": (
        [A, B, e.Crash("a"), e.SetPartitions("t", 6), join("c")],
        1,
        ["onPartitionsAssigned t-0", "onPartitionsAssigned t-1 t-4 t-5"],
        {"b": 3, "c": 3},
    ),
    "paused and back in time: nothing": ([A, B, e.Pause("b"), e.Resume("b")], 0, [], {"a": 2, "b": 2}),
    "a stale leader does not see new partitions": (
        [A, B, e.FreezeMetadata("a"), e.SetPartitions("t", 6)],
        0,
        [],
        {"a": 2, "b": 2},
    ),
    "a static leader that returns leads on, and sees what changed meanwhile": (
        [*STATIC, e.Crash("a"), e.SetPartitions("t", 6), e.Restart("a")],
        1,
        [
            "onPartitionsAssigned t-0 t-1",
            "onPartitionsAssigned t-5",
            "onPartitionsAssigned t-4",
        ],
        {"a": 3, "b": 3},
    ),
    "until it looks": (
        [A, B, e.FreezeMetadata("a"), e.SetPartitions("t", 6), e.RefreshMetadata("a")],
        1,
        ["onPartitionsAssigned t-4", "onPartitionsAssigned t-5"],
        {"a": 3, "b": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "rounds", "calls", "owners"), STORIES.values(), ids=STORIES.keys())
def test_stories(events, rounds, calls, owners):
    settlement = run(*events)[-1]
    assert (len(settlement.rounds), listener_calls(settlement)) == (rounds, calls)
    assert {name: len(owned) for name, owned in owners_of(settlement).items()} == owners
    assert settlement.stable


def test_a_member_that_misses_an_assignment_claims_what_it_had_and_nobody_gets_it_twice():
    missed = run(A, B, e.MissAssignment("a"), join("c"))[-1]
    answered = [each.answered for each in missed.rounds[0].members]
    assert answered == [False, True, True]
    for took in missed.rounds:
        given = [each for row in took.members for each in row.assigned]
        assert len(given) == len(set(given))
    assert sorted(len(owned) for owned in owners_of(missed).values()) == [1, 1, 2]


def test_kafkas_client_calls_a_stale_claim_fresh_and_the_kip_does_not():
    """It sends the generation of its last JoinGroup; the KIP wants that of the assignment that the claim is from."""
    for form, stated in ((Form.KIP, 3), (Form.AS_KAFKA, 4)):
        generations = []
        playing = Script({"t": 4}, [A, B, e.MissAssignment("a"), join("c")], form)
        for took in _questions(playing):
            generations.append({seat.member_id: seat.subscription.generation for seat in took.seats}["a-1"])
        assert generations[4] == stated


def _questions(playing):
    from groupledger.core.protocol.leader import Question, plan
    from groupledger.core.protocol.simulator import play

    game = play(playing, {})
    question = next(game)
    while True:
        yield question
        try:
            assert isinstance(question, Question)
            question = game.send(plan(question))
        except StopIteration:
            return


def test_a_static_leader_that_returns_is_the_leader_under_its_new_id():
    settled = run(*STATIC, e.Crash("a"), e.Restart("a"), e.SetPartitions("t", 5))[-1]
    assert settled.rounds[0].leader == "a"
    assert {each.member_id for each in settled.rounds[0].members} == {"a-2", "b-1"}


def test_what_a_returning_static_member_never_revoked_is_not_left_unowned():
    """m1 held u-0 and u-1 and was away while one of them was to go to m2: nobody else can say that it is free."""
    away = [e.Crash("m1"), join("m3"), e.Subscribe("m2", ("u",)), e.Restart("m1")]
    settled = run(join("m1", "i-1", ("u",)), join("m2"), *away, topics={"u": 2})
    assert settled[-2].unowned == t(0, 1, topic="u")
    assert settled[-1].unowned == ()
    assert owners_of(settled[-1]) == {"m1": ["u-1"], "m2": ["u-0"]}


def test_who_takes_an_instance_id_while_the_group_rebalances_fences_its_owner():
    """`x` and `c` join in one go: `a`, under whose instance id `c` comes, is no member beside it."""
    at_once = replace(join("x"), together=True), join("c", "i-a")
    settled = run(*STATIC, *at_once, topics={"t": 6})[-1]
    assert {row.member for took in settled.rounds for row in took.members} == {"b", "c", "x"}
    assert set(settled.owners.values()) == {"b", "c", "x"}


def test_static_members_that_are_all_gone_are_waited_for():
    away = [e.Crash("a"), e.Crash("b"), e.Expire("a")]
    assert run(*STATIC, *away)[-1].rounds == ()
    assert owners_of(run(*STATIC, *away, e.Restart("b"))[-1]) == {"b": ["t-0", "t-1", "t-2", "t-3"]}


def test_a_replaced_static_leader_is_still_the_leader_for_the_coordinator():
    coordinator = Coordinator()
    for name in "ab":
        coordinator.seat(Registered(name, f"{name}-1", ("range",), Subscription(ByteCode.KIP_792, ("t",)), f"i-{name}"))
    coordinator.start_generation(["a-1", "b-1"])
    old = coordinator.leader or ""
    process = coordinator.members[old].process
    coordinator.replace(old, replace(coordinator.members[old], member_id=f"{process}-2"))
    assert coordinator.leader == f"{process}-2"
    assert coordinator.static_seat(f"i-{process}").member_id == f"{process}-2"


def test_unavailability_is_counted_in_rounds():
    cooperative = run(A, B)[1]
    eager = run(join("a", assignors=("range",)), join("b", assignors=("range",)))[1]
    assert cooperative.unavailable_rounds == dict.fromkeys(t(2, 3), 1)
    assert eager.unavailable_rounds == dict.fromkeys(t(0, 1, 2, 3), 1)


def test_time_passes_by_the_pace_that_is_given():
    pace = Pace(round_ms=100, callback_ms={Callback.REVOKED: 40, Callback.ASSIGNED: 7})
    settled = run(A, replace(B, at_ms=1_000), pace=pace)[1]
    assert [(each.started_ms, each.ended_ms) for each in settled.rounds] == [(1_000, 1_147), (1_147, 1_254)]
    revoked = next(each for each in settled.calls if each.call.callback is Callback.REVOKED)
    assert (revoked.member, revoked.started_ms, revoked.ended_ms) == ("a", 1_100, 1_140)


def test_all_are_answered_once_the_leader_has_assigned():
    pace = Pace(round_ms=100, callback_ms={Callback.ASSIGN: 500})
    settled = run(A, replace(B, at_ms=1_000), pace=pace)[1]
    assert {each.started_ms for each in settled.calls if each.call.callback is Callback.ASSIGNED} == {1_600, 2_200}
    assert [(each.started_ms, each.ended_ms) for each in settled.rounds] == [(1_000, 1_600), (1_600, 2_200)]


def test_a_custom_assignor_is_known_by_its_own_name_too():
    """By which its members join; a name of ours stays ours, and two assignors under one name are a fault."""
    both = frozenset({Protocol.EAGER})
    custom = {"mine:all": CustomAssignor("mine:all", everything, both, "everything", "mine:all")}
    for name in ("everything", "mine:all"):
        settled = run(join("a", assignors=(name,)), join("b", assignors=(name,)), custom=custom)[-1]
        assert owners_of(settled) == {"a": ["t-0", "t-1", "t-2", "t-3"]}
        assert settled.rounds[-1].assignor == name
    as_a_librarys = {"mine:all": replace(custom["mine:all"], protocol_name="librdkafka-range")}
    settled = run(*(join(name, assignors=("librdkafka-range",)) for name in "ab"), custom=as_a_librarys)[-1]
    assert owners_of(settled) == {"a": ["t-0", "t-1", "t-2", "t-3"]}
    other = {"other:all": CustomAssignor("other:all", everything, both, "everything", "other:all")}
    with pytest.raises(Fault, match="'other:all' and 'mine:all' both call themselves 'everything'"):
        run(A, custom=custom | other)
    ours = {"mine:all": CustomAssignor("mine:all", everything, both, "range", "mine:all")}
    assert len(owners_of(run(*(join(name, assignors=("range",)) for name in "ab"), custom=ours)[-1])) == 2


def everything(group: CustomGroup):
    first = min(member.member_id for member in group.members)
    return {first: list(group.partitions(first))}


def test_a_topic_of_a_script_has_a_name():
    with pytest.raises(Fault, match=r"topic is 't\.\*'; expected a name; a pattern is a topic_regex"):
        run(A, topics={"t.*": 1})


def test_a_static_member_that_is_away_can_keep_the_others_rebalancing_until_its_session_ends():
    """m7 is given one of m3's partitions in each round and never takes it; each time m3 gives up another one."""
    found = script(6699, 30)
    *_, storm = simulate(found)
    assert storm.cycle is not None
    assert {row.member for took in storm.rounds for row in took.members if row.joins_again} == {"m3"}
    assert "m7" not in {row.member for took in storm.rounds for row in took.members}
    *_, over = simulate(replace(found, events=[*found.events, e.Expire("m7"), e.Expire("m2")]))
    assert over.stable
    assert over.unowned == ()


def test_a_leader_that_throws_leaves_the_group_hanging():
    same = ("constrained-cooperative-sticky",)
    mixed = [join("a", assignors=same), join("b", topics=("u",), assignors=same)]
    settled = run(*mixed, topics={"t": 2, "u": 2})[-1]
    assert "SubscriptionsDiffer" in settled.failure
    assert not any(each.answered for each in settled.rounds[-1].members)


def test_a_leader_that_throws_while_a_process_restarts_leaves_the_group_hanging_too():
    """b comes back to a group that hangs, and no further rebalance hides what was thrown."""
    asked = []

    def not_alone_again(group):
        asked.append({each.member_id for each in group.members})
        if len(group.members) == 1 and {"a-1", "b-1"} in asked:
            raise KeyError("b-1")
        return {each.member_id: [] for each in group.members}

    custom = {"mine": CustomAssignor("mine", not_alone_again, frozenset({Protocol.EAGER}), None)}
    mine = [join(name, assignors=("mine",)) for name in "ab"]
    settled = run(*mine, e.Restart("b"), custom=custom)[-1]
    assert "KeyError" in settled.failure
    assert {"a-1", "b-2"} not in asked


def test_a_member_without_a_common_assignor_is_refused_and_the_group_goes_on():
    refused = run(join("a", assignors=("range",)), B)[-1]
    assert refused.refused == "b lists cooperative-sticky; expected one that all members list (range)"
    assert owners_of(refused) == {"a": ["t-0", "t-1", "t-2", "t-3"]}


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([e.Leave("a")], "there is no process 'a'"),
        ([A, A], "'a' has joined already"),
        ([A, e.Expire("a")], "'a' cannot expire"),
        ([A, e.Expire("nobody")], "'nobody' cannot expire"),
        ([*STATIC, join("c", "i-b"), e.Leave("b")], "there is no process 'b'"),
        ([A, e.Crash("a"), e.Pause("a")], "there is no process 'a'"),
        ([A, e.Pause("a"), e.Leave("a")], "'a' is paused"),
        ([A, e.Pause("a"), e.Subscribe("a", ())], "'a' is paused"),
        ([join("a", topics=("t.*",))], "topic is 't.*'; expected a name; a pattern is a topic_regex"),
        ([A, e.Subscribe("a", ("t", "t|u"))], "topic is 't|u'; expected"),
        ([e.SetPartitions("t", 3)], "partitions of 't' is 3; expected 4 or more: Kafka removes none"),
        ([e.DeleteTopic("tt")], "no topic 'tt'; did you mean t? expected one of t"),
        ([e.SetPartitions("^t", 3)], "topic is '^t'; expected"),
        ([e.MissTopic("^t")], "topic is '^t'; expected"),
        ([e.SetPartitions("^" * 99, 3)], f"topic is '{'^' * 80}'; expected"),
        ([e.Restart("a")], "no process 'a' to restart"),
        ([join("a", assignors=())], "'a' lists no assignor; expected at least one"),
        ([join("a", assignors=("best",))], "assignor is 'best'; expected one of range"),
    ],
)
def test_an_event_that_cannot_be_is_a_fault_and_other_groups_go_on(events, message):
    bad, good = simulate_all([Script({"t": 4}, events), Script({"t": 4}, [A])])
    assert isinstance(bad, Fault)
    assert message in bad.message
    assert owners_of(good[0]) == {"a": ["t-0", "t-1", "t-2", "t-3"]}


@pytest.mark.parametrize("form", list(Form))
def test_many_groups_at_once_are_each_as_if_alone(form):
    scripts = [script(seed, 12, form) for seed in range(12)]
    assert simulate_all(scripts) == [simulate(each) for each in scripts]


@pytest.mark.parametrize(("frozen", "restarted", "rounds"), [(0, "a", 0), (1, "a", 1), (1, "b", 0)])
def test_a_returning_static_leader_alone_looks_for_topics_that_nobody_was_assigned(frozen, restarted, rounds):
    change = [e.FreezeMetadata("a"), e.SetPartitions("t", 6)][: 2 * frozen]
    assert len(run(*STATIC, *change, e.Restart(restarted))[-1].rounds) == rounds
