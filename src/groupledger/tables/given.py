"""Declare the form of users' own snapshot tables: required columns, and defaults for the others."""

from __future__ import annotations

from dataclasses import dataclass

from groupledger.tables import columns as c
from groupledger.tables.declaration import Table
from groupledger.tables.facts import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS


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
    required=(c.SNAPSHOT_ID, c.GROUP_ID, c.OFFSET, c.OBSERVED_AT),
    filled={
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
FORMS = (GROUPS, MEMBERS, TOPICS)
