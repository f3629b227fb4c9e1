"""A classic group: each GroupMetadata record is a whole snapshot, its tombstone the end of an incarnation.

A record in the generation of the one before is a rewrite (a static member came back under a new member id): a snapshot
of its own that names the first one of its generation.
"""

from __future__ import annotations

from groupledger.core.history import gaps
from groupledger.core.history.assigned import ClassicMember, check_assignment, check_rewrite
from groupledger.core.history.claimed import check_claims
from groupledger.core.history.kinds import Kind
from groupledger.core.history.members import ModernGroup
from groupledger.core.history.payloads import read_said
from groupledger.core.history.roles import GroupType
from groupledger.core.history.rows import GroupSnapshotRow, LogRow, MemberSnapshotRow, TopicNames
from groupledger.core.history.writer import SOURCE, Generation, HistoryWriter
from groupledger.core.wire.offsets_log import GroupMetadata

CONSUMER_PROTOCOL = "consumer"


def fold_classic(writer: HistoryWriter, row: LogRow, group: GroupMetadata, *, converts: bool = False) -> None:
    """One GroupMetadata record. `DecodeFault`, with nothing changed, where the bytes of a member do not decode.

    `converts`: until now it was a KIP-848 group. The record is then its last state in the form of a classic one: under
    its epoch, with what members held, and computed by nobody.
    """
    members = read_members(writer, row, group)
    epoch = writer.state.number
    if converts:
        leave_consumer_group(writer, row, group.generation)
    else:
        enter_incarnation(writer, row, group.generation)
    last = writer.state.generation
    kind = Kind.FOLD if converts and epoch == group.generation else kind_of(writer, group)
    state_gap(writer, row, group.generation)
    if last is not None and kind in (Kind.GENERATION, Kind.REWRITE):
        # In a rewrite only the member that came back has spoken anew.
        spoken = members if kind is Kind.GENERATION else [m for m in members if m.wire.member_id not in last.members]
        check_claims(writer, row, (group.protocol, spoken), last, group.generation)
    settle(
        writer, row, members, kind, unseen=last is None and not converts and group.generation > gaps.FIRST_GENERATION
    )
    first = last.first_offset if last is not None and kind is Kind.REWRITE else row.offset
    write_snapshot(writer, row, group, members, (kind, first))
    check_assignment(writer, row, members)
    instances = {member.wire.member_id: member.wire.group_instance_id for member in members}
    writer.state.generation = Generation(group.generation, first, row.timestamp_ms, instances)
    writer.state.number = group.generation


def delete_classic(writer: HistoryWriter, row: LogRow) -> None:
    """Fold the tombstone of a deleted group."""
    state = writer.state
    if state.alive and state.group_type != GroupType.CLASSIC:
        return
    if not state.incarnation:
        writer.begin(GroupType.CLASSIC, row)
        writer.gap(gaps.HISTORY_BEGINS_LATE, row, (None, None), gaps.BEGINS_WITH_TOMBSTONE)
    if state.alive:
        write_deleted(writer, row)


def write_deleted(writer: HistoryWriter, row: LogRow) -> None:
    """The snapshot of a group's end, of any type."""
    state = writer.state
    writer.snapshot(
        GroupSnapshotRow(
            snapshot_id=writer.snapshot_id(row.offset),
            cluster_id=writer.cluster_id,
            source=SOURCE,
            log_partition=row.log_partition,
            offset=row.offset,
            group_id=state.group_id,
            group_type=state.group_type or GroupType.CLASSIC.value,
            protocol_type=None,
            incarnation=state.incarnation,
            snapshot_kind=Kind.DELETED.value,
            generation=None,
            group_epoch=None,
            target_epoch=None,
            assignor=None,
            leader=None,
            state="Dead",
            complete=True,
            shared_topics=None,
            subscribed_topics=(),
            members=0,
            previous_snapshot_id=writer.previous_snapshot_id(),
            first_snapshot_id=None,
            observed_at=row.timestamp_ms,
        ),
        (),
    )
    writer.end(row)


