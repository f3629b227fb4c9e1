"""A column that a later version added is nothing in the digest of a row where it is null: old rows keep theirs."""

from dataclasses import replace

import pytest
from pyspark.sql.types import StructType

from groupledger.sinks.append import _contract, _terms
from groupledger.tables import MEMBER_SNAPSHOTS, REBALANCES, TABLES


@pytest.mark.parametrize(
    ("table", "first", "names"),
    [
        (MEMBER_SNAPSHOTS, 20, ("previous_member_epoch", "member_state", "subscribed_regex", "tasks")),
        (REBALANCES, 26, ("least_moves_certainty", "fewest_rounds", "attributed_to", "attribution")),
    ],
)
def test_the_terms_of_the_columns_before_are_as_they_were(table, first, names):
    before = StructType([field for field in table.schema if field.name not in names])
    old = list(_terms(replace(table, schema=before, added=())))
    new = list(_terms(table))
    assert new[: len(old)] == old
    assert new[len(old) :: 2] == [f"if(`{name}` IS NULL, NULL, {at})" for at, name in enumerate(names, first)]


def test_added_columns_may_be_null_and_come_last():
    for table in TABLES:
        own = [name for name in table.columns if name != "attempt_id"]
        added = [each.column for each in table.added]
        assert own[len(own) - len(added) :] == added
        assert all(table.schema[name].nullable for name in added)


def test_rows_that_an_older_version_made_are_made_again_as_it_made_them():
    """What a later version computes besides is not in them, so that their digest is the one that was committed."""
    nulls = {
        version: [term for term in _contract(REBALANCES, version) if term.startswith("cast(NULL AS ")]
        for version in (1, 4, 5)
    }
    assert nulls[5] == []
    assert (
        nulls[1]
        == nulls[4]
        == [
            "cast(NULL AS string) AS `least_moves_certainty`",
            "cast(NULL AS int) AS `fewest_rounds`",
            "cast(NULL AS array<string>) AS `attributed_to`",
            "cast(NULL AS string) AS `attribution`",
        ]
    )
    assert list(_contract(REBALANCES, 5)) == list(_contract(REBALANCES))
    assert sum("NULL" in term for term in _contract(MEMBER_SNAPSHOTS, 4)) == 0
    assert sum("NULL" in term for term in _contract(MEMBER_SNAPSHOTS, 3)) == 4
