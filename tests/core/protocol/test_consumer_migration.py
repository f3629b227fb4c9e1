"""Groups of both protocols, and groups that change their type while they run (KIP-848)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.consumer_group.consumer_state import MigrationPolicy
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import simulate
from groupledger.core.wire.codec import uuid_bytes
from tests.core.protocol.consumer_groups import beats, classic, join, rounds, run
from tests.core.protocol.played import listener_calls, owners_of


def test_a_classic_group_becomes_a_consumer_group_and_goes_on_where_it_was():
    """Generation 3 is epoch 3; the newcomer makes it 4; who was there before need not revoke all."""
    *_, classics, joined = run(classic("a"), classic("b", at=10), join("c", at=60))
    assert rounds(classics)[-1] == {"a": 2, "b": 2}
    assert joined.rounds == ()
    assert joined.coordinated.epoch == 4
    assert [row.protocol.value for row in joined.coordinated.members] == ["classic", "classic", "consumer"]
    moved = [each for each in joined.calls if each.call.callback is Callback.REVOKED]
    assert sum(len(each.call.partitions) for each in moved) == 1
    assert joined.unowned == ()


def test_an_eager_member_revokes_all_in_a_consumer_group_too():
    joined = run(classic("a", assignors=("range",)), join("b", at=60))[-1]
    assert listener_calls(joined, "a")[0] == "onPartitionsRevoked t-0 t-1 t-2 t-3"
    assert {name: len(some) for name, some in owners_of(joined).items()} == {"a": 2, "b": 2}


def test_the_whole_way_and_back():
    """Two classic members are replaced one by one, and replaced again by classic ones."""
    there = [
        classic("a"),
        classic("b", at=10),
        e.Leave("a", at_ms=60_000),
        join("a2", at=70),
        e.Leave("b", at_ms=80_000),
    ]
    back = [join("b2", at=90), e.Leave("a2", at_ms=100_000), classic("a3", at=110), e.Leave("b2", at_ms=120_000)]
    settled = run(*there, *back, classic("b3", at=150))
    types = ["consumer" if each.coordinated is not None else "classic" for each in settled]
    assert types == ["classic"] * 3 + ["consumer"] * 6 + ["classic"]
    assert rounds(settled[-2]) == [{"a3": 4}]
    assert [took.generation for each in settled[-2:] for took in each.rounds] == [10, 11, 12]
    assert all(each.unowned == () and each.double_owners == () for each in settled)


@pytest.mark.parametrize("end", [e.Leave("b", at_ms=60_000), e.Crash("b", at_ms=60_000), e.Pause("b", at_ms=60_000)])
def test_a_process_of_the_consumer_protocol_that_starts_again_in_a_classic_group_turns_it_back(end):
    """b is gone, and a alone, so the group is classic; b comes back as what it was."""
    apart, again = run(classic("a"), join("b", at=10), end, e.Wait(at_ms=200_000), e.Restart("b", at_ms=300_000))[-2:]
    assert apart.running == {"a": 1}
    assert [row.protocol.value for row in again.coordinated.members] == ["classic", "consumer"]
    assert {name: len(some) for name, some in owners_of(again).items()} == {"a": 2, "b": 2}


def test_one_that_the_policy_forbids_to_start_again_is_refused():
    events = [join("b"), classic("a", at=10), e.Leave("b", at_ms=60_000), e.Restart("b", at_ms=300_000)]
    refused = run(*events, migration_policy=MigrationPolicy.DOWNGRADE)[-1]
    assert refused.refused.startswith("GROUP_ID_NOT_FOUND")
    assert refused.running == {"a": 1}


@pytest.mark.parametrize("policy", list(MigrationPolicy))
def test_what_the_policy_forbids(policy):
    upgraded = run(classic("a"), join("b", at=60), migration_policy=policy)[-1]
    assert (upgraded.refused is None) == policy.upgrades
    left = run(join("a"), classic("b", at=60), e.Leave("a", at_ms=120_000), migration_policy=policy)[-1]
    assert bool(left.rounds) == policy.downgrades
    assert left.unowned == ()


def test_a_classic_process_in_the_last_static_seat_makes_the_group_classic():
    left = e.Leave("a", at_ms=60_000)
    back = run(join("a", group_instance_id="i"), left, classic("a2", at=70, group_instance_id="i"))[-1]
    assert rounds(back) == [{"a2": 4}]
    assert back.unowned == ()


def test_user_data_of_assignments_forbids_the_conversion():
    """librdkafka's cooperative-sticky writes some: no member of the consumer protocol can join its group."""
    sticky = ("librdkafka-cooperative-sticky",)
    refused = run(classic("a", assignors=sticky), classic("b", at=10, assignors=sticky), join("c", at=60))[-1]
    assert refused.refused.startswith("GROUP_ID_NOT_FOUND")
    assert (refused.running, refused.unowned) == ({"a": 1, "b": 1}, ())
    assert run(classic("a", assignors=("range",)), join("c", at=60))[-1].refused is None


