"""kafka-python's host, with a fake client."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from groupledger.listener import IllegalStateError, OffsetAndMetadata
from groupledger.listener.view import GroupMetadataView
from tests.core.protocol.played import t
from tests.listener.doing import Doing, polled
from tests.listener.fake_clients import Native


def test_kafka_python_runs_listeners_beside_its_loop(kafka_python):
    def commit(partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(7) for each in partitions}, timeout=2.5)

    listener = Doing(assigned=lambda partitions, consumer: consumer.seek(partitions[0], 3), revoked=commit)
    due = ("on_partitions_assigned", t(0, 1)), ("on_partitions_revoked", t(1)), ("on_partitions_lost", t(0))
    did = polled(kafka_python, listener, *due)
    assert [name for name, *_ in listener.seen] == ["assigned", "revoked", "lost"]
    assert listener.seen[-1] == ("lost", t(0), [])
    assert did[0] == ("seek", (Native("t", 0), 3), {})
    assert did[1] == ("commit", ({Native("t", 1): (7, "", -1)},), {"timeout_ms": 2_500})


def test_kafka_python_pauses_and_resumes(kafka_python):
    did = polled(kafka_python, Doing(), ("on_partitions_assigned", t(0, 1)))
    kafka_python.pause(t(0, 1))
    kafka_python.resume(t(1))
    assert did == [("pause", (Native("t", 0), Native("t", 1)), {}), ("resume", (Native("t", 1),), {})]


def test_kafka_python_gives_the_records_that_it_polls(kafka_python, monkeypatch):
    kafka_python.subscribe(["t"])
    assert (kafka_python.poll(2.5), kafka_python._consumer.polled_ms) == (None, 2_500)
    monkeypatch.setattr(type(kafka_python._consumer), "poll", lambda *_, **__: {"t-0": ["a record"]})
    assert kafka_python.poll(0.1) == {"t-0": ["a record"]}


def test_kafka_pythons_lag_is_what_is_left_as_far_as_the_client_knows(kafka_python):
    polled(kafka_python, Doing(), ("on_partitions_assigned", t(0)))
    client = kafka_python._consumer
    client.position = lambda *_, **__: 12
    lags = []
    for client.highwater in (lambda _: None, lambda _: 20, lambda _: 12, lambda _: 11):
        lags.append(kafka_python.current_lag(t(0)[0]))
    assert lags == [None, 8, 0, 0]


def test_what_kafka_python_is_assigned_after_a_loss_is_there(kafka_python):
    polled(kafka_python, Doing(), ("on_partitions_assigned", t(0)), ("on_partitions_lost", t(0)))
    assert kafka_python.assignment() == set()
    kafka_python._consumer.owned = {Native("t", 0)}  # the client has it before its listener is called
    assert kafka_python.assignment() == set(t(0))


@pytest.mark.parametrize(("told", "generation"), [(-1, None), (0, 0), (7, 7)])
def test_kafka_pythons_generation_is_none_only_outside_of_a_group(kafka_python, told, generation):
    metadata = SimpleNamespace(group_id="g", generation_id=told, member_id="", group_instance_id=None)
    kafka_python._consumer.group_metadata = lambda: metadata
    assert kafka_python.group_metadata() == GroupMetadataView("g", generation)


@pytest.mark.parametrize("answer", [SimpleNamespace(), ValueError("no coordinator")])
def test_kafka_pythons_callback_of_a_commit_is_told_what_was_committed_or_the_error(kafka_python, answer):
    told = []
    committed = {t(0)[0]: OffsetAndMetadata(4)}
    kafka_python.commit_async(committed, lambda *each: told.append(each))
    ((offsets,), options) = next(each[1:] for each in kafka_python._consumer.did if each[0] == "commit_async")
    options["callback"](offsets, answer)
    assert told == [(committed, answer if isinstance(answer, ValueError) else None)]


@pytest.mark.parametrize("operation", ["pause", "resume"])
def test_kafka_python_pauses_and_resumes_what_is_assigned_and_nothing_else(kafka_python, operation):
    kafka_python._consumer.owned = {Native(*each) for each in t(0)}
    getattr(kafka_python, operation)(t(0))
    with pytest.raises(IllegalStateError, match=f"{operation} of t-1, which are not assigned"):
        getattr(kafka_python, operation)(t(0, 1))
    assert [name for name, *_ in kafka_python._consumer.did] == [operation]


def test_a_callback_of_kafka_python_that_never_returns_does_not_keep_the_program_from_ending(kafka_python):
    threads = []
    listener = Doing(assigned=lambda *_: threads.append(threading.current_thread()))
    polled(kafka_python, listener, ("on_partitions_assigned", t(0)))
    assert [each.daemon for each in threads] == [True]


def test_kafka_python_seeks_in_what_is_assigned_alone(kafka_python):
    did = polled(kafka_python, Doing(), ("on_partitions_assigned", t(0)))
    kafka_python.seek(t(0)[0], 3)
    with pytest.raises(IllegalStateError, match="seek of t-1"):
        kafka_python.seek(t(1)[0], 3)
    kafka_python.seek_to_beginning(t(0))
    kafka_python.seek_to_end(t(0))
    at = Native("t", 0)
    assert did == [("seek", (at, 3), {}), ("seek_to_beginning", (at,), {}), ("seek_to_end", (at,), {})]


def test_kafka_python_commits_what_it_has_where_nothing_is_told_and_nothing_where_it_has_none(kafka_python):
    kafka_python.commit_sync()
    assert kafka_python._consumer.did == []
    did = polled(kafka_python, Doing(), ("on_partitions_assigned", t(0)))
    kafka_python.commit_sync(timeout=1.0)
    assert did == [("commit", (None,), {"timeout_ms": 1_000})]
