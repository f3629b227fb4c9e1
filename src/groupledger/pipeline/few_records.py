"""Few new records of running clusters, taken without a Spark job: the driver does what tasks do with many.

The fold is the same one, and so are files, digests and commits. That serves where nothing but the new records and the
last heads of their groups is looked at: in a ledger on a local path, offsets behind all that were read before, and each
group in one log partition, that of its last head. Everything else is left to Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.history import FoldSettings, TopicChange, TopicHistory
from groupledger.core.log.read_plan import united
from groupledger.core.moments import micros
from groupledger.engine.arrow_lists import tuples
from groupledger.engine.classic.column_fold import Start
from groupledger.engine.fold_schema import FILLED, GROUP_KEY, RECORD
from groupledger.engine.fold_slices import NO_TOPICS, ORDER, KeyedGroup, fold_records
from groupledger.pipeline.cluster import ClusterReading
from groupledger.pipeline.enveloped import Enveloped, files_of
from groupledger.pipeline.fold_input import GroupName
from groupledger.pipeline.invocation import RECORDS, ROWS
from groupledger.pipeline.past import Past, forgotten_ends
from groupledger.sinks import ledger_tables
from groupledger.sinks.location import WriteConflict, verified_rows
from groupledger.sources.offsets_records import without_spark
from groupledger.sources.opening import ENTRIES, NUMBER, PROBLEM
from groupledger.tables import GROUP_HEADS, LOG_RECORDS, TOPIC_SNAPSHOTS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.config import MaintainSettings
    from groupledger.engine.envelope import FilesOfAttempt
    from groupledger.pipeline.reading import Reading
    from groupledger.sinks.ledger_tables import LedgerLocation


FactRow = dict[str, Any]
MOST_GROUPS = 1_000
"""Groups whose heads are asked for by name."""


@dataclass(frozen=True, slots=True)
class FewRecords:
    """Rows of `log_records` without the attempt, where their groups start, and the topics of their clusters.

    `read`: by cluster, what was read (`kafka_records.BATCH`).
    """

    read: Mapping[str, pa.Table]
    rows: pa.Table
    starts: Mapping[KeyedGroup, Start]
    topics: Mapping[str, TopicHistory]
    files: FilesOfAttempt

    def kept(self) -> Enveloped:
        """Write the records as they were read."""
        return Enveloped.in_files({LOG_RECORDS.name: self.rows} if len(self.rows) else {}, [], self.files)

    def folded(self) -> Enveloped:
        """Fold them, and write what comes of it."""
        new = _with_millis(self.rows).append_column(GROUP_KEY, self.rows[c.GROUP_ID].cast(pa.binary()))
        new = new.append_column(c.KIND, pa.array([RECORD] * len(new)))
        ordered = new.sort_by([(name, "ascending") for name in ORDER])
        topics = {cluster_id: self.topics.get(cluster_id, NO_TOPICS) for cluster_id in self.read}
        found = fold_records(ordered, self.starts, topics, FoldSettings()).folded()
        return Enveloped.in_files(found.tables, found.counts, self.files)

    def counts(self) -> Counter[str]:
        """Return what was read, for the clusters' accounts."""
        found = Counter[str]()
        for cluster_id, read in self.read.items():
            kinds = zip(read[PROBLEM].to_pylist(), read[NUMBER].to_pylist(), strict=True)
            for kind, number in kinds:
                if kind is None:
                    found[f"{cluster_id}/{RECORDS}"] += 1
                elif kind == ENTRIES:
                    found[f"{cluster_id}/{ROWS}"] += number
                elif number:
                    found[f"{cluster_id}/{RECORDS}"] += number
                    found[f"{cluster_id}/unused.{kind}"] += number
        return found

    def extents(self) -> list[tuple[Any, ...]]:
        """Cluster, log partition, first and last offset, and the newest time (ms) of what is kept."""
        columns = [(c.OFFSET, "min"), (c.OFFSET, "max"), (c.TIMESTAMP, "max")]
        found = _with_millis(self.rows).group_by([c.CLUSTER_ID, c.LOG_PARTITION]).aggregate(columns)
        names = c.CLUSTER_ID, c.LOG_PARTITION, *("_".join(each) for each in columns)
        return sorted(tuples(found, *names))

    def newest(self) -> Iterator[tuple[str, int, int]]:
        """Yield the time (ms) of the newest record of each range, those that were left out among them."""
        for cluster_id, read in self.read.items():
            for row in read.filter(pc.equal(read[PROBLEM], ENTRIES)).to_pylist():
                if row[c.TIMESTAMP] is not None:
                    yield cluster_id, row[c.PARTITION], row[c.TIMESTAMP]


