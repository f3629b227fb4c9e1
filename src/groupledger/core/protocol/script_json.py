"""A script as a JSON object, and what came of it as one: the format of `groupledger simulate` and of the fleet job.

A script: {"id": "payments", "topics": {"orders": 6}, "form": "kip", "events": [{"event": "join", "member": "a",
"topics": ["orders"]}, {"event": "set-partitions", "topic": "orders", "partitions": 8, "at_ms": 60000}]}; with "times",
its rounds are driven by a clock. The names of events are those of `core.protocol.events` in kebab-case, with the same
fields; `consumer_group` has the fields of `ConsumerGroupSettings`, `share_group` and `streams_group` those of theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from itertools import islice
from typing import Any

from groupledger.core.custom.custom_group import CustomAssignor, TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import (
    BAD_CLIENT,
    LIBRARIES,
    ByteCode,
    read_client_library,
    require_assignors,
)
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.leader import stand_in
from groupledger.core.protocol.metrics import of_simulation, whole
from groupledger.core.protocol.script import (
    KINDS,
    MOST_MS,
    MOST_PARTITIONS,
    coordinator_of,
    group_key,
    pairs_of,
    read_settings,
    read_times,
    require,
    require_consumers,
    require_one_of,
    require_whole,
    write_coordinated,
    write_settings,
    write_times,
)
from groupledger.core.protocol.settlement import MemberCall, MemberRound, Pace, Round, Settlement, TimedEnd
from groupledger.core.protocol.simulator import MOST_ROUNDS, Script, simulate_all
from groupledger.core.rebalance.registry import JAVA
from groupledger.core.rebalance.step import Form
from groupledger.core.text import json_text

TOGETHER = 500
"""Scripts that are played side by side: enough to share the assignors' calls, few enough for memory."""

EVENTS = {re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower(): kind for kind in e.KINDS}
FieldReader = Callable[[Any, str], Any]
NAMES = {kind: name for name, kind in EVENTS.items()}
KEYS = (
    "id",
    "topics",
    "form",
    "generation",
    "pace",
    "times",
    "events",
    *map(group_key, (e.GroupProtocol.CONSUMER, *KINDS)),
)


def simulate_lines(
    lines: Iterable[str], custom: Mapping[str, CustomAssignor] | None = None, *, metrics: bool = False
) -> Iterator[str]:
    """One result line for each script line, in order; a line that cannot be played becomes an error."""
    numbered = enumerate(lines, 1)
    while some := list(islice(numbered, TOGETHER)):
        for result in _play_some(some, custom, metrics=metrics):
            yield json_text(result)


def _play_some(
    lines: list[tuple[int, str]], custom: Mapping[str, CustomAssignor] | None, *, metrics: bool
) -> Iterator[dict[str, Any]]:
    read = [(number, *read_line(line)) for number, line in lines]
    results = iter(simulate_all([script for *_, script in read if isinstance(script, Script)], custom))
    for number, name, script in read:
        result = script if isinstance(script, Fault) else next(results)
        try:
            if isinstance(result, Fault):
                raise result
            found = result_of(name, result, metrics=metrics)
        except Fault as fault:
            found = refused_line(name, number, fault)
        yield found


def refused_line(name: Any, number: int, fault: Fault) -> dict[str, Any]:
    """Return the result of a line that cannot be played."""
    return {"id": name, "line": number, "error": f"{fault.code}: {fault.message}"}


def result_of(name: Any, settlements: list[Settlement], *, metrics: bool) -> dict[str, Any]:
    """Return the result of a script: each event with its outcome, and KIP-429's metrics of the whole if asked for."""
    result: dict[str, Any] = {"id": name, "events": [settlement_json(each) for each in settlements]}
    if notes := _stand_ins(settlements):
        result["notes"] = notes
    if metrics:
        require_consumers((each.event for each in settlements), "metrics")
        result["metrics"] = [each._asdict() for each in of_simulation(settlements, whole(settlements))]
    return result


def _stand_ins(settlements: Iterable[Settlement]) -> list[str]:
    """Say where a leader of another library was simulated with Java's algorithm."""
    library: dict[str, str] = {}
    found: dict[str, None] = {}
    for settled in settlements:
        if isinstance(settled.event, e.Join):
            library[settled.event.member] = settled.event.library
        elif isinstance(settled.event, e.RenameProcess):
            library[settled.event.to] = library.get(settled.event.member, JAVA)
        for took in settled.rounds:
            note = stand_in(library.get(took.leader or "", JAVA), took.assignor or "")
            found |= {} if note is None else {note: None}
    return list(found)


