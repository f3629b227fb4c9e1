"""A group that its coordinator assigns (KIP-848, share, Streams): members and deltas of targets, folded into snapshots.

A snapshot is taken where the target is complete (TargetAssignmentMetadata) and where what a member holds or must give
up changes (CurrentMemberAssignment and its tombstone). It is not complete while records are known to be missing.
"""

from __future__ import annotations

from groupledger.core.history import fold_rows
from groupledger.core.history.classic import check_doubles, delete_group
from groupledger.core.history.fold_rows import (
    ROLES,
    Assignment,
    GroupSnapshotRow,
    GroupType,
    LogRow,
    MemberSnapshotRow,
    Role,
    Tasks,
    TopicNames,
)
from groupledger.core.history.members import (
    ASSIGNED,
    PENDING,
    TARGET,
    Current,
    Expression,
    Kip848Group,
    Topology,
    by_topic,
    partitions_of,
    read_current,
    read_metadata,
    read_target,
    read_topology,
    unresolved,
)
from groupledger.core.history.ownership import TARGETS_SKIPPED, HistoryWriter
from groupledger.core.rebalance.registry import preferred
from groupledger.core.wire.offsets_log import LogKey
from groupledger.core.wire.records import (
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    MemberMetadata,
    RecordValue,
    RegularExpression,
    ShareCurrentAssignment,
    ShareMemberMetadata,
    StreamsCurrentAssignment,
    StreamsGroupMetadata,
    StreamsMemberMetadata,
    StreamsTargetMember,
    StreamsTopology,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)

FIRST_EPOCH = 2
"""The highest epoch that a new group's first record has: Kafka 4.4 begins with 2, Kafka 3.9 with 1."""


def fold_kip848(writer: HistoryWriter, row: LogRow, key: LogKey, value: RecordValue | None) -> None:
    """Fold one record of such a group; `DecodeFault`, with nothing changed, where nested bytes do not decode."""
    raw, name, (group_type, role) = row.value or b"", name_in(key), ROLES[key.kind]
    if role is Role.PARTITION_COUNTS:
        enter(writer, row, group_type).counts_partitions = True
        return
    match value:
        case MemberMetadata() | ShareMemberMetadata() | StreamsMemberMetadata():
            metadata = read_metadata(raw, value)
            enter(writer, row, group_type).metadata[name] = metadata
        case RegularExpression():
            enter(writer, row, group_type).expressions[name] = Expression(raw, value.topics)
        case StreamsTopology():
            topology = read_topology(raw, value)
            change_topology(writer, row, enter(writer, row, group_type), topology)
        case TargetAssignmentMember() | StreamsTargetMember():
            target = read_target(raw, value, writer.topics)
            group = enter(writer, row, group_type)
            group.targets[name] = target
            # A static member that came back takes over its predecessor's target, in no epoch of its own.
            group.open = group.open or group.group_epoch != group.target_epoch
            group.judge(name)
            group.cut = group.cut or group.group_epoch is None
        case ConsumerGroupMetadata() | StreamsGroupMetadata():
            reach_epoch(writer, row, enter(writer, row, group_type), value.epoch)
        case TargetAssignmentMetadata():
            complete_target(writer, row, enter(writer, row, group_type), value.epoch)
        case CurrentMemberAssignment() | ShareCurrentAssignment() | StreamsCurrentAssignment():
            current = read_current(raw, value, writer.topics)
            hold(writer, row, enter(writer, row, group_type), name, current)
        case _:
            raise AssertionError(f"{key.kind} is no record of a group that its coordinator assigns")


def name_in(key: LogKey) -> str:
    """Return the member or the regular expression that a key is about; empty where it is about the whole group."""
    return str(key.fields.get("member_id") or key.fields.get("regular_expression") or "")


