"""Provide the public types of custom assignors, and check their answers: docs/guides/decide/write-an-assignor.md."""

from __future__ import annotations

from groupledger.core.custom.group import (
    Answer,
    CustomLimits,
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
    "CustomLimits",
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
