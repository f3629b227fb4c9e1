"""Declare the facts: what Kafka's coordinator recorded, and what could not be read. Never a result of ours.

A snapshot's identity is its position, `snapshot_id` = `log/<cluster>/<log partition>/<offset>`: a group and a
generation are no key, since a static member replaced in a stable group rewrites the record in the same generation.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    TimestampType,
)

from groupledger.tables import columns as c
from groupledger.tables.declaration import (
    STRING_LIST,
    TASKS,
    TOPIC_ID_PARTITIONS,
    AtLeast,
    Table,
    TableConstraint,
    added_in,
    column,
    counts,
    known,
    rules,
    table,
)

ATTEMPT = column(
    c.ATTEMPT_ID, StringType(), "attempt that wrote the row; it counts once `runs` commits the attempt", required=True
)
CLUSTER = column(c.CLUSTER_ID, StringType(), "cluster, as configured", required=True)
GROUP = column(c.GROUP_ID, StringType(), "consumer group", required=True)
SNAPSHOT = column(
    c.SNAPSHOT_ID, StringType(), "position of the snapshot: source kind/cluster/log partition/offset", required=True
)

LOG_RECORDS = table(
    "log_records",
    "Records of __consumer_offsets as read, once for each position and content.",
    CLUSTER,
    column(c.LOG_PARTITION, IntegerType(), "partition of __consumer_offsets", required=True),
    column(c.OFFSET, LongType(), "offset in the log partition", required=True),
    column(c.TIMESTAMP, TimestampType(), "timestamp of the record"),
    column(c.GROUP_ID, StringType(), "group named by the key; null where the key does not decode"),
    column(c.KEY, BinaryType(), "key bytes"),
    column(c.VALUE, BinaryType(), "value bytes; null is a tombstone"),
    column(
        c.LEADER_EPOCH,
        IntegerType(),
        "leader epoch of the record's batch (KIP-101), where the source has it: segments, the Kafka client",
    ),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    added=added_in(6, c.LEADER_EPOCH),
    checks=(counts("position", c.LOG_PARTITION, c.OFFSET),),
)

GROUP_SNAPSHOTS = table(
    "group_snapshots",
    "State of a group at a position: every generation, rewrite, and fold of a group that its coordinator assigns.",
    SNAPSHOT,
    CLUSTER,
    column(c.SOURCE, StringType(), "log, admin or table", required=True),
    column(c.LOG_PARTITION, IntegerType(), "partition of __consumer_offsets; null outside the log"),
    column(c.OFFSET, LongType(), "offset of the record that completed the snapshot", required=True),
    GROUP,
    column(c.GROUP_TYPE, StringType(), "classic, consumer (KIP-848), share or streams", required=True),
    column(c.PROTOCOL_TYPE, StringType(), "protocol type of a classic group: consumer, connect, ..."),
    column(
        c.INCARNATION,
        IntegerType(),
        "grows after a tombstone, a falling generation, a change of type (not where it converts)",
        required=True,
    ),
    column(c.SNAPSHOT_KIND, StringType(), "birth, generation, rewrite, empty, deleted, fold", required=True),
    column(c.GENERATION, IntegerType(), "generation of a classic group"),
    column(c.GROUP_EPOCH, IntegerType(), "group epoch (KIP-848, share, streams)"),
    column(c.TARGET_EPOCH, IntegerType(), "target assignment epoch (KIP-848, share, streams)"),
    column(c.ASSIGNOR, StringType(), "assignor as recorded: the selected protocol, or the server-side assignor"),
    column(c.LEADER, StringType(), "member id of the leader (classic)"),
    column(c.STATE, StringType(), "Stable, Empty, Dead, Reconciling", required=True),
    column(
        c.COMPLETE,
        BooleanType(),
        "false: cut by compaction or the end of a read; no verdict rests on it",
        required=True,
    ),
    column(c.SHARED_TOPICS, STRING_LIST, "subscription that all members share, in their order; null where they differ"),
    column(c.SUBSCRIBED_TOPICS, STRING_LIST, "all subscribed topics, sorted; null where shared_topics says it"),
    column(c.MEMBERS, IntegerType(), "number of members", required=True),
    column(c.PREVIOUS_SNAPSHOT_ID, StringType(), "snapshot before, of the same incarnation"),
    column(c.FIRST_SNAPSHOT_ID, StringType(), "of a rewrite: the first snapshot of its generation"),
    column(c.OBSERVED_AT, TimestampType(), "timestamp of the record; order is by offset, never by this", required=True),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    checks=(known(c.GROUP_TYPE, "classic", "consumer", "share", "streams"), counts("counts", c.OFFSET, c.MEMBERS)),
)

MEMBER_SNAPSHOTS = table(
    "member_snapshots",
    "The members of each group snapshot: what they said, and what the coordinator recorded for them.",
    SNAPSHOT,
    CLUSTER,
    GROUP,
    column(c.OFFSET, LongType(), "offset of the snapshot", required=True),
    column(
        c.MEMBER_ORDER,
        IntegerType(),
        "place in the JoinGroup response, from 0: an input of the sticky assignors",
        required=True,
    ),
    column(c.MEMBER_ID, StringType(), "member id", required=True),
    column(c.GROUP_INSTANCE_ID, StringType(), "group.instance.id of a static member"),
    column(c.CLIENT_ID, StringType(), "client.id"),
    column(c.HOST, StringType(), "host of the client"),
    column(c.RACK_ID, StringType(), "client.rack (KIP-881)"),
    column(c.SUBSCRIPTION_VERSION, IntegerType(), "version of ConsumerProtocolSubscription"),
    column(c.TOPICS, STRING_LIST, "subscription in the member's order; null where the group shares one"),
    column(
        c.CLAIMED,
        TOPIC_ID_PARTITIONS,
        "partitions the member said it owned, in subscription or, under sticky, user data; null: said nothing. Kafka's "
        "own sticky assignor takes none of them where user_data begins with kafka-python's bytes 0001",
    ),
    column(
        c.CLAIMED_GENERATION,
        IntegerType(),
        "generation of the claim: the user data's, else the subscription's (not under sticky). Kafka's own "
        "cooperative-sticky decides by subscription_generation, else by the first int32 of user_data",
    ),
    column(c.SUBSCRIPTION_GENERATION, IntegerType(), "generation field of the subscription (KIP-792, v2+)"),
    column(c.USER_DATA, BinaryType(), "user data of the subscription, as sent"),
    column(
        c.RECORDED,
        TOPIC_ID_PARTITIONS,
        "assignment the coordinator recorded: the leader's answer, or what the member holds (KIP-848, share); of a "
        "streams group what its active tasks read, as far as topics are known",
    ),
    column(c.TARGET, TOPIC_ID_PARTITIONS, "target assignment (KIP-848, share, streams)"),
    column(c.PENDING_REVOCATION, TOPIC_ID_PARTITIONS, "partitions the member must still give up (KIP-848, streams)"),
    column(c.MEMBER_EPOCH, IntegerType(), "member epoch (KIP-848, share, streams)"),
    column(c.PREVIOUS_MEMBER_EPOCH, IntegerType(), "member epoch before, which a member whose answer was lost repeats"),
    column(
        c.MEMBER_STATE,
        StringType(),
        "STABLE; UNREVOKED_PARTITIONS: has some to give up; UNRELEASED_PARTITIONS: waits for others (streams: _TASKS)",
    ),
    column(c.SUBSCRIBED_REGEX, StringType(), "regular expression the member subscribes by; topics has what it matched"),
    column(
        c.TASKS,
        TASKS,
        "tasks of a streams member by role (active, standby, warmup) and state (assigned, pending-revocation, target)",
    ),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    checks=(counts("position", c.OFFSET, c.MEMBER_ORDER),),
    added=added_in(4, c.PREVIOUS_MEMBER_EPOCH, c.MEMBER_STATE, c.SUBSCRIBED_REGEX, c.TASKS),
)

TOPIC_SNAPSHOTS = table(
    "topic_snapshots",
    "Changes of topics: created, partitions added, deleted. A name used again after a deletion has another topic_id.",
    CLUSTER,
    column(c.TOPIC_ID, StringType(), "topic id, Kafka's base64 text; null where the source gives none"),
    column(c.TOPIC, StringType(), "topic name", required=True),
    column(c.PARTITION_COUNT, IntegerType(), "partitions from valid_from on; null: the topic was deleted"),
    column(c.RACKS, ArrayType(ArrayType(StringType())), "racks of the replicas of each partition; null where unknown"),
    column(c.VALID_FROM, TimestampType(), "when the source first showed this state", required=True),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.TOPIC),
    checks=(counts(c.PARTITION_COUNT, c.PARTITION_COUNT, or_null=True),),
)

OWNERSHIP_CHANGES = table(
    "ownership_changes",
    "Partitions that changed hands, as the coordinator recorded it. Answers who was assigned a partition at a time.",
    CLUSTER,
    column(c.TOPIC_ID, StringType(), "topic id where known"),
    column(c.TOPIC, StringType(), "topic name; null where only the id is known"),
    column(c.PARTITION, IntegerType(), "partition", required=True),
    GROUP,
    column(c.INCARNATION, IntegerType(), "incarnation of the group", required=True),
    column(c.FROM_MEMBER_ID, StringType(), "member that had it; null: nobody"),
    column(c.TO_MEMBER_ID, StringType(), "member that has it now; null: nobody"),
    column(c.AT, TimestampType(), "timestamp of the record", required=True),
    column(c.LOG_PARTITION, IntegerType(), "partition of __consumer_offsets"),
    column(c.OFFSET, LongType(), "offset of the record", required=True),
    SNAPSHOT,
    column(c.HELD_SINCE, TimestampType(), "since when from_member_id had it; null where history does not reach back"),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.TOPIC, c.PARTITION),
    checks=(counts("position", c.PARTITION, c.OFFSET),),
)

GROUP_HEADS = table(
    "group_heads",
    "The folded state of each group an ingest touched, from which the next ingest goes on.",
    CLUSTER,
    GROUP,
    column(c.LOG_PARTITION, IntegerType(), "partition of __consumer_offsets", required=True),
    column(
        c.FROM_OFFSET,
        LongType(),
        "the attempt folded the group's records after this offset; -1: from the beginning",
        required=True,
    ),
    column(c.OFFSET, LongType(), "last offset folded in", required=True),
    column(c.INCARNATION, IntegerType(), "incarnation at that offset", required=True),
    column(
        c.REFOLDED,
        BooleanType(),
        "true: supersedes facts of earlier attempts after from_offset (late data)",
        required=True,
    ),
    column(c.STATE, BinaryType(), "the state, in core.history's canonical encoding", required=True),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    checks=(rules("offsets", AtLeast(c.FROM_OFFSET, -1), AtLeast(c.OFFSET, c.FROM_OFFSET)),),
)

COVERAGE = table(
    "coverage",
    "Gaps of the history: generations or epochs the log does not hold. A gap is normal, and no proof of loss.",
    CLUSTER,
    GROUP,
    column(c.INCARNATION, IntegerType(), "incarnation of the group", required=True),
    column(
        c.KIND, StringType(), "history-begins-late, generations-skipped, epochs-skipped, fold-cut, ...", required=True
    ),
    column(c.FROM_VALUE, LongType(), "last generation or epoch before the gap; null: none was seen"),
    column(c.TO_VALUE, LongType(), "first generation or epoch after the gap; null: the history ends here"),
    column(c.REASON, StringType(), "why it matters, for a person", required=True),
    column(c.OFFSET, LongType(), "offset of the record after the gap", required=True),
    SNAPSHOT,
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
)

QUARANTINE = table(
    "quarantine",
    "Rejected input, with the reason and the bytes or the row: nothing is lost.",
    column(c.STAGE, StringType(), "decode, fold, topics, tables or assign", required=True),
    column(c.SOURCE, StringType(), "file, table or topic it came from", required=True),
    column(c.CLUSTER_ID, StringType(), "cluster"),
    column(c.LOG_PARTITION, IntegerType(), "partition of __consumer_offsets"),
    column(c.OFFSET, LongType(), "offset"),
    column(c.GROUP_ID, StringType(), "group, where known"),
    column(c.SNAPSHOT_ID, StringType(), "snapshot, where it got that far"),
    column(c.CODE, StringType(), "code, for counting", required=True),
    column(c.MESSAGE, StringType(), "what, got, expected, what to do", required=True),
    column(c.KEY, BinaryType(), "key bytes"),
    column(c.VALUE, BinaryType(), "value bytes"),
    column(c.ROW, StringType(), "the row as text, where the input was no log record"),
    ATTEMPT,
    checks=(known(c.STAGE, "decode", "fold", "topics", "tables", "assign"),),
)


# Declare the form of users' own snapshot tables: required columns, and defaults for the others.

OWNED, RACK = "owned", "rack"
MEMBERSHIP_AS_IS = (c.MEMBER_ORDER, c.GROUP_INSTANCE_ID, c.CLIENT_ID, c.HOST, c.USER_DATA)
"""Columns of memberships that are columns of `member_snapshots` too."""


@dataclass(frozen=True, slots=True)
class GivenForm:
    """A table as users give it. `filled` says what a column becomes that is not given, or null; any other stays null.

    `ours` are columns that are never read from users.
    """

    table: Table
    required: tuple[str, ...]
    filled: dict[str, str]
    ours: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Return every column that a user may provide."""
        return [name for name in self.table.columns if name not in self.ours]


