"""Partitions as an answer names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NamedPartition = tuple[str, int]
BY_ID = "id:"
"""How a topic begins that goes by its id."""


def partitions(wire: Iterable[Mapping[str, Any]] | None) -> tuple[NamedPartition, ...]:
    """The wire layout -> sorted (topic, partition); a topic without a name goes by its id."""
    named = ((entry["topic"] or BY_ID + str(entry["topic_id"]), entry["partitions"]) for entry in wire or ())
    return tuple(sorted({(topic, number) for topic, numbers in named for number in numbers}))


def held(row: Mapping[str, Any]) -> tuple[NamedPartition, ...]:
    """Return what a member has: also what it is still to give up, until the coordinator knows that it has."""
    return partitions((*(row["recorded"] or ()), *(row.get("pending_revocation") or ())))
