"""The rows of a KIP-848 group's snapshot."""

from __future__ import annotations

from collections import Counter

from groupledger.core.history.chronicle import SOURCE, Chronicle, GroupType
from groupledger.core.history.members import ModernGroup
from groupledger.core.history.rows import Assignment, GroupSnapshotRow, LogRow, MemberSnapshotRow, Topics
from groupledger.core.history.words import Words


def snapshot_rows(
    chronicle: Chronicle, row: LogRow, group: ModernGroup, *, complete: bool
) -> tuple[GroupSnapshotRow, list[MemberSnapshotRow]]:
    """The group as it is known at this record, members in the order of joining."""
    state, identity = chronicle.state, chronicle.snapshot_id(row.offset)
    present = group.present()
    topics = [group.topics_of(member) for member in present]
    shared = topics[0] if topics and all(other == topics[0] for other in topics) else None
    subscribed = tuple(sorted({topic for own in topics for topic in own})) if shared is None else None
    snapshot = GroupSnapshotRow(
        snapshot_id=identity,
        cluster_id=chronicle.cluster_id,
        source=SOURCE,
        log_partition=row.log_partition,
        offset=row.offset,
        group_id=state.group_id,
        group_type=GroupType.CONSUMER.value,
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
        previous_snapshot_id=chronicle.previous_snapshot_id(),
        first_snapshot_id=None,
        observed_at=row.timestamp_ms,
    )
    places = [(identity, chronicle.cluster_id, state.group_id, row.offset, order) for order in range(len(present))]
    words = chronicle.words.at(row.timestamp_ms)
    members = []
    for place, member_id, own in zip(places, present, topics, strict=True):
        members.append(member_row(place, member_id, group, words, own if shared is None else None))
    return snapshot, members


def member_row(
    place: tuple[str, str, str, int, int], member_id: str, group: ModernGroup, words: Words, topics: Topics | None
) -> MemberSnapshotRow:
    """A member; of a classic one in the group also what its own subscription said."""
    _, value, said = group.metadata[member_id]
    target, current = group.targets.get(member_id), group.current.get(member_id)
    claimed: Assignment | None = None
    if said is not None and said.states_claim:
        claimed = words.with_ids(said.claim.owned)
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
        recorded=current.recorded if current else None,
        target=target.partitions if target else None,
        pending_revocation=current.pending if current else None,
        member_epoch=current.epoch if current else None,
    )


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
