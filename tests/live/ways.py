"""Where a client's timing decides: the ways in which an event of a classic group may go, each with its cause.

What `simulate` gives is one way, the one in which nobody is late. The others are scripts too: the same event with
what came too late, or too early, beside it. A group of the consumer protocol (KIP-848) has one way: who is faster
decides the moments of heartbeats alone.

Worked example: B joins A under cooperative-sticky. A revokes and joins again so fast that B's SyncGroup comes when the
follow-up rebalance has begun. It is not answered, and B's first call of onPartitionsAssigned has what it keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

from groupledger.core.custom.custom_group import CustomAssignor, Protocol
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import KAFKA_PYTHON, SUPPORTED, protocol_of
from groupledger.core.protocol.consumer import LISTENER, Callback
from groupledger.core.protocol.events import BAD_EVENT
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.settlement import MemberCall, Settlement
from groupledger.core.protocol.simulator import simulate
from groupledger.core.rebalance.registry import LIBRDKAFKA

UNANSWERED = "the SyncGroup of {} comes when the follow-up rebalance has begun, and is not answered"
BOTH_UNANSWERED = "the SyncGroups of {} and {} come when the follow-up rebalance has begun, and are not answered"
FELL = "{} fell out, and " + UNANSWERED
ONCE_MORE = "members of librdkafka learn of topics one after the other, each joins then, and one does after the others"
STALE = "{} is called back before it learns that the topic is gone: a leader of librdkafka gives it back what it owned"
AND_UNANSWERED = "{}; " + UNANSWERED
KNOWN = "librdkafka has metadata of all topics that {} subscribes to, since it led a group with them or had them before"
UNKNOWN = "{} joins before it has metadata of {}, leads and assigns nothing of it, and joins again when it has"
LOST = (
    "{} polls so shortly that its JoinGroup outlasts a poll: kafka-python, which joins since {}, then loses track of "
    "it, takes no assignment, and its session ends"
)
MISSED = "the leader assigns before it has metadata of {}, {}, and joins again when it has"
ENTERED, LEFT = "which is new to the subscription of {}", "which {} no longer subscribes to, so that it forgot it"


class Way(NamedTuple):
    """What is played in place of an event, and why it may go so."""

    events: tuple[e.Event, ...]
    cause: str


class OtherWay(NamedTuple):
    """What came of a way: `rounds`, and the calls that listeners got."""

    cause: str
    rounds: int
    calls: tuple[MemberCall, ...]


@dataclass(slots=True)
class _Members:
    """Processes that are there, and what each subscribes to."""

    joined: dict[str, e.Join] = field(default_factory=dict)
    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, event: e.Event) -> None:
        """Note who comes, goes, and subscribes to something else."""
        if isinstance(event, e.Join):
            self.joined[event.member], self.topics[event.member] = event, event.topics
        elif isinstance(event, e.Leave | e.Crash):
            self.joined.pop(event.member, None)
        elif isinstance(event, e.Subscribe):
            self.topics[event.member] = event.topics

    def of(self, library: str) -> list[str]:
        """Those of this client library."""
        return [name for name, each in self.joined.items() if each.library == library]


def other_ways(
    before: Iterable[e.Event],
    event: e.Event,
    leader: str | None = None,
    *,
    clock: bool = False,
    fallen: Mapping[str, int] | None = None,
) -> Iterator[Way]:
    """The other ways of an event of a classic group, after `before`, which went as it is written there.

    `leader`: the process that leads the group then. `clock`: the group has times, and sessions end by themselves.
    `fallen`: as `fallen_in` says of what comes of the event where nobody is late.
    """
    for way in _ways(before, event, leader, fallen or {}):
        yield way._replace(events=tuple(each for each in way.events if not (clock and isinstance(each, e.Expire))))


def _ways(before: Iterable[e.Event], event: e.Event, leader: str | None, fallen: Mapping[str, int]) -> Iterator[Way]:
    members = _Members()
    for each in before:
        members.take(each)
    there = [*members.joined.values(), *([event] if isinstance(event, e.Join) else ())]
    if isinstance(event, e.Join) and event.seat is not None:
        return  # it was there before
    if event.together or any(each.group_protocol is not e.GroupProtocol.CLASSIC for each in there):
        return
    if isinstance(event, e.Join):
        yield from _of_join(members, event)
    elif isinstance(event, e.Resume) and event.member in members.joined:
        yield from _unanswered(members, event, members.joined[event.member])  # it may have to join again
    elif isinstance(event, e.SetPartitions | e.DeleteTopic):
        yield from _of_topics(members, event, leader)
    elif isinstance(event, e.Subscribe) and event.member in members.joined:
        yield from _of_subscribe(members, event)
    for name, answered in fallen.items():
        if name in members.joined and _cooperates(members.joined[name]):
            late = e.MissAssignment(name, answered, at_ms=event.at_ms)
            yield Way((replace(event, together=True), late), FELL.format(name, name))


def _of_join(members: _Members, event: e.Join) -> Iterator[Way]:
    """kafka-python's first member does not wait for metadata."""
    if event.library == KAFKA_PYTHON and not members.joined:
        missing = [e.MissTopic(each, at_ms=event.at_ms, together=True) for each in event.topics]
        yield Way((*missing, event), UNKNOWN.format(event.member, ", ".join(event.topics)))
    yield from _unanswered(members, event, event)


