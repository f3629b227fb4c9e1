"""Up to which moment a ledger knows a cluster: what ingests have read, not what they found.

A group that changes nothing writes no record. That its last state still holds is known from what was read beside it:
from an ingest that reached the end of the log, or from newer records of any kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from groupledger.core.moment import from_millis, millis

if TYPE_CHECKING:
    from datetime import datetime

KNOWN = "known"
"""In `inputs` of a run: by cluster of the ledger, what all ingests up to it have read (`KnownUpTo.as_json`)."""


@dataclass(frozen=True, slots=True)
class KnownUpTo:
    """Up to when one cluster was read.

    `end`: when the last ingest began that reached the end of the whole log. `newest`: the time of the newest record of
    any kind that was read. Of a cluster that is read itself it is known where log partitions were read to different
    points: the ingest that began at `behind` left some for later, of which the least was read up to `least`.
    """

    end: datetime | None = None
    newest: datetime | None = None
    least: datetime | None = None
    behind: datetime | None = None

    @property
    def is_behind(self) -> bool:
        """Return whether the last ingest left something of the log for later."""
        return self.behind is not None and (self.end is None or self.behind > self.end)

    @property
    def up_to(self) -> datetime | None:
        """Return "now" for the cluster: up to then all that was written is in the ledger."""
        own = self.least if self.is_behind else self.newest
        return max(filter(None, (self.end, own)), default=None)

    def with_more(self, other: KnownUpTo) -> KnownUpTo:
        """Return the newest of both; what was left for later is so as of the ingest that began last."""
        end, newest = (_newest(*moments) for moments in ((self.end, other.end), (self.newest, other.newest)))
        if self.behind == other.behind:
            return KnownUpTo(end, newest, _newest(self.least, other.least), self.behind)
        last = self if self.behind == _newest(self.behind, other.behind) else other
        return KnownUpTo(end, newest, last.least, last.behind)

    def as_json(self) -> dict[str, Any]:
        """Return the moments in milliseconds since 1970."""
        moments = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: millis(moment) for name, moment in moments.items() if moment is not None}


def known_in(inputs: Mapping[str, Any]) -> dict[str, KnownUpTo]:
    """Read what a run keeps of it, by cluster; nothing if its release kept nothing."""
    return {
        cluster: KnownUpTo(**{name: from_millis(at) for name, at in told.items()})
        for cluster, told in inputs.get(KNOWN, {}).items()
    }


def together(known: Iterable[Mapping[str, KnownUpTo]]) -> dict[str, KnownUpTo]:
    """Merge what several runs keep, in any order."""
    found: dict[str, KnownUpTo] = {}
    for of_run in known:
        for cluster, each in of_run.items():
            found[cluster] = found[cluster].with_more(each) if cluster in found else each
    return found


def _newest(*moments: datetime | None) -> datetime | None:
    return max(filter(None, moments), default=None)
