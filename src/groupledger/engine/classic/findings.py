"""What is wrong, and what is missing, in the groups of a timeline: words only for what is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.batch import NONE
from groupledger.core.findings import DOUBLE_OWNED, REWRITE_DIFFERS, Invariant
from groupledger.core.history import CoverageRow, FindingRow, gaps, snapshot_id
from groupledger.core.history.assigned import double_evidence, faults, rewrite_evidence
from groupledger.core.history.claimed import ClaimPeriod, Disagreement, NumbersByTopic, claimed_by, finding, is_compared
from groupledger.core.history.steps import (
    BEGINS_DELETED,
    BEGINS_LATE,
    REWRITE_KIND,
    SKIPPED,
    TOMBSTONE_MISSING,
    UNREADABLE,
)

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.faults import Fault
    from groupledger.core.findings import Severity
    from groupledger.core.history import TopicHistory
    from groupledger.engine.classic.tables import FactColumns


class Findings:
    """Rows of `coverage` and `violations` for the good groups of a timeline."""

    def __init__(
        self, facts: FactColumns, unreadable: dict[int, tuple[str, Fault]], catalogues: dict[str, TopicHistory]
    ) -> None:
        self.facts, self.line, self.payloads = facts, facts.line, facts.payloads
        self.unreadable, self.catalogues = unreadable, catalogues
        self.cluster_ids, self.group_ids = facts.cluster_ids.to_pylist(), facts.group_ids.to_pylist()

    def coverage(self) -> Iterator[CoverageRow]:
        """What the log does not hold."""
        line = self.line
        for step in np.flatnonzero((line.walked.gaps != 0) & self.facts.good[line.group]).tolist():
            bits, incarnation = int(line.walked.gaps[step]), int(line.walked.incarnation[step])
            number, last = int(line.steps.generation[step]), int(line.walked.last[step])
            before = None if last == NONE else int(line.steps.generation[last])
            late, missing = gaps.HISTORY_BEGINS_LATE, gaps.TOMBSTONE_MISSING
            if bits & UNREADABLE:
                kind, fault = self.unreadable[int(line.record[step])]
                reason = gaps.unreadable(gaps.undecoded(kind, int(line.steps.offset[step]), fault))
                yield self._gap(step, max(1, incarnation), gaps.RECORD_UNREADABLE, before, None, reason)
            if bits & BEGINS_DELETED:
                yield self._gap(step, incarnation, late, None, None, gaps.BEGINS_WITH_TOMBSTONE)
            if bits & TOMBSTONE_MISSING and before is not None:
                reason = gaps.generation_fell(before, number)
                yield self._gap(step, incarnation - 1, missing, before, number, reason)
            if bits & BEGINS_LATE:
                yield self._gap(step, incarnation, late, None, number, gaps.begins_with(number))
            if bits & SKIPPED and before is not None:
                reason = gaps.generations_between(before, number)
                yield self._gap(step, incarnation, gaps.GENERATIONS_SKIPPED, before, number, reason)

    def _gap(
        self, step: int, incarnation: int, kind: str, first: int | None, last: int | None, reason: str
    ) -> CoverageRow:
        cluster_id, group_id, identity, _, offset = self._place(step)
        return CoverageRow(cluster_id, group_id, incarnation, kind, first, last, reason, offset, identity)

    def _place(self, step: int) -> tuple[str, str, str, int, int]:
        """Cluster, group, snapshot, log partition and offset."""
        group, offset = int(self.line.group[step]), int(self.line.steps.offset[step])
        cluster_id, home = self.cluster_ids[group], int(self.facts.homes[group])
        return cluster_id, self.group_ids[group], snapshot_id(cluster_id, home, offset), home, offset

    def violations(self) -> Iterator[FindingRow]:
        """All findings."""
        step_of = np.full(len(self.line.names.member), NONE, np.int64)
        start, member = self.facts.members_of_snapshots
        step_of[member] = np.repeat(self.facts.snapshots, np.diff(start))
        yield from self._claims(step_of)
        yield from self._assignments(step_of)
        yield from self._rewrites()
        yield from self._doubles()

    def _found(
        self,
        broken: Invariant,
        step: int,
        evidence: str,
        *,
        severity: Severity | None = None,
        member_id: str | None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> FindingRow:
        cluster_id, group_id, identity, home, offset = self._place(step)
        grave = (severity or broken.severity).value
        about = (cluster_id, group_id, identity, member_id, topic, partition)
        return FindingRow(broken.recorded_as, grave, None, *about, evidence, home, offset)

    def _member(self, member: int) -> str:
        return self.line.members[int(self.line.names.member[member])]

    def _claims(self, step_of: LongArray) -> Iterator[FindingRow]:
        """Claims that differ from what was held: each pair of a claim and a holding is compared once."""
        payloads, walked = self.payloads, self.line.walked
        compared = [is_compared(*each) for each in zip(payloads.said, payloads.assignors, strict=True)]
        of_said = payloads.of_said
        some = np.flatnonzero(
            (of_said != NONE) & (walked.compared[: len(of_said)] == 1) & (step_of[: len(of_said)] != NONE)
        )
        some = some[np.array([*compared, False], bool)[of_said[some]]]
        holder = np.where(walked.before[some] != NONE, walked.before[some], walked.predecessor[some])
        holdings, of_holder = self._holdings()
        held = np.where(holder == NONE, NONE, of_holder[holder])
        pairs, found = np.unique(of_said[some] * (len(holdings) + 1) + held + 1, return_inverse=True)
        claims = [claimed_by(said) for said in payloads.said]
        differs = np.array([self._differ(claims, holdings, pair) for pair in pairs.tolist()], bool)
        for place in np.flatnonzero(differs[found] if len(pairs) else differs).tolist():
            member = int(some[place])
            step = int(step_of[member])
            said = int(of_said[member])
            claim = Disagreement(
                claims[said],
                {} if held[place] == NONE else holdings[held[place]],
                payloads.said[said].claim.generation,
                walked.before[member] != NONE,
                walked.predecessor[member] != NONE,
            )
            last = int(walked.last[step])
            topics = self.catalogues[self.cluster_ids[self.line.group[step]]]
            times = int(self.line.time[last]), int(self.line.time[step])
            broken, severity, evidence = finding(
                claim, ClaimPeriod(topics, int(self.line.steps.generation[last]), *times)
            )
            yield self._found(broken, step, evidence, severity=severity, member_id=self._member(member))

    @staticmethod
    def _differ(claims: list[NumbersByTopic], holdings: list[NumbersByTopic], pair: int) -> bool:
        said, held = divmod(pair, len(holdings) + 1)
        return claims[said] != (holdings[held - 1] if held else {})

    def _holdings(self) -> tuple[list[NumbersByTopic], LongArray]:
        """What is held, by topic: of each distinct assignment and of each member of a head; and each member's."""
        told = [{topic: set(numbers) for topic, numbers in each.partitions if numbers} for each in self.payloads.told]
        heads: list[NumbersByTopic] = []
        for held in self.line.heads.held:
            heads.append({})
            for topic_id, topic, partition, _ in held:
                heads[-1].setdefault(topic or topic_id or "", set()).add(partition)
        return told + heads, np.concatenate([self.payloads.of_told, len(told) + np.arange(len(heads))])

    def _assignments(self, step_of: LongArray) -> Iterator[FindingRow]:
        """Topics that stand twice in an assignment, or that the subscription does not name."""
        payloads = self.payloads
        some = np.flatnonzero((payloads.of_said != NONE) & (step_of[: len(payloads.of_said)] != NONE))
        count = max(1, len(payloads.told))
        pairs, found = np.unique(payloads.of_said[some] * count + payloads.of_told[some], return_inverse=True)
        wrong = [list(faults(payloads.said[pair // count], payloads.told[pair % count])) for pair in pairs.tolist()]
        is_wrong = np.array([bool(each) for each in wrong], bool)
        for place in np.flatnonzero(is_wrong[found] if len(pairs) else is_wrong).tolist():
            member = int(some[place])
            for broken, topic, evidence in wrong[found[place]]:
                yield self._found(broken, int(step_of[member]), evidence, member_id=self._member(member), topic=topic)

    def _rewrites(self) -> Iterator[FindingRow]:
        """Rewrites that move more than a static member's new id explains: the first change that does."""
        line, changes = self.line, self.line.transfers.changes
        rewritten = (line.walked.kind == REWRITE_KIND) & self.facts.good[line.group]
        settled: dict[int, bool] = {}
        for row in np.flatnonzero(rewritten[changes.step]).tolist():
            step, giver, taker = int(changes.step[row]), int(changes.giver[row]), int(changes.taker[row])
            if settled.get(step):
                continue
            before = self._instance(int(line.walked.last[step]), giver)
            if before is not None and before == self._instance(step, taker):
                continue
            settled[step] = True
            slot = int(changes.slot[row])
            topic, partition = line.topics[line.slot_topic[slot]], int(line.slot_partition[slot])
            names = (None if member == NONE else line.members[member] for member in (giver, taker))
            number = int(line.steps.generation[step])
            evidence = rewrite_evidence(number, topic, partition, *names)
            yield self._found(REWRITE_DIFFERS, step, evidence, member_id=None, topic=topic, partition=partition)

    def _instance(self, step: int, member: int) -> int | None:
        """The instance id, as a code, that a member has at a step; None: it is nobody's, or not there."""
        steps, names = self.line.steps, self.line.names
        first = int(steps.member_first[step])
        rows = np.flatnonzero(names.member[first : first + steps.member_count[step]] == member)
        if member == NONE or not len(rows):
            return None
        code = int(names.instance[first + rows[0]])
        return None if code == NONE else code

    def _doubles(self) -> Iterator[FindingRow]:
        """Partitions recorded for several members at once, by topic and by who these are."""
        line, steps = self.line, self.line.steps
        for step in np.flatnonzero((line.transfers.doubled != 0) & (line.place != NONE) & self.facts.good[line.group]):
            holders: dict[tuple[str, int], list[str]] = {}
            for member in range(steps.member_first[step], steps.member_first[step] + steps.member_count[step]):
                code = self.payloads.of_told[member]
                for topic, numbers in self.payloads.told[code].partitions if code != NONE else ():
                    for number in numbers:
                        holders.setdefault((topic, number), []).append(self._member(member))
            together: dict[tuple[str, tuple[str, ...]], list[int]] = {}
            for (topic, number), members in holders.items():
                if len(members) > 1:
                    together.setdefault((topic, tuple(sorted(members))), []).append(number)
            for (topic, held_by), numbers in sorted(together.items()):
                evidence, one = double_evidence(topic, list(held_by), sorted(numbers))
                yield self._found(DOUBLE_OWNED, int(step), evidence, member_id=held_by[0], topic=topic, partition=one)
