"""docs/contributing/kips.md against the code: every row names a module and a test, and no test is missing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
CELLS = r"(?P<statement>.+) \| `(?P<module>[\w.]+)` \| `(?P<test>\w+)`"
ROW = re.compile(rf"^\| KIP-(?P<kip>\d+)\.(?P<number>\d+) \| {CELLS} \|$")
NAME = re.compile(r"test_kip_(?P<kip>\d+)_(?P<first>\d+)_(?:to_(?P<last>\d+)_)?")
KIPS = {"429", "792", "615", "315", "1306"}


def rows():
    lines = (ROOT / "docs" / "contributing/kips.md").read_text(encoding="utf-8").splitlines()
    told = [line for line in lines if line.startswith("| KIP-")]
    matches = [ROW.match(line) for line in told]
    assert None not in matches
    return [match.groupdict() for match in matches]


def written_tests():
    files = sorted((ROOT / "tests" / "kips").glob("test_kip_*.py"))
    return [name for file in files for name in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE)]


def module_is_there(module):
    place = ROOT / "src" / "groupledger" / Path(*module.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def test_every_kip_is_numbered_from_one_without_a_gap():
    numbers = {kip: [int(row["number"]) for row in rows() if row["kip"] == kip] for kip in KIPS}
    assert {row["kip"] for row in rows()} == KIPS
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


def test_every_statement_names_a_module_that_is_there():
    assert [row for row in rows() if not module_is_there(row["module"])] == []


def test_every_statement_has_a_test_named_after_it_and_every_test_a_statement():
    named = [row["test"] for row in rows()]
    assert sorted(set(named)) == sorted(written_tests())
    assert max(Counter(written_tests()).values()) == 1
    for row in rows():
        name = NAME.match(row["test"])
        first, last = int(name["first"]), int(name["last"] or name["first"])
        assert name["kip"] == row["kip"]
        assert first <= int(row["number"]) <= last
