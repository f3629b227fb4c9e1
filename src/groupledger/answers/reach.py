"""From when and up to when a ledger knows its clusters: the one definition of "now" for every answer.

"Now" is up to when the log was read, not the newest state of a group: a group that changes nothing writes no record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from groupledger.answers.names import NO_RECORD, require_cluster
from groupledger.answers.queries import matching, one_of, records
from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import KNOWN, KnownUpTo, known_in, together
from groupledger.core.moments import iso, placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from groupledger.answers.queries import Reader, Value
    from groupledger.core.moments import Bound

_WRITTEN = "FROM group_snapshots t"
_COMMITTED = f"{_WRITTEN} JOIN current_runs r ON r.attempt_id = t.attempt_id"
"""Of committed runs, superseded ones too, which were read as well."""
_KEEPING = f"t.kind IN ('ingest', 'nothing-new') AND t.inputs LIKE '%\"{KNOWN}\":%'"
_LAST_RUNS = 40
"""Runs that are looked at: each keeps what is known of all clusters, but ingests may overtake one another."""


class Basis(StrEnum):
    """What a moment up to which a cluster is known rests on."""

    LOG_END = "log-end"
    NEWEST_RECORD = "newest-record"
    PART_READ = "part-read"
    GROUP_RECORDS = "group-records"


_ON = {
    Basis.LOG_END: "",
    Basis.NEWEST_RECORD: ", the newest record read",
    Basis.PART_READ: ", where an ingest stopped before the end of the log (max_records)",
    Basis.GROUP_RECORDS: ", the newest group record (older ledger)",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """Up to when a cluster is known, and by what.

    `log-end`: an ingest that began then read its log to the end. `newest-record`: sources that cannot say that they
    reached the end had no newer one. `part-read`: of the log partitions that were not read to the end, the newest
    record of the one that was read least far. `group-records`: of ingests of earlier releases the newest record of a
    group is all that is left. `newest_record`: the time of the newest one of any kind, where that was kept.
    """

    cluster_id: str
    up_to: datetime
    newest_record: datetime | None
    basis: Basis

    @property
    def text(self) -> str:
        """The moment in words."""
        return f"{iso(self.up_to)}{_ON[self.basis]}"


@dataclass(frozen=True, slots=True)
class Known:
    """Up to when clusters are known. `kept`: as their ingests kept it; else as their groups' records have it."""

    clusters: Mapping[str, KnownUpTo]
    kept: bool

    @property
    def newest(self) -> datetime | None:
        """The newest moment of any of them; None where nothing is known of any."""
        return max((each.up_to for each in self.reaches), default=None)

    @property
    def reaches(self) -> tuple[Reach, ...]:
        """The same by cluster, in order of their names."""
        return tuple(
            Reach(cluster, each.up_to, each.newest, self._basis(each))
            for cluster, each in sorted(self.clusters.items())
            if each.up_to is not None
        )

    def of(self, cluster: str, last: datetime) -> datetime:
        """Return up to when a group of the cluster is known, whose last record is of that time."""
        return max(filter(None, (last, self.clusters.get(cluster, KnownUpTo()).up_to)))

    @property
    def text(self) -> str:
        """Say it for a person, in the one wording that every answer uses."""
        found = self.reaches
        if not found:
            return NO_RECORD
        if len({each.text for each in found}) == 1:
            return f"known up to {found[0].text}"
        if len({each.basis for each in found}) == 1:
            moments = ", ".join(f"{iso(each.up_to)} ({each.cluster_id})" for each in found)
            return f"known up to {moments}{_ON[found[0].basis]}"
        return "known up to " + "; ".join(f"{iso(each.up_to)} ({each.cluster_id}){_ON[each.basis]}" for each in found)

    def _basis(self, of: KnownUpTo) -> Basis:
        if not self.kept:
            return Basis.GROUP_RECORDS
        if of.is_behind:
            return Basis.PART_READ
        return Basis.NEWEST_RECORD if of.end is None else Basis.LOG_END


def known(reader: Reader, cluster: str | None = None) -> Known:
    """Return up to when the cluster, or each of the ledger, is known; nothing if no record of a group was committed."""
    condition, values = matching("t.", cluster_id=cluster)
    if not records(reader, f"SELECT 1 AS found {_COMMITTED} WHERE {condition} LIMIT 1", **values):
        return Known({}, kept=True)
    kept = {name: each for name, each in _kept(reader).items() if each.up_to is not None}
    if cluster in kept or (cluster is None and kept):
        return Known({name: each for name, each in kept.items() if cluster in (None, name)}, kept=True)
    ends = recorded_spans(reader, [] if cluster is None else [cluster])
    return Known({name: KnownUpTo(last) for name, (_, last) in ends.items()}, kept=False)


