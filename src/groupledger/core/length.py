"""Lengths of time as a person reads them."""

from __future__ import annotations

from datetime import timedelta


def length(of: timedelta) -> str:
    """`3 d 2 h`, `4 min 10 s`, `1.250 s`: the two largest units."""
    seconds = of.total_seconds()
    if seconds < 60:
        return f"{seconds:.3f} s"
    parts = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    left, words = int(seconds), list[str]()
    for size, unit in parts:
        if left >= size or words:
            words.append(f"{left // size} {unit}")
            left %= size
    return " ".join(words[:2])
