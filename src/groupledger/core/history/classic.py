"""A classic group: each GroupMetadata record is a whole snapshot, its tombstone the end of an incarnation.

A record in the generation of the one before is a rewrite (a static member came back under a new member id): a snapshot
of its own that names the first one of its generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from groupledger.core.history import fold_rows
from groupledger.core.history.fold_rows import (
    Assignment,
    GroupType,
    Kind,
    LogRow,
    MemberSnapshotRow,
    TopicNames,
    spans,
    topic_spans,
)
from groupledger.core.history.members import Kip848Group, ReadAssignment, ReadSubscription, read_subscription
from groupledger.core.history.ownership import Generation, HeldTopic, HistoryWriter, Ownership, OwnershipChange
from groupledger.core.log.listings import TopicHistory
from groupledger.core.rebalance.findings import (
    ASSIGNED_WITHOUT_TOPICS,
    CLAIM_DIFFERS,
    DOUBLE_OWNED,
    NOT_SUBSCRIBED,
    REPEATED_TOPIC,
    REWRITE_DIFFERS,
    STALE_CLAIM,
    Invariant,
    Severity,
)
from groupledger.core.rebalance.registry import READING_CLAIMS
from groupledger.core.wire.records import ClassicGroupMember, GroupMetadata

CONSUMER_PROTOCOL = "consumer"


def fold_classic(writer: HistoryWriter, row: LogRow, group: GroupMetadata, *, converts: bool = False) -> None:
    """Fold one GroupMetadata record. `DecodeFault`, with nothing changed, if the bytes of a member do not decode.

    `converts`: until now it was a KIP-848 group. The record is then its last state in the form of a classic one: under
    its epoch, with what members held, and computed by nobody.
    """
    members = read_members(writer, row, group)
    epoch = writer.state.number
    if converts:  # a KIP-848 group's epoch is the classic group's generation
        writer.convert(GroupType.CLASSIC, row)
    else:
        enter_incarnation(writer, row, group.generation)
    last = writer.state.generation
    kind = Kind.FOLD if converts and epoch == group.generation else kind_of(writer, group)
    before = epoch if converts else None if last is None else last.number
    if before is not None and group.generation > before + 1:  # skipped in normal life too: nothing follows from it
        reason = fold_rows.generations_between(before, group.generation)
        writer.gap(fold_rows.GENERATIONS_SKIPPED, row, (before, group.generation), reason)
    if last is not None and kind in (Kind.GENERATION, Kind.REWRITE):
        # In a rewrite only the member that came back has sent a new subscription.
        spoken = members if kind is Kind.GENERATION else [m for m in members if m.wire.member_id not in last.members]
        check_claims(writer, row, (group.protocol, spoken), last, group.generation)
    settle(
        writer,
        row,
        members,
        kind,
        unseen=last is None and not converts and group.generation > fold_rows.FIRST_GENERATION,
    )
    first = last.first_offset if last is not None and kind is Kind.REWRITE else row.offset
    write_snapshot(writer, row, group, members, (kind, first))
    check_assignment(writer, row, members)
    instances = {member.wire.member_id: member.wire.group_instance_id for member in members}
    writer.state.generation = Generation(group.generation, first, row.timestamp_ms, instances)
    writer.state.number = group.generation


def delete_group(writer: HistoryWriter, row: LogRow, group_type: GroupType) -> None:
    """Fold the tombstone of a deleted group of any type: a snapshot of its end."""
    state = writer.state
    if state.alive and state.group_type != group_type:
        return
    if not state.incarnation:
        writer.begin(group_type, row)
        writer.gap(fold_rows.HISTORY_BEGINS_LATE, row, (None, None), fold_rows.BEGINS_WITH_TOMBSTONE)
    if state.alive:
        writer.snapshot(writer.group_row(row, group_type.value, Kind.DELETED.value), ())
        writer.end(row)


def read_members(writer: HistoryWriter, row: LogRow, group: GroupMetadata) -> list[ClassicMember]:
    """Return the members in JoinGroup order; only bytes of the consumer protocol are read."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return [ClassicMember(member, None, None, None) for member in group.members]
    payloads = writer.payloads.at(row.timestamp_ms)
    return [
        ClassicMember(
            member, read_subscription(member.subscription, group.protocol), *payloads.assignment(member.assignment)
        )
        for member in group.members
    ]


