"""The rows a fold gives are the rows of the tables."""

import pytest

from groupledger import tables
from groupledger.core.history import fold_rows

FILLED = {
    "group_snapshots": fold_rows.GroupSnapshotRow,
    "member_snapshots": fold_rows.MemberSnapshotRow,
    "ownership_changes": fold_rows.OwnershipChangeRow,
    "group_heads": fold_rows.GroupHeadRow,
    "coverage": fold_rows.CoverageRow,
    "quarantine": fold_rows.QuarantineRow,
    "violations": fold_rows.FindingRow,
}


@pytest.mark.parametrize(("table", "row"), FILLED.items())
def test_fields_are_the_tables_columns_but_for_the_attempt(table, row):
    assert [*row._fields, "attempt_id"] == tables.BY_NAME[table].columns
