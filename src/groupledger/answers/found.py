"""A finding of an audit: one invariant that records of one group break."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.core.findings import INVARIANTS, Severity

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.core.findings import Invariant

_ORDER = {each.code: number for number, each in enumerate(INVARIANTS)}
_GRAVITY = {severity: number for number, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class Found:
    """What is wrong with a group's records under one code and severity.

    `records`: how many of them. `evidence` is the worst where there is a measure of it, else the last, of
    `snapshot_id`. `first` and `last` are None where the record is no snapshot, so that its time is not known.
    """

    code: str
    severity: Severity
    cluster_id: str
    group_id: str
    records: int
    first: datetime | None
    last: datetime | None
    evidence: str
    snapshot_id: str | None


def broken(
    invariant: Invariant,
    group: tuple[str, str],
    records: int,
    seen: tuple[datetime, datetime],
    evidence: str,
    snapshot_id: str,
) -> Found:
    """A finding with the invariant's own severity; `seen` is the first moment and the last one."""
    return Found(invariant.code, invariant.severity, *group, records, *seen, evidence, snapshot_id)


def in_order(found: Iterable[Found]) -> tuple[Found, ...]:
    """The gravest first, then by code as `core.findings` lists them, then the most records."""
    return tuple(
        sorted(
            found,
            key=lambda each: (
                _GRAVITY[each.severity],
                _ORDER[each.code],
                -each.records,
                each.cluster_id,
                each.group_id,
            ),
        )
    )
