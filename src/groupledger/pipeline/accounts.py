"""What became of every record an ingest read: the classes exclude one another and add up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

CLASSES = ("used", "unused", "tombstones", "quarantined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The records of one cluster. `used`, `unused` and `tombstones` count by kind of record, `quarantined` by code."""

    cluster_id: str
    records: int
    duplicates: int
    used: Mapping[str, int]
    unused: Mapping[str, int]
    tombstones: Mapping[str, int]
    quarantined: Mapping[str, int]

    @property
    def accounted(self) -> int:
        """The sum of the classes."""
        return self.duplicates + sum(sum(getattr(self, name).values()) for name in CLASSES)

    @property
    def balanced(self) -> bool:
        """Whether every record is accounted for, and no class is below zero: that would hide what is missing."""
        classes = [number for name in CLASSES for number in getattr(self, name).values()]
        return self.accounted == self.records and min(classes, default=0) >= 0 <= self.duplicates


def accounts(counts: Mapping[str, int]) -> tuple[Account, ...]:
    """The accounts in a run's `counts_in`, by cluster: `dev/used.GroupMetadata` -> 107, `dev/records` -> 428."""
    by_cluster: dict[str, dict[str, int]] = defaultdict(dict)
    for name, number in counts.items():
        cluster_id, _, what = name.rpartition("/")
        by_cluster[cluster_id][what] = number
    return tuple(_account(cluster_id, by_cluster[cluster_id]) for cluster_id in sorted(by_cluster))


def _account(cluster_id: str, counts: Mapping[str, int]) -> Account:
    by_class: dict[str, dict[str, int]] = {name: {} for name in CLASSES}
    for what, number in sorted(counts.items()):
        name, dot, kind = what.partition(".")
        if dot and number:
            by_class[name][kind] = number
    return Account(
        cluster_id=cluster_id, records=counts.get("records", 0), duplicates=counts.get("duplicates", 0), **by_class
    )
