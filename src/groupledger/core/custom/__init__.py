"""Custom assignors: the public types, and what answers are held against. See docs/custom-assignors.md."""

from __future__ import annotations

from groupledger.core.custom.group import (
    Answer,
    Group,
    Lists,
    Member,
    Overlap,
    Protocol,
    TopicPartition,
    assignor,
    cooperative_step,
    stale_members,
    validate_subscription,
)

__all__ = [
    "Answer",
    "Group",
    "Lists",
    "Member",
    "Overlap",
    "Protocol",
    "TopicPartition",
    "assignor",
    "cooperative_step",
    "stale_members",
    "validate_subscription",
]
