"""Code blocks of the documentation's pages, for the tests that run them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

READING = Path(__file__).parents[1] / "docs" / "guides/use/sql.md"


def blocks(page, language):
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def documented_reader() -> Callable[[str, str], Any]:
    """The code of docs/guides/use/sql.md: the rows of a table that count, read without Spark."""
    [code] = blocks(READING.read_text(encoding="utf-8"), "python")
    namespace: dict[str, Any] = {}
    exec(compile(code, str(READING), "exec"), namespace)  # noqa: S102 - the document's own example
    current: Callable[[str, str], Any] = namespace["current"]
    return current