def read_line(line: str) -> tuple[Any, Script | Fault]:
    """Return the id and the script of a line; the Fault, if something is wrong with it."""
    name = None
    try:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Fault("BAD_JSON", f"{error}; expected one JSON object a line") from error
        require(isinstance(found, dict), "the script", found, "an object")
        name = found.get("id")
        return name, read_script(found)
    except Fault as fault:
        return name, fault


def read_script(found: Mapping[str, Any]) -> Script:
    """Read the script of a JSON object; raise Fault("BAD_SCRIPT"), which names the place."""
    for key in found:
        require_one_of(key, KEYS, "a key")
    topics = found.get("topics")
    require(isinstance(topics, dict), "topics", topics, "an object of partition counts")
    for topic, count in (topics or {}).items():
        require_whole(count, f"topics.{topic}", MOST_PARTITIONS)
    events = found.get("events")
    require(isinstance(events, list), "events", events, "a list")
    form = found.get("form", Form.KIP)
    require_one_of(form, list(Form), "form")
    found_events = [_event(each, f"events.{at}") for at, each in enumerate(events or ())]
    _require_order(events or ())
    if found_events:
        last = f"events.{len(found_events) - 1}.together"
        require(not found_events[-1].together, last, True, "false: no event comes after this one")
    require_seats_first(found_events)
    generation = found.get("generation", 0)
    require_whole(generation, "generation", MOST_GENERATION)
    pace, times = _pace(found.get("pace", {})), read_times(found["times"]) if "times" in found else None
    rounds = "no round_ms beside times: a round takes round_trip_ms"
    require(times is None or not pace.round_ms, "pace.round_ms", pace.round_ms, rounds)
    protocol = coordinator_of(found_events)
    for each in (e.GroupProtocol.CONSUMER, *KINDS):
        key = group_key(each)
        require(each is protocol or key not in found, key, found.get(key), f"{group_key(protocol)}, of its members")
    settings = read_settings(found.get(group_key(protocol), {}), protocol)
    return Script(
        dict(topics or {}), found_events, Form(form), pace, times=times, consumer_group=settings, generation=generation
    )


def _require_order(events: Iterable[Mapping[str, Any]]) -> None:
    """Check that no event says a time before that of an earlier one; one that says none follows the one before."""
    last = 0
    for at, found in enumerate(events):
        place, now = f"events.{at}.at_ms", found.get("at_ms", last)
        require(now >= last, place, now, f"a whole number from {last:,}, the time of an event before it")
        last = now


def _pace(found: Any) -> Pace:
    """`{"round_ms": 100, "onPartitionsRevoked": 40}`."""
    require(isinstance(found, dict), "pace", found, "an object of milliseconds")
    known = sorted({"round_ms", *Callback})
    for name, value in found.items():
        require_one_of(name, known, "pace")
        require_whole(value, f"pace.{name}", MOST_MS)
    return Pace(found.get("round_ms", 0), {each: found[each] for each in Callback if each in found})


def _event(found: Any, place: str) -> e.Event:
    require(isinstance(found, dict), place, found, "an object")
    name = found.get("event")
    require_one_of(name, EVENTS, f"{place}.event")
    kind = EVENTS[str(name)]
    values = _with_client({key: value for key, value in found.items() if key != "event"}, kind, place)
    known = {each.name: each.default is MISSING for each in fields(kind)}
    for key in values:
        require_one_of(key, ("client", *known) if kind is e.Join else known, f"a key of {place}")
    if kind is e.Join:  # a topology or an expression says which topics
        protocol = READS["GroupProtocol"](values.get("group_protocol", "classic"), f"{place}.group_protocol")
        known["topics"] = protocol is not e.GroupProtocol.STREAMS and "topic_regex" not in values
    for key, needed in known.items():
        require(key in values or not needed, f"{place}.{key}", values.get(key), "a value")
    read = {each.name: READS[str(each.type)] for each in fields(kind)}
    return kind(**{key: read[key](value, f"{place}.{key}") for key, value in values.items()})


