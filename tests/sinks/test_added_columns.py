"""A column that a later version added is nothing in the digest of a row where it is null: old rows keep theirs."""

from dataclasses import replace

from pyspark.sql.types import StructType

from groupledger.sinks.append import _terms
from groupledger.tables import MEMBER_SNAPSHOTS, TABLES


def test_the_terms_of_the_columns_before_are_as_they_were():
    before = StructType([field for field in MEMBER_SNAPSHOTS.schema if field.name not in MEMBER_SNAPSHOTS.added])
    old = list(_terms(replace(MEMBER_SNAPSHOTS, schema=before, added=())))
    new = list(_terms(MEMBER_SNAPSHOTS))
    assert new[: len(old)] == old
    assert new[len(old) :: 2] == [
        "if(`previous_member_epoch` IS NULL, NULL, 20)",
        "if(`member_state` IS NULL, NULL, 21)",
        "if(`subscribed_regex` IS NULL, NULL, 22)",
        "if(`tasks` IS NULL, NULL, 23)",
    ]


def test_added_columns_may_be_null_and_come_last():
    for table in TABLES:
        own = [name for name in table.columns if name != "attempt_id"]
        assert own[len(own) - len(table.added) :] == list(table.added)
        assert all(table.schema[name].nullable for name in table.added)
