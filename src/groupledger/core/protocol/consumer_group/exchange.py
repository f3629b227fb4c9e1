"""The exchange between the processes of a consumer group and its coordinator, one entry of the queue at a time."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any

from groupledger.core.assignors.server.server_group import TopicIdNumbers
from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Call, Callback, call
from groupledger.core.protocol.consumer_group import coordinated_group as c
from groupledger.core.protocol.consumer_group.consumer_coordinator import ConsumerGroup, Turn, static_seat
from groupledger.core.protocol.consumer_group.consumer_state import (
    LEFT_STATIC,
    REJOINS,
    RETRY_BACKOFF_MS,
    Coordinated,
    HeartbeatRequest,
    HeartbeatResponse,
    HeartbeatRow,
    MemberRow,
    MemberState,
    Reconciled,
    Refusal,
    TargetRow,
)
from groupledger.core.protocol.consumer_group.coordinated_group import (
    HEARTBEATS_DURING,
    CoordinatedGroup,
    EntryKind,
    Process,
    QueueEntry,
    Steps,
)
from groupledger.core.protocol.consumer_group.topics_and_targets import NO_PARTITIONS, ServerQuestion, Targets, flat

AskingTargets = Generator[ServerQuestion, Targets, None]


def take_next(play: CoordinatedGroup) -> AskingTargets:
    """Take what is due next: a time-out, or the first entry of the queue."""
    over, timer_ms = play.next_time_out(), play.group.timer_ms
    first_ms = min([*(each.at_ms for each in play.queue[:1]), *([] if over is None else over[:1])], default=timer_ms)
    if timer_ms is not None and first_ms is not None and timer_ms <= first_ms:
        play.move_clock(timer_ms)
        if play.group.end_delay():  # a Streams group: members hear of its first target with their heartbeats
            yield from _assign(play, None)
        return
    if not play.queue or (over is not None and over[0] < play.queue[0].at_ms):
        if over is not None:
            play.move_clock(over[0])
            play.time_out(over[1])
        return
    yield from _take(play, heapq.heappop(play.queue))


def hear_out(play: CoordinatedGroup) -> AskingTargets:
    """Let the answers arrive that are on their way in a group at rest: they bring no news."""
    on_their_way = sorted(each for each in play.queue if each.due is EntryKind.ANSWER)
    play.queue = [each for each in play.queue if each.due is not EntryKind.ANSWER]
    heapq.heapify(play.queue)
    for entry in on_their_way:
        yield from _take(play, entry)


def _take(play: CoordinatedGroup, entry: QueueEntry) -> AskingTargets:
    process = play.of(entry)
    if process is None:
        return
    play.move_clock(entry.at_ms)
    speaks = entry.due in (EntryKind.SEND, EntryKind.ANSWER)
    if process.cut_off and speaks:
        return
    if (process.hung if not speaks else not process.talks) or not (process.talks or process.cut_off):
        process.suspended.append((entry.due, entry.payload))
    elif entry.due is EntryKind.SEND:
        yield from _send(play, process)
    elif entry.due is EntryKind.ANSWER:
        yield from _receive(play, process, entry.payload)
    elif entry.due is EntryKind.TOO_LATE:
        _stay_too_long(play, process, entry.payload)
    else:
        yield from _go_on(play, process, entry.payload, returned=entry.due is EntryKind.RETURN)


def _stay_too_long(play: CoordinatedGroup, process: Process, since_ms: int) -> None:
    """Make a process leave that is still in the call that began then; if it is cut off, the group hears nothing."""
    still = process.in_poll and process.since_ms == since_ms
    if not still or process.closes or process.is_out or (process.doing and process.doing.callback is Callback.LOST):
        return
    if process.cut_off:
        process.pending_error = classic.Error.UNKNOWN_MEMBER_ID
    else:
        play.leave_late(process)


def _send(play: CoordinatedGroup, process: Process) -> AskingTargets:
    """Send the next heartbeat of a process."""
    if process.awaits is not None:
        process.sends_again = True
        return
    if process.falls:
        return
    if process.pending_error is not None:
        yield from carry_on(play, process)  # it is in no group until it has lost everything
        return
    play.send_next(process)
    if process.client is None:
        yield from _send_classic(play, process)
        return
    process.client, request = c.send(process.client)
    answer = yield from exchange(play, request)
    round_trip_ms = play.round_trip_ms(process)
    if round_trip_ms:
        process.awaits = answer
        play.put(process, EntryKind.ANSWER, round_trip_ms, answer)
    else:
        yield from _receive(play, process, answer)


def _send_classic(play: CoordinatedGroup, process: Process) -> AskingTargets:
    """Send a classic heartbeat. One that is in a rebalance already sends none between its calls."""
    if process.steps is not None and process.doing is not None and process.doing.callback in HEARTBEATS_DURING:
        error = needs_to_join(play.group, process, play.clock_ms)  # it acts on that once the call returns
        if error is Refusal.REBALANCE_IN_PROGRESS:
            process.must_rejoin = True
        elif error is not None and error is not Refusal.FENCED_INSTANCE_ID:  # which the next heartbeat after it hears
            process.pending_error = classic.Error(error)
    if process.steps is not None or process.consumer is None:
        return
    error = needs_to_join(play.group, process, play.clock_ms)
    resumes, process.resumes = process.resumes, False
    if error is None:
        if resumes:
            play.ownership.begin_step()
            play.ownership.take(process.name, play.consumed(process), play.clock_ms)
        return
    if error is Refusal.FENCED_INSTANCE_ID:
        play.refuse(process, error, f"{process.instance_id} belongs to another member now")
        return
    if error is not Refusal.REBALANCE_IN_PROGRESS:
        process.pending_error = classic.Error(error)
    else:
        process.steps = join_steps(play, process)
    yield from carry_on(play, process)


def exchange(
    play: CoordinatedGroup, request: HeartbeatRequest
) -> Generator[ServerQuestion, Targets, HeartbeatResponse]:
    """Let the coordinator handle a heartbeat, or a JoinGroup; new expressions are resolved right after it."""
    group = play.group
    if group.make_topics(play.clock_ms):
        play.change_topics(group.topics.counts)
    before = group.epoch, group.assignment_epoch
    turn = group.begin(request, play.clock_ms)
    if isinstance(turn, HeartbeatResponse):
        write_heartbeat(play, request, turn)
        return turn
    if group.is_due(play.clock_ms):
        yield from _assign(play, turn)
    answer = group.finish(turn, play.clock_ms)
    if turn.replaces is not None and group.would_be_classic():
        play.is_classic = True
    news = answer.assigned is not None or answer.epoch != request.epoch or request.owned is not None
    if news or before != (group.epoch, group.assignment_epoch):
        write_heartbeat(play, request, answer)
    group.resolve_expressions(play.clock_ms)
    return answer


def _assign(play: CoordinatedGroup, turn: Turn | None) -> AskingTargets:
    question = play.group.question(turn)
    answer = yield question
    if answer.failure is not None:
        play.failure = f"{question.assignor}: {answer.failure}"
        return
    play.group.install(answer.of, play.clock_ms)
    write_target(play, turn, question.assignor, answer.of)


def _receive(play: CoordinatedGroup, process: Process, answer: HeartbeatResponse) -> AskingTargets:
    """Let an answer reach a member of the consumer protocol."""
    client = process.client
    if client is None:
        raise AssertionError(f"{process.name} was answered a heartbeat that it cannot have sent")
    process.awaits = None
    if process.sends_again:
        process.sends_again = False
        play.send_soon(process)
    if process.misses_answer():
        process.lose_answer()
        return
    if answer.error is None:
        process.client = c.receive(client, answer)
        if client.shares:
            process.client = _take_shared(play, process, process.client)
        elif process.resumes or (play.group.reads_what_is_there and process.doing is None):
            play.ownership.begin_step()
            play.ownership.take(process.name, play.consumed(process), play.clock_ms)
    elif answer.error in REJOINS:
        process.pending_error = classic.Error.UNKNOWN_MEMBER_ID
    else:
        play.refuse(process, answer.error, answer.message)
        return
    process.resumes = False
    yield from carry_on(play, process)


def _take_shared(play: CoordinatedGroup, process: Process, client: c.ConsumerClient) -> c.ConsumerClient:
    """Give a share consumer what it was answered, at once; it has no listener to call."""
    given = client.assigned or NO_PARTITIONS
    play.ownership.begin_step()
    play.ownership.give_up(process.name, play.group.partitions(client.owns - given), play.clock_ms)
    play.ownership.take(process.name, play.group.living_partitions(given), play.clock_ms)
    return replace(client, owned=given)


def carry_on(play: CoordinatedGroup, process: Process) -> AskingTargets:
    """Begin what a process does next, unless it is busy: close, lose all, reconcile, the first of these that is due."""
    if not process.alive or process.doing is not None or process.hung:
        return
    if process.closing and (process.client is not None or process.steps is None):
        _begin(process, _close_steps(play, process, lost=process.is_out))
    elif process.pending_error is not None:
        _note_reconciled(play, process, failed=True)
        _begin(process, _fall_steps(play, process, process.pending_error))
    elif process.steps is None and process.client is not None and not process.client.reconciled:
        process.reconciling_ms = play.clock_ms
        _begin(process, _reconcile_steps(play, process))
    if process.steps is not None:
        yield from _run(play, process, None)


def _begin(process: Process, steps: Steps) -> None:
    """Do this instead of what it is doing."""
    process.steps = steps
    process.pending_error, process.closing = None, False


def _go_on(
    play: CoordinatedGroup, process: Process, answer: HeartbeatResponse | None, *, returned: bool
) -> AskingTargets:
    """Continue after a call has returned, or a time is over. What became due during a call is done then."""
    if not returned and process.in_poll:
        return
    if returned and process.doing is not None:
        if takes_time(play, process):
            return
        finish_call(play, process)
    process.doing = None
    interrupted = (
        process.client is not None and not process.closes and (process.pending_error is not None or process.closing)
    )
    continues = process.steps is not None and not interrupted
    if not continues or (yield from _run(play, process, answer)):
        yield from carry_on(play, process)


def _run(
    play: CoordinatedGroup, process: Process, answer: HeartbeatResponse | None
) -> Generator[ServerQuestion, Targets, bool]:
    """Take steps until one takes time (False), or there are none left (True)."""
    process.read_on()
    while process.steps is not None:
        try:
            step = next(process.steps) if answer is None else process.steps.send(answer)
        except StopIteration:
            process.steps = None
            if process.polls:
                process.application.read(play.clock_ms)  # the poll that its callbacks ran in
            return process.alive
        answer = None
        if isinstance(step, HeartbeatRequest):
            answer = yield from exchange(play, step)
            continue
        if isinstance(step, int | None):
            wait_ms = process.next_poll_ms(play.clock_ms) - play.clock_ms if step is None else step
            if wait_ms or step is not None:
                process.doing = Call(Callback.USER_DATA)
                play.put(process, EntryKind.GO_ON, wait_ms)
                return False
            continue
        begin_call(play, process, step)
        if takes_time(play, process):
            return False
        finish_call(play, process)
    return process.alive


def _reconcile_steps(play: CoordinatedGroup, process: Process) -> Steps:
    """To what was answered last: revoke, then take, even if nothing; then say what is owned, at once."""
    yield None
    play.commit(process)
    client = process.client
    if client is None or client.assigned is None:
        return
    goal = client.assigned
    partitions = play.group.partitions
    process.giving, process.taking = client.owns - goal, goal - client.owns
    if partitions(process.giving):
        yield call(Callback.REVOKED, partitions(process.giving))
    yield call(Callback.ASSIGNED, partitions(process.taking))
    if process.client is not None:
        process.client = replace(process.client, owned=goal, stated=None)
    _note_reconciled(play, process, failed=False)
    play.send_soon(process)


def _note_reconciled(play: CoordinatedGroup, process: Process, *, failed: bool) -> None:
    """Note the end of a reconciliation, if one was under way."""
    if process.reconciling_ms is not None:
        play.reconciled.append(Reconciled(process.name, process.reconciling_ms, play.clock_ms, failed))
        process.reconciling_ms = None


def _fall_steps(play: CoordinatedGroup, process: Process, error: classic.Error) -> Steps:
    """All is lost, and it joins again. Until then it sends no heartbeat."""
    if process.client is not None:
        process.falls = True
        yield None
    owned = play.owned(process)
    if process.client is not None:
        process.giving = process.client.owns
        if owned and not process.client.shares:
            yield call(Callback.LOST, owned)
        play.ownership.stop(process.name, play.clock_ms)
        process.client, process.falls = c.fall_out(process.client), False
        play.send_soon(process)
    elif process.consumer is not None:
        reaction = classic.fall_out(process.consumer, error)
        yield from reaction.calls
        process.consumer = reaction.consumer
        yield from join_steps(play, process)


def _close_steps(play: CoordinatedGroup, process: Process, *, lost: bool) -> Steps:
    """Revoke all, say so, end. A static member keeps its seat; of the classic protocol it says nothing.

    `lost`: it has heard that it is no member any more. One that hears it from here on closes none the less.
    """
    play.commit(process)
    owned, member_id = play.owned(process), process.member_id or ""
    if owned and not (process.client is not None and process.client.shares):
        yield call(Callback.LOST if lost else Callback.REVOKED, owned)
    play.end(process)
    static = process.instance_id is not None
    if member_id not in play.group.members:
        del play.processes[process.name]
    elif not static:
        play.unseat(member_id)
        del play.processes[process.name]
    elif process.client is not None:
        play.group.leave_for_now(member_id)
    for act in process.afterwards:
        act()


# Members of the classic protocol in a consumer group: the coordinator speaks JoinGroup, SyncGroup, Heartbeat to them.
#
# They are assigned by the server-side assignor as all others are, have no leader, and the generation that they get
# is their member epoch. What they do on their side is `core.protocol.consumer`.


def needs_to_join(group: ConsumerGroup, process: Process, now_ms: int) -> Refusal | None:
    """Return the answer to a classic heartbeat: nothing, or the error after which a member joins (again).

    It is called back when the group moved on, when it has to revoke, and when all that it waits for is free.
    """
    member = group.members.get(process.member_id or "")
    if member is None:
        seat = static_seat(group.members, process.instance_id)
        return Refusal.UNKNOWN_MEMBER_ID if seat is None else Refusal.FENCED_INSTANCE_ID
    if member.epoch != process.generation:
        return Refusal.ILLEGAL_GENERATION
    group.heard_ms[member.member_id] = now_ms
    waits = member.state is MemberState.UNRELEASED_PARTITIONS
    freed = waits and all(group.holder(each) is None for each in group.missing(member))
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS or freed:
        group.revoking_since_ms.setdefault(member.member_id, now_ms)
        return Refusal.REBALANCE_IN_PROGRESS
    return None


def join_steps(play: CoordinatedGroup, process: Process) -> Steps:
    """JoinGroup and SyncGroup until the member need not join again."""
    while process.alive:
        play.commit(process)
        joining = classic.join(classic.look(process.classic_consumer, play.group.topics.counts))
        process.consumer = joining.consumer
        if not (yield from _called(process, joining.calls)):
            return
        if not play.group.members and not play.has_talking_clients:
            play.is_classic = True  # an empty group is a classic one to a client that joins it so
            return
        member_id = process.member_id or play.new_id(process.name)
        process.consumer, process.must_rejoin = replace(joining.consumer, member_id=member_id), False
        answer = yield _join_group(play, process, member_id)
        if answer is None:
            raise AssertionError(f"{process.name} sent JoinGroup; expected an answer")
        if answer.error is not None:
            play.refuse(process, answer.error, answer.message)
            return
        play.group.session_ms[member_id] = process.times.session_timeout_ms
        process.consumer = classic.enter(process.consumer, member_id, answer.epoch, leads=False)
        member = play.group.members[member_id]
        if play.group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            yield RETRY_BACKOFF_MS
            continue
        reaction = classic.receive_assignment(process.consumer, play.group.topics.named(member.assigned))
        process.consumer = reaction.consumer
        if not (yield from _called(process, reaction.calls)):
            return
        said = process.consumer.topics == joining.subscription.topics
        if said and not (reaction.joins or process.must_rejoin):
            play.send_next(process)
            return


def _called(process: Process, calls: Iterable[Call]) -> Generator[Call, Any, bool]:
    """Make calls, and return whether the process is still a member after them, as far as it knows."""
    yield from calls
    return not process.is_out


def _join_group(play: CoordinatedGroup, process: Process, member_id: str) -> HeartbeatRequest:
    """JoinGroup with what the subscription states as owned: nothing of an eager member."""
    return HeartbeatRequest(
        member_id=member_id,
        process=process.name,
        epoch=process.generation or 0,
        group_instance_id=process.settings.group_instance_id,
        topics=process.classic_consumer.topics,
        regex="",
        rebalance_timeout_ms=process.times.rebalance_timeout_ms,
        owned=play.group.topics.identified(process.classic_consumer.owned),
        classic_assignors=process.settings.assignors,
    )


# A call that a process of a consumer group is in: it may take time, and too much of it.


def begin_call(play: CoordinatedGroup, process: Process, made: Call) -> None:
    """Begin a call."""
    process.doing, process.since_ms, process.poll_started_ms = made, play.clock_ms, play.clock_ms
    process.seated = process.member_id in play.group.members
    process.turns = process.application.called(made)


def takes_time(play: CoordinatedGroup, process: Process) -> bool:
    """Continue a call until it spends time (True) or returns (False)."""
    spent_ms = next((ms for ms in process.turns or () if ms), None)
    if spent_ms is not None:
        play.put(process, EntryKind.RETURN, spent_ms)
        if play.times is not None and process.since_ms == play.clock_ms:
            play.put(process, EntryKind.TOO_LATE, process.times.rebalance_timeout_ms, process.since_ms)
    return spent_ms is not None


def finish_call(play: CoordinatedGroup, process: Process) -> None:
    """Return from the call that a process is in.

    A client that fell out of the group while it revoked still has what it revoked, and hears that it is lost too.
    """
    made, process.doing, process.turns = process.doing, None, None
    if made is None:
        raise AssertionError(f"{process.name} returns from no call; expected one under way")
    process.polled_ms = play.clock_ms
    play.returned(process, made)
    member = play.group.members.get(process.member_id or "")
    if process.seated and (member is None or member.epoch == LEFT_STATIC):
        process.application.expelled(made, process.since_ms, play.clock_ms)
    if process.client is not None and made.callback in {Callback.REVOKED, Callback.LOST}:
        if process.pending_error is not None:
            return
        process.client = replace(process.client, owned=process.client.owns - process.giving)
    elif process.client is not None and made.callback is Callback.ASSIGNED:
        process.client = replace(process.client, owned=process.client.owns | process.taking)


# What a coordinator did, as rows: heartbeats and targets while a group is in play, its members after an event.


def write_target(play: CoordinatedGroup, turn: Turn | None, assignor: str, of: Mapping[str, TopicIdNumbers]) -> None:
    """Write down a target assignment that was computed in this heartbeat (None: in none)."""
    names = {each.member_id: each.process for each in play.group.members.values()}
    if turn is not None:
        names[turn.member.member_id] = turn.member.process
    given = {names[member_id]: flat(target) for member_id, target in of.items()}
    rows = tuple((name, play.group.named(target)) for name, target in given.items())
    standby = tuple((name, play.group.standby(target)) for name, target in given.items())
    play.targets.append(TargetRow(play.clock_ms, play.group.assignment_epoch, assignor, rows, standby))


def write_heartbeat(play: CoordinatedGroup, request: HeartbeatRequest, answer: HeartbeatResponse) -> None:
    """Write down a heartbeat that was answered."""
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


def take_coordinated(play: CoordinatedGroup) -> Coordinated:
    """Return the state of the group, and its heartbeats and targets since the last time."""
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
