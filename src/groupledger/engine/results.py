"""Computed rebalances -> Arrow rows of each result table, without the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged, step
from groupledger.core.assignors import MESSAGES, Status
from groupledger.core.attributed import Attributed
from groupledger.core.batch import NONE
from groupledger.core.findings import DOUBLE_OWNED, HANDED_OVER_BEFORE_REVOKED, LEFT_OUT, NOT_SUBSCRIBED, Severity
from groupledger.core.history.spans import topic_spans
from groupledger.core.least_moves import LeastMovesCertainty, Moving, fewest_rounds, least_moves
from groupledger.core.rebalance import Rebalances
from groupledger.core.slots import MemberSlots
from groupledger.core.verdict import TopicRowPartitions, Verdict
from groupledger.engine import rows as r
from groupledger.engine.arrow_lists import Column, column, listed, wire_array
from groupledger.engine.arrow_types import arrow_schema
from groupledger.engine.attributions import attributions, with_releases
from groupledger.engine.codec import DecodedBucket
from groupledger.engine.envelope import columns_of
from groupledger.tables import ASSIGNMENTS, QUARANTINE, REBALANCES, VIOLATIONS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.slots import Mask
    from groupledger.engine.calculation import Calculation

REJECTED = "REJECTED"
OUTCOMES = ("ASSIGNED", "UNCHANGED", "EMPTY", REJECTED, "NOT_RECOMPUTED")
FIRST_ROUND = 1
STAGE = "assign"

BREACHES = (
    (DOUBLE_OWNED, "assigned to two members; expected one owner each"),
    (NOT_SUBSCRIBED, "assigned to members that do not subscribe to the topic"),
    (LEFT_OUT, "assigned to nobody, though others of the topic were assigned"),
    (HANDED_OVER_BEFORE_REVOKED, "assigned to a new owner while another member said it owned them (KIP-429)"),
)
"""What each of `verdict.Breaches` breaks, and the evidence behind the partitions."""


SCHEMAS = {table.name: arrow_schema(columns_of(table)) for table in r.RESULTS}
"""Arrow's form of the result tables, the attempt apart."""


def encode_results(decoded: DecodedBucket, result: Rebalances, calculation: Calculation) -> dict[str, pa.Table]:
    """Return the rows of every result table, by its name."""
    computed = ResultColumns(decoded, result, calculation, refusals(decoded, result))
    return {
        ASSIGNMENTS.name: computed.assignments(),
        REBALANCES.name: computed.rebalances(),
        VIOLATIONS.name: computed.violations(),
        QUARANTINE.name: computed.quarantine(),
    }


def refusals(decoded: DecodedBucket, result: Rebalances) -> dict[int, tuple[str, str]]:
    """Code and message by group row: rejected input, and input that Kafka's own code fails on."""
    failed = np.flatnonzero(result.status != Status.OK)
    return (
        dict(decoded.rejections.by_group)
        | {int(row): (Status(result.status[row]).name, MESSAGES[Status(result.status[row])]) for row in failed}
        | {row: (complaints[0].code, complaints[0].message) for row, complaints in result.complaints.items()}
    )


