"""Parse a bound of a period: a moment, or a length of time before now, up to when the ledger is known."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from groupledger.core.faults import Fault
from groupledger.core.moment import EPOCH, parse

Bound = datetime | timedelta
"""A moment, or a length of time before now."""

Point = int | Bound
"""A generation or group epoch, a moment, or a length of time before now."""

GREATEST_GENERATION = 2**31 - 1
MOST_DIGITS = len(str(GREATEST_GENERATION))
_DURATION = re.compile(r"(\d{1,7})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def bound(text: str) -> tuple[Bound, bool]:
    """Parse `24h`, `90m`, `7d` as a length, else a moment by `moment.parse`; return whether UTC was assumed."""
    found = _DURATION.fullmatch(text.strip())
    if found is not None:
        return timedelta(**{_UNITS[found[2]]: int(found[1])}), False
    try:
        return parse(text.strip())
    except Fault as fault:
        raise Fault(fault.code, f"{fault.message}, or how long before now: 90s, 15m, 24h, 7d, 2w") from None


def point(text: str) -> tuple[Point, bool]:
    """Parse `12` as a generation, else as `bound`: a number too large for one is milliseconds since 1970."""
    number = text.strip()
    if number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS and int(number) <= GREATEST_GENERATION:
        return int(number), False
    try:
        return bound(text)
    except Fault as fault:
        raise Fault(fault.code, f"{fault.message}, or a generation: 12") from None


def placed(of: Bound, now: datetime) -> datetime:
    """Return the moment of a bound in a ledger that is known up to `now`; a length of time never goes before 1970."""
    if isinstance(of, datetime):
        return of
    return EPOCH if of > now - EPOCH else now - of
