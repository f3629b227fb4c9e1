"""From where to where a log is read: what was read stays read, and what is gone is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import LogEnds, LogGap, OffsetRange, planned

CASES = {
    "nothing was read": ({}, {0: (0, 5), 1: (0, 0)}, None, [(0, 0, 5)], [], {0: 5, 1: 0}, 0),
    "it goes on": ({0: 5}, {0: (0, 9)}, None, [(0, 5, 9)], [], {0: 9}, 0),
    "nothing new": ({0: 9}, {0: (0, 9)}, None, [], [], {0: 9}, 0),
    "it begins late, and nothing was missed": ({}, {0: (7, 9)}, None, [(0, 7, 9)], [], {0: 9}, 0),
    "the log start moved on": ({0: 5}, {0: (7, 9)}, None, [(0, 7, 9)], [(0, 5, 7)], {0: 9}, 0),
    "all of it is gone": ({0: 5}, {0: (9, 9)}, None, [], [(0, 5, 9)], {0: 9}, 0),
    "it is just not gone": ({0: 7}, {0: (7, 9)}, None, [(0, 7, 9)], [], {0: 9}, 0),
    "a new partition": ({0: 5}, {0: (0, 5), 1: (0, 2)}, None, [(1, 0, 2)], [], {0: 5, 1: 2}, 0),
    "at most 10": ({}, {0: (0, 2), 1: (0, 9), 2: (3, 12)}, 10, [(0, 0, 2), (1, 0, 4), (2, 3, 7)], [], None, 10),
    "at most 1": ({}, {0: (0, 9), 1: (0, 9)}, 1, [(0, 0, 1)], [], {0: 1, 1: 0}, 17),
    "fewer than at most": ({}, {0: (0, 9)}, 10, [(0, 0, 9)], [], {0: 9}, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan(name):
    before, ends, most, stretches, gaps, reached, left = CASES[name]
    plan = planned(before, {at: LogEnds(*each) for at, each in ends.items()}, most)
    assert plan.stretches == tuple(OffsetRange(*each) for each in stretches)
    assert plan.gaps == tuple(LogGap(*each) for each in gaps)
    assert plan.reached == (reached or plan.reached)
    assert plan.left == left


@pytest.mark.parametrize(("ends", "says"), [({0: LogEnds(0, 4)}, "ends at offset 4"), ({}, "is not there")])
def test_a_log_that_went_back_is_another_log(ends, says):
    with pytest.raises(Fault, match=says) as caught:
        planned({0: 5}, ends, None)
    assert caught.value.code == "LOG_WENT_BACK"


OFFSETS = st.integers(0, 50)
LOGS = st.dictionaries(st.integers(0, 5), st.tuples(OFFSETS, OFFSETS, OFFSETS).map(sorted), max_size=5)


@given(LOGS, st.none() | st.integers(1, 60))
def test_run_after_run_reads_every_offset_once(logs, most):
    """Whatever is read at most in a run: the runs' stretches are the log, without gap or overlap."""
    ends = {at: LogEnds(start, end) for at, (start, _, end) in logs.items()}
    read, reached, left = [], {at: middle for at, (_, middle, _) in logs.items()}, 1
    begun = dict(reached)
    while left:
        plan = planned(reached, ends, most)
        assert most is None or sum(each.end - each.first for each in plan.stretches) <= most
        assert plan.left < left or not read
        read += [(at, offset) for at, first, end in plan.pieces(7) for offset in range(first, end)]
        reached, left = dict(plan.reached), plan.left
    assert sorted(read) == [(at, each) for at in sorted(ends) for each in range(begun[at], ends[at].end)]


def test_pieces_are_even_and_whole():
    plan = planned({}, {3: LogEnds(0, 10)}, None)
    assert plan.pieces(4) == (OffsetRange(3, 0, 4), OffsetRange(3, 4, 7), OffsetRange(3, 7, 10))
    assert plan.pieces(10) == plan.stretches == (OffsetRange(3, 0, 10),)
