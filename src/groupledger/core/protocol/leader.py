"""What a group's leader is asked and answers (KIP-429, "Proposed Changes", step 2); `plan_all` finds the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch, LongArray
from groupledger.core.arrays.ragged import MemberAssignments, MemberSlots, Naming, Slots, Topics, number
from groupledger.core.arrays.snapshots import EncodedGroups, MemberClaim, encode_groups
from groupledger.core.assignors import MESSAGES, Status, assign
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.assignors.safe import generations
from groupledger.core.custom.contract import Texts, assign_custom
from groupledger.core.custom.custom_group import CustomAssignor, Group, Member, TopicPartition
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import PartitionCounts, Seat, Subscription
from groupledger.core.rebalance.registry import BY_NAME, JAVA, RECORDS
from groupledger.core.rebalance.step import Form, assign_round, hold_back, three_sets
from groupledger.core.scenarios.form import through_user_data

PartitionsByMember = Mapping[str, tuple[TopicPartition, ...]]
"""Partitions by member id."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a leader is asked: members in JoinGroup order, and the topics as its own metadata has them.

    A leader on byte code before KIP-429 reads neither owned partitions nor generations, and adjusts nothing.
    """

    assignor: str
    seats: tuple[Seat, ...]
    view: PartitionCounts
    form: Form
    byte_code: ByteCode = ByteCode.KIP_792

    @property
    def reads_owned(self) -> bool:
        """Whether this leader knows that a member may keep what it owns while it joins."""
        return self.byte_code >= ByteCode.KIP_429


@dataclass(slots=True)
class MissingTopics:
    """Topics that the leader of a group has no metadata of, and for how many assignments yet (`MissTopic`)."""

    rounds: dict[str, int] = field(default_factory=dict)

    def miss(self, topic: str, rounds: int) -> None:
        """Assign so often without it."""
        if rounds > 0:
            self.rounds[topic] = rounds

    def known(self, view: PartitionCounts) -> PartitionCounts:
        """Return the topics that there is metadata of."""
        return {topic: count for topic, count in view.items() if topic not in self.rounds} if self.rounds else view

    def assigned(self) -> bool:
        """Count one assignment; whether metadata of a topic came after it."""
        before, self.rounds = self.rounds, {topic: left - 1 for topic, left in self.rounds.items() if left > 1}
        return len(self.rounds) < len(before)


class ThreeSets(NamedTuple):
    """KIP-429's three exclusive sets (step 2.3), each by topic and number."""

    maybe_revoking: tuple[TopicPartition, ...] = ()
    ready_to_migrate: tuple[TopicPartition, ...] = ()
    unknown_but_owned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The leader's answer: `assigned` goes to the members, `target` is where the assignor wants them to be.

    `failure` is what the assignor threw; then there is nothing to assign, and no member is answered.
    """

    assigned: PartitionsByMember
    target: PartitionsByMember
    sets: ThreeSets
    failure: str | None = None


# The leader of a group (KIP-429, "Proposed Changes", step 2): what members said in, what each is assigned out.
#
# Pure, and for many groups at once: `plan_all` runs each assignor once over all groups that use it, and the step of
# `core.rebalance.step` once over all of them.
#
# Worked example: A says it owns t-0 and t-1, B owns nothing; the assignor gives t-1 to B. A is assigned t-0, B nothing
# yet, and t-1 is in transfer until A has revoked it.

CLIENTS_EAGER = frozenset(each.name for each in CLIENT_ASSIGNORS.values() if each.protocol in ("range", "roundrobin"))
"""Eager assignors of other libraries than Java's under Kafka's names: who is first, and the order of lists, differ."""
STICKY = "sticky"
REMEMBERED = frozenset({STICKY, "sticky-stream-join"})
"""Assignors that go by what members remember in their user data, not by what they own while they join."""
GIVE_BACK = frozenset({"librdkafka-cooperative-sticky"})
"""Assignors whose leader gives what is unknown but owned back to the claiming member (KIP-429, step 2.6), as the form
`kip` does; Java's leader does not."""


def algorithm_of(library: str, assignor: str) -> str:
    """Return the algorithm that a leader of this library runs where the group's protocol has this name."""
    own = (each.name for each in RECORDS if each.library == library and each.protocol_name == assignor)
    eager = f"{library}-{assignor}"
    return next(own, eager if eager in CLIENTS_EAGER else assignor)


