"""A script as a JSON object, and what came of it as one: the format of `groupledger simulate` and of the fleet job.

A script: {"id": "payments", "topics": {"orders": 6}, "form": "kip", "events": [{"event": "join", "member": "a",
"topics": ["orders"]}, {"event": "set-partitions", "topic": "orders", "partitions": 8, "at_ms": 60000}]}. The names of
events are those of `core.protocol.events` in kebab-case, with the same fields; `consumer_group` has the fields of
`ConsumerGroupSettings`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from itertools import islice
from typing import Any

from groupledger.core.assignors.server.assign import ASSIGNORS
from groupledger.core.custom.group import TopicPartition
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.callbacks import Callback
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer_group.process import HeartbeatRow, TargetRow
from groupledger.core.protocol.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from groupledger.core.protocol.consumer_group.settling import Coordinated, MemberRow
from groupledger.core.protocol.happening import HAPPENS
from groupledger.core.protocol.ownership import DoubleOwner
from groupledger.core.protocol.settlement import MemberCall, MemberRound, Pace, Round, Settlement
from groupledger.core.protocol.simulator import Script, simulate_all
from groupledger.core.step import Form
from groupledger.core.visible_text import json_text

BAD_SCRIPT = "BAD_SCRIPT"
TOGETHER = 500
"""Scripts that are played side by side: enough to share the assignors' calls, few enough for memory."""

EVENTS = {re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower(): kind for kind in HAPPENS}
NAMES = {kind: name for name, kind in EVENTS.items()}
MOST_PARTITIONS = 100_000
LISTS = frozenset({"topics", "assignors"})
FLAGS = frozenset({"upgrade_from", "together"})
NUMBERS = {"at_ms": 2**53, "partitions": MOST_PARTITIONS, "rebalance_timeout_ms": 2**31}
ENUMS = {"byte_code": ByteCode.__members__, "group_protocol": {each.value: each for each in e.GroupProtocol}}
OPTIONAL = frozenset({"group_instance_id", "remote_assignor", "topic_regex"})


def simulate_lines(lines: Iterable[str], custom: Mapping[str, CustomAssignor] | None = None) -> Iterator[str]:
    """One result line for each script line, in order; a line that cannot be played becomes an error."""
    numbered = enumerate(lines, 1)
    while some := list(islice(numbered, TOGETHER)):
        for result in _play_some(some, custom):
            yield json_text(result)


def _play_some(lines: list[tuple[int, str]], custom: Mapping[str, CustomAssignor] | None) -> Iterator[dict[str, Any]]:
    read = [(number, *read_line(line)) for number, line in lines]
    results = iter(simulate_all([script for *_, script in read if isinstance(script, Script)], custom))
    for number, name, script in read:
        result = script if isinstance(script, Fault) else next(results)
        if isinstance(result, Fault):
            yield {"id": name, "line": number, "error": f"{result.code}: {result.message}"}
        else:
            yield {"id": name, "events": [told(each) for each in result]}


def read_line(line: str) -> tuple[Any, Script | Fault]:
    """The id and the script of a line; what is wrong with it, if something is."""
    name = None
    try:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Fault("BAD_JSON", f"{error}; expected one JSON object a line") from error
        _require(isinstance(found, dict), "the script", found, "an object")
        name = found.get("id")
        return name, read_script(found)
    except Fault as fault:
        return name, fault


def read_script(found: Mapping[str, Any]) -> Script:
    """The script of a JSON object; raises Fault("BAD_SCRIPT"), which says where it is wrong."""
    topics = found.get("topics")
    _require(isinstance(topics, dict), "topics", topics, "an object of partition counts")
    for topic, count in (topics or {}).items():
        _whole(count, f"topics.{topic}", MOST_PARTITIONS)
    events = found.get("events")
    _require(isinstance(events, list), "events", events, "a list")
    form = found.get("form", Form.KIP)
    _one_of(form, list(Form), "form")
    told_events = [_event(each, f"events.{at}") for at, each in enumerate(events or ())]
    pace, settings = _pace(found.get("pace", {})), _settings(found.get("consumer_group", {}))
    return Script(dict(topics or {}), told_events, Form(form), pace, consumer_group=settings)


def _settings(found: Any) -> ConsumerGroupSettings:
    """`{"heartbeat_interval_ms": 5000, "remote_assignor": "range"}`."""
    place = "consumer_group"
    _require(isinstance(found, dict), place, found, "an object")
    known = [each.name for each in fields(ConsumerGroupSettings)]
    choices: dict[str, Iterable[str]] = {"remote_assignor": ASSIGNORS, "migration_policy": list(MigrationPolicy)}
    for name, value in found.items():
        _one_of(name, known, place)
        if name in choices:
            _one_of(value, choices[name], f"{place}.{name}")
        else:
            _whole(value, f"{place}.{name}", 2**31)
            _require(value > 0 or name == "assignment_interval_ms", f"{place}.{name}", value, "more than 0")
    policy = MigrationPolicy(found.get("migration_policy", MigrationPolicy.BIDIRECTIONAL))
    return ConsumerGroupSettings(**{**found, "migration_policy": policy})


def _pace(found: Any) -> Pace:
    """`{"round_ms": 100, "onPartitionsRevoked": 40}`."""
    _require(isinstance(found, dict), "pace", found, "an object of milliseconds")
    known = sorted({"round_ms", *Callback})
    for name, value in found.items():
        _one_of(name, known, "pace")
        _whole(value, f"pace.{name}", 2**31)
    return Pace(found.get("round_ms", 0), {each: found[each] for each in Callback if each in found})


