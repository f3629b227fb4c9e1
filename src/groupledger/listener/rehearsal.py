"""A user's listener driven over a simulated group or over recorded history; what it did, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter

from groupledger.core.protocol.callbacks import Call
from groupledger.core.protocol.recorded import RecordedCall
from groupledger.core.protocol.settlement import Settlement
from groupledger.listener.hosted import Entry, HostedConsumer
from groupledger.listener.interface import RebalanceListener

Make = Callable[[], RebalanceListener]
"""A listener for each member: usually its class."""

Step = tuple[object, str, Call]
"""What belongs together, which member, which call."""


def rehearse_simulation(settlements: Iterable[Settlement], make: Make) -> list[Entry]:
    """What the listeners of all members did, event by event and round by round; members by the name of the process.

    A process that is started again has a consumer and a listener of its own.
    """
    hosts = _Hosts(make)
    journal: list[Entry] = []
    for settled in settlements:
        if settled.started is not None:
            hosts.forget(settled.started)
        journal += hosts.rehearse((each.round, each.member, each.call) for each in settled.calls)
    return journal


def rehearse_history(calls: Iterable[RecordedCall], make: Make) -> list[Entry]:
    """The same over the calls that history records, snapshot by snapshot; members by their member id."""
    return _Hosts(make).rehearse(((each.group_id, each.snapshot_id), each.member_id, each.call) for each in calls)


class _Hosts:
    """The consumer of each member that was called."""

    def __init__(self, make: Make) -> None:
        self.make = make
        self.consumers: dict[str, HostedConsumer] = {}

    def forget(self, member: str) -> None:
        """The member's process ended, or another one starts under its name."""
        self.consumers.pop(member, None)

    def rehearse(self, steps: Iterable[Step]) -> list[Entry]:
        """All calls of one step are due at once: each member polls once, in the order of their first calls."""
        journal: list[Entry] = []
        for _, together in groupby(steps, key=itemgetter(0)):
            due: dict[str, list[Call]] = {}
            for _, member, call in together:
                due.setdefault(member, []).append(call)
            for member, calls in due.items():
                journal += _polled(self.consumer(member), calls)
        return journal

    def consumer(self, member: str) -> HostedConsumer:
        """The member's consumer, made where it has none."""
        if member not in self.consumers:
            self.consumers[member] = HostedConsumer(member)
            self.consumers[member].set_rebalance_listener(self.make())
        return self.consumers[member]


def _polled(consumer: HostedConsumer, calls: Iterable[Call]) -> list[Entry]:
    """One poll; what a listener raises stands in the journal already."""
    known = len(consumer.journal)
    consumer.feed(calls)
    try:
        consumer.poll()
    except Exception:  # noqa: BLE001 - a listener is a user's code and may raise anything
        return consumer.journal[known:]
    return consumer.journal[known:]