def fold_kip848_tombstone(writer: HistoryWriter, row: LogRow, key: LogKey) -> None:
    """Fold the end of one key; of the group's epoch: the end of the group."""
    group, (group_type, role) = writer.state.kip848, ROLES[key.kind]
    if role is Role.EPOCH:
        delete_group(writer, row, group_type)
    if group is None or group.group_type is not group_type:
        return
    name = name_in(key)
    match role:
        case Role.MEMBER:
            group.metadata.pop(name, None)
            group.forget(name)
        case Role.EXPRESSION:
            group.expressions.pop(name, None)
        case Role.TOPOLOGY:
            group.topology = None
        case Role.PARTITION_COUNTS:
            group.counts_partitions = False
        case Role.TARGET:
            group.targets.pop(name, None)
        case Role.TARGET_EPOCH:
            group.reach_target(None)
        case Role.CURRENT:
            leave(writer, row, group, name)
        case _:
            pass


def enter(writer: HistoryWriter, row: LogRow, group_type: GroupType) -> Kip848Group:
    """Return the group, at the start of an incarnation a new one."""
    state = writer.state
    if not state.alive or state.group_type != group_type or state.kip848 is None:
        cut = state.hole and not state.alive
        writer.begin(group_type, row)
        state.number = None
        state.kip848 = Kip848Group(group_type, cut=cut)
    return state.kip848


def change_topology(writer: HistoryWriter, row: LogRow, group: Kip848Group, topology: Topology) -> None:
    """Change what the tasks of a Streams group read; write coverage for what is unknown."""
    group.topology = topology
    held = [(member, held_by(writer, row, group, current)) for member, current in group.current.items()]
    writer.changed(writer.state.ownership.record(held, row.timestamp_ms), row)
    missing = list(unresolved(topology, writer.topics, row.timestamp_ms))
    if missing:
        reason = (
            f"neither the log nor a topic listing of that time tells {'; '.join(missing)}: what active tasks read of "
            "them is left out of recorded, target and ownership_changes. The tasks themselves are in tasks"
        )
        epoch = topology.value.epoch
        writer.gap("source-topics-unknown", row, (epoch, epoch), reason)


def reach_epoch(writer: HistoryWriter, row: LogRow, group: Kip848Group, epoch: int) -> None:
    """Fold a group epoch: members or topics changed, a target will follow.

    Not before Kafka 4.1 where no member is left: then the epoch is all there is, and the snapshot is taken here.
    """
    known = group.group_epoch
    before = writer.state.number if known is None and group.converting else known  # a generation counts on as an epoch
    if known is not None and epoch < known:
        fall(writer, row, group, epoch)
    elif before is None and epoch > FIRST_EPOCH:
        group.cut = True
        reason = f"the first group epoch of this incarnation is {epoch}; the records before are not there"
        writer.gap(fold_rows.HISTORY_BEGINS_LATE, row, (None, epoch), reason)
    elif before is not None and epoch > before + 1:
        group.cut = True
        reason = f"no record of the group epochs between {before} and {epoch}: compacted away, or the log lost them"
        writer.gap("epochs-skipped", row, (before, epoch), reason)
    if group.target_epoch is None and group.first_epoch is None:
        group.first_epoch = epoch
    group.group_epoch = writer.state.number = epoch
    fell = known is not None and epoch < known  # it is a snapshot by itself
    if group.counts_partitions and not group.present() and not fell:
        take_snapshot(writer, row, group)


def fall(writer: HistoryWriter, row: LogRow, group: Kip848Group, epoch: int) -> None:
    """Start an incarnation at a falling epoch. The members' last records stay: nothing deleted them."""
    reason = (
        f"the group epoch fell from {group.group_epoch} to {epoch} without a tombstone: the group was deleted unseen, "
        "or the log lost its end"
    )
    writer.gap(fold_rows.TOMBSTONE_MISSING, row, (group.group_epoch, epoch), reason)
    writer.begin(group.group_type, row)
    writer.state.kip848 = group
    group.cut, group.group_epoch, group.target_epoch, group.first_epoch = True, epoch, None, None
    held = [(member, held_by(writer, row, group, current)) for member, current in group.current.items()]
    writer.changed(writer.state.ownership.record(held, None), row)
    take_snapshot(writer, row, group)


