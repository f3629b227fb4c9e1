"""What makes a state of a migration unsafe, and which of it is known before anything is bounced."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from groupledger.core.custom.group import Protocol
from groupledger.core.protocol.compatibility import (
    LIBRARIES,
    STREAMS,
    SUPPORTED,
    ByteCode,
    Library,
    protocol_of,
    since,
)
from groupledger.core.protocol.settlement import Settlement

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
    CLIENT_NOT_TOLD = "client-not-told"  # a warning: the log does not tell which library this is

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
    Danger.CLIENT_NOT_TOLD: "a warning: several client libraries write the bytes of this member; name it with --client",
}


WARNINGS = frozenset({Danger.CLIENT_NOT_TRIED, Danger.CLIENT_NOT_TOLD})


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
    """The client as it comes back."""
    return replace(
        client,
        assignors=bounce.assignors,
        byte_code=max(bounce.byte_code, client.byte_code),
        upgrade_from=bounce.upgrade_from,
    )


def obstacles(clients: Sequence[GroupClient], bounces: Iterable[Bounce]) -> list[Hazard]:
    """What stands in the way whatever the order of the steps: of each danger and its reason, all whom it concerns."""
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
    told = f"{library.name} has no cooperative assignor, only {', '.join(library.assignors)}"
    left = "what is left: members of another client, by KIP-848 or in a new group"
    return Hazard(Danger.CLIENT_LACKS_ASSIGNOR, f"{told}; {left}")


def _named(members: Iterable[str]) -> str:
    """`a, b, c and 9 more`."""
    known = list(dict.fromkeys(members))
    more = len(known) - MOST_NAMED
    return ", ".join(known[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _unable(before: GroupClient, after: GroupClient) -> Iterator[Hazard]:
    """What the client library cannot do, or Kafka Streams may not."""
    library, lacking = LIBRARIES[after.library], _lacking(after)
    if lacking:
        yield Hazard(Danger.CLIENT_LACKS_ASSIGNOR, f"{library.name} has no {', '.join(lacking)}; {_has(after)}")
    if {*before.assignors, *after.assignors} > {STREAMS}:
        told = (
            "Kafka Streams has its own assignor (stream), which KIP-429 forbids to replace, and no other client has it"
        )
        yield Hazard(Danger.STREAMS_ASSIGNOR, f"{told}: expected stream before and after, or neither")
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
    """What nobody knows of a client that comes back."""
    library = LIBRARIES[client.library]
    if client.lists_both and library.mixes is None and not _lacking(client):
        reads = f"nobody here tried whether {library.name} takes such a list (it {library.note})"
        evidence = f"{reads}: try it on a group of its own first"
        yield Hazard(Danger.CLIENT_NOT_TRIED, evidence)
    if client.perhaps:
        evidence = f"{client.member} is taken for {library.name}; by its subscriptions it may be"
        yield Hazard(Danger.CLIENT_NOT_TOLD, f"{evidence} {' or '.join(client.perhaps)} as well: see to it first")


def observed(settled: Iterable[Settlement]) -> Iterator[Hazard]:
    """What the rehearsal itself showed: of each member that was given something too early, all of that."""
    given: dict[str, list[str]] = {}
    for each in (each for one in settled for each in one.double_owners):
        owner, member = each.members
        given.setdefault(member, []).append(f"{each.partition.topic}-{each.partition.partition} ({owner})")
    for member, named in given.items():
        told = ", ".join(dict.fromkeys(named))
        yield Hazard(Danger.DOUBLE_OWNER, f"{member} was given {told} while the owner kept it")


def old_leaders(group: Iterable[GroupClient], leader: str | None) -> Iterator[Hazard]:
    """A leader that cannot read what is owned gives away what cooperative members keep."""
    members = list(group)
    cooperative = sorted(each.member for each in members if each.protocol is Protocol.COOPERATIVE)
    for old in (each for each in members if each.byte_code < ByteCode.KIP_429 and cooperative):
        danger = Danger.OLD_LEADER if old.member == leader else Danger.OLD_MEMBER_MAY_LEAD
        yield Hazard(danger, f"{old.member} cannot read what {', '.join(cooperative)} own: old byte code")
