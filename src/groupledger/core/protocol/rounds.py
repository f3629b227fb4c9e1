"""One round of a simulated group: all join, their leader is asked, all are answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.callbacks import Call, Callback
from groupledger.core.protocol.client_library import algorithm_of
from groupledger.core.protocol.group import ClassicGroup, ClassicProcess
from groupledger.core.protocol.leader import Plan, Question, ThreeSets
from groupledger.core.protocol.settlement import MemberRound, Round
from groupledger.core.protocol.subscription import Seat

NOBODY = Plan({}, {}, ThreeSets())


def gather(group: ClassicGroup) -> Question | None:
    """All who talk join, and the coordinator starts a generation; None where nobody is left to be asked.

    A dynamic member that did not join has lost its seat by the time-out; a static one keeps it, with what it last sent.
    """
    group.round, group.round_started_ms = len(group.rounds) + 1, group.clock_ms
    group.ownership.begin_step()
    group.catch_up()
    for process in group.processes.values():
        if process.talks:
            group.commit(process)
            _send_join(group, process)
    joined = group.seated()
    for member_id, member in list(group.coordinator.members.items()):
        if member_id not in joined and member.group_instance_id is None:
            group.coordinator.remove(member_id)
    group.coordinator.start_generation(joined)
    group.set_clocks(group.latest_ms() + group.pace.round_ms)
    if not joined:
        _close(group, (), NOBODY, _unowned(group, {}))
        return None
    for process in group.processes.values():
        process.heard_ms = group.clock_ms
    for member_id, process in joined.items():
        leads = member_id == group.coordinator.leader
        process.consumer = c.enter(process.consumer, member_id, group.coordinator.generation, leads)
    return _question(group, joined)


def _send_join(group: ClassicGroup, process: ClassicProcess) -> None:
    """JoinGroup. A member that has no id is given one: a dynamic one joins again with it (KIP-394)."""
    if not process.frozen or process.consumer.refreshes:
        process.consumer = c.look(process.consumer, group.topics)
    joining = c.join(process.consumer)
    group.made(process, joining.calls, joining.consumer)
    member_id = joining.consumer.member_id
    if member_id is None:
        member_id = group.coordinator.new_member_id(process.name)
        seat = group.coordinator.static_seat(process.settings.group_instance_id)
        if process.settings.group_instance_id is None:
            joining = c.receive_member_id(joining.consumer, member_id)
            group.made(process, joining.calls, joining.consumer)
        elif seat is not None:
            group.coordinator.replace(seat.member_id, process.registered(member_id, joining.subscription))
    process.consumer = replace(joining.consumer, member_id=member_id)
    process.joins = False
    group.coordinator.seat(process.registered(member_id, joining.subscription))


def _question(group: ClassicGroup, joined: Mapping[str, ClassicProcess]) -> Question:
    """What the coordinator sends to the leader, and the leader's own view of the topics."""
    coordinator = group.coordinator
    if coordinator.assignor is None or coordinator.leader is None:
        raise AssertionError("members met without a common assignor; expected the last one to have been refused")
    leader = joined[coordinator.leader]
    seats = tuple(Seat(each.member_id, each.subscription, each.group_instance_id) for each in coordinator.walk())
    owned = tuple(sorted({each for seat in seats for each in seat.subscription.owned}))
    topics = tuple(sorted({topic for seat in seats for topic in seat.subscription.topics}))
    group.made(leader, (Call(Callback.ASSIGN, owned, topics),), leader.consumer)
    group.planned_view = group.missing.known(group.topics if leader.consumer.habits.asks else leader.consumer.view)
    assignor = algorithm_of(leader.settings.library, coordinator.assignor)
    return Question(assignor, seats, group.planned_view, group.form, leader.settings.byte_code)


def spread(group: ClassicGroup, plan: Plan) -> None:
    """Answer SyncGroup to all, once the leader has assigned.

    Who revokes something joins again, and who got no answer; so does the leader that gets metadata only then of a topic
    that it assigned without.
    """
    group.set_clocks(group.latest_ms())
    group.ownership.begin_step(answering=True)
    group.catch_up()
    joined = group.seated()
    before = {member_id: tuple(sorted(each.consumer.owned)) for member_id, each in joined.items()}
    unavailable = _unowned(group, before)
    group.coordinator.given = plan.assigned
    answered = {member_id: _answer(group, process, member_id, plan) for member_id, process in joined.items()}
    if group.missing.assigned():
        group.must_join(joined[group.coordinator.leader or ""])
    for process in joined.values():
        if process.frozen and process.frozen_rounds:
            _thaw(group, process)
    rows = tuple(
        _row(process, member_id, plan, before[member_id], answered[member_id]) for member_id, process in joined.items()
    )
    _close(group, rows, plan, unavailable)


def _thaw(group: ClassicGroup, process: ClassicProcess) -> None:
    """One round less in which it learns nothing of topics; after the last it does."""
    process.frozen_rounds -= 1
    process.frozen = process.frozen_rounds > 0
    if not process.frozen:
        group.react(process, c.change_metadata(process.consumer, group.topics))


def _answer(group: ClassicGroup, process: ClassicProcess, member_id: str, plan: Plan) -> bool:
    answered = not process.misses_answer() and plan.failure is None
    if process.loses and answered:
        process.loses = process.talks = False
        process.heard_ms = group.clock_ms
    elif answered:
        group.react(process, c.receive_assignment(process.consumer, plan.assigned.get(member_id, ())))
    else:
        group.must_join(process)
    return answered


def _row(
    process: ClassicProcess, member_id: str, plan: Plan, owned: tuple[TopicPartition, ...], answered: bool
) -> MemberRound:
    return MemberRound(
        member=process.name,
        member_id=member_id,
        protocol=process.consumer.protocol,
        owned=owned,
        target=plan.target.get(member_id, ()),
        assigned=plan.assigned.get(member_id, ()),
        answered=answered,
        joins_again=process.joins,
    )


def _unowned(group: ClassicGroup, owned: Mapping[str, tuple[TopicPartition, ...]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(group.wanted().difference(*owned.values())))


def _close(
    group: ClassicGroup, members: tuple[MemberRound, ...], plan: Plan, unavailable: tuple[TopicPartition, ...]
) -> None:
    """Note the round; the clock stands where the last member is done."""
    group.clock_ms = group.latest_ms()
    leader = group.coordinator.members.get(group.coordinator.leader or "")
    group.rounds.append(
        Round(
            number=group.round,
            generation=group.coordinator.generation,
            assignor=group.coordinator.assignor,
            leader=None if leader is None else leader.process,
            members=members,
            sets=plan.sets,
            unavailable=unavailable,
            started_ms=group.round_started_ms,
            ended_ms=group.clock_ms,
            failure=plan.failure,
        )
    )
