"""Count offset commits in the JVM: of most of a log's records, the fold needs nothing but their number.

A commit is left out of the fold where it cannot matter there. It decodes, so that it is not quarantined; no other
record of its log partition has its offset, so that it is not part of a rewritten log; its group starts from its last
head, in one log partition, so that nothing is folded again and nothing is to be decided about the group's home. What
matters is where the group's last record is: its head says so. If that is a commit, one stands for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from groupledger.core.history import home_of, possible_counts
from groupledger.core.wire.codec import INT16
from groupledger.core.wire.offsets_log import LogKey, LogRecord, OffsetCommit, RecordKind, encode
from groupledger.pipeline.past import GROUP, Past, forgotten_ends
from groupledger.tables import GROUP_HEADS, LOG_RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


WORTH_TELLING = 50_000
"""Records of an ingest from which on its offset commits are told apart: fewer cost less than the two queries that it
takes."""

COMMITS, IS_COMMIT = "commits", "is_commit"
_LAST_OTHER, _LAST_TIME, _KEPT = "last_other_offset", "last_time", "kept"
_LONGEST_TEXT = 249
"""Bytes of the longest text that is told: of a topic's name in Kafka. A longer one, of metadata, is for the decoder."""
_LONGEST_COMPACT_TEXT = 126
_LONGEST_GROUP = (1 << 15) - 1
_LENGTHS = b"".join(map(INT16.pack, range(_LONGEST_TEXT + 2))).hex()
"""Every length as Kafka writes it: two bytes, cut from here, are compared where a number would have to be parsed."""
_NO_FIELDS, _TOPIC_ID = "X'00'", "X'010010'"
"""How the tagged fields of a commit of version 4 begin: there are none; one, numbered 0, of 16 bytes."""
_BLOCK_BITS = 6


@dataclass(frozen=True, slots=True)
class Spared:
    """The `records` of `log_records` that a fold has to see, and for each group that ends in a commit one that stands
    for it (`ends`).

    `commits`: by cluster, how many are left out, those that end a group among them.
    """

    records: DataFrame
    ends: DataFrame | None = None
    commits: Mapping[str, int] = field(default_factory=dict)


def told(records: DataFrame) -> DataFrame:
    """Add IS_COMMIT to rows of `log_records`: whether it is an offset commit that `offsets_log.decode` reads as one.

    Of versions 3 and 4: earlier ones were written up to Kafka 2.0, and with a time of expiry. They are for the decoder.
    """
    return records.withColumn(IS_COMMIT, F.expr(f"coalesce({_is_commit()}, false)"))


def extent_of_commits() -> list[Column]:
    """Aggregates of `told` records by group and log partition: number of commits, and what stands last."""
    return [
        F.count_if(IS_COMMIT).alias(COMMITS),
        F.max(F.when(~F.col(IS_COMMIT), F.col(c.OFFSET))).alias(_LAST_OTHER),
        F.max_by(c.TIMESTAMP, c.OFFSET).alias(_LAST_TIME),
    ]


def spared(new: DataFrame, extent: DataFrame, unsettled: DataFrame) -> Spared:
    """Leave the commits out of `new` records, but for `unsettled` groups and log partitions with an offset twice.

    `extent` has the aggregates of `extent_of_commits`; it is read several times, and `unsettled` (cluster and group)
    too, so they should be persisted.
    """
    twice = _offsets_twice(new)
    kept = unsettled.select(*GROUP)
    if twice:
        kept = kept.unionByName(extent.where(_at(twice)).select(*GROUP)).distinct()
    marked = extent.join(kept.withColumn(_KEPT, F.lit(True)), GROUP, "left").fillna(False, [_KEPT])
    counts = marked.where(F.col(COMMITS) > 0).groupBy(c.CLUSTER_ID, _KEPT).agg(F.sum(COMMITS)).collect()
    rows = told(new)
    records = rows.where(~F.col(IS_COMMIT))
    if any(is_kept for _, is_kept, _ in counts):
        records = records.unionByName(rows.where(IS_COMMIT).join(kept, GROUP, "left_semi"))
    left_out = {cluster_id: number for cluster_id, is_kept, number in counts if not is_kept}
    return Spared(records.drop(IS_COMMIT), _ends(marked.where(~F.col(_KEPT))), left_out)