def enter_incarnation(writer: HistoryWriter, row: LogRow, generation: int) -> None:
    """Start an incarnation where the record before does not lead to this one."""
    state, last = writer.state, writer.state.generation
    if state.alive and state.group_type == GroupType.CLASSIC:
        if last is None or generation >= last.number:
            return
        reason = fold_rows.generation_fell(last.number, generation)
        writer.gap(fold_rows.TOMBSTONE_MISSING, row, (last.number, generation), reason)
    writer.begin(GroupType.CLASSIC, row)
    if generation > fold_rows.FIRST_GENERATION:
        writer.gap(fold_rows.HISTORY_BEGINS_LATE, row, (None, generation), fold_rows.begins_with(generation))


def join_consumer_group(writer: HistoryWriter, row: LogRow) -> None:
    """Continue as a KIP-848 group, whose records come next. Its first record says nothing else."""
    state = writer.state
    if not state.alive:
        writer.begin(GroupType.CLASSIC, row)
        writer.gap(fold_rows.HISTORY_BEGINS_LATE, row, (None, None), fold_rows.BEGINS_WITH_TOMBSTONE)
    writer.convert(GroupType.CONSUMER, row)
    state.kip848 = Kip848Group(GroupType.CONSUMER, cut=state.hole, converting=True)


def kind_of(writer: HistoryWriter, group: GroupMetadata) -> Kind:
    """Which kind of snapshot the record makes."""
    last = writer.state.generation
    if not group.members:
        return Kind.BIRTH if last is None and group.generation == 0 else Kind.EMPTY
    if last is not None and last.members and last.number == group.generation:
        return Kind.REWRITE
    return Kind.GENERATION


def settle(writer: HistoryWriter, row: LogRow, members: list[ClassicMember], kind: Kind, *, unseen: bool) -> None:
    """Move the holdings to what is recorded. Since when is unknown where the records before were not seen."""
    state = writer.state
    recorded = {member.wire.member_id: member.recorded or () for member in members}
    changes = state.ownership.settle(recorded, None if unseen or state.hole else row.timestamp_ms)
    if not changes:
        return
    writer.changed(changes, row)
    if kind is Kind.REWRITE and state.generation is not None:
        check_rewrite(writer, row, members, state.generation, changes)


def write_snapshot(
    writer: HistoryWriter, row: LogRow, group: GroupMetadata, members: list[ClassicMember], place: tuple[Kind, int]
) -> None:
    """Write the rows of the snapshot; `place` is its kind and the offset of the generation's first record."""
    kind, first_offset = place
    shared = shared_topics(members)
    snapshot = writer.group_row(row, GroupType.CLASSIC.value, kind.value)._replace(
        protocol_type=group.protocol_type,
        generation=group.generation,
        assignor=group.protocol,
        leader=group.leader,
        state="Stable" if members else "Empty",
        shared_topics=shared,
        subscribed_topics=subscribed_topics(members) if shared is None else None,
        members=len(members),
        first_snapshot_id=writer.snapshot_id(first_offset) if kind is Kind.REWRITE else None,
    )
    writer.snapshot(snapshot, member_rows(writer, row, members, snapshot.snapshot_id, shared is not None))


