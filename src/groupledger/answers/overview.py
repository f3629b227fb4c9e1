"""Every group of a period at a glance: how many records there are of it, and the last of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import Scope


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group: its records of a period, from when to when, and what the last one says.

    `number` is a generation, or a group epoch where the coordinator assigns.
    """

    cluster_id: str
    group_id: str
    records: int
    first: datetime
    last: datetime
    group_type: str
    number: int | None
    assignor: str | None
    state: str
    members: int

    @property
    def key(self) -> tuple[str, str]:
        """Cluster and name."""
        return self.cluster_id, self.group_id


def overview(reader: Reader, within: Scope) -> tuple[GroupLine, ...]:
    """All groups, those with most records first."""
    condition, values = within.where("t.")
    counted = (
        "SELECT t.cluster_id, t.group_id, count(*) AS records, min(t.observed_at) AS first, "
        f"max(t.observed_at) AS last, max(t.offset) AS newest FROM current_group_snapshots t WHERE {condition} "
        "GROUP BY t.cluster_id, t.group_id"
    )
    last = (
        "SELECT c.*, t.group_type, coalesce(t.generation, t.group_epoch) AS number, t.assignor, t.state, t.members, "
        "row_number() OVER (PARTITION BY c.cluster_id, c.group_id ORDER BY t.snapshot_id DESC) AS place "
        f"FROM ({counted}) c JOIN current_group_snapshots t ON c.cluster_id = t.cluster_id "
        "AND c.group_id = t.group_id AND c.newest = t.offset"
    )
    rows = records(
        reader,
        f"SELECT l.* FROM ({last}) l WHERE l.place = 1 ORDER BY l.records DESC, l.cluster_id, l.group_id",
        **values,
    )
    return tuple(GroupLine(**{name: row[name] for name in GroupLine.__slots__}) for row in rows)
