"""Groups that have members of one kind alone: share groups (KIP-932) and Streams groups (KIP-1071).

What a script with such members may have, and what it may not, is declared here, one record a kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Any

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer_group.settings import StreamsGroupSettings
from groupledger.core.protocol.consumer_group.topology import Subtopologies, repartition_counts
from groupledger.core.protocol.refusals import PATTERN
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.script_checks import require

OF_ALL_MEMBERS = frozenset({"member", "group_protocol", "at_ms", "together"})
OF_ALL_GROUPS = ("heartbeat_interval_ms", "session_timeout_ms", "assignment_interval_ms")


@dataclass(frozen=True, slots=True)
class GroupKind:
    """One kind of group: fields that a join of its members has a use for, and settings of the broker."""

    protocol: e.GroupProtocol
    group: str
    members: str
    join_fields: frozenset[str]
    settings: tuple[str, ...]


SHARE = GroupKind(e.GroupProtocol.SHARE, "a share group", "share consumers", OF_ALL_MEMBERS | {"topics"}, OF_ALL_GROUPS)
STREAMS = GroupKind(
    e.GroupProtocol.STREAMS,
    "a Streams group",
    "members of Streams groups",
    OF_ALL_MEMBERS | {"process_id", "group_instance_id", "rebalance_timeout_ms"},
    (*OF_ALL_GROUPS, "initial_rebalance_delay_ms", "num_standby_replicas", "topology"),
)
KINDS = {kind.protocol: kind for kind in (SHARE, STREAMS)}


def kind_of(events: Iterable[e.Event]) -> GroupKind | None:
    """The kind that the first member of one is of; None: classic members and consumers alone."""
    protocols = (each.group_protocol for each in events if isinstance(each, e.Join))
    return next((KINDS[each] for each in protocols if each in KINDS), None)


def coordinator_of(events: Iterable[e.Event]) -> e.GroupProtocol:
    """What kind of group members make that their coordinator assigns: a consumer group if they are of no other kind."""
    kind = kind_of(events)
    return e.GroupProtocol.CONSUMER if kind is None else kind.protocol


def require_one_kind(script: Script) -> None:
    """Raise Fault("BAD_SCRIPT") where members of such a kind are in a script, and what they do not have is too."""
    events = list(script.events)
    joins = [(at, each) for at, each in enumerate(events) if isinstance(each, e.Join)]
    kind = kind_of(events)
    if kind is None:
        for at, join in joins:
            require(join.process_id is None, f"events.{at}.process_id", join.process_id, "none outside a Streams group")
        return
    for at, join in joins:
        expected = f"{kind.protocol.value}, as of all members: {kind.group} has no others"
        got = join.group_protocol.value
        require(join.group_protocol is kind.protocol, f"events.{at}.group_protocol", got, expected)
    require(script.times is None, "times", "given", f"none for {kind.group}, whose clock are its heartbeats")
    for at, join in joins:
        for name, value in _set_fields(join).items():
            place, known = f"events.{at}.{name}", name in kind.join_fields
            require(
                known, place, list(value) if isinstance(value, tuple) else value, f"nothing: {kind.members} have none"
            )
    if kind is STREAMS:
        settings = script.consumer_group
        require_topology(settings.topology if isinstance(settings, StreamsGroupSettings) else {})


def require_topology(topology: Subtopologies) -> None:
    """Raise Fault("BAD_SCRIPT") for a topology that no Streams application has, or that Kafka cannot configure."""
    place = "streams_group.topology"
    require(bool(topology), place, None, "subtopologies by id, as all members of the group have them")
    readers: dict[str, str] = {}
    for name, each in topology.items():
        require(bool(each.read), f"{place}.{name}", "without a topic to read", "source_topics, or a repartition topic")
        for topic in (*each.read, *each.repartition_sink_topics, *each.state_changelog_topics):
            named = PATTERN.search(topic) is None
            require(named, f"{place}.{name}", topic, "the name of a topic: patterns are not simulated")
        for topic in (*each.read, *each.state_changelog_topics):
            other = readers.setdefault(topic, name)
            require(other == name, f"{place}.{name}", topic, f"a topic of its own: subtopology {other} has this one")
    found = repartition_counts(topology, {topic: 1 for each in topology.values() for topic in each.source_topics})
    for name, each in topology.items():
        for topic in each.repartition_source_topics:
            expected = "one that a subtopology writes (repartition_sink_topics), and not in a loop"
            require(topic in found, f"{place}.{name}.repartition_source_topics", topic, expected)


def require_consumers(events: Iterable[e.Event], what: str) -> None:
    """Raise Fault("BAD_SCRIPT") for members that have no rebalance listener, and none of KIP-429's metrics."""
    kind = kind_of(events)
    if kind is not None:
        require(False, what, "asked for", f"a script without {kind.members}, which have no rebalance listener")


def _set_fields(join: e.Join) -> dict[str, Any]:
    """Those fields that are not at their default."""
    told = ((each.name, getattr(join, each.name), each.default) for each in fields(join))
    return {name: value for name, value, default in told if default is MISSING or value != default}
