"""The snapshots of a generation (or group epoch), and which of them represents the rebalance.

A record of a classic group is a rebalance by itself. A group that its coordinator assigns writes many records in an
epoch. Of these the last one before a member left represents the rebalance: a member that leaves gives up its partitions
before the log records the next epoch. A static member that comes back does so within the epoch: from there on
the states are separate, as a rewrite of a classic generation is, and the next epoch begins from them. And a
coordinator may begin the next epoch before it has made a target for one: what was recorded in it counts as part of the
next epoch that has a target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from groupledger.answers.names import unknown_group
from groupledger.answers.queries import from_row, matching, records, steps
from groupledger.core.faults import Fault
from groupledger.core.moments import iso
from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from groupledger.answers.queries import Reader, Record, Value

GENERATIONS_NAMED = 12
CLASSIC = "classic"
_OF_STATE = (
    *("cluster_id", "group_id", "group_type", "incarnation", "offset", "snapshot_id", "previous_snapshot_id"),
    *("snapshot_kind", "state", "complete", "members", "assignor", "observed_at"),
)
_NUMBER = "coalesce(t.generation, t.group_epoch)"
_COLUMNS = ", ".join(f"t.{name}" for name in _OF_STATE)


@dataclass(frozen=True, slots=True)
class OtherRebalance:
    """Another rebalance to the same generation: of an earlier incarnation, of the other type, or a rewrite."""

    snapshot_id: str
    offset: int
    observed_at: datetime
    group_type: str
    incarnation: int
    snapshot_kind: str


class Selection(NamedTuple):
    """Which rebalance of a group is meant; nothing: the last one.

    `at`: the one in force then, that is the last one recorded up to that time. `offset`: the one that the record at
    this offset of the group's log partition led to.
    """

    generation: int | None = None
    incarnation: int | None = None
    at: datetime | None = None
    offset: int | None = None


class Selected(NamedTuple):
    """The state that represents the rebalance, the other states with its number, and other rebalances to that."""

    chosen: Record
    same_number: list[Record]
    others: tuple[OtherRebalance, ...]


def assigned_by(group_type: str, assignor: str | None) -> str | None:
    """Return the assignor of a state: of a KIP-848 group whose members name none the server's default."""
    return DEFAULT_ASSIGNOR if assignor is None and group_type == "consumer" else assignor


def rebalance_states(condition: str, of_classic: str = "true") -> str:
    """Select the states `t` that a condition holds for; of classic groups only those that meet another one, too.

    `number`: the generation or epoch that a state counts for; `represents`: whether it is the one that represents it,
    or the part of it that begins when a static member came back. Then `before_id` is the state that it began from.
    `began_at`, `last_offset` and `records` are of all states of that part.
    """
    alone = (
        f"SELECT {_COLUMNS}, {_NUMBER} AS number, t.observed_at AS began_at, t.offset AS last_offset, "
        "cast(1 AS BIGINT) AS records, true AS represents, t.previous_snapshot_id AS before_id "
        f"FROM current_group_snapshots t WHERE {condition} AND t.group_type = '{CLASSIC}' AND {of_classic}"
    )
    return f"{alone} UNION ALL SELECT * FROM ({_of_epochs(condition)}) t"


