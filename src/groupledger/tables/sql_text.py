"""Names and texts as Spark's SQL takes them, whatever characters they have."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name: `` a`b `` -> `` `a``b` ``."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """A text, as a literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
