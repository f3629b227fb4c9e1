"""Provide the public types of custom assignors, and check their answers: docs/guides/decide/write-an-assignor.md.

Read `custom_group` (the types), `assignor_names` (`module:function`), `contract` (what an answer must be), then
`children`, `child` and `messages` (a process of its own, within limits). Called by `core.rebalance`,
`core.scenarios` and `core.protocol`; users import `groupledger.custom`.
"""

from __future__ import annotations

from groupledger.core.custom.custom_group import (
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
