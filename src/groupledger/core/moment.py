"""Moments: how a person writes one, how the log counts one (milliseconds since 1970), how we print one (UTC)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from groupledger.core.faults import Fault

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
MICROS_A_MILLI = 1_000


def parse(text: str) -> tuple[datetime, bool]:
    """ISO 8601 or epoch milliseconds -> (moment in UTC, whether UTC was assumed for want of a zone).

    `2026-11-21T14:03Z`, `2026-11-21 15:03+01:00`, `2026-11-21T14:03` (UTC assumed), `1795262898320`.
    """
    try:
        if text.isascii() and text.isdigit():
            return from_millis(int(text)), False
        moment = datetime.fromisoformat(text)
        assumed = moment.tzinfo is None
        return (moment.replace(tzinfo=UTC) if assumed else moment.astimezone(UTC)), assumed
    except (ValueError, OverflowError):
        message = f"a time is ISO 8601 (2026-11-21T14:03Z) or milliseconds since 1970 (1795262898320); got {text!r}"
        raise Fault("BAD_TIME", message) from None


def millis(moment: datetime) -> int:
    """Milliseconds since 1970, rounded down."""
    return (moment - EPOCH) // MILLISECOND


def from_millis(value: int) -> datetime:
    """The moment in UTC."""
    return EPOCH + value * MILLISECOND


def micros(moment: datetime) -> int:
    """Microseconds since 1970: the unit in which times are stored and compared."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(value: int) -> datetime:
    """The moment in UTC."""
    return EPOCH + value * MICROSECOND


def iso(moment: datetime) -> str:
    """`2026-11-21T14:03:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
