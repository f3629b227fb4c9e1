"""Declare the results: what we computed from the facts, stamped with the attempt and the scenario."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from groupledger.tables import columns as c
from groupledger.tables.declaration import (
    INT_LIST,
    STRING_LIST,
    TOPIC_PARTITIONS,
    TableConstraint,
    added_in,
    column,
    counts,
    known,
    table,
)
from groupledger.tables.facts import ATTEMPT, CLUSTER, GROUP, SNAPSHOT

SCENARIO = column(c.SCENARIO, StringType(), "name of the what-if; `recorded` is what happened", required=True)
OLDER_ROW = "Null in rows of schema versions before 5: `groupledger assign` computes them again"
ROUND = column(c.ROUND, IntegerType(), "round of the rebalance, from 1", required=True)

ASSIGNMENTS = table(
    "assignments",
    "For each member of a computed rebalance: what it held, its target, and what this round gives and takes.",
    SCENARIO,
    SNAPSHOT,
    CLUSTER,
    GROUP,
    ROUND,
    column(c.MEMBER_ORDER, IntegerType(), "place in the JoinGroup response, from 0", required=True),
    column(c.MEMBER_ID, StringType(), "member id", required=True),
    column(c.HELD, TOPIC_PARTITIONS, "recorded for this member by the snapshot before", required=True),
    column(c.TARGET, TOPIC_PARTITIONS, "the assignor's answer, in its order", required=True),
    column(
        c.ASSIGNED,
        TOPIC_PARTITIONS,
        "given in this round: the target less what others must give up first",
        required=True,
    ),
    column(c.ADDED, TOPIC_PARTITIONS, "assigned and not held", required=True),
    column(c.REVOKED, TOPIC_PARTITIONS, "held and not assigned: given up", required=True),
    column(c.AWAITING, TOPIC_PARTITIONS, "in the target, withheld until another member has revoked it", required=True),
    column(
        c.LOST,
        TOPIC_PARTITIONS,
        "held, and gone without a revocation: the topic or partition no longer exists",
        required=True,
    ),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    checks=(counts("round", c.ROUND, least=1), counts("member_order", c.MEMBER_ORDER)),
)

REBALANCES = table(
    "rebalances",
    "One row for each computed rebalance of a group: outcome, moves, balance, and the verdict against the record.",
    SCENARIO,
    SNAPSHOT,
    CLUSTER,
    GROUP,
    ROUND,
    column(c.GROUP_TYPE, StringType(), "classic, consumer, share or streams", required=True),
    column(c.GENERATION, IntegerType(), "generation, or group epoch of a KIP-848 group"),
    column(c.ASSIGNOR, StringType(), "assignor that ran; `recorded` where none did", required=True),
    column(c.PROTOCOL, StringType(), "EAGER or COOPERATIVE, from what members did", required=True),
    column(
        c.OUTCOME,
        StringType(),
        "ASSIGNED, UNCHANGED, EMPTY, REJECTED; NOT_RECOMPUTED: no assignor of ours, the record stands",
        required=True,
    ),
    column(c.VERDICT, StringType(), "recomputed against recorded; see core.rebalance.verdict", required=True),
    column(c.MEMBERS, IntegerType(), "members", required=True),
    column(c.PARTITIONS, LongType(), "partitions of the subscribed topics", required=True),
    column(c.KEPT, LongType(), "partitions that stay with their holder", required=True),
    column(c.ADDED, LongType(), "partitions members gain in this round", required=True),
    column(c.REVOKED, LongType(), "partitions members give up", required=True),
    column(c.LOST, LongType(), "partitions held that no longer exist", required=True),
    column(
        c.UNASSIGNED, LongType(), "partitions of subscribed topics that nobody is assigned in this round", required=True
    ),
    column(c.MOVES, LongType(), "partitions whose target is another member than the holder", required=True),
    column(
        c.LEAST_MOVES,
        LongType(),
        "fewest moves of a balanced result that assigns all partitions, racks aside: no member with two or "
        "more fewer than another that is assigned a partition of one of its topics. Exact where all members "
        "share one subscription and no partition has two holders, and where the group is small enough to be "
        "solved; else a lower bound (docs/concepts/least-moves.md). Null: rejected (see code), no members (EMPTY), or "
        "a topic whose partitions no listing counts (topic-unknown in unassigned_partitions)",
    ),
    column(c.LOAD_MIN, LongType(), "least partitions of a member in the target"),
    column(c.LOAD_MAX, LongType(), "most partitions of a member in the target"),
    column(c.FOLLOW_UP, BooleanType(), "true: a further rebalance must follow", required=True),
    column(
        c.UNASSIGNED_PARTITIONS,
        ArrayType(
            StructType(
                [
                    StructField(c.TOPIC, StringType(), nullable=False),
                    StructField(c.PARTITIONS, INT_LIST, nullable=False),
                    StructField(c.REASON, StringType(), nullable=False),
                ]
            ),
            containsNull=False,
        ),
        "the unassigned partitions with the reason",
        required=True,
    ),
    column(c.CODE, StringType(), "of a rejected group, or one that was not recomputed: the code"),
    column(c.MESSAGE, StringType(), "likewise: what, got, expected, what to do"),
    column(
        c.LEAST_MOVES_CERTAINTY,
        StringType(),
        f"exact; lower-bound: at least so many; or not-applicable and why, where least_moves is null. {OLDER_ROW}",
    ),
    column(
        c.FEWEST_ROUNDS,
        IntegerType(),
        "fewest rebalances in which members that rejoin as these do reach such a balance (KIP-429): 2 where they keep "
        f"what they own and a partition has to move, else 1. Null where least_moves is. {OLDER_ROW}",
    ),
    column(
        c.ATTRIBUTED_TO,
        STRING_LIST,
        "assignors of client libraries that give what the leader recorded, such as kafka-python-sticky; all that agree "
        "best, java's first (docs/guides/investigate/which-client-assigned.md). Empty: none that is known. Null where "
        "attribution says why",
    ),
    column(
        c.ATTRIBUTION,
        StringType(),
        "how far they agree: exact (list for list), equal-sets, perhaps (not all their answers were tried, and the "
        f"record keeps their promise), no-known-assignor; or not-applicable and why. {OLDER_ROW}",
    ),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    added=added_in(5, c.LEAST_MOVES_CERTAINTY, c.FEWEST_ROUNDS, c.ATTRIBUTED_TO, c.ATTRIBUTION),
    checks=(
        known(c.OUTCOME, "ASSIGNED", "UNCHANGED", "EMPTY", "REJECTED", "NOT_RECOMPUTED"),
        known(c.PROTOCOL, "EAGER", "COOPERATIVE"),
        counts("round", c.ROUND, least=1),
        counts("counts", c.MEMBERS, c.PARTITIONS, c.KEPT, c.ADDED, c.REVOKED, c.LOST, c.UNASSIGNED, c.MOVES),
        TableConstraint("load", f"coalesce({c.LOAD_MIN} <= {c.LOAD_MAX}, true)"),
    ),
)

VIOLATIONS = table(
    "violations",
    "Findings: what a person should look at, with the evidence.",
    column(c.CODE, StringType(), "kind of finding", required=True),
    column(c.SEVERITY, StringType(), "info, warning or error", required=True),
    column(c.SCENARIO, StringType(), "scenario, for a finding on a result"),
    column(c.CLUSTER_ID, StringType(), "cluster", required=True),
    column(c.GROUP_ID, StringType(), "group"),
    column(c.SNAPSHOT_ID, StringType(), "snapshot"),
    column(c.MEMBER_ID, StringType(), "member"),
    column(c.TOPIC, StringType(), "topic"),
    column(c.PARTITION, IntegerType(), "partition"),
    column(c.EVIDENCE, StringType(), "what was seen, for a person", required=True),
    column(c.LOG_PARTITION, IntegerType(), "partition of __consumer_offsets"),
    column(c.OFFSET, LongType(), "offset"),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    checks=(known(c.SEVERITY, "info", "warning", "error"), counts(c.PARTITION, c.PARTITION, or_null=True)),
)


# Declare results of `core.protocol` over recorded history: members' calls, and KIP-429's metrics of them.

CALLBACKS = table(
    "callbacks",
    "Calls that a rebalance made into members of classic groups, in KIP-429's order, as far as the log tells.",
    SNAPSHOT,
    CLUSTER,
    GROUP,
    column(c.GENERATION, IntegerType(), "generation of the snapshot"),
    column(c.OBSERVED_AT, TimestampType(), "timestamp of the record that completed the snapshot", required=True),
    column(c.CALL_ORDER, IntegerType(), "place among the calls of the snapshot, from 0", required=True),
    column(c.MEMBER_ID, StringType(), "member that was called", required=True),
    column(c.CLIENT_ID, StringType(), "client id of the member"),
    column(c.CALLBACK, StringType(), "onPartitionsLost, onPartitionsRevoked, assign, ...: Kafka's name", required=True),
    column(c.PARTITIONS, TOPIC_PARTITIONS, "what it was told; of assign, all that members claimed", required=True),
    column(c.TOPICS, STRING_LIST, "topics, of subscriptionUserData and assign; else empty", required=True),
    column(
        c.CERTAINTY,
        StringType(),
        "recorded, or what the log cannot show: after-gap, revoked-or-lost, unknown-end",
        required=True,
    ),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    checks=(
        counts("call_order", c.CALL_ORDER),
        known(c.CERTAINTY, "recorded", "after-gap", "revoked-or-lost", "unknown-end"),
    ),
)

METRICS = table(
    "metrics",
    "Client metrics of KIP-429 by window, for each member and for the group; a window without calls has none.",
    CLUSTER,
    GROUP,
    column(c.MEMBER_ID, StringType(), "member; null: the group"),
    column(c.WINDOW_START, TimestampType(), "begin of the window", required=True),
    column(c.WINDOW_END, TimestampType(), "end of the window, which is not in it", required=True),
    column(c.METRIC, StringType(), "name as Kafka names it", required=True),
    column(c.METRIC_VALUE, DoubleType(), "its value; latencies in ms, null where the log cannot know it"),
    column(c.REASON, StringType(), "why there is no value"),
    ATTEMPT,
    cluster_by=(c.CLUSTER_ID, c.GROUP_ID),
    checks=(TableConstraint("window", f"{c.WINDOW_START} < {c.WINDOW_END}"),),
)
