"""What a coordinator did, as rows: heartbeats and targets while a group is in play, its members after an event."""

from __future__ import annotations

from collections.abc import Mapping

from groupledger.core.assignors.server.group import TopicIdNumbers
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer_group.coordinated import Coordinated, HeartbeatRow, MemberRow, TargetRow
from groupledger.core.protocol.consumer_group.coordinator import Turn
from groupledger.core.protocol.consumer_group.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupledger.core.protocol.consumer_group.play import Play
from groupledger.core.protocol.consumer_group.topic_table import flat


def write_target(play: Play, turn: Turn | None, assignor: str, of: Mapping[str, TopicIdNumbers]) -> None:
    """A target assignment was computed, in this heartbeat (None: in none)."""
    names = {each.member_id: each.process for each in play.group.members.values()}
    if turn is not None:
        names[turn.member.member_id] = turn.member.process
    given = {names[member_id]: flat(target) for member_id, target in of.items()}
    rows = tuple((name, play.group.named(target)) for name, target in given.items())
    standby = tuple((name, play.group.standby(target)) for name, target in given.items())
    play.targets.append(TargetRow(play.clock_ms, play.group.assignment_epoch, assignor, rows, standby))


def write_heartbeat(play: Play, request: HeartbeatRequest, answer: HeartbeatResponse) -> None:
    """A heartbeat was answered."""
    member = play.group.members.get(request.member_id)
    named, standby = play.group.named, play.group.standby
    play.heartbeats.append(
        HeartbeatRow(
            at_ms=play.clock_ms,
            member=request.process,
            member_id=request.member_id,
            sent_epoch=request.epoch,
            owned=None if request.owned is None else named(request.owned),
            error=None if answer.error is None else answer.error.value,
            epoch=answer.epoch,
            state=None if member is None else play.group.state_of(member),
            assigned=() if member is None else named(member.assigned),
            pending=() if member is None else named(member.pending),
            group_epoch=play.group.epoch,
            assignment_epoch=play.group.assignment_epoch,
            standby=() if member is None else standby(member.assigned),
        )
    )


def take_coordinated(play: Play) -> Coordinated:
    """How the group stands, and what happened since the last time."""
    group = play.group
    named, standby = group.named, group.standby
    rows = tuple(
        MemberRow(
            member=each.process,
            member_id=each.member_id,
            protocol=e.GroupProtocol.CLASSIC if each.uses_classic else group.protocol,
            epoch=each.epoch,
            state=group.state_of(each),
            away=each.member_id in play.silent_members(),
            target=named(group.target(each.member_id)),
            assigned=named(each.assigned),
            pending=named(each.pending),
            process_id=each.process_id,
            standby_target=standby(group.target(each.member_id)),
            standby=standby(each.assigned),
        )
        for each in group.members.values()
    )
    heartbeats, play.heartbeats = tuple(play.heartbeats), []
    targets, play.targets = tuple(play.targets), []
    reconciled, play.reconciled = tuple(play.reconciled), []
    return Coordinated(
        group.epoch,
        group.assignment_epoch,
        rows,
        heartbeats,
        targets,
        reconciled,
        protocol=group.protocol,
        status=group.status,
    )
