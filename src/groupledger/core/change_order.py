"""The order of one topic's changes. Apart from `listings`, since answers need it and no arrays."""

from __future__ import annotations

ChangeOrder = tuple[int, bool, str, int]


def change_order(since: int, topic_id: str | None, partition_count: int | None) -> ChangeOrder:
    """Order the changes of one topic: by time, at one moment a deletion before a creation, since that is a topic made
    again within one listing; then by id and count, so that no order of rows decides."""
    return since, partition_count is not None, topic_id or "", partition_count or 0
