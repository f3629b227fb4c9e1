"""Live adaptors over clients that only pretend: the order of things that KIP-1306 asks for, and what each client lacks.

Both run against a real broker in tests/live (`make prove`).
"""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from groupledger.core.faults import Fault, client_module
from groupledger.listener import (
    IllegalArgumentError,
    IllegalStateError,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    UnsupportedOperationError,
    WakeupError,
)
from groupledger.listener.confluent import ConfluentConsumer, generation_of
from tests.core.protocol.played import t
from tests.kips.listeners import failing
from tests.listener.doing import Doing, polled
from tests.listener.fake_clients import CONFLUENT, NO_OFFSET, Native


@pytest.mark.parametrize(("strategy", "assigns", "gives"), [
    ("cooperative-sticky", "incremental_assign", "incremental_unassign"),
    ("range", "assign", "unassign"),
])  # fmt: skip
def test_confluent_assigns_where_the_listener_sought_and_unassigns_after_it(confluent, strategy, assigns, gives):
    def seek_and_pause(partitions, consumer):
        consumer.seek(partitions[0], 41)
        consumer.pause(partitions[1:])
        assert consumer.position(partitions[0]) == 41

    listener = Doing(assigned=seek_and_pause)
    did = polled(confluent(strategy), listener, ("on_assign", t(0, 1)), ("on_revoke", t(1)))
    assert listener.seen == [("assigned", t(0, 1), list(t(0, 1))), ("revoked", t(1), list(t(0, 1)))]
    made = [each for each in did if each[0] in (assigns, gives)]
    assert [name for name, _, _ in made] == [assigns, gives]
    assert made[0][1][0] == [Native("t", 0, 41), Native("t", 1)]
    assert ("pause", ([Native("t", 1)],), {}) in did


def test_confluents_position_is_what_was_consumed_once_the_assignment_is_made(confluent):
    """Not where the listener sought to: whoever commits its position on revocation would go back there."""
    seen = []

    def seek(_, consumer):
        consumer.seek(t(0)[0], 41)
        consumer.seek_to_end(t(1))
        consumer.seek_to_beginning(t(2))
        seen.append([consumer.position(each) for each in t(0, 1, 2, 3)])

    def look(partitions, consumer):
        seen.append([consumer.position(each) for each in partitions])

    consumer = confluent("cooperative-sticky")
    did = polled(consumer, Doing(assigned=seek), ("on_assign", t(0, 1, 2, 3)))
    assert did[0][1][0] == [Native("t", 0, 41), Native("t", 1, -1), Native("t", 2, -2), Native("t", 3)]
    look(t(0, 1, 2, 3), consumer)
    consumer._consumer.consumed = {0: 77, 1: 95, 2: 12, 3: 13}
    polled(consumer, Doing(revoked=look), ("on_revoke", t(0, 1, 2, 3)))
    assert seen == [[41, 90, 10, 10], [41, 90, 10, 10], [77, 95, 12, 13]]
    consumer._consumer.consumed = {}
    polled(consumer, Doing(assigned=look), ("on_assign", t(0, 1)))
    assert seen[-1] == [5, 10]  # what is committed, and where the log begins: what was sought before is forgotten


def test_confluents_position_is_offset_0_where_the_listener_sought_that(confluent):
    seen = []

    def seek(partitions, consumer):
        consumer.seek(partitions[0], 0)
        seen.append(consumer.position(partitions[0]))

    polled(confluent("range"), Doing(assigned=seek), ("on_assign", t(0)))
    assert seen == [0]


