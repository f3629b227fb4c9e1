"""The worked cases of the KIPs: every block of the page runs, in order, and each KIP has its cases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.pages import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "contributing/worked-cases.md").read_text(encoding="utf-8")


def test_the_worked_cases_run():
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(PAGE, "python")):
        exec(compile(block, f"worked-cases.md, block {number}", "exec", dont_inherit=True), names)  # noqa: S102 our page
    assert names["after"]["C"] == [6, 7, 8]


def test_each_kip_with_an_example_has_its_cases():
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [re.match(r"KIP-\d+", each)[0] for each in sections] == ["KIP-429"] * 3 + ["KIP-615", "KIP-315"]
    assert all("assert " in block for each in sections for block in blocks(each, "python")[-1:])
