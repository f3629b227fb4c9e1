"""Groups whose timeouts run out on a real broker and by the simulator's clock: calls, their order, their moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.settlement import Settlement
from groupledger.core.protocol.simulated_group import Accepts, AnyGroup, Application, SimulatedProcess
from groupledger.core.protocol.simulator import simulate
from tests.live.client import HEARTBEAT_MS
from tests.live.consumer_stage import ConsumerStage
from tests.live.members import Said, Settings
from tests.live.stage import Stage

EARLY_MS = 1_000
"""So much before its moment a call may come: the simulator guesses when a client's heartbeats and polls are."""
LATE_MS = 20_000
"""And so much after it, on a busy machine."""
APART_MS = 2_500
"""Calls of two processes that the simulator has so far apart come in that order."""


class Timed(Stage):
    """A stage with the times of its clients: sessions, `max.poll.interval.ms`, and who takes long over revoking."""

    clock = True
    initial_delay_ms = 0
    """`group.initial.rebalance.delay.ms` of the broker."""
    revoking_ms: Mapping[str, int] = {}

    def _settings_of(self, event: e.Join) -> Settings:
        return replace(super()._settings_of(event), revoking_ms=self.revoking_ms.get(event.member, 0))

    def _played(self) -> list[Settlement]:
        return simulate(self._script(), applications=self._application)

    def _application(self, _group: AnyGroup, process: SimulatedProcess, _accepts: Accepts) -> Application:
        return Application({Callback.REVOKED: self.revoking_ms.get(process.name, 0)})

    def _script(self) -> Script:
        """What happened until now, by the clock."""
        told = self._settings
        assert told.max_poll_ms is not None
        each = MemberTimes(told.session_ms, HEARTBEAT_MS, told.max_poll_ms, round_trip_ms=2)
        script = super()._script()
        events = sorted(script.events, key=lambda event: event.at_ms)
        return replace(script, events=events, times=Times(each, initial_rebalance_delay_ms=self.initial_delay_ms))

    def untimely(self) -> list[str]:
        """Calls that came before or long after their moment, or in another order, where all were as expected."""
        pairs = [
            (f"{name}'s {_words(call)}", said_ms, expected_ms)
            for name, heard in self.heard().items()
            for (call, said_ms), (_, expected_ms) in zip(heard, self.expected().get(name, []), strict=True)
        ]
        found = [
            f"{what} came at {said_ms} ms; expected {expected_ms} ms, {EARLY_MS} ms less or {LATE_MS} ms more"
            for what, said_ms, expected_ms in pairs
            if not expected_ms - EARLY_MS <= said_ms <= expected_ms + LATE_MS
        ]
        return found + [
            f"{first} came after {then}; expected it {then_ms - first_ms} ms before"
            for (first, heard_first_ms, first_ms), (then, heard_then_ms, then_ms) in permutations(pairs, 2)
            if then_ms - first_ms > APART_MS and heard_first_ms > heard_then_ms
        ]


class TimedStage(Timed):
    """Of a classic group."""


class TimedConsumerStage(Timed, ConsumerStage):
    """Of a group of the consumer protocol (KIP-848)."""


def _words(call: Said) -> str:
    callback, partitions = call
    return " ".join([callback.value, *(str(number) for _, number in partitions)])
