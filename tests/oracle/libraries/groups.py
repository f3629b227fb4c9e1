"""Seeded groups as members of one client library join them: the groups of `client_groups` in the library's bytes.

A scenario is one of `core.scenarios.solving`, with `versions`: the version of each member's subscription. One group in
five of an assignor that reads user data has members of other libraries in it.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS, ClientAssignor, promises
from groupledger.core.scenarios.solving import solve
from groupledger.core.wire.consumer_protocol import (
    NEWEST_VERSION,
    ConsumerProtocolSubscription,
    TopicPartitions,
    UserData,
    UserDataForm,
    encode_subscription,
    encode_user_data,
)
from tests.oracle.client_groups import RACKS, Scenario, chain

Form = UserDataForm
Member = dict[str, Any]


class Written(NamedTuple):
    """What members write beside their topics."""

    version: int  # of the subscription; owned partitions from 1 on, a generation from 2 on
    form: UserDataForm = Form.EMPTY


_PLAIN = {
    "kafka-python": Written(0),
    "aiokafka": Written(0),
    "kafkajs": Written(0),
    "librdkafka": Written(3),
    "franz-go": Written(3, Form.NULL),
    "sarama": Written(1, Form.NULL),
    "kafka-go": Written(1, Form.NULL),
}
_REMEMBERING = {
    "kafka-python-sticky": Written(0, Form.PREFIXED_OWNED_GENERATION),
    "kafka-python-cooperative-sticky": Written(1),
    "aiokafka-sticky": Written(0, Form.OWNED_GENERATION),
    "librdkafka-cooperative-sticky": Written(3, Form.OWNED_GENERATION),
    "franz-go-sticky": Written(3, Form.OWNED_GENERATION),
    "franz-go-cooperative-sticky": Written(3, Form.OWNED_GENERATION),
    "sarama-sticky": Written(1, Form.OWNED_GENERATION),
    "sarama-cooperative-sticky": Written(1, Form.GENERATION),
}
FOREIGN = (Form.OWNED, Form.OWNED_GENERATION, Form.PREFIXED_OWNED_GENERATION, Form.GENERATION, Form.OPAQUE)
"""Sarama's leader fails on bytes that it cannot read, so its members are among themselves."""
TWICE = 0.02
"""How many members name a topic twice."""


def written(candidate: ClientAssignor) -> Written:
    """What members of this assignor write; where one answer holds for all of a library's, once for the library."""
    return _REMEMBERING.get(candidate.name, _PLAIN[candidate.library])


def groups(candidate: ClientAssignor, seed: int, count: int) -> Iterator[Scenario]:
    """`count` scenarios of this assignor, the same for a seed."""
    made = 0
    for number in range(count):
        draw = random.Random(f"{candidate.name}-{seed}-{number}")  # noqa: S311 seeded on purpose, nothing secret
        dresser = Dresser(candidate, seed * 1_000_003 + number, is_mixed=number % 5 == 0)
        name = f"{candidate.name}-{seed}-{number}"
        for scenario in chain(draw, name, java_s(candidate), dresser.answers):
            if made == count:
                return
            yield dresser.dressed(scenario)
            made += 1


def java_s(candidate: ClientAssignor) -> str:
    """Java's assignor of the same purpose, whose groups are drawn."""
    return candidate.protocol if candidate.protocol in ASSIGNORS else "roundrobin"