def _offsets_twice(new: DataFrame) -> list[tuple[str, int]]:
    """The log partitions that have several records at one offset.

    Offsets are noted as bits of blocks: as many rows as offsets would have to be shuffled otherwise.
    """
    place = [c.CLUSTER_ID, c.LOG_PARTITION]
    bit = f"shiftleft(1L, cast({c.OFFSET} & {(1 << _BLOCK_BITS) - 1} AS int))"
    blocks = new.groupBy(*place, F.expr(f"shiftright({c.OFFSET}, {_BLOCK_BITS})")).agg(
        F.count(F.lit(1)).alias("records"), F.expr(f"bit_count(bit_or({bit}))").alias("offsets")
    )
    return sorted(blocks.where("records > offsets").select(*place).distinct().collect())


def _at(places: Sequence[tuple[str, int]]) -> Column:
    by_cluster: dict[str, list[int]] = {}
    for cluster_id, partition in places:
        by_cluster.setdefault(cluster_id, []).append(partition)
    found = F.lit(False)
    for cluster_id, partitions in by_cluster.items():
        found |= (F.col(c.CLUSTER_ID) == cluster_id) & F.col(c.LOG_PARTITION).isin(partitions)
    return found


def _ends(extent: DataFrame) -> DataFrame:
    """A commit at the last offset of each group that ends in one; any will do that decodes."""
    length = F.unhex(F.lpad(F.hex(F.octet_length(c.GROUP_ID)), 4, "0"))
    key, value = encode(
        LogRecord(
            LogKey(RecordKind.OFFSET_COMMIT, 1, "", {"topic": "", "partition": 0}),
            0,
            OffsetCommit(0, None, "", 0, None, None),
        )
    )
    is_last = F.coalesce(F.col(_LAST_OTHER) < F.col(LAST_OFFSET), F.lit(True))
    return extent.where(is_last & (F.col(COMMITS) > 0)).select(
        *GROUP,
        c.LOG_PARTITION,
        F.col(LAST_OFFSET).alias(c.OFFSET),
        F.col(_LAST_TIME).alias(c.TIMESTAMP),
        F.concat(F.lit(key[:2]), length, F.encode(c.GROUP_ID, "UTF-8"), F.lit(key[4:])).alias(c.KEY),
        F.lit(value).alias(c.VALUE),
    )


def _is_commit() -> str:
    """In SQL, since each part of a Column would cost calls into the JVM. HotSpot compiles no method of 8,000 bytes and
    more of code, and Spark makes one of all of it."""
    size, version = f"octet_length({c.VALUE})", f"substring({c.VALUE}, 1, 2)"
    third = _text(c.VALUE, "15", f"{size} - 24")
    fourth = f"{_flexible(f'{size} - 24', _NO_FIELDS)} OR {_flexible(f'{size} - 42', _TOPIC_ID)}"
    value = f"CASE {version} WHEN {_int16(3)} THEN {third} WHEN {_int16(4)} THEN {fourth} END"
    return f"substring({c.KEY}, 1, 2) = {_int16(1)} AND {_key()} AND {value}"


def _key() -> str:
    """Whether the key goes on with the group, a topic and a partition, and ends there."""
    group = f"octet_length({c.GROUP_ID})"
    topic = _text(c.KEY, f"{group} + 5", f"octet_length({c.KEY}) - {group} - 10")
    return f"{group} <= {_LONGEST_GROUP} AND {topic}"


def _text(of: str, at: str, size: str) -> str:
    """Whether a text of so many bytes stands at this position (from 1), behind its length in two bytes."""
    length = f"substring({of}, {at}, 2) = substring(X'{_LENGTHS}', 2 * ({size}) + 1, 2)"
    return f"(({size}) BETWEEN 0 AND {_LONGEST_TEXT} AND {length} AND {_is_utf8(of, f'{at} + 2', size)})"


def _flexible(size: str, tail: str) -> str:
    """Whether metadata of so many bytes stand where version 4 has them, and tagged fields begin as `tail` behind."""
    value = c.VALUE
    length = f"substring({value}, 15, 1) = substring(X'{_LENGTHS}', 2 * ({size}) + 4, 1)"
    tagged = f"substring({value}, 24 + ({size}), octet_length({tail})) = {tail}"
    return (
        f"(({size}) BETWEEN 0 AND {_LONGEST_COMPACT_TEXT} AND {length} AND {tagged} AND {_is_utf8(value, '16', size)})"
    )


