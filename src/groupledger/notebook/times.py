"""Parse the times that a notebook passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from groupledger.answers.reach import moments
from groupledger.core.moment import from_micros, micros
from groupledger.core.since import bound, point

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader
    from groupledger.core.since import Bound, Point

When = str | datetime | timedelta
"""`24h` or a timedelta, back from now (up to when the ledger is known); ISO 8601; milliseconds since 1970 as text; or
a datetime.

What names no zone is in UTC.
"""


def bound_of(when: When | None) -> Bound | None:
    """Parse a time in UTC, or a duration. Raises Fault("BAD_TIME")."""
    if isinstance(when, str):
        return bound(when)[0]
    return _in_utc(when) if isinstance(when, datetime) else when


def point_of(when: When | int) -> Point:
    """Parse the same, or a generation. Raises Fault("BAD_TIME")."""
    if isinstance(when, str):
        return point(when)[0]
    return _in_utc(when) if isinstance(when, datetime) else when


def moment_of(reader: Reader, when: When | None, cluster: str | None) -> datetime | None:
    """Return a time; a duration counts back from the newest one of the cluster, or of all."""
    [moment] = moments(reader, cluster, [bound_of(when)])
    return moment


def _in_utc(when: datetime) -> datetime:
    """Return the time as Python's own type, whatever pandas made of it."""
    return from_micros(micros(when if when.tzinfo is not None else when.replace(tzinfo=UTC)))
