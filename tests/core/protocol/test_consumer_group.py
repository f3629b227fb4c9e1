"""Consumer groups (KIP-848) case by case: reconciliation, fencing, static members, topics, time, migration."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from groupledger.core.assignors.server.orders import JOINED, REWRITTEN
from groupledger.core.assignors.server.server_group import is_homogeneous
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.consumer_group import consumer_events
from groupledger.core.protocol.consumer_group import coordinated_group as c
from groupledger.core.protocol.consumer_group.consumer_state import HeartbeatResponse
from groupledger.core.protocol.consumer_group.topics_and_targets import find_targets
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, play
from groupledger.core.rebalance.step import Form
from tests.core.protocol.consumer_groups import CONSUMER, SECOND, beats, epochs, join, run
from tests.core.protocol.played import listener_calls, owners_of

# -- reconciliation


def test_a_newcomer_waits_until_what_it_gets_was_revoked():
    joined = run(join("a"), join("b", at=10))[-1]
    assert beats(joined, "b") == [
        (10_000, 0, 3, "UNRELEASED_PARTITIONS"),
        (10_000, 3, 3, "UNRELEASED_PARTITIONS"),
        (20_000, 3, 3, "STABLE"),
        (20_000, 3, 3, "STABLE"),
    ]
    assert beats(joined, "a") == [(15_000, 2, 2, "UNREVOKED_PARTITIONS"), (15_000, 2, 3, "STABLE")]
    assert listener_calls(joined, "a") == ["onPartitionsRevoked t-2 t-3", "onPartitionsAssigned"]
    assert listener_calls(joined, "b") == ["onPartitionsAssigned", "onPartitionsAssigned t-2 t-3"]
    assert set(joined.unavailable_ms.values()) == {5_000}


def test_a_consumer_group_has_no_rounds():
    joined = run(join("a"), join("b", at=10))[-1]
    assert joined.rounds == ()
    assert {each.round for each in joined.calls} == {0}


def test_a_group_that_does_not_come_to_rest_is_left_there(monkeypatch):
    """Three steps bring it there."""
    for most, failure in ((3, None), (2, "not at rest after 2 heartbeats, calls and time-outs")):
        monkeypatch.setattr(consumer_events, "MOST_STEPS", most)
        assert run(join("a"), rests=False)[0].failure == failure


def test_a_group_without_a_change_costs_nothing_more():
    waited = run(join("a"), join("b", at=10), e.Wait(at_ms=10**9))[-1]
    assert waited.coordinated.heartbeats == ()
    assert waited.calls == ()
    assert waited.unavailable_ms == {}


def test_the_first_members_make_epoch_two():
    joined = run(join("a"))[0]
    assert (joined.coordinated.epoch, joined.coordinated.assignment_epoch, epochs(joined)) == (2, 2, {"a": 2})


def test_a_target_is_at_least_a_second_younger_than_the_last_one():
    """KIP-1263: b joins 400 ms after a; a's next heartbeat finds the interval over, b's first one did not."""
    settled = run(join("a"), e.Join("b", ("t",), group_protocol=CONSUMER, at_ms=400))[-1]
    assert [(row.at_ms, row.epoch) for row in settled.coordinated.targets] == [(5_000, 3)]
    assert beats(settled, "b")[0] == (400, 0, 2, "STABLE")
    at_once = run(join("a"), e.Join("b", ("t",), group_protocol=CONSUMER, at_ms=400), assignment_interval_ms=0)[-1]
    assert [(row.at_ms, row.epoch) for row in at_once.coordinated.targets] == [(400, 3)]


def test_heartbeats_set_the_pace_of_a_hand_over():
    for interval_ms in (1_000, 5_000, 15_000):
        joined = run(join("a"), join("b", at=60), heartbeat_interval_ms=interval_ms)[-1]
        assert max(joined.unavailable_ms.values()) <= interval_ms
        assert joined.coordinated.heartbeats[-1].at_ms <= 60_000 + 2 * interval_ms


def test_callbacks_and_answers_take_their_time():
    pace = Pace(round_ms=20, callback_ms={Callback.REVOKED: 300, Callback.ASSIGNED: 50})
    joined = run(join("a"), join("b", at=10), pace=pace)[-1]
    revoked, assigned = (each for each in joined.calls if each.member == "a")
    assert (revoked.started_ms, revoked.ended_ms) == (10_090, 10_390)
    assert (assigned.started_ms, assigned.ended_ms) == (10_390, 10_440)
    assert joined.double_owners == ()


def test_who_asks_for_range_gets_range_where_most_do():
    asked = run(join("a", remote_assignor="range"), join("b", at=10, remote_assignor="range"), join("c", at=30))
    assert {row.assignor for settled in asked for row in settled.coordinated.targets} == {"range"}
    assert run(join("a"))[0].coordinated.targets[0].assignor == "uniform"
    refused = run(join("a", remote_assignor="sticky"))[0]
    assert refused.refused.startswith("UNSUPPORTED_ASSIGNOR")
    assert refused.running == {}


def test_an_empty_group_assigns_at_once_whoever_comes_next():
    """Its target is of its epoch, and no interval runs."""
    emptied, joined = run(join("a"), e.Leave("a", at_ms=300), e.Join("b", ("t",), group_protocol=CONSUMER, at_ms=600))[
        1:
    ]
    assert (emptied.coordinated.epoch, emptied.coordinated.assignment_epoch) == (3, 3)
    assert [(row.at_ms, row.epoch) for row in joined.coordinated.targets] == [(600, 4)]


# -- leaving, fencing, time-outs


def test_who_leaves_revokes_first_and_the_others_take_over_with_their_next_heartbeat():
    left = run(join("a"), join("b", at=10), e.Leave("a", at_ms=61_000))[-1]
    assert listener_calls(left) == ["onPartitionsRevoked t-0 t-1", "onPartitionsAssigned t-0 t-1"]
    assert owners_of(left) == {"b": ["t-0", "t-1", "t-2", "t-3"]}
    assert set(left.unavailable_ms.values()) == {4_000}


def test_a_crashed_member_is_fenced_when_its_session_ends():
    crashed, waited = run(join("a"), join("b", at=10), e.Crash("a", at_ms=61_000), e.Wait(at_ms=200_000))[-2:]
    assert len(crashed.unowned) == 2
    (target,) = waited.coordinated.targets
    assert target.at_ms == 105_000  # its last heartbeat was at 60,000
    assert set(waited.unavailable_ms.values()) == {44_000}


def test_who_expires_is_removed_when_its_session_ends_and_the_others_hear_of_it():
    """b was heard of last at 55 s; a's heartbeat of 100 s comes after that session."""
    gone = run(join("a"), join("b", at=10), e.Crash("b", at_ms=60_000), e.Expire("b", at_ms=61_000))[-1]
    assert beats(gone, "a") == [(100_000, 3, 4, "STABLE"), (100_000, 4, 4, "STABLE")]
    assert [row.member for row in gone.coordinated.members] == ["a"]


