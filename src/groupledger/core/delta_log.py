"""Find what a Delta table gained since a version, from the actions of its commits (Delta's `_delta_log`).

A row of the current table that was not in that version is in a file added since. Not every added file has such rows: a
file that only rearranges older rows (OPTIMIZE) or drops some of them (a deletion vector) does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

READ_AS_PARQUET = frozenset(
    (
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"),
        *("allowColumnDefaults", "columnMapping", "deletionVectors", "timestampNtz", "domainMetadata", "rowTracking"),
        *("v2Checkpoint", "vacuumProtocolCheck", "clustering", "inCommitTimestamp"),
    )
)
"""Features of tables whose files are plain Parquet, except for deletion vectors (marked per file) and a column mapping
by a property)."""
_MAPPING = "delta.columnMapping.mode"


class AddedFile(NamedTuple):
    """A data file: its path as the log says it, relative to the table or whole, and its values of partition columns."""

    path: str
    partition_values: Mapping[str, str | None]


def is_read_as_parquet(features: Collection[str], properties: Mapping[str, str]) -> bool:
    """Return whether the files of a table with these features and properties tell all about their rows."""
    return set(features) <= READ_AS_PARQUET and properties.get(_MAPPING, "none") == "none"


def added_since(commits: Iterable[Iterable[Mapping[str, Any]]]) -> list[AddedFile] | None:
    """Return the files to read for all rows that these commits, in their order, added and kept.

    They may hold older rows as well. None if the commits do not tell: the table's schema or protocol changed, or a
    file to be read has a deletion vector.
    """
    fresh: dict[str, tuple[AddedFile, bool]] = {}
    for commit in commits:
        actions = list(commit)
        if any(action.get(kind) is not None for action in actions for kind in ("metaData", "protocol")):
            return None
        removed = {found["path"] for action in actions if (found := action.get("remove")) is not None}
        added = [found for action in actions if (found := action.get("add")) is not None]
        were_fresh = removed & fresh.keys()
        for path in were_fresh:
            del fresh[path]
        for add in added:
            path = add["path"]
            if path in were_fresh if path in removed else add["dataChange"] or were_fresh:
                file = AddedFile(path, dict(add.get("partitionValues") or {}))
                fresh[path] = file, add.get("deletionVector") is not None
    if any(has_vector for _, has_vector in fresh.values()):
        return None
    return sorted((file for file, _ in fresh.values()), key=lambda file: file.path)
