"""A running cluster as a source: where the last committed ingest stopped, what is read now, and what is gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from groupledger.config.kafka_secrets import resolved
from groupledger.config.settings import SPARK_READER
from groupledger.core.faults import Fault
from groupledger.core.kafka_options import bootstrap_servers, client_options, java_options
from groupledger.core.known_up_to import KnownUpTo
from groupledger.core.lines.topic_listings import listing_line
from groupledger.core.log_plan import LogGap, LogPlan, planned
from groupledger.core.moment import millis
from groupledger.pipeline.past import guard_of
from groupledger.sources import kafka_log, offsets_log, spark_kafka_log, topic_listings
from groupledger.sources.kafka_client import Address, Cluster, ClusterState, TopicListing
from groupledger.sources.kafka_records import StretchReader
from groupledger.sources.lines import given_lines
from groupledger.tables import COVERAGE
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import SourceSettings
    from groupledger.pipeline.invocation import Invocation
    from groupledger.sinks.runs import Commit
    from groupledger.sources.opening import Rows

PIECE_OFFSETS = 1_000_000
"""A log partition with more offsets to be read is read by several tasks."""
OFFSETS, TOPICS, GAPS, BEGINS, SINCE = "offsets", "topics", "gaps", "from", "since"
LOG_START_MOVED = "log-start-moved"
OFFSETS_PARTITIONS = "offsets_partitions"


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """What an ingest takes from a cluster. `logs`, which are made on demand, and `listings`: none if nothing is new.

    `few`: what `logs` read, where it is so little that it is here already (`kafka_records.BATCH`).
    """

    cluster_id: str
    since: int  # number of the cluster's last commit: what is read again later is another run
    plan: LogPlan
    topics: str
    log_partitions: int
    logs: Callable[[], tuple[Rows, ...]]
    listings: tuple[Rows, ...]
    asked: datetime  # before the ends of its log were asked for
    few: pa.Table | None

    @property
    def reached(self) -> dict[str, Any]:
        """What `runs` keeps of it, for the next ingest to go on from: the offsets reached, the digest of the topics."""
        return {OFFSETS: {str(at): end for at, end in self.plan.reached.items()}, TOPICS: self.topics}

    @property
    def described(self) -> dict[str, Any]:
        """What was read beside `reached`: after which commit, from where on, and what was gone by then."""
        stated = {OFFSETS_PARTITIONS: self.log_partitions} if self.log_partitions else {}  # 0: no group was ever there
        begins = {str(stretch.partition): stretch.first for stretch in self.plan.stretches}
        return {**stated, SINCE: self.since, BEGINS: begins, GAPS: [list(gap) for gap in self.plan.gaps]}

    @property
    def known(self) -> KnownUpTo:
        """Up to when the whole log is known once this has been read; what was left for later is said by `behind`."""
        return KnownUpTo(behind=self.asked) if self.plan.left else KnownUpTo(self.asked)

    @property
    def left(self) -> int:
        """Offsets that are left for later ingests."""
        return self.plan.left

    @property
    def is_empty(self) -> bool:
        """Whether the cluster has nothing that the ledger lacks."""
        return not (self.plan.stretches or self.listings or self.plan.gaps)


def address_of(source: SourceSettings) -> Address:
    """Where a source's cluster is. Raises Fault for an address or options that cannot be used."""
    options = client_options(resolved(source.options))
    return Address(bootstrap_servers(source.place, options), options, source.timeout_seconds)


def require_answers(sources: Iterable[SourceSettings], seconds: Callable[[], float]) -> None:
    """Ask each of these clusters who it is: a wrong address is said before Spark is started."""
    for source in sources:
        Cluster(address_of(source), seconds).cluster_id()


def read_cluster(
    spark: SparkSession, source: SourceSettings, named: str | None, commits: Sequence[Commit], invocation: Invocation
) -> ClusterReading:
    """Ask a cluster for what is new since these commits; its records are read once the frames are.

    `named` is the cluster id of the configuration. Raises Fault: CLIENT_MISSING, KAFKA_OPTION, KAFKA_UNREACHABLE,
    KAFKA_REFUSED, KAFKA_NOT_ALLOWED, KAFKA_FAILED, CLUSTER_DIFFERS, LOG_WENT_BACK.
    """
    address, asked = address_of(source), invocation.now().astimezone(UTC)
    state = Cluster(address, invocation.seconds).state()
    require_same_cluster(source, named, state.cluster_id)
    last = last_reached(commits, state.cluster_id)
    plan = planned(last.offsets, state.ends, source.max_records)
    reader = None if source.reader == SPARK_READER else StretchReader(address, source.keeps_offset_commits)
    few = None if reader is None else reader.few(*plan.stretches)
    listings = (
        [topic_listing(spark, source, state.cluster_id, state.topics, asked)]
        if state.topics_digest != last.topics
        else []
    )
    return ClusterReading(
        state.cluster_id,
        last.sequence,
        plan,
        state.topics_digest,
        len(state.ends),
        partial(_records, spark, source, plan, state, reader, few),
        tuple(listings),
        asked,
        few,
    )