def test_confluent_seeks_pauses_and_resumes_at_once_where_no_assignment_is_being_made(confluent):
    consumer = confluent("cooperative-sticky")
    did = polled(consumer, Doing(), ("on_assign", t(0, 1)))
    del did[:]
    consumer.seek(t(0)[0], 5)
    consumer.pause(t(0, 1))
    consumer.resume(t(1))
    assert consumer.paused() == set(t(0))
    assert did == [
        ("seek", (Native("t", 0, 5),), {}),
        ("pause", ([Native("t", 0), Native("t", 1)],), {}),
        ("resume", ([Native("t", 1)],), {}),
    ]
    consumer._consumer.consumed = {1: 8}
    assert [consumer.position(each) for each in t(0, 1)] == [5, 8]  # 0: nothing consumed, so what is committed
    assert [consumer.current_lag(each) for each in t(0, 1)] == [85, 82]
    consumer._consumer.consumed = {0: 0}
    assert consumer.position(t(0)[0]) == 0  # consumed up to there, whatever is committed
    assert consumer.end_offsets(t(1)) == {t(1)[0]: 90}
    assert consumer.beginning_offsets(t(1)) == {t(1)[0]: 10}


def test_confluent_forgets_what_was_sought_in_an_earlier_assignment(confluent):
    consumer, sought = confluent("range"), [41, None]

    def seek(partitions, view):
        offset = sought.pop(0)
        if offset is not None:
            view.seek(partitions[0], offset)

    did = polled(consumer, Doing(assigned=seek), ("on_assign", t(0)), ("on_assign", t(0)))
    assert [arguments for name, arguments, _ in did if name == "assign"] == [
        ([Native("t", 0, 41)],),
        ([Native("t", 0)],),
    ]


def test_confluent_takes_lost_partitions_before_the_listener_is_called(confluent):
    def seek(partitions, consumer):
        with pytest.raises(IllegalStateError, match="seek of t-0"):
            consumer.seek(partitions[0], 3)

    listener = Doing(lost=seek)
    did = polled(confluent("cooperative-sticky"), listener, ("on_assign", t(0)), ("on_lost", t(0)))
    assert listener.seen[-1] == ("lost", t(0), [])
    assert [name for name, _, _ in did] == ["incremental_assign", "pause", "incremental_unassign"]


@pytest.mark.parametrize("operation", ["pause", "resume"])
def test_confluent_is_not_asked_to_pause_or_resume_what_is_not_assigned(confluent, operation):
    consumer = confluent("range")
    did = polled(consumer, Doing(), ("on_assign", t(0)))
    del did[:]
    with pytest.raises(IllegalStateError, match=f"{operation} of t-1, which"):
        getattr(consumer, operation)(t(0, 1))
    assert did == []


def test_confluent_has_no_position_in_what_is_not_assigned(confluent):
    consumer = confluent("range")
    polled(consumer, Doing(), ("on_assign", t(0)))
    with pytest.raises(IllegalStateError, match="position of t-1, which"):
        consumer.position(t(1)[0])


@pytest.mark.parametrize(("end", "lag"), [(90, 85), (0, 0), (-1001, None)])
def test_confluents_lag_is_known_once_the_client_knows_the_end(confluent, end, lag):
    consumer = confluent("range")
    polled(consumer, Doing(), ("on_assign", t(0)))
    consumer._consumer.end = end
    assert consumer.current_lag(t(0)[0]) == lag


def test_confluent_has_a_commit_of_the_first_offset(confluent):
    consumer = confluent("range")
    consumer._consumer.kept = {("t", 0): Native("t", 0, 0)}
    seen: list[object] = []
    asking = Doing(assigned=lambda _, view: seen.append(view.committed(t(0, 1))))
    polled(consumer, asking, ("on_assign", t(0)))
    assert seen == [{t(0)[0]: OffsetAndMetadata(0), t(1)[0]: None}]


def test_confluent_lacks_what_librdkafka_lacks(confluent):
    told = []

    def ask(_, consumer):
        for operation in (consumer.client_instance_id, lambda: consumer.commit_async(None, print)):
            with pytest.raises(UnsupportedOperationError) as raised:
                operation()
            told.append(raised.value.message.split(";")[0])
        assert consumer.committed(t(0, 1)) == {t(0)[0]: OffsetAndMetadata(5), t(1)[0]: None}
        assert consumer.group_metadata()[:3] == ("g", 7, "m-1")

    polled(confluent("range"), Doing(assigned=ask), ("on_assign", t(0)))
    assert told == [
        "confluent-kafka has no client_instance_id",
        "confluent-kafka has no commit_async with a callback",
    ]


