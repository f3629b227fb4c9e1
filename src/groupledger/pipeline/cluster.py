"""A running cluster as a source: where the last committed ingest stopped, what is read now, and what is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.config import SourceSettings
from groupledger.config.kafka_options import bootstrap_servers, client_options, java_options, resolved
from groupledger.config.settings import ADMIN, SPARK_READER
from groupledger.core.digest import digest
from groupledger.core.faults import RIGHTS_ENOUGH, Fault
from groupledger.core.log.described_groups import PREFIX, LastDescribed, described_in, described_lines
from groupledger.core.log.lines import TOPIC, listing_line
from groupledger.core.log.read_plan import KnownUpTo, LogEnds, LogGap, LogPlan, OffsetRange, planned
from groupledger.core.moments import millis
from groupledger.pipeline.doctor import Check
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.past import guard_of
from groupledger.sinks.attempts import Run
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.sources import kafka_log, offsets_records, snapshot_tables, topic_listings
from groupledger.sources.files import given_lines
from groupledger.sources.kafka_log import Address, Cluster, ClusterState, StretchReader, TopicListing
from groupledger.sources.opening import Rows
from groupledger.sources.snapshot_tables import SnapshotRows
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pyarrow as pa


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
        """Return what `runs` keeps of it for the next ingest: the offsets reached, and the digest of the topics."""
        return {OFFSETS: {str(at): end for at, end in self.plan.reached.items()}, TOPICS: self.topics}

    @property
    def described(self) -> dict[str, Any]:
        """Describe what was read beside `reached`: after which commit, from where on, and what was gone by then."""
        stated = {OFFSETS_PARTITIONS: self.log_partitions} if self.log_partitions else {}  # 0: no group was ever there
        begins = {str(stretch.partition): stretch.first for stretch in self.plan.stretches}
        return {**stated, SINCE: self.since, BEGINS: begins, GAPS: [list(gap) for gap in self.plan.gaps]}

    @property
    def known(self) -> KnownUpTo:
        """Return up to when the whole log is known once this has been read; `behind` has what was left for later."""
        return KnownUpTo(behind=self.asked) if self.plan.left else KnownUpTo(self.asked)

    @property
    def is_empty(self) -> bool:
        """Return whether the cluster has nothing that the ledger lacks."""
        return not (self.plan.stretches or self.listings or self.plan.gaps)


def address_of(source: SourceSettings) -> Address:
    """Return the address of a source's cluster. Raises Fault for an address or options that cannot be used."""
    options = client_options(resolved(source.options))
    return Address(bootstrap_servers(source.place, options), options, source.timeout_seconds)


def require_answers(sources: Iterable[SourceSettings], seconds: Callable[[], float]) -> None:
    """Ask each of these clusters who it is: a wrong address is said before Spark is started."""
    for source in sources:
        Cluster(address_of(source), seconds).cluster_id()


