"""Parse moments as people write them, convert them to the log's milliseconds since 1970, print them in UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from groupledger.core.faults import Fault

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
MICROS_A_MILLI = 1_000
LEAST_SECONDS, LEAST_MILLIS = 10**8, 10**11
"""March 1973, both. Fewer digits are a date without hyphens, or a length of time without its unit."""


def parse(text: str) -> tuple[datetime, bool]:
    """Parse ISO 8601, Unix seconds or milliseconds -> (moment in UTC, whether UTC was assumed for want of a zone).

    `2026-11-21T14:03Z`, `2026-11-21 15:03+01:00`, `2026-11-21T14:03` (UTC assumed), `1795262898`, `1795262898320`. A
    number from 1 to LEAST_SECONDS is refused: taken for seconds, `--since 24` would ask about everything.
    """
    try:
        if text.isascii() and text.isdigit():
            number = int(text)
            if 0 < number < LEAST_SECONDS:
                raise ValueError
            return from_millis(number if number == 0 or number >= LEAST_MILLIS else number * 1_000), False
        moment = datetime.fromisoformat(text)
        assumed = moment.tzinfo is None
        return (moment.replace(tzinfo=UTC) if assumed else moment.astimezone(UTC)), assumed
    except (ValueError, OverflowError):
        expected = "a time is ISO 8601 (2026-11-21T14:03Z), Unix seconds (1795262898) or milliseconds (1795262898320)"
        raise Fault("BAD_TIME", f"{expected}; got {text!r}") from None


def millis(moment: datetime) -> int:
    """Return milliseconds since 1970, rounded down."""
    return (moment - EPOCH) // MILLISECOND


def from_millis(value: int) -> datetime:
    """Return the moment in UTC."""
    return EPOCH + value * MILLISECOND


def micros(moment: datetime) -> int:
    """Return microseconds since 1970, the unit in which times are stored and compared."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(value: int) -> datetime:
    """Return the moment in UTC."""
    return EPOCH + value * MICROSECOND


def iso(moment: datetime) -> str:
    """Format as `2026-11-21T14:03:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(moment: datetime, day: date | None) -> str:
    """Format as `12:08:46.424` on this day, `2026-11-21 12:08:46.424` on another; in UTC."""
    text = iso(moment).removesuffix("Z").replace("T", " ")
    return text.partition(" ")[2] if moment.astimezone(UTC).date() == day else text


def dates_once(moments: Sequence[datetime]) -> tuple[str, list[str]]:
    """Return the date, if all moments share one, and each moment, dated if it is not on the day of the one before.

    All have the same width, so that times align in a column.
    """
    days = {moment.astimezone(UTC).date() for moment in moments}
    day: date | None = min(days) if len(days) == 1 else None
    of_all = "" if day is None else day.isoformat()
    texts = []
    for moment in moments:
        texts.append(clock(moment, day))
        day = moment.astimezone(UTC).date()
    width = max(map(len, texts), default=0)
    return of_all, [text.rjust(width) for text in texts]


# Parse a bound of a period: a moment, or a length of time before now, up to when the ledger is known.

Bound = datetime | timedelta
"""A moment, or a length of time before now."""

Point = int | Bound
"""A generation or group epoch, a moment, or a length of time before now."""

NOW = timedelta(0)
_DURATION = re.compile(
    r"(\d{1,7}) ?(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)(?: ago)?", re.ASCII | re.IGNORECASE
)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def bound(text: str) -> tuple[Bound, bool]:
    """Parse `now`, `24h`, `90 minutes`, `7d ago` as a length, else a moment by `parse`; and whether UTC was assumed."""
    found = _DURATION.fullmatch(text.strip())
    if found is not None:
        return timedelta(**{_UNITS[found[2][0].lower()]: int(found[1])}), False
    if text.strip() == "now":
        return NOW, False
    try:
        return parse(text.strip())
    except Fault as fault:
        raise _or_else(fault, "or now, or how long before now: 90s, 15m, 24h, 7d, 2w") from None


def _or_else(fault: Fault, words: str) -> Fault:
    """Return the fault with one more thing that was expected, before what it got."""
    expected, got, text = fault.message.partition("; got ")
    return Fault(fault.code, f"{expected}, {words}{got}{text}")


def point(text: str) -> tuple[Point, bool]:
    """Parse `12` as a generation, else as `bound`: a number of LEAST_SECONDS and more is a time."""
    number = text.strip()
    if number.isascii() and number.isdigit() and len(number) < len(str(LEAST_SECONDS)):
        return int(number), False
    try:
        return bound(text)
    except Fault as fault:
        raise _or_else(fault, "or a generation: 12") from None


def placed(of: Bound, now: datetime) -> datetime:
    """Return the moment of a bound in a ledger that is known up to `now`; a length of time never goes before 1970."""
    if isinstance(of, datetime):
        return of
    return EPOCH if of > now - EPOCH else now - of
