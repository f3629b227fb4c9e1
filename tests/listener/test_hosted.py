"""What a listener may ask of the simulated consumer, and what becomes of what it did there."""

from __future__ import annotations

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from groupledger.listener import (
    CommitFailedError,
    HostedConsumer,
    IllegalArgumentError,
    IllegalStateError,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RebalanceListener,
    rehearse_simulation,
)
from groupledger.listener.hosted import SimulatedBroker
from groupledger.listener.view import GroupMetadataView, PartitionInfo
from tests.core.protocol.played import t
from tests.kips.listeners import Doing, assigned, failing, lost, polled, revoked
from tests.kips.test_kip_1306_view import ARGUMENTS, INCLUDED

T0, T1 = t(0, 1)


def did(consumer):
    return [(entry.callback, entry.did, entry.partitions) for entry in consumer.journal]


def test_what_is_resumed_is_paused_no_longer():
    def pause_two_and_resume_one(partitions, view):
        view.pause(partitions)
        view.resume([T0])
        assert view.paused() == {T1}

    consumer = polled(Doing(assigned=pause_two_and_resume_one), assigned(0, 1))
    assert consumer.paused() == {T1}
    assert did(consumer) == [
        (Callback.ASSIGNED, "pause", (T0, T1)),
        (Callback.ASSIGNED, "resume", (T0,)),
    ]


@pytest.mark.parametrize("operation", ["pause", "resume"])
def test_only_what_is_assigned_is_paused_or_resumed(operation):
    with pytest.raises(IllegalStateError, match=f"{operation} of t-1, which m is not assigned"):
        polled(Doing(assigned=lambda _, view: getattr(view, operation)([T0, T1])), assigned(0))


def test_a_position_is_what_was_sought_else_what_was_committed_else_the_beginning():
    seen = []

    def look(_, view):
        seen.append(view.position(T0))

    def seek_and_commit(_, view):
        view.seek(T0, 7)
        view.commit_sync({T0: OffsetAndMetadata(5, "why")})
        look(_, view)

    consumer = polled(Doing(assigned=look), assigned(0))
    polled(Doing(assigned=seek_and_commit, revoked=look), assigned(1), revoked(0), consumer=consumer)
    polled(Doing(assigned=look), assigned(0), consumer=consumer)
    assert seen == [0, 7, 7, 5]  # what it sought went with the partition, what it committed did not


def test_commit_without_offsets_commits_every_position_and_is_told_back():
    told = []

    def seek(_, view):
        view.seek(T0, 3)
        view.seek_to_beginning([T1])
        view.commit_async(None, lambda offsets, error: told.append((dict(offsets), error)))
        assert view.committed([T0, T1]) == {T0: OffsetAndMetadata(3), T1: OffsetAndMetadata(0)}

    consumer = polled(Doing(assigned=seek), assigned(0, 1))
    assert consumer.broker.committed == {T0: OffsetAndMetadata(3), T1: OffsetAndMetadata(0)}
    assert told == [(consumer.broker.committed, None)]
    assert consumer.metrics()["commit-total"] == 1
    assert consumer.committed(t(2)) == {t(2)[0]: None}


def test_a_later_commit_leaves_other_partitions_as_they_are():
    def commit(partitions, view):
        view.commit_sync({each: OffsetAndMetadata(9) for each in partitions})

    consumer = polled(Doing(assigned=commit), assigned(0), assigned(1))
    assert consumer.broker.committed == {T0: OffsetAndMetadata(9), T1: OffsetAndMetadata(9)}


def test_what_is_known_of_topics_and_the_group():
    host = HostedConsumer("m", "g", {"u": 1, "t": 2})
    assert host.partitions_for("t") == [PartitionInfo("t", 0), PartitionInfo("t", 1)]
    assert host.partitions_for("nothing") == []
    assert host.list_topics() == {"t": host.partitions_for("t"), "u": [PartitionInfo("u", 0)]}
    assert list(host.list_topics()) == ["t", "u"]
    assert host.beginning_offsets([T0, T1]) == {T0: 0, T1: 0}
    assert host.group_metadata() == GroupMetadataView("g", member_id="m")
    assert host.client_instance_id() == HostedConsumer("m", "g").client_instance_id()
    assert len({each.client_instance_id() for each in (host, HostedConsumer("n", "g"), HostedConsumer("m", "h"))}) == 3
    assert HostedConsumer("m", "g", process=2).client_instance_id() != host.client_instance_id()
    assert len(host.client_instance_id()) == 22


