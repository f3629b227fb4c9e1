"""Every table and column has a comment."""

import pytest

from groupledger.tables import BY_NAME, TABLES


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_and_column_says_what_it_is(table):
    assert BY_NAME[table.name] is table
    assert len(table.comment) > 20
    assert len(set(table.columns)) == len(table.columns)
    for field in table.schema:
        assert field.metadata["comment"], field.name
    assert {*table.cluster_by, *table.partition_by} <= set(table.columns)
    assert not (table.cluster_by and table.partition_by)