def complete_target(writer: HistoryWriter, row: LogRow, group: Kip848Group, epoch: int) -> None:
    """Take a snapshot where the target of an epoch is complete. Epochs without a target are coverage."""
    known, waiting = group.target_epoch, group.untargeted
    if known is None and waiting is not None:
        known = waiting - 1
    if known is not None and epoch > known + 1:
        reason = f"no target of the epochs between {known} and {epoch}: normal where a later epoch came first"
        writer.gap(TARGETS_SKIPPED, row, (known, epoch), reason)
    group.cut = group.cut or group.group_epoch is None or epoch > group.group_epoch
    group.reach_target(epoch)
    group.open = False
    if group.converting:
        group.converting = False
        writer.changed(writer.state.ownership.release_others(group.metadata), row)
    group.mend()
    take_snapshot(writer, row, group)


def hold(writer: HistoryWriter, row: LogRow, group: Kip848Group, member_id: str, now: Current) -> None:
    """Set what a member holds from now on; take a snapshot if its partitions or tasks changed."""
    if now.epoch >= FIRST_EPOCH:  # a member that waits for its regular expression is at 1 before the group is at 2
        group.cut = group.cut or group.group_epoch is None
    before = group.current.get(member_id)
    group.leaving.discard(member_id)
    group.current[member_id] = now
    group.judge(member_id)
    since = None if before is None and group.cut else row.timestamp_ms
    changes = writer.state.ownership.record([(member_id, held_by(writer, row, group, now))], since)
    writer.changed(changes, row)
    group.mend()
    pending, tasks = (before.pending, before.tasks) if before is not None else ((), ())
    first = before is None and bool(now.recorded or now.pending)  # no change if the classic group gave it
    if changes or first or by_topic(now.pending) != by_topic(pending) or set(now.tasks) != set(tasks):
        take_step(writer, row, group)


def leave(writer: HistoryWriter, row: LogRow, group: Kip848Group, member_id: str) -> None:
    """Fold a member's deleted assignment, the first of its tombstones: it holds nothing any more."""
    if group.current.pop(member_id, None) is None:
        return
    if member_id in group.metadata:
        group.leaving.add(member_id)
    group.unsettled.discard(member_id)
    changes = writer.state.ownership.record([(member_id, ())], None)
    if changes:
        writer.changed(changes, row)
        take_step(writer, row, group)


def mark_hole(writer: HistoryWriter, row: LogRow, what: str) -> None:
    """Mark a record that could not be read: what it changed is unknown, and nothing is measured across it."""
    state = writer.state
    writer.gap(
        fold_rows.RECORD_UNREADABLE, row, (state.number if state.alive else None, None), fold_rows.unreadable(what)
    )
    state.hole = True
    if state.kip848 is not None:
        state.kip848.cut = True


def take_step(writer: HistoryWriter, row: LogRow, group: Kip848Group) -> None:
    """Write the group at a member's step; a large one only at the last step of an epoch."""
    if len(group.metadata) <= writer.step_members or group.is_settled:
        take_snapshot(writer, row, group)


def take_snapshot(writer: HistoryWriter, row: LogRow, group: Kip848Group) -> None:
    """Write the group as it is known at this record."""
    complete = not group.cut and not group.open and group.target_epoch is not None
    writer.snapshot(*snapshot_rows(writer, row, group, complete=complete))
    if group.group_type is not GroupType.SHARE:  # whose members share partitions
        check_doubles(writer, row)


# The rows of the snapshot of a group that its coordinator assigns.