def stand_in(library: str, assignor: str) -> str | None:
    """Say that Java's algorithm answers in place of the library's own; None where it does not."""
    if library == JAVA or assignor not in BY_NAME or algorithm_of(library, assignor) != assignor:
        return None
    got = "its own algorithm is not simulated, Java's is in its place"
    return f"{library} leads under {assignor}: {got}: who gets which partition may differ"


def plan_all(questions: Sequence[Question], custom: Mapping[str, CustomAssignor] | None = None) -> list[Plan]:
    """One plan for each question. `custom` are the assignors that are not ours; an unknown name raises Fault."""
    known = custom or {}
    found: dict[int, Plan] = {}
    together: dict[tuple[str, Form], list[int]] = {}
    for place, question in enumerate(questions):
        together.setdefault((question.assignor, question.form), []).append(place)
    for (assignor, form), places in together.items():
        asked = [questions[place] for place in places]
        if assignor in CLIENTS_EAGER and assignor not in known:
            found |= zip(places, map(_client_plan, asked), strict=True)
            continue
        plans = _plans(asked, assignor, form, known.get(assignor))
        if assignor in GIVE_BACK and form is Form.AS_KAFKA:
            plans = [_given_back(*each) for each in zip(asked, plans, strict=True)]
        found |= zip(places, plans, strict=True)
    return [found[place] for place in range(len(questions))]


def plan(question: Question, custom: Mapping[str, CustomAssignor] | None = None) -> Plan:
    """Return the plan of one group."""
    return plan_all([question], custom)[0]


def _client_plan(question: Question) -> Plan:
    """Return the plan of a leader of another library than Java's, whose assignor takes one group at a time."""
    group = _group(question, remembered=False)
    answer = next(iter(CLIENT_ASSIGNORS[question.assignor].plans(group, None)))
    if answer.failure is not None:
        return Plan({}, {}, ThreeSets(), f"{question.assignor}: {answer.failure}")
    lists = {each.member_id: answer.lists.get(each.member_id, ()) for each in group.members}
    owned = {TopicPartition(*each) for seat in question.seats for each in _claims(question, seat.subscription)}
    target = {each for mine in lists.values() for each in mine}
    sets = ThreeSets(*(tuple(sorted(some)) for some in (owned & target, target - owned, owned - target)))
    return Plan(lists, lists, sets)


def _plans(questions: Sequence[Question], assignor: str, form: Form, custom: CustomAssignor | None) -> list[Plan]:
    """Plans of groups with one assignor and one form."""
    encoded = encode(questions, remembered=assignor in REMEMBERED)
    batch = encoded.batch
    answer, failures = _answers(encoded, assignor, form, custom)
    slots, owned, target, offered = _number(batch, answer, remembered=assignor in REMEMBERED)
    split = [_by_group(encoded, slots, mask) for mask in three_sets(owned, target, slots)]
    sets = [ThreeSets(*each) for each in zip(*split, strict=True)]
    targets = _lists(encoded, answer.target)
    if form is Form.KIP:
        given = assign_round(form, owned, target, slots, generations(batch, cooperative=True))
        given = given if custom else hold_back(given, target, offered, slots)
        assigned = _cut(encoded, given.start, _named(encoded, slots.topic[given.slot], slots.partition[given.slot]))
    else:
        assigned = _lists(encoded, answer.assigned)
    return [
        Plan(*each) if each[3] is None else Plan({}, {}, ThreeSets(), each[3])
        for each in zip(assigned, targets, sets, failures, strict=True)
    ]


def _given_back(question: Question, plan: Plan) -> Plan:
    """Add to the plan what members own and the assignor does not know, even of topics that exist no longer."""
    known = {each for listed in plan.target.values() for each in listed}
    owner = {each: seat.member_id for seat in question.seats for each in seat.subscription.owned}
    back: dict[str, list[TopicPartition]] = {}
    for each, member_id in owner.items():
        if each not in known and plan.failure is None:
            back.setdefault(member_id, []).append(each)
    return replace(plan, assigned={name: (*given, *back.get(name, ())) for name, given in plan.assigned.items()})


def _answers(
    encoded: EncodedGroups, assignor: str, form: Form, custom: CustomAssignor | None
) -> tuple[AssignmentBatch, list[str | None]]:
    """Return the answers of the assignor, and of each group the error that it raised."""
    if custom is None:
        answer = assign(assignor, encoded.batch, mode="safe" if form is Form.KIP else "as-kafka")
        return answer, [None if each == Status.OK else MESSAGES[Status(each)] for each in answer.status.tolist()]
    ids = [each.member_id for each in encoded.members]
    instances = [each.group_instance_id for each in encoded.members]
    texts = Texts(ids, instances, [None] * len(ids), [None] * len(ids), encoded.topics)
    answer, complaints = assign_custom(custom, encoded.batch, texts)
    broken = {group: f"{found[0].code}: {found[0].message}" for group, found in complaints.items()}
    return answer, [broken.get(group) for group in range(encoded.batch.groups)]