def _with_client(values: dict[str, Any], kind: type[e.Event], place: str) -> dict[str, Any]:
    """`"client": "java@2.3"` of a join says its library and its byte code; it lists what that has, or its default."""
    if kind is not e.Join or "client" not in values:
        return values
    found = values.pop("client")
    require(isinstance(found, str), f"{place}.client", found, "a text")
    for name in ("byte_code", "library"):
        require(name not in values, f"{place}.{name}", values.get(name), "none beside client, which says it")
    client = read_client_library(found)
    protocol = values.get("group_protocol", e.GroupProtocol.CLASSIC)
    if protocol == e.GroupProtocol.CONSUMER and not LIBRARIES[client.name].speaks_kip_848:
        message = f"{place}.group_protocol is {protocol}, which {client.name} does not speak (KIP-848)"
        raise Fault(BAD_CLIENT, message)
    if protocol == e.GroupProtocol.CLASSIC:
        values.setdefault("assignors", list(client.default))
    listed = values.get("assignors", [])
    if isinstance(listed, list) and protocol == e.GroupProtocol.CLASSIC:
        require_assignors(client, tuple(each for each in listed if isinstance(each, str)), place)
    return {**values, "byte_code": client.byte_code.name, "library": client.name}


def _expect(
    expected: str, holds: Callable[[Any], bool], made: Callable[[Any], Any] = lambda value: value
) -> FieldReader:
    def read(value: Any, place: str) -> Any:
        require(holds(value), place, value, expected)
        return value if made is None else made(value)

    return read


def _up_to(most: int) -> FieldReader:
    def whole(value: Any, place: str) -> Any:
        require_whole(value, place, most)
        return value

    return whole


def _one_of(known: Mapping[str, Any]) -> FieldReader:
    def member(value: Any, place: str) -> Any:
        require_one_of(value, known, place)
        return known[value]

    return member


def write_script(script: Script, name: str) -> dict[str, Any]:
    """Return the JSON object of a script: `read_script` gives the script again."""
    events = [{"event": NAMES[type(each)], **_fields(each)} for each in script.events]
    found = {"id": name, "topics": dict(script.topics), "form": script.form.value, "events": events}
    parts = {
        "generation": script.generation,
        "pace": {
            **({"round_ms": script.pace.round_ms} if script.pace.round_ms else {}),
            **{each.value: ms for each, ms in script.pace.callback_ms.items()},
        },
        "times": None if script.times is None else write_times(script.times),
        group_key(coordinator_of(script.events)): write_settings(script.consumer_group),
    }
    return {**found, **{key: part for key, part in parts.items() if part}}


def _fields(event: e.Event) -> dict[str, Any]:
    """Those fields of an event that are not at their default."""
    pairs = ((each.name, getattr(event, each.name), each.default) for each in fields(event))
    return {name: _plain(value) for name, value, default in pairs if value != default}


def _plain(value: Any) -> Any:
    if isinstance(value, ByteCode):
        return value.name
    if isinstance(value, e.RecordedSeat):
        pairs = {"assigned": pairs_of(value.assigned), "claimed": pairs_of(value.claimed)}
        return {**asdict(value), **pairs}
    return list(value) if isinstance(value, tuple) else value


def settlement_json(settled: Settlement) -> dict[str, Any]:
    """One event and what came of it, as a JSON object."""
    group = settled.coordinated
    return {
        "event": NAMES[type(settled.event)],
        **_fields(settled.event),
        "stable": settled.stable,
        "rounds": [_round(each) for each in settled.rounds],
        "calls": [_call(each) for each in settled.calls],
        "unowned": pairs_of(settled.unowned),
        "cycle": None if settled.cycle is None else list(settled.cycle),
        "failure": settled.failure,
        "refused": settled.refused,
        "unavailable_ms": [[*each, waited] for each, waited in settled.unavailable_ms.items()],
        "double_owners": [
            {**each._asdict(), "partition": list(each.partition), "members": list(each.members)}
            for each in settled.double_owners
        ],
        **({} if settled.timed is None else _timed(settled.timed)),
        **({} if group is None else {group_key(group.protocol): write_coordinated(group)}),
    }


def _timed(end: TimedEnd) -> dict[str, Any]:
    """Return the keys of a result in a group that has times."""
    outages = [[*each.partition, each.since_ms, each.until_ms] for each in end.outages]
    found: dict[str, Any] = {"ended_ms": end.at_ms, "rebalancing": end.rebalancing, "outages": outages}
    if end.read is not None:
        for name in ("twice", "never", "committed"):
            found[name] = [[*each, count] for each, count in getattr(end.read, name).items()]
    return found


def _round(took: Round) -> dict[str, Any]:
    return {
        "round": took.number,
        "generation": took.generation,
        "assignor": took.assignor,
        "leader": took.leader,
        "members": [_member(each) for each in took.members],
        "maybe_revoking": pairs_of(took.sets.maybe_revoking),
        "ready_to_migrate": pairs_of(took.sets.ready_to_migrate),
        "unknown_but_owned": pairs_of(took.sets.unknown_but_owned),
        "unavailable": pairs_of(took.unavailable),
    }