def _event(found: Any, place: str) -> e.Event:
    _require(isinstance(found, dict), place, found, "an object")
    name = found.get("event")
    _one_of(name, EVENTS, f"{place}.event")
    kind = EVENTS[str(name)]
    values = {key: value for key, value in found.items() if key != "event"}
    known = {each.name: each.default is MISSING for each in fields(kind)}
    for key in values:
        _one_of(key, known, place)
    for key, needed in known.items():
        _require(key in values or not needed, f"{place}.{key}", values.get(key), "a value")
    return kind(**{key: _value(key, value, f"{place}.{key}") for key, value in values.items()})


def _value(key: str, value: Any, place: str) -> Any:
    """A field of an event, in the type it has there."""
    if key in LISTS:
        _require(
            isinstance(value, list) and all(isinstance(each, str) for each in value), place, value, "a list of texts"
        )
        return tuple(value)
    if key in NUMBERS:
        _whole(value, place, NUMBERS[key])
    elif key in ENUMS:
        _one_of(value, ENUMS[key], place)
        return ENUMS[key][value]
    elif key in FLAGS:
        _require(isinstance(value, bool), place, value, "true or false")
    else:
        _require(isinstance(value, str) or (key in OPTIONAL and value is None), place, value, "a text")
    return value


def write_script(script: Script, name: str) -> dict[str, Any]:
    """The JSON object of a script without a pace: `read_script` gives the script again."""
    events = [{"event": NAMES[type(each)], **_fields(each)} for each in script.events]
    told = {"id": name, "topics": dict(script.topics), "form": script.form.value, "events": events}
    settings = _fields(script.consumer_group)
    return {**told, "consumer_group": settings} if settings else told


def _fields(event: e.Event | ConsumerGroupSettings) -> dict[str, Any]:
    """Those fields of an event, or of settings, that are not at their default."""
    pairs = ((each.name, getattr(event, each.name), each.default) for each in fields(event))
    return {name: _plain(value) for name, value, default in pairs if value != default}


def _plain(value: Any) -> Any:
    if isinstance(value, ByteCode):
        return value.name
    return list(value) if isinstance(value, tuple) else value


def told(settled: Settlement) -> dict[str, Any]:
    """One event and what came of it, as a JSON object."""
    return {
        "event": NAMES[type(settled.event)],
        **_fields(settled.event),
        "stable": settled.stable,
        "rounds": [_round(each) for each in settled.rounds],
        "calls": [_call(each) for each in settled.calls],
        "unowned": _pairs(settled.unowned),
        "cycle": None if settled.cycle is None else list(settled.cycle),
        "failure": settled.failure,
        "refused": settled.refused,
        "unavailable_ms": [[*each, waited] for each, waited in settled.unavailable_ms.items()],
        "double_owners": [_double_owner(each) for each in settled.double_owners],
        **({} if settled.coordinated is None else {"consumer_group": _coordinated(settled.coordinated)}),
    }


def _coordinated(group: Coordinated) -> dict[str, Any]:
    return {
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_listed(each) for each in group.members],
        "heartbeats": [_listed(each) for each in group.heartbeats],
        "targets": [_target(each) for each in group.targets],
    }


def _listed(row: MemberRow | HeartbeatRow) -> dict[str, Any]:
    """A row whose tuples are partitions."""
    return {name: _pairs(value) if isinstance(value, tuple) else value for name, value in row._asdict().items()}


def _target(row: TargetRow) -> dict[str, Any]:
    return {
        "at_ms": row.at_ms,
        "epoch": row.epoch,
        "assignor": row.assignor,
        "targets": {member: _pairs(partitions) for member, partitions in row.targets},
    }


def _round(took: Round) -> dict[str, Any]:
    return {
        "round": took.number,
        "generation": took.generation,
        "assignor": took.assignor,
        "leader": took.leader,
        "members": [_member(each) for each in took.members],
        "maybe_revoking": _pairs(took.sets.maybe_revoking),
        "ready_to_migrate": _pairs(took.sets.ready_to_migrate),
        "unknown_but_owned": _pairs(took.sets.unknown_but_owned),
        "unavailable": _pairs(took.unavailable),
    }


def _member(row: MemberRound) -> dict[str, Any]:
    return {
        "member": row.member,
        "member_id": row.member_id,
        "protocol": row.protocol.value,
        "owned": _pairs(row.owned),
        "target": _pairs(row.target),
        "assigned": _pairs(row.assigned),
        "answered": row.answered,
        "joins_again": row.joins_again,
    }


def _call(each: MemberCall) -> dict[str, Any]:
    return {
        "round": each.round,
        "member": each.member,
        "callback": each.call.callback.value,
        "partitions": _pairs(each.call.partitions),
        "started_ms": each.started_ms,
        "ended_ms": each.ended_ms,
    }


def _double_owner(each: DoubleOwner) -> dict[str, Any]:
    return {
        "partition": list(each.partition),
        "members": list(each.members),
        "since_ms": each.since_ms,
        "until_ms": each.until_ms,
    }


def _pairs(partitions: Iterable[TopicPartition]) -> list[list[Any]]:
    return [list(each) for each in partitions]


def _whole(value: Any, place: str, most: int) -> None:
    _require(type(value) is int and 0 <= value <= most, place, value, f"a whole number from 0 to {most:,}")


def _one_of(value: Any, names: Iterable[str], place: str) -> None:
    known = list(names)
    _require(isinstance(value, str) and value in known, place, value, "one of " + ", ".join(known))


def _require(holds: bool, place: str, got: Any, expected: str) -> None:
    if not holds:
        shown = "nothing" if got is None else repr(got)[:80]
        raise Fault(BAD_SCRIPT, f"{place} is {shown}; expected {expected}")
