"""One past rebalance of a group: who held what before, what the coordinator recorded, what our own run says of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import computed, listed, shown
from groupledger.answers.generations import CLASSIC, Selection, select
from groupledger.answers.owners import absences
from groupledger.answers.queries import from_row, group_of, held, matching, one_of, records
from groupledger.answers.spoken import SERVER_DEFAULT, assignor_of, spans
from groupledger.answers.states import CONSUMER, states
from groupledger.core.protocol.compatibility import libraries, named_writers
from groupledger.core.rebalance.registry import Attributed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from groupledger.answers.causes import Side
    from groupledger.answers.generations import OtherRebalance
    from groupledger.answers.queries import NamedPartition, Reader, Record
    from groupledger.answers.states import States


@dataclass(frozen=True, slots=True)
class MemberMove:
    """A member before and after. Partitions are sorted; `stays` is False for one that is no longer in the group.

    `is_away`: a static member (KIP-848) that left for the time being and keeps its partitions.
    """

    member_id: str = field(metadata=shown("member", named=True))
    client_id: str | None
    group_instance_id: str | None
    stays: bool
    held: tuple[NamedPartition, ...] = field(metadata=shown("held", text=spans))
    assigned: tuple[NamedPartition, ...] = field(metadata=shown("assigned", text=spans))
    is_away: bool = False

    @property
    @computed("added", text=spans, in_frames=True)
    def added(self) -> tuple[NamedPartition, ...]:
        """Assigned and not held before."""
        return tuple(sorted(set(self.assigned) - set(self.held)))

    @property
    @computed("revoked", text=spans, in_frames=True)
    def revoked(self) -> tuple[NamedPartition, ...]:
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
    rests on their partition counts is not known. `others`: other rebalances to this generation. `leader_writes`: the
    client libraries that write what the leader of a classic group wrote as a member; empty: none that is known.
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
    members: tuple[MemberMove, ...] = field(metadata=listed(MemberMove))
    results: tuple[Result, ...]
    findings: tuple[str, ...]
    same_generation: tuple[str, ...]
    gaps: tuple[str, ...] = ()
    topics_not_listed: tuple[str, ...] = ()
    others: tuple[OtherRebalance, ...] = ()
    leader_writes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """`java-range, generation 3 (range, cluster dev)`."""
        counted = "generation" if self.group_type == CLASSIC else "epoch"
        if self.generation is None:
            return f"{self.group_id}, deleted (cluster {self.cluster_id})"
        assignor = self.assignor or "no assignor"
        if assignor_of(self.group_type, self.assignor, sum(each.stays for each in self.members)) == SERVER_DEFAULT:
            assignor = "uniform, the server's default; the members name none"
        return f"{self.group_id}, {counted} {self.generation} ({assignor}, cluster {self.cluster_id})"

    @property
    def compared(self) -> Result | None:
        """The first result that holds the record against its own assignor; else the first there is."""
        last = {Attributed.NOT_ASKED.text: 1, Attributed.NOT_COMPARED.text: 2}
        return min(self.results, key=lambda each: last.get(each.attribution or "", 0), default=None)


def rebalance(
    reader: Reader,
    group_id: str,
    cluster: str | None = None,
    generation: int | None = None,
    *,
    at: datetime | None = None,
) -> Rebalance:
    """Return the rebalance to a generation (classic) or group epoch (KIP-848), or in force at a time; else the last.

    Of several records with one generation it is the first of the last incarnation (a rewrite computed nothing), of a
    KIP-848 epoch the settled one against that of the epoch before; `same_generation` names the others.
    """
    return with_states(reader, group_id, cluster, Selection(generation, at=at))[0]


def with_states(reader: Reader, group_id: str, cluster: str | None, which: Selection) -> tuple[Rebalance, States]:
    """Return the same for any rebalance, and the two states around it."""
    chosen, same_number, others = select(reader, group_id, cluster, which)
    snapshot_id, previous = chosen["snapshot_id"], chosen["before_id"]
    condition, values = _of_group(chosen)
    ids = [each for each in (snapshot_id, previous) if each is not None]
    results = _results(reader, chosen, ids)
    known = states(reader, condition, values, ids, computed=False).with_results(results)
    if previous is not None:  # the causes of the first state need none
        known = known.with_given(reader, condition, values)
    before, after = known.pair(*group_of(chosen), previous, snapshot_id)
    found = from_row(
        Rebalance,
        chosen,
        generation=chosen["number"],
        previous_snapshot_id=previous,
        members=_with_absences(reader, chosen, moves(() if before is None else before.members, after.members)),
        results=tuple(
            from_row(Result, row, attributed_to=None if row["attributed_to"] is None else tuple(row["attributed_to"]))
            for row in results
            if row["snapshot_id"] == snapshot_id
        ),
        findings=_findings(reader, chosen),
        same_generation=tuple(row["snapshot_id"] for row in same_number),
        others=others,
        gaps=_gaps(reader, chosen, before),
        topics_not_listed=tuple(known.unlisted(chosen["cluster_id"], after)),
        leader_writes=_leader_writes(reader, chosen),
    )
    return found, known


def moves(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[MemberMove, ...]:
    """Compare member rows of two snapshots: who moved what, in member order; members that left come last.

    A static member is the same one under a new member id: it has the same `group_instance_id`.
    """
    earlier = {_identity(row): row for row in before}
    stayed = tuple(_move(row, earlier.pop(_identity(row), None), stays=True) for row in after)
    return stayed + tuple(_move(row, row, stays=False) for row in earlier.values())


def _identity(row: Mapping[str, Any]) -> tuple[bool, str]:
    instance = row["group_instance_id"]
    return (instance is not None, instance if instance is not None else row["member_id"])


def _move(row: Mapping[str, Any], before: Mapping[str, Any] | None, *, stays: bool) -> MemberMove:
    return MemberMove(
        row["member_id"],
        row["client_id"],
        row["group_instance_id"],
        stays,
        held(before) if before else (),
        held(row) if stays else (),
    )


def _with_absences(reader: Reader, chosen: Record, members: tuple[MemberMove, ...]) -> tuple[MemberMove, ...]:
    """Mark the static members that are away at the end of a state: there are no others of its group behind it."""
    if chosen["group_type"] != CONSUMER or all(each.group_instance_id is None for each in members):
        return members
    condition, values = _of_group(chosen)
    later = f"SELECT 1 FROM current_group_snapshots t WHERE {condition} AND t.offset > :offset LIMIT 1"
    if records(reader, later, **values, offset=chosen["offset"]):
        return members
    known = absences(reader, group_of(chosen), -1)
    return tuple(replace(each, is_away=known.get(each.member_id) is not None) for each in members)


def _of_group(chosen: Record, **more: str) -> tuple[str, dict[str, Any]]:
    return matching("t.", cluster_id=chosen["cluster_id"], group_id=chosen["group_id"], **more)


def _results(reader: Reader, chosen: Record, snapshot_ids: list[str]) -> list[Record]:
    condition, values = _of_group(chosen)
    which, ids = one_of("t.snapshot_id", "snapshot", snapshot_ids)
    columns = ", ".join(f"t.{name}" for name in ("cluster_id", "group_id", "snapshot_id", "round", *Result.__slots__))
    query = f"SELECT {columns} FROM current_rebalances t WHERE {condition} AND {which} ORDER BY t.scenario, t.round"
    return records(reader, query, **values, **ids)


def _leader_writes(reader: Reader, chosen: Record) -> tuple[str, ...]:
    """Return the client libraries that write the leader's subscription."""
    condition, values = _of_group(chosen, snapshot_id=chosen["snapshot_id"])
    query = (
        "SELECT m.subscription_version AS version, m.user_data FROM (SELECT * FROM current_group_snapshots t WHERE "
        f"{condition}) s JOIN (SELECT * FROM current_member_snapshots t WHERE {condition}) m ON m.member_id = s.leader"
    )
    for row in records(reader, query, **values) if chosen["group_type"] == CLASSIC else []:
        return named_writers(libraries(chosen["assignor"], row["version"], row["user_data"]), row["version"])
    return ()


