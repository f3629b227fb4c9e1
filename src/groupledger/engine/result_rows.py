"""Computed rebalances -> Arrow rows of each result table, without the attempt."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.assignors import MESSAGES, Status
from groupledger.core.history.fold_rows import GroupSnapshotRow, MemberSnapshotRow, topic_spans
from groupledger.core.protocol.compatibility import java_releases
from groupledger.core.rebalance import step
from groupledger.core.rebalance.attribution import (
    AttributedTo,
    Judged,
    RecordedRound,
    attributed,
    is_foreign,
    is_javas,
    name_of,
    recorded_round,
    settled,
    sizes,
    unless_it_ran,
)
from groupledger.core.rebalance.computation import Rebalances
from groupledger.core.rebalance.findings import (
    DOUBLE_OWNED,
    HANDED_OVER_BEFORE_REVOKED,
    LEFT_OUT,
    NOT_SUBSCRIBED,
    Severity,
)
from groupledger.core.rebalance.least_moves import LeastMovesCertainty, Moving, fewest_rounds, least_moves
from groupledger.core.rebalance.registry import Attributed
from groupledger.core.rebalance.verdict import (
    OTHER_RELEASE,
    TopicRowPartitions,
    Verdict,
    other_moments,
    recorded_counts,
)
from groupledger.core.wire.consumer_protocol import COOPERATIVE_STICKY, STICKY, STRAY_PREFIX
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import (
    Column,
    are_true,
    column,
    filled,
    integers,
    listed,
    snapshot_rows,
    wire_array,
)
from groupledger.engine.envelope import SCHEMAS, NamedCount
from groupledger.engine.group_arrays import Calculation, DecodedBucket
from groupledger.tables import ASSIGNMENTS, QUARANTINE, REBALANCES, VIOLATIONS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from groupledger.core.arrays.ragged import Mask


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


def encode_results(decoded: DecodedBucket, result: Rebalances, calculation: Calculation) -> dict[str, pa.Table]:
    """Return the rows of every result table, by its name."""
    computed = ResultColumns(decoded, result, calculation)
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

    def __init__(self, decoded: DecodedBucket, result: Rebalances, calculation: Calculation) -> None:
        """Rows of refused groups appear in `rebalances` and `quarantine` alone."""
        self.decoded, self.result, self.calculation = decoded, result, calculation
        self.refused = refusals(decoded, result)
        self.is_refused = np.zeros(len(decoded.groups), np.bool_)
        self.is_refused[list(self.refused)] = True

    def assignments(self) -> pa.Table:
        """Return a row a member of each group that got an outcome."""
        made = self.result.step
        member_group = self.result.party.group
        schema, slots = SCHEMAS[ASSIGNMENTS.name], self.result.slots
        names = {c.TOPIC: self.decoded.topic_names}
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
            **{name: wire_array(each, slots, names, schema.field(name).type) for name, each in lists.items()},
        }
        rows = _rows(ASSIGNMENTS, values)
        return rows.filter(pa.array(~self.is_refused[member_group])) if self.refused else rows

    def rebalances(self) -> pa.Table:
        """Return a row a group, computed or refused."""
        groups, choice = self.decoded.groups, self.decoded.choice
        names = pa.array([*choice.names, "recorded"])
        explained = {**self.decoded.unrecomputed, **self.refused}
        reasons = [explained.get(row, (None, None)) for row in range(len(groups))]
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
        """Return a row a group and rule that its record breaks, or the answer of its custom assignor."""
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
        """Return a row a refused group."""
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

    def _outcome(self) -> LongArray:
        result = self.result
        party, assigned, held = result.party, result.step.assigned, result.held
        fresh = assigned.only(~step.contains(held, assigned.member, assigned.slot, result.slots))
        same = (step.by_group(party, fresh) == 0) & (step.by_group(party, assigned) == step.by_group(party, held))
        empty = np.diff(party.member_start) == 0
        stands = np.isin(np.arange(len(same)), list(self.decoded.unrecomputed))
        return np.where(self.is_refused, 3, np.where(empty, 2, np.where(stands, 4, np.where(same, 1, 0))))

    def _numbers(self) -> dict[str, Column]:
        """Return counts of each group; zero if it was refused."""
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
        """Return the unassigned partitions of each group by topic and reason; an unknown topic with no partitions."""
        kind = SCHEMAS[REBALANCES.name].field(c.UNASSIGNED_PARTITIONS).type
        topic, reason, partition = self._unassigned_entries()
        at = np.flatnonzero(ragged.begins(topic, reason))
        named = partition != NONE
        part_start = np.concatenate(([0], np.cumsum(named)))[np.append(at, len(topic))]
        entry = [
            self.decoded.topic_names.take(pa.array(topic[at])),
            listed(part_start, pa.array(partition[named]), list(kind.value_type)[1].type),
            _named(reason[at], [each.text for each in step.Reason]),
        ]
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
    return filled(SCHEMAS[table.name], values, len(values[c.SNAPSHOT_ID]))


# Count the input and the results of a bucket, for the account of the run (`pipeline.assign`).

RECEIVED = "received."
OUTCOME, VERDICT, SUM = "outcome.", "verdict.", "sum."
"""What the names of counts begin with: of input rows by kind; of groups by outcome and by verdict; of all groups."""
BEYOND, MISSING, REASONS, MEMBERS_OUT = "beyond", "missing", "with_reason", "members_with_outcome"
"""Sums over groups: partitions that were assigned beyond those of subscribed topics, or are neither assigned nor
unassigned; unassigned ones with a reason; members of groups that got an outcome."""
SUMS = (c.MOVES, c.LEAST_MOVES, c.UNASSIGNED, c.ADDED, c.REVOKED, c.LOST)
"""Columns of `rebalances` whose sums a run reports."""
EACH_SIDE = (c.PARTITIONS, c.KEPT, c.ADDED, c.UNASSIGNED)
"""Columns of `rebalances` that the account of partitions is made of."""


def bucket_counts(bucket: pa.Table, rebalances: pa.Table) -> list[NamedCount]:
    """Count the rows of `rows.INPUT` that reached a bucket, and its rows of `rebalances`."""
    by_kind = np.bincount(bucket.column(r.ROW_KIND).to_numpy(), minlength=len(r.KINDS))
    received = [(f"{RECEIVED}{name}", int(number)) for name, number in zip(r.KINDS, by_kind, strict=True)]
    return [NamedCount(None, name, number) for name, number in (*received, *_of_results(rebalances)) if number]


def _of_results(rebalances: pa.Table) -> Iterator[tuple[str, int]]:
    for prefix, name, words in ((OUTCOME, c.OUTCOME, OUTCOMES), (VERDICT, c.VERDICT, [each.text for each in Verdict])):
        for word in words:
            yield f"{prefix}{word}", _sum(pc.equal(rebalances[name], word))
    for name in dict.fromkeys((*SUMS, *EACH_SIDE)):
        yield f"{SUM}{name}", _sum(rebalances[name])
    partitions, kept, added, unassigned = (rebalances[name] for name in EACH_SIDE)
    over = pc.subtract(pc.add(pc.add(kept, added), unassigned), partitions)
    yield f"{SUM}{BEYOND}", _sum(pc.max_element_wise(over, 0))
    yield f"{SUM}{MISSING}", _sum(pc.max_element_wise(pc.negate(over), 0))
    named = pc.list_flatten(rebalances[c.UNASSIGNED_PARTITIONS])
    yield f"{SUM}{REASONS}", _sum(pc.list_value_length(pc.struct_field(named, c.PARTITIONS)))
    has_outcome = pc.not_equal(rebalances[c.OUTCOME], REJECTED)
    yield f"{SUM}{MEMBERS_OUT}", _sum(rebalances[c.MEMBERS].filter(has_outcome))


def _sum(values: pa.ChunkedArray) -> int:
    return pc.sum(values).as_py() or 0


# Whose algorithm each record of a bucket was, as columns.
#
# Only a record that assignors are asked about becomes Python objects.

GROUP_FIELDS = (c.SNAPSHOT_ID, c.ASSIGNOR, c.LEADER, c.SHARED_TOPICS)
MEMBER_FIELDS = (
    *(c.MEMBER_ORDER, c.MEMBER_ID, c.GROUP_INSTANCE_ID, c.RACK_ID, c.SUBSCRIPTION_VERSION, c.TOPICS),
    *(c.CLAIMED, c.SUBSCRIPTION_GENERATION, c.USER_DATA, c.RECORDED),
)
"""What `recorded_round` reads of a snapshot and its members."""
STICKY_ASSIGNORS = frozenset({STICKY, COOPERATIVE_STICKY})
UNDECIDED = (Attributed.PERHAPS, Attributed.NO_KNOWN_ASSIGNOR, Attributed.TOO_LARGE)
"""Attributions that leave it open which assignor gave a record whose partitions are listed."""
TOGETHER = 100
"""Groups whose rows become Python objects at once."""


class Attributions(NamedTuple):
    """Of G groups: codes of `Attributed`, and a list of names, null where the code says that none applies."""

    code: IntArray
    names: Column


def attributions(decoded: DecodedBucket, result: Rebalances, kind: pa.DataType, *, asks: bool) -> Attributions:
    """Attribute each record; `kind` is the type of the names. What the assignor that ran gives exactly is its own.

    `asks`: ask the assignors of other libraries about the rest, one group at a time: most of the time of a bucket.
    """
    modern = decoded.snapshots.modern
    judged = Judged(
        result.verdict,
        peopled=np.diff(result.party.member_start) > 0,
        modern=modern,
        rejected=decoded.rejections.mask[:-1],
        foreign=_foreign(decoded, (result.verdict == Verdict.EXACT) & ~modern),
    )
    code = settled(judged)
    lists: list[tuple[str, ...]] = [(name_of(name),) for name in decoded.choice.names]
    which = decoded.choice.chosen.copy()
    rows = np.flatnonzero(code == NONE)
    answers = _asked(decoded, result, rows) if asks else _unasked(decoded, result, rows)
    for row, (found, names) in zip(rows.tolist(), answers, strict=True):
        code[row], which[row] = found, len(lists)
        lists.append(names)
    known = code <= Attributed.NO_KNOWN_ASSIGNOR
    return Attributions(code, pa.array(lists, kind).take(pa.array(which, mask=~known)))


def with_releases(decoded: DecodedBucket, verdict: IntArray, attributed: IntArray) -> IntArray:
    """Return the verdicts with `OTHER_RELEASE` for other answers of Java's sticky assignors.

    Those are records that no other library is known to give, of a leader that writes as Java clients do: of releases
    before 3.7.1 the sticky assignors are not computed, and they give other answers. A record of partitions that no
    listing has may be of any release.
    """
    found = verdict.copy()
    among = (verdict == Verdict.VALID_DIFFERENT) & np.isin(attributed, UNDECIDED)
    group, protocol, wrote = _leaders(decoded, among)
    values = (column(wrote, name).to_pylist() for name in (c.SUBSCRIPTION_VERSION, c.USER_DATA))
    for row, name, *said in zip(group.tolist(), protocol.to_pylist(), *values, strict=True):
        if name in STICKY_ASSIGNORS:
            found[row] = OTHER_RELEASE.get(java_releases(name, *said) or "", verdict[row])
    return found


def _leaders(decoded: DecodedBucket, among: Mask) -> tuple[LongArray, Column, pa.Table]:
    """Select the rows of groups that Java's assignor ran for, their protocols, and what their leaders wrote."""
    groups, own, choice = decoded.groups, decoded.members, decoded.choice
    among = among & np.array([is_javas(name) for name in (*choice.names, "")])[choice.chosen]
    group = ragged.owners(decoded.snapshots.batch.member_start)
    leads = pc.equal(column(own, c.MEMBER_ID), column(groups, c.LEADER).take(pa.array(group)))
    rows = np.flatnonzero(are_true(leads) & among[group])
    wrote = own.select([c.SUBSCRIPTION_VERSION, c.USER_DATA]).take(pa.array(rows)).combine_chunks()
    return group[rows], column(groups, c.ASSIGNOR).take(pa.array(group[rows])), wrote


