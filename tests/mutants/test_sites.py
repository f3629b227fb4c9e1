"""The mutants themselves: what is changed, what is left alone, and that the draw repeats."""

import ast

import pytest

from tests.mutants.__main__ import CORE, ROOT, drawn
from tests.mutants.sites import mutants


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


def test_every_mutant_of_the_step_is_another_program():
    original = (ROOT / CORE / "step.py").read_bytes()
    found = mutants(original)
    assert len(found) > 40
    for each in found:
        assert ast.dump(ast.parse(each.applied(original))) != ast.dump(ast.parse(original))


def test_the_same_seed_draws_the_same():
    assert drawn(ROOT, 20, seed=1) == drawn(ROOT, 20, seed=1) != drawn(ROOT, 20, seed=2)
