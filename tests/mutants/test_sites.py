"""The mutants themselves: what is changed, what is left alone, and that the draw repeats."""

import ast

import pytest

from tests.mutants.__main__ import drawn
from tests.mutants.forks import ROOT
from tests.mutants.parts import CORE, PARTS
from tests.mutants.sites import mutants, statement_at


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("(a) == (b)", ["(a) != (b)"]),
        ("a and b or c", ["a or b or c", "a and b and c"]),
        ("a is not b", ["a is b"]),
        ("a += b", ["a -= b"]),
        ("a <<= b", ["a >>= b"]),
        ("a[1:]", ["a[2:]"]),
        ("not (a)", [" (a)"]),
        ("-a // b", ["a // b", "-a * b"]),
        ("f(True, strict=True)", ["f(False, strict=True)"]),
        ("def f(a: 1 = 2) -> 3: pass", ["def f(a: 1 = 3) -> 3: pass"]),
        ("while a: break", ["while a: continue"]),
        ("'\u00e9' + a", ["'\u00e9' - a"]),
        ("assert a == b", []),
        ("np.zeros(n + 1, t)", []),
        ("np.full(n + 1, 0)", ["np.full(n - 1, 0)", "np.full(n + 2, 0)", "np.full(n + 1, 1)"]),
        ("run(f, cells=2 * n)", []),
        ("@f(1)\ndef g(): pass", []),
        ("if TYPE_CHECKING:\n  a = 1", []),
    ],
)
def test_each_place_is_changed_by_itself(source, expected):
    encoded = source.encode()
    assert [each.applied(encoded).decode() for each in mutants(encoded)] == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f(1)", ["pass", "f(2)"]),
        ("a.b = c", ["pass"]),
        ("a[b] = c", ["pass"]),
        ("a = c", []),
        ("del a[b]", ["pass"]),
        ("def f():\n  return", ["def f():\n  pass"]),
        ("def f():\n  return a", []),
        ("if a: raise b", ["if (not a): raise b", "if a: pass"]),
        ("if a.b(): c = d", ["if (not a.b()): c = d"]),
        ("[a for a in b if a.c]", ["[a for a in b if (not a.c)]"]),
        ("if not a: b = c", ["if  a: b = c"]),
        ("'words'", []),
    ],
)
def test_wide_mutants_leave_out_what_acts_and_turn_conditions_round(source, expected):
    encoded = source.encode()
    assert [each.applied(encoded).decode() for each in mutants(encoded, wide=True)] == expected


@pytest.mark.parametrize("part", PARTS)
def test_every_test_that_is_to_see_a_mutant_is_there(part):
    tests = PARTS[part].tests
    assert tests
    assert [each for each in tests if not (ROOT / each).exists()] == []


def test_every_mutant_of_the_step_is_another_program():
    original = (ROOT / CORE / "rebalance/step.py").read_bytes()
    found = mutants(original)
    assert len(found) > 40
    for each in found:
        assert ast.dump(ast.parse(each.applied(original))) != ast.dump(ast.parse(original))


def test_the_same_seed_draws_the_same():
    assert drawn(ROOT, 20, seed=1) == drawn(ROOT, 20, seed=1) != drawn(ROOT, 20, seed=2)


STATEMENTS = """\
A = 1
def f(
    b=2,
):
    if (
        A
        and b
    ):
        C = 3
    elif b:
        return lambda: (
            A
        )
class D:
    e = 4
    def g(self):
        return 5
"""


@pytest.mark.parametrize(
    ("line", "begins"),
    [(1, None), (3, None), (5, 5), (7, 5), (9, 9), (10, 10), (12, 11), (15, None), (16, None), (17, 17)],
)
def test_a_mutant_is_reached_where_its_statement_is(line, begins):
    assert statement_at(STATEMENTS.encode(), line) == begins