def _findings(reader: Reader, chosen: Record) -> tuple[str, ...]:
    condition, values = _of_group(chosen, snapshot_id=chosen["snapshot_id"])
    query = f"SELECT DISTINCT t.code, t.evidence FROM current_violations t WHERE {condition} ORDER BY 1, 2"
    return tuple(f"{row['code']}: {row['evidence']}" for row in records(reader, query, **values))


def _end_of_incarnation_before(reader: Reader, chosen: Record) -> int:
    condition, values = _of_group(chosen)
    query = f"SELECT max(t.offset) AS last FROM current_group_snapshots t WHERE {condition} "
    query += "AND t.incarnation < :incarnation"
    [row] = records(reader, query, **values, incarnation=chosen["incarnation"]) if chosen["incarnation"] > 1 else [{}]
    return -1 if row.get("last") is None else int(row["last"])


def _gaps(reader: Reader, chosen: Record, before: Side | None) -> tuple[str, ...]:
    """Return gaps of the group's history behind the snapshot before, and of its log partition, up to this one.

    The first snapshot of an incarnation has none before it: they are those behind the incarnation before.
    """
    log = chosen["snapshot_id"].rpartition("/")[0] + "/"
    values = {
        "cluster_id": chosen["cluster_id"],
        "group_id": chosen["group_id"],
        "since": _end_of_incarnation_before(reader, chosen) if before is None else before.offset,
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