def test_the_ends_of_logs_and_what_is_between():
    """Ten records at 1 s, twenty more at 5 s; then topic u is made, and all get five at a time before the last one."""
    broker = SimulatedBroker({"t": 1})
    host = HostedConsumer("m", "g", broker=broker)
    broker.append(10, 1_000)
    broker.append(20, 5_000)
    broker.set_topics({"t": 2, "u": 1})
    broker.append(5, 4_000)
    broker.append(0, 9_000)
    u = t(0, topic="u")[0]
    assert host.end_offsets([T0, T1, u, *t(9)]) == {T0: 35, T1: 5, u: 5, t(9)[0]: 0}
    moments = {0: (0, 1_000), 1_000: (0, 1_000), 1_001: (10, 5_000), 5_000: (10, 5_000), 5_001: None}
    for at_ms, told in moments.items():
        expected = None if told is None else OffsetAndTimestamp(*told)
        assert host.offsets_for_times({T0: at_ms}) == {T0: expected}
    assert host.offsets_for_times({T1: 0, u: 5_000, t(9)[0]: 0}) == {
        T1: OffsetAndTimestamp(0, 5_000),
        u: OffsetAndTimestamp(0, 5_000),
        t(9)[0]: None,
    }


def test_a_partition_that_is_added_has_the_records_that_come_after_it():
    broker = SimulatedBroker({"t": 1})
    broker.append(2, 10)
    broker.set_topics({"t": 2})
    broker.append(3, 20)
    broker.set_topics({"t": 3})
    broker.append(4, 30)
    assert [broker.end_offset(each) for each in t(0, 1, 2, 3)] == [9, 7, 4, 0]
    assert broker.first_since(T1, 0) == OffsetAndTimestamp(0, 20)


def test_who_skips_records_is_convicted_once_and_not_who_follows_a_lost_member():
    broker = SimulatedBroker({"t": 1})
    first, skipping, last = (HostedConsumer(name, "g", broker=broker) for name in "abc")
    broker.append(10, 0)
    polled(Doing(), assigned(0), consumer=first).consume()
    polled(Doing(), lost(0), consumer=first)
    broker.append(5, 0)
    polled(Doing(), assigned(0), consumer=skipping).seek(T0, 15)
    skipping.consume()
    skipping.seek(T0, 15)
    assert did(skipping) == [(Callback.ASSIGNED, "skips", (T0,))]
    polled(Doing(), lost(0), consumer=skipping)
    polled(Doing(), assigned(0), consumer=last)
    assert did(last) == []


def test_a_topic_that_is_made_again_has_nothing_of_the_old_one():
    broker = SimulatedBroker({"t": 2})
    broker.append(10, 0)
    broker.committed = {T0: OffsetAndMetadata(4), T1: OffsetAndMetadata(5)}
    broker.set_topics({"t": 1})
    assert broker.committed == {T0: OffsetAndMetadata(4)}
    broker.set_topics({})
    broker.set_topics({"t": 2})
    assert (broker.committed, broker.end_offset(T0), broker.end_offset(T1)) == ({}, 0, 0)


def test_consuming_moves_positions_to_the_end_but_not_what_is_paused():
    broker = SimulatedBroker({"t": 3})
    host = HostedConsumer("m", "g", broker=broker)
    polled(Doing(assigned=lambda _, view: view.pause([T1])), assigned(0, 1), consumer=host)
    broker.append(6, 0)
    assert [host.current_lag(each) for each in (T0, T1)] == [6, 6]
    host.consume()
    assert [host.position(each) for each in (T0, T1)] == [6, 0]
    assert [host.current_lag(each) for each in (T0, T1)] == [0, 6]
    host.seek_to_end([T1])
    assert host.position(T1) == 6
    assert host.metrics() == {
        "assigned-partitions": 2,
        "commit-total": 0,
        "rebalance-total": 1,
        "records-consumed-total": 6,
    }
    with pytest.raises(IllegalStateError, match="current_lag of t-2, which m is not assigned"):
        host.current_lag(t(2)[0])


