"""Provide KIP-1306's rebalance listeners in Python, and hosts to rehearse them before production."""

from groupledger.listener.errors import (
    CommitFailedError,
    IllegalArgumentError,
    IllegalStateError,
    InterruptError,
    UnsupportedOperationError,
    WakeupError,
)
from groupledger.listener.hosted import HostedConsumer
from groupledger.listener.interface import (
    Adapted,
    CompositeRebalanceListener,
    ConsumerRebalanceListener,
    RebalanceListener,
)
from groupledger.listener.journal import Entry
from groupledger.listener.recorded import rehearse_commits, rehearse_history
from groupledger.listener.rehearsal import Rehearsal, rehearse, rehearse_simulation
from groupledger.listener.turns import spend
from groupledger.listener.view import OffsetAndMetadata, OffsetAndTimestamp, RebalanceConsumer

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
