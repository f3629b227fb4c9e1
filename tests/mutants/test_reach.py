"""Which tests are run for a mutant: none that could see it is left out, whatever computes a value once and keeps it."""

import math
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.__main__ import Bench, Outcome, Trial, watched
from tests.mutants.sites import mutants

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pytest-xdist has a thread

SOURCE = """\
import functools

LIMIT = 2


def doubled(number):
    return number * 2


@functools.cache
def kept():
    return 3 < 4


def shared():
    return 5 < 6


def alone():
    return 7 < 8


def unseen():
    return 9 < 10
"""
LATE = """\
from groupledger import alone

SEEN = alone()
"""
TESTS = """\
import os

import pytest
import groupledger


@pytest.fixture(scope="module")
def one():
    return groupledger.shared()


def test_first_of_the_cache():
    groupledger.kept()


def test_second_of_the_cache():
    assert groupledger.kept()


def test_first_of_the_fixture(one):
    pass


def test_second_of_the_fixture(one):
    assert one


def test_loads_late():
    import late

    assert late.SEEN


def test_doubles():
    assert groupledger.doubled(3) == 6


def test_starts_a_process():
    assert os.system("true") == 0
"""
PATH = Path("src", "groupledger", "__init__.py")


def made(folder, source):
    (folder / PATH).parent.mkdir(parents=True)
    (folder / PATH).write_text(source)
    (folder / "src" / "late.py").write_text(LATE)
    (folder / "conftest.py").write_text("import groupledger\n")  # pytest loads it first of all
    (folder / "test_all.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    os.utime(folder / PATH, (0, 0))  # or a mutant of that second and size would be taken for what was compiled of it
    return folder


def trials(source):
    return [Trial(PATH, each) for each in mutants((source / PATH).read_bytes())]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    source = made(tmp_path_factory.mktemp("bench") / "source", SOURCE)
    reached = watched(source, trials(source), ["test_all.py"])
    assert reached is not None
    return Bench(source, reached, all_tests=False)


EVERY = {name.removeprefix("def ").partition("(")[0] for name in TESTS.splitlines() if name.startswith("def test_")}
STARTS = "test_starts_a_process"


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ("return number * 2", {"test_doubles", STARTS}),
        ("return 3 < 4", {"test_first_of_the_cache", "test_second_of_the_cache", STARTS}),
        ("return 5 < 6", {"test_first_of_the_fixture", "test_second_of_the_fixture", STARTS}),
        ("return 7 < 8", EVERY),
        ("return 9 < 10", {STARTS}),
        ("LIMIT = 2", EVERY),
    ],
)
def test_whatever_may_see_a_line_reaches_it(bench, text, tests):
    line = next(number for number, each in enumerate(SOURCE.splitlines(), 1) if text in each)
    trial = next(trial for trial in trials(bench.source) if trial.mutant.line == line)
    assert {test.partition("::")[2] for test in bench.tests_of(trial)} == tests


@pytest.mark.long
def test_those_tests_kill_what_all_tests_kill(bench, capsys):
    numbers = [trial for trial in trials(bench.source) if trial.mutant.new.isdigit()]
    told = []
    for each in (bench, replace(bench, all_tests=True)):
        assert each.tried(numbers, 1, math.inf) == Counter({Outcome.KILLED: 4, Outcome.SURVIVED: 6})
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert (bench.source / PATH).read_text() == SOURCE


def test_nothing_is_tried_when_the_time_is_over(bench):
    assert bench.tried(trials(bench.source), 1, -math.inf) == Counter({Outcome.NOT_TRIED: 15})


@pytest.mark.long
def test_tests_that_fail_without_a_change_are_told(tmp_path, capsys):
    source = made(tmp_path / "source", SOURCE.replace("number * 2", "number * 5"))
    assert watched(source, trials(source), ["test_all.py"]) is None
    assert "test_doubles" in capsys.readouterr().out
