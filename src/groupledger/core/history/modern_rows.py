"""The rows of the snapshot of a group that its coordinator assigns."""

from __future__ import annotations

from collections import Counter

from groupledger.core.history.members import Current, ModernGroup
from groupledger.core.history.roles import GroupType
from groupledger.core.history.rows import Assignment, GroupSnapshotRow, LogRow, MemberSnapshotRow, Tasks, TopicNames
from groupledger.core.history.tasks import ASSIGNED, PENDING, TARGET, partitions_of
from groupledger.core.history.writer import SOURCE, HistoryWriter


def snapshot_rows(
    writer: HistoryWriter, row: LogRow, group: ModernGroup, *, complete: bool
) -> tuple[GroupSnapshotRow, list[MemberSnapshotRow]]:
    """The group as it is known at this record, members in the order of joining."""
    state, identity = writer.state, writer.snapshot_id(row.offset)
    present = group.present()
    topics = [group.topics_of(member) for member in present]
    shared = topics[0] if topics and all(other == topics[0] for other in topics) else None
    subscribed = tuple(sorted({topic for own in topics for topic in own})) if shared is None else None
    snapshot = GroupSnapshotRow(
        snapshot_id=identity,
        cluster_id=writer.cluster_id,
        source=SOURCE,
        log_partition=row.log_partition,
        offset=row.offset,
        group_id=state.group_id,
        group_type=group.group_type.value,
        protocol_type=None,
        incarnation=state.incarnation,
        snapshot_kind="fold" if present else "empty",
        generation=None,
        group_epoch=group.group_epoch,
        target_epoch=group.target_epoch,
        assignor=preferred_assignor(group, present),
        leader=None,
        state=state_of(group, present),
        complete=complete,
        shared_topics=shared,
        subscribed_topics=subscribed,
        members=len(present),
        previous_snapshot_id=writer.previous_snapshot_id(),
        first_snapshot_id=None,
        observed_at=row.timestamp_ms,
    )
    members = []
    for order, (member_id, own) in enumerate(zip(present, topics, strict=True)):
        place = (identity, writer.cluster_id, state.group_id, row.offset, order)
        members.append(member_row(writer, row, group, (place, member_id, own if shared is None else None)))
    return snapshot, members


def member_row(
    writer: HistoryWriter,
    row: LogRow,
    group: ModernGroup,
    member: tuple[tuple[str, str, str, int, int], str, TopicNames | None],
) -> MemberSnapshotRow:
    """A member, by its place, id and own topics; of a classic one in the group also what its own subscription said."""
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
    writer: HistoryWriter, row: LogRow, group: ModernGroup, current: Current
) -> tuple[Assignment, Assignment]:
    """What a member holds for good, and what it must give up; of tasks, what the active ones read."""
    if group.group_type is not GroupType.STREAMS:
        return current.recorded, current.pending
    recorded, pending = (read_by(writer, row, group, current.tasks, state) for state in (ASSIGNED, PENDING))
    return recorded, pending


def held_by(writer: HistoryWriter, row: LogRow, group: ModernGroup, current: Current) -> Assignment:
    """All that a member holds: a pending partition is given to nobody else before the member acknowledges."""
    recorded, pending = assigned_to(writer, row, group, current)
    return (*recorded, *pending)


def read_by(writer: HistoryWriter, row: LogRow, group: ModernGroup, tasks: Tasks, state: str) -> Assignment:
    """The partitions that active tasks read, by the topology and the topics of that time."""
    return partitions_of(tasks, state, group.topology, writer.topics, row.timestamp_ms)


def preferred_assignor(group: ModernGroup, present: list[str]) -> str | None:
    """The server-side assignor most members ask for, the first by name among equals; None: none asks."""
    asked = [group.metadata[member].value.server_assignor for member in present]
    votes = Counter(name for name in asked if name)
    return min(votes, key=lambda name: (-votes[name], name), default=None)


def state_of(group: ModernGroup, present: list[str]) -> str:
    """Stable: the target is the group's epoch and every member holds exactly its own."""
    if not present:
        return "Empty"
    return "Stable" if group.is_settled else "Reconciling"
