"""Apply the bounds of `core.bounds` to Spark columns: numbers are checked before the cast, so that none overflows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType, TimestampNTZType

from groupledger.core.bounds import NumberRange

if TYPE_CHECKING:
    from pyspark.sql import Column

_MICROS = 1_000


def within(number: Column, bound: NumberRange) -> Column:
    """Return the whole number if it is in the range, else null."""
    return F.when(number.between(bound.least, bound.most), number)


def moment(value: Column, kind: DataType, bound: NumberRange) -> Column:
    """Convert a timestamp, or milliseconds since 1970, to a timestamp; null outside the range.

    A timestamp without a zone is in UTC, whatever the session's zone.
    """
    if isinstance(kind, IntegralType):
        return F.timestamp_millis(within(value.cast("bigint"), bound))
    if isinstance(kind, TimestampNTZType):
        ends = (F.lit(_without_zone(end)).cast("timestamp_ntz") for end in (bound.least, bound.most))
        text = F.when(value.between(*ends), value).cast("string")
        value = F.concat(text, F.lit("Z")).try_cast("timestamp")
    micros = F.unix_micros(value)
    return F.when(micros.between(bound.least * _MICROS, bound.most * _MICROS + _MICROS - 1), value)


def _without_zone(millis: int) -> str:
    """Format milliseconds since 1970 as a date and time in UTC."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
    return at.replace(tzinfo=None).isoformat(" ", "milliseconds")