class Dresser:
    """Gives the members of one chain of groups the bytes of a library."""

    def __init__(self, candidate: ClientAssignor, seed: int, *, is_mixed: bool) -> None:
        self._candidate, self._seed = candidate, seed
        self._foreign = candidate.name in _REMEMBERING and candidate.library != "sarama" and is_mixed

    def answers(self, scenario: Scenario) -> dict[str, Any]:
        """The library's answer; Java's, where the library's is left to chance."""
        by_chance = self._candidate.name not in CLIENT_ASSIGNORS or not _is_computed(self._candidate)
        return solve(scenario if by_chance else self.dressed(scenario))

    def dressed(self, scenario: Scenario) -> Scenario:
        """The scenario with user data, versions and what else this library's leader asks for."""
        members = scenario["members"]
        if self._candidate.library == "sarama":
            members = [_known_topics(each, scenario["topics"]) for each in members]
        told = [self._member(each) for each in members]
        dressed = scenario | {"assignor": self._candidate.name, "members": [member for member, _ in told]}
        dressed["versions"] = [version for _, version in told]
        dressed.pop("racks", None)
        if told:
            dressed["leader"] = told[len(told) // 2][0]["id"]
        return dressed | self._racks(scenario)

    def _racks(self, scenario: Scenario) -> Scenario:
        """kafka-go's rack-affinity puts members near the rack of a partition's leader, which is its first replica's."""
        if self._candidate.protocol != "rack-affinity":
            return {}
        draw = random.Random(self._seed)  # noqa: S311
        return {"racks": {name: [[draw.choice(RACKS[:3])] for _ in range(n)] for name, n in scenario["topics"].items()}}

    def _member(self, member: Member) -> tuple[Member, int]:
        version, form = written(self._candidate)
        draw = random.Random(f"{self._seed}-{member['id']}")  # noqa: S311
        if self._foreign and draw.random() < 0.3:
            form = draw.choice(FOREIGN)
        user_data = encode_user_data(_user_data(form, member))
        if self._candidate.protocol == "rack-affinity":
            user_data = draw.choice(RACKS[:4] if self._seed % 3 else RACKS[:3]).encode()
        topics = list(member["topics"])
        if topics and draw.random() < TWICE:
            topics.append(draw.choice(topics))
        is_remembering = self._candidate.name in _REMEMBERING
        own = is_remembering and self._candidate.protocol == "cooperative-sticky"
        return {
            "id": member["id"],
            "instance_id": member["instance_id"],
            "topics": topics,
            "owned": [[name, number] for name, mine in _by_topic(member["owned"]) for number in mine] if own else [],
            "generation": member["generation"] if own and version > 1 else -1,
            "user_data": None if user_data is None else base64.b64encode(user_data).decode(),
        }, version


def _is_computed(candidate: ClientAssignor) -> bool:
    return candidate.promise is promises.nothing or candidate.library in ("kafka-python", "aiokafka", "franz-go")


def _known_topics(member: Member, topics: dict[str, int]) -> Member:
    """Without topics that the leader does not know: Sarama's leader fails if there is one."""
    return member | {"topics": [topic for topic in member["topics"] if topic in topics]}


def _user_data(form: UserDataForm, member: Member) -> UserData:
    generation = None if member["generation"] < 0 else member["generation"]
    if form is Form.OPAQUE:
        return UserData(form, leftover=b"\x7fnone of ours")
    if form is Form.GENERATION:
        return UserData(form, generation=generation)
    if form in (Form.NULL, Form.EMPTY):
        return UserData(form)
    return UserData(form, owned=_by_topic(member["owned"]), generation=generation)


def _by_topic(owned: list[list[Any]]) -> TopicPartitions:
    topics: dict[str, list[int]] = {}
    for topic, number in owned:
        topics.setdefault(topic, []).append(number)
    return tuple((topic, tuple(numbers)) for topic, numbers in topics.items())


def asked(scenario: Scenario, protocol: str) -> dict[str, Any]:
    """The JoinGroup response that the library's leader gets, and the topics that it knows: those that members name."""
    named = {topic for member in scenario["members"] for topic in member["topics"]}
    members = [
        {"id": member["id"], "instance_id": member["instance_id"], "subscription": _encoded(member, version)}
        for member, version in zip(scenario["members"], scenario["versions"], strict=True)
    ]
    return {
        "assignor": protocol,
        "topics": {topic: count for topic, count in scenario["topics"].items() if topic in named},
        "racks": scenario.get("racks"),
        "leader": scenario.get("leader"),
        "members": members,
    }


def _encoded(member: Member, version: int) -> str:
    generation = None if member["generation"] < 0 else member["generation"]
    user_data = None if member["user_data"] is None else base64.b64decode(member["user_data"])
    rack = "" if version == NEWEST_VERSION else None
    sent = ConsumerProtocolSubscription(
        version, tuple(member["topics"]), user_data, _by_topic(member["owned"]), generation, rack
    )
    return base64.b64encode(encode_subscription(sent)).decode()
