"""Format lengths and periods of time for a person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def length(of: timedelta) -> str:
    """Format a length by its two largest units: `3 d 2 h`, `4 min 10 s`, `1.250 s`."""
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


def stretch(first: datetime, last: datetime) -> str:
    """Format a period to the second, in UTC, with one date if both are equal: `2026-11-21 13:46:49 - 13:51:02`."""
    begin, end = (moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") for moment in (first, last))
    if begin == end:
        return begin
    return f"{begin} - {end[11:] if begin[:10] == end[:10] else end}"
