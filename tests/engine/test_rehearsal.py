"""What is compiled ahead is what jobs run: every assignor, on groups that it assigns."""

from groupledger.core.assignors import ASSIGNORS
from groupledger.engine import rehearsal
from groupledger.engine.buckets import compute


def test_every_assignor_assigns_the_group_that_rehearses_it(monkeypatch):
    outcomes = []

    def noted(table, calculation):
        result = compute(table, calculation)
        outcomes.extend(each["outcome"] for each in result.column("rebalances").to_pylist() if each)

    monkeypatch.setattr(rehearsal, "compute", noted)
    rehearsal.rehearse()
    assert outcomes == ["ASSIGNED"] * 2 * len(ASSIGNORS)
