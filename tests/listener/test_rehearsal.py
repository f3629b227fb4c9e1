"""One listener class, unchanged, over a simulated group and over the captured history of Java clients."""

from __future__ import annotations

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.listener import rehearse_history, rehearse_simulation
from tests.core.history.captured import folded
from tests.listener.checkpointing import Checkpointing


def simulated():
    joins = [e.Join(name, ("t",)) for name in "abc"]
    zombie = [e.Pause("b"), e.Expire("b"), e.Resume("b")]
    return rehearse_simulation(simulate(Script({"t": 6}, [*joins, *zombie])), Checkpointing)


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
