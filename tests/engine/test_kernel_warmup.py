"""What is compiled ahead is what jobs run: every assignor, on groups that it assigns."""

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.history import FoldSettings
from groupledger.core.wire.columns import COMMIT, tell_commits
from groupledger.engine import kernel_warmup
from groupledger.engine.buckets import compute
from groupledger.engine.classic import fold
from groupledger.engine.fold_slices import fold_table


def test_every_assignor_assigns_the_group_that_warms_it_up(monkeypatch):
    outcomes = []

    def noted(table, calculation):
        result = compute(table, calculation)
        outcomes.extend(result["rebalances"]["outcome"].to_pylist())
        return result

    monkeypatch.setattr(kernel_warmup, "compute", noted)
    kernel_warmup.warm_up()
    assert outcomes == ["ASSIGNED"] * 2 * len(ASSIGNORS)


def test_the_fold_reads_the_records_that_warm_it_up_by_columns(monkeypatch):
    told = []

    def noted(*given):
        told.append(tell_commits(*given))
        return told[-1]

    monkeypatch.setattr(fold, "tell_commits", noted)
    table = fold_table(kernel_warmup._log(), FoldSettings()).tables
    assert [each.tolist() for each in told] == [[COMMIT]]
    assert table["group_snapshots"].num_rows == 1
