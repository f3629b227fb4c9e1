"""A group of the consumer protocol (KIP-848) on a real broker and in the simulator: each event happens to both."""

from __future__ import annotations

from collections.abc import Mapping

from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.simulator import Script
from groupledger.core.rebalance.step import Form
from groupledger.core.wire.codec import uuid_bytes
from tests.live.members import Settings
from tests.live.stage import Heard, Stage, Start
from tests.live.topics import Topics

BROKER = ConsumerGroupSettings(heartbeat_interval_ms=500, session_timeout_ms=6_000)
PROPERTIES = f"""\
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms={BROKER.heartbeat_interval_ms}
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms={BROKER.session_timeout_ms}
"""


class ConsumerStage(Stage):
    """As `Stage`, with the times at which things happened, since the coordinator waits between two targets.

    Compared are the listeners' calls as far as a heartbeat's moment does not decide them: what comes with several
    assignments, one after the other and nothing revoked between them, is one call.
    """

    def __init__(self, start: Start, settings: Settings, topics: Topics, counts: Mapping[str, int]) -> None:
        super().__init__(start, settings, topics, counts)
        self._ids = {name: [TopicId(uuid_bytes(topics.id(name)))] for name in counts}

    def _folded(self, calls: list[Heard]) -> list[Heard]:
        """Assignments one after the other are one; one of nothing is none."""
        folded: list[Heard] = []
        for (callback, partitions), at_ms in calls:
            if callback is Callback.ASSIGNED and folded and folded[-1][0][0] is Callback.ASSIGNED:
                (_, before), first_ms = folded[-1]
                at_ms = first_ms if before else at_ms
                folded[-1] = (callback, tuple(sorted({*before, *partitions}))), at_ms
            else:
                folded.append(((callback, partitions), at_ms))
        return [each for each in folded if each[0] != (Callback.ASSIGNED, ())]

    def _script(self) -> Script:
        """What happened until now."""
        return Script(
            self._counts,
            self._events,
            Form.AS_KAFKA,
            member_ids=self._member_ids(),
            topic_ids=self._ids,
            consumer_group=BROKER,
        )