GROUPS = GivenForm(
    GROUP_SNAPSHOTS,
    required=(c.SNAPSHOT_ID, c.GROUP_ID, c.OBSERVED_AT),
    filled={
        c.OFFSET: "the microseconds of observed_at",
        c.CLUSTER_ID: "the configured cluster",
        c.GROUP_TYPE: "classic",
        c.PROTOCOL_TYPE: "consumer",
        c.INCARNATION: "0",
        c.SNAPSHOT_KIND: "generation",
        c.STATE: "Stable",
        c.COMPLETE: "true",
        c.SUBSCRIBED_TOPICS: "the members' topics, where shared_topics is not given",
        c.MEMBERS: "the number of member rows",
        c.PREVIOUS_SNAPSHOT_ID: "when it is read: the one before by offset, of the same group and incarnation",
    },
    ours=(c.SOURCE, c.LOG_PARTITION, c.ATTEMPT_ID),
)
MEMBERS = GivenForm(
    MEMBER_SNAPSHOTS,
    required=(c.SNAPSHOT_ID, c.MEMBER_ID),
    filled={c.MEMBER_ORDER: "the place by member_id: sticky results may then differ from Kafka's"},
    ours=(c.CLUSTER_ID, c.GROUP_ID, c.OFFSET, c.TASKS, c.ATTEMPT_ID),
)
TOPICS = GivenForm(
    TOPIC_SNAPSHOTS,
    required=(c.TOPIC, c.PARTITION_COUNT, c.VALID_FROM),
    filled={c.CLUSTER_ID: "the configured cluster"},
    ours=(c.ATTEMPT_ID,),
)
MEMBERSHIPS = GivenForm(
    table(
        "memberships",
        "A row a member of a group at a moment.",
        column(c.CLUSTER_ID, StringType(), "cluster"),
        column(c.GROUP_ID, StringType(), "group"),
        column(c.OBSERVED_AT, TimestampType(), "moment; the members of a group at one moment are a snapshot"),
        column(c.MEMBER_ID, StringType(), "member id"),
        column(c.TOPICS, STRING_LIST, "topics that it subscribes to"),
        column(OWNED, TOPIC_ID_PARTITIONS, "partitions that it has at that moment"),
        column(c.GENERATION, IntegerType(), "generation in which it has them"),
        column(RACK, StringType(), "client.rack"),
        *(MEMBER_SNAPSHOTS.schema[name] for name in MEMBERSHIP_AS_IS),
        column(c.ASSIGNOR, StringType(), "assignor of the group, in all rows of a snapshot or in none"),
    ),
    required=(c.GROUP_ID, c.OBSERVED_AT, c.MEMBER_ID, c.TOPICS),
    filled={
        c.CLUSTER_ID: "the configured cluster",
        OWNED: "who has which partition is not known",
        c.MEMBER_ORDER: MEMBERS.filled[c.MEMBER_ORDER],
    },
    ours=(),
)
"""Members of groups at moments, without ids and offsets."""
TOPIC_COUNTS = GivenForm(
    table(
        "topics",
        "A row a topic of the memberships.",
        column(c.CLUSTER_ID, StringType(), "cluster"),
        column(c.OBSERVED_AT, TimestampType(), "from when on"),
        column(c.TOPIC, StringType(), "topic name"),
        column(c.PARTITIONS, IntegerType(), "number of partitions"),
        *(TOPIC_SNAPSHOTS.schema[name] for name in (c.RACKS, c.TOPIC_ID)),
    ),
    required=(c.TOPIC, c.PARTITIONS),
    filled={
        c.CLUSTER_ID: "the configured cluster",
        c.OBSERVED_AT: "always; of a count that changes, since the newest membership of that run",
    },
    ours=(),
)
FORMS = (GROUPS, MEMBERS, TOPICS)