def test_a_zombie_loses_everything_and_joins_again_under_its_id():
    resumed = run(join("a"), join("b", at=10), e.Pause("a"), e.Expire("a"), e.Resume("a", at_ms=200_000))[-1]
    assert beats(resumed, "a")[:2] == [(200_000, 3, 3, "UNKNOWN_MEMBER_ID"), (200_000, 0, 5, "UNRELEASED_PARTITIONS")]
    assert listener_calls(resumed, "a")[:2] == ["onPartitionsLost t-0 t-1", "onPartitionsAssigned"]
    assert resumed.double_owners == ()
    assert {row.member_id for row in resumed.coordinated.members} == {"a-1", "b-1"}


def test_a_pause_within_the_session_costs_no_epoch():
    resumed = run(join("a"), join("b", at=10), e.Pause("a", at_ms=60_000), e.Resume("a", at_ms=90_000))[-1]
    assert resumed.calls == ()
    assert resumed.coordinated.epoch == 3
    assert owners_of(resumed) == {"a": ["t-0", "t-1"], "b": ["t-2", "t-3"]}


def test_a_member_that_does_not_revoke_in_time_is_fenced():
    """Its listener takes a minute, and may take ten seconds: who waits gets the partitions, and two have them."""
    pace = Pace(callback_ms={Callback.REVOKED: 60_000})
    slow = run(join("a", rebalance_timeout_ms=10_000), join("b", at=10), pace=pace)[-1]
    assert "UNKNOWN_MEMBER_ID" in [row.error for row in slow.coordinated.heartbeats]
    assert [each.members for each in slow.double_owners[:1]] == [("a", "b")]
    assert "onPartitionsLost t-0 t-1 t-2 t-3" in listener_calls(slow, "a"), "what it was revoking too"
    assert slow.unowned == ()


