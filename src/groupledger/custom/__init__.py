"""The types of custom assignors, for users' code: docs/guides/decide/write-an-assignor.md.

from groupledger.custom import Group, assignor
"""

from groupledger.core.custom import (
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
from groupledger.core.custom.limits import CustomLimits

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
