"""The simulator against live members of the consumer protocol (KIP-848): Kafka's Java client and confluent-kafka.

The same events happen on a real Kafka broker and on paper, at the same times; also where a classic group becomes a
consumer group member by member, and goes back.
"""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest

from groupledger.core.arrays.java_orders import spread
from groupledger.core.assignors.server.orders import uuid_halves, uuid_hashes
from groupledger.core.protocol import events as e
from groupledger.core.wire.codec import uuid_bytes
from tests.live.consumer_stage import ConsumerStage
from tests.live.members import Settings
from tests.live.stage import SIMULATED
from tests.live.standstill import play_undisturbed
from tests.live.topics import Topics

CONSUMER, CLASSIC = e.GroupProtocol.CONSUMER, e.GroupProtocol.CLASSIC


def story(name, join, t, u):
    """The events of a sequence over the topics t (4 partitions) and u (3); those of a list at once one after the other:
    a static member is back before its session ends.
    """
    both = (t, u)
    classic = partial(join, group_protocol=CLASSIC)
    return {
        "grow": [join("a", both), join("b", both), join("c", both), e.Leave("b"), e.Leave("a")],
        "crash": [join("a", both), join("b", both), e.Crash("a"), e.Expire("a"), join("c", both)],
        "static": [
            *(join("a", both, group_instance_id="i-a"), join("b", both, group_instance_id="i-b")),
            [e.Leave("b"), join("b", both, group_instance_id="i-b")],
            [e.Leave("a"), join("a", both, group_instance_id="i-a")],
        ],
        "subscribe": [join("a", (t,)), join("b", (t,)), e.Subscribe("b", both), e.Subscribe("a", (u,))],
        "partitions": [join("a", both), join("b", both), e.SetPartitions(t, 7)],
        "delete": [join("a", both), join("b", both), e.DeleteTopic(u)],
        "there": [classic("a", both), classic("b", both), join("c", both), e.Leave("a"), e.Leave("b"), join("d", both)],
        "back": [join("a", both), join("b", both), classic("c", both), e.Leave("a"), e.Leave("b"), classic("d", both)],
        "taken": [
            *(classic("a", both, group_instance_id="i"), join("b", both)),
            *(classic("c", both, group_instance_id="i"), e.Leave("b")),
        ],
    }[name]


STORIES = ("grow", "crash", "static", "subscribe", "partitions", "delete", "there", "back")
COOPERATIVE = "cooperative-sticky"
SEQUENCES = [
    *((library, COOPERATIVE, name) for library in ("java", "confluent-kafka") for name in STORIES),
    ("java", COOPERATIVE, "taken"),
    *((library, "range", name) for library in ("java", "confluent-kafka") for name in ("there", "back")),
]
"""The assignor is the classic members'. That of librdkafka's cooperative ones keeps others out in `there`."""


@pytest.mark.parametrize(("library", "assignor", "name"), SEQUENCES)
def test_every_process_calls_what_the_simulator_says(library, assignor, name, stages, starter):
    join = partial(e.Join, assignors=(assignor,), group_protocol=CONSUMER, library=SIMULATED.get(library, library))

    def play(group):
        t, u = f"{group}-t", f"{group}-u"
        settings = Settings(stages, group, "", assignor, 6_000, None)
        with ConsumerStage(starter(library), settings, Topics(stages), {t: 4, u: 3}) as stage:
            for step in story(name, join, t, u):
                stage.happen(*(step if isinstance(step, list) else [step]))
                assert stage.differing() == set(), stage.explain()

    play_undisturbed(play, f"consumer-{name}-{library}-{assignor}")


class Made(Topics):
    """Topics that there are already."""

    def create(self, counts):
        pass


def bucket(topic_id):
    """Where a HashMap of two ids has one, of 16."""
    return spread(uuid_hashes(*uuid_halves([uuid_bytes(topic_id)]))[0]) % 16


def colliding(topics, name):
    """A name of a group whose topics t and u, made with it, share a bucket."""
    for number in count():
        group = f"{name}-{number}"
        t, u = f"{group}-t", f"{group}-u"
        topics.create({t: 4, u: 3})
        if bucket(topics.id(t)) == bucket(topics.id(u)):
            return group
        topics.delete(t)
        topics.delete(u)


@pytest.mark.parametrize(
    ("library", "assignor"), [("java", "range"), ("java", COOPERATIVE), ("confluent-kafka", "range")]
)
def test_where_ids_of_topics_share_a_bucket_the_order_of_the_classic_leaders_lists_decides(
    library, assignor, stages, starter
):
    """One pair of ids in sixteen: `there` alone meets it seldom."""
    join = partial(e.Join, assignors=(assignor,), group_protocol=CONSUMER, library=SIMULATED.get(library, library))

    def play(name):
        group = colliding(Topics(stages), name)
        t, u = f"{group}-t", f"{group}-u"
        settings = Settings(stages, group, "", assignor, 6_000, None)
        with ConsumerStage(starter(library), settings, Made(stages), {t: 4, u: 3}) as stage:
            for event in story("there", join, t, u)[:3]:
                stage.happen(event)
                assert stage.differing() == set(), stage.explain()

    play_undisturbed(play, f"consumer-bucket-{library}-{assignor}")
