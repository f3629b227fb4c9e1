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

from groupledger.core.custom.custom_group import CustomAssignor, Protocol, TopicPartition, cooperative_step
from groupledger.core.custom.custom_group import Group as CustomGroup
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import choose_assignor
from groupledger.core.protocol.compatibility import (
    LIBRARIES,
    STREAMS,
    SUPPORTED,
    UNPLAYED,
    ByteCode,
    Library,
    protocol_of,
    since,
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
    """All members stopped, then started again as after the last bounce: those who were played.

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
    """Return the path of KIP-429: list both, then the new one alone. For Streams: UPGRADE_FROM set, then removed.

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
    """Return what one should not do: everything at once, member by member."""
    return [Bounce(f"list {to} alone, in one bounce", (to,))]


def rehearse(
    clients: Sequence[GroupClient], bounces: Iterable[Bounce], topics: Mapping[str, int], most_played: int = MOST_PLAYED
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
    stop_all = None
    if not all(step.safe for step in steps) and not obstacles(clients, bounces[-1:]):
        stop_all = _Play(clients, played, topics).stop_all(bounces)
    return MigrationRehearsal(bounces, steps, len(played), stop_all)


def _kind(client: GroupClient) -> object:
    """Return what distinguishes members in a migration."""
    static = client.group_instance_id is not None
    return client.assignors, client.library, client.byte_code, client.upgrade_from, client.perhaps, static


def _chosen(clients: Sequence[GroupClient], most: int) -> set[str]:
    """Choose the members that are played: of each kind its share, the last one, and two before it at least."""
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
        self._apply([_joining(client) for client in clients if client.member in played])

    def steps(self, bounces: Iterable[Bounce]) -> tuple[BounceStep, ...]:
        """Play the steps of the chosen members, up to the first unsafe one."""
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
        stopped = self._apply([event for each in again for event in (e.Leave(each.member), *_expired(each))])
        started = self._apply([_joining(each) for each in again])
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
        settled = self._apply([e.Leave(member), *_expired(client), _joining(client)])
        step = _step(number, bounce, client, list(self.group.values()), settled, ahead)
        self._require_chosen(step)
        return step

    def _require_chosen(self, step: BounceStep) -> None:
        """Check that all members, as they are configured now, choose the assignor of the step."""
        chosen = choose_assignor([each.assignors for each in self.group.values()])
        if step.assignor is not None and step.assignor != chosen:
            raise _OutvotedError

    def _apply(self, events: Sequence[e.Event]) -> list[Settlement]:
        self.feed += events
        return [next(self.game) for _ in events]


def _expired(client: GroupClient) -> list[e.Event]:
    """Let the session of a static member run out first: with other assignors it is a new member to the group."""
    return [] if client.group_instance_id is None else [e.Expire(client.member)]


def _joining(client: GroupClient) -> e.Join:
    return e.Join(
        client.member, client.topics, client.assignors, client.group_instance_id, client.byte_code, client.upgrade_from
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


def _evenly(group: CustomGroup) -> object:
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


# What makes a state of a migration unsafe, and which of it is known before anything is bounced.

MOST_NAMED = 3
"""Members that a finding names."""


class Danger(enum.StrEnum):
    """What makes a state of a migration unsafe, the worst first."""

    STREAMS_ASSIGNOR = "streams-assignor"  # Streams with an assignor of others, or others with that of Streams
    DOUBLE_OWNER = "double-owner"  # seen in the rehearsal: given to one member while another still owns it
    OLD_LEADER = "old-leader"  # the leader's byte code cannot read what cooperative members own
    NO_COMMON_ASSIGNOR = "no-common-assignor"
    CLIENT_CANNOT_MIX = "client-cannot-mix"
    CLIENT_LACKS_ASSIGNOR = "client-lacks-assignor"
    OLD_MEMBER_MAY_LEAD = "old-member-may-lead"  # it does not lead now, but would if the leader left
    CLIENT_NOT_TRIED = "client-not-tried"  # a warning: nobody here knows whether this library can mix
    CLIENT_UNCLEAR = "client-not-told"  # a warning: the log does not show which library this is

    @property
    def what(self) -> str:
        """Describe it for any group that has it."""
        return _MEANINGS[self]


_MEANINGS = {
    Danger.STREAMS_ASSIGNOR: "Kafka Streams would get an assignor of other consumers, or they that of Streams",
    Danger.DOUBLE_OWNER: "seen in the rehearsal: a partition was given to a member while another still owned it",
    Danger.OLD_LEADER: "the leader's client is older than Kafka 2.4: it cannot read what cooperative members own",
    Danger.NO_COMMON_ASSIGNOR: "a member that comes back lists no assignor that all others list: it cannot join",
    Danger.CLIENT_CANNOT_MIX: "the client library refuses a list of eager and cooperative assignors",
    Danger.CLIENT_LACKS_ASSIGNOR: "the client library, or its release, does not have an assignor of the list",
    Danger.OLD_MEMBER_MAY_LEAD: "as `old-leader`, should the leader leave: a member with such a client would lead",
    Danger.CLIENT_NOT_TRIED: "a warning: the client library may take a list of eager and cooperative assignors, but "
    "nobody who keeps this table has run it with one: bounce a group of its own first, and see that the first bounce "
    "leaves all members in the group",
    Danger.CLIENT_UNCLEAR: "a warning: several client libraries write the bytes of this member; name it with --client",
}


WARNINGS = frozenset({Danger.CLIENT_NOT_TRIED, Danger.CLIENT_UNCLEAR})


class Hazard(NamedTuple):
    """One danger in one state, in words."""

    danger: Danger
    evidence: str


@dataclass(frozen=True, slots=True)
class GroupClient:
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


def bounced(client: GroupClient, bounce: Bounce) -> GroupClient:
    """Return the client as it comes back."""
    return replace(
        client,
        assignors=bounce.assignors,
        byte_code=max(bounce.byte_code, client.byte_code),
        upgrade_from=bounce.upgrade_from,
    )


def obstacles(clients: Sequence[GroupClient], bounces: Iterable[Bounce]) -> list[Hazard]:
    """Find what is in the way whatever the order of the steps: of each danger and its reason, all members."""
    found: dict[Hazard, list[str]] = {}
    bounces = tuple(bounces)
    listed = {each for bounce in bounces for each in bounce.assignors} - {STREAMS}
    if any(Protocol.COOPERATIVE in SUPPORTED[each] for each in listed):
        for client in clients:
            if not LIBRARIES[client.library].cooperates:
                found.setdefault(_never_cooperates(LIBRARIES[client.library]), []).append(client.member)
        clients = [client for client in clients if LIBRARIES[client.library].cooperates]
    for client in clients:
        lacking = _lacking(client)
        if lacking:
            finding = Hazard(Danger.CLIENT_LACKS_ASSIGNOR, f"lists {', '.join(lacking)} now: {_has(client)}")
            found.setdefault(finding, []).append(client.member)
    for bounce in bounces:
        pairs = [(before, bounced(before, bounce)) for before in clients]
        for before, after in pairs:
            for finding in _unable(before, after):
                found.setdefault(finding, []).append(after.member)
        clients = [after for _, after in pairs]
    return [Hazard(danger, f"{_named(members)}: {evidence}") for (danger, evidence), members in found.items()]


def _never_cooperates(library: Library) -> Hazard:
    """Say that this library is at the end of its way, and which other ways there are."""
    got = f"{library.name} has no cooperative assignor, only {', '.join(library.assignors)}"
    left = "what is left: members of another client, by KIP-848 or in a new group"
    return Hazard(Danger.CLIENT_LACKS_ASSIGNOR, f"{got}; {left}")


def _named(members: Iterable[str]) -> str:
    """Return `a, b, c and 9 more`."""
    known = list(dict.fromkeys(members))
    more = len(known) - MOST_NAMED
    return ", ".join(known[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _unable(before: GroupClient, after: GroupClient) -> Iterator[Hazard]:
    """Find what the client library cannot do, or Kafka Streams may not."""
    library, lacking = LIBRARIES[after.library], _lacking(after)
    if lacking:
        yield Hazard(Danger.CLIENT_LACKS_ASSIGNOR, f"{library.name} has no {', '.join(lacking)}; {_has(after)}")
    if {*before.assignors, *after.assignors} > {STREAMS}:
        got = (
            "Kafka Streams has its own assignor (stream), which KIP-429 forbids to replace, and no other client has it"
        )
        yield Hazard(Danger.STREAMS_ASSIGNOR, f"{got}: expected stream before and after, or neither")
    if after.lists_both and library.mixes is False:
        advice = "stop all members, then start them anew"
        yield Hazard(Danger.CLIENT_CANNOT_MIX, f"{library.name} {library.note}: {advice}")


def _lacking(client: GroupClient) -> list[str]:
    """Assignors that it lists and does not have: its library has not, or not at its age."""
    has = LIBRARIES[client.library].assignors
    return [each for each in client.assignors if each not in has or client.byte_code < since(each)]


def _has(client: GroupClient) -> str:
    has = [each for each in LIBRARIES[client.library].assignors if client.byte_code >= since(each)]
    age = " before Kafka 2.4" if client.byte_code < ByteCode.KIP_429 else ""
    return f"{client.library}{age} has {', '.join(has)}"


def warnings(client: GroupClient) -> Iterator[Hazard]:
    """Find what is not known of a client that comes back."""
    library = LIBRARIES[client.library]
    if client.lists_both and library.mixes is None and not _lacking(client):
        reads = f"nobody here tried whether {library.name} takes such a list (it {library.note})"
        evidence = f"{reads}: try it on a group of its own first"
        yield Hazard(Danger.CLIENT_NOT_TRIED, evidence)
    if client.perhaps:
        evidence = f"{client.member} is taken for {library.name}; by its subscriptions it may be"
        yield Hazard(Danger.CLIENT_UNCLEAR, f"{evidence} {' or '.join(client.perhaps)} as well: see to it first")


def observed(settled: Iterable[Settlement]) -> Iterator[Hazard]:
    """Report what the rehearsal itself showed: for each member that was given something too early, all of that."""
    given: dict[str, list[str]] = {}
    for each in (each for one in settled for each in one.double_owners):
        owner, member = each.members
        given.setdefault(member, []).append(f"{each.partition.topic}-{each.partition.partition} ({owner})")
    for member, named in given.items():
        found = ", ".join(dict.fromkeys(named))
        yield Hazard(Danger.DOUBLE_OWNER, f"{member} was given {found} while the owner kept it")


def old_leaders(group: Iterable[GroupClient], leader: str | None) -> Iterator[Hazard]:
    """Report each leader that cannot read owned partitions and gives away what cooperative members keep."""
    members = list(group)
    cooperative = sorted(each.member for each in members if each.protocol is Protocol.COOPERATIVE)
    for old in (each for each in members if each.byte_code < ByteCode.KIP_429 and cooperative):
        danger = Danger.OLD_LEADER if old.member == leader else Danger.OLD_MEMBER_MAY_LEAD
        yield Hazard(danger, f"{old.member} cannot read what {', '.join(cooperative)} own: old byte code")
