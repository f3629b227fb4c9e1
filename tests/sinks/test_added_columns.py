"""A column that a later version added is nothing in the digest of a row where it is null: old rows keep theirs."""

from dataclasses import replace

import pytest
from pyspark.sql.types import StructType

from groupledger.sinks.append import _terms
from groupledger.tables import MEMBER_SNAPSHOTS, REBALANCES, TABLES


@pytest.mark.parametrize(
    ("table", "first", "names"),
    [
        (MEMBER_SNAPSHOTS, 20, ("previous_member_epoch", "member_state", "subscribed_regex", "tasks")),
        (REBALANCES, 26, ("least_moves_certainty", "fewest_rounds", "attributed_to", "attribution")),
    ],
)
def test_the_terms_of_the_columns_before_are_as_they_were(table, first, names):
    before = StructType([field for field in table.schema if field.name not in table.added])
    old = list(_terms(replace(table, schema=before, added=())))
    new = list(_terms(table))
    assert new[: len(old)] == old
    assert new[len(old) :: 2] == [f"if(`{name}` IS NULL, NULL, {at})" for at, name in enumerate(names, first)]


def test_added_columns_may_be_null_and_come_last():
    for table in TABLES:
        own = [name for name in table.columns if name != "attempt_id"]
        assert own[len(own) - len(table.added) :] == list(table.added)
        assert all(table.schema[name].nullable for name in table.added)
