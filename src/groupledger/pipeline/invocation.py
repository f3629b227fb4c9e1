"""What an entry point hands down: who asked, and the only clock there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of a command. `run_id` is the orchestrator's, or None: then it is derived from the input.

    `now` gives the time of day with a zone, `seconds` a monotonic clock; `doing` gets each step, for a person.
    """

    attempt_id: str
    now: Callable[[], datetime]
    seconds: Callable[[], float]
    run_id: str | None = None
    doing: Callable[[str], None] = lambda _: None


@dataclass(slots=True)
class Timings:
    """Seconds by stage, in the order of the stages."""

    invocation: Invocation
    by_stage: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, doing: str = "") -> Iterator[None]:
        """Add the time of the block to the stage; `doing` says it for a person, with what is known of its size."""
        if doing:
            self.invocation.doing(doing)
        began = self.invocation.seconds()
        try:
            yield
        finally:
            self.by_stage[name] = self.by_stage.get(name, 0.0) + self.invocation.seconds() - began


# What became of every record an ingest read: the classes exclude one another and add up.

CLASSES = ("used", "unused", "tombstones", "quarantined")
RECORDS, DUPLICATES, QUARANTINED = "records", "duplicates", "quarantined"
LINES, ROWS, BLANK, LISTINGS = "lines", "rows", "blank", "listings"
OTHER_TOPIC = "other topic"
"""A kind of unused record: of another topic than `__consumer_offsets`; beside segments, a partition's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The records of one cluster. `used`, `unused` and `tombstones` count by kind of record, `quarantined` by code.

    Two equations hold. Each record is in one class. And each physical line and each row of a table or record of a
    segment (`rows`; a stretch of damage, a torn tail and a folder passed over are one each) that was there is a record,
    a line of a topic listing (`listings`: listed, or by code), or blank; runs of before this was counted have no
    `lines` and `rows`.
    """

    cluster_id: str
    records: int
    duplicates: int
    used: Mapping[str, int]
    unused: Mapping[str, int]
    tombstones: Mapping[str, int]
    quarantined: Mapping[str, int]
    lines: int | None = None
    rows: int | None = None
    blank: int = 0
    listings: Mapping[str, int] = field(default_factory=dict)

    @property
    def accounted(self) -> int:
        """Return the sum of the classes."""
        return self.duplicates + sum(sum(getattr(self, name).values()) for name in CLASSES)

    @property
    def arrived(self) -> int | None:
        """Return how many lines and rows there were; None if they were not counted."""
        return None if self.lines is None or self.rows is None else self.lines + self.rows

    @property
    def balanced(self) -> bool:
        """Return whether both equations hold, and no class is below zero: that would hide what is missing."""
        numbers = [number for name in (*CLASSES, LISTINGS) for number in getattr(self, name).values()]
        numbers += [self.duplicates, self.blank, self.lines or 0, self.rows or 0]
        became = self.records + sum(self.listings.values()) + self.blank
        return self.accounted == self.records and self.arrived in (None, became) and min(numbers) >= 0


def accounts(counts: Mapping[str, int]) -> tuple[Account, ...]:
    """Return the accounts in a run's `counts_in` by cluster: `dev/used.GroupMetadata` -> 107, `dev/records` -> 428."""
    by_cluster: dict[str, dict[str, int]] = defaultdict(dict)
    for name, number in counts.items():
        cluster_id, _, what = name.rpartition("/")
        by_cluster[cluster_id][what] = number
    return tuple(_account(*each) for each in sorted(by_cluster.items()))


def _account(cluster_id: str, counts: Mapping[str, int]) -> Account:
    by_class: dict[str, dict[str, int]] = {name: {} for name in (*CLASSES, LISTINGS)}
    for what, number in sorted(counts.items()):
        name, dot, kind = what.partition(".")
        if dot and number:
            by_class[name][kind] = number
    return Account(
        cluster_id=cluster_id,
        records=counts.get(RECORDS, 0),
        duplicates=counts.get(DUPLICATES, 0),
        lines=counts.get(LINES),
        rows=counts.get(ROWS),
        blank=counts.get(BLANK, 0),
        **by_class,
    )
