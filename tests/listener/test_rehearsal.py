"""One listener class, unchanged, over a simulated group and over the captured history of Java clients."""

from __future__ import annotations

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.listener import RebalanceListener, rehearse_history, rehearse_simulation
from tests.core.history.captured import folded
from tests.core.protocol.played import t
from tests.listener.checkpointing import Checkpointing
from tests.listener.timed_listeners import Careful


def simulated():
    """Of empty topics: it commits offset 1, whatever it read."""
    joins = [e.Join(name, ("t",)) for name in "abc"]
    zombie = [e.Pause("b"), e.Expire("b"), e.Resume("b")]
    return rehearse_simulation(simulate(Script({"t": 6}, [*joins, *zombie])), Checkpointing, records=0)


def recorded():
    rows = folded("dev/offsets", "java-cooperative-sticky")
    return rehearse_history(recorded_calls(rows.group_snapshots, rows.member_snapshots), Checkpointing)


@pytest.mark.parametrize("rehearse", [simulated, recorded])
def test_the_same_listener_runs_in_both(rehearse):
    journal = rehearse()
    assert {entry.did for entry in journal} >= {"pause", "commit"}
    assert journal == rehearse()


def test_what_goes_wrong_in_production_goes_wrong_here():
    """It commits in lost as in revoked, which a broker refuses: the zombie's commit shows it."""
    wrong = [entry for entry in simulated() if entry.error is not None]
    assert {(entry.member, entry.callback.value, entry.did) for entry in wrong} == {
        ("b", "onPartitionsLost", "commit"),
        ("b", "onPartitionsLost", "raised CommitFailedError"),
    }
    assert [entry for entry in recorded() if entry.error is not None] == []


class Holding(RebalanceListener):
    """Commits all that it has whenever something is assigned, and pauses that."""

    made = 0

    def __init__(self):
        type(self).made += 1

    def on_partitions_assigned(self, partitions, consumer):
        consumer.commit_sync()
        consumer.pause(consumer.assignment())

    def on_partitions_revoked(self, partitions, consumer): ...


class Silent(RebalanceListener):
    """Never commits."""

    def on_partitions_assigned(self, partitions, consumer): ...

    def on_partitions_revoked(self, partitions, consumer): ...


@pytest.mark.parametrize(("records", "left"), [(1, [t(2, 3)]), (0, [])])
def test_only_what_was_read_is_left_uncommitted(records, left):
    joins = [e.Join(name, ("t",)) for name in "ab"]
    journal = rehearse_simulation(simulate(Script({"t": 4}, joins)), Silent, records=records)
    told = [each.partitions for each in journal if each.did == "left uncommitted"]
    assert [partition for each in told for partition in each] == [partition for each in left for partition in each]


A, B = (e.Join(name, ("t",)) for name in "ab")
STATIC = e.Join("a", ("t",), group_instance_id="i")
NEW_PROCESSES = {
    "joins again after its session ran out": ([A, e.Crash("a"), e.Expire("a"), B, A], 3, t(2, 3)),
    "joins again after it left": ([A, e.Leave("a"), B, A], 3, t(2, 3)),
    "restarts as a dynamic member": ([A, e.Crash("a"), B, e.Restart("a")], 3, t(2, 3)),
    "restarts as a static member": ([STATIC, B, e.Crash("a"), e.Restart("a")], 3, t(0, 1)),
    "runs on, stopped for a while": ([A, B, e.Pause("a"), e.Resume("a")], 2, t(0, 1)),
}


@pytest.mark.parametrize(("events", "made", "owned"), NEW_PROCESSES.values(), ids=NEW_PROCESSES.keys())
def test_a_new_process_has_a_consumer_and_a_listener_of_its_own(events, made, owned):
    """It knows nothing of what its predecessor was assigned and paused, and commits nothing that another owns."""
    Holding.made = 0
    settled = simulate(Script({"t": 4}, events))
    journal = rehearse_simulation(settled, Holding)
    assert {each for each, name in settled[-1].owners.items() if name == "a"} == set(owned)
    last = {entry.did: entry.partitions for entry in journal if entry.member == "a"}
    assert last == {"commit": owned, "pause": owned}
    assert Holding.made == made
    assert [entry for entry in journal if entry.error is not None] == []


def test_a_commit_of_a_deleted_topic_is_refused_by_rounds_too():
    """Eager members are called back for what there is no more."""
    joins = [e.Join(name, ("t",), ("range",)) for name in "ab"]
    journal = rehearse_simulation(simulate(Script({"t": 2}, [*joins, e.DeleteTopic("t")])), Careful)
    refused = [(each.member, each.did) for each in journal if each.error is not None]
    assert refused == [(name, did) for name in "ab" for did in ("commit", "raised CommitFailedError")]
