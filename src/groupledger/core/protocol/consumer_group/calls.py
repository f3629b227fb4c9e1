"""A call that a process of a consumer group is in: it may take time, and too much of it."""

from __future__ import annotations

from dataclasses import replace

from groupledger.core.protocol.callbacks import Call, Callback
from groupledger.core.protocol.consumer_group.group_member import LEFT_STATIC
from groupledger.core.protocol.consumer_group.play import Play
from groupledger.core.protocol.consumer_group.process import EntryKind, Process


def begin_call(play: Play, process: Process, made: Call) -> None:
    """Begin a call."""
    process.doing, process.since_ms, process.poll_started_ms = made, play.clock_ms, play.clock_ms
    process.seated = process.member_id in play.group.members
    process.turns = process.application.called(made)


def takes_time(play: Play, process: Process) -> bool:
    """Let a call go on until it spends time (True) or returns (False)."""
    spent_ms = next((ms for ms in process.turns or () if ms), None)
    if spent_ms is not None:
        play.put(process, EntryKind.RETURN, spent_ms)
        if play.times is not None and process.since_ms == play.clock_ms:
            play.put(process, EntryKind.TOO_LATE, process.times.rebalance_timeout_ms, process.since_ms)
    return spent_ms is not None


def finish_call(play: Play, process: Process) -> None:
    """Return from the call that a process is in.

    A client that fell out of the group while it revoked still has what it revoked, and hears that it is lost too.
    """
    made, process.doing, process.turns = process.doing, None, None
    if made is None:
        raise AssertionError(f"{process.name} returns from no call; expected one under way")
    process.polled_ms = play.clock_ms
    play.note(process, made)
    member = play.group.members.get(process.member_id or "")
    if process.seated and (member is None or member.epoch == LEFT_STATIC):
        process.application.expelled(made, process.since_ms, play.clock_ms)
    if process.client is not None and made.callback in {Callback.REVOKED, Callback.LOST}:
        if process.fallen is not None:
            return
        process.client = replace(process.client, owned=process.client.owns - process.giving)
    elif process.client is not None and made.callback is Callback.ASSIGNED:
        process.client = replace(process.client, owned=process.client.owns | process.taking)
