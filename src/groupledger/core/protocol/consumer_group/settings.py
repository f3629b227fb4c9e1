"""What a broker of Kafka 4.4 is configured with where it concerns groups that it assigns; the defaults are its own."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from groupledger.core.protocol.consumer_group.topology import Subtopologies
from groupledger.core.registry import DEFAULT_ASSIGNOR

HEARTBEAT_INTERVAL_MS = 5_000
SESSION_TIMEOUT_MS = 45_000
ASSIGNMENT_INTERVAL_MS = 1_000
RETRY_BACKOFF_MS = 100
INITIAL_REBALANCE_DELAY_MS = 3_000


class MigrationPolicy(enum.StrEnum):
    """`group.consumer.migration.policy`: which conversions a group with members goes through."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a member of the consumer protocol may join a classic group that has members."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE}

    @property
    def downgrades(self) -> bool:
        """Whether a group that its last member of the consumer protocol leaves becomes classic again."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE}


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """`group.consumer.*` of the broker, or `consumer.*` of the group; times in milliseconds.

    `assignment_interval_ms`: the least time between two target assignments (KIP-1263). `remote_assignor`: the first of
    `group.consumer.assignors`, for a group whose members ask for none.
    """

    heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    assignment_interval_ms: int = ASSIGNMENT_INTERVAL_MS
    remote_assignor: str = DEFAULT_ASSIGNOR
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings(ConsumerGroupSettings):
    """`group.streams.*` of the broker, and the topology that all members of the group bring with them.

    `initial_rebalance_delay_ms`: from the first member of an empty group to its first target.
    """

    topology: Subtopologies = field(default_factory=dict)
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = INITIAL_REBALANCE_DELAY_MS
