"""What was true of a day, from what the clients and the conductor wrote down: never from the log."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any

Line = Mapping[str, Any]
Place = tuple[str, int]
Token = tuple[str, str | None]
"""A cause: its kind, and the client or topic that it is about."""

JOINED, GONE, RESTARTED, TAKEN_OVER = "member-joined", "member-gone", "member-restarted", "member-taken-over"
SUBSCRIBED, ASSIGNOR = "subscription-changed", "assignor-changed"
ADDED, DELETED, REMADE, APPEARED = "partitions-added", "topic-deleted", "topic-made-again", "topic-appeared"
EMPTIED, GROUP_DELETED, COORDINATOR = "group-emptied", "group-deleted", "coordinator-moved"
UPGRADED, DOWNGRADED = "group-upgraded", "group-downgraded"
OF_CLIENTS = {
    **dict.fromkeys(("join", "thaw", "resume"), JOINED),
    **dict.fromkeys(("leave", "kill", "freeze", "hang"), GONE),
    "restart": RESTARTED,
    "takeover": TAKEN_OVER,
    "subscribe": SUBSCRIBED,
}
OF_TOPICS = {"grow": ADDED, "remove": DELETED, "remake": REMADE, "appear": APPEARED}
OF_GROUP = {"delete": GROUP_DELETED, "broker": COORDINATOR}
"""The cause that each act is."""


@dataclass(frozen=True)
class Window:
    """From one act on a group to the next: what happens to the group in it has this cause."""

    group: str
    act: Line
    until: int
    members: frozenset[str]
    """Clients that are in the group when it begins."""
    as_meant: bool
    """Whether nothing else happened, such as the end of a session on a slow machine."""

    @property
    def since(self) -> int:
        """The moment of the act."""
        return int(self.act["ms"])

    @cached_property
    def causes(self) -> frozenset[Token]:
        """What there is to say."""
        act, clients = self.act["act"], self.act["clients"]
        also = {(kind, None) for kind in self.act.get("also", ())}
        if act in OF_CLIENTS:
            return frozenset({(OF_CLIENTS[act], client) for client in clients} | also)
        if act in OF_TOPICS:
            return frozenset((OF_TOPICS[act], topic) for topic in self.act["topics"])
        return frozenset({(OF_GROUP[act], None)})

    @property
    def empties(self) -> bool:
        """Whether nobody is left."""
        return self.act["act"] in ("leave", "kill", "freeze", "hang") and self.members <= {*self.act["clients"]}

    @property
    def title(self) -> str:
        """`kill pay.b`."""
        about = self.act["clients"] or self.act.get("topics", ())
        return " ".join((self.act["act"], *about))


@dataclass
class GroupFacts:
    """One group: its acts, and what its clients' listeners were told, in order of time."""

    group: str
    acts: list[Line] = field(default_factory=list)
    calls: list[Line] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    described: list[Line] = field(default_factory=list)

    @cached_property
    def windows(self) -> list[Window]:
        """The stretches between two acts."""
        found, present = [], frozenset[str]()
        for act, following in pairwise([*self.acts, {"ms": 1 << 62}]):
            after = _present(present, act)
            found.append(Window(self.group, act, following["ms"], present, self._as_meant(act, following["ms"], after)))
            present = after
        return found

    def _as_meant(self, act: Line, until: int, present: frozenset[str]) -> bool:
        """Whether the coordinator has as many members at the end as are to be there, as far as it was asked."""
        asked = [each["members"] for each in self.described if act["ms"] < each["ms"] <= until]
        return not asked or len(asked[-1]) == len(present)

    @property
    def has_listeners(self) -> bool:
        """Whether its clients say what they are given."""
        return bool(self.calls)

    def owners(self, at: int) -> dict[Place, str]:
        """Who has what, as the clients see it: whoever was given it last, and has not given it up."""
        owners: dict[Place, str] = {}
        for call in self.calls:
            if call["ms"] > at:
                break
            for topic, number in call["partitions"]:
                if call["call"] == "assigned":
                    owners[topic, number] = call["client"]
                elif owners.get((topic, number)) == call["client"]:
                    del owners[topic, number]
        present = self.present(at)
        return {place: client for place, client in owners.items() if client in present}

    def present(self, at: int) -> frozenset[str]:
        """The clients that are in the group at a moment, as far as acts say."""
        present = frozenset[str]()
        for act in self.acts:
            if act["ms"] <= at:
                present = _present(present, act)
        return present

    def is_quiet(self, at: int, around: int = 1_000) -> bool:
        """Whether nothing changes near a moment; nor may an end that no client tells of fall into it."""
        if any(abs(call["ms"] - at) <= around for call in self.calls):
            return False
        number = bisect_right(self.acts, at, key=itemgetter("ms"))
        if not number or self.acts[number - 1]["act"] == "broker":
            return False
        begun = bisect_right(self.settled, at)
        return bool(begun) and self.settled[begun - 1] >= self.acts[number - 1]["ms"]

    def subscribed(self, at: int) -> set[str]:
        """The topics that those who are present subscribe to; a regular expression is left as it is."""
        topics: dict[str, list[str]] = {}
        for act in self.acts:
            if act["ms"] <= at and act["act"] in ("join", "restart", "takeover", "subscribe"):
                topics |= dict.fromkeys(act["clients"], act["topics"])
        present = self.present(at)
        return {topic for client, some in topics.items() if client in present for topic in some}


