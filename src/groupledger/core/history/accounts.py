"""What became of each record, counted: nothing read may vanish."""

from __future__ import annotations

from collections import Counter

from groupledger.core.history.rows import FoldCounts, LogRow


class Accounts:
    """Counts records by class; `close` proves that the classes add up to the records.

    A record that an earlier ingest counted is not counted again, whatever it turns out to be beside the new ones.
    """

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()
        self.unused: Counter[str] = Counter()
        self.tombstones: Counter[str] = Counter()
        self.quarantined: Counter[str] = Counter()
        self.duplicates: Counter[str] = Counter()

    def count(self, row: LogRow, counter: Counter[str], name: str) -> None:
        """Count a record in one of the classes, under the name of its kind."""
        if not row.known:
            counter[name] += 1

    def close(self, records: int) -> FoldCounts:
        """The counts of a fold that was given so many new records."""
        by_kind = (_sorted(self.used), _sorted(self.unused), _sorted(self.tombstones))
        counts = FoldCounts(records, *by_kind, self.duplicates.total(), _sorted(self.quarantined))
        if counts.accounted != records:
            raise AssertionError(f"{records} records came, {counts.accounted} are accounted for: {counts}")
        return counts


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))
