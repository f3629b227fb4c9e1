"""The account of a run: classes that add up, none of them below zero."""

import pytest

from groupledger.pipeline.invocation import accounts

WRONG = [
    pytest.param({"dev/records": 2, "dev/used.A": 1}, id="one is missing"),
    pytest.param({"dev/records": 1, "dev/used.A": -1, "dev/quarantined.X": 2}, id="a kind below zero"),
    pytest.param({"dev/records": 1, "dev/used.A": 2, "dev/duplicates": -1}, id="duplicates below zero"),
    pytest.param({"dev/records": 0, "dev/unused.A": -1, "dev/tombstones.A": 1}, id="two kinds that cancel out"),
    pytest.param({"dev/records": 1, "dev/used.A": 1, "dev/lines": 2, "dev/rows": 0}, id="a line is missing"),
    pytest.param({"dev/records": 1, "dev/used.A": 1, "dev/lines": 0, "dev/rows": 0}, id="a record of no line"),
    pytest.param({"dev/lines": 0, "dev/rows": 0, "dev/blank": -1, "dev/listings.listed": 1}, id="blank below zero"),
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


def test_lines_and_rows_become_records_listings_or_blank():
    counts = {"dev/lines": 6, "dev/rows": 2, "dev/blank": 1, "dev/listings.listed": 2, "dev/listings.BAD_MOMENT": 1}
    (account,) = accounts(counts | {"dev/records": 4, "dev/used.A": 3, "dev/unused.other topic": 1})
    assert (account.arrived, account.balanced) == (8, True)
    assert dict(account.listings) == {"BAD_MOMENT": 1, "listed": 2}


def test_runs_of_before_lines_were_counted_still_balance():
    (account,) = accounts({"dev/records": 1, "dev/used.A": 1})
    assert (account.arrived, account.balanced) == (None, True)
