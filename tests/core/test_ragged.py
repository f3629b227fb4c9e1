"""Rows that are equal, found over columns of numbers."""

import numpy as np
import pytest

from groupledger.core.arrays import ragged


@pytest.mark.parametrize(
    ("columns", "begins", "repeated"),
    [
        ([[]], [], []),
        ([[5, 5, 7]], [1, 0, 1], [1, 1, 0]),
        ([[5, 7, 5]], [1, 1, 1], [1, 0, 1]),
        ([[0, 0, 1, 1], [3, 3, 3, 4]], [1, 0, 1, 1], [1, 1, 0, 0]),
        # A member without an id (-1) is not the last member of the group before: that group is sound.
        ([[0, 0, 1], [0, 1, -1]], [1, 1, 1], [0, 0, 0]),
        ([[0, 1, 1], [-1, -1, -1]], [1, 1, 0], [0, 1, 1]),
    ],
)
def test_rows_are_equal_where_all_columns_are(columns, begins, repeated):
    arrays = [np.array(column, np.int64) for column in columns]
    assert ragged.begins(*arrays).tolist() == list(map(bool, begins))
    assert ragged.repeated(*arrays).tolist() == list(map(bool, repeated))
