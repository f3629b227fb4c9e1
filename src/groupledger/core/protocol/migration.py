"""A migration to another assignor rehearsed member by member: the rolling bounces of KIP-429, each state checked.

Worked example: range to cooperative-sticky. First bounce: every member lists both, and all stay eager under range.
Second bounce: every member lists cooperative-sticky alone; bounced members keep what they own, the others still revoke
all. One bounce instead of two: the first bounced member has no assignor in common with the others and cannot join.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from groupledger.core.custom.group import Group as Told
from groupledger.core.custom.group import Protocol, TopicPartition, cooperative_step
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.protocol import events as e
from groupledger.core.protocol.client_library import UNPLAYED
from groupledger.core.protocol.compatibility import LIBRARIES, STREAMS, SUPPORTED
from groupledger.core.protocol.coordinator import choose_assignor
from groupledger.core.protocol.dangers import (
    WARNINGS,
    Bounce,
    Danger,
    GroupClient,
    Hazard,
    bounced,
    observed,
    obstacles,
    old_leaders,
    warnings,
)
from groupledger.core.protocol.settlement import Settlement
from groupledger.core.protocol.simulator import Script, live

MOST_PLAYED = 40
"""Of larger groups some members of each kind are played: each step lets all of them join again, which is quadratic."""


@dataclass(frozen=True, slots=True)
class BounceStep:
    """The group after one member was bounced; `assignor` is the one chosen, None: the member could not join.

    `alike`: members that are configured as this one, are bounced after it and were not played: what was found here
    holds for them. `leader`, `rounds` and `unavailable` are those of the members that were played.
    """

    number: int
    bounce: str
    member: str
    assignor: str | None
    leader: str | None
    common: tuple[str, ...]
    protocols: Mapping[str, Protocol]
    rounds: int
    unavailable: int  # partitions, each counted once a round
    findings: tuple[Hazard, ...]
    alike: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether nothing but warnings was found."""
        return all(each.danger in WARNINGS for each in self.findings)


class StopAll(NamedTuple):
    """All members stopped, then started anew as after the last bounce: those who were played.

    `unavailable` partitions have no owner from the last stop to the first start.
    """

    bounce: str
    assignor: str | None
    rounds: int
    unavailable: int
    findings: tuple[Hazard, ...]


@dataclass(frozen=True, slots=True)
class MigrationRehearsal:
    """All steps up to the first unsafe one; nobody should go further than that.

    What stands in the way of a later step is found at the first one. `stop_all`: the other way, where a step is
    unsafe and members could be configured so.
    """

    bounces: tuple[Bounce, ...]
    steps: tuple[BounceStep, ...]
    played: int  # members; fewer than there are where many are configured alike
    stop_all: StopAll | None = None

    @property
    def first_unsafe(self) -> BounceStep | None:
        """The step to stop before."""
        return next((step for step in self.steps if not step.safe), None)


def two_bounces(clients: Sequence[GroupClient], to: str) -> list[Bounce]:
    """The path of KIP-429: list both, then the new one alone. For Streams: UPGRADE_FROM set, then removed.

    Raises Fault("ALREADY_THERE") where every member lists the new one alone.
    """
    if to == STREAMS:
        first = Bounce("new byte code, UPGRADE_FROM set", (to,), upgrade_from=True)
        return [first, Bounce("UPGRADE_FROM removed", (to,))]
    present = tuple(dict.fromkeys(each for client in clients for each in client.assignors if each != to))
    if not present:
        raise Fault("ALREADY_THERE", f"every member lists {to} alone: there is nothing to migrate")
    return [Bounce(f"list {', '.join((*present, to))}", (*present, to)), Bounce(f"list {to} alone", (to,))]


def one_bounce(to: str) -> list[Bounce]:
    """What one should not do: everything at once, member by member."""
    return [Bounce(f"list {to} alone, in one bounce", (to,))]


