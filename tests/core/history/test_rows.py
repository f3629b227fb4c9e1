"""The rows a fold gives are the rows of the tables."""

import pytest

from groupledger import tables
from groupledger.core.history import rows

FILLED = {
    "group_snapshots": rows.GroupSnapshotRow,
    "member_snapshots": rows.MemberSnapshotRow,
    "ownership_changes": rows.OwnershipChangeRow,
    "group_heads": rows.GroupHeadRow,
    "coverage": rows.CoverageRow,
    "quarantine": rows.QuarantineRow,
    "violations": rows.FindingRow,
}


@pytest.mark.parametrize(("table", "row"), FILLED.items())
def test_fields_are_the_tables_columns_but_for_the_attempt(table, row):
    assert [*row._fields, "attempt_id"] == tables.BY_NAME[table].columns
