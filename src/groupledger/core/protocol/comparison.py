"""What a script costs under each of several variants, side by side: rounds, moves, revocations, time without an owner.

Worked example: four partitions, B joins A. Under range one round, two moves and four revocations; under
cooperative-sticky two rounds, two moves and two revocations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from groupledger.core.custom.custom_group import CustomAssignor, TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import BAD_CLIENT, LIBRARIES, ByteCode, ClientLibrary, require_assignors
from groupledger.core.protocol.consumer import Callback, Times
from groupledger.core.protocol.consumer_group.consumer_state import (
    ConsumerGroupSettings,
    StreamsGroupSettings,
    SubtopologyTopics,
)
from groupledger.core.protocol.script import (
    KINDS,
    MEMBERS,
    OF_GROUP,
    OF_MEMBER,
    STREAMS,
    TOPOLOGY,
    GroupKind,
    Script,
    kind_of,
    read_settings,
    read_times,
    write_settings,
    write_times,
    write_topology,
)
from groupledger.core.protocol.script_json import NAMES
from groupledger.core.protocol.settlement import Read, Settlement
from groupledger.core.protocol.simulator import simulate_all
from groupledger.core.rebalance.registry import called


@dataclass(frozen=True, slots=True)
class Cost:
    """What events led to. null: not counted in such a group.

    `rounds` are generations; a consumer group has none. `moves`: partitions that came to another member than the one
    that had them last. `revoked` and `lost`: partitions given up in onPartitionsRevoked and onPartitionsLost;
    a share group, whose members share partitions and have no listener, has none of the three.
    `unavailable_rounds` and `unavailable_ms` are sums over partitions that nobody had; the first where no clock runs.
    `read_twice`, `never_read`: records, where a script has a rate of them. `double_owners`: partitions with two owners.
    """

    rounds: int | None
    moves: int | None
    revoked: int | None
    lost: int | None
    unavailable_rounds: int | None
    unavailable_ms: int
    read_twice: int | None
    never_read: int | None
    double_owners: int


@dataclass(frozen=True, slots=True)
class EventCost:
    """One event of a script by its `number`, counted from 1, and what it led to. `failure`: why it did not settle."""

    number: int
    event: str
    at_ms: int
    cost: Cost
    failure: str | None


@dataclass(frozen=True, slots=True)
class ConsumedSpan:
    """A member consumed a partition from `since_ms` up to `until_ms`; null: it goes on.

    Both are the same if it had the partition within one millisecond. Such a span is listed if a clock runs, since the
    partition moved then, and if two members had it.
    """

    topic: str
    partition: int
    member: str
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class ComparedVariant:
    """A script under one variant. `error`: why it cannot be played so; there is no `cost` then.

    `failures` are events that did not settle, or were refused. `unowned`: partitions that nobody has in the end. `most`
    and `least`: partitions of one member then, of those that run, of which `idle` have none; null for a share group,
    whose members share partitions, and where no member runs.
    `consumed`: who consumed which partition when (until null: it still does), where a timeline was asked for.
    """

    variant: str
    error: str | None
    cost: Cost | None
    failures: int
    unowned: int
    events: tuple[EventCost, ...]
    consumed: tuple[ConsumedSpan, ...] = ()
    most: int | None = None
    least: int | None = None
    idle: int | None = None


@dataclass(frozen=True, slots=True)
class ComparedScript:
    """One script under every variant, in the order in which they were asked for."""

    id: str
    variants: tuple[ComparedVariant, ...]


@dataclass(frozen=True, slots=True)
class BadScript:
    """What is no script: where it stands, and what is wrong with it."""

    file: str
    line: int
    error: str


@dataclass(frozen=True, slots=True)
class ScriptComparison:
    """All scripts under all variants; events before `from_ms` are played and not counted."""

    from_ms: int
    scripts: tuple[ComparedScript, ...]
    bad_scripts: tuple[BadScript, ...] = ()


def compare(
    scripts: Sequence[tuple[str, Script]],
    variants: Sequence[Variant],
    custom: Mapping[str, CustomAssignor] | None = None,
    from_ms: int = 0,
    *,
    timeline: bool = False,
) -> tuple[ComparedScript, ...]:
    """Play every script under every variant. One that cannot be played so has an error, and the others continue.

    `timeline`: add who consumed what when.
    """
    asked: list[Script | Fault] = []
    for _, script in scripts:
        for variant in variants:
            try:
                asked.append(changed(script, variant))
            except Fault as fault:
                asked.append(fault)
    played = iter(simulate_all([each for each in asked if isinstance(each, Script)], custom))
    results = [each if isinstance(each, Fault) else next(played) for each in asked]
    found = []
    for place, (name, script) in enumerate(scripts):
        events = len(list(script.events))
        mine = results[place * len(variants) : (place + 1) * len(variants)]
        known = zip(variants, mine, strict=True)
        rows = [(_compared(one, result, events, from_ms), result) for one, result in known]
        found.append(ComparedScript(name, tuple(_with_timeline(*row) if timeline else row[0] for row in rows)))
    return tuple(found)


def _compared(variant: Variant, result: list[Settlement] | Fault, events: int, from_ms: int) -> ComparedVariant:
    if isinstance(result, Fault):
        return ComparedVariant(variant.name, f"{result.code}: {result.message}", None, 0, 0, ())
    rows = [row for row in costs(result, events) if row.at_ms >= from_ms]
    failures = sum(row.failure is not None for row in rows)
    unowned = len(result[-1].unowned) if result else 0
    counted = [settled for settled in result if settled.event.at_ms >= from_ms]
    twice = {each.partition for settled in counted for each in settled.double_owners}
    compared = ComparedVariant(variant.name, None, _total(rows, len(twice)), failures, unowned, tuple(rows))
    loads = _loads(result[-1]) if result else []
    if not loads:
        return compared
    return replace(compared, most=max(loads), least=min(loads), idle=loads.count(0))


def _loads(settled: Settlement) -> list[int]:
    """Return how many partitions each running member has; nothing for a share group."""
    if _shares(settled):
        return []
    counts = Counter(settled.owners.values())
    return [counts[name] for name in settled.running]


def _shares(settled: Settlement) -> bool:
    return settled.coordinated is not None and settled.coordinated.protocol is e.GroupProtocol.SHARE


def _with_timeline(compared: ComparedVariant, result: list[Settlement] | Fault) -> ComparedVariant:
    """Add who consumed what; a span that lasts is in each settlement, and the last one knows when it ended."""
    if isinstance(result, Fault):
        return compared
    ends = {each[:3]: each.until_ms for settled in result for each in settled.consumed}
    clock = any(_has_clock(settled) for settled in result)
    shared = {
        (each.partition, member) for settled in result for each in settled.double_owners for member in each.members
    }
    return replace(
        compared,
        consumed=tuple(
            ConsumedSpan(*partition, member, since_ms, until_ms)
            for (partition, member, since_ms), until_ms in sorted(ends.items())
            if until_ms != since_ms or clock or (partition, member) in shared
        ),
    )


def _has_clock(settled: Settlement) -> bool:
    return settled.timed is not None or settled.coordinated is not None


def costs(settlements: Sequence[Settlement], events: int) -> Iterator[EventCost]:
    """Return the cost of each event; whatever settles after the last of them is added to that one."""
    owner: dict[TopicPartition, str] = {}
    read: Read | None = None
    rows: list[EventCost] = []
    seats = sum(is_seated(settled.event) for settled in settlements)
    for number, settled in enumerate(settlements, 1 - seats):
        moves = _moves(settled, owner)
        if number < 1:
            continue  # a member that was there before the first event
        cost = _cost(settled, moves, read)
        read = None if settled.timed is None else settled.timed.read
        row = EventCost(number, spoken(settled.event), settled.event.at_ms, cost, failure_of(settled))
        if number > events - seats and rows:
            before = rows.pop()
            both = _total([before, row], before.cost.double_owners + cost.double_owners)
            row = EventCost(before.number, before.event, before.at_ms, both, before.failure or row.failure)
        rows.append(row)
    yield from rows


def is_seated(event: e.Event) -> bool:
    """Whether this is no event, but a member that the group had before."""
    return isinstance(event, e.Join) and event.seat is not None


def spoken(event: e.Event) -> str:
    """`restart a`, `rename-process a b`, `set-partitions orders`."""
    return " ".join(filter(None, (NAMES[type(event)], *(getattr(event, name, None) for name in e.ABOUT))))


def failure_of(settled: Settlement) -> str | None:
    """Why an event did not settle, or was refused."""
    if settled.refused is not None:
        return f"refused: {settled.refused}"
    if settled.cycle is not None:
        return "never stable: rounds {} to {} repeat".format(*settled.cycle)
    return None if settled.failure is None else f"hangs: {settled.failure}"


def _cost(settled: Settlement, moves: int, before: Read | None) -> Cost:
    calls = [each.call for each in settled.calls]
    shares = _shares(settled)
    rounds = None if settled.coordinated is not None and not settled.rounds else len(settled.rounds)
    read = None if settled.timed is None else settled.timed.read
    return Cost(
        rounds=rounds,
        moves=None if shares else moves,
        revoked=None if shares else sum(len(each.partitions) for each in calls if each.callback is Callback.REVOKED),
        lost=None if shares else sum(len(each.partitions) for each in calls if each.callback is Callback.LOST),
        unavailable_rounds=None if _has_clock(settled) else sum(len(took.unavailable) for took in settled.rounds),
        unavailable_ms=sum(settled.unavailable_ms.values()),
        read_twice=None if read is None else _more(read, read.twice, {} if before is None else before.twice),
        never_read=None if read is None else _more(read, read.never, {} if before is None else before.never),
        double_owners=len({each.partition for each in settled.double_owners}),
    )


def _moves(settled: Settlement, owner: dict[TopicPartition, str]) -> int:
    """Partitions that come to another member than the last; `owner` is brought up to date."""
    moves = 0
    for each in sorted(settled.calls, key=lambda call: (call.ended_ms, call.order)):
        if each.call.callback is Callback.ASSIGNED:
            moves += sum(owner.get(partition, each.member) != each.member for partition in each.call.partitions)
            owner.update(dict.fromkeys(each.call.partitions, each.member))
    return moves


def _more(read: Read, now: Mapping[TopicPartition, int], before: Mapping[TopicPartition, int]) -> int:
    """Return what an event added to counts of the whole script; a topic that is gone takes nothing back."""
    return sum(now.get(each, 0) - before.get(each, 0) for each in read.ends)


def _total(rows: Sequence[EventCost], double_owners: int) -> Cost:
    """Return sums of what was counted; None: nothing was. A partition with two owners is counted once for all rows."""
    counts: dict[str, Any] = {}
    for name in (each.name for each in fields(Cost)):
        known = [count for row in rows if (count := getattr(row.cost, name)) is not None]
        counts[name] = sum(known) if known else None
    return Cost(**counts | {"unavailable_ms": counts["unavailable_ms"] or 0, "double_owners": double_owners})


# One script under another assignor, protocol or setting: what `groupledger simulate --compare` plays side by side.
#
# A variant is words joined by `+`: an assignor (`range`), `consumer` (KIP-848), `share` (KIP-932), `streams`
# (KIP-1071), `static` or `dynamic`, `name=value` for a setting of the script; `as-written` changes nothing. Worked
# example: `cooperative-sticky+static`.

BAD_VARIANT = "BAD_VARIANT"
AS_WRITTEN, STATIC, DYNAMIC = "as-written", "static", "dynamic"
COORDINATED = tuple(each.value for each in e.GroupProtocol if each.coordinated)
WORDS = (AS_WRITTEN, *COORDINATED, STATIC, DYNAMIC)
OF_BROKER = tuple(each.name for each in fields(ConsumerGroupSettings))
OF_CLIENT = tuple(each for each in (*OF_MEMBER, *OF_GROUP) if each not in OF_BROKER)
OF_KIND = {kind: tuple(each for each in kind.settings if each != TOPOLOGY) for kind in KINDS.values()}
SETTINGS = tuple(dict.fromkeys((*OF_MEMBER, *OF_GROUP, *OF_BROKER, *OF_KIND[STREAMS])))


@dataclass(frozen=True, slots=True)
class Variant:
    """What is changed about a script; None and nothing: as it is. `name` is how it was asked for."""

    name: str
    assignor: str | None = None
    coordinated: e.GroupProtocol | None = None
    static: bool | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def read_variants(text: str, assignors: Collection[str]) -> tuple[Variant, ...]:
    """Read the variants of `range,cooperative-sticky+static,consumer`; raise Fault("BAD_VARIANT")."""
    names = [each.strip() for each in text.split(",")]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise Fault(BAD_VARIANT, f"{twice[0]!r} is asked for twice; expected each variant once")
    return tuple(_read(name, assignors) for name in names)


def _read(name: str, assignors: Collection[str]) -> Variant:
    variant = Variant(name)
    for word in map(called, name.split("+")):
        key, equals, value = word.partition("=")
        if equals and key not in SETTINGS:
            raise Fault(BAD_VARIANT, f"{key!r} of {name!r} is no setting; expected one of {', '.join(SETTINGS)}")
        if equals:
            found = int(value) if value.isascii() and value.isdigit() else value
            variant = replace(variant, settings={**variant.settings, key: found})
        elif word in COORDINATED and variant.coordinated is None:
            variant = replace(variant, coordinated=e.GroupProtocol(word))
        elif word in (STATIC, DYNAMIC):
            variant = replace(variant, static=word == STATIC)
        elif word in assignors and variant.assignor is None:
            variant = replace(variant, assignor=word)
        elif word != AS_WRITTEN:
            known = ", ".join((*WORDS, *sorted(assignors)))
            raise Fault(BAD_VARIANT, f"{word!r} of {name!r} is no change; expected name=value, or one of {known}")
    if variant.coordinated is not None and variant.assignor is not None:
        got = f"{name!r} has the client-side assignor {variant.assignor}"
        expected = f"none beside {variant.coordinated.value}, where the broker assigns"
        raise Fault(BAD_VARIANT, f"{got}; expected {expected} (consumer: remote_assignor=..)")
    return variant


def changed(script: Script, variant: Variant) -> Script:
    """Return the script under a variant. Raise Fault: BAD_VARIANT, BAD_SCRIPT for a bad value of a setting."""
    before = [_with_topics(each, script) for each in script.events]
    events = [_join(each, variant) if isinstance(each, e.Join) else each for each in before]
    joins = [each for each in events if isinstance(each, e.Join)]
    kind = kind_of(events)
    if kind is not None:
        return _of_kind(replace(script, events=events), variant, kind)
    if any(each.group_protocol is e.GroupProtocol.CONSUMER for each in joins):
        return _of_consumer_group(replace(script, events=events), variant)
    _require_known(variant, (*OF_MEMBER, *OF_GROUP), "a group of classic members")
    return _with_times(replace(script, events=events, consumer_group=ConsumerGroupSettings()), variant.settings)


def _with_topics(event: e.Event, script: Script) -> e.Event:
    """Let a member of a Streams group subscribe as it would under another protocol: to the topics of the topology."""
    settings = script.consumer_group
    if not isinstance(event, e.Join) or not isinstance(settings, StreamsGroupSettings):
        return event
    topics = sorted({topic for each in settings.topology.values() for topic in each.source_topics})
    return replace(event, topics=tuple(topics))


def _join(join: e.Join, variant: Variant) -> e.Join:
    """Return a member as the variant has it, with those fields alone that members of its kind have."""
    protocol = variant.coordinated or (e.GroupProtocol.CLASSIC if variant.assignor else join.group_protocol)
    if protocol in KINDS and join.seat is not None:
        held = f"{join.member!r} holds partitions as they were recorded"
        raise Fault(BAD_VARIANT, f"{held}; expected a script without seats for {KINDS[protocol].group}")
    if protocol in KINDS:
        known = {name: getattr(join, name) for name in KINDS[protocol].join_fields}
        join = e.Join(**{**known, "group_protocol": protocol})
    elif join.process_id is not None:
        join = replace(join, process_id=None)
    if variant.static is not None:
        join = replace(join, group_instance_id=(join.group_instance_id or join.member) if variant.static else None)
    _require_library(join, variant)
    if variant.coordinated is not None:
        return replace(join, group_protocol=variant.coordinated)
    if variant.assignor is None:
        return join
    classic = replace(join, group_protocol=e.GroupProtocol.CLASSIC, remote_assignor=None)
    return replace(classic, assignors=(variant.assignor,), rebalance_timeout_ms=e.MAX_POLL_INTERVAL_MS)


def _require_library(join: e.Join, variant: Variant) -> None:
    """Raise Fault("BAD_CLIENT") for a member whose client library cannot take part in the variant."""
    place = f"under {variant.name}: {join.member}"
    if variant.coordinated == e.GroupProtocol.CONSUMER and not LIBRARIES[join.library].speaks_kip_848:
        raise Fault(BAD_CLIENT, f"{place} is a client of {join.library}, which does not speak KIP-848")
    shipped = any(variant.assignor in each.assignors for each in LIBRARIES.values())  # others are somebody's own code
    if variant.assignor is not None and shipped:  # by its newest release: a script may put one into older byte code
        require_assignors(ClientLibrary(join.library, ByteCode.KIP_792, ()), (variant.assignor,), place)


def _of_consumer_group(script: Script, variant: Variant) -> Script:
    """With settings of the broker, which has heartbeats and sessions of such a group, and with times of its members."""
    _require_known(variant, (*OF_BROKER, *OF_CLIENT), "a group with members of the consumer protocol")
    of_broker = {name: value for name, value in variant.settings.items() if name in OF_BROKER}
    kept = {name: value for name, value in write_settings(script.consumer_group).items() if name in OF_BROKER}
    settings = read_settings({**kept, **of_broker})
    of_client = {name: value for name, value in variant.settings.items() if name not in OF_BROKER}
    return replace(_with_times(script, of_client), consumer_group=settings)


def _of_kind(script: Script, variant: Variant, kind: GroupKind) -> Script:
    """With settings of the broker. A Streams group without a topology has one subtopology that reads all topics."""
    if variant.static and "group_instance_id" not in kind.join_fields:
        raise Fault(BAD_VARIANT, f"{variant.name!r} has static members; expected none in {kind.group}")
    _require_known(variant, OF_KIND[kind], kind.group)
    kept = {name: value for name, value in write_settings(script.consumer_group).items() if name in kind.settings}
    if kind is STREAMS and TOPOLOGY not in kept:
        kept[TOPOLOGY] = write_topology({"0": SubtopologyTopics(tuple(sorted(script.topics)))})
    return replace(script, consumer_group=read_settings({**kept, **variant.settings}, kind.protocol))


def _with_times(script: Script, found: Mapping[str, Any]) -> Script:
    """With these times, for all members; a script without times gets Kafka's own for what is not said."""
    if not found:
        return script
    known = write_times(script.times or Times())
    of_member = {name: value for name, value in found.items() if name in OF_MEMBER}
    members = {name: {**of, **of_member} for name, of in known.pop(MEMBERS, {}).items()}
    return replace(script, times=read_times({**known, **found, MEMBERS: members}))


def _require_known(variant: Variant, names: Sequence[str], of: str) -> None:
    unknown = next((name for name in variant.settings if name not in names), None)
    if unknown is not None:
        expected = f"one of {', '.join(names)} for {of}"
        raise Fault(BAD_VARIANT, f"{unknown} of {variant.name!r} is no setting here; expected {expected}")
