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


def test_entries_are_compared_whatever_partition_a_claim_names():
    """Of many members and topics too: a number made of member, topic and any int32 would have more than 64 bits."""
    members, topic = 300_000, 99_999
    start = np.zeros(members + 1, np.int64)
    start[members:] = 3
    one, other = (
        ragged.MemberAssignments(start, np.array([0, 7, topic], np.int32), np.array(partitions, np.int32))
        for partitions in ([-(2**31), 5, 2**31 - 1], [-(2**31), 6, 2**31 - 1])
    )
    assert one.within(other).tolist() == [True, False, True]
