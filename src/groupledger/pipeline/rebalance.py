"""One past rebalance of a group: who held what before, what the coordinator recorded, what our own run says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from groupledger.core.faults import Fault
from groupledger.core.moment import from_millis
from groupledger.pipeline.coverage import topics_not_listed, within
from groupledger.pipeline.names import unknown_group
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, VIOLATIONS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Row

    from groupledger.pipeline.ledger import Group

TopicPartition = tuple[str, int]

GENERATIONS_NAMED = 12
CLASSIC = "classic"

_SNAPSHOT_COLUMNS = (
    c.CLUSTER_ID,
    c.GROUP_ID,
    c.GROUP_TYPE,
    c.SNAPSHOT_ID,
    c.SNAPSHOT_KIND,
    c.INCARNATION,
    c.PREVIOUS_SNAPSHOT_ID,
    c.ASSIGNOR,
    c.STATE,
    c.COMPLETE,
    c.OFFSET,
)
_RESULT_COLUMNS = (
    c.SCENARIO,
    c.ASSIGNOR,
    c.PROTOCOL,
    c.OUTCOME,
    c.VERDICT,
    c.MOVES,
    c.LEAST_MOVES,
    c.UNASSIGNED,
    c.FOLLOW_UP,
)


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


def rebalance(group: Group, generation: int | None = None) -> Rebalance:
    """The rebalance that led to a generation (classic) or group epoch (KIP-848); default: the last one.

    Of several records with one generation the first of the last incarnation is told (a rewrite computed nothing), of a
    KIP-848 epoch the last (the settled one) against what was before the epoch; `same_generation` names the others.
    """
    found = _snapshots_of(group, generation)
    chosen, previous = _choose(found)
    members = _members(group, [chosen[c.SNAPSHOT_ID], previous])
    before, after = members.get(previous, []), members.get(chosen[c.SNAPSHOT_ID], [])
    return Rebalance(
        cluster_id=chosen[c.CLUSTER_ID],
        group_id=chosen[c.GROUP_ID],
        group_type=chosen[c.GROUP_TYPE],
        snapshot_id=chosen[c.SNAPSHOT_ID],
        snapshot_kind=chosen[c.SNAPSHOT_KIND],
        incarnation=chosen[c.INCARNATION],
        generation=chosen[c.GENERATION],
        previous_snapshot_id=previous,
        assignor=chosen[c.ASSIGNOR],
        state=chosen[c.STATE],
        complete=chosen[c.COMPLETE],
        observed_at=from_millis(chosen[c.OBSERVED_AT]),
        members=moves(before, after),
        results=_results(group, chosen[c.SNAPSHOT_ID]),
        findings=_findings(group, chosen[c.SNAPSHOT_ID]),
        same_generation=tuple(row[c.SNAPSHOT_ID] for row in found if row is not chosen),
        gaps=_gaps(group, chosen, previous),
        topics_not_listed=_topics_not_listed(group, chosen[c.SNAPSHOT_ID]),
    )


def moves(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[MemberMove, ...]:
    """Member rows of two snapshots -> who moved what, in member order; members that left come last.

    A static member is the same one under a new member id: its `group_instance_id` tells.
    """
    held = {_identity(row): row for row in before}
    stayed = tuple(_move(row, held.pop(_identity(row), None), stays=True) for row in after)
    return stayed + tuple(_move(row, row, stays=False) for row in held.values())


def _identity(row: Mapping[str, Any]) -> tuple[bool, str]:
    instance = row[c.GROUP_INSTANCE_ID]
    return (instance is not None, instance if instance is not None else row[c.MEMBER_ID])


def _move(row: Mapping[str, Any], before: Mapping[str, Any] | None, *, stays: bool) -> MemberMove:
    return MemberMove(
        row[c.MEMBER_ID],
        row[c.CLIENT_ID],
        row[c.GROUP_INSTANCE_ID],
        stays,
        partitions(before[c.RECORDED]) if before else (),
        partitions(row[c.RECORDED]) if stays else (),
    )


def partitions(wire: Iterable[Mapping[str, Any]] | None) -> tuple[TopicPartition, ...]:
    """The wire layout -> sorted (topic, partition); a topic without a name goes by its id."""
    named = ((entry[c.TOPIC] or f"id:{entry[c.TOPIC_ID]}", entry[c.PARTITIONS]) for entry in wire or ())
    return tuple(sorted({(topic, number) for topic, numbers in named for number in numbers}))


def _snapshots_of(group: Group, generation: int | None) -> list[Row]:
    """The snapshots of a generation, or of the last one, in order of position; a `Fault` where there is none."""
    rows = group.of(GROUP_SNAPSHOTS)
    number = F.coalesce(c.GENERATION, c.GROUP_EPOCH).alias(c.GENERATION)
    rows = rows.select(*_SNAPSHOT_COLUMNS, number, F.unix_millis(c.OBSERVED_AT).alias(c.OBSERVED_AT))
    _require_one_cluster(group, [row[0] for row in rows.select(c.CLUSTER_ID).distinct().sort(c.CLUSTER_ID).collect()])
    if generation is None:
        last = rows.sort(F.desc(c.OFFSET)).limit(1).collect()
        generation = last[0][c.GENERATION]
        if generation is None:  # a deleted group has none any more
            return last
    found = rows.where(F.col(c.GENERATION) == generation).sort(c.OFFSET).collect()
    if not found:
        known = rows.select(c.GENERATION).distinct().sort(F.desc(c.GENERATION)).limit(GENERATIONS_NAMED).collect()
        last_known = ", ".join(str(row[0]) for row in reversed(known) if row[0] is not None)
        text = f"group {group.group_id!r} has no generation {generation} in this ledger; last known: {last_known}"
        raise Fault("UNKNOWN_GENERATION", text)
    return found


def _require_one_cluster(group: Group, clusters: list[str]) -> None:
    if not clusters:
        raise unknown_group(group.ledger, group.group_id, group.cluster_id)
    if len(clusters) > 1:
        text = f"group {group.group_id!r} is in clusters {', '.join(clusters)}: choose one with --cluster"
        raise Fault("AMBIGUOUS_GROUP", text)


def _choose(found: list[Row]) -> tuple[Row, str | None]:
    """The snapshot to tell of, and the id of the one before it."""
    incarnation = max(row[c.INCARNATION] for row in found)
    last = [row for row in found if row[c.INCARNATION] == incarnation]
    chosen = last[0] if last[0][c.GROUP_TYPE] == CLASSIC else last[-1]
    return chosen, last[0][c.PREVIOUS_SNAPSHOT_ID]


def _members(group: Group, snapshot_ids: list[str | None]) -> dict[str | None, list[dict[str, Any]]]:
    wanted = [snapshot_id for snapshot_id in snapshot_ids if snapshot_id is not None]
    rows = group.of(MEMBER_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID).isin(wanted)).sort(c.OFFSET, c.MEMBER_ORDER)
    members: dict[str | None, list[dict[str, Any]]] = {}
    for row in rows.select(c.SNAPSHOT_ID, c.MEMBER_ID, c.CLIENT_ID, c.GROUP_INSTANCE_ID, c.RECORDED).collect():
        members.setdefault(row[c.SNAPSHOT_ID], []).append(row.asDict(recursive=True))
    return members


def _gaps(group: Group, chosen: Row, previous: str | None) -> tuple[str, ...]:
    """Gaps of the group's history behind the snapshot before, and of its log partition, up to this one."""
    before = group.of(GROUP_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID) == F.lit(previous)).select(c.OFFSET).collect()
    since = before[0][0] if before else -1
    of_group = F.col(c.GROUP_ID) == chosen[c.GROUP_ID]
    of_log = (F.col(c.GROUP_ID) == "") & F.startswith(F.col(c.SNAPSHOT_ID), F.lit(_folder(chosen[c.SNAPSHOT_ID])))
    rows = within(group.ledger.current(COVERAGE), chosen[c.CLUSTER_ID]).where(of_group | of_log)
    rows = rows.where(F.col(c.OFFSET).between(since + 1, chosen[c.OFFSET])).sort(c.OFFSET, c.KIND)
    return tuple(f"{row[0]}: {row[1]}" for row in rows.select(c.KIND, c.REASON).collect())


def _folder(snapshot_id: str) -> str:
    """`log/dev/3/17` -> `log/dev/3/`: how the positions in its log partition begin."""
    return snapshot_id.rpartition("/")[0] + "/"


def _topics_not_listed(group: Group, snapshot_id: str) -> tuple[str, ...]:
    chosen = group.of(GROUP_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID) == snapshot_id)
    return tuple(sorted(row[0] for row in topics_not_listed(group.ledger, chosen).select(c.TOPIC).collect()))


def _results(group: Group, snapshot_id: str) -> tuple[Result, ...]:
    rows = group.rebalances.where(F.col(c.SNAPSHOT_ID) == snapshot_id).sort(c.SCENARIO, c.ROUND)
    return tuple(Result(*row) for row in rows.select(*_RESULT_COLUMNS).collect())


def _findings(group: Group, snapshot_id: str) -> tuple[str, ...]:
    rows = group.of(VIOLATIONS).where(F.col(c.SNAPSHOT_ID) == snapshot_id).select(c.CODE, c.EVIDENCE).distinct()
    return tuple(f"{row[0]}: {row[1]}" for row in rows.sort(c.CODE, c.EVIDENCE).collect())
