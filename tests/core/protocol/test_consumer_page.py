"""The code of the pages on groups that their coordinator assigns runs, and their scripts are some."""

from pathlib import Path
from typing import Any

import pytest

from groupledger.core.protocol.script_json import simulate_lines
from tests.pages import blocks

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("page", "last"),
    [
        ("guides/decide/simulate-kip-848-groups.md", "forbidden"),
        ("guides/decide/simulate-share-groups.md", "settled"),
        ("guides/decide/simulate-streams-groups.md", "settled"),
    ],
)
def test_the_code_of_the_page_runs(page, last):
    names: dict[str, Any] = {}
    for block in blocks((DOCS / page).read_text(encoding="utf-8"), "python"):
        exec(compile(block, page, "exec", dont_inherit=True), names)  # noqa: S102 our own page
    assert names[last].coordinated is not None or names[last].refused is not None


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("guides/decide/simulate-kip-848-groups.md", '"consumer_group": {"epoch": 3,'),
        ("guides/decide/simulate-share-groups.md", '"share_group": {"epoch": 6,'),
        ("guides/decide/simulate-streams-groups.md", '"streams_group": {"epoch": 5,'),
    ],
)
def test_the_script_of_the_page_is_one(page, told):
    (block,) = blocks((DOCS / page).read_text(encoding="utf-8"), "json")
    (answer,) = simulate_lines([block])
    assert told in answer