def member_rows(
    writer: HistoryWriter, row: LogRow, members: list[ClassicMember], identity: str, shared: bool
) -> list[MemberSnapshotRow]:
    """Return the members' rows, in JoinGroup order."""
    cluster_id, group_id, payloads = writer.cluster_id, writer.state.group_id, writer.payloads
    rows = []
    for order, (wire, said, _, recorded) in enumerate(members):
        place = (identity, cluster_id, group_id, row.offset, order)
        who = (wire.member_id, wire.group_instance_id, wire.client_id, wire.client_host)
        if said is None:
            rows.append(MemberSnapshotRow(*place, *who, *(None,) * 11))
            continue
        claimed = payloads.with_ids(said.claim.owned) if said.states_claim else None
        generations = (said.claim.generation, said.claim.subscription_generation)
        subscription = (said.rack, said.version, None if shared else said.topics)
        rows.append(
            MemberSnapshotRow(
                *place, *who, *subscription, claimed, *generations, said.user_data, recorded, None, None, None
            )
        )
    return rows


def shared_topics(members: list[ClassicMember]) -> TopicNames | None:
    """Return the subscription, if all members have the same list."""
    if not members or members[0].said is None:
        return None
    topics = members[0].said.topics
    return topics if all(member.said is not None and member.said.topics == topics for member in members) else None


def subscribed_topics(members: list[ClassicMember]) -> TopicNames:
    """All topics that a member subscribes to."""
    return tuple(sorted({topic for member in members if member.said is not None for topic in member.said.topics}))


# What is wrong with a recorded assignment by itself: findings that need no assignor.

MOST_NAMED = 20
"""Members named in an evidence."""


class ClassicMember(NamedTuple):
    """A member with its words; none of them where the protocol type is not the consumer's."""

    wire: ClassicGroupMember
    said: ReadSubscription | None
    assignment: ReadAssignment | None
    recorded: Assignment | None


def check_assignment(writer: HistoryWriter, row: LogRow, members: list[ClassicMember]) -> None:
    """Find what is wrong with each member's assignment (`faults`), and DOUBLE_OWNED for the group."""
    for wire, said, assignment, _ in members:
        if said is not None and assignment is not None:
            for broken, topic, evidence in faults(said, assignment):
                writer.found(broken, row, evidence, member_id=wire.member_id, topic=topic)
    check_doubles(writer, row)


def faults(said: ReadSubscription, assignment: ReadAssignment) -> Iterator[tuple[Invariant, str, str]]:
    """Yield each defect of one member's assignment, the topic, and the evidence."""
    for topic in assignment.repeated:
        yield REPEATED_TOPIC, topic, f"topic {topic!r} stands twice in the assignment; its partitions are merged here"
    subscribed = _as_set(said.topics)
    for topic, partitions in assignment.partitions:
        if topic not in subscribed and partitions:
            evidence = f"assigned {topic} {spans(partitions)}, but its subscription does not name "
            broken = NOT_SUBSCRIBED if subscribed else ASSIGNED_WITHOUT_TOPICS
            yield broken, topic, evidence + ("the topic" if subscribed else "any topic")


@lru_cache(maxsize=1)
def _as_set(topics: tuple[str, ...]) -> frozenset[str]:
    """Return the topics that members of one group subscribe to, one member after the other."""
    return frozenset(topics)


def check_doubles(writer: HistoryWriter, row: LogRow) -> None:
    """DOUBLE_OWNED for each topic and set of members that hold some partitions of it at once."""
    ownership = writer.state.ownership
    if not ownership.doubles:
        return
    for topic, holders, partitions in double_holdings(ownership):
        evidence, single = double_evidence(topic.name or topic.topic_id, holders, partitions)
        writer.found(DOUBLE_OWNED, row, evidence, member_id=holders[0], topic=topic.name, partition=single)


def double_evidence(topic: str | None, holders: list[str], partitions: list[int]) -> tuple[str, int | None]:
    """Return the evidence, and the partition where it is only one."""
    named = ", ".join(holders[:MOST_NAMED]) + (", ..." if len(holders) > MOST_NAMED else "")
    evidence = f"{topic} {spans(partitions)} recorded for {len(holders)} members at once: {named}"
    return evidence, partitions[0] if len(partitions) == 1 else None