def test_an_answer_that_is_lost_is_asked_for_again():
    """The coordinator has moved a to the next epoch; a, which does not know, says its previous one, and all it owns."""
    lost = run(join("a"), join("b", at=10), e.MissAssignment("b"), e.Leave("a", at_ms=60_000))[-1]
    assert owners_of(lost) == {"b": ["t-0", "t-1", "t-2", "t-3"]}
    assert [row for row in lost.coordinated.heartbeats if row.error] == []
    assert beats(lost, "b")[:2] == [(60_000, 3, 4, "STABLE"), (65_000, 3, 4, "STABLE")]


def test_a_member_two_epochs_behind_is_fenced():
    """Two answers in a row are lost, each with a new epoch: b says neither its epoch nor the one before."""
    group = (join("a"), join("b", at=10), e.MissAssignment("b"), e.SetPartitions("t", 5, at_ms=60_000, together=True))
    later = (e.MissAssignment("b", at_ms=61_000, together=True), e.SetPartitions("t", 6, at_ms=62_000))
    fenced = run(*group, *later)[-1]
    assert [row[1:] for row in beats(fenced, "b")][:3] == [
        (3, 5, "STABLE"),
        (3, 3, "FENCED_MEMBER_EPOCH"),
        (0, 5, "STABLE"),
    ]
    assert listener_calls(fenced, "b")[0] == "onPartitionsLost t-2 t-3"
    assert fenced.unowned == ()


# -- static members


def test_a_static_member_that_comes_back_takes_its_own_seat():
    static = [join(name, at=at, group_instance_id=f"i-{name}") for name, at in (("a", 0), ("b", 10))]
    *_, left, back = run(*static, e.Leave("b", at_ms=60_000), e.Restart("b", at_ms=70_000))
    assert epochs(left) == {"a": 3, "b": -2}
    assert len(left.unowned) == 2
    assert (back.coordinated.epoch, epochs(back)) == (3, {"a": 3, "b": 3})
    assert [(row.member, row.member_id) for row in back.coordinated.members][-1] == ("b", "b-2")
    assert set(back.unavailable_ms.values()) == {10_000}


def test_nobody_is_given_what_waits_for_a_static_member():
    static = [join(name, at=at, group_instance_id=f"i-{name}") for name, at in (("a", 0), ("b", 10))]
    joined, waited = run(*static, e.Leave("b", at_ms=60_000), join("c", at=61), e.Wait(at_ms=200_000))[-2:]
    assert [each.partition for each in joined.unowned] == [2, 3]
    assert waited.unowned == ()


def test_a_static_member_that_stays_away_is_fenced():
    static = [join(name, at=at, group_instance_id=f"i-{name}") for name, at in (("a", 0), ("b", 10))]
    waited = run(*static, e.Leave("b", at_ms=60_000), e.Wait(at_ms=200_000))[-1]
    assert epochs(waited) == {"a": 4}
    assert waited.unowned == ()


def test_a_crashed_static_member_finds_its_instance_id_taken():
    static = [join(name, at=at, group_instance_id=f"i-{name}") for name, at in (("a", 0), ("b", 10))]
    back = run(*static, e.Crash("b", at_ms=60_000), e.Restart("b", at_ms=61_000))[-1]
    assert back.refused.startswith("UNRELEASED_INSTANCE_ID")
    assert back.running == {"a": 1}
    later = run(*static, e.Crash("b", at_ms=60_000), e.Restart("b", at_ms=61_000), e.Restart("b", at_ms=120_000))[-1]
    assert (later.refused, len(owners_of(later))) == (None, 2)


# -- subscriptions and topics


def test_who_subscribes_to_something_else_gives_up_what_it_left():
    topics = {"t": 2, "u": 2}
    settled = run(
        join("a", "t", "u"), join("b", "t", "u", at=10), e.Subscribe("b", ("u",), at_ms=60_000), topics=topics
    )
    assert settled[-1].coordinated.epoch == 4
    assert {topic for (topic, _), name in settled[-1].owners.items() if name == "b"} == {"u"}
    assert settled[-1].unowned == ()


