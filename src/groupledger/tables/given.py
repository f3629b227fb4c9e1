"""Declare the form of users' own snapshot tables: required columns, and defaults for the others."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import IntegerType, StringType, TimestampType

from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TOPIC_ID_PARTITIONS, Table, column, table
from groupledger.tables.facts import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS

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
