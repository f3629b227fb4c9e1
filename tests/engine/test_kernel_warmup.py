"""What is compiled ahead is what jobs run: every assignor, on groups that it assigns."""

from groupledger.core.assignors import ASSIGNORS
from groupledger.engine import kernel_warmup
from groupledger.engine.buckets import compute


def test_every_assignor_assigns_the_group_that_warms_it_up(monkeypatch):
    outcomes = []

    def noted(table, calculation):
        result = compute(table, calculation)
        outcomes.extend(result["rebalances"]["outcome"].to_pylist())
        return result

    monkeypatch.setattr(kernel_warmup, "compute", noted)
    kernel_warmup.warm_up()
    assert outcomes == ["ASSIGNED"] * 2 * len(ASSIGNORS)