def _foreign(decoded: DecodedBucket, among: Mask) -> Mask:
    """Select the groups that Java's assignor ran for, and whose leader wrote what Java does not."""
    group, protocol, wrote = _leaders(decoded, among)
    found = np.zeros(len(decoded.groups), np.bool_)
    found[group] = are_foreign(protocol, column(wrote, c.SUBSCRIPTION_VERSION), column(wrote, c.USER_DATA))
    return found


def are_foreign(protocol: Column, version: Column, data: Column) -> Mask:
    """Whether each is what Java does not write, asked once of each that differs.

    Claims of `sticky` all differ, and without kafka-python's prefix they are in Java's form: as good as none.
    """
    claims = pc.and_(pc.equal(protocol, STICKY), pc.greater(pc.binary_length(data), 0))
    claims = pc.and_(claims, pc.invert(pc.starts_with(data, pattern=STRAY_PREFIX)))
    data = pc.if_else(pc.fill_null(claims, False), pa.scalar(None, data.type), data)
    parts = [each.dictionary_encode() for each in (protocol, version, data)]
    codes = np.stack([integers(each.indices, NONE) for each in parts])
    distinct, which = np.unique(codes, axis=1, return_inverse=True)
    texts = [[*each.dictionary.to_pylist(), None] for each in parts]
    foreign = [is_foreign(*(text[at] for text, at in zip(texts, key, strict=True))) for key in distinct.T.tolist()]
    found: Mask = np.array(foreign, np.bool_)[which.ravel()]
    return found