KEPT = {t(0)[0]: OffsetAndMetadata(5, "until noon", 3), t(1)[0]: OffsetAndMetadata(6)}


@pytest.mark.parametrize("name", ["confluent", "kafka_python"])
def test_metadata_and_leader_epoch_of_a_commit_come_back(name, confluent, kafka_python):
    consumer = confluent("range") if name == "confluent" else kafka_python
    told = []

    def commit(_, view):
        view.commit_sync(KEPT)
        told.append(view.committed(t(0, 1, 2)))

    polled(
        consumer, Doing(assigned=commit), ("on_assign" if name == "confluent" else "on_partitions_assigned", t(0, 1, 2))
    )
    assert told == [{**KEPT, t(2)[0]: None}]


def test_kafka_python_keeps_a_leader_epoch_of_0(kafka_python):
    first = {t(0)[0]: OffsetAndMetadata(5, "", 0)}
    told = []

    def commit(_, view):
        view.commit_sync(first)
        told.append(view.committed(t(0)))

    polled(kafka_python, Doing(assigned=commit), ("on_partitions_assigned", t(0)))
    assert told == [first]


@pytest.mark.parametrize(("name", "told"), [("confluent", (9, None, None)), ("kafka_python", (9, 90, 4))])
def test_offsets_are_found_by_time(name, told, confluent, kafka_python):
    """librdkafka tells the offset alone, and an offset of -1 where there is no such record."""
    consumer = confluent("range") if name == "confluent" else kafka_python
    assert consumer.offsets_for_times({t(0)[0]: 5})[t(0)[0]].offset == 0
    assert consumer.offsets_for_times({t(0)[0]: 90, t(1)[0]: 5_000}) == {
        t(0)[0]: OffsetAndTimestamp(*told),
        t(1)[0]: None,
    }


def test_confluent_seeks_with_the_leader_epoch_that_it_is_given(confluent):
    listener = Doing(assigned=lambda partitions, view: view.seek(partitions[0], OffsetAndMetadata(41, "kept", 3)))
    did = polled(confluent("range"), listener, ("on_assign", t(0)))
    assert did[0] == ("assign", ([Native("t", 0, 41, "kept", 3)],), {})


def test_confluent_names_a_partition_whose_commit_failed_among_others(confluent):
    consumer = confluent("range")
    consumer._consumer.broken = {0: SimpleNamespace(code=lambda: NO_OFFSET)}
    committing = Doing(assigned=lambda _, view: view.commit_sync(KEPT))
    polled(consumer, committing, ("on_assign", t(0, 1)))
    failed = SimpleNamespace(code=lambda: 3)
    consumer._consumer.broken[1] = failed
    with pytest.raises(KeyError) as raised:
        polled(consumer, committing, ("on_assign", t(0, 1)))
    assert raised.value.args == (failed,)


@pytest.mark.parametrize(
    ("serialized", "generation"),
    [
        (b"CGMDv2:" + struct.pack("=i", 12) + b"g\0m\0\1", 12),
        (b"CGMDv2:" + struct.pack("=i", 0) + b"g\0m\0\1", 0),
        (b"CGMDv2:" + struct.pack("=i", -1) + b"g\0\0\1", None),
        (b"CGMDv3:" + struct.pack("=i", 12) + b"g\0m\0\1", None),
        (b"CGMDv2:\0\0", None),
        (object(), None),
    ],
)
def test_confluents_generation_is_in_what_it_hands_to_a_transactional_producer(serialized, generation):
    assert generation_of(serialized) == generation


def test_confluents_member_has_its_instance_id(monkeypatch):
    monkeypatch.setattr("groupledger.listener.confluent.client_module", lambda *_: CONFLUENT)
    consumer = ConfluentConsumer({"group.id": "g", "group.instance.id": "i-1"})
    assert consumer.group_metadata() == ("g", 7, "m-1", "i-1")


