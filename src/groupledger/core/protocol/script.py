"""A group to be simulated: its topics and its events, its times and its settings, and their JSON forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

from groupledger.core.assignors.server.server_batch import ASSIGNORS
from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import MemberTimes, Times
from groupledger.core.protocol.consumer_group.consumer_state import (
    ConsumerGroupSettings,
    Coordinated,
    HeartbeatRow,
    MemberRow,
    MigrationPolicy,
    StreamsGroupSettings,
    Subtopologies,
    SubtopologyTopics,
    repartition_counts,
)
from groupledger.core.protocol.events import PATTERN, GroupProtocol
from groupledger.core.protocol.settlement import Pace
from groupledger.core.rebalance.step import Form

MOST_ROUNDS = 50
"""Of one event: a group that neither settles nor repeats itself is given up."""


@dataclass(frozen=True, slots=True)
class Script:
    """One group to be simulated: the topics there are at first, and its events in order.

    `member_ids`, `topic_ids`: ids that processes and topics had in reality, in order, for a history that is to be
    played again. `times`: the rounds of a classic group are driven by a clock; without them, each event settles before
    the next one. `consumer_group`: how the broker is configured for members of the consumer protocol; not with times.
    `generation`: of the group before the first event.
    """

    topics: Mapping[str, int]
    events: Iterable[e.Event]
    form: Form = Form.KIP
    pace: Pace = field(default_factory=Pace)
    member_ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    topic_ids: Mapping[str, Sequence[TopicId]] = field(default_factory=dict)
    times: Times | None = None
    consumer_group: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    generation: int = 0


# What a script must be like; each check raises Fault("BAD_SCRIPT"), which says where the script is wrong.


BAD_SCRIPT = "BAD_SCRIPT"
MOST_PARTITIONS = 100_000
"""Of a topic."""
MOST_MS = 2**31 - 1
"""Of a time that Kafka keeps in an int."""


def require(holds: bool, place: str, got: Any, expected: str) -> None:
    """Anything at all."""
    if not holds:
        shown = "nothing" if got is None else repr(got)[:80]
        raise Fault(BAD_SCRIPT, f"{place} is {shown}; expected {expected}")


def require_whole(value: Any, place: str, most: int, least: int = 0) -> None:
    """Require a whole number within bounds."""
    found = type(value) is int and least <= value <= most
    require(found, place, value, f"a whole number from {least:,} to {most:,}")


def require_one_of(value: Any, names: Iterable[str], place: str) -> None:
    """One of these texts."""
    known = list(names)
    require(isinstance(value, str) and value in known, place, value, "one of " + ", ".join(known))


# The times of a script as JSON: {"session_timeout_ms": 45000, "members": {"slow": {"processing_ms": 20000}}}.

MOST_RECORDS = 1_000_000
MEMBERS = "members"
POSITIVE = frozenset({"session_timeout_ms", "heartbeat_interval_ms", "rebalance_timeout_ms"})
OF_MEMBER = tuple(each.name for each in fields(MemberTimes))
OF_GROUP = {
    "initial_rebalance_delay_ms": MOST_MS,
    "auto_commit_interval_ms": MOST_MS,
    "records_per_second": MOST_RECORDS,
}


def read_times(found: Any) -> Times:
    """Read the times of a script; raises Fault("BAD_SCRIPT")."""
    require(isinstance(found, dict), "times", found, "an object of milliseconds")
    for name in found:
        require_one_of(name, [*OF_MEMBER, *OF_GROUP, MEMBERS], "times")
    for name, most in OF_GROUP.items():
        if name in found:
            require_whole(found[name], f"times.{name}", most)
    each = _member(found, "times", MemberTimes())
    members = found.get(MEMBERS, {})
    require(isinstance(members, dict), f"times.{MEMBERS}", members, "an object of the times of members")
    of = {}
    for name, known in members.items():
        place = f"times.{MEMBERS}.{name}"
        require(isinstance(known, dict), place, known, "an object of milliseconds")
        for setting in known:
            require_one_of(setting, OF_MEMBER, place)
        of[name] = _member(known, place, each)
    return Times(each, of, **{name: found[name] for name in OF_GROUP if name in found})


def _member(found: Mapping[str, Any], place: str, each: MemberTimes) -> MemberTimes:
    """Read these times, and otherwise take those of `each`."""
    known = {name: found[name] for name in OF_MEMBER if name in found}
    for name, value in known.items():
        require_whole(value, f"{place}.{name}", MOST_MS, least=int(name in POSITIVE))
    times = replace(each, **known)
    expected = f"less than session_timeout_ms, which is {times.session_timeout_ms:,}"
    for name in ("heartbeat_interval_ms", "round_trip_ms"):
        value = getattr(times, name)
        require(value < times.session_timeout_ms, f"{place}.{name}", value, expected)
    return times


def write_times(times: Times) -> dict[str, Any]:
    """Return the JSON object of these times: `read_times` gives them again."""
    found = {name: getattr(times, name) for name in OF_GROUP if getattr(times, name) is not None}
    of = {name: asdict(member) for name, member in times.of.items()}
    return {**asdict(times.each), **found, **({MEMBERS: of} if of else {})}


# A topology as JSON: {"0": {"source_topics": ["orders"], "repartition_sink_topics": ["by-value"]}}.

COUNTED = "repartition_source_topics"
FIELDS = tuple(each.name for each in fields(SubtopologyTopics))


def read_topology(found: Any, place: str) -> Subtopologies:
    """Read the topology of a script; raise Fault("BAD_SCRIPT"), which names the place."""
    require(isinstance(found, dict), place, found, "an object of subtopologies by id")
    return {name: _subtopology(each, f"{place}.{name}") for name, each in found.items()}


def _subtopology(found: Any, place: str) -> SubtopologyTopics:
    require(isinstance(found, dict), place, found, "an object of topics")
    known: dict[str, Any] = {}
    for name, value in found.items():
        require_one_of(name, FIELDS, place)
        known[name] = _counts(value, f"{place}.{name}") if name == COUNTED else _names(value, f"{place}.{name}")
    return SubtopologyTopics(**known)


def _names(value: Any, place: str) -> tuple[str, ...]:
    texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    require(texts, place, value, "a list of topics")
    require(len(set(value)) == len(value), place, value, "each topic once")
    return tuple(value)


def _counts(value: Any, place: str) -> dict[str, int]:
    """Partitions that repartition topics are to have; a list of topics leaves that to their writers."""
    if isinstance(value, list):
        return dict.fromkeys(_names(value, place), 0)
    require(isinstance(value, dict), place, value, "a list of topics, or an object of their partition counts")
    for topic, count in value.items():
        require_whole(count, f"{place}.{topic}", MOST_PARTITIONS)
    return dict(value)


def write_topology(topology: Subtopologies) -> dict[str, Any]:
    """Return the JSON object: `read_topology` gives the topology again."""
    return {
        name: {
            field: list(value) if isinstance(value, tuple) else dict(value)
            for field in FIELDS
            if (value := getattr(each, field))
        }
        for name, each in topology.items()
    }


# The broker's settings for groups that it assigns as JSON, {"heartbeat_interval_ms": 5000}, and what it did.

MAY_BE_ZERO = frozenset({"assignment_interval_ms", "initial_rebalance_delay_ms", "num_standby_replicas"})
MOST = {"num_standby_replicas": 2**15 - 1}
TOPOLOGY = "topology"
OF_STREAMS_ROW = ("process_id", "standby_target", "standby")
CHOICES: dict[str, list[str]] = {"remote_assignor": list(ASSIGNORS), "migration_policy": list(MigrationPolicy)}


def group_key(protocol: GroupProtocol) -> str:
    """Under which name a script has settings of such a group, and a result its coordinator: `share_group`."""
    return f"{protocol.value}_group"


def read_settings(found: Any, protocol: GroupProtocol = GroupProtocol.CONSUMER) -> ConsumerGroupSettings:
    """Read the settings of a script, Kafka's own where it has none; raise Fault("BAD_SCRIPT")."""
    place = group_key(protocol)
    require(isinstance(found, dict), place, found, "an object")
    of_all = tuple(each.name for each in fields(ConsumerGroupSettings))
    known = dict(found or {})
    for name, value in known.items():
        require_one_of(name, KINDS[protocol].settings if protocol in KINDS else of_all, place)
        if name in CHOICES:
            require_one_of(value, CHOICES[name], f"{place}.{name}")
        elif name == TOPOLOGY:
            known[name] = read_topology(value, f"{place}.{name}")
        else:
            require_whole(value, f"{place}.{name}", MOST.get(name, MOST_MS), least=int(name not in MAY_BE_ZERO))
    if protocol is GroupProtocol.STREAMS:
        return StreamsGroupSettings(**known)
    policy = MigrationPolicy(known.get("migration_policy", MigrationPolicy.BIDIRECTIONAL))
    return ConsumerGroupSettings(**{**known, "migration_policy": policy})