def read_cluster(
    spark: SparkSession, source: SourceSettings, named: str | None, commits: Sequence[Run], invocation: Invocation
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


def last_reached(commits: Sequence[Run], cluster_id: str, what: str = OFFSETS) -> LastReached:
    """Return what these commits, in their order, reached: the last one of the cluster that says `what`."""
    ingests = [commit for commit in commits if guard_of(cluster_id) in commit.guards]
    sequence = ingests[-1].sequence if ingests else 0
    for commit in reversed(ingests):
        found = commit.reached(cluster_id)
        if what in found:
            offsets = {int(at): end for at, end in found.get(OFFSETS, {}).items()}
            return LastReached(offsets, found[TOPICS] if commit is ingests[-1] else None, sequence)
    return LastReached({}, None, sequence)


def gap_rows(spark: SparkSession, sources: Iterable[Mapping[str, Any]]) -> DataFrame | None:
    """Return rows of `coverage` (without the attempt) for gaps of a log, from its sources as `runs` describes them.

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
    """Raise Fault CLUSTER_DIFFERS if the configuration names another cluster than the one that answered."""
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
    """Read the records of a plan by the configured reader, or take those that are here; none without a range."""
    if not plan.stretches:
        return ()
    pieces, partitions = plan.pieces(PIECE_OFFSETS), [stretch.partition for stretch in plan.stretches]
    if reader is None:
        options, commits = java_options(resolved(source.options)), source.keeps_offset_commits
        java = Address(address_of(source).bootstrap, options, source.timeout_seconds)
        found = kafka_log.spark_frame(spark, java, plan.stretches, len(pieces))
        return (offsets_records.of_topic(found, source.place, state.cluster_id, partitions, offset_commits=commits),)
    if few is not None:
        stretches = spark.createDataFrame(few, kafka_log.FIELDS)
    else:
        stretches = kafka_log.frame(spark, reader, pieces, state.cluster_id)
    return (offsets_records.of_stretches(stretches, source.place, state.cluster_id, partitions),)


def topic_listing(
    spark: SparkSession, source: SourceSettings, cluster_id: str, topics: Iterable[TopicListing], now: datetime
) -> Rows:
    """Return the topics of a cluster as a listing of this moment."""
    lines = [listing_line(millis(now.astimezone(UTC)), *topic) for topic in topics]
    return topic_listings.of_lines(given_lines(spark, lines), source.place, cluster_id)


# May this user read a cluster's log? What is asked here is what an ingest asks, and a record or two are read.

_NAMED = 3
_GRANT = f"grant this user {RIGHTS_ENOUGH}"


def cluster_checks(source: SourceSettings, seconds: Callable[[], float]) -> Iterator[Check]:
    """Check whether the cluster answers, its log (of kind admin: its groups) may be read, and its topics be described.

    The first that fails is the last.
    """
    try:
        address = address_of(source)
        cluster = Cluster(address, seconds)
        described = cluster.described()
        yield Check("cluster", True, f"{described.cluster_id} at {address.bootstrap}: {len(described.nodes)} brokers")
        if source.kind == ADMIN:
            yield _groups(cluster)
            return
        state = cluster.state()
    except Fault as fault:
        yield _failed("cluster", fault)
        return
    yield _described(state.ends)
    yield from _read(address, state.ends)
    topics = f"{len(state.topics)} topics can be described; one that this user may not describe is not seen"
    yield Check("topics", True, topics, "" if state.topics else f"where there are topics, {_GRANT}")
    yield Check("rights that are enough", True, RIGHTS_ENOUGH)


def _groups(cluster: Cluster) -> Check:
    found, missing = cluster.groups()
    detail = f"{len(found)} groups can be described; {len(missing)} cannot; one that may not be listed is not seen"
    return Check(
        "groups", not missing, detail, f"grant this user Describe on {', '.join(missing[:3])}" if missing else ""
    )


def _described(ends: Mapping[int, LogEnds]) -> Check:
    if not ends:
        return Check("describe the log", True, f"there is no {TOPIC} yet: no group was ever there")
    offsets = sum(end - start for start, end in ends.values())
    return Check("describe the log", True, f"{TOPIC} has {len(ends)} partitions, {offsets:,} offsets")


def _read(address: Address, ends: Mapping[int, LogEnds]) -> Iterator[Check]:
    """Read the last offset of the first log partition that has any."""
    some = [OffsetRange(partition, end - 1, end) for partition, (start, end) in sorted(ends.items()) if start < end]
    if not some:
        return
    try:
        for _ in StretchReader(address, offset_commits=True).read(some[0]):
            pass
    except Fault as fault:
        yield _failed("read the log", fault)
    else:
        yield Check("read the log", True, f"{TOPIC} can be read, without a group")


def _failed(name: str, fault: Fault) -> Check:
    """Return the failed check: what a message says last, behind a semicolon, is what to do."""
    if fault.code == "KAFKA_NOT_ALLOWED":
        return Check(name, False, fault.message, _GRANT)
    what, _, remedy = fault.message.rpartition("; ")
    return Check(name, False, what or remedy, remedy if what else "see what it says")


# A cluster whose log may not be read: its groups as an admin client describes them, and its topics.

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
        """Return what `runs` keeps of it for the next ingest: the digest of the topics."""
        return {TOPICS: self.topics}

    @property
    def described(self) -> dict[str, Any]:
        """Describe what was read: after which commit, which groups, and how many have no snapshot, by why."""
        return {SINCE: self.since, GROUPS: self.digest, LEFT_OUT: dict(self.left_out)}

    @property
    def known(self) -> KnownUpTo:
        """Return up to when the groups are known: one that changed later may be described as it was before."""
        return KnownUpTo(self.asked)

    @property
    def is_empty(self) -> bool:
        """Return whether the cluster says nothing that the ledger lacks."""
        return self.snapshots is None and not self.listings


def read_described(
    spark: SparkSession,
    source: SourceSettings,
    named: str | None,
    commits: Sequence[Run],
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
    last, listed = last_reached(commits, cluster_id, TOPICS), digest(topics)
    listings = [] if listed == last.topics else [topic_listing(spark, source, cluster_id, topics, asked)]
    parts = [line.decode("utf-8", "surrogatepass") for line in (*lines.groups, *lines.members)]
    return DescribedReading(
        cluster_id, last.sequence, listed, snapshots, tuple(listings), left_out, digest(parts), asked
    )


def no_snapshots(cluster_id: str) -> Mapping[str, LastDescribed]:
    """Return that nothing is known of the groups of a cluster."""
    return {}


def last_snapshots(spark: SparkSession, location: LedgerLocation) -> LastSnapshots:
    """Return what finds each group's last snapshot from an admin client; it is asked only if needed."""

    def found(cluster_id: str) -> Mapping[str, LastDescribed]:
        prefix = f"{snapshot_tables.SOURCE_KIND}/{cluster_id}/"
        rows = current(spark, location, GROUP_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID).startswith(prefix + PREFIX))
        last = rows.groupBy(c.GROUP_ID).agg(F.max_by(c.SNAPSHOT_ID, c.OFFSET)).collect()
        return {group_id: described_in(snapshot_id.removeprefix(prefix)) for group_id, snapshot_id in last}

    return found
