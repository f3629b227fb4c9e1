"""From when to when a ledger knows anything, and moments counted back from its newest one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from groupledger.answers.names import NO_RECORD, require_cluster
from groupledger.answers.rows import matching, one_of, records
from groupledger.core.faults import Fault
from groupledger.core.since import placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from groupledger.answers.rows import Reader, Value
    from groupledger.core.since import Bound

_WRITTEN = "FROM group_snapshots t"
_COMMITTED = f"{_WRITTEN} JOIN current_runs r ON r.attempt_id = t.attempt_id"
"""Of committed runs, superseded ones too, which were read as well."""


def reaches(reader: Reader, clusters: list[str]) -> dict[str, tuple[datetime, datetime]]:
    """Of these clusters, or of each, the times of the first and the last record of a group's state; by name.

    Looked for in all that was written: to ask of each row whether its run was committed takes longer than all the rest.
    That is asked of the outermost ones alone, and of the others where it is not so.
    """
    among, values = one_of("t.cluster_id", "cluster", clusters) if clusters else ("true", {})
    written = _reaches(reader, f"{_WRITTEN} WHERE {among}", values)
    if not written:
        return {}
    bounds = {
        "begins": max(begins for begins, _ in written.values()),
        "ends": min(ends for _, ends in written.values()),
    }
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


def last_moment(reader: Reader, cluster: str | None = None) -> datetime | None:
    """The newest moment that the ledger knows of a group, in a cluster or at all; None where it knows none."""
    condition, values = matching("t.", cluster_id=cluster)
    written = _newest(reader, f"{_WRITTEN} WHERE {condition}", values)
    if written is None:
        return None
    found = _newest(
        reader, f"{_COMMITTED} WHERE {condition} AND t.observed_at >= :written", values | {"written": written}
    )
    return found or _newest(reader, f"{_COMMITTED} WHERE {condition}", values)


def _newest(reader: Reader, rows: str, values: Mapping[str, Value]) -> datetime | None:
    [row] = records(reader, f"SELECT max(t.observed_at) AS newest {rows}", **values)
    found: datetime | None = row["newest"]
    return found


def newest(reader: Reader, cluster: str | None = None) -> datetime:
    """The same. Raises Fault: UNKNOWN_CLUSTER, EMPTY_LEDGER."""
    found = last_moment(reader, cluster)
    if found is not None:
        return found
    if cluster is not None:
        require_cluster(reader, cluster)
    raise Fault("EMPTY_LEDGER", NO_RECORD)


def moments(reader: Reader, cluster: str | None, asked: Iterable[Bound | None]) -> list[datetime | None]:
    """Moments as they are; a length of time is that long before the newest moment of the cluster, or of all."""
    bounds = list(asked)
    if not any(isinstance(each, timedelta) for each in bounds):
        return [each for each in bounds if not isinstance(each, timedelta)]
    latest = newest(reader, cluster)
    return [None if each is None else placed(each, latest) for each in bounds]