class LastReached(NamedTuple):
    """What committed ingests have of a cluster: offsets by log partition, the digest of its topics, the last commit.

    `topics` is None where another source may have said something of them since.
    """

    offsets: dict[int, int]
    topics: str | None
    sequence: int


def last_reached(commits: Sequence[Commit], cluster_id: str) -> LastReached:
    """What these commits reached, which are in their order."""
    ingests = [commit for commit in commits if guard_of(cluster_id) in commit.guards]
    sequence = ingests[-1].sequence if ingests else 0
    for commit in reversed(ingests):
        found = json.loads(commit.reached or "{}").get(cluster_id)
        if found is not None and OFFSETS in found:
            offsets = {int(at): end for at, end in found[OFFSETS].items()}
            return LastReached(offsets, found[TOPICS] if commit is ingests[-1] else None, sequence)
    return LastReached({}, None, sequence)


def gap_rows(spark: SparkSession, sources: Iterable[Mapping[str, Any]]) -> DataFrame | None:
    """Rows of `coverage` (without the attempt) of what was gone from a log, from its sources as `runs` describes them.

    They name no group: any group of the log partition may have had records there.
    """
    rows = [_gap_row(source[c.CLUSTER_ID], LogGap(*gap)) for source in sources for gap in source.get(GAPS, ())]
    if not rows:
        return None
    names = [name for name in COVERAGE.columns if name != c.ATTEMPT_ID]
    kinds = ", ".join(f"{name} {COVERAGE.schema[name].dataType.simpleString()}" for name in names)
    return spark.createDataFrame([tuple(row[name] for name in names) for row in rows], kinds)


def _gap_row(cluster_id: str, gap: LogGap) -> dict[str, Any]:
    reason = (
        f"offsets {gap.expected} to {gap.start - 1} of log partition {gap.partition} were gone before they were read: "
        "its log start moved on; ingest more often than the log is cut"
    )
    return {
        c.CLUSTER_ID: cluster_id,
        c.GROUP_ID: "",
        c.INCARNATION: 0,
        c.KIND: LOG_START_MOVED,
        c.FROM_VALUE: gap.expected,
        c.TO_VALUE: gap.start,
        c.REASON: reason,
        c.OFFSET: gap.start,
        c.SNAPSHOT_ID: f"log/{cluster_id}/{gap.partition}/{gap.start}",
    }


def require_same_cluster(source: SourceSettings, named: str | None, found: str) -> None:
    """Raises Fault CLUSTER_DIFFERS where the configuration names another cluster than the one that answered."""
    if named is not None and named != found:
        said = f"the cluster at {source.place} says that its id is {found!r}, and cluster_id is {named!r}"
        raise Fault("CLUSTER_DIFFERS", f"{said}; check the address, or leave cluster_id out: the cluster says its own")


def _records(
    spark: SparkSession,
    source: SourceSettings,
    plan: LogPlan,
    state: ClusterState,
    reader: StretchReader | None,
    few: pa.Table | None,
) -> tuple[Rows, ...]:
    """The records of a plan, by the reader that is configured, or those that are here; none without a range."""
    if not plan.stretches:
        return ()
    pieces, partitions = plan.pieces(PIECE_OFFSETS), [stretch.partition for stretch in plan.stretches]
    if reader is None:
        options, commits = java_options(resolved(source.options)), source.keeps_offset_commits
        java = Address(address_of(source).bootstrap, options, source.timeout_seconds)
        found = spark_kafka_log.frame(spark, java, plan.stretches, len(pieces))
        return (offsets_log.of_topic(found, source.place, state.cluster_id, partitions, offset_commits=commits),)
    if few is not None:
        stretches = spark.createDataFrame(few, kafka_log.FIELDS)
    else:
        stretches = kafka_log.frame(spark, reader, pieces, state.cluster_id)
    return (offsets_log.of_stretches(stretches, source.place, state.cluster_id, partitions),)


def topic_listing(
    spark: SparkSession, source: SourceSettings, cluster_id: str, topics: Iterable[TopicListing], now: datetime
) -> Rows:
    """The topics of a cluster as a listing of this moment."""
    lines = [listing_line(millis(now.astimezone(UTC)), *topic) for topic in topics]
    return topic_listings.of_lines(given_lines(spark, lines), source.place, cluster_id)