def test_what_was_left_is_given_up_before_a_new_target():
    """a leaves u 300 ms after the last target: its next heartbeat makes it revoke u, the new target comes later."""
    topics = {"t": 2, "u": 2}
    left = e.Subscribe("a", ("t",), at_ms=300)
    settled = run(join("a", "t", "u"), left, topics=topics, heartbeat_interval_ms=500)[-1]
    first = settled.coordinated.heartbeats[0]
    assert (first.at_ms, first.state, first.epoch, {topic for topic, _ in first.pending}) == (
        500,
        "UNREVOKED_PARTITIONS",
        2,
        {"u"},
    )
    assert [row.at_ms for row in settled.coordinated.targets] == [1_000]


def test_a_target_gives_nothing_of_a_topic_that_was_left_since():
    """b's target is a's too; before a heard of it, it left u: it gives up u with what goes to b."""
    topics = {"t": 2, "u": 2}
    events = join("a", "t", "u"), replace(join("b", at=10), together=True), e.Subscribe("a", ("t",), at_ms=10_100)
    settled = run(*events, topics=topics, heartbeat_interval_ms=500)[-1]
    asked = next(row for row in settled.coordinated.heartbeats if row.pending)
    assert {("u", 0), ("u", 1)} <= set(asked.pending)
    assert (asked.assignment_epoch, asked.group_epoch) == (3, 4)


def test_an_expression_is_resolved_after_the_first_heartbeat():
    """a joins in epoch 1, with nothing; its topics are found, and its next heartbeat is assigned them."""
    topics = {"orders": 2, "orders-eu": 1, "audit": 3}
    joined = run(e.Join("a", (), group_protocol=CONSUMER, topic_regex="orders.*"), topics=topics)[0]
    assert beats(joined, "a")[0] == (0, 0, 1, "STABLE")
    assert owners_of(joined) == {"a": ["orders-0", "orders-1", "orders-eu-0"]}
    assert joined.coordinated.epoch == 2


def test_a_new_topic_is_found_ten_seconds_after_the_last_search():
    member = e.Join("a", (), group_protocol=CONSUMER, topic_regex="orders.*")
    made = run(member, e.SetPartitions("orders-eu", 1, at_ms=3_000), topics={"orders": 2})[-1]
    assert owners_of(made) == {"a": ["orders-0", "orders-1", "orders-eu-0"]}
    assert [row.at_ms for row in made.coordinated.targets] == [15_000]
    other = run(member, e.SetPartitions("audit", 1, at_ms=3_000), topics={"orders": 2})[-1]
    assert other.coordinated.targets == ()


def test_an_expression_that_is_none_is_refused():
    refused = run(e.Join("a", (), group_protocol=CONSUMER, topic_regex="orders("))[0]
    assert refused.refused.startswith("INVALID_REGULAR_EXPRESSION")


def test_partitions_that_are_added_are_assigned_with_the_next_heartbeat():
    added = run(join("a"), e.SetPartitions("t", 6, at_ms=61_000))[-1]
    assert listener_calls(added) == ["onPartitionsAssigned t-4 t-5"]
    assert set(added.unavailable_ms.values()) == {4_000}


def test_a_topic_that_is_deleted_is_revoked_and_one_of_its_name_is_another():
    topics = {"t": 2, "u": 1}
    deleted = [e.DeleteTopic("u", at_ms=60_000, together=True), e.SetPartitions("u", 1, at_ms=60_000)]
    made_anew = run(join("a", "t", "u"), *deleted, topics=topics)[-1]
    assert listener_calls(made_anew) == [
        "onPartitionsRevoked u-0",
        "onPartitionsAssigned",
        "onPartitionsAssigned u-0",
    ] or (listener_calls(made_anew) == ["onPartitionsRevoked u-0", "onPartitionsAssigned u-0"])
    gone = run(join("a", "t", "u"), e.DeleteTopic("u", at_ms=60_000), topics=topics)[-1]
    assert listener_calls(gone) == ["onPartitionsRevoked u-0", "onPartitionsAssigned"]


