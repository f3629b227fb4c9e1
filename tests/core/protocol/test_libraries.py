"""Each client library by itself: what it lists by default, what it calls its assignors, what can be simulated of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import COOPERATIVE, LIBRARIES, SUPPORTED
from groupledger.core.protocol.rolling_migration import Danger, GroupClient, rehearse, two_bounces
from groupledger.core.protocol.script_json import read_script, simulate_lines

DEFAULTS = {
    "java": ("range", "cooperative-sticky"),
    "java@2.8.2": ("range",),
    "java@2.3": ("range",),
    "librdkafka": ("range", "roundrobin"),
    "kafka-python": ("range", "roundrobin"),
    "franz-go": ("cooperative-sticky",),
    "aiokafka": ("roundrobin",),
    "sarama": ("range",),
    "kafka-go": ("range", "roundrobin"),
}
"""What consumers of these libraries list if none is configured: read from the releases that `LIBRARIES` names."""
ROLLING: dict[str, Any] = {
    "id": "js",
    "topics": {"t1": 3, "t2": 3},
    "form": "as-kafka",
    "events": [
        {"event": "join", "member": name, "topics": topics, "client": "kafkajs", "assignors": ["RoundRobinAssigner"]}
        for name, topics in (("old", ["t1"]), ("new", ["t1", "t2"]))
    ],
}


def joined(**more):
    (event,) = read_script(
        {"topics": {"t": 1}, "events": [{"event": "join", "member": "m", "topics": ["t"], **more}]}
    ).events
    return event


def played(script):
    (answer,) = simulate_lines([json.dumps(script)])
    return json.loads(answer)


def test_each_library_lists_only_assignors_it_has_and_each_is_known():
    assert LIBRARIES.keys() == {each.library for each in CLIENT_ASSIGNORS.values()} | {"java"}
    for library in LIBRARIES.values():
        assert set(library.default) <= set(library.assignors) <= SUPPORTED.keys()
    modelled = {
        name: {each.protocol for each in CLIENT_ASSIGNORS.values() if each.library == name} for name in LIBRARIES
    }
    assert {name: set(each.assignors) for name, each in LIBRARIES.items() if name != "java"} == {
        name: protocols for name, protocols in modelled.items() if name != "java"
    }


@pytest.mark.parametrize(("client", "listed"), DEFAULTS.items())
def test_a_client_without_assignors_lists_those_of_its_library(client, listed):
    assert joined(client=client).assignors == listed


def test_a_join_without_a_client_lists_what_it_did():
    assert joined().assignors == e.COOPERATIVE_STICKY


@pytest.mark.parametrize("client", ["sarama", "kafka-go", "kafkajs", "kafka-python", "aiokafka"])
def test_a_library_without_kip_848_has_no_consumer_member(client):
    answer = played({"id": "x", "topics": {"t": 1}, "events": [
        {"event": "join", "member": "m", "topics": ["t"], "client": client, "group_protocol": "consumer"},
    ]})  # fmt: skip
    assert (
        answer["error"] == f"BAD_CLIENT: events.0.group_protocol is consumer, which {client} does not speak (KIP-848)"
    )


def test_kafkajs_cannot_be_simulated_and_one_line_says_why():
    """Case 14: a leader that knows t1 alone leaves t2 to nobody."""
    for script in (ROLLING, {**ROLLING, "events": [{key: value for key, value in each.items() if key != "assignors"}
                                                   for each in ROLLING["events"]]}):  # fmt: skip
        error = played(script)["error"]
        assert error.startswith("NOT_SIMULATED: a member of KafkaJS cannot be simulated: its leader deals only")
        assert "kafkajs-roundrobin" in error
        assert "UNKNOWN_ASSIGNOR" not in error


@pytest.mark.parametrize("assignor", ["RoundRobinAssigner", "rack-affinity"])
def test_neither_is_a_name_that_only_one_library_has(assignor):
    answer = played({"id": "x", "topics": {"t": 1}, "events": [
        {"event": "join", "member": "m", "topics": ["t"], "assignors": [assignor]},
    ]})  # fmt: skip
    assert answer["error"].startswith("NOT_SIMULATED: ")


@pytest.mark.parametrize(("client", "assignor"), [
    ("franz-go", "cooperative-sticky"), ("franz-go", "sticky"), ("sarama", "sticky"), ("sarama", "cooperative-sticky"),
    ("kafka-python", "sticky"), ("kafka-python", "cooperative-sticky"), ("aiokafka", "sticky"),
])  # fmt: skip
def test_javas_algorithm_in_place_of_a_librarys_own_is_said(client, assignor):
    join = {"event": "join", "member": "m", "topics": ["t"], "client": client, "assignors": [assignor]}
    answer = played({"id": "x", "topics": {"t": 2}, "form": "as-kafka", "events": [join]})
    [note] = answer["notes"]
    assert note.startswith(
        f"{client} leads under {assignor}: its own algorithm is not simulated, Java's is in its place"
    )


@pytest.mark.parametrize(("client", "assignor"), [
    ("java", "cooperative-sticky"), ("librdkafka", "cooperative-sticky"), ("sarama", "range"), ("franz-go", "range"),
    ("kafka-go", "roundrobin"), ("aiokafka", "roundrobin"),
])  # fmt: skip
def test_nothing_is_said_of_an_algorithm_that_is_the_librarys(client, assignor):
    join = {"event": "join", "member": "m", "topics": ["t"], "client": client, "assignors": [assignor]}
    assert "notes" not in played({"id": "x", "topics": {"t": 2}, "form": "as-kafka", "events": [join]})


def members(library, assignors=("range",), names="ab"):
    return [GroupClient(name, assignors, ("t",), library) for name in names]


def rehearsed(clients, to="cooperative-sticky"):
    return rehearse(clients, two_bounces(clients, to), {"t": 6})


@pytest.mark.parametrize(("library", "assignors"), [
    ("kafkajs", ("range",)), ("kafkajs", ("RoundRobinAssigner",)), ("kafka-go", ("range",)),
    ("kafka-go", ("rack-affinity", "range")), ("aiokafka", ("roundrobin",)),
])  # fmt: skip
def test_a_library_without_a_cooperative_assignor_says_so_once_and_what_is_left(library, assignors):
    """Case 38."""
    [found] = rehearsed(members(library, assignors)).first_unsafe.findings
    assert found.danger is Danger.CLIENT_LACKS_ASSIGNOR
    listed = ", ".join(LIBRARIES[library].assignors)
    assert found.evidence == (
        f"a, b: {library} has no cooperative assignor, only {listed}; what is left: members of another client, by "
        "KIP-848 or in a new group"
    )
    assert not any(COOPERATIVE in SUPPORTED[each] for each in LIBRARIES[library].assignors)


def test_saramas_members_go_to_cooperative_sticky_in_two_bounces():
    """Its Config.Validate takes range and cooperative-sticky in one list (1.61.1, run)."""
    rehearsal = rehearsed(members("sarama"))
    assert rehearsal.first_unsafe is None
    assert {each.danger for step in rehearsal.steps for each in step.findings} == set()
    assert rehearsal.steps[-1].assignor == "cooperative-sticky"


def test_kafka_python_refuses_a_mixed_list():
    """KafkaConfigurationError (3.0.12, run)."""
    [found] = rehearsed(members("kafka-python")).first_unsafe.findings
    assert found.danger is Danger.CLIENT_CANNOT_MIX


def test_a_warning_of_a_library_that_was_not_tried_says_what_to_do():
    [found] = rehearsed(members("franz-go")).steps[0].findings
    assert found.danger is Danger.CLIENT_NOT_TRIED
    assert found.evidence.startswith("nobody here tried whether franz-go takes such a list (it follows the protocol of")