def few_records(past: Past, reading: Reading, max_record_bytes: int, attempt_id: str) -> FewRecords | None:
    """Return all that an ingest takes, if it is of this kind; None: Spark has to take it."""
    clusters = [each.cluster for each in reading.sources]
    read = {
        each.cluster_id: each.few
        for each in clusters
        if isinstance(each, ClusterReading) and each.few is not None and not (each.listings or each.plan.gaps)
    }
    if len(read) < len(clusters) or past.met_strays:
        return None
    found = [without_spark(few, cluster_id, max_record_bytes) for cluster_id, few in read.items()]
    tables = [each for each in found if each is not None]
    if len(tables) < len(found) or not _are_new(past, rows := pa.concat_tables(tables)):
        return None
    files = files_of(past.spark, past.location, (LOG_RECORDS, *FILLED), attempt_id)
    if files is None or (topics := _topics(past, list(read))) is None or (starts := _starts(past, rows)) is None:
        return None
    return FewRecords(read, rows, starts, topics, files)


def _are_new(past: Past, rows: pa.Table) -> bool:
    """Whether each offset lies behind all that earlier ingests read, or passed over, of its log partition."""
    reads = past.reads()
    if reads is None:
        return False
    gone = forgotten_ends(past.commits)
    last = {place: ranges[-1][1] for place, ranges in united(reads.values()).items()}
    firsts = rows.group_by([c.CLUSTER_ID, c.LOG_PARTITION]).aggregate([(c.OFFSET, "min")])
    return all(
        first > max(last.get((cluster_id, partition), -1), gone.get(f"{cluster_id}/{partition}", -1))
        for first, cluster_id, partition in tuples(firsts, f"{c.OFFSET}_min", c.CLUSTER_ID, c.LOG_PARTITION)
    )


def _starts(past: Past, rows: pa.Table) -> dict[KeyedGroup, Start] | None:
    """Where the groups of these rows start; None where one has records in several log partitions, or they are many."""
    of_groups = rows.filter(pc.is_valid(rows[c.GROUP_ID])).group_by([c.CLUSTER_ID, c.GROUP_ID, c.LOG_PARTITION])
    places = list(tuples(of_groups.aggregate([]), c.CLUSTER_ID, c.GROUP_ID, c.LOG_PARTITION))
    homes = {(cluster_id, group_id): partition for cluster_id, group_id, partition in places}
    if len(homes) < len(places) or len(homes) > MOST_GROUPS:
        return None
    heads = _last_heads(past, homes.keys())
    if heads is None or any(head[c.LOG_PARTITION] != homes[name] for name, head in heads.items()):
        return None
    attempts = {head[c.ATTEMPT_ID] for head in heads.values()}
    condition = _is_in(c.GROUP_ID, {group_id for _, group_id in heads}) & _is_in(c.ATTEMPT_ID, attempts)
    found = _rows(past, GROUP_HEADS, (c.CLUSTER_ID, c.GROUP_ID, c.ATTEMPT_ID, c.STATE), condition, attempts)
    if found is None:
        return None
    states = {(row[c.CLUSTER_ID], row[c.GROUP_ID], row[c.ATTEMPT_ID]): row[c.STATE] for row in found}
    return {
        (cluster_id, group_id.encode()): Start(
            states[cluster_id, group_id, head[c.ATTEMPT_ID]], refolded=False, log_partition=head[c.LOG_PARTITION]
        )
        for (cluster_id, group_id), head in heads.items()
    }


