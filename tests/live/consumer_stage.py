"""A group of the consumer protocol (KIP-848) on a real broker and in the simulator: each event happens to both."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from groupledger.core.assignors.server.group import TopicId
from groupledger.core.protocol import events as e
from groupledger.core.protocol.callbacks import Callback
from groupledger.core.protocol.consumer_group.settings import ConsumerGroupSettings
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.step import Form
from groupledger.core.wire.primitives import uuid_bytes
from tests.core.protocol.captured_stories import played
from tests.live.members import Said, Settings
from tests.live.stage import Stage
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

    def __init__(
        self, start: Callable[..., Any], settings: Settings, topics: Topics, counts: Mapping[str, int]
    ) -> None:
        super().__init__(start, settings, Form.AS_KAFKA, topics, counts)
        self._began = time.monotonic()
        self._ids = {name: [TopicId(uuid_bytes(topics.id(name)))] for name in counts}

    def happen(self, event: e.Event, differing: Collection[str]) -> None:
        """Let it happen now."""
        super().happen(replace(event, at_ms=int((time.monotonic() - self._began) * 1_000)), differing)

    def _ways(self, _: tuple[e.Event, ...], event: e.Event) -> Iterator[list[e.Event]]:
        """There is one: who is faster decides the moments of heartbeats alone."""
        yield [event]

    def start(self, event: e.Join) -> None:
        """A new process of the protocol that the event names."""
        before, self._settings = self._settings, replace(self._settings, protocol=event.group_protocol.value)
        super().start(event)
        self._settings = before

    def said(self) -> dict[str, list[Said]]:
        """{process: what its listener was told}."""
        return {name: _merged(calls) for name, calls in super().said().items()}

    def simulated(self) -> dict[str, list[Said]]:
        """{process: what the simulator says of it}."""
        ids = {name: [told for each in members for told in each.member_ids] for name, members in self._members.items()}
        script = Script(
            self._counts, self._events, self._form, member_ids=ids, topic_ids=self._ids, consumer_group=BROKER
        )
        return {name: _merged(calls) for name, calls in played(simulate(script)).items()}


def _merged(calls: list[Said]) -> list[Said]:
    """Assignments one after the other are one; one of nothing is none."""
    merged: list[Said] = []
    for callback, partitions in calls:
        if callback is Callback.ASSIGNED and merged and merged[-1][0] is Callback.ASSIGNED:
            merged[-1] = callback, tuple(sorted({*merged[-1][1], *partitions}))
        else:
            merged.append((callback, partitions))
    return [each for each in merged if each != (Callback.ASSIGNED, ())]
