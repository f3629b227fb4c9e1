"""Digests: the same thing has the same one, another thing another."""

import pytest

from groupledger.core.digest import canonical, code_digest, digest, result_digest, rows_digest


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": None}, '{"a":null,"b":1}'),
        ([1, "x", True, 1.5], '[1,"x",true,1.5]'),
        ("\u00fc\n", '"\\u00fc\\n"'),
        ({}, "{}"),
    ],
)
def test_canonical_json(value, expected):
    assert canonical(value) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", object()])
def test_what_json_does_not_have_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        canonical(value)


def test_the_order_of_keys_does_not_matter_and_that_of_lists_does():
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1})
    assert digest([1, 2]) != digest([2, 1])
    assert result_digest({"x": "1", "y": "2"}) == result_digest({"y": "2", "x": "1"})
    assert result_digest({"x": "1", "y": "2"}) != result_digest({"x": "2", "y": "1"})


def test_rows_are_told_apart_by_number_and_by_each_sum():
    digests = [rows_digest(2, [1, 2]), rows_digest(3, [1, 2]), rows_digest(2, [2, 1]), rows_digest(2, [1, 2, 0])]
    assert len(set(digests)) == len(digests)


def test_the_code_is_known_by_its_files(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "sub" / "spec.json").write_text("{}")
    before = code_digest(tmp_path, "0.1.0")
    assert before.startswith("0.1.0+")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert code_digest(tmp_path, "0.1.0") == before, "what Python compiles is no code of ours"
    (tmp_path / "sub" / "spec.json").write_text("[]")
    assert code_digest(tmp_path, "0.1.0") != before
