"""One event of a consumer group, and all that it leads to until only heartbeats without news are left."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import exists
from groupledger.core.protocol.consumer_group.exchange import fence, take_next
from groupledger.core.protocol.consumer_group.happening import come_back, happen
from groupledger.core.protocol.consumer_group.play import Play
from groupledger.core.protocol.consumer_group.process import HeartbeatRow, TargetRow
from groupledger.core.protocol.consumer_group.targets import ServerQuestion, Targets
from groupledger.core.protocol.settlement import Settlement

MOST_STEPS = 20_000
"""Of one event: a group that does not come to rest is given up."""

Asking = Generator[ServerQuestion, Targets, None]


class MemberRow(NamedTuple):
    """A member at the end of an event: `member` is its process. Epoch -2: static, and away.

    `away`: no process that runs speaks under this id, be there a younger one of the same name.
    """

    member: str
    member_id: str
    protocol: e.GroupProtocol
    epoch: int
    state: str
    away: bool
    target: tuple[TopicPartition, ...]
    assigned: tuple[TopicPartition, ...]
    pending: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Coordinated:
    """What the coordinator of a consumer group did in one event, and how it stands after it."""

    epoch: int
    assignment_epoch: int
    members: tuple[MemberRow, ...]
    heartbeats: tuple[HeartbeatRow, ...]
    targets: tuple[TargetRow, ...]


def settle(play: Play, event: e.Event) -> Generator[ServerQuestion, Targets, Settlement]:
    """One event, and heartbeats until nothing new comes of them. Raises Fault as `happen`."""
    play.ownership.begin_step()
    happen(play, event)
    event_ms = max(play.settled_ms, event.at_ms)
    if not event.together:
        yield from _come_to_rest(play)
        if play.returning is not None and play.failure is None and not play.is_classic:
            come_back(play)
            yield from _come_to_rest(play)
    return _settlement(play, event, event_ms)


def pass_time(play: Play, until_ms: int) -> Asking:
    """What comes by itself before an event: sessions that end, and what that leads to."""
    while play.clock_ms < until_ms and not play.is_classic:
        if not play.is_quiet():
            upcoming = play.next_ms()
            if upcoming is None or upcoming > until_ms:
                break
            yield from take_next(play)
            continue
        deadline = play.silent_deadline()
        if deadline is None or deadline[0] > until_ms:
            break
        play.skip_to(deadline[0])
        fence(play, deadline[1])
    play.skip_to(until_ms)


def _come_to_rest(play: Play) -> Asking:
    for _ in range(MOST_STEPS):
        if play.is_quiet() or play.is_classic or play.failure is not None:
            return
        yield from take_next(play)
    play.failure = f"not at rest after {MOST_STEPS:,} heartbeats, calls and time-outs"


def _settlement(play: Play, event: e.Event, event_ms: int) -> Settlement:
    owners, wanted, counts = play.owners(), play.wanted(), play.group.topics.counts
    unavailable_ms = play.unavailable_ms(event_ms)
    consumed, doubly = play.ownership.consumed(), play.ownership.take_double_owners()
    play.settled_ms, play.wanted_before = play.clock_ms, wanted
    coordinated = take_coordinated(play)
    calls, play.calls = tuple(play.calls), []
    refused, play.refused = play.refused, None
    failure, play.failure = play.failure, None
    return Settlement(
        event=event,
        rounds=(),
        calls=calls,
        owners=owners,
        unowned=tuple(sorted(wanted - owners.keys())),
        failure=failure,
        refused=refused,
        topics=counts,
        running={each.name: each.number for each in play.talking},
        consumed=consumed,
        double_owners=tuple(each for each in doubly if exists(each.partition, counts)),
        unavailable_ms=unavailable_ms,
        coordinated=coordinated,
    )


def take_coordinated(play: Play) -> Coordinated:
    """How the group stands, and what happened since the last time."""
    group = play.group
    named = group.topics.named
    rows = tuple(
        MemberRow(
            member=each.process,
            member_id=each.member_id,
            protocol=e.GroupProtocol.CLASSIC if each.uses_classic else e.GroupProtocol.CONSUMER,
            epoch=each.epoch,
            state=each.state.value,
            away=each.member_id in play.silent_members(),
            target=named(group.target(each.member_id)),
            assigned=named(each.assigned),
            pending=named(each.pending),
        )
        for each in group.members.values()
    )
    heartbeats, play.heartbeats = tuple(play.heartbeats), []
    targets, play.targets = tuple(play.targets), []
    return Coordinated(group.epoch, group.assignment_epoch, rows, heartbeats, targets)
