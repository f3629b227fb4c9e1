"""Provide KIP-1306's rebalance listeners in Python, and hosts to rehearse them before production.

Read `interface` (what users write), `view` (RebalanceConsumer), `hosted` (a listener in a simulated member), `timed`
(by a clock), `live`, `confluent` and `kafka_python` (in real consumers), `rehearsal` (against recorded calls). Called
by users, `cli` and `notebook`.
"""

from groupledger.listener.hosted import Entry, HostedConsumer
from groupledger.listener.interface import (
    Adapted,
    CompositeRebalanceListener,
    ConsumerRebalanceListener,
    RebalanceListener,
)
from groupledger.listener.rehearsal import Rehearsal, rehearse, rehearse_commits, rehearse_history, rehearse_simulation
from groupledger.listener.timed import spend
from groupledger.listener.view import (
    CommitFailedError,
    IllegalArgumentError,
    IllegalStateError,
    InterruptError,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RebalanceConsumer,
    UnsupportedOperationError,
    WakeupError,
)

__all__ = [
    "Adapted",
    "CommitFailedError",
    "CompositeRebalanceListener",
    "ConsumerRebalanceListener",
    "Entry",
    "HostedConsumer",
    "IllegalArgumentError",
    "IllegalStateError",
    "InterruptError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RebalanceConsumer",
    "RebalanceListener",
    "Rehearsal",
    "UnsupportedOperationError",
    "WakeupError",
    "rehearse",
    "rehearse_commits",
    "rehearse_history",
    "rehearse_simulation",
    "spend",
]
