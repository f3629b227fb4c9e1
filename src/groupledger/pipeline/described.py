"""A cluster whose log may not be read: its groups as an admin client describes them, and its topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from groupledger.config import SourceSettings
from groupledger.core.digest import digest
from groupledger.core.log.described_groups import PREFIX, LastDescribed, described_in, described_lines
from groupledger.core.log.plan import KnownUpTo
from groupledger.core.moments import millis
from groupledger.pipeline.cluster import SINCE, TOPICS, address_of, require_same_cluster, topic_listing
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.past import guard_of
from groupledger.sinks.current import current
from groupledger.sinks.ledger import LedgerLocation
from groupledger.sinks.runs import Commit
from groupledger.sources import snapshot_tables
from groupledger.sources.kafka_client import Cluster
from groupledger.sources.opening import Rows
from groupledger.sources.snapshot_tables import SnapshotRows
from groupledger.tables import GROUP_SNAPSHOTS
from groupledger.tables import columns as c

GROUPS, LEFT_OUT = "groups", "left_out"
NOT_DESCRIBED = "group that cannot be described"
LastSnapshots = Callable[[str], Mapping[str, LastDescribed]]
"""By cluster: each group's last snapshot that an admin client gave."""


@dataclass(frozen=True, slots=True)
class DescribedReading:
    """What an ingest takes from the groups of a cluster. `snapshots` is None where none differs from the last."""

    cluster_id: str
    since: int  # number of the cluster's last commit: the same groups later are another run
    topics: str
    snapshots: SnapshotRows | None
    listings: tuple[Rows, ...]
    left_out: Mapping[str, int]
    digest: str
    asked: datetime  # before the groups were described

    @property
    def reached(self) -> dict[str, Any]:
        """What `runs` keeps of it, for the next ingest: the digest of the topics."""
        return {TOPICS: self.topics}

    @property
    def described(self) -> dict[str, Any]:
        """What was read: after which commit, which groups, and how many have no snapshot, by why."""
        return {SINCE: self.since, GROUPS: self.digest, LEFT_OUT: dict(self.left_out)}

    @property
    def known(self) -> KnownUpTo:
        """Up to when the groups are known: one that changed later may be described as it was before."""
        return KnownUpTo(self.asked)

    @property
    def is_empty(self) -> bool:
        """Whether the cluster says nothing that the ledger lacks."""
        return self.snapshots is None and not self.listings


def read_described(
    spark: SparkSession,
    source: SourceSettings,
    named: str | None,
    commits: Sequence[Commit],
    before: LastSnapshots,
    invocation: Invocation,
    *,
    most_claims: int,
) -> DescribedReading:
    """Ask a cluster for its groups and topics. Raises Fault as `read_cluster` does.

    `named` is the cluster id of the configuration.
    """
    cluster = Cluster(address_of(source), invocation.seconds)
    cluster_id = cluster.cluster_id()
    require_same_cluster(source, named, cluster_id)
    asked = invocation.now().astimezone(UTC)
    topics = cluster.topics()
    found, missing = cluster.groups()
    now = invocation.now()
    lines = described_lines(found, before(cluster_id), {name: topic_id for name, topic_id, _ in topics}, millis(now))
    left_out = {**lines.left_out, **({NOT_DESCRIBED: len(missing)} if missing else {})}
    snapshots = (
        snapshot_tables.described(spark, lines, source.place, cluster_id, most_claims=most_claims)
        if lines.groups
        else None
    )
    since, known = _last(commits, cluster_id)
    told = digest(topics)
    listings = [] if told == known else [topic_listing(spark, source, cluster_id, topics, asked)]
    parts = [line.decode("utf-8", "surrogatepass") for line in (*lines.groups, *lines.members)]
    return DescribedReading(cluster_id, since, told, snapshots, tuple(listings), left_out, digest(parts), asked)


def no_snapshots(cluster_id: str) -> Mapping[str, LastDescribed]:
    """Nothing is known of the groups of any cluster."""
    return {}


def last_snapshots(spark: SparkSession, location: LedgerLocation) -> LastSnapshots:
    """What the ledger has of each group from an admin client; asked only where it is needed."""

    def found(cluster_id: str) -> Mapping[str, LastDescribed]:
        prefix = f"{snapshot_tables.SOURCE_KIND}/{cluster_id}/"
        rows = current(spark, location, GROUP_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID).startswith(prefix + PREFIX))
        last = rows.groupBy(c.GROUP_ID).agg(F.max_by(c.SNAPSHOT_ID, c.OFFSET)).collect()
        return {group_id: described_in(snapshot_id.removeprefix(prefix)) for group_id, snapshot_id in last}

    return found


def _last(commits: Iterable[Commit], cluster_id: str) -> tuple[int, str | None]:
    """The number of the last ingest of a cluster, and the digest of the topics as it listed them."""
    ingests = [commit for commit in commits if guard_of(cluster_id) in commit.guards]
    if not ingests:
        return 0, None
    reached = json.loads(ingests[-1].reached or "{}").get(cluster_id, {})
    return ingests[-1].sequence, reached.get(TOPICS)
