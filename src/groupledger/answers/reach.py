"""From when to when a ledger knows anything, and moments counted back from its newest one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from groupledger.answers.names import require_cluster
from groupledger.answers.rows import matching, one_of, records
from groupledger.core.faults import Fault
from groupledger.core.since import placed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.answers.rows import Reader
    from groupledger.core.since import Bound

_SNAPSHOTS = "FROM group_snapshots t JOIN current_runs r ON r.attempt_id = t.attempt_id"
"""Of committed runs, superseded ones too, which were read as well: two columns of ten million rows, and no more."""


def reaches(reader: Reader, clusters: list[str]) -> dict[str, tuple[datetime, datetime]]:
    """Of these clusters, or of each, the times of the first and the last record of a group's state; by name."""
    among, values = one_of("t.cluster_id", "cluster", clusters) if clusters else ("true", {})
    query = (
        "SELECT t.cluster_id, min(t.observed_at) AS begins, max(t.observed_at) AS ends "
        f"{_SNAPSHOTS} WHERE {among} GROUP BY t.cluster_id ORDER BY t.cluster_id"
    )
    return {row["cluster_id"]: (row["begins"], row["ends"]) for row in records(reader, query, **values)}


def newest(reader: Reader, cluster: str | None = None) -> datetime:
    """The newest moment that the ledger knows of a group, in a cluster or at all.

    Raises Fault: UNKNOWN_CLUSTER, EMPTY_LEDGER.
    """
    condition, values = matching("t.", cluster_id=cluster)
    [row] = records(reader, f"SELECT max(t.observed_at) AS ends {_SNAPSHOTS} WHERE {condition}", **values)
    found: datetime | None = row["ends"]
    if found is not None:
        return found
    if cluster is not None:
        require_cluster(reader, cluster)
    raise Fault("EMPTY_LEDGER", "the ledger holds no state of any group: run `groupledger ingest` first")


def moments(reader: Reader, cluster: str | None, asked: Iterable[Bound | None]) -> list[datetime | None]:
    """Moments as they are; a length of time is that long before the newest moment of the cluster, or of all."""
    bounds = list(asked)
    if not any(isinstance(each, timedelta) for each in bounds):
        return [each for each in bounds if not isinstance(each, timedelta)]
    latest = newest(reader, cluster)
    return [None if each is None else placed(each, latest) for each in bounds]