@dataclass(frozen=True)
class Facts:
    """A whole day."""

    lines: Sequence[Line]

    @cached_property
    def groups(self) -> dict[str, GroupFacts]:
        """By name."""
        found: dict[str, GroupFacts] = {}
        for line in self.lines:
            if line.get("group") is not None:
                group = found.setdefault(line["group"], GroupFacts(line["group"]))
                _list_of(group, line)
            elif line["what"] == "act":
                for group in found.values():
                    group.acts.append(line)
        for group in found.values():
            group.calls.sort(key=itemgetter("ms"))
            group.settled.sort()
        return found

    @cached_property
    def clients(self) -> dict[str, str]:
        """The client of each member id, by what it said and by what the coordinator was asked."""
        described = [line for line in self.lines if line["what"] == "described"]
        found = {
            each["member_id"]: each["client_id"].partition("-StreamThread")[0]
            for line in described
            for each in line["members"]
        }
        return found | {each["member_id"]: each["client"] for each in self.lines if each["what"] == "call"}

    def named(self, others: Mapping[str, str]) -> None:
        """Add the clients of members that nothing here tells of."""
        for member, client in others.items():
            self.clients.setdefault(member, client.partition("-StreamThread")[0])

    def partitions(self, topic: str, at: int) -> int:
        """How many a topic has."""
        counts = [each["partitions"] for each in self._topics[topic] if each["ms"] <= at]
        return counts[-1] if counts else 0

    @cached_property
    def _topics(self) -> dict[str, list[Line]]:
        found: dict[str, list[Line]] = defaultdict(list)
        for line in self.lines:
            if line["what"] == "topic":
                found[line["topic"]].append(line)
        return found

    def unowned(self, group: GroupFacts, at: int) -> set[Place] | None:
        """Partitions of subscribed topics that nobody has; None where a regular expression is subscribed to."""
        topics = group.subscribed(at)
        if any(topic.startswith("^") for topic in topics):
            return None
        every = {(topic, number) for topic in topics for number in range(self.partitions(topic, at))}
        return every - group.owners(at).keys()


def _list_of(group: GroupFacts, line: Line) -> None:
    if line["what"] == "act":
        group.acts.append(line)
    elif line["what"] == "call":
        group.calls.append(line)
    elif line["what"] == "settled":
        group.settled.append(line["ms"])
    elif line["what"] == "described":
        group.described.append(line)


def _present(before: frozenset[str], act: Line) -> frozenset[str]:
    """Who is in the group once an act has had its effect."""
    clients = frozenset(act["clients"])
    if act["act"] in ("leave", "kill", "freeze", "hang"):
        return before - clients
    if act["act"] == "takeover":
        return (before - {act["old"]}) | clients
    return before | clients