def test_a_negative_offset_is_refused():
    """Neither is it an end of a log, as it is for librdkafka."""
    consumer = polled(None, assigned(0))
    for wrong in (lambda: consumer.seek(T0, -1), lambda: consumer.commit_sync({T0: OffsetAndMetadata(-2)})):
        with pytest.raises(IllegalArgumentError, match="of a negative offset for t-0; expected an offset of 0 or more"):
            wrong()
    assert consumer.broker.committed == {}


def test_a_member_knows_its_group_as_the_coordinator_does():
    """Before JoinGroup the generation it leaves, after it the new one; none once it fell out."""
    told = []

    class Asking(RebalanceListener):
        def on_partitions_assigned(self, partitions, consumer):
            told.append(("assigned", consumer.group_metadata()))

        def on_partitions_revoked(self, partitions, consumer):
            told.append(("revoked", consumer.group_metadata()))

        def on_partitions_lost(self, partitions, consumer):
            told.append(("lost", consumer.group_metadata()))

    joins = [e.Join(name, ("t",), ("range",), f"i-{name}") for name in "ab"]
    events = [*joins, e.Pause("b"), e.Expire("b"), e.Resume("b")]
    rehearse_simulation(simulate(Script({"t": 2}, events, Form.AS_KAFKA)), Asking, group_id="g")
    mine = [(name, each[1]) for name, each in told if each.group_instance_id == "i-b"]
    assert {each.group_id for _, each in told} == {"g"}
    assert told[0] == ("assigned", GroupMetadataView("g", 1, "a-1", "i-a"))
    assert told[1] == ("revoked", GroupMetadataView("g", 1, "a-1", "i-a"))
    assert told[2][1].generation == 2
    assert mine == [("assigned", 2), ("lost", None), ("assigned", 4)]


def test_what_an_application_does_outside_of_callbacks_is_not_in_the_journal():
    consumer = polled(Doing(), assigned(0))
    consumer.seek(T0, 4)
    assert consumer.position(T0) == 4
    assert consumer.journal == []


@pytest.mark.parametrize("operation", sorted(INCLUDED))
def test_every_operation_of_the_view_is_answered(operation):
    answered = []

    def ask(_, view):
        answered.append(getattr(view, operation)(*ARGUMENTS.get(operation, ())))

    consumer = polled(Doing(assigned=ask), assigned(0))
    assert len(answered) == 1
    assert [entry for entry in consumer.journal if entry.error is not None] == []


def test_what_a_listener_raises_is_noted_beside_what_it_left_undone():
    broker = SimulatedBroker({"t": 1})
    first, second = (HostedConsumer(name, "g", broker=broker) for name in "ab")
    polled(Doing(), assigned(0), consumer=first)
    broker.append(3, 0)
    first.consume()
    polled(Doing(), revoked(0), consumer=first)
    with pytest.raises(ZeroDivisionError):
        polled(Doing(assigned=failing(ZeroDivisionError("no"))), assigned(0), consumer=second)
    assert [entry.did for entry in first.journal] == ["left uncommitted"]
    assert [entry.did for entry in second.journal] == ["reads again", "raised ZeroDivisionError"]


def test_a_position_beyond_the_end_of_the_log_goes_back_to_its_beginning():
    broker = SimulatedBroker({"t": 2})
    host = polled(Doing(), assigned(0, 1), consumer=HostedConsumer("m", "g", broker=broker))
    broker.append(5, 0)
    host.seek(T0, 6)
    host.seek(T1, 5)
    assert [host.position(each) for each in (T0, T1)] == [6, 5]
    host.consume()
    assert (host.positions, host.metrics()["records-consumed-total"]) == ({T0: 5, T1: 5}, 5)
    assert did(host) == []
    host.seek(T0, 6)
    host.consume()
    assert [(each.did, each.offsets[0].offset) for each in host.journal] == [("reads again", 0)]
    assert host.journal[0].error == "t-0 goes on at offset 0, and was read up to offset 5: reads again 5 records"


