"""Ranges of what was read: never too little, few, and the same in any order."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from groupledger.core.log.read_plan import MOST_RANGES, overlapping, united

P, Q = ("eu-1", 3), ("eu-1", 4)
extents = st.tuples(st.integers(0, 10_000), st.integers(0, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def test_ranges_that_touch_are_one():
    assert united([{P: (0, 9)}, {P: (40, 44), Q: (5, 5)}, {P: (10, 19)}]) == {P: ((0, 19), (40, 44)), Q: ((5, 5),)}
    assert united([]) == {}


def test_the_smallest_gaps_are_closed():
    reads = [{P: (at * 100, at * 100 + 99 - (50 if at == 7 else 1 + at % 2))} for at in range(3 * MOST_RANGES)]
    found = united(reads)[P]
    assert len(found) == MOST_RANGES
    assert (found[0][0], found[-1][1]) == (0, reads[-1][P][1])
    assert any(before[1] == 749 and after[0] == 800 for before, after in pairwise(found))


@given(st.lists(extents, max_size=200), st.integers(0, 99))
def test_whatever_was_read_is_in_a_range_and_order_says_nothing(ranges, seed):
    shuffled = random.Random(seed).sample(ranges, len(ranges))  # noqa: S311 - seeded on purpose
    found = united({P: extent} for extent in ranges).get(P, ())
    assert found == united({P: extent} for extent in shuffled).get(P, ())
    assert len(found) <= MOST_RANGES
    assert all(any(first <= one and other <= last for first, last in found) for one, other in ranges)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(found))


def test_reads_that_meet_a_range_are_named():
    reads = {"a": {P: (0, 9)}, "b": {P: (10, 19), Q: (0, 3)}, "c": {Q: (4, 9)}}
    assert overlapping(reads, {P: (9, 10)}) == {"a", "b"}
    assert overlapping(reads, {Q: (4, 4)}) == {"c"}
    assert overlapping(reads, {("us-1", 4): (4, 4), P: (20, 30)}) == set()
