"""A migration to another assignor rehearsed member by member: the rolling bounces of KIP-429, each state checked.

Worked example: range to cooperative-sticky. First bounce: every member lists both, and all stay eager under range.
Second bounce: every member lists cooperative-sticky alone; bounced members keep what they own, the others still revoke
all. One bounce instead of two: the first bounced member has no assignor in common with the others and cannot join.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from groupledger.core.custom.group import Group as Told
from groupledger.core.custom.group import Protocol, TopicPartition, cooperative_step
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import LIBRARIES, STREAMS, SUPPORTED, ByteCode, protocol_of
from groupledger.core.protocol.coordinator import choose_assignor
from groupledger.core.protocol.settlement import Round, Settlement
from groupledger.core.protocol.simulator import Script, live

MOST_PLAYED = 40
"""Of larger groups some members of each kind are played: each step lets all of them join again, which is quadratic."""


class Danger(enum.StrEnum):
    """What makes a state of a migration unsafe, the worst first."""

    DOUBLE_OWNER = "double-owner"  # seen in the rehearsal: given to one member while another still owns it
    OLD_LEADER = "old-leader"  # the leader's byte code cannot read what cooperative members own
    NO_COMMON_ASSIGNOR = "no-common-assignor"
    CLIENT_CANNOT_MIX = "client-cannot-mix"
    CLIENT_LACKS_ASSIGNOR = "client-lacks-assignor"
    OLD_MEMBER_MAY_LEAD = "old-member-may-lead"  # it does not lead now, but would if the leader left
    CLIENT_NOT_TRIED = "client-not-tried"  # a warning: nobody here knows whether this library can mix
    CLIENT_NOT_TOLD = "client-not-told"  # a warning: the log does not tell which library this is


WARNINGS = frozenset({Danger.CLIENT_NOT_TRIED, Danger.CLIENT_NOT_TOLD})


class Finding(NamedTuple):
    """One danger in one state, in words."""

    danger: Danger
    evidence: str


@dataclass(frozen=True, slots=True)
class Client:
    """One member as it is configured, now or after a bounce."""

    member: str
    assignors: tuple[str, ...]
    topics: tuple[str, ...]
    library: str = "java"
    byte_code: ByteCode = ByteCode.KIP_792
    group_instance_id: str | None = None
    upgrade_from: bool = False
    perhaps: tuple[str, ...] = ()  # other libraries that it may as well be, where a log was all there was to go by

    @property
    def protocol(self) -> Protocol:
        """What it follows under this configuration."""
        known = [SUPPORTED[each] for each in self.assignors if each in SUPPORTED]
        return Protocol.EAGER if self.upgrade_from else protocol_of(known, self.byte_code)

    @property
    def lists_both(self) -> bool:
        """Whether it lists assignors of which some support COOPERATIVE and some do not."""
        return len({Protocol.COOPERATIVE in SUPPORTED.get(each, ()) for each in self.assignors}) > 1


class Bounce(NamedTuple):
    """One rolling bounce: what every member is restarted with."""

    name: str
    assignors: tuple[str, ...]
    upgrade_from: bool = False
    byte_code: ByteCode = ByteCode.KIP_792


@dataclass(frozen=True, slots=True)
class Step:
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
    findings: tuple[Finding, ...]
    alike: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether nothing but warnings was found."""
        return all(each.danger in WARNINGS for each in self.findings)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """All steps up to the first unsafe one; nobody should go further than that."""

    bounces: tuple[Bounce, ...]
    steps: tuple[Step, ...]
    played: int  # members; fewer than there are where many are configured alike

    @property
    def first_unsafe(self) -> Step | None:
        """The step to stop before."""
        return next((step for step in self.steps if not step.safe), None)


def two_bounces(clients: Sequence[Client], to: str) -> list[Bounce]:
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
    clients: Sequence[Client], bounces: Iterable[Bounce], topics: Mapping[str, int], most_played: int = MOST_PLAYED
) -> Rehearsal:
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
    return Rehearsal(bounces, steps, len(played))


