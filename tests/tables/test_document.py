"""The page about the tables says what the declarations say."""

from pathlib import Path

import pytest

from groupledger.tables import BY_NAME, TABLES
from groupledger.tables.document import markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference/tables.md"


def test_the_page_is_current():
    assert PAGE.read_text() == markdown(), "run: python -m groupledger.tables.document > docs/reference/tables.md"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_and_column_says_what_it_is(table):
    assert BY_NAME[table.name] is table
    assert len(table.comment) > 20
    assert len(set(table.columns)) == len(table.columns)
    for field in table.schema:
        assert field.metadata["comment"], field.name
    assert {*table.cluster_by, *table.partition_by} <= set(table.columns)
    assert not (table.cluster_by and table.partition_by)