def double_holdings(ownership: Ownership) -> list[tuple[HeldTopic, list[str], list[int]]]:
    """(topic, members, partitions) held by more than one, in a total order."""
    together: dict[tuple[HeldTopic, tuple[str, ...]], list[int]] = {}
    for topic, partition in ownership.doubles:
        together.setdefault((topic, tuple(ownership.holders(topic, partition))), []).append(partition)
    held = [(topic, list(holders), sorted(partitions)) for (topic, holders), partitions in together.items()]
    return sorted(held, key=lambda hold: (hold[0].name or "", hold[0].topic_id or "", hold[1]))


def check_rewrite(
    writer: HistoryWriter, row: LogRow, members: list[ClassicMember], last: Generation, changes: list[OwnershipChange]
) -> None:
    """REWRITE_DIFFERS, unless all that changed is that static members have new member ids."""
    instances = {member.wire.member_id: member.wire.group_instance_id for member in members}
    for change in changes:
        before = None if change.from_member_id is None else last.members.get(change.from_member_id)
        after = None if change.to_member_id is None else instances.get(change.to_member_id)
        if before is None or before != after:
            moved = (change.topic, change.partition, change.from_member_id, change.to_member_id)
            evidence = rewrite_evidence(last.number, *moved)
            writer.found(REWRITE_DIFFERS, row, evidence, topic=change.topic, partition=change.partition)
            return


def rewrite_evidence(generation: int, topic: str | None, partition: int, giver: str | None, taker: str | None) -> str:
    """How the second record of a generation differs."""
    return (
        f"generation {generation} was recorded again with another assignment: {topic} {partition} went from {giver} to "
        f"{taker}; the first record's verdict does not hold for this one"
    )


# Where a member's claim and the coordinator's record disagree: the assignor saw other holdings than were recorded.
#
# Compared are the partitions that a member says it owns with those recorded for it one snapshot before; a static member
# that came back is compared with its predecessor of the same instance id. Members that state no claim are not, nor
# those of assignors that read none (range, roundrobin), whose empty list says nothing.

STALE = "stale"
NOT_JUDGED = "not-judged"

NumbersByTopic = dict[str, set[int]]
"""Topic -> partitions."""


class ClaimPeriod(NamedTuple):
    """What lies between a group's record of `generation` and the next one, of generation `following`; times in ms."""

    topics: TopicHistory
    generation: int
    following: int
    before_ms: int
    now_ms: int

    def changed(self, topic: str) -> bool:
        """Whether the topic of that name was deleted, or made again, between the two."""
        before = self.topics.as_of(topic, self.before_ms)
        now = self.topics.as_of(topic, self.now_ms)
        return before is not None and (now is None or now[0] != before[0])

    def is_missing(self, claimed: int | None) -> bool:
        """Whether a claim is, or may be, of a generation whose record is not in the log.

        Kafka dates a claim by its generation. One without a date may be of any generation since the record before.
        """
        if claimed is None:
            return self.following > self.generation + 1
        return self.generation < claimed < self.following


class Disagreement(NamedTuple):
    """One member's claim against what it held."""

    claimed: NumbersByTopic
    held: NumbersByTopic
    topics: frozenset[str]  # of the member's subscription
    generation: int | None
    was_member: bool
    has_predecessor: bool

    @property
    def beyond(self) -> NumbersByTopic:
        """Claimed and not held."""
        return less(self.claimed, self.held)

    @property
    def missing(self) -> NumbersByTopic:
        """Held and not claimed."""
        return less(self.held, self.claimed)


def less(partitions: NumbersByTopic, taken: NumbersByTopic) -> NumbersByTopic:
    """Topic -> partitions that are not taken; topics with none left out."""
    rest = {topic: numbers - taken.get(topic, set()) for topic, numbers in partitions.items()}
    return {topic: numbers for topic, numbers in rest.items() if numbers}


