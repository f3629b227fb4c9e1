"""Ledgers of generated groups, made by Spark: facts as an ingest would have left them, committed as a run of their own.

    crowd(spark, location, groups=100_000)      # groups of 5 members x 2 topics x 15 partitions
    skewed(spark, location)                     # 1,000 such groups, one of them of 2,000 members x 1M partitions

Each group is at a generation that one member just joined: the others claim all partitions between them, evenly, and
`recorded` is what cooperative-sticky answers to that. One snapshot a group; nothing was recorded before it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.config import AssignSettings, Config, LedgerSettings
from groupledger.pipeline.assign import assign
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks import attempts
from groupledger.sinks.append import append
from groupledger.sinks.ledger_tables import LedgerLocation, init
from groupledger.tables import ASSIGNMENTS, GROUP_HEADS, GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.tables import Table

CLUSTER = "bench"
OBSERVED = "2026-01-01 00:00:00"
GROUPS_A_TOPIC = 10
"""Of a crowd: so many groups share a topic, twice as many as it has topics to subscribe to."""

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Kind:
    """Groups that are alike: how many, of how many members, over how many topics of how many partitions each."""

    name: str
    groups: int
    members: int = 5
    topics: int = 2
    partitions: int = 15

    @property
    def pool(self) -> int:
        """Topics that exist for groups of this kind."""
        return max(self.topics, self.groups // GROUPS_A_TOPIC)


def crowd(spark: SparkSession, location: LedgerLocation, groups: int) -> None:
    """A ledger with the facts of so many small groups."""
    _fill(spark, location, (Kind("small", groups),))


def crowd_without_record(spark: SparkSession, location: LedgerLocation, groups: int) -> None:
    """The same groups, of which nobody knows what the leader answered."""
    kind = Kind("small", groups)
    _commit(spark, location, (kind,), _members(spark, kind))


def skewed(spark: SparkSession, location: LedgerLocation, partitions: int = 1_000_000) -> None:
    """A ledger of 999 small groups and one with 2,000 members and a million partitions in 2,000 topics."""
    _fill(spark, location, (Kind("small", 999), Kind("giant", 1, 2_000, 2_000, partitions // 2_000)))


def invocation() -> Invocation:
    """A call that never repeats another."""
    return Invocation(
        attempt_id=f"bench-{next(_numbers)}",
        now=lambda: datetime.now(UTC),
        seconds=time.perf_counter,
        run_id=f"bench-run-{next(_numbers)}",
    )


def configuration(location: LedgerLocation) -> Config:
    """What is computed over them: cooperative-sticky, as the record has it."""
    return Config(cluster_id=CLUSTER, ledger=LedgerSettings(location=location.path), assign=AssignSettings())


def _fill(spark: SparkSession, location: LedgerLocation, kinds: Sequence[Kind]) -> None:
    """Twice: without a record first, to learn what the record is to say."""
    draft = LedgerLocation(path=f"{location.path}-draft")
    members = _union([_members(spark, kind) for kind in kinds])
    _commit(spark, draft, kinds, members)
    assign(spark, configuration(draft), invocation())
    entry = "struct(cast(null as string) AS topic_id, a.topic AS topic, a.partitions AS partitions)"
    recorded = F.expr(f"transform(assigned, a -> {entry})").alias(c.RECORDED)
    answer = draft.rows(spark, ASSIGNMENTS).select(c.SNAPSHOT_ID, c.MEMBER_ID, recorded)
    _commit(spark, location, kinds, members.drop(c.RECORDED).join(answer, [c.SNAPSHOT_ID, c.MEMBER_ID]))


def _commit(spark: SparkSession, location: LedgerLocation, kinds: Sequence[Kind], members: DataFrame) -> None:
    init(spark, location)
    call = invocation()
    facts: dict[Table, DataFrame] = {
        TOPIC_SNAPSHOTS: _union([_topics(spark, kind) for kind in kinds]),
        GROUP_SNAPSHOTS: _union([_groups(spark, kind) for kind in kinds]),
        MEMBER_SNAPSHOTS: members,
    }
    attempt = attempts.Attempt(str(call.run_id), call.attempt_id, "ingest", {}, "", "", call.now())
    attempts.plan(spark, location, attempt)
    rows = {table.name: append(location, table, frame, call.attempt_id).rows for table, frame in facts.items()}
    told = {
        attempts.MOST_MEMBERS: max(kind.members for kind in kinds),
        GROUP_HEADS.name: sum(kind.groups for kind in kinds),
    }
    attempts.commit(spark, location, attempt, 0, attempts.Outcome({}, rows | told, "", "done", call.now()))


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return frames[0] if len(frames) == 1 else frames[0].unionByName(_union(frames[1:]))


def _topic_name(kind: Kind, number: Column) -> Column:
    return F.concat(F.lit(f"{kind.name}-topic-"), (number % kind.pool).cast("string"))


def _identity(kind: Kind) -> dict[str, Column]:
    group = F.col("id")
    return {
        c.SNAPSHOT_ID: F.concat(F.lit(f"log/{CLUSTER}/0/{kind.name}-"), group.cast("string")),
        c.CLUSTER_ID: F.lit(CLUSTER),
        c.GROUP_ID: F.concat(F.lit(f"{kind.name}-group-"), group.cast("string")),
        c.OFFSET: group,
    }


def _filled(frame: DataFrame, table: Table, values: dict[str, Column]) -> DataFrame:
    """The table's columns, the attempt apart; those without a value are null."""
    return frame.select(
        *(
            values.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name)
            for field in table.schema
            if field.name != c.ATTEMPT_ID
        )
    )


