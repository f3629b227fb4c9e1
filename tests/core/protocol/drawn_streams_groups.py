"""Random histories of Streams groups, by seed, drawn as they happen: threads of a few processes, a drawn topology."""

from __future__ import annotations

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.consumer_group.consumer_state import StreamsGroupSettings, SubtopologyTopics
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script
from groupledger.core.rebalance.step import Form
from tests.core.protocol.drawn_consumer_groups import History

TOPOLOGIES = (
    {"0": SubtopologyTopics(("clicks", "orders", "views"))},
    {"0": SubtopologyTopics(("clicks",)), "1": SubtopologyTopics(("orders", "views"))},
    {
        "0": SubtopologyTopics(("clicks",), repartition_sink_topics=("by-user",)),
        "1": SubtopologyTopics(repartition_source_topics={"by-user": 0}, state_changelog_topics=("counts",)),
        "2": SubtopologyTopics(("orders", "views"), state_changelog_topics=("joined",)),
    },
    {
        "0": SubtopologyTopics(("clicks", "views"), repartition_sink_topics=("by-user",)),
        "1": SubtopologyTopics(("orders",), {"by-user": 5}, (), ("counts",)),
    },
)
PROCESSES = ("p1", "p2", "p3")


class StreamsHistory(History):
    """The events of one group."""

    def __init__(self, seed: int, events: int) -> None:
        super().__init__(seed, events, classic=False)
        self.topology = self.random.choice(TOPOLOGIES)
        self.standby = self.random.choice((0, 0, 1, 2))

    def script(self) -> Script:
        """The group: its members take their time."""
        delays = {each: self.random.choice((0, 0, 40, 7_000)) for each in (Callback.REVOKED, Callback.ASSIGNED)}
        settings = StreamsGroupSettings(
            heartbeat_interval_ms=self.random.choice((1_000, 5_000)),
            topology=self.topology,
            num_standby_replicas=self.standby,
            initial_rebalance_delay_ms=self.random.choice((0, 3_000)),
        )
        pace = Pace(self.random.choice((0, 0, 15)), delays)
        return Script(dict(self.topics), self, Form.KIP, pace, consumer_group=settings)

    def join(self) -> e.Event:
        joined = super().join()
        if not isinstance(joined, e.Join):
            return joined
        self.started[joined.member] = e.Join(
            joined.member,
            group_protocol=e.GroupProtocol.STREAMS,
            group_instance_id=joined.group_instance_id,
            process_id=self.random.choice((None, *PROCESSES)),
            at_ms=joined.at_ms,
        )
        return self.started[joined.member]

    def subscribe(self) -> e.Event:
        """No member of a Streams group subscribes."""
        return self.wait()
