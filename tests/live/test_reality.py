"""The simulator against live clients: the same events happen on a real Kafka broker and on paper, call for call.

An event happens once the group has settled after the one before, so each sequence has one outcome, but for what depends
on who is faster (`Stage`).
"""

from __future__ import annotations

from functools import partial

import pytest

from groupledger.core.protocol import events as e
from tests.live.members import Settings
from tests.live.stage import SIMULATED, Stage
from tests.live.standstill import play_undisturbed
from tests.live.topics import Topics

SESSION_MS = {"crash": 6_000, "share": 6_000}
KAFKA_PYTHON_SESSION_MS = 10_000
"""Its members may lose track of a rebalance until their session ends; a static one is back before."""
LONG_SESSION_MS = 45_000


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
        "share": [join("a", (t,)), join("b", (t,)), e.Leave("b"), join("c", (t,)), e.Crash("c"), e.Expire("c")],
    }[name]


STORIES = ("grow", "crash", "static", "subscribe", "partitions", "delete")
SEQUENCES = [
    *(("java", assignor, name) for assignor in ("range", "cooperative-sticky") for name in STORIES),
    *(("confluent-kafka", "range", name) for name in STORIES if name != "partitions"),
    *(("confluent-kafka", "cooperative-sticky", name) for name in STORIES),
    *(("kafka-python", "range", name) for name in STORIES if name != "subscribe"),
    ("kafka-python", "roundrobin", "grow"),
    ("kafka-python", "cooperative-sticky", "share"),
]
"""Not there are:

- eager librdkafka when partitions are added: its members learn of them one after the other, and join once or twice;
- kafka-python's `subscribe`: a leader that does not subscribe to all topics of its group compares the metadata that it
  assigned by with what it has of all of them later, and then joins once more for nothing, or not;
- cooperative kafka-python with two topics, which it shares out by an algorithm of its own: A keeps t, B gets u.
"""


@pytest.mark.parametrize(("library", "assignor", "name"), SEQUENCES)
def test_every_process_calls_what_the_simulator_says(library, assignor, name, stages, starter):
    join = partial(e.Join, assignors=(assignor,), library=SIMULATED.get(library, library))
    session_ms = SESSION_MS.get(name, LONG_SESSION_MS)
    if library == "kafka-python" and name in ("partitions", "delete"):
        session_ms = KAFKA_PYTHON_SESSION_MS

    def play(group):
        t, u = f"{group}-t", f"{group}-u"
        settings = Settings(stages, group, "", assignor, session_ms, None)
        events = story(name, join, t, u)
        with Stage(starter(library), settings, Topics(stages), {t: 4, u: 3}) as stage:
            for event in events:
                stage.happen(event)
                assert stage.differing() == set(), stage.explain()

    play_undisturbed(play, f"{name}-{library}-{assignor}")
