"""The account of a run: classes that add up, none of them below zero."""

import pytest

from groupledger.pipeline.accounts import accounts

WRONG = [
    pytest.param({"dev/records": 2, "dev/used.A": 1}, id="one is missing"),
    pytest.param({"dev/records": 1, "dev/used.A": -1, "dev/quarantined.X": 2}, id="a kind below zero"),
    pytest.param({"dev/records": 1, "dev/used.A": 2, "dev/duplicates": -1}, id="duplicates below zero"),
    pytest.param({"dev/records": 0, "dev/unused.A": -1, "dev/tombstones.A": 1}, id="two kinds that cancel out"),
]


@pytest.mark.parametrize("counts", WRONG)
def test_an_account_that_hides_something_does_not_balance(counts):
    (account,) = accounts(counts)
    assert not account.balanced


def test_accounts_by_cluster_add_up():
    counts = {"dev/records": 4, "dev/used.A": 1, "dev/unused.B": 1, "dev/duplicates": 1, "dev/quarantined.X": 1}
    first, second = accounts(counts | {"prod/records": 1, "prod/tombstones.A": 1, "prod/used.A": 0})
    assert (first.cluster_id, first.accounted, first.balanced) == ("dev", 4, True)
    assert (second.cluster_id, dict(second.tombstones), dict(second.used), second.balanced) == (
        "prod",
        {"A": 1},
        {},
        True,
    )