def _unanswered(members: _Members, event: e.Join | e.Resume, joined: e.Join) -> Iterator[Way]:
    """Where members revoke, a rebalance follows, which others may be late for: one, or the newcomer and one."""
    others = sorted(members.joined.keys() - {event.member})
    if _cooperates(joined) and others:
        for late in ((event.member,), *((name,) for name in others), *((event.member, name) for name in others)):
            *before, last = (e.MissAssignment(name, at_ms=event.at_ms) for name in late)
            at_once = (replace(each, together=True) for each in (event, *before))
            yield Way((*at_once, last), (BOTH_UNANSWERED if before else UNANSWERED).format(*late))


def _of_topics(members: _Members, event: e.SetPartitions | e.DeleteTopic, leader: str | None) -> Iterator[Way]:
    if leader is not None and leader in members.of(KAFKA_PYTHON):
        yield _losing(leader, event, "its metadata changed")
    named = members.of(LIBRDKAFKA)
    if named:
        again = e.Subscribe(named[0], members.topics[named[0]], at_ms=event.at_ms)
        yield Way((event, again), ONCE_MORE)
    if isinstance(event, e.DeleteTopic):
        yield from _stale(members, event, [each for each in named if _cooperates(members.joined[each])])


def _stale(members: _Members, event: e.DeleteTopic, named: list[str]) -> Iterator[Way]:
    """One joins with a topic that is gone; of the rebalance after that, or of the next, somebody may get no answer."""
    for name in named:
        learns, cause = e.RefreshMetadata(name, at_ms=event.at_ms), STALE.format(name)
        stale = [e.FreezeMetadata(name, rounds, at_ms=event.at_ms, together=True) for rounds in (1, 0)]
        yield from (Way((frozen, event, learns), cause) for frozen in stale)
        for frozen, late, after in product(stale, sorted(members.joined), (0, 1)):
            misses = e.MissAssignment(late, after, at_ms=event.at_ms, together=True)
            yield Way((frozen, misses, event, learns), AND_UNANSWERED.format(cause, late))


def _of_subscribe(members: _Members, event: e.Subscribe) -> Iterator[Way]:
    """A topic that the leader has no metadata of is left out; librdkafka's leader asks first, whatever it knows."""
    joined = members.joined[event.member]
    was, now = set(members.topics[event.member]), set(event.topics)
    if joined.library == KAFKA_PYTHON:
        yield _losing(event.member, event, "its subscription changed")
    if joined.library == LIBRDKAFKA and _cooperates(joined) and was - now and now - was:
        yield Way((replace(event, known=True),), KNOWN.format(event.member))
    if len(members.of(LIBRDKAFKA)) == len(members.joined):
        return
    for missed, why in ((now - was, ENTERED), (was - now, LEFT)):
        for rounds in (1, 2) if missed and _cooperates(joined) else (1,) if missed else ():
            missing = [e.MissTopic(each, rounds, at_ms=event.at_ms, together=True) for each in sorted(missed)]
            cause = MISSED.format(", ".join(sorted(missed)), why.format(event.member))
            yield Way((*missing, event), cause)


