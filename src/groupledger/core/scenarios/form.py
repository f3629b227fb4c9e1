"""Check whether a JSON object has the form of a scenario; a complaint says where, what it got, and what is expected."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from groupledger.core.arrays.java_orders import hash_texts
from groupledger.core.arrays.snapshots import EncodedGroups, MemberClaim, ReplicaRacks, encode_groups, user_data_order
from groupledger.core.assignors.kip315 import read_memory
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.log.lines import ScenarioCode
from groupledger.core.rebalance.registry import RECORDS, STREAM_JOIN, ClaimsRead, called
from groupledger.core.wire.codec import uuid_bytes
from groupledger.core.wire.consumer_protocol import COOPERATIVE_STICKY, STICKY, decode_user_data, taken

MOST_PARTITIONS = 10_000_000
"""Limit for one scenario: more is a typing error, and would end the process for lack of memory."""

INT32 = range(-(2**31), 2**31)


class _Keys(NamedTuple):
    """The keys of a scenario, of its members, and of each object under its key `part`."""

    scenario: tuple[str, ...]
    member: tuple[str, ...]
    part: str = ""
    of_part: tuple[str, ...] = ()


OF_TASKS = _Keys(
    ("id", "assignor", "subtopologies", "standby_replicas", "members", "joining", "history"),
    ("id", "process_id", "active", "standby", "offsets"),
    "subtopologies",
    ("tasks", "stateful"),
)
OF_RANGE = _Keys(
    ("id", "assignor", "topics", "members", "subscription_type"),
    ("id", "topics", "instance_id"),
    "topics",
    ("id", "partitions"),
)
OF_SERVER = _Keys(
    (*OF_RANGE.scenario, "deleted", "joining", "history"), ("id", "topics", "assigned"), "topics", ("id", "partitions")
)
_REPORTS = ("transferring", "is_sticky")
_SAID, _REMEMBERED = ("owned", "generation", "user_data"), ("user_data",)
_OF_CLIENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **{each.name: (_REPORTS, _SAID if each.claims is not ClaimsRead.NOWHERE else ()) for each in RECORDS},
    "range": (("racks", *_REPORTS), ("instance_id", "rack")),
    "roundrobin": (_REPORTS, ("instance_id",)),
    "sticky": (("racks", *_REPORTS), (*_SAID, "rack")),
    "cooperative-sticky": (("racks", *_REPORTS), (*_SAID, "rack")),
    "librdkafka-cooperative-sticky": (_REPORTS, _SAID[:2]),
    "kafka-python-range": ((), ("instance_id",)),
    "kafka-python-roundrobin": ((), ("instance_id",)),
    "kafka-python-sticky": ((), _REMEMBERED),
    "kafka-python-cooperative-sticky": ((), _SAID[:2]),
    "aiokafka-range": ((), ()),
    "aiokafka-roundrobin": ((), ()),
    "aiokafka-sticky": ((), _REMEMBERED),
    "kafkajs-roundrobin": (("leader",), ()),
    "librdkafka-range": ((), ("instance_id",)),
    "librdkafka-roundrobin": ((), ("instance_id",)),
    "franz-go-range": ((), ("instance_id",)),
    "franz-go-roundrobin": ((), ("instance_id",)),
    "franz-go-sticky": ((), (*_REMEMBERED, "instance_id")),
    "franz-go-cooperative-sticky": ((), (*_SAID, "instance_id")),
    "sarama-range": ((), ()),
    "sarama-roundrobin": ((), ()),
    "kafka-go-range": ((), ()),
    "kafka-go-roundrobin": ((), ()),
}
"""The optional keys that each reads of a scenario, and of its members."""
_CUSTOM = ((), (*_SAID, "instance_id", "rack"))
_ANY = (("racks", *_REPORTS, "leader"), _CUSTOM[1])
RACKS_UNMODELLED = {
    "librdkafka": ("librdkafka-range", "librdkafka-cooperative-sticky"),
    "franz-go with BalanceRacks": ("franz-go-range", "franz-go-sticky", "franz-go-cooperative-sticky"),
}
"""Assignors that balance by racks (KIP-881) in their library and do not here."""


def _keys(name: str, custom: Collection[str]) -> _Keys:
    """Return the keys that an assignor reads; of an unknown one all, so that its name is complained of."""
    if name == "server-sticky":
        return OF_TASKS
    if name.startswith("server-"):
        return OF_RANGE if name == "server-range" else OF_SERVER
    scenario, member = _CUSTOM if name in custom else _OF_CLIENTS.get(name, _ANY)
    return _Keys(("id", "assignor", "topics", "members", *scenario), ("id", "topics", *member))


def require_known_keys(scenario: Mapping[str, Any], custom: Collection[str] = ()) -> None:
    """Refuse a key that the assignor does not read, unless it is null: a misspelt one would silently change the answer.

    `custom`: names of custom assignors. Raises Fault: BAD_SCENARIO, NO_ANSWER as `require_no_racks`.
    """
    name = called(str(scenario.get("assignor")))
    require_no_racks(scenario)
    keys = _keys(name, custom)
    for key, value in scenario.items():
        _one_of(key, keys.scenario if value is not None else (*keys.scenario, *_ANY[0]), "a key")
    for place, some, known in _objects(scenario, keys):
        for key, value in some.items():
            _one_of(key, known if value is not None else (*known, *_ANY[1]), f"a key of {place}")


def require_no_racks(scenario: Mapping[str, Any]) -> None:
    """Raise Fault NO_ANSWER for racks that the library's assignor would balance by, and the one here does not."""
    name = scenario.get("assignor")
    members = scenario.get("members")
    racks = [each.get("rack") for each in (members if isinstance(members, list) else ()) if isinstance(each, dict)]
    for library, names in RACKS_UNMODELLED.items():
        if name in names and (scenario.get("racks") or any(racks)):
            message = f"{library} balances by racks (KIP-881), which is not modelled for {name}: no answer with racks;"
            raise Fault(ScenarioCode.NO_ANSWER, f"{message} expected a scenario without racks")