def test_an_error_of_a_listener_comes_after_the_rebalance_and_loses_no_message(confluent):
    def fail(*_):
        raise ZeroDivisionError

    consumer = confluent("range")
    with pytest.raises(ZeroDivisionError):
        polled(consumer, Doing(assigned=fail), ("on_assign", t(0)))
    assert consumer.assignment() == set(t(0))
    assert consumer._consumer.did[0][0] == "assign"
    consumer._consumer.poll = lambda timeout: "the next message"
    assert [consumer.poll(0.1), consumer.poll(0.1)] == ["a message", "the next message"]


def test_a_wakeup_comes_before_what_was_raised_first_in_a_live_client_too(confluent):
    def fail(_, consumer):
        raise WakeupError("WAKEUP", "woken")

    consumer = confluent("cooperative-sticky")
    polled(consumer, Doing(), ("on_assign", t(0)))
    consumer.set_rebalance_listener(Doing(revoked=lambda *_: 1 / 0, assigned=fail))
    consumer._consumer.due = [("on_revoke", t(0)), ("on_assign", t(1))]
    with pytest.raises(WakeupError) as raised:
        consumer.poll(0.1)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_live_clients_take_listeners_alone_and_warn_of_the_older_ways(confluent, kafka_python):
    for consumer, assigned in ((confluent("range"), "on_assign"), (kafka_python, "on_partitions_assigned")):
        with pytest.raises(IllegalArgumentError):
            consumer.set_rebalance_listener(object())
        listener = Doing()
        with pytest.warns(DeprecationWarning, match="subscribe with a listener") as told:
            consumer.subscribe(["t"], listener)
        assert [each.filename for each in told] == [__file__]
        consumer._consumer.due = [(assigned, t(0))]
        consumer.poll(0.1)
        assert [name for name, *_ in listener.seen] == ["assigned"]


def test_closing_tells_the_listener_while_the_client_still_answers(confluent):
    listener = Doing()
    consumer = confluent("range")
    did = polled(consumer, listener, ("on_assign", t(0)))
    consumer._consumer.due = [("on_revoke", t(0))]
    consumer.close()
    assert [name for name, *_ in listener.seen] == ["assigned", "revoked"]
    assert [name for name, _, _ in did][-3:] == ["unassign", "close", "unassign"]


def test_an_error_of_a_listener_at_the_close_comes_after_it(confluent):
    consumer = confluent("range")
    did = polled(consumer, Doing(revoked=failing(ZeroDivisionError("no"))), ("on_assign", t(0)))
    consumer._consumer.due = [("on_revoke", t(0))]
    with pytest.raises(ZeroDivisionError, match="no"):
        consumer.close()
    assert "close" in {name for name, _, _ in did}


def test_a_client_that_is_not_installed_is_said():
    with pytest.raises(Fault, match="no-such-client is not installed; expected `pip install no-such-client`"):
        client_module("no_such_client", "no-such-client")
    assert client_module("json", "json").__name__ == "json"


def test_confluent_commits_what_it_is_told_and_of_its_own_only_what_is_assigned(confluent):
    consumer = confluent("range")
    consumer.commit_sync()
    assert consumer._consumer.did == []
    consumer.commit_sync({t(0)[0]: OffsetAndMetadata(3)})
    consumer.commit_async({t(0)[0]: OffsetAndMetadata(4)})
    told = [(name, said["asynchronous"], said["offsets"][0].offset) for name, _, said in consumer._consumer.did]
    assert told == [("commit", False, 3), ("commit", True, 4)]


@pytest.mark.parametrize(("strategy", "owned"), [("cooperative-sticky", t(0, 1)), ("range", t(1))])
def test_confluents_next_assignment_comes_on_top_or_in_place_of_the_last_one(confluent, strategy, owned):
    consumer = confluent(strategy)
    polled(consumer, Doing(), ("on_assign", t(0)), ("on_assign", t(1)))
    assert consumer.assignment() == set(owned)
