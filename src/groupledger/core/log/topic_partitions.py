"""Parse a topic partition as people write it."""

from __future__ import annotations

from groupledger.core.faults import Fault

MOST = 2**31 - 1
"""Kafka's limit: a partition is an int32."""


def topic_partition(text: str) -> tuple[str, int]:
    """Parse `orders-eu-7` or, as answers list partitions, `orders-eu:7` -> ("orders-eu", 7).

    A topic's name may hold '-' and digits, so the last '-' divides; it cannot hold ':'.
    """
    topic, _, number = text.rpartition(":" if ":" in text else "-")
    if not topic or not (number.isascii() and number.isdigit()):
        raise Fault("BAD_PARTITION", f"a partition is TOPIC-NUMBER, such as orders-7; got {text!r}")
    if len(number) > len(str(MOST)) or int(number) > MOST:
        raise Fault("BAD_PARTITION", f"a partition is a number up to {MOST:,}; got {text!r}")
    return topic, int(number)


# Order one topic's changes. Separate from `listings`, because answers need it without arrays.

ChangeOrder = tuple[int, bool, str, int]


def change_order(since: int, topic_id: str | None, partition_count: int | None) -> ChangeOrder:
    """Return the sort key of one topic's changes: by time, then deletions before creations, then by id and count.

    A deletion comes before a creation at the same moment, since that is a topic recreated within one listing. Id and
    count make the order independent of the order of rows.
    """
    return since, partition_count is not None, topic_id or "", partition_count or 0
