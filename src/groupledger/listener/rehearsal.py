"""A user's listener driven over a simulated group or over recorded history; what it did, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from groupledger.core.protocol.callbacks import Call
from groupledger.core.protocol.recorded import RecordedCall
from groupledger.core.protocol.settlement import Settlement
from groupledger.listener.broker import SimulatedBroker
from groupledger.listener.hosted import Entry, HostedConsumer
from groupledger.listener.interface import RebalanceListener

Make = Callable[[], RebalanceListener]
"""A listener for each member: usually its class."""


def rehearse_simulation(settlements: Iterable[Settlement], make: Make) -> list[Entry]:
    """What the listeners of all members did, call by call; members by the name of the process.

    A process that is started again has a consumer and a listener of its own.
    """
    hosts = _Hosts(make)
    journal: list[Entry] = []
    for settled in settlements:
        if settled.started is not None:
            hosts.forget(settled.started)
        for (_, member), polled in groupby(settled.calls, key=lambda each: (each.round, each.member)):
            journal += hosts.poll(member, [each.call for each in polled])
    return journal


def rehearse_history(calls: Iterable[RecordedCall], make: Make) -> list[Entry]:
    """The same over the calls that history records, snapshot by snapshot; members by their member id."""
    groups: dict[tuple[str, str], _Hosts] = {}
    journal: list[Entry] = []
    for (cluster_id, group_id, _, member_id), polled in groupby(calls, key=_polling):
        hosts = groups.setdefault((cluster_id, group_id), _Hosts(make))
        journal += hosts.poll(member_id, [each.call for each in polled])
    return journal


def _polling(each: RecordedCall) -> tuple[str, str, str, str]:
    return each.cluster_id, each.group_id, each.snapshot_id, each.member_id


class _Hosts:
    """One group: its broker, and the consumer of each member that was called.

    Calls are made in their order, which is that of the protocol: under an eager assignor all members give up before
    anybody is assigned. Those of one member that follow one another are due at one poll.
    """

    def __init__(self, make: Make) -> None:
        self.make = make
        self.broker = SimulatedBroker()
        self.consumers: dict[str, HostedConsumer] = {}

    def forget(self, member: str) -> None:
        """The member's process ended, or another one starts under its name."""
        self.consumers.pop(member, None)

    def poll(self, member: str, calls: Iterable[Call]) -> list[Entry]:
        """One poll of a member, which is made where there is none."""
        if member not in self.consumers:
            self.consumers[member] = HostedConsumer(member, broker=self.broker)
            self.consumers[member].set_rebalance_listener(self.make())
        return _polled(self.consumers[member], calls)


def _polled(consumer: HostedConsumer, calls: Iterable[Call]) -> list[Entry]:
    """One poll; what a listener raises stands in the journal already."""
    known = len(consumer.journal)
    consumer.feed(calls)
    try:
        consumer.poll()
    except Exception:  # noqa: BLE001 - a listener is a user's code and may raise anything
        return consumer.journal[known:]
    return consumer.journal[known:]
