"""The broker's settings for a consumer or share group as JSON, {"heartbeat_interval_ms": 5000}, and what it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from groupledger.core.assignors.server.assign import ASSIGNORS
from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.consumer_group.coordinated import Coordinated, HeartbeatRow, MemberRow, TargetRow
from groupledger.core.protocol.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from groupledger.core.protocol.events import GroupProtocol
from groupledger.core.protocol.script_checks import require, require_one_of, require_whole

OF_SHARE_GROUP = ("heartbeat_interval_ms", "session_timeout_ms", "assignment_interval_ms")
"""Settings of a share group; a consumer group has all."""
MOST_MS = 2**31 - 1
"""Of a setting of Kafka's."""
MAY_BE_ZERO = frozenset({"assignment_interval_ms"})
CHOICES: dict[str, list[str]] = {"remote_assignor": list(ASSIGNORS), "migration_policy": list(MigrationPolicy)}


def group_key(protocol: GroupProtocol) -> str:
    """Under which name a script has settings of such a group, and a result its coordinator: `share_group`."""
    return f"{protocol.value}_group"


def read_settings(found: Any, protocol: GroupProtocol = GroupProtocol.CONSUMER) -> ConsumerGroupSettings:
    """The settings of a script, Kafka's own where it has none; raises Fault("BAD_SCRIPT")."""
    place = group_key(protocol)
    require(isinstance(found, dict), place, found, "an object")
    of_all = tuple(each.name for each in fields(ConsumerGroupSettings))
    for name, value in found.items():
        require_one_of(name, OF_SHARE_GROUP if protocol is GroupProtocol.SHARE else of_all, place)
        if name in CHOICES:
            require_one_of(value, CHOICES[name], f"{place}.{name}")
        else:
            require_whole(value, f"{place}.{name}", MOST_MS, least=int(name not in MAY_BE_ZERO))
    policy = MigrationPolicy(found.get("migration_policy", MigrationPolicy.BIDIRECTIONAL))
    return ConsumerGroupSettings(**{**found, "migration_policy": policy})


def write_settings(settings: ConsumerGroupSettings) -> dict[str, Any]:
    """Those settings that are not Kafka's own: `read_settings` gives all of them again."""
    default = asdict(ConsumerGroupSettings())
    return {name: value for name, value in asdict(settings).items() if value != default[name]}


def write_coordinated(group: Coordinated) -> dict[str, Any]:
    """What the coordinator did in one event."""
    return {
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_row(each) for each in group.members],
        "heartbeats": [_row(each) for each in group.heartbeats],
        "targets": [_target(each) for each in group.targets],
        "reconciled": [each._asdict() for each in group.reconciled],
    }


def _row(row: MemberRow | HeartbeatRow) -> dict[str, Any]:
    """A row whose tuples are partitions."""
    return {name: _pairs(value) if isinstance(value, tuple) else value for name, value in row._asdict().items()}


def _target(row: TargetRow) -> dict[str, Any]:
    return {
        "at_ms": row.at_ms,
        "epoch": row.epoch,
        "assignor": row.assignor,
        "targets": {member: _pairs(partitions) for member, partitions in row.targets},
    }


def _pairs(partitions: Iterable[TopicPartition]) -> list[list[Any]]:
    return [list(each) for each in partitions]
