"""A script with times, played: each event at its own moment, and what came of it until the next one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import pairwise

from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.application import Applications
from groupledger.core.protocol.consumer import exists
from groupledger.core.protocol.consumer_group.settings import ConsumerGroupSettings
from groupledger.core.protocol.consumer_group_json import write_settings
from groupledger.core.protocol.coordinator import Coordinator
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.records import Records
from groupledger.core.protocol.refusals import BAD_EVENT, no_expiry
from groupledger.core.protocol.script import MOST_ROUNDS, Script
from groupledger.core.protocol.settlement import MemberRound, Round, Settlement, TimedEnd
from groupledger.core.protocol.timed import coordination, sessions
from groupledger.core.protocol.timed.group import TimedGroup
from groupledger.core.protocol.timed.happening import happen
from groupledger.core.protocol.timed.member import Running
from groupledger.core.protocol.timed.polling import poll
from groupledger.core.protocol.times import Times

TimedPlay = Generator[Question, Plan, list[Settlement]]
MOST_MOMENTS = 10_000
"""Of each hundred processes, between two rounds: a group in which nobody gets as far as a round is given up."""

LAST_ROUNDS = 10
"""Of a group that is given up: what is the same in all of them keeps it from coming to rest."""


def play_timed(
    script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None = None
) -> TimedPlay:
    """One group; yields questions, is sent plans, returns a settlement for each event.

    The last settlement ends when nothing is due any more. Raises Fault: BAD_EVENT, UNKNOWN_ASSIGNOR.
    """
    events = list(script.events)
    _require_classic(script, events)
    require_order(events)
    group = timed_group(script, custom, applications)
    settlements = []
    for event, following in zip(events, [*events[1:], None], strict=False):  # of no event none
        yield from _until(group, event.at_ms)
        _recover(group)
        asking = happen(group, event)
        if asking is not None:
            yield from asking
        group.see()
        yield from _until(group, None if following is None else following.at_ms)
        settlements.append(_settlement(group, event))
    return settlements


def timed_group(
    script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None = None
) -> TimedGroup:
    """A group before anything has happened to it."""
    times = script.times or Times()
    rate = times.records_per_second
    records = None if rate is None else Records(rate)
    if records is not None:
        records.set_topics(script.topics, 0)
    coordinator = Coordinator(known_ids=script.member_ids, generation=script.generation)
    topics = dict(script.topics)
    return TimedGroup(
        topics, script.form, script.pace, times, custom, coordinator, poll, coordination.expire, applications, records
    )


def _require_classic(script: Script, events: list[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for settings of a consumer group in a script without one, and for times at two places.

    A script without events is accepted: no member of either protocol is in it yet.
    """
    if events and script.consumer_group != ConsumerGroupSettings():
        expected = "members of the consumer protocol (KIP-848), or no consumer_group"
        raise Fault(BAD_EVENT, f"consumer_group is {write_settings(script.consumer_group)}; expected {expected}")
    require_one_timeout(events)


