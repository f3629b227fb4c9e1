"""What is compiled ahead is what jobs run: every assignor, on groups that it assigns."""

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.history import FoldSettings
from groupledger.engine import fold_slices, kernel_warmup
from groupledger.engine.buckets import compute
from groupledger.engine.classic import column_fold


def test_every_assignor_assigns_the_group_that_warms_it_up(monkeypatch):
    outcomes = []

    def noted(table, calculation):
        result = compute(table, calculation)
        outcomes.extend(result["rebalances"]["outcome"].to_pylist())
        return result

    monkeypatch.setattr(kernel_warmup, "compute", noted)
    kernel_warmup.warm_up()
    assert outcomes == ["ASSIGNED"] * 2 * len(ASSIGNORS)


def test_the_fold_reads_the_record_that_warms_it_up_by_columns(monkeypatch):
    left = []

    def noted(*given):
        facts = column_fold.fold_columns(*given)
        left.extend(facts.left.tolist())
        return facts

    monkeypatch.setattr(fold_slices, "fold_columns", noted)
    table = fold_slices.fold_table(kernel_warmup._log(), FoldSettings()).tables
    assert left == [False]
    assert table["group_snapshots"].num_rows == 1