def _topics(spark: SparkSession, kind: Kind) -> DataFrame:
    values = {
        c.CLUSTER_ID: F.lit(CLUSTER),
        c.TOPIC: _topic_name(kind, F.col("id")),
        c.PARTITION_COUNT: F.lit(kind.partitions),
        c.VALID_FROM: F.lit("2025-01-01 00:00:00").cast("timestamp"),
    }
    return _filled(spark.range(kind.pool), TOPIC_SNAPSHOTS, values)


def _groups(spark: SparkSession, kind: Kind) -> DataFrame:
    own = F.transform(F.sequence(F.lit(0), F.lit(kind.topics - 1)), lambda at: _topic_name(kind, F.col("id") + at))
    values = _identity(kind) | {
        c.SOURCE: F.lit("log"),
        c.LOG_PARTITION: F.lit(0),
        c.GROUP_TYPE: F.lit("classic"),
        c.PROTOCOL_TYPE: F.lit("consumer"),
        c.INCARNATION: F.lit(0),
        c.SNAPSHOT_KIND: F.lit("generation"),
        c.GENERATION: F.lit(2),
        c.ASSIGNOR: F.lit("cooperative-sticky"),
        c.STATE: F.lit("Stable"),
        c.COMPLETE: F.lit(True),
        c.SHARED_TOPICS: own,
        c.MEMBERS: F.lit(kind.members),
        c.OBSERVED_AT: F.lit(OBSERVED).cast("timestamp"),
    }
    return _filled(spark.range(kind.groups), GROUP_SNAPSHOTS, values)


def _members(spark: SparkSession, kind: Kind) -> DataFrame:
    order = F.explode(F.sequence(F.lit(0), F.lit(kind.members - 1))).alias(c.MEMBER_ORDER)
    member, topic = F.col(c.MEMBER_ORDER), F.sequence(F.lit(0), F.lit(kind.topics - 1))
    claimed = F.filter(
        F.transform(topic, lambda at: _claim(kind, at, member)), lambda each: F.size(each.partitions) > 0
    )
    uuid = F.md5(F.concat_ws("/", F.col("id"), member))
    values = _identity(kind) | {
        c.MEMBER_ORDER: member,
        c.MEMBER_ID: F.concat(F.lit("consumer-"), member.cast("string"), F.lit("-"), uuid),
        c.CLIENT_ID: F.concat(F.lit("consumer-"), member.cast("string")),
        c.HOST: F.lit("/10.0.0.1"),
        c.SUBSCRIPTION_VERSION: F.lit(3),
        c.CLAIMED: F.when(member < kind.members - 1, claimed).otherwise(F.array().cast(claimed_type())),
        c.CLAIMED_GENERATION: F.lit(1),
        c.SUBSCRIPTION_GENERATION: F.lit(1),
        c.MEMBER_EPOCH: F.lit(None),
    }
    return _filled(spark.range(kind.groups).select("id", order), MEMBER_SNAPSHOTS, values)


def claimed_type() -> str:
    """The type of a claim in Spark's words."""
    return MEMBER_SNAPSHOTS.schema[c.CLAIMED].dataType.simpleString()


def _claim(kind: Kind, topic: Column, member: Column) -> Column:
    """Every `members - 1`th partition, counted through the topics, from the member's own place on."""
    others = kind.members - 1
    first = F.pmod(member - topic * kind.partitions, F.lit(others)).cast("int")
    none = F.array().cast("array<int>")
    partitions = F.when(
        first < kind.partitions, F.sequence(first, F.lit(kind.partitions - 1), F.lit(others))
    ).otherwise(none)
    return F.struct(
        F.lit(None).cast("string").alias("topic_id"),
        _topic_name(kind, F.col("id") + topic).alias("topic"),
        partitions.alias("partitions"),
    )
