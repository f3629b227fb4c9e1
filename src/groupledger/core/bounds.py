"""Define the range of each number in a source: a row beyond it is rejected before anything computes with it.

Times are in milliseconds since 1970. The latest is a day before the end of the year 9999: Python's `datetime` ends
there, and a time zone may add a day. A record without a timestamp has -1 in Kafka: it is kept, as that moment.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A range of whole numbers, both ends included, and its description in words."""

    least: int
    most: int
    unit: str = "a whole number"

    @property
    def words(self) -> str:
        """Describe the range: `a whole number, 0 to 2147483647`."""
        return f"{self.unit}, {self.least} to {self.most}"

    def holds(self, value: object) -> bool:
        """Return whether the value is a whole number in the range; a boolean is not."""
        return type(value) is int and self.least <= value <= self.most


LATEST_MS = 253_402_214_399_999
NO_TIMESTAMP = -1

INT32 = NumberRange(-(2**31), 2**31 - 1)
PARTITION = NumberRange(0, 2**31 - 1)
PARTITION_COUNT = NumberRange(0, 2**31 - 1)
OFFSET = NumberRange(0, 2**63 - 2)  # the offset after the last one must be a number, too
RECORD_TIME = NumberRange(NO_TIMESTAMP, LATEST_MS, "milliseconds since 1970")
MOMENT = NumberRange(0, LATEST_MS, "milliseconds since 1970")

MOST_RACKED_PARTITIONS = 100_000
"""A topic with more partitions has no racks: a listing's one rack would be repeated for each partition."""