def encode(questions: Iterable[Question], *, remembered: bool) -> EncodedGroups:
    """Encode the questions as one batch; claims are what members own, or what they remember."""
    groups, claims = list[Group](), list[MemberClaim]()
    for question in questions:
        reads = remembered or question.reads_owned
        sent = [seat.subscription for seat in question.seats]
        claims += [
            MemberClaim(_claims(question, each, remembered), each.memory.generation if reads else None) for each in sent
        ]
        groups.append(_group(question, remembered=remembered))
    return encode_groups(groups, claims)


def _group(question: Question, *, remembered: bool) -> Group:
    """Return the members without their claims, and the topics that the leader knows of those that they subscribe to."""
    reads = remembered or question.reads_owned
    members = tuple(
        Member(each.member_id, sent.topics, (), sent.generation if reads else None, each.group_instance_id)
        for each in question.seats
        for sent in [each.subscription]
    )
    subscribed = {topic for member in members for topic in member.topics} & question.view.keys()
    return Group(members, {topic: question.view[topic] for topic in subscribed})


def _claims(question: Question, sent: Subscription, remembered: bool = False) -> Sequence[tuple[str, int]]:
    """Return what the assignor gets as a member's claim, in the order in which its client writes it."""
    if remembered:
        memory = sent.memory.partitions
        return through_user_data(list(memory)) if question.assignor == STICKY else memory
    return sent.owned if question.reads_owned else ()


def _number(
    batch: GroupBatch, answer: AssignmentBatch, *, remembered: bool
) -> tuple[Slots, MemberSlots, MemberSlots, MemberSlots]:
    """Slots for all that is owned or wanted, and lists of what is owned, wanted and offered at once.

    What is only remembered is owned by nobody.
    """
    first = batch.topic_start[ragged.owners(batch.member_start)]  # [M] first topic row of each member's group
    owned_start = np.zeros_like(batch.claim_start) if remembered else batch.claim_start
    owned = MemberAssignments(
        owned_start, *(each[: owned_start[-1]] for each in (batch.claim_topic, batch.claim_partition))
    )
    lists = [owned, answer.target, answer.assigned]
    namings = [Naming(each.topic + first[each.member], each.partition) for each in lists]
    known = batch.topic_partitions != NONE
    topics = Topics(ragged.owners(batch.topic_start), batch.topic_partitions, ~known, known)
    slots, numbered = number(topics, namings)
    owns, target, offered = (MemberSlots(each.start, slot) for each, slot in zip(lists, numbered, strict=True))
    return slots, owns.distinct(len(slots)), target, offered


def _by_group(encoded: EncodedGroups, slots: Slots, mask: Any) -> list[tuple[TopicPartition, ...]]:
    at = np.flatnonzero(mask)
    named = _named(encoded, slots.topic[at], slots.partition[at])
    found: list[list[TopicPartition]] = [[] for _ in range(encoded.batch.groups)]
    for group, partition in zip(slots.group[at].tolist(), named, strict=True):
        found[group].append(partition)
    return [tuple(sorted(each)) for each in found]


def _lists(encoded: EncodedGroups, lists: MemberAssignments) -> list[PartitionsByMember]:
    batch = encoded.batch
    first = batch.topic_start[ragged.owners(batch.member_start)]
    return _cut(encoded, lists.start, _named(encoded, lists.topic + first[lists.member], lists.partition))


def _named(encoded: EncodedGroups, topic_row: LongArray, partition: Any) -> list[TopicPartition]:
    names = encoded.topics
    pairs = zip(topic_row.tolist(), partition.tolist(), strict=True)
    return [TopicPartition(names[row], at) for row, at in pairs]


def _cut(encoded: EncodedGroups, start: LongArray, flat: list[TopicPartition]) -> list[PartitionsByMember]:
    """Each group's lists by member id."""
    lists = [tuple(flat[begin:end]) for begin, end in pairwise(start.tolist())]
    by_id = list(zip((each.member_id for each in encoded.members), lists, strict=True))
    return [dict(by_id[begin:end]) for begin, end in pairwise(encoded.batch.member_start.tolist())]
