"""A listener that does what a test says, and a consumer whose polls a test feeds."""

from __future__ import annotations

from groupledger.core.protocol.consumer import Call, Callback
from groupledger.listener import HostedConsumer, RebalanceListener
from tests.core.protocol.played import t


class Doing(RebalanceListener):
    """Does one thing in each callback, and notes the calls."""

    def __init__(self, assigned=None, revoked=None, lost=None):
        self.actions = {"assigned": assigned, "revoked": revoked, "lost": lost or revoked}
        self.calls = []

    def act(self, name, partitions, consumer):
        self.calls.append((name, tuple(partitions)))
        if self.actions[name] is not None:
            self.actions[name](partitions, consumer)

    def on_partitions_assigned(self, partitions, consumer):
        self.act("assigned", partitions, consumer)

    def on_partitions_revoked(self, partitions, consumer):
        self.act("revoked", partitions, consumer)

    def on_partitions_lost(self, partitions, consumer):
        self.act("lost", partitions, consumer)


def assigned(*numbers):
    return Call(Callback.ASSIGNED, t(*numbers))


def revoked(*numbers):
    return Call(Callback.REVOKED, t(*numbers))


def lost(*numbers):
    return Call(Callback.LOST, t(*numbers))


def polled(listener, *calls, consumer=None):
    """A consumer of which each call was due at a poll of its own."""
    consumer = consumer or HostedConsumer("m", "g", {"t": 4})
    consumer.set_rebalance_listener(listener)
    for each in calls:
        consumer.feed([each])
        consumer.poll()
    return consumer


def failing(error):
    def raise_it(*_):
        raise error

    return raise_it
