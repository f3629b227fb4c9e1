"""One script under another assignor, protocol or setting: what `groupledger simulate --compare` plays side by side.

A variant is words joined by `+`: an assignor (`range`), `consumer` (KIP-848), `share` (KIP-932), `streams` (KIP-1071),
`static` or `dynamic`, `name=value` for a setting of the script; `as-written` changes nothing. Worked example:
`cooperative-sticky+static`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.client_library import BAD_CLIENT, ClientLibrary, require_assignors
from groupledger.core.protocol.compatibility import LIBRARIES, ByteCode
from groupledger.core.protocol.consumer_group.settings import ConsumerGroupSettings, StreamsGroupSettings
from groupledger.core.protocol.consumer_group.topology import SubtopologyTopics
from groupledger.core.protocol.consumer_group_json import TOPOLOGY, read_settings, write_settings
from groupledger.core.protocol.group_kinds import KINDS, STREAMS, GroupKind, kind_of
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.times import Times
from groupledger.core.protocol.times_json import MEMBERS, OF_GROUP, OF_MEMBER, read_times, write_times
from groupledger.core.protocol.topology_json import write_topology

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
    """The variants of `range,cooperative-sticky+static,consumer`; raises Fault("BAD_VARIANT")."""
    names = [each.strip() for each in text.split(",")]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise Fault(BAD_VARIANT, f"{twice[0]!r} is asked for twice; expected each variant once")
    return tuple(_read(name, assignors) for name in names)


def _read(name: str, assignors: Collection[str]) -> Variant:
    variant = Variant(name)
    for word in name.split("+"):
        key, equals, value = word.partition("=")
        if equals:
            variant = _with_setting(variant, key, value)
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
        told = f"{name!r} has the client-side assignor {variant.assignor}"
        expected = f"none beside {variant.coordinated.value}, where the broker assigns"
        raise Fault(BAD_VARIANT, f"{told}; expected {expected} (consumer: remote_assignor=..)")
    return variant


def _with_setting(variant: Variant, key: str, value: str) -> Variant:
    if key not in SETTINGS:
        raise Fault(BAD_VARIANT, f"{key!r} of {variant.name!r} is no setting; expected one of {', '.join(SETTINGS)}")
    told: Any = int(value) if value.isascii() and value.isdigit() else value
    return replace(variant, settings={**variant.settings, key: told})


def changed(script: Script, variant: Variant) -> Script:
    """The script under a variant. Raises Fault: BAD_VARIANT, and BAD_SCRIPT for a value that a setting cannot have."""
    before = [_with_topics(each, script) for each in script.events]
    events = [_join(each, variant) if isinstance(each, e.Join) else each for each in before]
    joins = [each for each in events if isinstance(each, e.Join)]
    kind = kind_of(events)
    if kind is not None:
        return _of_kind(replace(script, events=events), variant, kind)
    if any(each.group_protocol is e.GroupProtocol.CONSUMER for each in joins):
        return _of_consumer_group(replace(script, events=events), variant)
    return _of_classic_group(replace(script, events=events, consumer_group=ConsumerGroupSettings()), variant)


def _with_topics(event: e.Event, script: Script) -> e.Event:
    """A member of a Streams group as it would subscribe under another protocol: to the topics of the topology."""
    settings = script.consumer_group
    if not isinstance(event, e.Join) or not isinstance(settings, StreamsGroupSettings):
        return event
    topics = sorted({topic for each in settings.topology.values() for topic in each.source_topics})
    return replace(event, topics=tuple(topics))


def _join(join: e.Join, variant: Variant) -> e.Join:
    """A member as the variant has it, with those fields alone that members of its kind have."""
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
    if variant.assignor is not None:  # of its newest release: a script may put an assignor into older byte code
        require_assignors(ClientLibrary(join.library, ByteCode.KIP_792, ()), (variant.assignor,), place)


def _of_classic_group(script: Script, variant: Variant) -> Script:
    """With times of the variant, for all members; a script without times gets Kafka's own for what is not said."""
    _require_known(variant, (*OF_MEMBER, *OF_GROUP), "a group of classic members")
    return _with_times(script, variant.settings)


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


def _with_times(script: Script, told: Mapping[str, Any]) -> Script:
    """With these times, for all members; a script without times gets Kafka's own for what is not said."""
    if not told:
        return script
    known = write_times(script.times or Times())
    of_member = {name: value for name, value in told.items() if name in OF_MEMBER}
    members = {name: {**of, **of_member} for name, of in known.pop(MEMBERS, {}).items()}
    return replace(script, times=read_times({**known, **told, MEMBERS: members}))


def _require_known(variant: Variant, names: Sequence[str], of: str) -> None:
    unknown = next((name for name in variant.settings if name not in names), None)
    if unknown is not None:
        expected = f"one of {', '.join(names)} for {of}"
        raise Fault(BAD_VARIANT, f"{unknown} of {variant.name!r} is no setting here; expected {expected}")
