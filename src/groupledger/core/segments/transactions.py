"""Hold records of transactions until their producer's marker: they count if it says COMMIT.

Offset commits of a transaction are the only such records of `__consumer_offsets`; group state never is.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum

from groupledger.core.segments.records import RecordColumns


class Marker(Enum):
    """The content of a control record's key, after its int16 version."""

    ABORT = b"\x00\x00"
    COMMIT = b"\x00\x01"


@dataclass(slots=True)
class Held:
    """What one producer wrote since its last marker."""

    records: list[RecordColumns] = field(default_factory=list)
    offset_commits: int = 0
    count: int = 0


class Transactions:
    """The open transactions, by producer id."""

    def __init__(self) -> None:
        self._open: defaultdict[int, Held] = defaultdict(Held)
        self._given_up = 0

    def hold(self, producer: int, records: tuple[RecordColumns, ...], offset_commits: int, count: int) -> None:
        """Keep the records of a transactional batch of `count` records."""
        held = self._open[producer]
        held.records.extend(records)
        held.offset_commits += offset_commits
        held.count += count

    def end(self, producer: int) -> Held:
        """Return what the producer's marker decides; nothing if the log begins mid-transaction, or if it was empty."""
        return self._open.pop(producer, Held())

    def doubt(self) -> None:
        """Discard the open transactions: a marker may have been lost, so the next one may not be theirs."""
        self._given_up += sum(held.count for held in self._open.values())
        self._open.clear()

    def undecided(self) -> int:
        """Return the number of records without a marker that is certainly theirs."""
        return self._given_up + sum(held.count for held in self._open.values())


def marker(records: tuple[RecordColumns, ...]) -> Marker | None:
    """Return the marker in a control batch; None for a control record of another kind."""
    for found in records:
        for _, _, key, _ in found:
            if key is not None and key[2:4] in (Marker.ABORT.value, Marker.COMMIT.value):
                return Marker(key[2:4])
    return None