class ResultColumns:
    """The columns of each result table, from flat arrays."""

    def __init__(
        self,
        decoded: DecodedBucket,
        result: Rebalances,
        calculation: Calculation,
        refused: Mapping[int, tuple[str, str]],
    ) -> None:
        """Rows of refused groups appear in `rebalances` and `quarantine` alone."""
        self.decoded, self.result, self.calculation, self.refused = decoded, result, calculation, refused
        self.is_refused = np.zeros(len(decoded.groups), np.bool_)
        self.is_refused[list(refused)] = True

    def assignments(self) -> pa.Table:
        """A row a member of each group that got an outcome."""
        made = self.result.step
        member_group = self.result.party.group
        schema = SCHEMAS[ASSIGNMENTS.name]
        lists = {
            c.HELD: self.result.held,
            c.TARGET: self.result.target,
            c.ASSIGNED: made.assigned,
            c.ADDED: made.added,
            c.REVOKED: made.revoked,
            c.AWAITING: made.awaiting,
            c.LOST: made.lost,
        }
        values = self._identity(self.decoded.groups.take(pa.array(member_group))) | {
            c.MEMBER_ORDER: column(self.decoded.members, c.MEMBER_ORDER),
            c.MEMBER_ID: column(self.decoded.members, c.MEMBER_ID),
            **{name: self._wire(each, schema.field(name).type) for name, each in lists.items()},
        }
        rows = _rows(ASSIGNMENTS, values)
        return rows.filter(pa.array(~self.is_refused[member_group])) if self.refused else rows

    def rebalances(self) -> pa.Table:
        """A row a group, whatever became of it."""
        groups, choice = self.decoded.groups, self.decoded.choice
        names = pa.array([*choice.names, "recorded"])
        told = {**self.decoded.unrecomputed, **self.refused}
        reasons = [told.get(row, (None, None)) for row in range(len(groups))]
        values = self._identity(groups) | {
            c.GROUP_TYPE: column(groups, c.GROUP_TYPE),
            c.GENERATION: column(groups, c.GENERATION),
            c.ASSIGNOR: pc.if_else(
                pa.array(self.is_refused),
                pc.coalesce(column(groups, r.CHOSEN), "recorded"),
                names.take(pa.array(np.where(choice.chosen == NONE, len(choice.names), choice.chosen))),
            ),
            c.PROTOCOL: _named(self.result.party.incremental.astype(np.int8), ["EAGER", "COOPERATIVE"]),
            c.OUTCOME: _named(self._outcome(), OUTCOMES),
            c.CODE: pa.array([code for code, _ in reasons], pa.string()),
            c.MESSAGE: pa.array([message for _, message in reasons], pa.string()),
            c.FOLLOW_UP: pa.array(self.result.step.follow_up & ~self.is_refused),
            c.UNASSIGNED_PARTITIONS: self._unassigned(),
            c.MEMBERS: pc.coalesce(
                column(groups, c.MEMBERS), pa.array(np.diff(self.result.party.member_start), pa.int32())
            ),
            **self._numbers(),
            **self._judged(),
        }
        return _rows(REBALANCES, values)

    def violations(self) -> pa.Table:
        """A row a group and rule that its record breaks, or the answer of its custom assignor."""
        found = [
            (row, broken.recorded_as, broken.severity.value, f"{topic_spans(places)}: {words}")
            for (broken, words), breaking in zip(BREACHES, self.result.breaches, strict=True)
            for row, places in self._places(breaking).items()
        ] + [
            (row, complaint.code, Severity.ERROR.value, complaint.message)
            for row, complaints in sorted(self.result.complaints.items())
            for complaint in complaints
        ]
        groups = self.decoded.groups.take(pa.array([row for row, *_ in found], pa.int64()))
        return _rows(
            VIOLATIONS,
            self._identity(groups)
            | {
                c.CODE: pa.array([code for _, code, _, _ in found], pa.string()),
                c.SEVERITY: pa.array([severity for _, _, severity, _ in found], pa.string()),
                c.EVIDENCE: pa.array([words for *_, words in found], pa.string()),
                c.LOG_PARTITION: column(groups.combine_chunks(), c.LOG_PARTITION),
                c.OFFSET: column(groups.combine_chunks(), c.OFFSET),
            },
        )

    def _places(self, breaking: TopicRowPartitions) -> dict[int, dict[str, list[int]]]:
        """Topic -> partitions, by group row that was not refused."""
        found: dict[int, dict[str, list[int]]] = {}
        names = self.decoded.topic_names.take(pa.array(breaking.topic)).to_pylist()
        group = self.decoded.snapshots.topic_group[breaking.topic]
        for row, name, number in zip(group.tolist(), names, breaking.partition.tolist(), strict=True):
            if not self.is_refused[row]:
                found.setdefault(row, {}).setdefault(name, []).append(number)
        return found

    def quarantine(self) -> pa.Table:
        """A row a refused group."""
        refused = sorted(self.refused)
        groups = self.decoded.groups.take(pa.array(refused, pa.int64())).combine_chunks()
        return _rows(
            QUARANTINE,
            self._identity(groups)
            | {
                c.STAGE: pa.array([STAGE] * len(refused), pa.string()),
                c.SOURCE: pa.array(["group_snapshots"] * len(refused), pa.string()),
                c.CODE: pa.array([self.refused[row][0] for row in refused], pa.string()),
                c.MESSAGE: pa.array([self.refused[row][1] for row in refused], pa.string()),
                c.LOG_PARTITION: column(groups, c.LOG_PARTITION),
                c.OFFSET: column(groups, c.OFFSET),
            },
        )

    def _identity(self, groups: pa.Table) -> dict[str, Column]:
        groups = groups.combine_chunks()
        return {
            c.SCENARIO: pa.repeat(self.calculation.scenario, len(groups)),
            c.ROUND: pa.repeat(pa.scalar(FIRST_ROUND, pa.int32()), len(groups)),
            **{name: column(groups, name) for name in (c.SNAPSHOT_ID, c.CLUSTER_ID, c.GROUP_ID)},
        }

    def _wire(self, lists: MemberSlots, kind: Any) -> Column:
        return wire_array(lists, self.result.slots, {c.TOPIC: self.decoded.topic_names}, kind)

    def _outcome(self) -> LongArray:
        result = self.result
        party, assigned, held = result.party, result.step.assigned, result.held
        fresh = assigned.only(~step.contains(held, assigned.member, assigned.slot, result.slots))
        same = (step.by_group(party, fresh) == 0) & (step.by_group(party, assigned) == step.by_group(party, held))
        empty = np.diff(party.member_start) == 0
        stands = np.isin(np.arange(len(same)), list(self.decoded.unrecomputed))
        return np.where(self.is_refused, 3, np.where(empty, 2, np.where(stands, 4, np.where(same, 1, 0))))

    def _numbers(self) -> dict[str, Column]:
        """Counts of each group; zero where it was refused."""
        result, party, made = self.result, self.result.party, self.result.step
        groups = len(self.is_refused)
        least, most = step.load_range(party, result.target)
        fewest = least_moves(self._moving(), result.target)
        slots = result.slots
        counts = {
            c.PARTITIONS: np.bincount(slots.group[slots.wanted], minlength=groups),
            c.KEPT: step.by_group(party, made.assigned) - step.by_group(party, made.added),
            c.ADDED: step.by_group(party, made.added),
            c.REVOKED: step.by_group(party, made.revoked),
            c.LOST: step.by_group(party, made.lost),
            c.UNASSIGNED: np.bincount(slots.group[made.unassigned], minlength=groups),
            c.MOVES: step.moves(party, slots, result.held, result.target),
        }
        peopled = (np.diff(party.member_start) > 0) & ~self.is_refused
        return {name: pa.array(np.where(self.is_refused, 0, each)) for name, each in counts.items()} | {
            c.LEAST_MOVES: pa.array(fewest.least, mask=~fewest.applies),
            c.LEAST_MOVES_CERTAINTY: _named(fewest.certainty, [each.text for each in LeastMovesCertainty]),
            c.FEWEST_ROUNDS: pa.array(fewest_rounds(party.incremental, fewest), mask=~fewest.applies),
            c.LOAD_MIN: pa.array(least, mask=~peopled),
            c.LOAD_MAX: pa.array(most, mask=~peopled),
        }

    def _judged(self) -> dict[str, Column]:
        """Return the verdict on each record, and whose algorithm it was."""
        kind = SCHEMAS[REBALANCES.name].field(c.ATTRIBUTED_TO).type
        found = attributions(self.decoded, self.result, kind, asks=self.calculation.attributes)
        verdict = with_releases(self.decoded, self.result.verdict, found.code)
        return {
            c.VERDICT: _named(verdict, [each.text for each in Verdict]),
            c.ATTRIBUTED_TO: found.names,
            c.ATTRIBUTION: _named(found.code, [each.text for each in Attributed]),
        }

    def _moving(self) -> Moving:
        result, topics = self.result, self.result.topics
        unknown = result.subscribed.any() & (topics.now == NONE) & ~topics.gone
        # No assignor leaves a topic out that it knows: a record that is the answer without one shows that it did not.
        unknown &= ~np.array([each.is_equal for each in Verdict])[result.verdict][self.decoded.snapshots.topic_group]
        without = np.bincount(self.decoded.snapshots.topic_group[unknown], minlength=len(self.is_refused))
        return Moving(result.party, result.slots, result.held, result.subscribed, without == 0, self.is_refused)

    def _unassigned(self) -> Column:
        """The unassigned partitions of each group by topic and reason; an unknown topic with no partitions."""
        kind = SCHEMAS[REBALANCES.name].field(c.UNASSIGNED_PARTITIONS).type
        topic, reason, partition = self._unassigned_entries()
        begins = np.ones(len(topic), np.bool_)
        begins[1:] = (topic[1:] != topic[:-1]) | (reason[1:] != reason[:-1])
        at = np.flatnonzero(begins)
        named = partition != NONE
        part_start = np.concatenate(([0], np.cumsum(named)))[np.append(at, len(topic))]
        fields = list(kind.value_type)
        entry = pa.StructArray.from_arrays(
            [
                self.decoded.topic_names.take(pa.array(topic[at])),
                listed(part_start, pa.array(partition[named]), fields[1].type),
                _named(reason[at], [each.text for each in step.Reason]),
            ],
            fields=fields,
        )
        group = self.decoded.snapshots.topic_group[topic[at]]
        return listed(ragged.starts(np.bincount(group, minlength=len(self.is_refused))), entry, kind)

    def _unassigned_entries(self) -> tuple[LongArray, IntArray, IntArray]:
        """Topic row, reason, partition of each, in this order; groups that were refused have none."""
        made, slots, decoded = self.result.step, self.result.slots, self.decoded
        unknown: Mask = (self.result.topics.now == NONE) & self.result.subscribed.any()
        rows = np.flatnonzero(unknown)
        topic = np.concatenate((slots.topic[made.unassigned], rows))
        reason = np.concatenate((made.reason, np.full(len(rows), step.Reason.TOPIC_UNKNOWN, np.int32)))
        partition = np.concatenate((slots.partition[made.unassigned], np.full(len(rows), NONE, np.int32)))
        wanted = ~self.is_refused[decoded.snapshots.topic_group[topic]]
        order = np.lexsort((partition, reason, topic))
        order = order[wanted[order]]
        return topic[order], reason[order], partition[order]


def _named(codes: Any, names: Sequence[str]) -> Column:
    return pa.array(names).take(pa.array(codes))


def _rows(table: Table, values: Mapping[str, Column]) -> pa.Table:
    """Return rows of a table from its columns; a column that is not given is null."""
    schema, length = SCHEMAS[table.name], len(values[c.SNAPSHOT_ID])
    columns = [
        values[each.name].cast(each.type) if each.name in values else pa.nulls(length, each.type) for each in schema
    ]
    return pa.table(columns, schema=schema)
