"""What clients of other libraries call otherwise than Kafka's Java client (librdkafka 2.16.0, kafka-python 3.0.12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.played import at_rest, listener_calls, owners_of

LIBRDKAFKA, KAFKA_PYTHON = "librdkafka", "kafka-python"
TOPICS = {"t": 4, "u": 3}
TIMES = Times(MemberTimes(round_trip_ms=2))


def join(name, library="java", *topics, assignor="cooperative-sticky", **more):
    return e.Join(name, topics or ("t",), (assignor,), library=library, **more)


def settled(*events, form=Form.AS_KAFKA, times=None):
    """What each event led to; by the clock, events are a minute apart."""
    dated = [replace(each, at_ms=at * 60_000) if times else each for at, each in enumerate(events)]
    return at_rest(simulate(Script(TOPICS, dated, form, times=times)))


@pytest.mark.parametrize("times", [None, TIMES])
def test_what_left_the_subscription_is_lost_where_librdkafka_has_to_ask_for_metadata_of_the_new_one(times):
    last = {
        (library, known): listener_calls(
            settled(join("a", library), e.Subscribe("a", ("u",), known), times=times)[-1], "a"
        )
        for library in ("java", LIBRDKAFKA)
        for known in (False, True)
    }
    revoked = ["onPartitionsRevoked t-0 t-1 t-2 t-3", "onPartitionsAssigned u-0 u-1 u-2"]
    assert last["java", False] == last["java", True] == last[LIBRDKAFKA, True] == revoked
    assert last[LIBRDKAFKA, False] == ["onPartitionsLost t-0 t-1 t-2 t-3", revoked[1]]


def test_what_only_leaves_the_subscription_is_revoked():
    last = settled(join("a", LIBRDKAFKA, "t", "u"), e.Subscribe("a", ("u",)))[-1]
    assert listener_calls(last)[0] == "onPartitionsRevoked t-0 t-1 t-2 t-3"


def test_a_member_of_librdkafka_that_does_not_lead_and_lost_something_joins_with_the_next_rebalance_only():
    members = (join("a", LIBRDKAFKA), join("b", LIBRDKAFKA))
    *_, changed, called_back = settled(*members, e.Subscribe("b", ("u",)), e.Subscribe("a", ("t",)))
    assert (len(changed.rounds), listener_calls(changed)) == (0, ["onPartitionsLost t-0 t-1"])
    assert {name: len(owned) for name, owned in owners_of(called_back).items()} == {"a": 4, "b": 3}


@pytest.mark.parametrize("times", [None, TIMES])
def test_partitions_of_a_deleted_topic_are_lost_at_once_for_librdkafka_and_revoked_after_the_round_for_java(times):
    members = {library: [join(name, library, "t", "u") for name in "ab"] for library in ("java", LIBRDKAFKA)}
    java, librdkafka = (settled(*both, e.DeleteTopic("u"), times=times)[-1] for both in members.values())
    assert listener_calls(librdkafka, "a")[0].startswith("onPartitionsLost u-0")
    assert "onPartitionsLost" not in " ".join(listener_calls(java))
    assert any(each.startswith("onPartitionsRevoked u-0") for each in listener_calls(java))


def test_a_leader_of_librdkafka_gives_back_what_exists_no_longer_and_java_leaves_it_out():
    """KIP-429, step 2.6: a member that has not learnt yet that the topic is gone goes on claiming it."""
    given = {}
    for library in ("java", LIBRDKAFKA):
        members = [join("a", library, "t", "u"), join("b", library, "t", "u")]
        stale = settled(*members, e.FreezeMetadata("a", together=True), e.DeleteTopic("u"))[-1]
        given[library] = {row.member: row.assigned for row in stale.rounds[0].members} if stale.rounds else {}
    assert given["java"] == {}  # its leader has learnt nothing, so nobody joins
    assert [topic for topic, _ in given[LIBRDKAFKA]["a"] if topic == "u"] == ["u", "u", "u"]


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize(("library", "rounds"), [("java", 0), (LIBRDKAFKA, 1)])
def test_any_member_of_librdkafka_joins_when_its_metadata_changes(library, rounds, assignor):
    members = [join(name, library, assignor=assignor) for name in "ab"]
    grown = settled(*members, e.FreezeMetadata("a", together=True), e.SetPartitions("t", 6))[-1]
    assert len(grown.rounds) == rounds
    wanted = {"java": 4, LIBRDKAFKA: 6}[library]  # a leader of librdkafka asks for metadata before it assigns
    assert len(grown.owners) == wanted


@pytest.mark.parametrize("times", [None, TIMES])
def test_eager_kafka_python_revokes_nothing_when_it_first_joins_and_not_after_it_lost_something(times):
    zombie = [e.Pause("b"), *([] if times else [e.Expire("b")]), e.Resume("b")]
    members = [join(name, KAFKA_PYTHON, assignor="range") for name in "ab"]
    first, *_, back = settled(*members, *zombie, times=times)
    assert listener_calls(first) == ["onPartitionsRevoked", "onPartitionsAssigned t-0 t-1 t-2 t-3"]
    assert listener_calls(back, "b") == ["onPartitionsLost t-2 t-3", "onPartitionsAssigned t-2 t-3"]


def test_cooperative_kafka_python_does_not_call_assigned_for_nothing():
    called = {
        library: listener_calls(settled(*(join(name, library) for name in "ab"))[-1], "a")
        for library in ("java", KAFKA_PYTHON)
    }
    revoked = "onPartitionsRevoked t-2 t-3"
    assert called == {"java": [revoked, "onPartitionsAssigned", "onPartitionsAssigned"], KAFKA_PYTHON: [revoked]}


@pytest.mark.parametrize("library", ["java", LIBRDKAFKA, KAFKA_PYTHON])
def test_the_form_kip_knows_no_library(library):
    events = (join("a", library), join("b", library), e.Subscribe("a", ("u",)), e.DeleteTopic("u"), e.Leave("b"))
    javas = (join("a"), join("b"), *events[2:])
    assert called_by(events) == called_by(javas)


def called_by(events):
    """Which callbacks, in order; which partitions is the algorithm's."""
    return [[each.split()[0] for each in listener_calls(came)] for came in settled(*events, form=Form.KIP)]


