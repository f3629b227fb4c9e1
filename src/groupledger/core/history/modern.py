"""A KIP-848 group: records of single members and deltas of targets, folded into snapshots.

A snapshot is taken where the target is complete (TargetAssignmentMetadata) and where what a member holds or must give
up changes (CurrentMemberAssignment and its tombstone). It is not complete while records are known to be missing.
"""

from __future__ import annotations

from groupledger.core.history.assigned import check_doubles
from groupledger.core.history.chronicle import Chronicle, GroupType
from groupledger.core.history.classic import write_deleted
from groupledger.core.history.members import (
    Current,
    ModernGroup,
    by_topic,
    read_current,
    read_expression,
    read_metadata,
    read_target,
)
from groupledger.core.history.modern_rows import snapshot_rows
from groupledger.core.history.rows import LogRow, Unfinished
from groupledger.core.wire.faults import require_partitions
from groupledger.core.wire.offsets_log import (
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    LogKey,
    MemberMetadata,
    RecordKind,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    Value,
)

FIRST_EPOCH = 2
"""The epoch of a new group's first record; 0 and 1 are never written."""


def fold_modern(chronicle: Chronicle, row: LogRow, key: LogKey, value: Value | None) -> None:
    """One record of a KIP-848 group; `DecodeFault`, with nothing changed, where nested bytes do not decode."""
    raw, name = row.value or b"", str(key.fields.get("member_id") or key.fields.get("regular_expression") or "")
    match value:
        case MemberMetadata():
            metadata = read_metadata(raw, value)
            enter(chronicle, row).metadata[name] = metadata
        case RegularExpression():
            enter(chronicle, row).expressions[name] = read_expression(raw, value)
        case TargetAssignmentMember():
            require_partitions(value.topic_partitions)
            group = enter(chronicle, row)
            group.targets[name] = read_target(raw, value, chronicle.topics)
            # A static member that came back takes over its predecessor's target, in no epoch of its own.
            group.open = group.open or group.group_epoch != group.target_epoch
            group.judge(name)
            lacks_epoch(group)
        case ConsumerGroupMetadata():
            reach_epoch(chronicle, row, value.epoch)
        case TargetAssignmentMetadata():
            complete_target(chronicle, row, value.epoch)
        case CurrentMemberAssignment():
            require_partitions((*value.assigned, *value.pending_revocation))
            hold(chronicle, row, name, read_current(raw, value, chronicle.topics))
        case _:
            raise AssertionError(f"{key.kind} is no record of a KIP-848 group")


def fold_modern_tombstone(chronicle: Chronicle, row: LogRow, key: LogKey) -> None:
    """The end of one key; of the group's epoch: the end of the group."""
    group = chronicle.state.modern
    if key.kind is RecordKind.CONSUMER_GROUP_METADATA:
        delete_modern(chronicle, row)
    if group is None:
        return
    name = str(key.fields.get("member_id") or key.fields.get("regular_expression") or "")
    match key.kind:
        case RecordKind.CONSUMER_GROUP_MEMBER_METADATA:
            group.metadata.pop(name, None)
            group.forget(name)
        case RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION:
            group.expressions.pop(name, None)
        case RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            group.targets.pop(name, None)
        case RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
            group.target_epoch = None
        case RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            leave(chronicle, row, group, name)
        case _:
            pass


def enter(chronicle: Chronicle, row: LogRow) -> ModernGroup:
    """The group, at the start of an incarnation a new one."""
    state = chronicle.state
    if not state.alive or state.group_type != GroupType.CONSUMER or state.modern is None:
        converted_from = state.number if state.group_type == GroupType.CLASSIC else None
        cut = state.hole and not state.alive
        chronicle.begin(GroupType.CONSUMER, row)
        state.number = converted_from
        state.modern = ModernGroup(cut=cut)
    return state.modern


def reach_epoch(chronicle: Chronicle, row: LogRow, epoch: int) -> None:
    """A group epoch: members or topics changed, a target will follow."""
    group, state = enter(chronicle, row), chronicle.state
    known = group.group_epoch
    if known is None:
        begin_epochs(chronicle, row, group, epoch)
    elif epoch < known:
        fall(chronicle, row, group, epoch)
    elif epoch > known + 1:
        group.cut = True
        reason = f"no record of the group epochs between {known} and {epoch}: compacted away, or the log lost them"
        chronicle.gap("epochs-skipped", row, (known, epoch), reason)
    group.group_epoch = state.number = epoch


def begin_epochs(chronicle: Chronicle, row: LogRow, group: ModernGroup, epoch: int) -> None:
    """The first epoch seen: 2 in a new group; a converted one goes on from the classic generation."""
    classic = chronicle.state.number
    goes_on = classic is not None and 0 <= epoch - classic <= 1
    if epoch > FIRST_EPOCH and not goes_on:
        group.cut = True
        reason = f"the first group epoch of this incarnation is {epoch}; the records before are not there"
        chronicle.gap("history-begins-late", row, (None, epoch), reason)


