"""Order one topic's changes. Separate from `listings`, because answers need it without arrays."""

from __future__ import annotations

ChangeOrder = tuple[int, bool, str, int]


def change_order(since: int, topic_id: str | None, partition_count: int | None) -> ChangeOrder:
    """Return the sort key of one topic's changes: by time, then deletions before creations, then by id and count.

    A deletion comes before a creation at the same moment, since that is a topic recreated within one listing. Id and
    count make the order independent of the order of rows.
    """
    return since, partition_count is not None, topic_id or "", partition_count or 0