def write_settings(settings: ConsumerGroupSettings) -> dict[str, Any]:
    """Those settings that are not Kafka's own: `read_settings` gives all of them again."""
    pairs = ((each.name, getattr(settings, each.name)) for each in fields(settings))
    default = type(settings)()
    found = {name: value for name, value in pairs if value != getattr(default, name)}
    return found | ({TOPOLOGY: write_topology(found[TOPOLOGY])} if TOPOLOGY in found else {})


def write_coordinated(group: Coordinated) -> dict[str, Any]:
    """Return the JSON object of what the coordinator did in one event."""
    streams = group.protocol is GroupProtocol.STREAMS
    return {
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_row(each, streams=streams) for each in group.members],
        "heartbeats": [_row(each, streams=streams) for each in group.heartbeats],
        "targets": [
            {
                "at_ms": each.at_ms,
                "epoch": each.epoch,
                "assignor": each.assignor,
                "targets": {member: pairs_of(partitions) for member, partitions in each.targets},
                **({"standby": {member: pairs_of(tasks) for member, tasks in each.standby}} if streams else {}),
            }
            for each in group.targets
        ],
        "reconciled": [each._asdict() for each in group.reconciled],
        **({"status": group.status} if streams else {}),
    }


def _row(row: MemberRow | HeartbeatRow, *, streams: bool) -> dict[str, Any]:
    """Return a row whose tuples are partitions, or tasks."""
    found = {name: value for name, value in row._asdict().items() if streams or name not in OF_STREAMS_ROW}
    return {name: pairs_of(value) if isinstance(value, tuple) else value for name, value in found.items()}


def pairs_of(partitions: Iterable[TopicPartition]) -> list[list[Any]]:
    """Return partitions as JSON has them."""
    return [list(each) for each in partitions]


# Groups that have members of one kind alone: share groups (KIP-932) and Streams groups (KIP-1071).
#
# What a script with such members may have, and what it may not, is declared here, one record a kind.

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
    """Return the kind of the first member that has one; None: classic members and consumers alone."""
    protocols = (each.group_protocol for each in events if isinstance(each, e.Join))
    return next((KINDS[each] for each in protocols if each in KINDS), None)


def coordinator_of(events: Iterable[e.Event]) -> e.GroupProtocol:
    """Return the kind of group that its coordinator assigns: a consumer group if members are of no other kind."""
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
    found = ((each.name, getattr(join, each.name), each.default) for each in fields(join))
    return {name: value for name, value, default in found if default is MISSING or value != default}