def _objects(scenario: Mapping[str, Any], keys: _Keys) -> Iterator[tuple[str, Mapping[str, Any], tuple[str, ...]]]:
    members, parts = scenario.get("members"), scenario.get(keys.part)
    for at, member in enumerate(members if isinstance(members, list) else ()):
        yield f"members.{at}", member if isinstance(member, dict) else {}, keys.member
    for name, part in parts.items() if isinstance(parts, dict) else ():
        yield f"{keys.part}.{name}", part if isinstance(part, dict) else {}, keys.of_part


def require_form(scenario: dict[str, Any]) -> None:
    """Accept a scenario; otherwise raise a `Fault` BAD_SCENARIO about the first defect."""
    _text(scenario.get("assignor"), "assignor")
    topics = _object(scenario.get("topics"), "topics")
    for topic, count in topics.items():
        _whole(count, f"topics.{topic}", range(2**31))
    if sum(topics.values()) > MOST_PARTITIONS:
        _complain("topics", f"{sum(topics.values()):,} partitions in all", f"at most {MOST_PARTITIONS:,}")
    members = _list(scenario.get("members"), "members")
    for index, member in enumerate(members):
        _member(_object(member, f"members.{index}"), f"members.{index}")
    _unique([member["id"] for member in members])
    for topic, partitions in _object(scenario.get("racks") or {}, "racks").items():
        for number, replicas in enumerate(_list(partitions, f"racks.{topic}")):
            for rack in _list(replicas, f"racks.{topic}.{number}"):
                _text_or_null(rack, f"racks.{topic}.{number}")
    for name in ("transferring", "is_sticky"):
        if not isinstance(scenario.get(name) or False, bool):
            _complain(name, scenario[name], "true or false")


def require_server_form(scenario: Mapping[str, Any], assignors: Sequence[str]) -> None:
    """Do as `require_form` for a KIP-848 group: topics have ids, members have `assigned` instead of `owned`."""
    _one_of(scenario.get("assignor"), assignors, "assignor")
    ids: dict[str, Any] = {}
    for topic, fact in _object(scenario.get("topics"), "topics").items():
        ids[topic] = _object(fact, f"topics.{topic}").get("id")
        _topic_id(ids[topic], f"topics.{topic}.id")
    for topic, topic_id in _object(scenario.get("deleted") or {}, "deleted").items():
        ids[topic] = topic_id
        _topic_id(topic_id, f"deleted.{topic}")
    members = _list(scenario.get("members"), "members")
    for at, member in enumerate(members):
        _object(member, f"members.{at}")
    clients = [{**member, "owned": member.get("assigned")} for member in members]
    counts = {topic: fact.get("partitions") for topic, fact in scenario["topics"].items()}
    try:
        require_form({"assignor": scenario["assignor"], "topics": counts, "members": clients})
    except Fault as fault:
        raise Fault(fault.code, fault.message.replace(".owned", ".assigned")) from fault
    for at, member in enumerate(members):
        for topic, _ in member.get("assigned") or ():
            if topic not in ids:
                _complain(f"members.{at}.assigned", topic, "a name in topics or deleted")
    _server_options(scenario)


