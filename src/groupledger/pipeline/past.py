"""What the ingests before this one left of its clusters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.core.history import OTHER_LOG_PARTITION
from groupledger.sinks import runs
from groupledger.sinks.current import current, written_by
from groupledger.sinks.location import LedgerFault
from groupledger.tables import LOG_RECORDS, QUARANTINE
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.core.read_ranges import Ranges
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.sinks.runs import Commit
    from groupledger.tables import Table

GROUP = [c.CLUSTER_ID, c.GROUP_ID]
STRAY_GROUPS = "stray_groups"
"""The count (`counts_out`) of groups with strays that an ingest folded: later ones look at them again."""

_GUARD = "/ingest"


def require_facts(seen: runs.LedgerView, location: LedgerLocation) -> None:
    """Raise LedgerFault("NOTHING_INGESTED") where no ingest was ever committed: there is nothing to compute from."""
    if all(commit.kind != runs.INGEST for commit in seen.commits):
        told = f"nothing was ever ingested into the ledger at {location}"
        raise LedgerFault("NOTHING_INGESTED", f"{told}: run `groupledger ingest` first, and see that it succeeds")


def guard_of(cluster_id: str) -> str:
    """What no two ingests of a cluster commit side by side."""
    return f"{cluster_id}{_GUARD}"


def cluster_of(guard: str) -> str | None:
    """Return the cluster whose ingests a guard is of; None for other guards."""
    return guard.removesuffix(_GUARD) if guard.endswith(_GUARD) else None


@dataclass(frozen=True, slots=True)
class Past:
    """The ledger as of some commits, for an ingest under these guards.

    `stated`: by cluster, the number of log partitions that the configuration states.
    """

    spark: SparkSession
    location: LedgerLocation
    commits: tuple[Commit, ...]
    guards: tuple[str, ...]
    stated: Mapping[str, int] = field(default_factory=dict)

    @property
    def clusters(self) -> list[str]:
        """The clusters of the ingest."""
        return [cluster for guard in self.guards if (cluster := cluster_of(guard)) is not None]

    @property
    def empty(self) -> bool:
        """Whether no ingest of these clusters was committed."""
        return not any(guard in commit.guards for commit in self.commits for guard in self.guards)

    def rows(self, table: Table, *attempts: str) -> DataFrame:
        """The rows of these attempts in a table."""
        return self.location.rows(self.spark, table, attempts).where(written_by(attempts))

    def current(self, table: Table, attempts: Collection[str] | None = None) -> DataFrame:
        """The rows of a table that count; with `attempts` those of these."""
        return current(self.spark, self.location, table, self.commits, attempts)

    def reads(self) -> dict[str, Ranges] | None:
        """By attempt, the first and last offset of each log partition of which it wrote records; None: one that wrote
        some does not say."""
        found: dict[str, Ranges] = {}
        for commit in self.commits:
            if commit.read is not None:
                found[commit.attempt_id] = {
                    (cluster, int(partition)): (first, last)
                    for cluster, partitions in commit.read.items()
                    for partition, (first, last) in partitions.items()
                }
            elif commit.counts_out.get(LOG_RECORDS.name):
                return None
        return found

    @property
    def met_strays(self) -> list[str]:
        """The attempts that met strays."""
        return [commit.attempt_id for commit in self.commits if _met_strays(commit)]

    def strayed(self) -> DataFrame | None:
        """The groups of these clusters of which an earlier ingest met strays; None: none did."""
        attempts = self.met_strays
        if not attempts:
            return None
        strays = F.col(c.CODE) == OTHER_LOG_PARTITION
        return (
            self.rows(QUARANTINE, *attempts)
            .where(strays & F.col(c.CLUSTER_ID).isin(self.clusters))
            .select(*GROUP)
            .distinct()
        )


def _met_strays(commit: Commit) -> bool:
    counted = f"/quarantined.{OTHER_LOG_PARTITION}"
    return bool(commit.counts_out.get(STRAY_GROUPS)) or any(
        number and name.endswith(counted) for name, number in commit.counts_in.items()
    )
