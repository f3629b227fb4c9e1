"""The table of equivalent mutants names mutants that there are."""

from tests.mutants.__main__ import drawn
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.forks import ROOT
from tests.mutants.parts import PARTS


def test_each_is_a_mutant_of_the_source_as_it_is():
    every = {trial.key(ROOT) for part in PARTS for trial in drawn(ROOT, 10**6, 1, part)}
    assert EQUIVALENT.keys() <= every
    assert all(EQUIVALENT.values())