def test_one_that_crashes_while_its_group_is_classic_again_is_gone():
    away = classic("a"), join("c", at=10), e.Pause("c"), e.Expire("c"), e.Crash("c")
    assert run(*away)[-1].refused is None
    with pytest.raises(Fault, match="there is no process 'c'"):
        run(*away, e.Resume("c"))


def test_a_group_without_members_is_anybodys():
    emptied = run(classic("a"), e.Leave("a"), join("b", at=60), migration_policy=MigrationPolicy.DISABLED)[-1]
    assert (emptied.refused, emptied.coordinated.epoch) == (None, 2)
    again = run(join("a"), e.Leave("a"), classic("b", at=60), migration_policy=MigrationPolicy.DISABLED)[-1]
    assert (again.coordinated, rounds(again)) == (None, [{"b": 4}])


def test_a_classic_member_is_called_back_when_what_it_waits_for_is_free():
    joined = run(join("a"), classic("b", at=10))[-1]
    assert [row.state for row in joined.coordinated.heartbeats if row.member == "b"] == [
        "UNRELEASED_PARTITIONS",
        "STABLE",
    ]
    assert listener_calls(joined, "b") == ["onPartitionsAssigned", "onPartitionsAssigned t-2 t-3"]


def test_the_session_of_a_classic_member_is_its_own():
    """45 s, whatever group.consumer.session.timeout.ms is."""
    events = [join("a"), classic("b", at=10), e.Crash("b", at_ms=20_000)]
    *_, early, late = run(*events, e.Wait(at_ms=60_000), e.Wait(at_ms=70_000), session_timeout_ms=10_000)
    assert [len(each.owners) for each in (early, late)] == [2, 4]


def test_a_classic_group_only_waits():
    assert run(classic("a"), e.Wait(at_ms=10**6))[-1].calls == ()


def test_ids_of_partitions_do_not_show():
    owned = run(join("a"))[0].owners
    assert owned == {TopicPartition("t", number): "a" for number in range(4)}


def test_a_callback_under_way_is_finished_before_the_group_is_a_classic_one():
    """a revokes from 63 s to 68 s; b leaves at 64 s."""
    pace = Pace(callback_ms={Callback.REVOKED: 5_000})
    left = run(classic("a"), join("b", at=60, together=True), e.Leave("b", at_ms=64_000), pace=pace)[-1]
    assert listener_calls(left, "a") == [
        "onPartitionsRevoked t-2 t-3",
        "onPartitionsAssigned",
        "onPartitionsAssigned t-2 t-3",
    ]
    assert {each.ended_ms for each in left.calls if each.call.callback is Callback.ASSIGNED} == {60_000, 68_000}