def _losing(member: str, event: e.Event, why: str) -> Way:
    """Its session ends by the clock, or at once."""
    loses = e.LoseAssignment(member, at_ms=event.at_ms, together=True)
    return Way((loses, event, e.Expire(member, at_ms=event.at_ms)), LOST.format(member, why))


def _cooperates(joined: e.Join) -> bool:
    """Whether a member keeps what it owns while it joins; that of a custom assignor may."""
    supported = [SUPPORTED.get(each, tuple(Protocol)) for each in joined.assignors]
    return not joined.upgrade_from and protocol_of(supported, joined.byte_code) is Protocol.COOPERATIVE


def ways_of(
    script: Script, settled: Sequence[Settlement], custom: Mapping[str, CustomAssignor] | None = None
) -> list[list[OtherWay]]:
    """For each event of a script that `settled` so: the other ways it may go in which listeners are called otherwise.

    Each is what comes of the event where all events before it went as in `settled`.
    """
    events = list(script.events)
    found: list[list[OtherWay]] = []
    for at, event in enumerate(events):
        known = [_heard(settled[at].calls)]
        found.append([])
        leader, fallen = leader_of(settled[:at]), fallen_in(settled[at])
        for way in other_ways(events[:at], event, leader, clock=script.times is not None, fallen=fallen):
            played = _played(replace(script, events=[*events[:at], *way.events]), custom)[at:]
            other = _one_after_another(way.cause, played)
            if played and _heard(other.calls) not in known:
                known.append(_heard(other.calls))
                found[-1].append(other)
    return found


def _played(script: Script, custom: Mapping[str, CustomAssignor] | None) -> list[Settlement]:
    """What came of it; nothing where it cannot be: the event led to no round, so nobody's session ends."""
    try:
        return simulate(script, custom)
    except Fault as fault:
        if fault.code != BAD_EVENT:
            raise
        return []


def fallen_in(settled: Settlement) -> dict[str, int]:
    """Return who fell out of the group in one event, each with the number of its SyncGroups answered before that.

    Such a process is in no generation when it loses all. librdkafka also reports partitions of a deleted topic as lost,
    but is a member then.
    """
    answered: Counter[str] = Counter()
    found: dict[str, int] = {}
    for each in settled.calls:
        if each.call.callback is Callback.ON_ASSIGNMENT:
            answered[each.member] += 1
        elif each.call.callback is Callback.LOST and each.generation is None:
            found.setdefault(each.member, answered[each.member])
    return found


def leader_of(settled: Iterable[Settlement]) -> str | None:
    """The process that led the last round."""
    leaders = [took.leader for each in settled for took in each.rounds]
    return leaders[-1] if leaders else None


def _one_after_another(cause: str, played: Iterable[Settlement]) -> OtherWay:
    """What came of all events of a way; rounds are counted through, but by a clock, which does so itself."""
    rounds, calls = 0, []
    for part in played:
        before = 0 if part.timed is not None else rounds
        listeners = (each for each in part.calls if each.call.callback in LISTENER)
        calls += [each._replace(round=each.round + before) for each in listeners]
        rounds += len(part.rounds)
    return OtherWay(cause, rounds, tuple(calls))


def _heard(calls: Iterable[MemberCall]) -> dict[str, list[object]]:
    """{process: what its listener was told}."""
    heard: dict[str, list[object]] = {}
    for each in calls:
        if each.call.callback in LISTENER:
            heard.setdefault(each.member, []).append((each.call.callback, each.call.partitions))
    return heard