def _unasked(decoded: DecodedBucket, result: Rebalances, rows: LongArray) -> Iterator[AttributedTo]:
    """Yield what the verdicts alone say of the records of some groups, in their order."""
    names, chosen = [*decoded.choice.names, None], decoded.choice.chosen
    for row in rows.tolist():
        yield unless_it_ran(Attributed.NOT_ASKED, Verdict(int(result.verdict[row])), names[chosen[row]])


def _asked(decoded: DecodedBucket, result: Rebalances, rows: LongArray) -> Iterator[AttributedTo]:
    """Return what assignors say of the records of some groups, in their order."""
    if len(rows) == 0:
        return
    topics, topic_group = decoded.snapshots.topics, decoded.snapshots.topic_group
    moments = [topics.now, *other_moments(topics, topic_group, result.subscribed.any(), len(decoded.groups))]
    moments.append(recorded_counts(decoded.snapshots))
    has_view = _has_view(decoded, moments)
    size = sizes(decoded.snapshots, integers(pc.binary_length(column(decoded.members, c.USER_DATA)), 0))
    names, chosen = [*decoded.choice.names, None], decoded.choice.chosen
    protocols = column(decoded.groups, c.ASSIGNOR).take(pa.array(rows)).to_pylist()
    large = np.array([size.too_large(*each) for each in zip(rows.tolist(), protocols, strict=True)], np.bool_)
    snapshots = _snapshots(decoded, rows[~large & has_view[rows]])
    for row, is_large in zip(rows.tolist(), large.tolist(), strict=True):
        verdict, ran = Verdict(int(result.verdict[row])), names[chosen[row]]
        if is_large:
            yield unless_it_ran(Attributed.TOO_LARGE, verdict, ran)
            continue
        if not has_view[row]:
            yield unless_it_ran(Attributed.PARTITIONS_NOT_LISTED, verdict, ran)
            continue
        snapshot, own = next(snapshots)
        if all(member.recorded is None for member in own):
            yield AttributedTo(Attributed.NO_RECORD)
            continue
        observed = recorded_round(snapshot, own)
        yield attributed(observed, list(_views(decoded, moments, row, observed)), verdict, ran)


