"""A listener that does what it is told to, and polls in which it is called."""

from __future__ import annotations

from tests.kips import listeners


class Doing(listeners.Doing):
    """Notes what is assigned during each call, and does nothing with lost partitions unless it is told to."""

    def __init__(self, assigned=None, revoked=None, lost=None):
        super().__init__(assigned, revoked, lost or (lambda *_: None))
        self.seen = []

    def act(self, name, partitions, consumer):
        self.seen.append((name, tuple(partitions), sorted(consumer.assignment())))
        super().act(name, partitions, consumer)


def polled(consumer, listener, *due):
    consumer.set_rebalance_listener(listener)
    consumer.subscribe(["t"])
    for each in due:
        consumer._consumer.due = [each]
        consumer.poll(0.1)
    return consumer._consumer.did
