"""Declare results of `core.protocol` over recorded history: members' calls, and KIP-429's metrics of them."""

from __future__ import annotations

from pyspark.sql.types import DoubleType, IntegerType, StringType, TimestampType

from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TOPIC_PARTITIONS, TableConstraint, column, counts, known, table
from groupledger.tables.facts import ATTEMPT, CLUSTER, GROUP, SNAPSHOT

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
