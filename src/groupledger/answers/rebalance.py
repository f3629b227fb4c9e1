"""One past rebalance of a group: who held what before, what the coordinator recorded, what our own run says of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from groupledger.answers.names import unknown_group
from groupledger.answers.rows import matching, one_of, records
from groupledger.core.attributed import Attributed
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record

TopicPartition = tuple[str, int]

GENERATIONS_NAMED = 12
CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class MemberMove:
    """A member before and after. Partitions are sorted; `stays` is False for one that is no longer in the group."""

    member_id: str
    client_id: str | None
    group_instance_id: str | None
    stays: bool
    held: tuple[TopicPartition, ...]
    assigned: tuple[TopicPartition, ...]

    @property
    def added(self) -> tuple[TopicPartition, ...]:
        """Assigned and not held before."""
        return tuple(sorted(set(self.assigned) - set(self.held)))

    @property
    def revoked(self) -> tuple[TopicPartition, ...]:
        """Held before and no longer assigned."""
        return tuple(sorted(set(self.held) - set(self.assigned)))


@dataclass(frozen=True, slots=True)
class Result:
    """What a run of ours made of the same snapshot, in one scenario."""

    scenario: str
    assignor: str
    protocol: str
    outcome: str
    verdict: str
    moves: int
    least_moves: int | None
    unassigned: int
    follow_up: bool
    least_moves_certainty: str | None  # None, as the next three are: a row of an older schema version
    fewest_rounds: int | None
    attribution: str | None
    attributed_to: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A snapshot against the one before it, in facts; `results` and `findings` are ours.

    `gaps` are those of the log between the two, `topics_not_listed` topics of which no listing knew at the time: what
    rests on their partition counts cannot be told.
    """

    cluster_id: str
    group_id: str
    group_type: str
    snapshot_id: str
    snapshot_kind: str
    incarnation: int
    generation: int | None
    previous_snapshot_id: str | None
    assignor: str | None
    state: str
    complete: bool
    observed_at: datetime
    members: tuple[MemberMove, ...]
    results: tuple[Result, ...]
    findings: tuple[str, ...]
    same_generation: tuple[str, ...]
    gaps: tuple[str, ...] = ()
    topics_not_listed: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """`java-range, generation 3 (range, cluster dev)`."""
        counted = "generation" if self.group_type == CLASSIC else "epoch"
        assignor = self.assignor or "no assignor"
        return f"{self.group_id}, {counted} {self.generation} ({assignor}, cluster {self.cluster_id})"

    @property
    def compared(self) -> Result | None:
        """The first result that holds the record against its own assignor; else the first there is."""
        first = self.results[0] if self.results else None
        return next((each for each in self.results if each.attribution != Attributed.NOT_COMPARED.text), first)


def rebalance(reader: Reader, group_id: str, cluster: str | None = None, generation: int | None = None) -> Rebalance:
    """The rebalance that led to a generation (classic) or group epoch (KIP-848); default: the last one.

    Of several records with one generation the first of the last incarnation is told (a rewrite computed nothing), of a
    KIP-848 epoch the settled one against that of the epoch before; `same_generation` names the others.
    """
    found = snapshots_of(reader, group_id, cluster, generation)
    chosen, first = choose(found)
    previous = _settled_before(reader, first)
    snapshot_id = chosen["snapshot_id"]
    members = _members(reader, chosen, [snapshot_id, previous])
    return Rebalance(
        cluster_id=chosen["cluster_id"],
        group_id=group_id,
        group_type=chosen["group_type"],
        snapshot_id=snapshot_id,
        snapshot_kind=chosen["snapshot_kind"],
        incarnation=chosen["incarnation"],
        generation=chosen["number"],
        previous_snapshot_id=previous,
        assignor=chosen["assignor"],
        state=chosen["state"],
        complete=chosen["complete"],
        observed_at=chosen["observed_at"],
        members=moves(members.get(previous, []), members.get(snapshot_id, [])),
        results=_results(reader, chosen),
        findings=_findings(reader, chosen),
        same_generation=tuple(row["snapshot_id"] for row in found if row is not chosen),
        gaps=_gaps(reader, chosen, previous),
        topics_not_listed=_topics_not_listed(reader, chosen),
    )