def check_claims(
    writer: HistoryWriter,
    row: LogRow,
    spoken: tuple[str | None, list[ClassicMember]],
    last: Generation,
    generation: int,
) -> None:
    """CLAIM_DIFFERS and STALE_CLAIM, at most one a member; `spoken` is the assignor and who spoke since `last`.

    After a record that could not be read it is not known what was held, and nothing is compared.
    """
    assignor, members = spoken
    if writer.state.hole:
        return
    predecessors: dict[str, str] | None = None
    for wire, said, _, _ in members:
        if said is None or not is_compared(said, assignor):
            continue
        was_member, predecessor = wire.member_id in last.members, None
        if not was_member and wire.group_instance_id is not None:
            predecessors = predecessors or {
                instance: id_ for id_, instance in last.members.items() if instance is not None
            }
            predecessor = predecessors.get(wire.group_instance_id)
        held = writer.state.ownership.held_by(wire.member_id if predecessor is None else predecessor)
        claimed = claimed_by(said)
        if claimed != held:
            is_known = was_member, predecessor is not None
            claim = Disagreement(claimed, held, frozenset(said.topics), said.claim.generation, *is_known)
            period = ClaimPeriod(writer.topics, last.number, generation, last.timestamp_ms, row.timestamp_ms)
            broken, severity, evidence = finding(claim, period)
            writer.found(broken, row, evidence, severity=severity, member_id=wire.member_id)


def is_compared(said: ReadSubscription, assignor: str | None) -> bool:
    """Whether the member states a claim, and an empty one means something under this assignor."""
    return said.states_claim and (bool(said.claim.owned) or assignor in READING_CLAIMS)


def claimed_by(said: ReadSubscription) -> NumbersByTopic:
    """Topic -> partitions of the claim; repeats are one."""
    claimed: NumbersByTopic = {}
    for topic, partitions in said.claim.owned:
        if partitions:
            known = claimed.get(topic)
            claimed[topic] = set(partitions) if known is None else known.union(partitions)
    return claimed


def finding(claim: Disagreement, period: ClaimPeriod) -> tuple[Invariant, Severity, str]:
    """Return the finding: what is claimed beyond the record, what is left out, and how that may have come."""
    how, severity = explain(claim, period)
    beyond, missing = topic_spans(claim.beyond), topic_spans(claim.missing)
    said = "no generation" if claim.generation is None else f"generation {claim.generation}"
    if how == NOT_JUDGED:
        lacks = f"{said}, which the log does not have"
        if claim.generation is None:
            lacks = f"{said}, and the log does not have those between {period.generation} and {period.following}"
        evidence = (
            f"{how}: claims {beyond} that it did not hold in generation {period.generation}, leaves out {missing} that "
            f"it held there; the claim is of {lacks}"
        )
        return CLAIM_DIFFERS, severity, evidence
    evidence = (
        f"{how}: claims {beyond} that it did not hold, leaves out {missing} that it held; the claim is of {said}, "
        f"the record before of generation {period.generation}"
    )
    return (STALE_CLAIM if how == STALE else CLAIM_DIFFERS), severity, evidence


def explain(claim: Disagreement, period: ClaimPeriod) -> tuple[str, Severity]:
    """(how the difference came, severity). Only what no normal course of a group explains is a warning."""
    if claim.has_predecessor and not claim.claimed:
        return "static-replacement", Severity.INFO
    if claim.generation is not None and claim.generation < period.generation and claim.claimed:
        return STALE, Severity.WARNING
    if not claim.claimed:
        return "eager-empty", Severity.INFO
    if period.is_missing(claim.generation):
        return NOT_JUDGED, Severity.INFO
    unchanged = {topic for topic in claim.beyond.keys() | claim.missing.keys() if not period.changed(topic)}
    if not unchanged:
        return "topic-deleted", Severity.INFO
    # A member gives up what it no longer subscribes to before it rejoins; it has no reason to claim more of it.
    if unchanged <= claim.missing.keys() - claim.topics - claim.beyond.keys():
        return "unsubscribed", Severity.INFO
    if not claim.was_member and not claim.has_predecessor:
        return "not-a-member-before", Severity.WARNING
    return "other", Severity.WARNING