def _member(row: MemberRound) -> dict[str, Any]:
    return {
        "member": row.member,
        "member_id": row.member_id,
        "protocol": row.protocol.value,
        "owned": pairs_of(row.owned),
        "target": pairs_of(row.target),
        "assigned": pairs_of(row.assigned),
        "answered": row.answered,
        "joins_again": row.joins_again,
        **({} if row.started_ms is None else {"started_ms": row.started_ms, "ended_ms": row.ended_ms}),
    }


def _call(each: MemberCall) -> dict[str, Any]:
    return {
        "round": each.round,
        "member": each.member,
        "callback": each.call.callback.value,
        "partitions": pairs_of(each.call.partitions),
        "started_ms": each.started_ms,
        "ended_ms": each.ended_ms,
    }


# Members that a group has before the first event, as JSON: the key `seat` of a join.
#
# Worked example: {"member_id": "m1-7f", "assigned": [["orders", 0]], "claimed": [["orders", 0]], "claimed_generation":
# 4, "leads": true}.

MOST_GENERATION = 2**31 - 1
SEAT_KEYS = ("member_id", "assigned", "claimed", "claimed_generation", "leads")


def read_seat(found: Any, place: str) -> e.RecordedSeat:
    """Read a seat. Raises Fault("BAD_SCRIPT"), which says where it is wrong."""
    require(isinstance(found, dict), place, found, "an object")
    for key in found:
        require_one_of(key, SEAT_KEYS, f"a key of {place}")
    member_id, dated, leads = found.get("member_id"), found.get("claimed_generation"), found.get("leads", False)
    require(isinstance(member_id, str) and member_id != "", f"{place}.member_id", member_id, "a text that is not empty")
    require(isinstance(leads, bool), f"{place}.leads", leads, "true or false")
    if dated is not None:
        require_whole(dated, f"{place}.claimed_generation", MOST_GENERATION)
    assigned, claimed = (_partitions(found.get(key, []), f"{place}.{key}") for key in ("assigned", "claimed"))
    return e.RecordedSeat(str(member_id), assigned, claimed, dated, leads)


def _partitions(found: Any, place: str) -> tuple[TopicPartition, ...]:
    require(isinstance(found, list), place, found, "a list of [topic, partition]")
    for at, each in enumerate(found):
        pair = isinstance(each, list) and len(each) == 2 and isinstance(each[0], str)
        require(pair, f"{place}.{at}", each, "[topic, partition]")
        require_whole(each[1], f"{place}.{at}.1", MOST_PARTITIONS)
    return tuple(TopicPartition(topic, number) for topic, number in found)


def require_seats_first(events: Sequence[e.Event]) -> None:
    """Raise Fault("BAD_SCRIPT") if a member is recorded after another event, or twice."""
    seats = {at: each.seat for at, each in enumerate(events) if isinstance(each, e.Join) and each.seat is not None}
    known: set[str] = set()
    for place, (at, seat) in enumerate(seats.items()):
        require(at == place, f"events.{at}.seat", seat.member_id, "recorded members before all other events")
        require(seat.member_id not in known, f"events.{at}.seat.member_id", seat.member_id, "an id of its own")
        known.add(seat.member_id)
    leaders = [each.member_id for each in seats.values() if each.leads]
    require(len(leaders) < 2, "seat.leads", ", ".join(leaders), "one leader")


READS: dict[str, FieldReader] = {
    "str": _expect("a text that is not empty", lambda value: isinstance(value, str) and value != ""),
    "str | None": _expect("a text that is not empty", lambda value: isinstance(value, str | None) and value != ""),
    "tuple[str, ...]": _expect(
        "a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value), tuple
    ),
    "bool": _expect("true or false", lambda value: isinstance(value, bool)),
    "Moment": _up_to(2**53),
    "Milliseconds": _up_to(MOST_MS),
    "Partitions": _up_to(MOST_PARTITIONS),
    "Rounds": _up_to(MOST_ROUNDS),
    "ByteCode": _one_of(ByteCode.__members__),
    "GroupProtocol": _one_of({each.value: each for each in e.GroupProtocol}),
    "Library": _one_of({each: each for each in LIBRARIES}),
    "RecordedSeat | None": read_seat,
}
"""How a field of an event is read, by its type there."""
