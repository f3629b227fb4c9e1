"""What tests of consumer groups (KIP-848) say and read: members by letter, heartbeats and epochs as tuples."""

from __future__ import annotations

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.played import at_rest

CONSUMER = e.GroupProtocol.CONSUMER
SECOND = 1_000


def join(member, *topics, at=0, **more):
    """A member of the consumer protocol; `at` in seconds."""
    return e.Join(member, topics or ("t",), group_protocol=CONSUMER, at_ms=at * SECOND, **more)


def classic(member, at=0, assignors=("cooperative-sticky",), **more):
    """One of the classic protocol."""
    return e.Join(member, ("t",), assignors, at_ms=at * SECOND, **more)


def run(*events, topics=None, form=Form.AS_KAFKA, pace=None, rests=True, **settings):
    """The settlements of a group over t (4 partitions); `rests`: it comes to rest after each event."""
    script = Script(topics or {"t": 4}, events, form, pace or Pace(), consumer_group=ConsumerGroupSettings(**settings))
    settled = simulate(script)
    return at_rest(settled) if rests else settled


def beats(settled, member):
    """`(ms, epoch said, epoch and state answered)` of one member's heartbeats with news."""
    rows = settled.coordinated.heartbeats
    return [(row.at_ms, row.sent_epoch, row.epoch, row.error or row.state) for row in rows if row.member == member]


def epochs(settled):
    """{process: its member epoch} afterwards."""
    return {row.member: row.epoch for row in settled.coordinated.members}


def rounds(settled):
    """{member: what it was assigned} in each round."""
    return [{row.member: len(row.assigned) for row in took.members} for took in settled.rounds]
