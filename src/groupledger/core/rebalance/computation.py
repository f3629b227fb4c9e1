"""Compute rebalances from snapshots: the assignor's target, the step towards it, and the verdict on the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch, IntArray, LongArray
from groupledger.core.arrays.kernels import run
from groupledger.core.arrays.ragged import MemberAssignments, MemberSlots, Naming, Slots, Topics, number
from groupledger.core.arrays.snapshots import NamedLists, Snapshots, Subscribed, TopicViews, by_topic, select
from groupledger.core.assignors import Mode, Status, assign, kip315
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.safe import generations
from groupledger.core.custom.contract import Texts, assign_custom
from groupledger.core.custom.custom_group import CustomAssignor
from groupledger.core.custom.messages import Complaint
from groupledger.core.rebalance.registry import BY_NAME, STREAM_JOIN
from groupledger.core.rebalance.step import (
    Form,
    GroupMembership,
    Reason,
    Step,
    assign_round,
    hold_back,
    measure,
    settled,
)
from groupledger.core.rebalance.verdict import (
    TRIED,
    Breaches,
    TopicRowPartitions,
    Verdict,
    breaches,
    compare,
    other_moments,
    recorded_counts,
    without_unrecorded,
)

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask


MOST_ROUNDS = 4
"""Rounds in which a group settles: cooperative assignors need two or three."""


@dataclass(frozen=True, slots=True)
class Rebalances:
    """One round of each group. Lists of members are grouped by topic."""

    party: GroupMembership
    slots: Slots
    held: MemberSlots
    target: MemberSlots
    step: Step
    topics: TopicViews  # as the answer has them: not those listed at the snapshot where another view of them matched
    status: IntArray  # [G] `assignors.Status`
    verdict: IntArray  # [G] `Verdict`
    breaches: Breaches  # of groups whose record is judged by invariants
    subscribed: Subscribed
    complaints: Complaints


def rebalance(snapshots: Snapshots, choice: Choice) -> Rebalances:
    """Run the chosen assignor of each group, derive the step, and judge the record."""
    subscribed = Subscribed(snapshots.batch)
    basis = _basis(snapshots, choice, subscribed)
    answers = _answers(_with_claims(snapshots, basis, choice), choice)
    if choice.settles:
        answers = _with_last_round(snapshots, choice, answers)
    case = _case(snapshots, choice, subscribed, basis, answers)
    verdict, broken, matched = _judge(snapshots, choice, case)
    if matched:  # all numbers are of the answer that equals the record, not of the one that does not
        snapshots, case = _as_matched(snapshots, choice, case, matched)
    party, slots, owned, lists = case.party, case.slots, case.owned, case.lists
    target = lists.target.where((choice.chosen != NONE)[party.group], lists.goal)
    dated = generations(_with_claims(snapshots, basis, choice), cooperative=True)
    assigned = _assigned(choice, party, slots, owned, lists, target, dated)
    step = measure(party, slots, lists.held, owned, target, assigned)
    if choice.carried:
        last = measure(party, slots, lists.held, owned, target, target)
        step = settled(step, last, lists.held, slots)
    step = replace(step, reason=_reasons(snapshots, choice, step, slots, subscribed))
    status, complaints = case.answer.status, case.answer.complaints
    return Rebalances(
        *(party, slots, lists.held, target, step, snapshots.topics), *(status, verdict, broken, subscribed, complaints)
    )


def _reasons(snapshots: Snapshots, choice: Choice, step: Step, slots: Slots, subscribed: Subscribed) -> IntArray:
    """Return why partitions are unassigned; for a stream join, which of its two rules left one out (KIP-315)."""
    group = slots.group[step.unassigned]
    joins = np.array([name == STREAM_JOIN.name for name in (*choice.names, "")])[choice.chosen[group]]
    joins &= step.reason == Reason.ASSIGNOR_LEFT_OUT
    if not joins.any():
        return step.reason
    counts = np.where(subscribed.any(), snapshots.topics.now, NONE)
    partition = slots.partition[step.unassigned]
    of_join = kip315.reasons(group, partition, snapshots.topic_group, counts, len(choice.chosen))
    return np.where(joins, of_join, step.reason)


def _assigned(
    choice: Choice,
    party: GroupMembership,
    slots: Slots,
    owned: MemberSlots,
    lists: _Numbered,
    target: MemberSlots,
    generation: LongArray,
) -> MemberSlots:
    """Return this round's assignment: as Kafka's code adjusts the target, or by the KIP from (owned, target).

    `generation` [M] dates what each member owns.

    The two differ only if members contradict one another: for a partition that two of them claim, or one with a claim
    of an earlier generation, Kafka's code uses its algorithm's internal state. A plan may withhold more, so that the
    group settles in two rounds (`assignors.safe`).
    """
    given = lists.assigned
    if choice.form is Form.KIP:
        offered = lists.assigned.where(choice.plans[party.group], target)
        given = assign_round(choice.form, owned, target, slots, generation)
        given = hold_back(given, target, offered, slots)
        given = _grouped(given, slots)
    return given.where((choice.chosen != NONE)[party.group], lists.recorded)


@dataclass(frozen=True, slots=True)
class _Answers:
    target: NamedLists
    assigned: NamedLists  # Kafka's own answer: cooperative-sticky withholds partitions in it
    status: IntArray
    complaints: Complaints


@dataclass(frozen=True, slots=True)
class _Numbered:
    claimed: MemberSlots
    held: MemberSlots
    recorded: MemberSlots
    goal: MemberSlots
    target: MemberSlots
    assigned: MemberSlots


@dataclass(frozen=True, slots=True)
class _Case:
    party: GroupMembership
    slots: Slots
    owned: MemberSlots
    lists: _Numbered
    subscribed: Subscribed
    answer: _Answers
    basis: NamedLists


@dataclass(frozen=True, slots=True)
class _Matched:
    """Groups whose record is the answer under another view of the topics."""

    groups: LongArray
    meaning: Verdict
    topics: TopicViews
    answer: _Answers


def _case(snapshots: Snapshots, choice: Choice, subscribed: Subscribed, basis: NamedLists, answer: _Answers) -> _Case:
    slots, lists = _number(snapshots, subscribed, basis, answer)
    party, owned = _owned(snapshots, choice, lists)
    return _Case(party, slots, owned, lists, subscribed, answer, basis)


def _as_matched(snapshots: Snapshots, choice: Choice, case: _Case, matched: list[_Matched]) -> tuple[Snapshots, _Case]:
    """Return the topics and the answers of the views that matched, for their groups; of several the last."""
    topics, answer = snapshots.topics, case.answer
    for each in matched:
        of_group = np.isin(np.arange(len(choice.chosen)), each.groups)
        of_topic, of_member = of_group[snapshots.topic_group], of_group[snapshots.member_group]
        now: IntArray = np.where(of_topic, each.topics.now, topics.now)
        gone: Mask = np.where(of_topic, each.topics.gone, topics.gone)
        topics = replace(topics, now=now, gone=gone)
        complaints = {group: found for group, found in answer.complaints.items() if not of_group[group]}
        complaints |= {group: found for group, found in each.answer.complaints.items() if of_group[group]}
        answer = replace(
            answer,
            target=each.answer.target.where(of_member, answer.target),
            assigned=each.answer.assigned.where(of_member, answer.assigned),
            complaints=complaints,
        )
    snapshots = replace(snapshots, topics=topics)
    return snapshots, _case(snapshots, choice, case.subscribed, case.basis, answer)


def _basis(snapshots: Snapshots, choice: Choice, subscribed: Subscribed) -> NamedLists:
    """Return the claims that the assignor sees: as sent; in a what-if, what members held and may still have."""
    what_if = choice.what_if[snapshots.member_group]
    claims = snapshots.claims
    if not what_if.any():
        return claims
    held = snapshots.held
    count = snapshots.topics.now[held.topic]
    there = (held.partition < count) | ((count == NONE) & ~snapshots.topics.gone[held.topic])
    if held.earlier is not None:
        there &= ~held.earlier
    kept = held.only(there & subscribed.names(held.member, held.topic) & what_if[held.member])
    return claims.only(~what_if[claims.member]).joined(kept)


def _with_claims(snapshots: Snapshots, basis: NamedLists, choice: Choice) -> GroupBatch:
    """Return the batch with `basis` as claims; what-if claims are all of one generation."""
    batch = snapshots.batch
    local = basis.topic - batch.topic_start[snapshots.member_group[basis.member]]
    what_if = choice.what_if[snapshots.member_group]
    return replace(
        batch,
        claim_start=basis.start,
        claim_topic=local.astype(np.int32),
        claim_partition=basis.partition,
        subscription_generation=np.where(what_if, 0, batch.subscription_generation).astype(np.int32),
        claim_generation=np.where(what_if, 0, batch.claim_generation).astype(np.int32),
    )


def _answers(batch: GroupBatch, choice: Choice) -> _Answers:
    """Run each chosen assignor once, over all its groups. Groups without members get nothing."""
    peopled = np.diff(batch.member_start) > 0
    status = np.zeros(batch.groups, np.int32)
    complaints: dict[int, tuple[Complaint, ...]] = {}
    parts = []
    modes: tuple[tuple[Mode, Mask], ...] = (("as-kafka", ~choice.plans), ("safe", choice.plans))
    for index in range(len(choice.names)):
        for mode, asked in modes:
            groups = np.flatnonzero((choice.chosen == index) & peopled & asked)
            if len(groups) > 0:
                part, member, topic = select(batch, groups)
                answer, found = choice.run(choice.names[index], mode, part, member, topic)
                complaints |= {int(groups[at]): each for at, each in found.items()}
                status[groups] = answer.status
                parts.append((part, member, topic, answer))
    return _Answers(_scattered(batch, parts, "target"), _scattered(batch, parts, "assigned"), status, complaints)


def _with_last_round(snapshots: Snapshots, choice: Choice, first: _Answers) -> _Answers:
    """Return the answers with the targets of each group's last round: Kafka's assignors compute again in each.

    A cooperative assignor holds back in one round what it gives in the next, perhaps to another member than it meant.
    """
    last = first
    for _ in range(MOST_ROUNDS):
        held_back = np.diff(last.assigned.start) < np.diff(last.target.start)
        waits = np.bincount(snapshots.member_group[held_back], minlength=len(choice.chosen)) > 0
        if not waits.any():
            break
        again = replace(choice, chosen=np.where(waits, choice.chosen, NONE))
        found = _answers(_with_claims(snapshots, last.assigned, choice), again)
        of_member = waits[snapshots.member_group]
        last = replace(
            last,
            target=found.target.where(of_member, last.target),
            assigned=found.assigned.where(of_member, last.assigned),
        )
    return replace(first, target=last.target)


def _scattered(
    batch: GroupBatch, parts: list[tuple[GroupBatch, LongArray, LongArray, AssignmentBatch]], which: str
) -> NamedLists:
    """Return one of the two lists of all parts, put back in place of their members."""
    length = np.zeros(batch.members, np.int64)
    for _, member, _, answer in parts:
        length[member] = np.diff(getattr(answer, which).start)
    start = ragged.starts(length)
    topic_row, partition = np.empty(start[-1], np.int64), np.empty(start[-1], np.int32)
    for part, member, topic, answer in parts:
        own: MemberAssignments = getattr(answer, which)
        owner = own.member
        at = start[member[owner]] + ragged.places(own.start)
        first = part.topic_start[ragged.owners(part.member_start)]
        topic_row[at] = topic[first[owner] + own.topic]
        partition[at] = own.partition
    return NamedLists(start, topic_row, partition)


def _number(
    snapshots: Snapshots, subscribed: Subscribed, basis: NamedLists, answer: _Answers
) -> tuple[Slots, _Numbered]:
    """Assign slots to everything that is named; return lists grouped by topic, without repetitions."""
    views = snapshots.topics
    topics = Topics(snapshots.topic_group, views.now, views.gone, subscribed.any())
    named = [basis, snapshots.held, snapshots.recorded, snapshots.goal, answer.target, answer.assigned]
    slots, numbered = number(topics, [Naming(each.topic, each.partition, each.earlier) for each in named])
    lists = [
        _grouped(MemberSlots(each.start, slot), slots).distinct(len(slots))
        for each, slot in zip(named, numbered, strict=True)
    ]
    return slots, _Numbered(*lists)


def _grouped(lists: MemberSlots, slots: Slots) -> MemberSlots:
    """Group each list by topic, as on the wire."""
    topic = slots.topic[lists.slot]
    order = np.empty(len(topic), np.int64)
    place = np.full(int(slots.topic.max(initial=-1)) + 1, NONE)
    run(by_topic, lists.start, topic, np.zeros(0, np.int32), place, order, cells=len(topic) + len(lists.start))
    return MemberSlots(lists.start, lists.slot[order])


def _owned(snapshots: Snapshots, choice: Choice, lists: _Numbered) -> tuple[GroupMembership, MemberSlots]:
    """Return what members keep while they rejoin, and which groups are incremental, by behaviour rather than by name.

    A claim that is a memory (KIP-54) was revoked before it was sent. `choice.by_protocol`: the protocol counts.
    """
    group = snapshots.member_group
    keeps = np.where(choice.by_protocol, choice.cooperative, True)[group] & ~(snapshots.memory & ~choice.what_if[group])
    stated = lists.claimed.only(keeps[lists.claimed.member])
    owned = lists.held.where(snapshots.modern[group], stated)
    by_deed = np.diff(owned.start[snapshots.batch.member_start]) > 0
    incremental = by_deed | snapshots.modern | (choice.by_protocol & choice.cooperative)
    return GroupMembership(snapshots.batch.member_start, incremental), owned


def _judge(snapshots: Snapshots, choice: Choice, case: _Case) -> tuple[IntArray, Breaches, list[_Matched]]:
    """Return a verdict per group, and the other views of topics that matched; count invariants only if none does."""
    judged = (choice.chosen != NONE) & ~choice.what_if & (choice.prejudged == NONE)
    found = compare(case.party, case.slots, case.lists.recorded, case.lists.assigned)
    verdict = np.where(found.exact, Verdict.EXACT, Verdict.EQUAL_SETS)
    differs = judged & ~found.equal & (case.answer.status == Status.OK)
    broken = _breaches(snapshots, choice, case, differs)
    breaking = broken.groups(snapshots.topic_group, len(differs))
    verdict = np.where(differs, np.where(breaking, Verdict.INVALID, Verdict.VALID_DIFFERENT), verdict)
    verdict = np.where(differs & _without_counts(snapshots, case), Verdict.CANNOT_TELL_NO_COUNTS, verdict)
    matched = _tried(snapshots, choice, case, np.flatnonzero(differs))
    for each in matched:
        verdict[each.groups] = each.meaning
    verdict = np.where(case.answer.status != Status.OK, Verdict.CANNOT_TELL_ASSIGNOR_FAILS, verdict)
    verdict = np.where(judged, verdict, np.where(choice.prejudged != NONE, choice.prejudged, Verdict.NOT_COMPARED))
    counts = (verdict == Verdict.INVALID)[snapshots.topic_group]
    return verdict.astype(np.int32), Breaches(*(each.only(counts) for each in broken)), matched


def _breaches(snapshots: Snapshots, choice: Choice, case: _Case, differs: Mask) -> Breaches:
    """Return the rules that records break which differ; most batches have none.

    A coordinator may leave partitions out, and hand them over in steps of its own: its targets break the other two.
    """
    invalid = choice.prejudged == Verdict.INVALID
    if not (differs | invalid).any():
        return Breaches(*[TopicRowPartitions(np.zeros(0, np.int64), np.zeros(0, np.int32))] * len(Breaches._fields))
    found = breaches(case.slots, case.subscribed, case.owned, case.lists.goal)
    of_leaders, of_any = (each[snapshots.topic_group] for each in (differs, differs | invalid))
    return Breaches(
        found.assigned_twice.only(of_any),
        found.not_subscribed.only(of_any),
        found.left_out.only(of_leaders),
        found.handed_over.only(of_leaders),
    )


def _without_counts(snapshots: Snapshots, case: _Case) -> Mask:
    """Return groups whose record has partitions of a topic that no listing knows."""
    unknown = (snapshots.topics.now == NONE) & ~snapshots.topics.gone
    entries = case.lists.recorded
    named = unknown[case.slots.topic[entries.slot]]
    found: Mask = np.bincount(case.party.group[entries.member[named]], minlength=len(case.answer.status)) > 0
    return found


def _tried(snapshots: Snapshots, choice: Choice, case: _Case, groups: LongArray) -> list[_Matched]:
    """Find groups whose record equals the answer under another topic view, and which; later entries weigh more."""
    if len(groups) == 0:
        return []
    moments = other_moments(snapshots.topics, snapshots.topic_group, case.subscribed.any(), len(choice.chosen))
    unrecorded = without_unrecorded(snapshots.topics.now, case.slots, case.lists.recorded)
    views = [*zip(moments[::-1], TRIED[::-1], strict=True), (unrecorded, Verdict.TOPIC_UNKNOWN_TO_LEADER)]
    views.insert(0, (recorded_counts(snapshots), Verdict.EXACT_RECORDED_TOPICS))
    found = [_agreeing(snapshots, choice, case, groups, counts, meaning) for counts, meaning in views]
    return [each for each in found if each is not None]


def _agreeing(
    snapshots: Snapshots, choice: Choice, case: _Case, groups: LongArray, counts: IntArray, meaning: Verdict
) -> _Matched | None:
    """Return those of `groups` whose record is the answer with `counts`; only groups whose topics differ are tried."""
    changed = np.bincount(snapshots.topic_group, weights=counts != snapshots.topics.now, minlength=len(choice.chosen))
    tried = groups[changed[groups] > 0]
    if len(tried) == 0:
        return None
    only = replace(choice, chosen=np.where(np.isin(np.arange(len(choice.chosen)), tried), choice.chosen, NONE))
    batch = _with_claims(snapshots, case.basis, choice)
    # Replica racks are known of the present partitions alone: a group that had more is assigned without racks.
    more = np.bincount(snapshots.topic_group, weights=counts > snapshots.topics.now, minlength=len(choice.chosen)) > 0
    rack = np.where(more[snapshots.member_group], NONE, batch.member_rack).astype(np.int32)
    answer = _answers(replace(batch, topic_partitions=counts, member_rack=rack), only)
    ended = (snapshots.topics.now != NONE) & (meaning is Verdict.EXACT_NEWER_TOPICS)  # deleted by the next listing
    topics = replace(snapshots.topics, now=counts, gone=(counts == NONE) & (snapshots.topics.gone | ended))
    slots, lists = _number(replace(snapshots, topics=topics), case.subscribed, case.basis, answer)
    equal = compare(case.party, slots, lists.recorded, lists.assigned).equal & (answer.status == Status.OK)
    agreeing: LongArray = tried[equal[tried]]
    return _Matched(agreeing, meaning, topics, answer) if len(agreeing) > 0 else None


# Which assignor runs on each group of a batch, and how: as recorded, as a what-if, or none.

Complaints = Mapping[int, tuple[Complaint, ...]]
"""By group: the defects of its custom assignor's answer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs on each group. Indices into `names`; NONE in `chosen`: no assignor, the step leads to the record."""

    names: tuple[str, ...]
    chosen: IntArray  # [G]
    recorded: IntArray  # [G] assignor of the record, NONE: not among `names`
    prejudged: IntArray  # [G] a `Verdict` that needs no comparison, NONE otherwise
    form: Form
    custom: Mapping[str, CustomAssignor] = field(default_factory=dict)  # those of `names` that are not ours
    texts: Texts | None = None  # required if any of `custom` is chosen
    carried: bool = False  # what members held is not recorded: the chosen assignor gave it to them before; so a row is
    # not a round, but the rebalance until it has settled
    stated: bool = (
        False  # members' claims are stated, not recorded: nothing is judged, the assignor's own protocol counts
    )
    settles: bool = False  # the target is what members have after the last round, not what the first one aims at

    @property
    def what_if(self) -> Mask:
        """Mark groups with another assignor than recorded, or continued from its answers: members own what they had."""
        differs: Mask = (self.chosen != NONE) & (self.carried | (self.chosen != self.recorded))
        return differs

    @property
    def cooperative(self) -> Mask:
        """Mark groups whose chosen assignor is made for members that keep what they own.

        Used for what-ifs and stated claims only; history shows actual behaviour.
        """
        known = [self.custom.get(name) or BY_NAME.get(name) for name in (*self.names, "")]
        made: Mask = np.array([each is not None and each.cooperative for each in known])[self.chosen]
        return made

    @property
    def by_protocol(self) -> Mask:
        """Mark groups whose members keep what the assignor's protocol lets them keep, whatever a record shows."""
        return self.what_if | (self.chosen != NONE) if self.stated else self.what_if

    @property
    def plans(self) -> Mask:
        """Mark groups whose answer is a plan, not evidence: in the KIP's form, what-ifs are assigned in mode `safe`."""
        ours = np.array([name not in self.custom for name in (*self.names, "")])[self.chosen]
        planned: Mask = self.what_if & ours & (self.form is Form.KIP)
        return planned

    def run(
        self, name: str, mode: Mode, part: GroupBatch, member: LongArray, topic: LongArray
    ) -> tuple[AssignmentBatch, dict[int, tuple[Complaint, ...]]]:
        """Run one assignor on some groups; return its answer, and complaints about a custom one by group."""
        if name not in self.custom:
            return assign(name, part, mode=mode), {}
        if self.texts is None:
            raise AssertionError(f"{name} is a custom assignor; expected the texts of its groups")
        return assign_custom(self.custom[name], part, self.texts.of(member, topic))
