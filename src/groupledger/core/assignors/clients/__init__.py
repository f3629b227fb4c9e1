"""Run assignors of client libraries other than Kafka's Java client, one group at a time.

`CLIENT_ASSIGNORS["kafka-python-sticky"].plans(group, None)` gives the answers that the library may give. Each is
checked against the library's own answers (tests/data/parity-clients, tests/oracle/libraries). Versions: kafka-python
3.0.12, aiokafka 0.14.0, KafkaJS 2.2.4, Sarama 1.61.1, franz-go 1.22.2, kafka-go 0.4.51, librdkafka 2.16.0. Read
`client_plan` (a group, and its answers), `promises` (what a library keeps to), `topic_by_topic`, `kip54` and
`franz_go`. Called by `core.rebalance` (attribution) and `core.scenarios`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from groupledger.core.assignors.clients import kip54, promises, topic_by_topic
from groupledger.core.assignors.clients.client_plan import LeaderPlan, PossiblePlans
from groupledger.core.assignors.clients.franz_go import franz_go_cooperative_sticky, franz_go_sticky
from groupledger.core.custom.custom_group import Group

__all__ = ["CLIENT_ASSIGNORS", "ClientAssignor", "LeaderPlan", "PossiblePlans"]

Plans = Callable[[Group, str | None], PossiblePlans]
Promise = Callable[[Group, promises.GivenLists], bool]


@dataclass(frozen=True, slots=True)
class ClientAssignor:
    """An assignor of a library. `plans` takes a group and its leader's member id; members are in JoinGroup order.

    An assignor whose answer depends on too many random orders has no plans, only the promise. `sorts_topics`: the order
    of topics in an assignment is fixed, so it counts as evidence.
    """

    library: str
    protocol: str
    plans: Plans
    promise: Promise = promises.nothing
    sorts_topics: bool = True

    @property
    def name(self) -> str:
        """Return the name that selects it."""
        return f"{self.library}-{self.protocol.lower().removesuffix('assigner')}"


def _one(assign: Callable[[Group, str | None], LeaderPlan]) -> Plans:
    """Return the plans of an assignor that has one answer."""
    return lambda group, leader: PossiblePlans(lambda _: assign(group, leader))


def _by_chance(group: Group, leader: str | None) -> PossiblePlans:
    """Return no plan, for an assignor with too many possible ones."""
    return PossiblePlans(lambda _: LeaderPlan(), most=0)


STICKY, COOPERATIVE = "sticky", "cooperative-sticky"

_ALL = (
    ClientAssignor("kafka-python", "range", _one(topic_by_topic.kafka_python_range)),
    ClientAssignor("kafka-python", "roundrobin", _one(topic_by_topic.kafka_python_roundrobin)),
    ClientAssignor("kafka-python", STICKY, kip54.kafka_python_sticky, promises.keeps_sticky),
    ClientAssignor("kafka-python", COOPERATIVE, kip54.kafka_python_cooperative_sticky, promises.keeps_cooperative),
    ClientAssignor("aiokafka", "range", _one(topic_by_topic.aiokafka_range)),
    ClientAssignor("aiokafka", "roundrobin", _one(topic_by_topic.aiokafka_roundrobin)),
    ClientAssignor("aiokafka", STICKY, kip54.aiokafka_sticky, promises.keeps_sticky),
    ClientAssignor("kafkajs", "RoundRobinAssigner", _one(topic_by_topic.kafkajs_roundrobin)),
    ClientAssignor("librdkafka", "range", _one(topic_by_topic.librdkafka_range), sorts_topics=False),
    ClientAssignor("librdkafka", "roundrobin", _one(topic_by_topic.librdkafka_roundrobin)),
    ClientAssignor("librdkafka", COOPERATIVE, _one(topic_by_topic.librdkafka_cooperative_sticky), sorts_topics=False),
    ClientAssignor("franz-go", "range", _one(topic_by_topic.franz_go_range)),
    ClientAssignor("franz-go", "roundrobin", _one(topic_by_topic.franz_go_roundrobin)),
    ClientAssignor("franz-go", STICKY, franz_go_sticky, promises.keeps_sticky),
    ClientAssignor("franz-go", COOPERATIVE, franz_go_cooperative_sticky, promises.keeps_cooperative),
    ClientAssignor("sarama", "range", _one(topic_by_topic.sarama_range), sorts_topics=False),
    ClientAssignor("sarama", "roundrobin", _one(topic_by_topic.sarama_roundrobin), sorts_topics=False),
    ClientAssignor("sarama", STICKY, _by_chance, promises.keeps_sarama_sticky),
    ClientAssignor("sarama", COOPERATIVE, _by_chance, promises.keeps_sarama_cooperative),
    ClientAssignor("kafka-go", "range", _one(topic_by_topic.kafka_go_range), sorts_topics=False),
    ClientAssignor("kafka-go", "roundrobin", _one(topic_by_topic.kafka_go_roundrobin), sorts_topics=False),
    ClientAssignor("kafka-go", "rack-affinity", _by_chance, promises.keeps_rack_affinity),
)
CLIENT_ASSIGNORS = {each.name: each for each in _ALL}
