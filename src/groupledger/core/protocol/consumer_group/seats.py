"""Which member a heartbeat speaks for, or the error that ends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from groupledger.core.assignors.server.assign import ASSIGNORS
from groupledger.core.protocol.consumer_group.group_member import LEFT_STATIC, GroupMember
from groupledger.core.protocol.consumer_group.heartbeat import HeartbeatRequest, HeartbeatResponse, Refusal

MayBeLate = Callable[[HeartbeatRequest, GroupMember], bool]


class FoundMember(NamedTuple):
    """The member that speaks, as it was, and the id of the one whose seat it takes."""

    member: GroupMember
    replaces: str | None = None


def fault_of(request: HeartbeatRequest) -> HeartbeatResponse | None:
    """What is wrong with a request whoever sends it."""
    if request.remote_assignor is not None and request.remote_assignor not in ASSIGNORS:
        message = f"remote assignor is {request.remote_assignor!r}; expected one of {', '.join(ASSIGNORS)}"
        return HeartbeatResponse(request.epoch, error=Refusal.UNSUPPORTED_ASSIGNOR, message=message)
    try:
        re.compile(request.regex or "")
    except re.error as error:
        message = f"regular expression {request.regex!r} does not compile: {error}"
        return HeartbeatResponse(request.epoch, error=Refusal.INVALID_REGULAR_EXPRESSION, message=message)
    return None


def static_seat(members: Mapping[str, GroupMember], instance_id: str | None) -> GroupMember | None:
    """Find the seat of a static member by its instance id."""
    seated = (each for each in members.values() if each.group_instance_id == instance_id)
    return None if instance_id is None else next(seated, None)


def find_seat(
    request: HeartbeatRequest, members: Mapping[str, GroupMember], may_be_late: MayBeLate
) -> FoundMember | HeartbeatResponse:
    """The member that speaks; `may_be_late`: whether it may do so in its previous epoch."""
    if request.group_instance_id is not None:
        return _find_static(request, members, may_be_late)
    member = members.get(request.member_id)
    if member is None and request.joins:
        return _newcomer(request)
    return _checked(request, member, may_be_late)


def _find_static(
    request: HeartbeatRequest, members: Mapping[str, GroupMember], may_be_late: MayBeLate
) -> FoundMember | HeartbeatResponse:
    member = static_seat(members, request.group_instance_id)
    if member is None and request.joins:
        return _newcomer(request)
    if member is None or member.member_id == request.member_id:
        return _checked(request, member, may_be_late)
    if request.epoch != 0:
        message = f"{request.group_instance_id} belongs to {member.member_id} now"
        return HeartbeatResponse(request.epoch, error=Refusal.FENCED_INSTANCE_ID, message=message)
    both_consumers = request.classic_assignors is None and not member.uses_classic
    if both_consumers and member.epoch != LEFT_STATIC:
        message = f"{request.group_instance_id} is owned by {member.member_id}, which has not left"
        return HeartbeatResponse(request.epoch, error=Refusal.UNRELEASED_INSTANCE_ID, message=message)
    copied = replace(member, member_id=request.member_id, process=request.process, epoch=0, previous_epoch=0)
    return FoundMember(copied, member.member_id)


def _checked(
    request: HeartbeatRequest, member: GroupMember | None, may_be_late: MayBeLate
) -> FoundMember | HeartbeatResponse:
    """A known member, unless its epoch is not the one it should have (0 always is, KAFKA-19233)."""
    if member is None:
        message = f"{request.member_id} is no member"
        return HeartbeatResponse(request.epoch, error=Refusal.UNKNOWN_MEMBER_ID, message=message)
    late = request.epoch == member.previous_epoch and may_be_late(request, member)
    if request.classic_assignors is None and request.epoch not in (0, member.epoch) and not late:
        message = f"{request.member_id} is in epoch {member.epoch}, not {request.epoch}"
        return HeartbeatResponse(request.epoch, error=Refusal.FENCED_MEMBER_EPOCH, message=message)
    return FoundMember(member)


def _newcomer(request: HeartbeatRequest) -> FoundMember:
    return FoundMember(GroupMember(request.member_id, request.process))


def updated(member: GroupMember, request: HeartbeatRequest) -> GroupMember:
    """The member with what its heartbeat says; what is not said stays."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        process=request.process,
        group_instance_id=request.group_instance_id,
        topics=member.topics if request.topics is None else tuple(sorted(set(request.topics))),
        regex=member.regex if request.regex is None else request.regex or None,
        remote_assignor=request.remote_assignor or member.remote_assignor,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        classic_assignors=request.classic_assignors,
        process_id=request.process_id or member.process_id,
    )
