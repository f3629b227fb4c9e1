"""Members by client library and release: what each can say, list and assign by."""

from __future__ import annotations

import pytest

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import ByteCode, read_client_library
from groupledger.core.protocol.consumer import Seat, Subscription, Times
from groupledger.core.protocol.leader import Question, plan_all
from groupledger.core.protocol.script_json import read_script, write_script
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form

OLD, NOW = ByteCode.BEFORE_KIP_429, ByteCode.KIP_792


@pytest.mark.parametrize(
    ("text", "byte_code"),
    [
        ("java", NOW),
        ("librdkafka", NOW),
        ("java@2.3.1", OLD),
        ("java@2.4", ByteCode.KIP_429),
        ("java@3.3.2", ByteCode.KIP_429),
        ("java@3.4", NOW),
        ("java@10.0", NOW),
    ],
)
def test_a_release_says_so_much(text, byte_code):
    assert read_client_library(text)[:2] == (text.partition("@")[0], byte_code)


def script_with(**more):
    join = {"event": "join", "member": "a", "topics": ["t"], **more}
    return read_script({"topics": {"t": 6}, "events": [join]})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"client": "go"}, "client is 'go'; expected one of java, librdkafka"),
        ({"client": "java@2"}, "client is 'java@2'; expected a release such as java@2.3"),
        ({"client": "librdkafka@1.5"}, "client is 'librdkafka@1.5'; expected a release such as"),
        ({"client": 3}, "events.0.client is 3; expected a text"),
        ({"client": "java", "byte_code": "KIP_429"}, "events.0.byte_code is 'KIP_429'; expected none beside client"),
        (
            {"client": "java@2.3", "assignors": ["cooperative-sticky"]},
            "events.0 lists cooperative-sticky, which this java does not have; expected range",
        ),
        (
            {"client": "aiokafka", "assignors": ["cooperative-sticky"]},
            "events.0 lists cooperative-sticky, which this aiokafka does not have",
        ),
        ({"client": "librdkafka", "assignors": ["sticky"]}, "events.0 lists sticky, which this librdkafka does not"),
        (
            {"client": "librdkafka", "assignors": ["range", "cooperative-sticky"]},
            "events.0 lists eager and cooperative assignors; librdkafka refuses",
        ),
        ({"library": "go"}, "events.0.library is 'go'; expected one of java"),
    ],
)
def test_what_a_library_does_not_have_is_refused(more, message):
    with pytest.raises(Fault) as refused:
        script_with(**more)
    assert refused.value.message.startswith(message)


def test_a_member_of_the_consumer_protocol_lists_nothing():
    (join,) = script_with(client="java", group_protocol="consumer").events
    assert join.library == "java"


def test_a_script_with_a_client_comes_back():
    script = script_with(client="java@3.3", assignors=["range", "cooperative-sticky"])
    assert script.events == [e.Join("a", ("t",), ("range", "cooperative-sticky"), byte_code=ByteCode.KIP_429)]
    assert read_script(write_script(script, "x")) == script
    assert read_script(write_script(script_with(client="librdkafka"), "x")).events[0].library == "librdkafka"


@pytest.mark.parametrize("times", [None, Times(initial_rebalance_delay_ms=0)])
def test_the_leaders_library_decides_who_gets_what(times):
    """b joins: a librdkafka leader keeps its highest partitions, a Java leader its lowest."""
    kept = {}
    for library in ("java", "librdkafka"):
        joins = [e.Join("a", ("t",), library=library), e.Join("b", ("t",), at_ms=60_000)]
        owners = simulate(Script({"t": 4}, joins, times=times))[-1].owners
        kept[library] = [number for (_, number), owner in owners.items() if owner == "a"]
    assert kept == {"java": [0, 1], "librdkafka": [2, 3]}


@pytest.mark.parametrize(
    ("library", "firsts"), [("java", "i"), ("kafka-python", "i"), ("librdkafka", "a"), ("aiokafka", "a")]
)
def test_the_leaders_library_decides_who_is_first_under_range(library, firsts):
    """The first gets one partition more: static members come first, or member ids alone are compared."""
    joins = [e.Join(name, ("t",), ("range",), library=library) for name in "ab"]
    static = e.Join("i", ("t",), ("range",), "instance", library=library)
    owners = simulate(Script({"t": 4}, [*joins, static]))[-1].owners
    assert max("abi", key=list(owners.values()).count) == firsts


def test_a_leader_of_kafka_python_fails_at_a_member_that_does_not_subscribe_to_all():
    joins = [
        e.Join(name, tuple(topics), ("roundrobin",), library="kafka-python")
        for name, topics in (("a", "t"), ("b", "tu"))
    ]
    failed = simulate(Script({"t": 4, "u": 1}, joins))[-1]
    assert failed.failure.startswith("kafka-python-roundrobin: KeyError: ")
    assert failed.owners == {}


def test_a_group_led_by_librdkafka_is_not_taken_over():
    """Its assignments have user data (decision 0113)."""
    joins = [e.Join("a", ("t",), library="librdkafka")]
    late = e.Join("b", ("t",), group_protocol=e.GroupProtocol.CONSUMER, at_ms=60_000)
    refused = simulate(Script({"t": 4}, [*joins, late]))[-1].refused
    assert refused.startswith("GROUP_ID_NOT_FOUND: assignments of librdkafka-cooperative-sticky have user data")


def test_plans_of_all_libraries_are_made_together():
    seats = (Seat("m", Subscription(NOW, ("t",))),)
    names = ["sarama-range", "cooperative-sticky", "kafka-python-range", "range"]
    plans = plan_all([Question(name, seats, {"t": 1}, Form.AS_KAFKA) for name in names])
    assert [each.assigned for each in plans] == [{"m": (TopicPartition("t", 0),)}] * len(names)