def test_the_coordinators_assignor_fails_where_a_member_has_partitions_past_the_end_of_their_topic():
    """a, whose metadata is old, still has four partitions of a topic that was made anew with one."""
    anew = [e.FreezeMetadata("a", 9), e.DeleteTopic("t"), e.SetPartitions("t", 1)]
    joined = run(
        classic("a", assignors=("range",)), *(replace(each, together=True) for each in anew), join("b"), rests=False
    )[-1]
    assert joined.failure == "uniform: PartitionAssignorException: Partitions were left unassigned"


def test_a_static_member_that_is_away_keeps_its_seat_in_the_classic_group():
    static = classic("a", group_instance_id="i-a"), classic("c", at=10), join("b", at=60)
    away = e.Crash("a", at_ms=100_000), e.Leave("b", at_ms=101_000), e.Restart("a", at_ms=102_000)
    *_, left, back = run(*static, *away)
    assert rounds(left) == [{"c": 2}]
    assert (left.unowned, back.unowned) == (tuple(TopicPartition("t", number) for number in (0, 1)), ())
    assert back.rounds == ()


def test_the_last_process_finds_an_empty_group_and_joins_it_as_a_classic_one():
    """b's session ends while it is paused, and a leaves: nobody of the consumer protocol is there when b goes on."""
    away = e.Pause("b", at_ms=60_000), e.Expire("b"), e.Leave("a", at_ms=200_000), e.Resume("b", at_ms=210_000)
    back = run(join("a"), classic("b", at=10), *away)[-1]
    assert (back.failure, rounds(back)) == (None, [{"b": 4}])
    assert back.running == {"b": 1}


def test_a_classic_member_of_librdkafka_revokes_what_it_no_longer_subscribes_to():
    """Its client has no metadata of u, for which it would lose t in a classic group; here the broker has it."""
    classics = classic("b", at=60, library="librdkafka"), e.Subscribe("b", ("u",), at_ms=100_000)
    other = run(join("a"), *classics, topics={"t": 4, "u": 1})[-1]
    assert listener_calls(other, "b") == ["onPartitionsRevoked t-2 t-3", "onPartitionsAssigned u-0"]


def test_a_classic_member_that_is_called_back_has_its_rebalance_timeout_to_join():
    """a is called back at 63 s, revokes all for 40 s, and has 20 s; b's heartbeat at 85 s finds all of it free."""
    pace = Pace(callback_ms={Callback.REVOKED: 40_000})
    slow = classic("a", assignors=("range",), rebalance_timeout_ms=20_000)
    joined = run(slow, join("b", at=60), pace=pace, rests=False)[-1]
    taken = [(each.ended_ms, len(each.call.partitions)) for each in joined.calls if each.member == "b"]
    assert taken[:2] == [(60_000, 0), (85_000, 4)]


@pytest.mark.parametrize("away", [(), (e.Pause("k", at_ms=40_000),)])
def test_a_classic_static_member_whose_seat_another_took_ends(away):
    """FENCED_INSTANCE_ID, for its heartbeat: c has the seat, and its partitions, from 60 s on."""
    back = tuple(e.Resume("k", at_ms=70_000) for _ in away)
    first, second = (classic(name, at=at, group_instance_id="i") for name, at in (("k", 0), ("c", 60)))
    settled = run(first, join("a", at=20), *away, second, *back)
    assert settled[-1].refused == "FENCED_INSTANCE_ID: i belongs to another member now"
    assert [each.failure for each in settled] == [None] * len(settled)
    assert settled[-1].running == {"a": 1, "c": 1}
    assert {name: len(some) for name, some in owners_of(settled[-1]).items()} == {"a": 2, "c": 2}
    assert bool(settled[-1 - len(away)].double_owners) != bool(away), (
        "k reads on until it hears of it, unless it stands"
    )


