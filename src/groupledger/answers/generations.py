"""The snapshots of a generation (or group epoch), and which of them tells of the rebalance."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from groupledger.answers.names import unknown_group
from groupledger.answers.rows import matching, records
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from groupledger.answers.rows import Reader, Record, Value

GENERATIONS_NAMED = 12
CLASSIC = "classic"
_NUMBER = "coalesce(t.generation, t.group_epoch)"
_COLUMNS = (
    "t.cluster_id, t.group_id, t.group_type, t.incarnation, t.offset, t.snapshot_id, t.previous_snapshot_id, "
    "t.snapshot_kind, t.state, t.complete, t.members, t.assignor, t.observed_at"
)


def cluster_of(reader: Reader, group_id: str, cluster: str | None = None) -> str:
    """The cluster that the group is in. Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP; AMBIGUOUS_GROUP for several."""
    condition, values = matching("t.", group_id=group_id, cluster_id=cluster)
    query = f"SELECT DISTINCT t.cluster_id FROM current_group_snapshots t WHERE {condition}"
    return _only([row["cluster_id"] for row in records(reader, query, **values)], reader, group_id, cluster)


def _only(clusters: Iterable[str], reader: Reader, group_id: str, cluster: str | None) -> str:
    """The one cluster in which a group was found."""
    found = sorted(set(clusters))
    if not found:
        raise unknown_group(reader, group_id, cluster)
    if len(found) > 1:
        text = f"group {group_id!r} is in clusters {', '.join(found)}: choose one (--cluster)"
        raise Fault("AMBIGUOUS_GROUP", text)
    return found[0]


def snapshots_of(reader: Reader, group_id: str, cluster: str | None, generation: int | None) -> list[Record]:
    """The snapshots of a generation, or of the last one, in order of position. Raises Fault: as `cluster_of`,
    UNKNOWN_GENERATION.

    With the last snapshot in each cluster: so it takes one query, whatever there is.
    """
    condition, values = matching("t.", group_id=group_id, cluster_id=cluster)
    back = "OVER (PARTITION BY t.cluster_id ORDER BY t.offset DESC, t.snapshot_id DESC)"
    every = (
        f"SELECT {_COLUMNS}, {_NUMBER} AS number, row_number() {back} AS back, first_value({_NUMBER}) {back} AS newest "
        f"FROM current_group_snapshots t WHERE {condition}"
    )
    wanted: dict[str, Value] = {} if generation is None else {"number": generation}
    asked = f"q.back = 1 OR q.number = {'q.newest' if generation is None else ':number'}"
    rows = records(reader, f"SELECT q.* FROM ({every}) q WHERE {asked} ORDER BY q.offset", **values, **wanted)
    _only((row["cluster_id"] for row in rows), reader, group_id, cluster)
    number = rows[-1]["number"] if generation is None else generation
    if number is None:  # a deleted group has none any more
        return rows[-1:]
    found = [row for row in rows if row["number"] == number]
    if not found:
        raise _unknown_generation(reader, group_id, number, condition, values)
    return found


def _unknown_generation(
    reader: Reader, group_id: str, generation: int, condition: str, values: Mapping[str, Value]
) -> Fault:
    numbers = records(
        reader,
        f"SELECT DISTINCT {_NUMBER} AS number FROM current_group_snapshots t WHERE {condition} "
        f"AND {_NUMBER} IS NOT NULL ORDER BY 1 DESC LIMIT {GENERATIONS_NAMED}",
        **values,
    )
    last_known = ", ".join(str(row["number"]) for row in reversed(numbers))
    text = f"group {group_id!r} has no generation {generation} in this ledger; last known: {last_known}"
    return Fault("UNKNOWN_GENERATION", text)


def choose(found: Sequence[Record]) -> tuple[Record, Record]:
    """Of the snapshots of one generation the one to tell of, and the first one."""
    incarnation = max(row["incarnation"] for row in found)
    last = [row for row in found if row["incarnation"] == incarnation]
    return (last[0] if last[0]["group_type"] == CLASSIC else settled(last)), last[0]


def settled(epoch: Sequence[Record]) -> Record:
    """Of the snapshots of one epoch the last one before a member left it.

    A member that leaves or, static, comes back gives up its partitions before the log tells of what follows.
    """
    return list(takewhile(lambda row: row["members"] >= epoch[0]["members"], epoch))[-1]


def settled_before(reader: Reader, first: Record) -> str | None:
    """The id of the state that a generation or epoch began from; `first` is its first snapshot."""
    previous: str | None = first["previous_snapshot_id"]
    if previous is None or first["group_type"] == CLASSIC:
        return previous
    condition, values = matching("t.", cluster_id=first["cluster_id"], group_id=first["group_id"])
    numbered = (
        f"SELECT t.snapshot_id, t.members, t.offset, {_NUMBER} AS number "
        f"FROM current_group_snapshots t WHERE {condition} AND t.incarnation = :incarnation AND t.offset < :offset"
    )
    before = f"SELECT n.number FROM ({numbered}) n WHERE n.snapshot_id = :previous"
    rows = records(
        reader,
        f"SELECT e.* FROM ({numbered}) e JOIN ({before}) b ON b.number = e.number ORDER BY e.offset",
        incarnation=first["incarnation"],
        offset=first["offset"],
        previous=previous,
        **values,
    )
    found: str | None = settled(rows)["snapshot_id"] if rows else previous
    return found