def rehearse(
    clients: Sequence[GroupClient],
    bounces: Iterable[Bounce],
    topics: Mapping[str, int],
    most_played: int = MOST_PLAYED,
) -> MigrationRehearsal:
    """Bounce every member through every bounce, in order, until a state is unsafe.

    Of more than `most_played` members some of each kind are played, the first and the last among them: what makes a
    state unsafe depends on the kinds of members there are, not on how many of a kind. All are played where their number
    decides which assignor is chosen. Raises Fault("UNKNOWN_CLIENT") for a library that is not in `LIBRARIES`,
    UNKNOWN_ASSIGNOR for an assignor.
    """
    _require_known(clients, bounces := tuple(bounces))
    played = _chosen(clients, most_played)
    try:
        steps = _Play(clients, played, topics).steps(bounces)
    except _OutvotedError:
        played = {client.member for client in clients}
        steps = _Play(clients, played, topics).steps(bounces)
    safe = all(step.safe for step in steps)
    stop_all = None if safe else _stop_all(_Play(clients, played, topics), bounces)
    return MigrationRehearsal(bounces, steps, len(played), stop_all)


def _stop_all(play: _Play, bounces: Sequence[Bounce]) -> StopAll | None:
    """None where the members cannot be what the last bounce makes them."""
    if obstacles(list(play.group.values()), bounces[-1:]):
        return None
    return play.stop_all(bounces)


def _kind(client: GroupClient) -> object:
    """What tells members apart in a migration."""
    static = client.group_instance_id is not None
    return client.assignors, client.library, client.byte_code, client.upgrade_from, client.perhaps, static