@pytest.mark.parametrize("times", [None, TIMES])
def test_a_second_joingroup_of_one_rebalance_calls_nothing_before_it(times):
    """onJoinPrepare comes once in a rebalance, be SyncGroup answered or not."""
    events = [join(name, assignor="range") for name in "abc"]
    missed = settled(*events[:2], e.MissAssignment("a"), events[2], times=times)[-1]
    assert listener_calls(missed, "a") == ["onPartitionsRevoked t-0 t-1", "onPartitionsAssigned t-0 t-1"]


@pytest.mark.parametrize("times", [None, TIMES])
@pytest.mark.parametrize("rounds", [1, 2])
def test_a_leader_that_misses_a_topic_assigns_without_it_and_joins_again(rounds, times):
    members = (join("a"), join("b", "java", "t", "u"))
    missing = e.MissTopic("u", rounds, together=True)
    *_, missed = settled(*members, missing, e.Subscribe("a", ("u",)), times=times)
    hidden = [all(topic != "u" for row in took.members for topic, _ in row.assigned) for took in missed.rounds]
    assert hidden[: rounds + 1] == [True] * rounds + [False]
    assert not missed.unowned
    assert missed.stable


def test_a_topic_is_missed_in_a_classic_group_alone():
    consumer = e.Join("a", ("t",), group_protocol=e.GroupProtocol.CONSUMER)
    with pytest.raises(Fault, match="'t' is a topic of a consumer group, where the broker assigns"):
        settled(consumer, e.MissTopic("t"))


@pytest.mark.parametrize("times", [None, TIMES])
def test_frozen_metadata_thaws_after_its_rounds(times):
    members = (join("a"), join("b"))
    frozen = e.FreezeMetadata("a", 1, together=True)
    *_, grown, joined = settled(*members, frozen, e.SetPartitions("t", 6), join("c"), times=times)
    assert len(grown.owners) == 4
    assert len(joined.owners) == 6


def test_who_was_called_nothing_and_who_was_are_equally_far_when_a_process_comes_back():
    """`b` leaves and its partition goes to `a`; `c` is given nothing, and hears nothing until `b` is back."""
    members = (join(name, KAFKA_PYTHON, "u") for name in "abc")
    pace = Pace(100, {Callback.ASSIGNED: 10})
    back = simulate(Script(TOPICS, (*members, e.Restart("b", at_ms=1_000)), Form.AS_KAFKA, pace))[-1]
    again = [each for each in back.calls if each.round == 2 and each.call.callback is Callback.USER_DATA]
    assert {(each.member, each.started_ms) for each in again} == {(name, 1_110) for name in "abc"}