# Declare the commit marker: an attempt's rows count once its `committed` row is in this table.

COUNTS = MapType(StringType(), LongType(), valueContainsNull=False)

RUNS = table(
    "runs",
    "Attempts: `planned` before any row is written, `committed` once, last and by compare-and-set.",
    column(c.RUN_ID, StringType(), "from the orchestrator, or derived from the input", required=True),
    column(c.ATTEMPT_ID, StringType(), "UUID of the attempt, stamped on every row it writes", required=True),
    column(
        c.KIND,
        StringType(),
        "ingest, nothing-new (an ingest that found nothing), assign, callbacks or maintain",
        required=True,
    ),
    column(
        c.STATUS,
        StringType(),
        "planned, committed, given-up (it can no longer commit), or leased (a maintain at work)",
        required=True,
    ),
    column(c.SEQUENCE, LongType(), "order of commits, from 1; null while planned"),
    column(
        c.GUARDS,
        STRING_LIST,
        "what no two attempts may commit side by side, such as dev/log: the later one starts again",
        required=True,
    ),
    column(c.INPUTS, StringType(), "JSON: positions, snapshot ids, files", required=True),
    column(c.INPUT_DIGEST, StringType(), "canonical content digest of the input"),
    column(c.CONFIG_DIGEST, StringType(), "digest of the configuration that matters for the result", required=True),
    column(c.CODE_DIGEST, StringType(), "version and digest of the code", required=True),
    column(c.COUNTS_IN, COUNTS, "rows in, by kind"),
    column(c.COUNTS_OUT, COUNTS, "rows out, by table and kind; digest.<table>: 60 bits of the digest of its rows"),
    column(c.RESULT_DIGEST, StringType(), "canonical digest of the rows written, free of run, attempt and clock"),
    column(c.VERDICT, StringType(), "done, quarantine-over-limit, ..."),
    column(c.SCHEMA, IntegerType(), "schema version of the ledger", required=True),
    column(c.STARTED_AT, TimestampType(), "when the attempt began"),
    column(c.FINISHED_AT, TimestampType(), "when it committed or was given up; of a lease: until when it is held"),
    column(
        c.REMOVED,
        MapType(StringType(), STRING_LIST, valueContainsNull=False),
        "of a maintain: by table, the attempts whose rows are removed for good; since schema version 2",
    ),
    partition_by=(c.STATUS,),  # so that a commit, which reads the committed rows, conflicts with no plan
    checks=(
        known(c.STATUS, "planned", "committed", "given-up", "leased"),
        TableConstraint(
            "sequence",
            f"CASE WHEN {c.STATUS} = 'committed' THEN coalesce({c.SEQUENCE} >= 1, false) ELSE {c.SEQUENCE} IS NULL END",
        ),
    ),
)
