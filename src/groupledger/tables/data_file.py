"""A data file of a table that no commit has taken in yet, for who writes it and who commits it."""

from __future__ import annotations

from typing import Any, NamedTuple


class DataFile(NamedTuple):
    """A file in the table's folder. `statistics`: as Delta's log has them, in JSON."""

    name: str
    size: int
    modified_ms: int
    statistics: str

    @property
    def add_action(self) -> dict[str, Any]:
        """Return the entry of Delta's log that adds it, with rows that were not there before."""
        return {
            "path": self.name,
            "partitionValues": {},
            "size": self.size,
            "modificationTime": self.modified_ms,
            "dataChange": True,
            "stats": self.statistics,
        }
