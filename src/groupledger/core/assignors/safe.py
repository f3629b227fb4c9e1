"""Mode `safe`: before an assignor sees them, claims that cannot be true are dropped."""

from __future__ import annotations

from groupledger.core.batch import GroupBatch


def safe_claims(batch: GroupBatch, name: str) -> GroupBatch:
    """stub"""
    return batch