def _has_view(decoded: DecodedBucket, moments: list[IntArray]) -> Mask:
    """Tell of each group [G] whether its topics had all recorded partitions at one of the moments (counts [T])."""
    recorded, groups = decoded.snapshots.recorded, len(decoded.groups)
    group = decoded.snapshots.topic_group[recorded.topic]
    missing = [np.bincount(group[recorded.partition >= counts[recorded.topic]], minlength=groups) for counts in moments]
    found: Mask = np.min(missing, axis=0) == 0
    return found


def _snapshots(decoded: DecodedBucket, rows: LongArray) -> Iterator[tuple[GroupSnapshotRow, list[MemberSnapshotRow]]]:
    """Yield groups and their members as the fold made them. They are converted many at a time: one by one is slow."""
    groups, members = decoded.groups.select(GROUP_FIELDS), decoded.members.select(MEMBER_FIELDS)
    start = decoded.snapshots.batch.member_start
    for at in range(0, len(rows), TOGETHER):
        some = rows[at : at + TOGETHER]
        sizes_of = np.diff(start)[some]
        places = np.repeat(start[some] - ragged.starts(sizes_of)[:-1], sizes_of) + np.arange(sizes_of.sum())
        own = iter(snapshot_rows(members.take(pa.array(places)), MemberSnapshotRow))
        snapshots = snapshot_rows(groups.take(pa.array(some)), GroupSnapshotRow)
        for snapshot, size in zip(snapshots, sizes_of.tolist(), strict=True):
            yield snapshot, list(islice(own, size))


def _views(
    decoded: DecodedBucket, moments: list[IntArray], row: int, observed: RecordedRound
) -> Iterator[dict[str, int]]:
    """Return the group's topics at each moment: all of them, and those that the record gives partitions of."""
    first, end = decoded.snapshots.batch.topic_start[row : row + 2].tolist()
    names = decoded.topic_names.slice(first, end - first).to_pylist()
    given = {each.topic for mine in observed.recorded.values() for each in mine}
    for counts in moments:
        known = {name: count for name, count in zip(names, counts[first:end].tolist(), strict=True) if count != NONE}
        yield known
        yield {name: count for name, count in known.items() if name in given}