@pytest.mark.parametrize(
    ("broker", "later"),
    [
        (SimulatedBroker({"t": 1}), {}),
        (SimulatedBroker({"t": 1}, exact=False), {"t": 1}),
        (SimulatedBroker(), {}),
    ],
    ids=["deleted", "of unknown length", "unknown"],
)
def test_a_position_stays_where_no_log_is_known(broker, later):
    host = polled(Doing(), assigned(0), consumer=HostedConsumer("m", "g", broker=broker))
    host.seek(T0, 6)
    broker.set_topics(later)
    host.consume()
    assert host.position(T0) == 6


def test_the_second_of_two_owners_skips_nothing_when_the_first_hands_over():
    broker = SimulatedBroker({"t": 1})
    first, second = (HostedConsumer(name, "g", broker=broker) for name in "ab")
    broker.append(10, 0)
    polled(Doing(), assigned(0), consumer=first).consume()
    polled(Doing(), assigned(0), consumer=second)
    broker.append(5, 1)
    second.consume()
    polled(Doing(revoked=lambda _, view: view.commit_sync()), revoked(0), consumer=first)
    broker.append(5, 2)
    second.consume()
    assert did(second) == []
    assert second.position(T0) == 20


def test_records_that_a_member_skips_are_told_once():
    broker = SimulatedBroker({"t": 1})
    consumer = polled(Doing(), assigned(0), consumer=HostedConsumer("m", "g", broker=broker))
    broker.append(5, 0)
    consumer.consume()
    broker.append(5, 1)
    polled(Doing(assigned=lambda _, view: view.seek_to_end([T0])), revoked(0), assigned(0), consumer=consumer)
    consumer.consume()
    consumer.consume()
    assert [entry.did for entry in consumer.journal].count("skips") == 1


@pytest.mark.parametrize(("topics", "taken"), [(None, True), ({"t": 1}, True), ({}, False), ({"u": 1}, False)])
def test_a_commit_of_a_partition_that_the_cluster_does_not_have_is_refused_where_its_topics_are_known(topics, taken):
    hosted = HostedConsumer("m", "g", topics)
    polled(Doing(), assigned(0), consumer=hosted)
    if taken:
        hosted.commit_sync({t(0)[0]: OffsetAndMetadata(3)})
    else:
        with pytest.raises(
            CommitFailedError, match="the cluster does not have t-0; expected offsets of partitions that it has"
        ):
            hosted.commit_sync({t(0)[0]: OffsetAndMetadata(3)})
    assert (t(0)[0] in hosted.broker.committed) == taken


def test_the_other_partitions_of_a_commit_are_taken():
    hosted = HostedConsumer("m", "g", {"t": 1})
    polled(Doing(), assigned(0, 1), consumer=hosted)
    wanted, told = {each: OffsetAndMetadata(3) for each in t(0, 1)}, []
    hosted.commit_async(wanted, lambda *answer: told.append(answer))
    assert set(hosted.broker.committed) == set(t(0))
    ((offsets, error),) = told
    assert (offsets, error.code) == (wanted, "UNKNOWN_TOPIC_OR_PARTITION")


def test_who_has_read_nothing_has_nothing_left_to_commit():
    """It commits less than was committed before: that is its own affair."""
    hosted = HostedConsumer("m", "g")
    hosted.broker.committed = {T0: OffsetAndMetadata(40)}
    polled(Doing(), assigned(0), consumer=hosted)
    hosted.commit_sync({T0: OffsetAndMetadata(30)})
    polled(Doing(), revoked(0), consumer=hosted)
    assert did(hosted) == []


def test_a_commit_of_what_the_cluster_does_not_have_is_no_commit():
    hosted = HostedConsumer("m", "g", {"u": 1})
    commits = Doing(revoked=lambda _, view: view.commit_async({T0: OffsetAndMetadata(3)}))
    polled(commits, assigned(0), consumer=hosted)
    polled(commits, revoked(0), consumer=hosted)
    assert [each.did for each in hosted.journal] == ["commit"]
    assert hosted.journal[0].error is not None
