"""What is wrong, and what is missing, in the groups of a timeline: words only for what is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.batch import NONE
from groupledger.core.findings import DOUBLE_OWNED, REWRITE_DIFFERS, Invariant
from groupledger.core.history import CoverageRow, FindingRow, gaps, snapshot_id
from groupledger.core.history.assigned import double_evidence, faults, rewrite_evidence
from groupledger.core.history.claimed import ClaimPeriod, Disagreement, NumbersByTopic, finding
from groupledger.core.history.steps import (
    BEGINS_DELETED,
    BEGINS_LATE,
    REWRITE_KIND,
    SKIPPED,
    TOMBSTONE_MISSING,
    UNREADABLE,
)
from groupledger.engine.classic.lists import PartitionSets

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
        payloads, walked, line = self.payloads, self.line.walked, self.line
        of_said, said = payloads.of_said, payloads.said
        is_compared = np.append(said.is_compared, False)[of_said]
        some = np.flatnonzero(is_compared & (walked.compared[: len(of_said)] == 1) & (step_of[: len(of_said)] != NONE))
        holder = np.where(walked.before[some] != NONE, walked.before[some], walked.predecessor[some])
        holdings, nothing = self._holdings()
        of_holder = np.concatenate([payloads.of_told, nothing - len(line.heads.held) + np.arange(len(line.heads.held))])
        held = np.where(holder == NONE, nothing, of_holder[holder])
        held[held == NONE] = nothing
        pairs, found = np.unique(of_said[some] * (nothing + 1) + held, return_inverse=True)
        claims = PartitionSets.of(said.claim)
        differs = ~claims.equal(pairs // (nothing + 1), holdings, pairs % (nothing + 1))
        for place in np.flatnonzero(differs[found]).tolist():
            member, code = int(some[place]), int(of_said[some[place]])
            step = int(step_of[member])
            last = int(walked.last[step])
            was_member, has_predecessor = walked.before[member] != NONE, walked.predecessor[member] != NONE
            generation = int(said.generation[code]) if said.has_generation[code] else None
            claim = Disagreement(
                self._in_words(claims, code),
                self._in_words(holdings, int(held[place])),
                frozenset(said.read(code).topics),
                *(generation, bool(was_member), bool(has_predecessor)),
            )
            topics = self.catalogues[self.cluster_ids[int(line.group[step])]]
            numbers = int(line.steps.generation[last]), int(line.steps.generation[step])
            period = ClaimPeriod(topics, *numbers, int(line.time[last]), int(line.time[step]))
            broken, severity, evidence = finding(claim, period)
            yield self._found(broken, step, evidence, severity=severity, member_id=self._member(member))

    def _holdings(self) -> tuple[PartitionSets, int]:
        """What each distinct assignment and each member of a head holds, then nothing; and the number of that."""
        heads = [
            (owner, name or "", number)
            for owner, held in enumerate(self.line.heads.held)
            for _, name, number, _ in held
        ]
        number_of = {name: code for code, name in enumerate(self.payloads.names)}
        named = [number_of.setdefault(name, len(number_of)) for _, name, _ in heads]
        self.names = list(number_of)
        owner, number = (np.array([each[field] for each in heads], np.int64) for field in (0, 2))
        count = len(self.line.heads.held) + 1
        of_heads = PartitionSets.of_partitions(owner, np.array(named, np.int64), number, count)
        told = PartitionSets.of(self.payloads.told.lists)
        return told.and_(of_heads), len(told.start) - 1 + count - 1

    def _in_words(self, sets: PartitionSets, index: int) -> NumbersByTopic:
        words: NumbersByTopic = {}
        for name, number in sets.read(index):
            words.setdefault(self.names[name], set()).add(number)
        return words

    def _assignments(self, step_of: LongArray) -> Iterator[FindingRow]:
        """Topics that stand twice in an assignment, or that the subscription does not name."""
        payloads = self.payloads
        said, told = payloads.said, payloads.told
        some = np.flatnonzero((payloads.of_said != NONE) & (step_of[: len(payloads.of_said)] != NONE))
        count = max(1, len(told.code))
        pairs, found = np.unique(payloads.of_said[some] * count + payloads.of_told[some], return_inverse=True)
        is_wrong = told.repeated[pairs % count] | payloads.are_beyond(pairs // count, pairs % count)
        wrong = {
            pair: list(faults(said.read(int(pairs[pair] // count)), told.read(int(pairs[pair] % count))))
            for pair in np.flatnonzero(is_wrong).tolist()
        }
        for place in np.flatnonzero(is_wrong[found]).tolist():
            member = int(some[place])
            for broken, topic, evidence in wrong[int(found[place])]:
                yield self._found(broken, int(step_of[member]), evidence, member_id=self._member(member), topic=topic)

    def _rewrites(self) -> Iterator[FindingRow]:
        """Rewrites that move more than a static member's new id explains: the first change that does."""
        line, changes = self.line, self.line.transfers.changes
        rewritten = (line.walked.kind == REWRITE_KIND) & self.facts.good[line.group]
        known: dict[int, dict[int, int]] = {}
        found: set[int] = set()
        for row in np.flatnonzero(rewritten[changes.step]).tolist():
            step, giver, taker = int(changes.step[row]), int(changes.giver[row]), int(changes.taker[row])
            last = int(line.walked.last[step])
            for each in (last, step):
                known[each] = known.get(each) or self._instances(each)
            before = known[last].get(giver, NONE)
            if step in found or (before != NONE and before == known[step].get(taker, NONE)):
                continue
            found.add(step)
            slot = int(changes.slot[row])
            topic, partition = line.topics[line.slot_topic[slot]], int(line.slot_partition[slot])
            names = (None if member == NONE else line.members[member] for member in (giver, taker))
            number = int(line.steps.generation[step])
            evidence = rewrite_evidence(number, topic, partition, *names)
            yield self._found(REWRITE_DIFFERS, step, evidence, member_id=None, topic=topic, partition=partition)

    def _instances(self, step: int) -> dict[int, int]:
        """Member -> its instance id, of a step, as codes; NONE: it has none."""
        steps, names = self.line.steps, self.line.names
        members = slice(steps.member_first[step], steps.member_first[step] + steps.member_count[step])
        return dict(zip(names.member[members].tolist(), names.instance[members].tolist(), strict=True))

    def _doubles(self) -> Iterator[FindingRow]:
        """Partitions recorded for several members at once, by topic and by who these are."""
        line, steps = self.line, self.line.steps
        for step in np.flatnonzero((line.transfers.doubled != 0) & (line.place != NONE) & self.facts.good[line.group]):
            holders: dict[tuple[str, int], list[str]] = {}
            for member in range(steps.member_first[step], steps.member_first[step] + steps.member_count[step]):
                code = int(self.payloads.of_told[member])
                told = self.payloads.told.read(code).partitions if code != NONE else ()
                for name, partitions in told:
                    for partition in partitions:
                        holders.setdefault((name, partition), []).append(self._member(member))
            together: dict[tuple[str, tuple[str, ...]], list[int]] = {}
            for (topic, number), members in holders.items():
                if len(members) > 1:
                    together.setdefault((topic, tuple(sorted(members))), []).append(number)
            for (topic, held_by), numbers in sorted(together.items()):
                evidence, one = double_evidence(topic, list(held_by), sorted(numbers))
                yield self._found(DOUBLE_OWNED, int(step), evidence, member_id=held_by[0], topic=topic, partition=one)