def _chosen(clients: Sequence[GroupClient], most: int) -> set[str]:
    """The members that are played: of each kind its share, the last one, and two before it at least."""
    kinds: dict[object, list[str]] = {}
    for client in clients:
        kinds.setdefault(_kind(client), []).append(client.member)
    if len(clients) <= most:
        return {client.member for client in clients}
    chosen: set[str] = set()
    for members in kinds.values():
        share = max(3, len(members) * most // len(clients))
        chosen |= {*members[: share - 1], members[-1]}
    return chosen


def _scaled(topics: Mapping[str, int], clients: Sequence[GroupClient], played: Set[str]) -> dict[str, int]:
    """Partitions for those who are played: as many to each subscriber as the whole group has."""
    everyone = Counter(topic for client in clients for topic in client.topics)
    some = Counter(topic for client in clients if client.member in played for topic in client.topics)
    return {
        topic: -(-count * some[topic] // everyone[topic]) if everyone[topic] else count
        for topic, count in topics.items()
    }


class _OutvotedError(Exception):
    """A step names another assignor than all members would choose, once it or one of those alike was bounced."""


def _require_known(clients: Iterable[GroupClient], bounces: Iterable[Bounce]) -> None:
    for client in clients:
        if client.library not in LIBRARIES:
            raise Fault("UNKNOWN_CLIENT", f"client is {client.library!r}; expected one of {', '.join(LIBRARIES)}")
    listed = [*(client.assignors for client in clients), *(bounce.assignors for bounce in bounces)]
    unknown = sorted({each for assignors in listed for each in assignors} - SUPPORTED.keys())
    if unknown:
        raise Fault("UNKNOWN_ASSIGNOR", f"assignor is {unknown[0]!r}; {expected_one_of(unknown[0], SUPPORTED)}")


class _Play:
    """All members as they are configured, and the simulated group of those who are played."""

    def __init__(self, clients: Sequence[GroupClient], played: Set[str], topics: Mapping[str, int]) -> None:
        self.group = {client.member: client for client in clients}
        self.played = played
        self.feed: list[e.Event] = []
        script = Script(_scaled(topics, clients, played), iter(lambda: self.feed.pop(0), None))
        self.game = live(script, STAND_IN)
        self._happen([_joining(client) for client in clients if client.member in played])

    def steps(self, bounces: Iterable[Bounce]) -> tuple[BounceStep, ...]:
        """The steps of those who are played, up to the first unsafe one."""
        found: list[tuple[BounceStep, list[str]]] = []
        bounces = tuple(bounces)
        ahead = obstacles(list(self.group.values()), bounces)
        for turn, bounce in enumerate(bounces):
            latest: dict[object, tuple[BounceStep, list[str]]] = {}
            for place, (member, client) in enumerate(self.group.items(), turn * len(self.group) + 1):
                self.group[member] = bounced(client, bounce)
                if member not in self.played:
                    step, alike = latest[_kind(client)]
                    self._require_chosen(step)
                    alike.append(member)
                    continue
                found.append((self._step(place, bounce, member, () if found else ahead), []))
                latest[_kind(client)] = found[-1]
                if not found[-1][0].safe:
                    break
            if found and not found[-1][0].safe:
                break
        return tuple(replace(step, alike=tuple(alike)) for step, alike in found)

    def stop_all(self, bounces: Iterable[Bounce]) -> StopAll:
        """Everybody leaves, and comes back as after the last of these bounces."""
        for bounce in bounces:
            self.group = {member: bounced(client, bounce) for member, client in self.group.items()}
            name = bounce.name
        again = [client for client in self.group.values() if client.member in self.played]
        stopped = self._happen([event for each in again for event in (e.Leave(each.member), *_expired(each))])
        started = self._happen([_joining(each) for each in again])
        last = started[-1].rounds[-1] if started and started[-1].rounds else None
        refused = [Hazard(Danger.NO_COMMON_ASSIGNOR, each.refused) for each in started if each.refused is not None]
        return StopAll(
            bounce=name,
            assignor=None if last is None else last.assignor,
            rounds=sum(len(each.rounds) for each in (*stopped, *started)),
            unavailable=sum(stopped[-1].topics.get(topic, 0) for topic in {t for each in again for t in each.topics}),
            findings=(*observed([*stopped, *started]), *refused),
        )

    def _step(self, number: int, bounce: Bounce, member: str, ahead: Sequence[Hazard]) -> BounceStep:
        client = self.group[member]
        settled = self._happen([e.Leave(member), *_expired(client), _joining(client)])
        step = _step(number, bounce, client, list(self.group.values()), settled, ahead)
        self._require_chosen(step)
        return step

    def _require_chosen(self, step: BounceStep) -> None:
        """That all members, as they are configured now, choose the assignor of the step."""
        chosen = choose_assignor([each.assignors for each in self.group.values()])
        if step.assignor is not None and step.assignor != chosen:
            raise _OutvotedError

    def _happen(self, events: Sequence[e.Event]) -> list[Settlement]:
        self.feed += events
        return [next(self.game) for _ in events]


def _expired(client: GroupClient) -> list[e.Event]:
    """A static member that changes its assignors is a new member to the group: its session runs out first."""
    return [] if client.group_instance_id is None else [e.Expire(client.member)]


def _joining(client: GroupClient) -> e.Join:
    return e.Join(
        client.member,
        client.topics,
        client.assignors,
        client.group_instance_id,
        client.byte_code,
        client.upgrade_from,
    )


def _step(
    number: int,
    bounce: Bounce,
    client: GroupClient,
    group: Sequence[GroupClient],
    settled: Sequence[Settlement],
    ahead: Sequence[Hazard],
) -> BounceStep:
    played = [took for each in settled for took in each.rounds]
    refused = settled[-1].refused
    last = settled[-1].rounds[-1] if settled[-1].rounds else None
    leader = None if last is None else last.leader
    found = [*observed(settled), *ahead, *warnings(client), *old_leaders(group, leader)]
    if refused is not None:
        found.append(Hazard(Danger.NO_COMMON_ASSIGNOR, refused))
    return BounceStep(
        number=number,
        bounce=bounce.name,
        member=client.member,
        assignor=None if last is None else last.assignor,
        leader=leader,
        common=tuple(each for each in client.assignors if all(each in other.assignors for other in group)),
        protocols={client.member: client.protocol for client in group},
        rounds=len(played),
        unavailable=sum(len(took.unavailable) for took in played),
        findings=tuple(sorted(found, key=lambda each: list(Danger).index(each.danger))),
    )


def _evenly(group: Told) -> object:
    """In place of an assignor that cannot be played: everyone an even share, kept where it was."""
    members = sorted(group.members, key=lambda member: member.member_id)
    left = {each: None for member in members for each in group.partitions(member.member_id)}
    share = -(-len(left) // max(len(members), 1))
    given: dict[str, list[TopicPartition]] = {}
    for member in members:
        given[member.member_id] = [each for each in sorted(member.owned) if each in left][:share]
        for each in given[member.member_id]:
            del left[each]
    for each in left:
        least = min(given, key=lambda member_id: (len(given[member_id]), member_id))
        given[least].append(each)
    return cooperative_step(group, given)


STAND_IN = {each: CustomAssignor(each, _evenly, frozenset(SUPPORTED[each]), each) for each in (STREAMS, *UNPLAYED)}