def _is_utf8(of: str, at: str, size: str) -> str:
    return f"(({size}) = 0 OR is_valid_utf8(cast(substring({of}, {at}, {size}) AS string)))"


def _int16(number: int) -> str:
    return f"X'{INT16.pack(number).hex()}'"


# Which log partition is the home of a group whose records stand in several.
#
# Rare, so it costs nothing where there is no such group: a group is looked at where its new records are in another log
# partition than its last head, or where an earlier ingest quarantined strays of it, since each ingest may add to the
# evidence. What `core.history.fold` decides rests on all records known, whichever ingest brought them.

MOST_WITNESSES = 10_000
"""Groups of a cluster, the first by id, that the number of its log partitions is inferred from."""

FIRST_OFFSET, LAST_OFFSET, NEWEST, RECORDS = "first_offset", "last_offset", "newest", "records"
HOME = "home"
GroupName = tuple[str, str]


class LastHead(NamedTuple):
    """The last head of a group, and the offset of its first one."""

    log_partition: int
    offset: int
    attempt_id: str
    earliest: int


def homes(past: Past, touched: DataFrame, contested: Mapping[GroupName, LastHead | None]) -> dict[GroupName, int]:
    """The home of each contested group. `touched`: records of the new input by group and log partition.

    A group of which records were removed by retention or redaction stays where it is: what they said could not be
    folded again, and the records that are left are no evidence.
    """
    ends = forgotten_ends(past.commits)
    fixed = {
        name: head.log_partition
        for name, head in contested.items()
        if head is not None and ends.get(f"{name[0]}/{head.log_partition}", -1) >= head.earliest
    }
    open_groups = sorted(contested.keys() - fixed.keys())
    if not open_groups:
        return fixed
    records = _records(past, touched, open_groups)
    possible = {
        cluster: (past.stated[cluster],)
        if cluster in past.stated
        else possible_counts(_witnesses(past, touched, cluster, contested.keys()))
        for cluster in sorted({cluster for cluster, _ in open_groups})
    }
    return fixed | {name: home_of(name[1], records[name], possible[name[0]]) for name in open_groups}


def _records(past: Past, touched: DataFrame, groups: Sequence[GroupName]) -> Mapping[GroupName, Mapping[int, int]]:
    """Number of records of each group by log partition, old and new."""
    new = touched.select(*GROUP, c.LOG_PARTITION, RECORDS)
    counted = [new]
    if not past.empty:
        old = past.current(LOG_RECORDS).groupBy(*GROUP, c.LOG_PARTITION).agg(F.count(F.lit(1)).alias(RECORDS))
        counted.append(old)
    wanted = F.broadcast(touched.sparkSession.createDataFrame(list(groups), _schema(*GROUP)))
    found: defaultdict[GroupName, dict[int, int]] = defaultdict(dict)
    for rows in counted:
        for cluster, group, partition, number in rows.join(wanted, GROUP, "left_semi").collect():
            by_partition = found[cluster, group]
            by_partition[partition] = by_partition.get(partition, 0) + number
    return found


def _witnesses(
    past: Past, touched: DataFrame, cluster_id: str, contested: Iterable[GroupName]
) -> list[tuple[str, int]]:
    """Groups of the cluster that were seen in one log partition only, and which one."""
    seen = touched.select(*GROUP, c.LOG_PARTITION)
    if not past.empty:
        seen = seen.union(past.current(GROUP_HEADS).select(*GROUP, c.LOG_PARTITION))
    here = seen.where((F.col(c.CLUSTER_ID) == cluster_id) & F.col(c.GROUP_ID).isNotNull())
    names = [(group,) for cluster, group in contested if cluster == cluster_id]
    others = here.join(
        F.broadcast(touched.sparkSession.createDataFrame(names, _schema(c.GROUP_ID))), c.GROUP_ID, "left_anti"
    )
    rows = others.groupBy(c.GROUP_ID).agg(F.min(c.LOG_PARTITION)).sort(c.GROUP_ID).limit(MOST_WITNESSES)
    return [(group, partition) for group, partition in rows.collect()]


def _schema(*names: str) -> str:
    return ", ".join(f"{name} string" for name in names)