def fall(chronicle: Chronicle, row: LogRow, group: ModernGroup, epoch: int) -> None:
    """A falling epoch starts an incarnation. The members' last records stay: nothing deleted them."""
    reason = (
        f"the group epoch fell from {group.group_epoch} to {epoch} without a tombstone: the group was deleted unseen, "
        "or the log lost its end"
    )
    chronicle.gap("tombstone-missing", row, (group.group_epoch, epoch), reason)
    chronicle.begin(GroupType.CONSUMER, row)
    chronicle.state.modern = group
    group.cut, group.group_epoch, group.target_epoch = True, epoch, None
    held = [(member, current.held) for member, current in group.current.items()]
    chronicle.changed(chronicle.state.ownership.record(held, None), row)
    take_snapshot(chronicle, row, group)


def complete_target(chronicle: Chronicle, row: LogRow, epoch: int) -> None:
    """The target of an epoch is complete: take a snapshot."""
    group = enter(chronicle, row)
    known = group.target_epoch
    if known is not None and epoch > known + 1:
        reason = f"no target of the epochs between {known} and {epoch}: normal where a later epoch came first"
        chronicle.gap("target-epochs-skipped", row, (known, epoch), reason)
    lacks_epoch(group)
    group.cut = group.cut or group.group_epoch is None or epoch > group.group_epoch
    group.target_epoch, group.open = epoch, False
    group.mend()
    take_snapshot(chronicle, row, group)


def hold(chronicle: Chronicle, row: LogRow, member_id: str, now: Current) -> None:
    """What a member holds from now on; a snapshot if its partitions changed."""
    group = enter(chronicle, row)
    if now.epoch >= FIRST_EPOCH:  # a member that waits for its regular expression is at 1 before the group is at 2
        lacks_epoch(group)
    before = group.current.get(member_id)
    group.leaving.discard(member_id)
    group.current[member_id] = now
    group.judge(member_id)
    since = None if before is None and group.cut else row.timestamp_ms
    changes = chronicle.state.ownership.record([(member_id, now.held)], since)
    chronicle.changed(changes, row)
    group.mend()
    pending = before.pending if before is not None else ()
    if changes or by_topic(now.pending) != by_topic(pending):
        take_step(chronicle, row, group)


def leave(chronicle: Chronicle, row: LogRow, group: ModernGroup, member_id: str) -> None:
    """A member's assignment was deleted, the first of its tombstones: it holds nothing any more."""
    if group.current.pop(member_id, None) is None:
        return
    if member_id in group.metadata:
        group.leaving.add(member_id)
    group.unsettled.discard(member_id)
    changes = chronicle.state.ownership.record([(member_id, ())], None)
    if changes:
        chronicle.changed(changes, row)
        take_step(chronicle, row, group)


def delete_modern(chronicle: Chronicle, row: LogRow) -> None:
    """The group was deleted, or goes on as a classic group of the same name."""
    state = chronicle.state
    if state.alive and state.group_type != GroupType.CONSUMER:
        return
    if not state.incarnation:
        chronicle.begin(GroupType.CONSUMER, row)
        reason = "the first record of the group is its tombstone: nothing is known of the time before"
        chronicle.gap("history-begins-late", row, (None, None), reason)
    if state.alive:
        write_deleted(chronicle, row)


def mark_hole(chronicle: Chronicle, row: LogRow, what: str) -> None:
    """A record of the group could not be read: what it changed is not known, and no snapshot is measured across it."""
    state = chronicle.state
    reason = f"{what}; the bytes are in quarantine. What it changed is not known: the next snapshot has no previous one"
    chronicle.gap("record-unreadable", row, (state.number if state.alive else None, None), reason)
    state.hole = True
    if state.modern is not None:
        state.modern.cut = True


def unfinished(chronicle: Chronicle, row: LogRow) -> Unfinished | None:
    """The state at the last record read, if an epoch or a member's leaving is half told there."""
    group = chronicle.state.modern
    if group is None or not (group.open or group.leaving or group.group_epoch != group.target_epoch):
        return None
    reason = (
        f"the read ended in group epoch {group.group_epoch}, with the target of epoch {group.target_epoch}: the rest "
        "of the step comes with the next read"
    )
    span = (group.target_epoch, None)
    snapshot, members = snapshot_rows(chronicle, row, group, complete=False)
    return Unfinished(snapshot, tuple(members), chronicle.coverage_row("fold-cut", row, span, reason))


def lacks_epoch(group: ModernGroup) -> None:
    """A target or an assignment before any group epoch: the records before are not there."""
    if group.group_epoch is None:
        group.cut = True


def take_step(chronicle: Chronicle, row: LogRow, group: ModernGroup) -> None:
    """Write the group at a member's step; a large one only at the last step of an epoch."""
    if len(group.metadata) <= chronicle.step_members or group.is_settled:
        take_snapshot(chronicle, row, group)


def take_snapshot(chronicle: Chronicle, row: LogRow, group: ModernGroup) -> None:
    """Write the group as it is known at this record."""
    complete = not group.cut and not group.open and group.target_epoch is not None
    chronicle.snapshot(*snapshot_rows(chronicle, row, group, complete=complete))
    check_doubles(chronicle, row)
