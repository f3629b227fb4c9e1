"""Parse moments as people write them, convert them to the log's milliseconds since 1970, print them in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from groupledger.core.faults import Fault

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
MICROS_A_MILLI = 1_000
LEAST_MILLIS = 10**11
"""March 1973. Fewer digits are seconds, a date without hyphens, or a length of time without its unit."""


def parse(text: str) -> tuple[datetime, bool]:
    """Parse ISO 8601 or epoch milliseconds -> (moment in UTC, whether UTC was assumed because no zone was given).

    `2026-11-21T14:03Z`, `2026-11-21 15:03+01:00`, `2026-11-21T14:03` (UTC assumed), `1795262898320`. A number from 1 to
    LEAST_MILLIS is refused: taken for milliseconds, `--since 24` would ask about everything.
    """
    try:
        if text.isascii() and text.isdigit():
            if 0 < int(text) < LEAST_MILLIS:
                raise ValueError
            return from_millis(int(text)), False
        moment = datetime.fromisoformat(text)
        assumed = moment.tzinfo is None
        return (moment.replace(tzinfo=UTC) if assumed else moment.astimezone(UTC)), assumed
    except (ValueError, OverflowError):
        message = f"a time is ISO 8601 (2026-11-21T14:03Z) or milliseconds since 1970 (1795262898320); got {text!r}"
        raise Fault("BAD_TIME", message) from None


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
    told = []
    for moment in moments:
        told.append(clock(moment, day))
        day = moment.astimezone(UTC).date()
    width = max(map(len, told), default=0)
    return of_all, [text.rjust(width) for text in told]