@pytest.mark.parametrize(
    "event", [e.FreezeMetadata("a"), e.RefreshMetadata("a"), e.Leave("x"), e.Expire("a"), e.Join("a", ("t",))]
)
def test_what_cannot_be_is_a_bad_event(event):
    with pytest.raises(Fault) as caught:
        run(join("a"), event)
    assert caught.value.code == "BAD_EVENT"


@pytest.mark.parametrize("away", [e.Pause("b"), e.Crash("b")])
def test_who_starts_again_after_it_stood_still_or_died_is_a_new_process(away):
    settled = run(join("a"), join("b"), away, e.Restart("b"))
    assert settled[3].running == {"a": 1, "b": 2}


def test_who_owns_nothing_is_not_called_when_it_closes():
    settled = run(join("a"), join("b"), e.Leave("b"), topics={"t": 1})
    assert [each.member for each in settled[2].calls] == []


def test_a_classic_member_that_subscribes_to_something_else_joins_again():
    events = [join("a"), e.Join("b", ("t",), ("range",), at_ms=10_000), e.Subscribe("b", ("u",), at_ms=60_000)]
    assert owners_of(run(*events, topics={"t": 1, "u": 1})[-1]) == {"a": ["t-0"], "b": ["u-0"]}


def test_a_subscription_that_is_not_told_yet_is_news():
    told, _ = c.send(c.ConsumerClient("m", "a", ("t",)))
    joined = c.receive(told, HeartbeatResponse(2, frozenset()))
    assert not joined.has_news
    assert c.subscribe(joined, ("u",)).has_news


@pytest.mark.parametrize(
    ("members", "same"),
    [
        ([((), "t.*"), ((), "t.*")], True),
        ([((), "t.*"), ((), "u.*")], False),
        ([(("t",), "t.*"), (("t",), "t.*")], False),
        ([(("t",), None), (("t",), None)], None),
    ],
)
def test_expressions_decide_whether_subscriptions_are_the_same(members, same):
    assert is_homogeneous(members) is same


def test_members_that_left_do_not_change_the_order_of_those_that_came_after_them():
    """The coordinator's map of members grows with the most that there were at once, three, and its order with it."""
    joins = [join(f"{name}16", at=240 + 60 * at) for at, name in enumerate("abc")]
    before = [(join(f"x{at}", at=40 * at), e.Leave(f"x{at}", at_ms=(40 * at + 20) * SECOND)) for at in range(6)]
    assert run(*chain.from_iterable(before), *joins)[-1].owners == run(*joins)[-1].owners


def test_a_member_that_joins_is_written_twice_and_enlarges_the_groups_map_like_two():
    """Decision 0191: its metadata, then its current assignment, which later writes only replace."""
    playing = play(Script({"t": 4}, [join("a"), join("b", at=10), join("c", at=60)], Form.AS_KAFKA), {})
    asked: list[Any] = []
    answer = None
    with suppress(StopIteration):
        while True:
            asked.append(playing.send(answer))
            (answer,) = find_targets(asked[-1:])
    newcomer = JOINED, REWRITTEN
    assert [each.group.changes for each in asked] == [(), newcomer, newcomer * 2]


@pytest.mark.parametrize("who", [join("a"), e.Join("a", ("t",), ("range",))])
def test_nobody_subscribes_to_a_pattern_by_name(who):
    with pytest.raises(Fault, match=r"topic is 't\.\*'; expected a name; a pattern is a topic_regex"):
        run(join("c"), who, e.Subscribe("a", ("u", "t.*")))


def test_a_static_member_that_returns_keeps_what_the_one_that_it_replaces_was_to_have():
    """c leaves at the same moment, so that the assignor is asked while the new process says who it is."""
    joins = join("a", group_instance_id="i"), join("b", at=10), join("c", at=20)
    gone = e.Leave("a", at_ms=60_000), e.Leave("c", at_ms=100_000, together=True)
    back = replace(join("d", group_instance_id="i"), at_ms=100_001)
    settled = run(*joins, *gone, back)
    before = {row.member: set(row.target) for row in settled[2].coordinated.members}
    after = {row.member: set(row.target) for row in settled[-1].coordinated.members}
    assert len(after["d"]) == 2
    assert before["a"] <= after["d"]
    assert before["b"] <= after["b"]