def snapshot_rows(
    writer: HistoryWriter, row: LogRow, group: Kip848Group, *, complete: bool
) -> tuple[GroupSnapshotRow, list[MemberSnapshotRow]]:
    """Return the group as it is known at this record, members in the order of joining."""
    present = group.present()
    topics = [group.topics_of(member) for member in present]
    shared = topics[0] if topics and all(other == topics[0] for other in topics) else None
    snapshot = writer.group_row(row, group.group_type.value, "fold" if present else "empty")._replace(
        group_epoch=group.group_epoch,
        target_epoch=group.target_epoch,
        assignor=preferred(group.metadata[member].value.server_assignor for member in present),
        state=state_of(group, present),
        complete=complete,
        shared_topics=shared,
        subscribed_topics=tuple(sorted({topic for own in topics for topic in own})) if shared is None else None,
        members=len(present),
    )
    members = []
    for order, (member_id, own) in enumerate(zip(present, topics, strict=True)):
        place = (snapshot.snapshot_id, writer.cluster_id, snapshot.group_id, row.offset, order)
        members.append(member_row(writer, row, group, (place, member_id, own if shared is None else None)))
    return snapshot, members


def member_row(
    writer: HistoryWriter,
    row: LogRow,
    group: Kip848Group,
    member: tuple[tuple[str, str, str, int, int], str, TopicNames | None],
) -> MemberSnapshotRow:
    """Return a member's row, by its place, id and own topics; of a classic member also its own subscription."""
    place, member_id, topics = member
    _, value, said = group.metadata[member_id]
    target, current = group.targets.get(member_id), group.current.get(member_id)
    claimed: Assignment | None = None
    if said is not None and said.states_claim:
        claimed = writer.payloads.at(row.timestamp_ms).with_ids(said.claim.owned)
    streams = group.group_type is GroupType.STREAMS
    tasks = (*(current.tasks if current else ()), *(target.tasks if target else ()))
    recorded, pending = writer.state.ownership.assignment_of(member_id), None
    if current is not None:
        recorded, pending = assigned_to(writer, row, group, current)
    wanted = target.partitions if target else None
    if streams and target is not None:
        wanted = read_by(writer, row, group, target.tasks, TARGET)
    return MemberSnapshotRow(
        *place,
        member_id=member_id,
        group_instance_id=value.instance_id,
        client_id=value.client_id,
        host=value.client_host,
        rack_id=value.rack_id or (said.rack if said else None),
        subscription_version=said.version if said else None,
        topics=topics,
        claimed=claimed,
        claimed_generation=said.claim.generation if said else None,
        subscription_generation=said.claim.subscription_generation if said else None,
        user_data=said.user_data if said else None,
        recorded=recorded,
        target=wanted,
        pending_revocation=pending,
        member_epoch=current.epoch if current else None,
        previous_member_epoch=current.previous_epoch if current else None,
        member_state=current.state if current else None,
        subscribed_regex=value.subscribed_regex or None,  # Java's client sends an empty one
        tasks=tasks if streams else None,
    )


def assigned_to(
    writer: HistoryWriter, row: LogRow, group: Kip848Group, current: Current
) -> tuple[Assignment, Assignment]:
    """Return what a member holds for good, and what it must give up; of tasks, what the active ones read."""
    if group.group_type is not GroupType.STREAMS:
        return current.recorded, current.pending
    recorded, pending = (read_by(writer, row, group, current.tasks, state) for state in (ASSIGNED, PENDING))
    return recorded, pending


def held_by(writer: HistoryWriter, row: LogRow, group: Kip848Group, current: Current) -> Assignment:
    """All that a member holds: a pending partition is given to nobody else before the member acknowledges."""
    recorded, pending = assigned_to(writer, row, group, current)
    return (*recorded, *pending)


def read_by(writer: HistoryWriter, row: LogRow, group: Kip848Group, tasks: Tasks, state: str) -> Assignment:
    """Return the partitions that active tasks read, by the topology and the topics of that time."""
    return partitions_of(tasks, state, group.topology, writer.topics, row.timestamp_ms)


def state_of(group: Kip848Group, present: list[str]) -> str:
    """Return the state. Stable: the target is the group's epoch and every member holds exactly its own."""
    if not present:
        return "Empty"
    return "Stable" if group.is_settled else "Reconciling"
