"""The code of docs/consumer-groups.md runs, and its script is one."""

from pathlib import Path
from typing import Any

from groupledger.core.protocol.story import simulate_lines
from tests.pages import blocks

PAGE = (Path(__file__).parents[3] / "docs" / "consumer-groups.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs():
    names: dict[str, Any] = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, "docs/consumer-groups.md", "exec", dont_inherit=True), names)  # noqa: S102 our own page
    assert names["forbidden"].refused is not None


def test_the_script_of_the_page_is_one():
    (block,) = blocks(PAGE, "json")
    (answer,) = simulate_lines([block])
    assert '"consumer_group": {"epoch": 3,' in answer