def require_task_form(scenario: Mapping[str, Any]) -> None:
    """Do as `require_form` for a Streams group (KIP-1071): members have tasks of subtopologies, which have counts."""
    subtopologies = _object(scenario.get("subtopologies"), "subtopologies")
    for name, fact in subtopologies.items():
        _whole(_object(fact, f"subtopologies.{name}").get("tasks"), f"subtopologies.{name}.tasks", range(2**31))
        if not isinstance(fact.get("stateful", False), bool):
            _complain(f"subtopologies.{name}.stateful", fact["stateful"], "true or false")
    total = sum(fact["tasks"] for fact in subtopologies.values())
    if total > MOST_PARTITIONS:
        _complain("subtopologies", f"{total:,} tasks in all", f"at most {MOST_PARTITIONS:,}")
    _whole(scenario.get("standby_replicas", 0), "standby_replicas", range(2**15))
    members = _list(scenario.get("members"), "members")
    for at, member in enumerate(members):
        place = f"members.{at}"
        for name in ("id", "process_id"):
            _text(_object(member, place).get(name), f"{place}.{name}")
        for name, length in (("active", 2), ("standby", 2), ("offsets", 3)):
            for task in _list(member.get(name) or [], f"{place}.{name}"):
                _task(task, length, f"{place}.{name}")
    _unique([member["id"] for member in members])
    _server_options(scenario)
    joining, known = scenario.get("joining"), {member["id"] for member in members}
    if joining is not None and joining not in known:
        _complain("joining", joining, "the id of a member")


def _task(value: Any, length: int, place: str) -> None:
    if not isinstance(value, list) or len(value) != length:
        _complain(place, value, "[subtopology, number]" if length == 2 else "[subtopology, number, offset]")
    _text(value[0], place)
    _whole(value[1], place, range(2**31))
    if length > 2:
        _whole(value[2], place, range(2**63))


def _server_options(scenario: Mapping[str, Any]) -> None:
    _text_or_null(scenario.get("joining"), "joining")
    if scenario.get("subscription_type") is not None:
        _one_of(scenario["subscription_type"], ("homogeneous", "heterogeneous"), "subscription_type")
    for at, event in enumerate(_list(scenario.get("history") or [], "history")):
        if not isinstance(event, list) or len(event) != 2:
            _complain(f"history.{at}", event, "[member, change]")
        _whole(event[1], f"history.{at}", range(-1, 2))


def _topic_id(value: Any, place: str) -> None:
    try:
        uuid_bytes(value)
    except (ValueError, AttributeError):
        _complain(place, value, "a topic id: 22 characters of url-safe base64")


def _one_of(value: Any, names: Sequence[str], place: str) -> None:
    if value not in names:
        _complain(place, value, f"one of {', '.join(names)}")


