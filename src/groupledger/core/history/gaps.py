"""What the log does not hold of a classic group, in words: kinds and reasons of rows of `coverage`."""

from __future__ import annotations

from groupledger.core.faults import Fault

FIRST_GENERATION = 1
"""The first with members: before it there is at most an empty group's generation 0, not written by every broker."""

HISTORY_BEGINS_LATE = "history-begins-late"
TOMBSTONE_MISSING = "tombstone-missing"
GENERATIONS_SKIPPED = "generations-skipped"
RECORD_UNREADABLE = "record-unreadable"

BEGINS_WITH_TOMBSTONE = "the first record of the group is its tombstone: nothing is known of the time before"


def begins_with(generation: int) -> str:
    """The first record is not of the first generation."""
    return f"the first record of this incarnation is of generation {generation}; the ones before are not there"


def generation_fell(before: int, generation: int) -> str:
    """A generation is less than the one before."""
    return (
        f"the generation fell from {before} to {generation} without a tombstone: the group was deleted unseen, or the "
        "log lost its end"
    )


def generations_between(before: int, generation: int) -> str:
    """Generations are skipped."""
    return (
        f"no record of the generations between {before} and {generation}: no leader's assignment arrived, or "
        "compaction removed it"
    )


def undecoded(what: str, offset: int, fault: Fault) -> str:
    """A key, or a value of this kind, cannot be read."""
    return f"{what} at offset {offset} does not decode ({fault.code})"


def unreadable(what: str) -> str:
    """A record cannot be read."""
    return f"{what}; the bytes are in quarantine. What it changed is not known: the next snapshot has no previous one"