def known_for(reader: Reader, answer: object, cluster: str | None) -> Known:
    """Return up to when the cluster of an answer is known, if it is about one, or else the one that was asked for."""
    named = set(_clusters(answer))
    return known(reader, named.pop() if len(named) == 1 else cluster)


def _clusters(answer: object) -> Iterator[str]:
    """Return the clusters that an answer names: itself, in its entries, or in a column of its listings."""
    parts = next((getattr(answer, name) for name in ("holdings", "entries", "spans") if hasattr(answer, name)), ())
    for each in (*parts, getattr(answer, "rebalance", answer)):
        if hasattr(each, "cluster_id"):
            yield each.cluster_id
    for listing in answer if isinstance(answer, list | tuple) else ():
        if "cluster_id" in listing.columns:
            yield from (row[listing.columns.index("cluster_id")] for row in listing.rows)


def _kept(reader: Reader) -> dict[str, KnownUpTo]:
    """Read what the last runs keep of each cluster."""
    [row] = records(reader, f"SELECT max(t.sequence) AS newest FROM current_runs t WHERE {_KEEPING}")
    if row["newest"] is None:
        return {}
    query = f"SELECT t.inputs FROM current_runs t WHERE t.sequence > :first AND {_KEEPING}"
    rows = records(reader, query, first=row["newest"] - _LAST_RUNS)
    return together(known_in(json.loads(each["inputs"])) for each in rows)


def reaches(reader: Reader, clusters: list[str]) -> dict[str, tuple[datetime, datetime]]:
    """Return for these clusters, or each, the time of a group's first record, and up to when it is known; by name."""
    up_to = {each.cluster_id: each.up_to for each in known(reader).reaches}
    return {name: (begins, up_to.get(name, last)) for name, (begins, last) in recorded_spans(reader, clusters).items()}


def recorded_spans(reader: Reader, clusters: list[str]) -> dict[str, tuple[datetime, datetime]]:
    """Return for these clusters, or each, the times of the first and the last record of a group's state; by name.

    Looked for in all that was written: to ask of each row whether its run was committed takes longer than all the rest.
    That is asked of the outermost ones alone, and of the others where it is not so.
    """
    among, values = one_of("t.cluster_id", "cluster", clusters) if clusters else ("true", {})
    written = _reaches(reader, f"{_WRITTEN} WHERE {among}", values)
    if not written:
        return {}
    begins, ends = zip(*written.values(), strict=True)
    bounds = {"begins": max(begins), "ends": min(ends)}
    outermost = f"{among} AND (t.observed_at <= :begins OR t.observed_at >= :ends)"
    if _reaches(reader, f"{_COMMITTED} WHERE {outermost}", values | bounds) == written:
        return written
    return _reaches(reader, f"{_COMMITTED} WHERE {among}", values)


def _reaches(reader: Reader, rows: str, values: Mapping[str, Value]) -> dict[str, tuple[datetime, datetime]]:
    query = (
        f"SELECT t.cluster_id, min(t.observed_at) AS begins, max(t.observed_at) AS ends {rows} "
        "GROUP BY t.cluster_id ORDER BY t.cluster_id"
    )
    return {row["cluster_id"]: (row["begins"], row["ends"]) for row in records(reader, query, **values)}


def newest(reader: Reader, cluster: str | None = None) -> datetime:
    """Return up to when a cluster, or any of all, is known. Raises Fault: UNKNOWN_CLUSTER, EMPTY_LEDGER."""
    found = known(reader, cluster).newest
    if found is not None:
        return found
    if cluster is not None:
        require_cluster(reader, cluster)
    raise Fault("EMPTY_LEDGER", NO_RECORD)


def moments(reader: Reader, cluster: str | None, asked: Iterable[Bound | None]) -> list[datetime | None]:
    """Return moments as they are; a length of time is that long before "now" of the cluster, or of all."""
    bounds = list(asked)
    if not any(isinstance(each, timedelta) for each in bounds):
        return [each for each in bounds if not isinstance(each, timedelta)]
    latest = newest(reader, cluster)
    return [None if each is None else placed(each, latest) for each in bounds]
