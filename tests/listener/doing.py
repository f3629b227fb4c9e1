"""A listener that does what it is told to, and polls in which it is called."""

from __future__ import annotations

from groupledger.listener import RebalanceListener


class Doing(RebalanceListener):
    def __init__(self, **actions):
        self.actions, self.seen = actions, []

    def act(self, name, partitions, consumer):
        self.seen.append((name, tuple(partitions), sorted(consumer.assignment())))
        self.actions.get(name, lambda *_: None)(partitions, consumer)

    def on_partitions_assigned(self, partitions, consumer):
        self.act("assigned", partitions, consumer)

    def on_partitions_revoked(self, partitions, consumer):
        self.act("revoked", partitions, consumer)

    def on_partitions_lost(self, partitions, consumer):
        self.act("lost", partitions, consumer)


def polled(consumer, listener, *due):
    consumer.set_rebalance_listener(listener)
    consumer.subscribe(["t"])
    for each in due:
        consumer._consumer.due = [each]
        consumer.poll(0.1)
    return consumer._consumer.did
