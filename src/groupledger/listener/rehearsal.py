"""Rehearse a user's listener over a simulated group; report what it did and what went wrong.

Between two events each partition gets some records, and every running member reads all that it has. Records read but
not committed when a partition is revoked are a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.protocol.callbacks import Call
from groupledger.core.protocol.group_kinds import require_consumers
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.settlement import MemberCall, Settlement
from groupledger.core.protocol.simulator import simulate
from groupledger.core.user_code import RAISED
from groupledger.listener.broker import SimulatedBroker
from groupledger.listener.hosted import HostedConsumer
from groupledger.listener.interface import RebalanceListener
from groupledger.listener.journal import Entry
from groupledger.listener.timed import rehearsed
from groupledger.listener.view import GroupMetadataView

Make = Callable[[], RebalanceListener]
"""Makes a listener for each member: usually its class."""

SIMULATED = "simulated-group"
RECORDS = 1
"""Per partition between two events, or per second if the group has times."""


class Rehearsal(NamedTuple):
    """A script played with listeners: the outcome of each event, and what the listeners did, call by call."""

    settlements: list[Settlement]
    journal: list[Entry]

    @property
    def convicted(self) -> list[Entry]:
        """Return what went wrong, in order."""
        return [entry for entry in self.journal if entry.error is not None]


def rehearse(
    script: Script,
    make: Make,
    *,
    custom: Mapping[str, CustomAssignor] | None = None,
    group_id: str = SIMULATED,
) -> Rehearsal:
    """Play a script in which every member has such a listener. Raises Fault as `simulate` does.

    With times the listeners run inside the group: what their callbacks `spend` delays its rounds, and one record a
    second arrives in each partition if the script has no rate of its own. Only listeners commit, unless the script has
    an interval for auto-commit. Without times: as `rehearse_simulation`.
    """
    script = replace(script, events=list(script.events))
    require_consumers(script.events, "a listener")
    if script.times is None:
        settled = simulate(script, custom)
        return Rehearsal(settled, rehearse_simulation(settled, make, group_id=group_id))
    rate = script.times.records_per_second
    counted = replace(script, times=replace(script.times, records_per_second=RECORDS if rate is None else rate))
    journal: list[Entry] = []
    return Rehearsal(simulate(counted, custom, rehearsed(make, group_id, journal)), journal)


def rehearse_simulation(
    settlements: Iterable[Settlement], make: Make, *, group_id: str = SIMULATED, records: int = RECORDS
) -> list[Entry]:
    """Return what the listeners of all members did, call by call; members by the name of the process.

    Each partition gets `records` between two events. A restarted process has a new consumer and a new listener; one
    that has ended or hangs reads nothing.
    """
    group = RehearsedGroup(make, group_id, SimulatedBroker({}))
    journal: list[Entry] = []
    running: Mapping[str, int] = {}
    for settled in settlements:
        journal += group.pass_time(records, settled.event.at_ms, running)
        group.broker.set_topics(settled.topics)
        for (_, member, process), polled in groupby(settled.calls, key=_due_together):
            calls = [(each.call, _membership(group_id, each)) for each in polled]
            journal += group.poll(member, calls, process)
        running = settled.running
    return journal + group.pass_time(records, 0, running)


def _due_together(called: MemberCall) -> tuple[int, str, int]:
    return called.round, called.member, called.process


def _membership(group_id: str, called: MemberCall) -> GroupMetadataView:
    return GroupMetadataView(group_id, called.generation, called.member_id, called.group_instance_id)


class RehearsedGroup:
    """One group: its broker, and the consumer of each member that was called.

    Calls are made in the protocol's order: under an eager assignor all members revoke before any is assigned.
    Successive calls of one member are due at one poll.
    """

    def __init__(self, make: Make, group_id: str, broker: SimulatedBroker) -> None:
        self.make = make
        self.group_id = group_id
        self.broker = broker
        self.consumers: dict[str, HostedConsumer] = {}

    def pass_time(self, records: int, at_ms: int, running: Mapping[str, int]) -> list[Entry]:
        """Let the logs grow and these members read them."""
        self.broker.append(records, at_ms)
        journal: list[Entry] = []
        for member, process in sorted(running.items()):
            consumer = self.consumers.get(member)
            if consumer is not None and consumer.process == process:
                known = len(consumer.journal)
                consumer.consume()
                journal += consumer.journal[known:]
        return journal

    def new_consumer(self, member: str, process: int) -> HostedConsumer:
        """Make the consumer of a process."""
        return HostedConsumer(member, self.group_id, broker=self.broker, process=process)

    def poll(self, member: str, calls: Iterable[tuple[Call, GroupMetadataView]], process: int = 1) -> list[Entry]:
        """Poll a member once; its listener's errors are in the journal. A new process has a new consumer."""
        consumer = self.consumers.get(member)
        if consumer is None or consumer.process != process:
            consumer = self.new_consumer(member, process)
            consumer.set_rebalance_listener(self.make())
            self.consumers[member] = consumer
        known = len(consumer.journal)
        for call, membership in calls:
            consumer.feed([call], membership)
        try:
            consumer.poll()
        except RAISED:  # a listener is a user's code and may raise anything
            return consumer.journal[known:]
        return consumer.journal[known:]