def _kind(client: Client) -> object:
    """What tells members apart in a migration."""
    static = client.group_instance_id is not None
    return client.assignors, client.library, client.byte_code, client.upgrade_from, client.perhaps, static


def _chosen(clients: Sequence[Client], most: int) -> set[str]:
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


def _scaled(topics: Mapping[str, int], clients: Sequence[Client], played: Set[str]) -> dict[str, int]:
    """Partitions for those who are played: as many to each subscriber as the whole group has."""
    everyone = Counter(topic for client in clients for topic in client.topics)
    some = Counter(topic for client in clients if client.member in played for topic in client.topics)
    return {
        topic: -(-count * some[topic] // everyone[topic]) if everyone[topic] else count
        for topic, count in topics.items()
    }


class _OutvotedError(Exception):
    """A step names another assignor than all members would choose, once it or one of those alike was bounced."""


def _require_known(clients: Iterable[Client], bounces: Iterable[Bounce]) -> None:
    for client in clients:
        if client.library not in LIBRARIES:
            raise Fault("UNKNOWN_CLIENT", f"client is {client.library!r}; expected one of {', '.join(LIBRARIES)}")
    listed = [*(client.assignors for client in clients), *(bounce.assignors for bounce in bounces)]
    unknown = sorted({each for assignors in listed for each in assignors} - SUPPORTED.keys())
    if unknown:
        raise Fault("UNKNOWN_ASSIGNOR", f"assignor is {unknown[0]!r}; expected one of {', '.join(SUPPORTED)}")


class _Play:
    """All members as they are configured, and the simulated group of those who are played."""

    def __init__(self, clients: Sequence[Client], played: Set[str], topics: Mapping[str, int]) -> None:
        self.group = {client.member: client for client in clients}
        self.played = played
        self.feed: list[e.Event] = []
        script = Script(_scaled(topics, clients, played), iter(lambda: self.feed.pop(0), None))
        self.game = live(script, STAND_IN)
        self._happen([_joining(client) for client in clients if client.member in played])

    def steps(self, bounces: Iterable[Bounce]) -> tuple[Step, ...]:
        """The steps of those who are played, up to the first unsafe one."""
        found: list[tuple[Step, list[str]]] = []
        for turn, bounce in enumerate(bounces):
            latest: dict[object, tuple[Step, list[str]]] = {}
            for place, (member, client) in enumerate(self.group.items(), turn * len(self.group) + 1):
                self.group[member] = _bounced(client, bounce)
                if member not in self.played:
                    step, alike = latest[_kind(client)]
                    self._require_chosen(step)
                    alike.append(member)
                    continue
                found.append((self._step(place, bounce, member), []))
                latest[_kind(client)] = found[-1]
                if not found[-1][0].safe:
                    break
            if found and not found[-1][0].safe:
                break
        return tuple(replace(step, alike=tuple(alike)) for step, alike in found)

    def _step(self, number: int, bounce: Bounce, member: str) -> Step:
        client = self.group[member]
        settled = self._happen([e.Leave(member), *_expired(client), _joining(client)])
        step = _step(number, bounce, client, list(self.group.values()), settled)
        self._require_chosen(step)
        return step

    def _require_chosen(self, step: Step) -> None:
        """That all members, as they are configured now, choose the assignor of the step."""
        chosen = choose_assignor([each.assignors for each in self.group.values()])
        if step.assignor is not None and step.assignor != chosen:
            raise _OutvotedError

    def _happen(self, events: Sequence[e.Event]) -> list[Settlement]:
        self.feed += events
        return [next(self.game) for _ in events]


def _bounced(client: Client, bounce: Bounce) -> Client:
    """The client as it comes back."""
    return replace(
        client,
        assignors=bounce.assignors,
        byte_code=max(bounce.byte_code, client.byte_code),
        upgrade_from=bounce.upgrade_from,
    )


def _expired(client: Client) -> list[e.Event]:
    """A static member that changes its assignors is a new member to the group: its session runs out first."""
    return [] if client.group_instance_id is None else [e.Expire(client.member)]


def _joining(client: Client) -> e.Join:
    return e.Join(
        client.member,
        client.topics,
        client.assignors,
        client.group_instance_id,
        client.byte_code,
        client.upgrade_from,
    )


def _step(number: int, bounce: Bounce, bounced: Client, group: Sequence[Client], settled: Sequence[Settlement]) -> Step:
    played = [took for each in settled for took in each.rounds]
    refused = settled[-1].refused
    last = None if refused or not settled[-1].rounds else settled[-1].rounds[-1]
    leader = None if last is None else last.leader
    found = [*_observed(played, refused), *_clients(bounced), *_leaders(group, leader)]
    return Step(
        number=number,
        bounce=bounce.name,
        member=bounced.member,
        assignor=None if last is None else last.assignor,
        leader=leader,
        common=tuple(each for each in bounced.assignors if all(each in other.assignors for other in group)),
        protocols={client.member: client.protocol for client in group},
        rounds=len(played),
        unavailable=sum(len(took.unavailable) for took in played),
        findings=tuple(sorted(found, key=lambda each: list(Danger).index(each.danger))),
    )


def _observed(played: Iterable[Round], refused: str | None) -> Iterator[Finding]:
    """What the rehearsal itself showed."""
    for took in played:
        kept = {each: row.member for row in took.members for each in row.owned}
        for row in took.members:
            added = set(row.assigned) - set(row.owned)
            twice = sorted(each for each in added if kept.get(each, row.member) != row.member)
            if twice:
                named = ", ".join(f"{topic}-{at} ({kept[TopicPartition(topic, at)]})" for topic, at in twice)
                yield Finding(Danger.DOUBLE_OWNER, f"{row.member} was given {named} while the owner kept it")
    if refused is not None:
        yield Finding(Danger.NO_COMMON_ASSIGNOR, refused)


def _clients(bounced: Client) -> Iterator[Finding]:
    """What the library of the bounced member cannot do."""
    library = LIBRARIES[bounced.library]
    lacking = [each for each in bounced.assignors if each not in library.assignors]
    if lacking:
        has = ", ".join(library.assignors)
        yield Finding(Danger.CLIENT_LACKS_ASSIGNOR, f"{library.name} has no {', '.join(lacking)}; it has {has}")
    if bounced.lists_both and library.mixes is False:
        advice = "stop all members, then start them anew"
        yield Finding(Danger.CLIENT_CANNOT_MIX, f"{library.name} {library.note}: {advice}")
    if bounced.lists_both and library.mixes is None and not lacking:
        evidence = f"nobody here tried whether {library.name} takes such a list: try it on a group of its own first"
        yield Finding(Danger.CLIENT_NOT_TRIED, evidence)
    if bounced.perhaps:
        evidence = f"{bounced.member} is taken for {library.name}; by its subscriptions it may be"
        yield Finding(Danger.CLIENT_NOT_TOLD, f"{evidence} {' or '.join(bounced.perhaps)} as well: see to it first")


def _leaders(group: Iterable[Client], leader: str | None) -> Iterator[Finding]:
    """A leader that cannot read what is owned gives away what cooperative members keep."""
    members = list(group)
    cooperative = sorted(each.member for each in members if each.protocol is Protocol.COOPERATIVE)
    for old in (each for each in members if each.byte_code < ByteCode.KIP_429 and cooperative):
        danger = Danger.OLD_LEADER if old.member == leader else Danger.OLD_MEMBER_MAY_LEAD
        yield Finding(danger, f"{old.member} cannot read what {', '.join(cooperative)} own: old byte code")


def _streams(group: Told) -> object:
    """In place of Streams' own assignor: everyone an even share, kept where it was."""
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


STAND_IN = {STREAMS: CustomAssignor(STREAMS, _streams, frozenset(SUPPORTED[STREAMS]), STREAMS)}