def moves(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[MemberMove, ...]:
    """Member rows of two snapshots -> who moved what, in member order; members that left come last.

    A static member is the same one under a new member id: its `group_instance_id` tells.
    """
    held = {_identity(row): row for row in before}
    stayed = tuple(_move(row, held.pop(_identity(row), None), stays=True) for row in after)
    return stayed + tuple(_move(row, row, stays=False) for row in held.values())


def _identity(row: Mapping[str, Any]) -> tuple[bool, str]:
    instance = row["group_instance_id"]
    return (instance is not None, instance if instance is not None else row["member_id"])


def _move(row: Mapping[str, Any], before: Mapping[str, Any] | None, *, stays: bool) -> MemberMove:
    return MemberMove(
        row["member_id"],
        row["client_id"],
        row["group_instance_id"],
        stays,
        partitions(before["recorded"]) if before else (),
        partitions(row["recorded"]) if stays else (),
    )


def partitions(wire: Iterable[Mapping[str, Any]] | None) -> tuple[TopicPartition, ...]:
    """The wire layout -> sorted (topic, partition); a topic without a name goes by its id."""
    named = ((entry["topic"] or f"id:{entry['topic_id']}", entry["partitions"]) for entry in wire or ())
    return tuple(sorted({(topic, number) for topic, numbers in named for number in numbers}))


def cluster_of(reader: Reader, group_id: str, cluster: str | None = None) -> str:
    """The cluster that the group is in. Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP; AMBIGUOUS_GROUP for several."""
    condition, values = matching("t.", group_id=group_id, cluster_id=cluster)
    query = f"SELECT DISTINCT t.cluster_id FROM current_group_snapshots t WHERE {condition} ORDER BY 1"
    clusters: list[str] = [row["cluster_id"] for row in records(reader, query, **values)]
    if not clusters:
        raise unknown_group(reader, group_id, cluster)
    if len(clusters) > 1:
        text = f"group {group_id!r} is in clusters {', '.join(clusters)}: choose one (--cluster)"
        raise Fault("AMBIGUOUS_GROUP", text)
    return clusters[0]


def snapshots_of(reader: Reader, group_id: str, cluster: str | None, generation: int | None) -> list[Record]:
    """The snapshots of a generation, or of the last one, in order of position; a `Fault` where there is none."""
    cluster = cluster_of(reader, group_id, cluster)
    condition, values = matching("t.", group_id=group_id, cluster_id=cluster)
    of_group = f"FROM current_group_snapshots t WHERE {condition}"
    every = f"SELECT t.*, coalesce(t.generation, t.group_epoch) AS number {of_group}"
    if generation is None:
        last = records(reader, f"SELECT * FROM ({every}) q ORDER BY q.offset DESC LIMIT 1", **values)
        generation = last[0]["number"]
        if generation is None:  # a deleted group has none any more
            return last
    of_generation = f"SELECT * FROM ({every}) q WHERE q.number = :number ORDER BY q.offset"
    found = records(reader, of_generation, number=generation, **values)
    if not found:
        newest = f"SELECT DISTINCT q.number FROM ({every}) q WHERE q.number IS NOT NULL ORDER BY 1 DESC"
        numbers = records(reader, f"{newest} LIMIT {GENERATIONS_NAMED}", **values)
        last_known = ", ".join(str(row["number"]) for row in reversed(numbers))
        text = f"group {group_id!r} has no generation {generation} in this ledger; last known: {last_known}"
        raise Fault("UNKNOWN_GENERATION", text)
    return found


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


def _settled_before(reader: Reader, first: Record) -> str | None:
    """The id of the state that a generation or epoch began from; `first` is its first snapshot."""
    previous: str | None = first["previous_snapshot_id"]
    if previous is None or first["group_type"] == CLASSIC:
        return previous
    condition, values = _of_group(first)
    numbered = (
        "SELECT t.snapshot_id, t.members, t.offset, coalesce(t.generation, t.group_epoch) AS number "
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


def _members(reader: Reader, chosen: Record, snapshot_ids: list[str | None]) -> dict[str | None, list[Record]]:
    condition, values = _of_group(chosen)
    which, ids = one_of("t.snapshot_id", "snapshot", [each for each in snapshot_ids if each is not None])
    columns = "t.snapshot_id, t.member_id, t.client_id, t.group_instance_id, t.recorded"
    query = f"SELECT {columns} FROM current_member_snapshots t WHERE {condition} AND {which}"
    members: dict[str | None, list[Record]] = {}
    for row in records(reader, f"{query} ORDER BY t.offset, t.member_order", **values, **ids):
        members.setdefault(row["snapshot_id"], []).append(row)
    return members


def _of_group(chosen: Record, **more: str) -> tuple[str, dict[str, Any]]:
    return matching("t.", cluster_id=chosen["cluster_id"], group_id=chosen["group_id"], **more)


def _results(reader: Reader, chosen: Record) -> tuple[Result, ...]:
    condition, values = _of_group(chosen, snapshot_id=chosen["snapshot_id"])
    columns = ", ".join(f"t.{name}" for name in Result.__slots__)
    query = f"SELECT {columns} FROM current_rebalances t WHERE {condition} ORDER BY t.scenario, t.round"
    return tuple(Result(**row | _as_tuple(row["attributed_to"])) for row in records(reader, query, **values))


def _as_tuple(attributed_to: list[str] | None) -> dict[str, Any]:
    return {"attributed_to": None if attributed_to is None else tuple(attributed_to)}


def _findings(reader: Reader, chosen: Record) -> tuple[str, ...]:
    condition, values = _of_group(chosen, snapshot_id=chosen["snapshot_id"])
    query = f"SELECT DISTINCT t.code, t.evidence FROM current_violations t WHERE {condition} ORDER BY 1, 2"
    return tuple(f"{row['code']}: {row['evidence']}" for row in records(reader, query, **values))


def _gaps(reader: Reader, chosen: Record, previous: str | None) -> tuple[str, ...]:
    """Gaps of the group's history behind the snapshot before, and of its log partition, up to this one."""
    since = -1
    if previous is not None:
        condition, values = _of_group(chosen, snapshot_id=previous)
        for row in records(reader, f"SELECT t.offset FROM current_group_snapshots t WHERE {condition}", **values):
            since = row["offset"]
    log = chosen["snapshot_id"].rpartition("/")[0] + "/"
    values = {
        "cluster_id": chosen["cluster_id"],
        "group_id": chosen["group_id"],
        "since": since,
        "until": chosen["offset"],
        "log": log,
        "length": len(log),
    }
    query = (
        "SELECT t.kind, t.reason FROM current_coverage t WHERE t.cluster_id = :cluster_id AND t.offset > :since "
        "AND t.offset <= :until AND (t.group_id = :group_id "
        "OR (t.group_id = '' AND substr(t.snapshot_id, 1, :length) = :log)) "
        "ORDER BY t.offset, t.kind, t.reason"
    )
    return tuple(f"{row['kind']}: {row['reason']}" for row in records(reader, query, **values))


def _topics_not_listed(reader: Reader, chosen: Record) -> tuple[str, ...]:
    condition, values = _of_group(chosen, snapshot_id=chosen["snapshot_id"])
    query = f"SELECT t.topic FROM topics_not_listed t WHERE {condition} ORDER BY t.topic"
    return tuple(row["topic"] for row in records(reader, query, **values))
