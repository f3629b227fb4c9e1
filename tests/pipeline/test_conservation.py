"""A run that cannot say where something went does not count."""

import pytest

from groupledger.pipeline.assign import assert_conserved

ROWS = {"groups": 4, "members": 6, "records": 0}
SOUND = {
    "outcome.REJECTED": 1,
    "quarantine": 1,
    "assignments": 5,
    "sum.members_with_outcome": 5,
    "sum.partitions": 10,
    "sum.beyond": 2,
    "sum.kept": 6,
    "sum.added": 3,
    "sum.unassigned": 3,
    "sum.with_reason": 3,
}


def test_what_adds_up_is_let_through():
    assert_conserved(ROWS, ROWS, SOUND, 4)
    assert_conserved({"groups": 0}, {"groups": 0}, {}, 0)


BROKEN = [
    ({}, 3, "groups in, outcomes out: 4 and 3"),
    ({"quarantine": 0}, 4, "groups rejected, rows of quarantine: 1 and 0"),
    ({"assignments": 4}, 4, "members with an outcome, rows of assignments: 5 and 4"),
    ({"sum.missing": 1, "sum.partitions": 11}, 4, "partitions beyond what is assigned or unassigned, none: 1 and 0"),
    ({"sum.added": 2}, 4, "kept \\+ added \\+ unassigned: 12 and 11"),
    ({"sum.with_reason": 2}, 4, "those with a reason: 3 and 2"),
]


@pytest.mark.parametrize(("changed", "outcomes", "words"), BROKEN)
def test_what_does_not_ends_the_run(changed, outcomes, words):
    with pytest.raises(AssertionError, match=words):
        assert_conserved(ROWS, ROWS, SOUND | changed, outcomes)


def test_a_row_that_is_lost_on_its_way_ends_the_run():
    with pytest.raises(AssertionError, match="members read, members received: 6 and 5"):
        assert_conserved(ROWS, ROWS | {"members": 5}, SOUND, 4)