def _unique(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        _complain("members", f"the id {twice!r} twice", "every member once")


def _member(member: dict[str, Any], place: str) -> None:
    _text(member.get("id"), f"{place}.id")
    for topic in _list(member.get("topics"), f"{place}.topics"):
        _text(topic, f"{place}.topics")
    for pair in _list(member.get("owned") or [], f"{place}.owned"):
        if not isinstance(pair, list) or len(pair) != 2:
            _complain(f"{place}.owned", pair, "[topic, partition]")
        _text(pair[0], f"{place}.owned")
        _whole(pair[1], f"{place}.owned", INT32)
    if member.get("generation") is not None:
        _whole(member["generation"], f"{place}.generation", INT32)
    for name in ("instance_id", "rack", "user_data"):
        _text_or_null(member.get(name), f"{place}.{name}")
    user_data = member.get("user_data") or ""
    try:
        b64decode(user_data, validate=True)
    except (binascii.Error, ValueError):
        _complain(f"{place}.user_data", user_data, "base64")


def _text(value: Any, place: str) -> None:
    if not isinstance(value, str):
        _complain(place, value, "a text")


def _text_or_null(value: Any, place: str) -> None:
    if value is not None and not isinstance(value, str):
        _complain(place, value, "a text or null")


def _whole(value: Any, place: str, allowed: range) -> None:
    if type(value) is not int or value not in allowed:
        _complain(place, value, f"a whole number from {allowed.start:,} to {allowed.stop - 1:,}")


def _object(value: Any, place: str) -> dict[str, Any]:
    return value if isinstance(value, dict) else _complain(place, value, "an object")


def _list(value: Any, place: str) -> list[Any]:
    return value if isinstance(value, list) else _complain(place, value, "a list")


def _complain(place: str, got: Any, expected: str) -> NoReturn:
    shown = "nothing" if got is None else got if isinstance(got, str) and " " in got else repr(got)
    raise Fault(ScenarioCode.BAD_SCENARIO, f"{place} is {shown[:80]}; expected {expected}")


# Convert a JSON scenario (see `core.scenarios.form`) to one group, in plain values or as a batch.


def encode(scenario: dict[str, Any]) -> EncodedGroups:
    """Encode the scenario as a batch of one group."""
    return encode_group(group_of(scenario), scenario["assignor"], scenario.get("racks") or {})


def encode_group(group: Group, assignor: str, racks: ReplicaRacks | None = None) -> EncodedGroups:
    """Encode one group as an assignor of Kafka's reads it."""
    return encode_groups([group], [read_claim(assignor, member) for member in group.members], [racks or {}])


def group_of(scenario: dict[str, Any]) -> Group:
    """Convert a well-formed scenario to one group in plain values, with the subscribed topics."""
    members = tuple(
        Member(
            member_id=each["id"],
            topics=tuple(each["topics"]),
            owned=tuple(TopicPartition(*pair) for pair in each.get("owned") or []),
            generation=_stated_generation(each),
            group_instance_id=each.get("instance_id"),
            rack=each.get("rack") or None,
            user_data=None if each.get("user_data") is None else b64decode(each["user_data"]),
        )
        for each in scenario["members"]
    )
    subscribed = {topic for member in members for topic in member.topics}
    return Group(members, {name: count for name, count in scenario["topics"].items() if name in subscribed})


def read_claim(assignor: str, member: Member) -> MemberClaim:
    """Return what Kafka's assignor takes as the member's claims, and their generation."""
    raw = member.user_data
    if assignor == STREAM_JOIN.name:
        return MemberClaim(member.owned, member.generation) if raw is None else _stream_join_memory(member, raw)
    if assignor == STICKY and raw is None:
        return MemberClaim(through_user_data(member.owned), member.generation)
    if assignor == STICKY:
        sent = decode_user_data(raw, STICKY)
        lists, generation = taken(STICKY, sent.owned, sent.generation, None, raw)
        return MemberClaim([(topic, number) for topic, numbers in lists for number in numbers], generation)
    _, generation = taken(COOPERATIVE_STICKY, member.owned, None, member.generation, raw)
    return MemberClaim(member.owned, generation)


def _stream_join_memory(member: Member, raw: bytes) -> MemberClaim:
    """Read KIP-315's partition numbers, of whatever topic, and their epoch; unreadable bytes claim nothing."""
    try:
        memory = read_memory(raw)
    except Fault:
        return MemberClaim((), None)
    return MemberClaim([(topic, number) for topic in member.topics[:1] for number in memory.partitions], memory.epoch)


def through_user_data(owned: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Order claims as StickyAssignor writes them: by topic, in iteration order of its hash map of topics."""
    names = list(dict.fromkeys(topic for topic, _ in owned))
    numbers = {topic: at for at, topic in enumerate(names)}
    topics = np.array([numbers[topic] for topic, _ in owned], np.int32)
    order = user_data_order(np.array([0, len(owned)]), topics, hash_texts(names))
    return [owned[at] for at in order.tolist()]


def _stated_generation(member: dict[str, Any]) -> int | None:
    """Return the generation of the member's subscription; None for a negative one, as Kafka reads it."""
    generation = member.get("generation")
    return None if generation is None or generation < 0 else int(generation)
