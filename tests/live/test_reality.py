"""The simulator against live clients: the same events happen on a real Kafka broker and on paper, call for call.

An event happens once the group has settled after the one before, so each sequence has one outcome.
"""

from __future__ import annotations

from functools import partial

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.step import Form
from tests.live.members import Member, Settings, compile_java, java_command, python_command
from tests.live.stage import Stage

SESSION_MS = {"crash": 6_000}
LONG_SESSION_MS = 45_000
DIFFERENT = {
    ("java", "cooperative-sticky", "subscribe"): (
        {"a", "b"},
        "the leader forgets what it knew of a topic that it leaves: for one generation it assigns the other one alone",
    ),
    ("confluent-kafka", "cooperative-sticky", "subscribe"): (
        {"a"},
        "librdkafka calls lost, not revoked, for what left the subscription",
    ),
    ("confluent-kafka", "cooperative-sticky", "delete"): (
        {"a"},
        "librdkafka calls lost for partitions of a deleted topic, one generation later",
    ),
}
"""Who calls something else after the last event of a sequence, and why."""


def story(name, join, t, u):
    """The events of a sequence over the topics t (4 partitions) and u (3)."""
    both = (t, u)
    return {
        "grow": [join("a", both), join("b", both), join("c", both), e.Leave("b"), e.Leave("a")],
        "crash": [join("a", both), join("b", both), e.Crash("a"), e.Expire("a"), join("c", both)],
        "static": [
            *(join("a", both, group_instance_id="i-a"), join("b", both, group_instance_id="i-b")),
            *(e.Leave("b"), join("b", both, group_instance_id="i-b")),
            *(e.Leave("a"), join("a", both, group_instance_id="i-a")),
        ],
        "subscribe": [join("a", (t,)), join("b", (t,)), e.Subscribe("b", both), e.Subscribe("a", (u,))],
        "partitions": [join("a", both), join("b", both), e.SetPartitions(t, 7)],
        "delete": [join("a", both), join("b", both), e.DeleteTopic(u)],
    }[name]


STORIES = ("grow", "crash", "static", "subscribe", "partitions", "delete")
SEQUENCES = [
    *(("java", assignor, name) for assignor in ("range", "cooperative-sticky") for name in STORIES),
    *(("confluent-kafka", "range", name) for name in STORIES if name != "partitions"),
    *(("confluent-kafka", "cooperative-sticky", name) for name in STORIES),
    *(("kafka-python", "range", name) for name in ("grow", "crash", "partitions")),
]
"""Not there: eager librdkafka when partitions are added, which joins once or, for nothing, twice, as it happens; and
kafka-python's other sequences: of `static` one run agreed and one had a rebalance more, whose cause is not known; the
rest were not compared to an end yet.
"""


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    """The Java client, compiled."""
    return compile_java(tmp_path_factory.mktemp("classes"))


def starter(library, classes):
    """How a member of this library starts."""
    command = partial(java_command, classes) if library == "java" else partial(python_command, library)
    return lambda settings, topics: Member(command(settings, topics))


def simulated_name(library, assignor):
    own = library == "confluent-kafka" and assignor == "cooperative-sticky"
    return "librdkafka-cooperative-sticky" if own else assignor


@pytest.mark.parametrize(("library", "assignor", "name"), SEQUENCES)
def test_every_process_calls_what_the_simulator_says(library, assignor, name, kafka, topics, classes):
    differing, _ = DIFFERENT.get((library, assignor, name), ((), ""))
    t, u = (f"{name}-{library}-{assignor}-{letter}" for letter in "tu")
    settings = Settings(
        kafka, f"{name}-{library}-{assignor}", "", assignor, SESSION_MS.get(name, LONG_SESSION_MS), None
    )
    # kafka-python's eager members call revoked with nothing when they first join, as KIP-429's timeline has it
    form = Form.KIP if (library, assignor) == ("kafka-python", "range") else Form.AS_KAFKA
    join = partial(e.Join, assignors=(simulated_name(library, assignor),))
    events = story(name, join, t, u)
    with Stage(starter(library, classes), settings, form, topics, {t: 4, u: 3}) as stage:
        for event in events:
            expected = set(differing) if event is events[-1] else set()
            stage.happen(event, expected)
            assert stage.differing() == expected, stage.explain()