def read_members(writer: HistoryWriter, row: LogRow, group: GroupMetadata) -> list[ClassicMember]:
    """The members in JoinGroup order; only the consumer protocol's bytes are read, another's stay as they are."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return [ClassicMember(member, None, None, None) for member in group.members]
    payloads = writer.payloads.at(row.timestamp_ms)
    return [
        ClassicMember(member, read_said(member.subscription, group.protocol), *payloads.told(member.assignment))
        for member in group.members
    ]


def enter_incarnation(writer: HistoryWriter, row: LogRow, generation: int) -> None:
    """Start an incarnation where the record before does not lead to this one."""
    state, last = writer.state, writer.state.generation
    if state.alive and state.group_type == GroupType.CLASSIC:
        if last is None or generation >= last.number:
            return
        reason = gaps.generation_fell(last.number, generation)
        writer.gap(gaps.TOMBSTONE_MISSING, row, (last.number, generation), reason)
    writer.begin(GroupType.CLASSIC, row)
    if generation > gaps.FIRST_GENERATION:
        writer.gap(gaps.HISTORY_BEGINS_LATE, row, (None, generation), gaps.begins_with(generation))


def leave_consumer_group(writer: HistoryWriter, row: LogRow, generation: int) -> None:
    """Go on from a KIP-848 group: its epoch is the classic group's generation."""
    epoch = writer.state.number
    writer.convert(GroupType.CLASSIC, row)
    if epoch is not None and generation > epoch + 1:
        reason = gaps.generations_between(epoch, generation)
        writer.gap(gaps.GENERATIONS_SKIPPED, row, (epoch, generation), reason)


def join_consumer_group(writer: HistoryWriter, row: LogRow) -> None:
    """Go on as a KIP-848 group, whose records come next. Of one whose first record this is, nothing else is known."""
    state = writer.state
    if not state.alive:
        writer.begin(GroupType.CLASSIC, row)
        writer.gap(gaps.HISTORY_BEGINS_LATE, row, (None, None), gaps.BEGINS_WITH_TOMBSTONE)
    writer.convert(GroupType.CONSUMER, row)
    state.modern = ModernGroup(GroupType.CONSUMER, cut=state.hole, converting=True)


def state_gap(writer: HistoryWriter, row: LogRow, generation: int) -> None:
    """Generations between two records are skipped in normal life too: nothing follows from it alone."""
    last = writer.state.generation
    if last is not None and generation > last.number + 1:
        reason = gaps.generations_between(last.number, generation)
        writer.gap(gaps.GENERATIONS_SKIPPED, row, (last.number, generation), reason)


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
    writer: HistoryWriter,
    row: LogRow,
    group: GroupMetadata,
    members: list[ClassicMember],
    place: tuple[Kind, int],
) -> None:
    """The rows of the snapshot; `place` is its kind and the offset of the generation's first record."""
    kind, first_offset = place
    state, identity = writer.state, writer.snapshot_id(row.offset)
    shared = shared_topics(members)
    writer.snapshot(
        GroupSnapshotRow(
            identity,
            writer.cluster_id,
            SOURCE,
            row.log_partition,
            row.offset,
            state.group_id,
            GroupType.CLASSIC.value,
            group.protocol_type,
            state.incarnation,
            kind.value,
            group.generation,
            None,
            None,
            group.protocol,
            group.leader,
            "Stable" if members else "Empty",
            True,
            shared,
            subscribed_topics(members) if shared is None else None,
            len(members),
            writer.previous_snapshot_id(),
            writer.snapshot_id(first_offset) if kind is Kind.REWRITE else None,
            row.timestamp_ms,
        ),
        member_rows(writer, row, members, identity, shared is not None),
    )


def member_rows(
    writer: HistoryWriter, row: LogRow, members: list[ClassicMember], identity: str, shared: bool
) -> list[MemberSnapshotRow]:
    """The members' rows, in JoinGroup order."""
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
    """The subscription, if all members have the same list."""
    if not members or members[0].said is None:
        return None
    topics = members[0].said.topics
    return topics if all(member.said is not None and member.said.topics == topics for member in members) else None


def subscribed_topics(members: list[ClassicMember]) -> TopicNames:
    """All topics that a member subscribes to."""
    return tuple(sorted({topic for member in members if member.said is not None for topic in member.said.topics}))
