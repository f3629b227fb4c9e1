"""Quote names and texts for Spark's SQL, whatever characters they have."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Quote a name: `` a`b `` -> `` `a``b` ``."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """Quote a text as a literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
