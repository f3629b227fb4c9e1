"""Quote names, texts and paths for Spark, whatever characters they have."""

from __future__ import annotations

import re

_GLOB = re.compile(r"([\\*?\[\]{}])")


def quoted(name: str) -> str:
    """Quote a name: `` a`b `` -> `` `a``b` ``."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """Quote a text as a literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def literal_path(path: str) -> str:
    """Escape the characters of a path that Spark would expand."""
    return _GLOB.sub(r"\\\1", path)
