"""A group to be simulated: its topics, and its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.protocol import events as e
from groupledger.core.protocol.client_api import Times
from groupledger.core.protocol.consumer_group.group_settings import ConsumerGroupSettings
from groupledger.core.protocol.settlement import Pace
from groupledger.core.rebalance.step import Form

MOST_ROUNDS = 50
"""Of one event: a group that neither settles nor repeats itself is given up."""


@dataclass(frozen=True, slots=True)
class Script:
    """One group to be simulated: the topics there are at first, and its events in order.

    `member_ids`, `topic_ids`: ids that processes and topics had in reality, in order, for a history that is to be
    played again. `times`: the rounds of a classic group are driven by a clock; without them, each event settles before
    the next one. `consumer_group`: how the broker is configured for members of the consumer protocol; not with times.
    `generation`: of the group before the first event.
    """

    topics: Mapping[str, int]
    events: Iterable[e.Event]
    form: Form = Form.KIP
    pace: Pace = field(default_factory=Pace)
    member_ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    topic_ids: Mapping[str, Sequence[TopicId]] = field(default_factory=dict)
    times: Times | None = None
    consumer_group: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    generation: int = 0