def _last_heads(past: Past, groups: Collection[GroupName]) -> dict[GroupName, FactRow] | None:
    """Return the last head of each of these groups; one that was folded again has no later head of before."""
    numbers = {commit.attempt_id: commit.sequence for commit in past.commits}

    def place(head: FactRow) -> tuple[int, int]:
        return head[c.OFFSET], numbers[head[c.ATTEMPT_ID]]

    columns = c.CLUSTER_ID, c.GROUP_ID, c.LOG_PARTITION, c.OFFSET, c.ATTEMPT_ID
    rows = _rows(past, GROUP_HEADS, columns, _is_in(c.GROUP_ID, {group_id for _, group_id in groups}))
    if rows is None:
        return None
    found: dict[GroupName, FactRow] = {}
    for row in sorted((row for row in rows if row[c.ATTEMPT_ID] in numbers), key=place):
        if (name := (row[c.CLUSTER_ID], row[c.GROUP_ID])) in groups:
            found[name] = row
    return found


def _topics(past: Past, clusters: list[str]) -> dict[str, TopicHistory] | None:
    """Return the topics of each of these clusters."""
    attempts = [commit.attempt_id for commit in past.commits]
    columns = c.CLUSTER_ID, c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, c.VALID_FROM
    condition = _is_in(c.CLUSTER_ID, clusters) & _is_in(c.ATTEMPT_ID, attempts)
    rows = _rows(past, TOPIC_SNAPSHOTS, columns, condition)
    if rows is None:
        return None
    changes: dict[str, list[TopicChange]] = {cluster_id: [] for cluster_id in clusters}
    for row in rows:
        state = row[c.TOPIC], row[c.TOPIC_ID], row[c.PARTITION_COUNT], None  # the fold has no use for racks
        changes[row[c.CLUSTER_ID]].append(TopicChange(*state, micros(row[c.VALID_FROM])))
    return {cluster_id: TopicHistory(found) for cluster_id, found in changes.items()}


def _rows(
    past: Past, table: Table, columns: Sequence[str], condition: Any, attempts: Collection[str] | None = None
) -> list[FactRow] | None:
    """Rows of a table as `verified_rows` gives them."""
    folder = past.location.folder(past.spark, table)
    return None if folder is None else verified_rows(folder, columns, condition, attempts)


def _is_in(column: str, values: Collection[str]) -> Any:
    return pc.field(column).isin(pa.array(sorted(values), pa.string()))


def _with_millis(rows: pa.Table) -> pa.Table:
    """Rows of `log_records` with their times as the fold takes them."""
    millis = rows[c.TIMESTAMP].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    return rows.set_column(rows.column_names.index(c.TIMESTAMP), c.TIMESTAMP, millis)


# Bring the small files of tables together where they have become many, so that a follower needs no upkeep.

MOST_FILES = 64
"""Small files of a table beyond which an ingest gathers them: seconds in every 64th, where each would open them all."""
GATHERED = (LOG_RECORDS, TOPIC_SNAPSHOTS, *FILLED)
"""Tables to which an ingest adds files."""


def gather(spark: SparkSession, location: LedgerLocation, settings: MaintainSettings) -> None:
    """Gather the small files of each table that has too many.

    Each is a commit of its own, which changes no row; where others write at that moment, a later ingest does it. What
    no reader can need any longer is then removed.
    """
    for table in GATHERED:
        if ledger_tables.small_files(spark, location, table, settings.file_mb) > MOST_FILES:
            with suppress(WriteConflict):
                ledger_tables.gather(spark, location, table, settings.file_mb)
                ledger_tables.vacuum(spark, location, table, settings.vacuum_hours)