def require_one_timeout(events: Iterable[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for `max.poll.interval.ms` of a join where the script has times."""
    for event in events:
        if isinstance(event, e.Join) and event.rebalance_timeout_ms != e.MAX_POLL_INTERVAL_MS:
            told = f"rebalance_timeout_ms of {event.member!r} is {event.rebalance_timeout_ms:,}"
            raise Fault(BAD_EVENT, f"{told}; expected it in times.members, where a script has times")


def require_consumer_times(script: Script) -> None:
    """Raise Fault(BAD_EVENT) for times that a group with members of the consumer protocol does not take."""
    require_one_timeout(script.events)
    for event in script.events:
        if isinstance(event, e.Expire):
            raise no_expiry(event)
    times = script.times or Times()
    for of in (times.each, *times.of.values()):
        if of.processing_ms >= of.rebalance_timeout_ms:
            told = f"processing_ms is {of.processing_ms:,}, and rebalance_timeout_ms {of.rebalance_timeout_ms:,}"
            raise Fault(BAD_EVENT, f"{told}; expected less work than that beside members of the consumer protocol")


def require_order(events: list[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for times that go back."""
    for before, after in pairwise(events):
        if after.at_ms < before.at_ms:
            told = f"at_ms is {after.at_ms:,} after an event at {before.at_ms:,}"
            raise Fault(BAD_EVENT, f"{told}; expected times that never go back where a script has times")


def _until(group: TimedGroup, end_ms: int | None) -> Generator[Question, Plan, None]:
    """All that is due before this time, or at all; a group that does not come to rest is given up."""
    rounds, moments = len(group.rounds), 0
    while (due_ms := group.agenda.next_ms()) is not None and (end_ms is None or due_ms < end_ms):
        if group.failure is not None:
            break
        if len(group.rounds) >= MOST_ROUNDS:
            group.failure = f"not stable after {MOST_ROUNDS} rounds{_interrupted(group.rounds[-LAST_ROUNDS:])}"
            break
        rounds, moments = len(group.rounds), moments + 1 if rounds == len(group.rounds) else 0
        if moments > MOST_MOMENTS * (1 + len(group.processes) // 100):
            group.failure = f"not stable after {moments - 1:,} requests and polls without a round"
            break
        act = group.agenda.take()
        group.catch_up()
        group.ownership.begin_step()
        asking = act()
        if asking is not None:
            yield from asking
        group.see()
    if end_ms is not None:
        group.agenda.now_ms = max(group.now_ms, end_ms)
    group.catch_up()


def _interrupted(rounds: Sequence[Round]) -> str:
    """Name the members that began the next rebalance in each of the rounds, and those without an assignment by then."""
    again = _in_each(rounds, lambda row: row.answered and row.joins_again)
    late = _in_each(rounds, lambda row: not row.answered)
    if not again or not late:
        return ""
    return f"; in each of the last {len(rounds)}, {again} joined again before {late} had an assignment"


def _in_each(rounds: Sequence[Round], holds: Callable[[MemberRound], bool]) -> str:
    """Return the names of members for which this holds in each of the rounds."""
    names = ({row.member for row in each.members if holds(row)} for each in rounds)
    return ", ".join(sorted(set.intersection(*names)))


def _recover(group: TimedGroup) -> None:
    """Let members that a failed assignor of their leader left waiting join again, now that something happens.

    Time stood still for the group until then: the sessions of those that run have not ended.
    """
    if group.failure is not None and group.completing:
        for process in group.processes.values():
            process.joined = None
            if process.alive and process.running is Running.ALL:
                sessions.end_session(group, process.consumer.member_id)
            sessions.join_anyway(group, process)
        coordination.prepare(group)
    group.failure = None


def _settlement(group: TimedGroup, event: e.Event) -> Settlement:
    group.all_read_on()
    now_ms = group.now_ms
    outages, waited = group.outages.take(now_ms)
    owners = group.owners()
    rounds, calls, refused = tuple(group.rounds), tuple(group.calls), group.refused
    group.rounds, group.calls, group.refused = [], [], None
    consumed, doubly = group.ownership.consumed(), group.ownership.take_double_owners()
    return Settlement(
        event=event,
        rounds=rounds,
        calls=calls,
        owners=owners,
        unowned=tuple(sorted(group.wanted() - owners.keys())),
        failure=group.failure,
        refused=refused,
        topics=group.topics,
        running={
            each.name: each.number for each in group.processes.values() if each.alive and each.running is Running.ALL
        },
        consumed=consumed,
        double_owners=tuple(each for each in doubly if exists(each.partition, group.topics)),
        unavailable_ms=waited,
        timed=TimedEnd(
            at_ms=now_ms,
            rebalancing=group.preparing or group.completing or group.agenda.next_ms() is not None,
            outages=outages,
            read=None if group.records is None else group.records.found(now_ms),
        ),
    )
