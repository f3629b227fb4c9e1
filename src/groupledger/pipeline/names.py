"""Names that a question may ask for: one the ledger never heard of is refused, with those it knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.core.faults import Fault
from groupledger.tables import GROUP_SNAPSHOTS, OWNERSHIP_CHANGES, REBALANCES, RUNS, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.pipeline.ledger import Ledger

MOST_NAMED = 10


def require_names(ledger: Ledger, cluster: str | None, group: str | None) -> None:
    """Nothing where the ledger knows both; asked where an answer is empty, so that a slip of the pen is none.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP.
    """
    if cluster is not None:
        require_cluster(ledger, cluster)
    if group is not None:
        rows = ledger.current(GROUP_SNAPSHOTS).where(F.col(c.GROUP_ID) == group)
        rows = rows if cluster is None else rows.where(F.col(c.CLUSTER_ID) == cluster)
        if rows.isEmpty():
            raise unknown_group(ledger, group, cluster)


def require_cluster(ledger: Ledger, cluster: str) -> None:
    """Raise Fault("UNKNOWN_CLUSTER") for a cluster nothing was ever ingested of."""
    guards = ledger.current(RUNS).select(F.explode(c.GUARDS).alias(c.CLUSTER_ID))
    read = guards.where(F.col(c.CLUSTER_ID).endswith("/ingest")).select(F.regexp_replace(c.CLUSTER_ID, "/ingest$", ""))
    seen = ledger.current(GROUP_SNAPSHOTS).select(c.CLUSTER_ID)
    known = sorted({row[0] for row in read.union(seen).distinct().collect()})
    if cluster not in known:
        raise Fault("UNKNOWN_CLUSTER", f"no cluster {cluster!r} in this ledger; {_known(cluster, known, 'cluster')}")


def require_scenario(ledger: Ledger, scenario: str) -> None:
    """Raise Fault("UNKNOWN_SCENARIO") for a name no results stand under."""
    rows = ledger.current(REBALANCES).select(c.SCENARIO).distinct().sort(c.SCENARIO).collect()
    known = [row[0] for row in rows]
    if scenario not in known:
        hint = _known(scenario, known, "scenario", "assign")
        raise Fault("UNKNOWN_SCENARIO", f"no scenario {scenario!r} in this ledger; {hint}")


def unknown_group(ledger: Ledger, group: str, cluster: str | None) -> Fault:
    """Names the groups the ledger knows that look alike; an unknown cluster is what is told of, if it is one."""
    if cluster is not None:
        require_cluster(ledger, cluster)
    rows = ledger.current(GROUP_SNAPSHOTS)
    rows = rows if cluster is None else rows.where(F.col(c.CLUSTER_ID) == cluster)
    known = [row[0] for row in rows.select(c.GROUP_ID).distinct().sort(c.GROUP_ID).collect()]
    return Fault("UNKNOWN_GROUP", f"no group {group!r} in {_where(cluster)}; {_known(group, known, 'group')}")


def unknown_topic(ledger: Ledger, topic: str, cluster: str | None) -> Fault:
    """Names the topics the ledger knows that look alike; an unknown cluster is what is told of, if it is one."""
    if cluster is not None:
        require_cluster(ledger, cluster)
    listed = ledger.current(TOPIC_SNAPSHOTS).select(c.CLUSTER_ID, c.TOPIC)
    rows = listed.union(ledger.current(OWNERSHIP_CHANGES).select(c.CLUSTER_ID, c.TOPIC))
    rows = rows if cluster is None else rows.where(F.col(c.CLUSTER_ID) == cluster)
    rows = rows.where(F.col(c.TOPIC).isNotNull()).select(c.TOPIC).distinct().sort(c.TOPIC)
    known = [row[0] for row in rows.collect()]
    return Fault("UNKNOWN_TOPIC", f"no topic {topic!r} in {_where(cluster)}; {_known(topic, known, 'topic')}")


def _where(cluster: str | None) -> str:
    return "this ledger" if cluster is None else f"cluster {cluster!r}"


def _known(name: str, known: Iterable[str], kind: str, job: str = "ingest") -> str:
    names = list(known)
    alike = difflib.get_close_matches(name, names, n=3) or names[:MOST_NAMED]
    return f"known: {', '.join(alike)}" if alike else f"it holds no {kind}: run `groupledger {job}` first"
