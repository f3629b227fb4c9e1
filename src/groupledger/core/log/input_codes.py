"""Declare the codes of rejected lines, rows, snapshots and groups; the decoders declare their own.

The others are `wire.faults.DecodeCode` and `segments.damage.SegmentCode`; docs/guides/decide/write-an-assignor.md has
those of custom assignors. A test compares the codes with the source; docs/reference/codes.md is generated from them.
"""

from __future__ import annotations

from dataclasses import dataclass

from groupledger.core.faults import Code


class LineCode(Code):
    """Why a line or a row of the log, or of a topic listing, cannot be used."""

    MALFORMED_LINE = "MALFORMED_LINE", "a line that is not exactly one JSON object"
    BAD_PARTITION = "BAD_PARTITION", "a partition outside its range"
    BAD_OFFSET = "BAD_OFFSET", "an offset outside its range"
    BAD_TIMESTAMP = "BAD_TIMESTAMP", "a timestamp outside its range, or no time at all"
    BAD_BASE64 = "BAD_BASE64", "a key or value that is not base64"
    BAD_TOPIC = "BAD_TOPIC", "a topic that is no text, or an empty name in a listing"
    BAD_MOMENT = "BAD_MOMENT", "the time of a topic listing is outside its range"
    BAD_PARTITION_COUNT = "BAD_PARTITION_COUNT", "the partition count of a topic is no number, or outside its range"
    BAD_TOPIC_ID = "BAD_TOPIC_ID", "the id of a topic is neither a text nor null"
    BAD_RACKS = "BAD_RACKS", "the racks of a topic are no list, or not one for each partition"
    NO_POSITION = "NO_POSITION", "a line of Kafka's group metadata formatter, which prints no partition and offset"
    OTHER_TOOL = "OTHER_TOOL", "a line that another tool printed, without the record: kafka-dump-log, for one"
    RECORD_TOO_LARGE = "RECORD_TOO_LARGE", "a record with a value above `limits.max_record_bytes`"


class SnapshotCode(Code):
    """Why a snapshot of a user's own tables cannot be used, with all its rows."""

    BAD_VALUE = "BAD_VALUE", "a value that is not of the column's type or range"
    MISSING_VALUE = "MISSING_VALUE", "a required column is null"
    NO_GROUP_ROW = "NO_GROUP_ROW", "member rows without a group row"
    NO_MEMBERS = "NO_MEMBERS", "no member row for a group that is not empty"
    MEMBER_COUNT = "MEMBER_COUNT", "another number of member rows than the group row says"
    SNAPSHOT_TWICE = "SNAPSHOT_TWICE", "a snapshot id in more than one group row"
    POSITION_TWICE = "POSITION_TWICE", "an offset in more than one snapshot of a group"
    PLACE_TWICE = "PLACE_TWICE", "two members in one place of the order"
    BAD_MEMBER_ORDER = "BAD_MEMBER_ORDER", "a place of the order below 0"
    NEGATIVE_PARTITION = "NEGATIVE_PARTITION", "a member with a partition below 0"
    CLAIMS_OVER_LIMIT = "CLAIMS_OVER_LIMIT", "members claim more partitions than `limits.max_partitions_per_group`"


class GroupCode(Code):
    """Why a group, or one record of it, is not folded or not computed."""

    OTHER_GROUP = "OTHER_GROUP", "a record whose key names another group: the read mixed groups"
    OTHER_LOG_PARTITION = "OTHER_LOG_PARTITION", "a record in another log partition than the others of its group"
    MEMBER_TWICE = "MEMBER_TWICE", "a member stands twice in a snapshot"
    ID_OVER_LIMIT = "ID_OVER_LIMIT", "a group or member id longer than `limits.max_id_bytes`"
    MEMBERS_OVER_LIMIT = "MEMBERS_OVER_LIMIT", "more members than `limits.max_members_per_group`"
    TOPIC_TWICE = "TOPIC_TWICE", "a topic stands twice among topics, with other partition counts or racks"
    PARTITIONS_OVER_LIMIT = "PARTITIONS_OVER_LIMIT", "more partitions than `limits.max_partitions_per_group`"
    NEGATIVE_PARTITION_COUNT = "NEGATIVE_PARTITION_COUNT", "a topic listing has a partition count below 0"


class ScenarioCode(Code):
    """Why a scenario of `groupledger solve` has no result; Kafka's own failures are named after its exceptions."""

    BAD_JSON = "BAD_JSON", "a line that is no JSON"
    BAD_SCENARIO = "BAD_SCENARIO", "a line that is not of the form of a scenario"
    UNKNOWN_ASSIGNOR = "UNKNOWN_ASSIGNOR", "an assignor that is neither one of ours nor a custom one that was named"
    NO_ANSWER = "NO_ANSWER", "an assignor that leaves its answer to chance, or one that is not modelled with racks"
    BAD_GROUP = "BAD_GROUP", "a group of the KIP-848 protocol that cannot be"
    BAD_USER_DATA = "BAD_USER_DATA", "user data of sticky-stream-join that are not KIP-315's"


class RecordStandsCode(Code):
    """Why a state is `NOT_RECOMPUTED`: its record is kept, and nothing is wrong with it."""

    UNKNOWN_ASSIGNOR = (
        "UNKNOWN_ASSIGNOR",
        "Kafka has no assignor of this name; `assign.overrides` can name a custom one",
    )
    NO_ASSIGNOR = "NO_ASSIGNOR", "the record names no assignor"
    OTHER_PROTOCOL_TYPE = "OTHER_PROTOCOL_TYPE", "no group of consumers, such as one of Kafka Connect"
    OTHER_GROUP_TYPE = "OTHER_GROUP_TYPE", "a share or streams group, whose assignors are not recomputed"


# Define the range of each number in a source: a row beyond it is rejected before anything computes with it.
#
# Times are in milliseconds since 1970. The latest is a day before the end of the year 9999: Python's `datetime` ends
# there, and a time zone may add a day. A record without a timestamp has -1 in Kafka: it is kept, as that moment.


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A range of whole numbers, both ends included, and its description in words."""

    least: int
    most: int
    unit: str = "a whole number"

    @property
    def words(self) -> str:
        """Describe the range: `a whole number, 0 to 2147483647`."""
        return f"{self.unit}, {self.least} to {self.most}"

    def holds(self, value: object) -> bool:
        """Return whether the value is a whole number in the range; a boolean is not."""
        return type(value) is int and self.least <= value <= self.most


LATEST_MS = 253_402_214_399_999
NO_TIMESTAMP = -1

INT32 = NumberRange(-(2**31), 2**31 - 1)
PARTITION = NumberRange(0, 2**31 - 1)
PARTITION_COUNT = NumberRange(0, 2**31 - 1)
OFFSET = NumberRange(0, 2**63 - 2)  # the offset after the last one must be a number, too
RECORD_TIME = NumberRange(NO_TIMESTAMP, LATEST_MS, "milliseconds since 1970")
MOMENT = NumberRange(0, LATEST_MS, "milliseconds since 1970")

MOST_RACKED_PARTITIONS = 100_000
"""A topic with more partitions has no racks: a listing's one rack would be repeated for each partition."""