def _of_epochs(condition: str) -> str:
    """Select the same of groups that their coordinator assigns, which write several states in an epoch.

    A group that was converted and came back has several stretches: in each, the state before is one of these, but for
    the first. `counts`: the state was recorded when its epoch had a target. Kafka before 4.1 makes no target for the
    epoch in which the last member leaves, so an empty state counts as well, unless the next one is empty, too: then the
    last member was just leaving. `follows`: the state is not from before the target; `whole`: nor has it fewer members
    than one before it. Where it is so again within the epoch, a static member came back: a `part` begins.
    """
    incarnation = "PARTITION BY t.cluster_id, t.group_id, t.incarnation, t.group_type"
    life = f"{incarnation}, t.stretch"
    epoch = f"{life}, coalesce(t.number, -1)"
    order = "ORDER BY t.offset, t.snapshot_id"
    so_far, onward = ("ROWS BETWEEN UNBOUNDED PRECEDING AND", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")
    next_number = f"min(CASE WHEN t.counts THEN t.own_number END) OVER ({life} {order} {onward})"
    last_one = "last_value(CASE WHEN t.represents THEN t.snapshot_id END) IGNORE NULLS"
    part = f"{epoch}, t.part"
    return steps(
        marked=f"SELECT {_COLUMNS}, {_NUMBER} AS own_number, t.target_epoch, t.group_epoch, CASE WHEN "
        f"t.previous_snapshot_id <> lag(t.snapshot_id) OVER ({incarnation} {order}) THEN 1 ELSE 0 END AS anew "
        f"FROM current_group_snapshots t WHERE {condition} AND t.group_type <> '{CLASSIC}'",
        in_stretches=f"SELECT t.*, sum(t.anew) OVER ({incarnation} {order}) AS stretch FROM marked t",
        counting=f"SELECT {_COLUMNS}, t.stretch, t.own_number, coalesce(t.target_epoch = t.group_epoch, false) "
        f"OR (t.members = 0 AND coalesce(lead(t.members) OVER ({life} {order}), 1) > 0) AS counts "
        "FROM in_stretches t",
        numbered=f"SELECT {_COLUMNS}, t.stretch, t.counts, coalesce({next_number}, t.own_number) AS number "
        "FROM counting t",
        following=f"SELECT t.*, t.counts OR NOT max(t.counts) OVER ({epoch}) AS follows, "
        f"first_value(t.previous_snapshot_id) OVER ({epoch} {order}) AS previous_of_first FROM numbered t",
        whole=f"SELECT t.*, t.follows AND t.members = max(t.members) OVER ({epoch}, t.follows {order} "
        f"{so_far} CURRENT ROW) AS whole FROM following t",
        returned=f"SELECT t.*, CASE WHEN t.whole AND NOT lag(t.whole) OVER ({epoch}, t.follows {order}) THEN 1 ELSE 0 "
        "END AS returns FROM whole t",
        in_parts=f"SELECT t.*, sum(t.returns) OVER ({epoch} {order}) AS part FROM returned t",
        representing=f"SELECT t.*, t.offset = max(CASE WHEN t.whole THEN t.offset END) OVER ({part}) AS represents, "
        f"first_value(t.observed_at) OVER ({part} {order}) AS began_at, "
        f"max(t.offset) OVER ({part}) AS last_offset, count(*) OVER ({part}) AS records FROM in_parts t",
        of_epochs=f"SELECT {_COLUMNS}, t.number, t.began_at, t.last_offset, t.records, t.represents, "
        "CASE WHEN t.part > 0 OR t.previous_of_first IS NOT NULL THEN "
        f"coalesce({last_one} OVER ({life} {order} {so_far} 1 PRECEDING), t.previous_of_first) END AS before_id "
        "FROM representing t",
    )


def cluster_of(reader: Reader, group_id: str, cluster: str | None = None) -> str:
    """Return the cluster of the group. Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP; AMBIGUOUS_GROUP for several."""
    condition, values = matching("t.", group_id=group_id, cluster_id=cluster)
    query = f"SELECT DISTINCT t.cluster_id FROM current_group_snapshots t WHERE {condition}"
    return _only([row["cluster_id"] for row in records(reader, query, **values)], reader, group_id, cluster)


def _only(clusters: Iterable[str], reader: Reader, group_id: str, cluster: str | None) -> str:
    """Return the one cluster in which a group was found."""
    found = sorted(set(clusters))
    if not found:
        raise unknown_group(reader, group_id, cluster)
    if len(found) > 1:
        text = f"group {group_id!r} is in clusters {', '.join(found)}: choose one (--cluster)"
        raise Fault("AMBIGUOUS_GROUP", text)
    return found[0]


def snapshots_of(reader: Reader, group_id: str, cluster: str | None, generation: int | None) -> list[Record]:
    """Return the snapshots of a generation, or of the last one, in order of position, as `rebalance_states` has them.

    An epoch that got no target counts as part of the next one. Raises Fault: as `cluster_of`, UNKNOWN_GENERATION.

    With the last snapshot in each cluster: so it takes one query, whatever there is.
    """
    condition, values = matching("t.", group_id=group_id, cluster_id=cluster)
    back = "OVER (PARTITION BY q.cluster_id ORDER BY q.offset DESC, q.snapshot_id DESC)"
    every = (
        f"SELECT q.*, row_number() {back} AS back, first_value(q.number) {back} AS newest "
        f"FROM ({rebalance_states(condition)}) q"
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
        distinct = f"SELECT DISTINCT q.number FROM ({rebalance_states(condition)}) q WHERE q.number IS NOT NULL"
        numbers = records(reader, f"{distinct} ORDER BY 1 DESC LIMIT {GENERATIONS_NAMED}", **values)
        last_known = ", ".join(str(row["number"]) for row in reversed(numbers))
        text = f"group {group_id!r} has no generation {number} in this ledger; last known: {last_known}"
        raise Fault("UNKNOWN_GENERATION", text)
    return found


def choose(found: Sequence[Record]) -> Record:
    """Choose the snapshot that represents one generation or epoch: in the last incarnation, the first one."""
    last = found[-1]
    return next(row for row in found if _life(row) == _life(last) and row["represents"])


def select(reader: Reader, group_id: str, cluster: str | None, which: Selection) -> Selected:
    """Return the state that records a rebalance. Raises Fault: as `snapshots_of`, NOT_KNOWN_YET, UNKNOWN_RECORD."""
    generation, incarnation, at, offset = which
    last = None
    if (at, offset) != (None, None) or (incarnation is not None and generation is None):
        last = anchor(reader, group_id, cluster, which)
        if last["number"] is None:  # a deleted group has none any more
            return Selected(last, [], ())
        generation = last["number"]
    found = snapshots_of(reader, group_id, cluster, generation)
    among = found
    if last is not None:
        among = [row for row in found if _life(row) == _life(last)]
    elif incarnation is not None:
        among = [row for row in found if row["incarnation"] == incarnation]
        if not among:
            text = f"group {group_id!r} has no generation {generation} in incarnation {incarnation}: it has one in "
            raise Fault("UNKNOWN_GENERATION", text + ", ".join(sorted({str(row["incarnation"]) for row in found})))
    chosen = choose(among)
    if last is not None:
        chosen = next((row for row in among if row["represents"] and row["last_offset"] == last["last_offset"]), chosen)
    same = [row for row in found if row is not chosen]
    others = tuple(from_row(OtherRebalance, row) for row in same if row["represents"])
    return Selected(chosen, same, others)


def _life(row: Record) -> tuple[int, str]:
    return row["incarnation"], row["group_type"]


def anchor(reader: Reader, group_id: str, cluster: str | None, which: Selection) -> Record:
    """Return the last state up to a time, at an offset, or of an incarnation."""
    cluster = cluster_of(reader, group_id, cluster)
    condition, values = matching("t.", group_id=group_id, cluster_id=cluster)
    wanted: dict[str, Value] = {name: value for name, value in which._asdict().items() if value is not None}
    asked = {
        "at": "q.observed_at <= :at",
        "offset": "q.offset = :offset",
        "incarnation": "q.incarnation = :incarnation",
    }
    where = " AND ".join(asked[name] for name in wanted if name in asked)
    every = f"SELECT q.* FROM ({rebalance_states(condition)}) q"
    rows = records(reader, f"{every} WHERE {where} ORDER BY q.offset DESC LIMIT 1", **values, **wanted)
    if rows:
        return rows[0]
    columns = "min(t.observed_at) AS first, min(t.offset) AS low, max(t.offset) AS high, max(t.incarnation) AS lives"
    [bounds] = records(reader, f"SELECT {columns} FROM current_group_snapshots t WHERE {condition}", **values)
    if which.at is not None:
        begins = f"its record begins {iso(bounds['first'])}"
        raise Fault("NOT_KNOWN_YET", f"at {iso(which.at)} the ledger knows nothing of {group_id} yet: {begins}")
    if which.offset is not None:
        text = f"no state of group {group_id!r} is recorded at offset {which.offset}: its states are at offsets "
        raise Fault("UNKNOWN_RECORD", f"{text}{bounds['low']} to {bounds['high']} (show --group names them)")
    text = f"group {group_id!r} has no incarnation {which.incarnation} in this ledger; last known: {bounds['lives']}"
    raise Fault("UNKNOWN_GENERATION", text)
