"""Names that are not known: what a message says was meant."""

import pytest

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.faults import expected_one_of, meant


@pytest.mark.parametrize(
    ("got", "said"),
    [
        ("cooperative_sticky", "cooperative-sticky"),
        ("coop", "cooperative-sticky"),
        ("rangee", "range"),
        ("", ""),
        ("hash", ""),
    ],
)
def test_what_resembles_a_name_or_begins_with_it_is_named(got, said):
    assert meant(got, sorted(ASSIGNORS)) == (f"did you mean {said}? " if said else "")


def test_what_is_expected_follows():
    assert expected_one_of("tw", ["one", "two"]) == "did you mean two? expected one of one, two"
    assert expected_one_of("x", []) == "none is known"
