"""What made a snapshot."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What made a snapshot."""

    BIRTH = "birth"
    GENERATION = "generation"
    REWRITE = "rewrite"
    EMPTY = "empty"
    DELETED = "deleted"
    FOLD = "fold"
