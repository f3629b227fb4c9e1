"""One event of a consumer group, and all that it leads to until only heartbeats without news are left."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from groupledger.core.protocol import events as e
from groupledger.core.protocol.clocked_end import timed_end
from groupledger.core.protocol.consumer import exists
from groupledger.core.protocol.consumer_group.exchange import AskingTargets, hear_out, take_next, time_out
from groupledger.core.protocol.consumer_group.happening import come_back, happen
from groupledger.core.protocol.consumer_group.play import Play
from groupledger.core.protocol.consumer_group.rows import take_coordinated
from groupledger.core.protocol.consumer_group.targets import ServerQuestion, Targets
from groupledger.core.protocol.ownership import waited_ms
from groupledger.core.protocol.settlement import Settlement


class Horizon(NamedTuple):
    """When the next event is due in a group that has times; None: there is none, and all time-outs run out."""

    until_ms: int | None


MOST_STEPS = 20_000
"""Of one event: a group that does not come to rest is given up."""


def settle(
    play: Play, event: e.Event, horizon: Horizon | None = None
) -> Generator[ServerQuestion, Targets, Settlement]:
    """One event, and heartbeats until nothing new comes of them, or until the next event is due, if that is told.

    Raises Fault as `happen`.
    """
    play.ownership.begin_step()
    happen(play, event)
    event_ms = max(play.settled_ms, event.at_ms)
    if horizon is not None:
        yield from pass_time(play, horizon.until_ms)
    elif not event.together:
        yield from _come_to_rest(play)
        if play.returning is not None and play.failure is None and not play.is_classic:
            come_back(play)
            yield from _come_to_rest(play)
    return _settlement(play, event, event_ms)


def pass_time(play: Play, until_ms: int | None) -> AskingTargets:
    """What comes by itself before an event, or at all: sessions that end, and what that leads to."""
    steps = 0
    while not play.is_classic and play.failure is None:
        if not play.is_quiet():
            upcoming = play.next_ms()
            if upcoming is None or (until_ms is not None and upcoming >= until_ms):
                break
            yield from take_next(play)
            steps += 1
            if steps > MOST_STEPS and play.times is not None:
                play.failure = f"not at rest after {MOST_STEPS:,} heartbeats, calls and time-outs"
            continue
        over = play.silent_time_out()
        if over is None or (until_ms is not None and over[0] >= until_ms):
            break
        play.skip_to(over[0])
        time_out(play, over[1])
    if until_ms is not None and not play.is_classic:
        play.skip_to(until_ms)


def _come_to_rest(play: Play) -> AskingTargets:
    for _ in range(MOST_STEPS):
        if play.is_classic or play.failure is not None:
            return
        if play.is_quiet():
            yield from hear_out(play)
            return
        yield from take_next(play)
    play.failure = f"not at rest after {MOST_STEPS:,} heartbeats, calls and time-outs"


def _settlement(play: Play, event: e.Event, event_ms: int) -> Settlement:
    play.catch_up()
    play.all_read_on()
    owners, wanted, counts = play.owners(), play.wanted(), play.group.topics.counts
    gaps, rebalancing = play.gaps(event_ms), not play.is_quiet()
    shared = play.group.protocol is e.GroupProtocol.SHARE  # many owners of a partition are right there
    consumed, doubly = play.ownership.consumed(), play.ownership.take_double_owners()
    began_ms, play.settled_ms, play.wanted_before = play.settled_ms, play.clock_ms, wanted
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
        running={each.name: each.number for each in play.talking if not each.hung},
        consumed=consumed,
        double_owners=() if shared else tuple(each for each in doubly if exists(each.partition, counts)),
        unavailable_ms=waited_ms(gaps),
        coordinated=coordinated,
        timed=None
        if play.times is None
        else timed_end(
            play,
            gaps,
            play.nobody_since,
            began_ms=began_ms,
            rebalancing=rebalancing,
            held=play.ownership.held(),
        ),
    )
