"""What a listener may ask of the simulated consumer, and what becomes of what it did there."""

from __future__ import annotations

import pytest

from groupledger.core.protocol.callbacks import Callback
from groupledger.listener import HostedConsumer, IllegalStateError, OffsetAndMetadata
from groupledger.listener.view import GroupMetadata, PartitionInfo
from tests.core.protocol.played import t
from tests.kips.listeners import Doing, assigned, polled, revoked

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
    assert host.group_metadata() == GroupMetadata("g", member_id="m")


def test_what_an_application_does_outside_of_callbacks_is_not_in_the_journal():
    consumer = polled(Doing(), assigned(0))
    consumer.seek(T0, 4)
    assert consumer.position(T0) == 4
    assert consumer.journal == []