def test_a_process_of_the_consumer_protocol_takes_the_seat_of_a_classic_static_member_that_runs():
    """Of two of the consumer protocol the first one would have to leave before."""
    settled = run(
        classic("a"), classic("b", group_instance_id="i"), join("c", at=30), join("d", at=60, group_instance_id="i")
    )
    assert settled[-1].running == {"a": 1, "c": 1, "d": 1}


def test_a_join_group_of_a_classic_static_member_whose_seat_another_took_is_refused():
    """k revokes from 21 s to 31 s, c joins at 25 s."""
    first, second = (classic(name, at, ("range",), group_instance_id="i") for name, at in (("k", 0), ("c", 25)))
    pace = Pace(callback_ms={Callback.REVOKED: 10_000})
    settled = run(first, join("a", at=20, together=True), second, pace=pace)
    assert settled[-1].refused == "FENCED_INSTANCE_ID: i belongs to c-1 now"
    assert settled[-1].running == {"a": 1, "c": 1}
    assert settled[-1].unowned == ()


def test_a_paused_process_that_was_refused_when_it_started_again_is_gone():
    events = [join("b"), classic("a", at=10), e.Pause("b", at_ms=60_000), e.Restart("b", at_ms=300_000)]
    assert run(*events, migration_policy=MigrationPolicy.DOWNGRADE)[-1].refused.startswith("GROUP_ID_NOT_FOUND")
    with pytest.raises(Fault, match="there is no process 'b'"):
        run(*events, e.Resume("b", at_ms=400_000), migration_policy=MigrationPolicy.DOWNGRADE)


def test_a_new_process_of_the_name_of_one_that_was_left_behind_is_another():
    """The first b stands still when its group becomes classic; the second stands still for a second, and goes on."""
    left = [join("b"), classic("a", at=10), e.Pause("b", at_ms=60_000), e.Wait(at_ms=200_000)]
    events = *left, classic("b", at=300), e.Pause("b", at_ms=400_000), e.Resume("b", at_ms=401_000)
    resumed = run(*events)[-1]
    assert (resumed.refused, resumed.running) == (None, {"a": 1, "b": 2})


# Order of lists


def test_lists_of_the_classic_leader_keep_their_order():
    """A broker's own group: ids of both topics fall into one bucket of a table of 16, so the order of lists decides.

    librdkafka's range lists u before t, which has more partitions; `uniform` then takes from t.
    """
    ids = {"t": TopicId(uuid_bytes("KrnJqggXR0SPxGz4CeHFhg")), "u": TopicId(uuid_bytes("hwsqp8kDQ8acMo5NIdonRw"))}
    members = {
        "a": ["a-0040ac60-c071-40cc-bb5e-32a667b678aa"],
        "b": ["b-8d2a1618-5ff9-4113-b37f-85e1702c6530"],
        "c": ["4OUrO6U+Sp2blV1qtqXuVg"],
    }
    joins = [
        *(e.Join(name, ("t", "u"), ("range",), library="librdkafka") for name in "ab"),
        e.Join("c", ("t", "u"), group_protocol=e.GroupProtocol.CONSUMER, library="librdkafka"),
    ]
    known = {name: [each] for name, each in ids.items()}
    settled = simulate(Script({"t": 4, "u": 3}, joins, member_ids=members, topic_ids=known))
    assert owners_of(settled[-1]) == {"a": ["t-0", "u-0", "u-1"], "b": ["t-2", "u-2"], "c": ["t-1", "t-3"]}


def test_a_classic_member_of_a_consumer_group_joins_again_at_once_when_a_topic_of_its_pattern_is_gone():
    by_pattern = e.Join("a", (), ("range",), topic_regex="t.*", at_ms=10_000)
    gone = run(join("b"), by_pattern, e.DeleteTopic("tx", at_ms=60_000), topics={"t": 4, "tx": 2})[-1]
    assert beats(gone, "a")[0][0] == 60_000
    said = [each.call.topics for each in gone.calls if each.call.callback is Callback.USER_DATA]
    assert set(said) == {("t",)}
