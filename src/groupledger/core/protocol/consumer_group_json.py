"""The broker's settings for groups that it assigns as JSON, {"heartbeat_interval_ms": 5000}, and what it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from groupledger.core.assignors.server.assign import ASSIGNORS
from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.consumer_group.coordinated import Coordinated, HeartbeatRow, MemberRow, TargetRow
from groupledger.core.protocol.consumer_group.settings import (
    ConsumerGroupSettings,
    MigrationPolicy,
    StreamsGroupSettings,
)
from groupledger.core.protocol.events import GroupProtocol
from groupledger.core.protocol.group_kinds import KINDS
from groupledger.core.protocol.script_checks import MOST_MS, require, require_one_of, require_whole
from groupledger.core.protocol.topology_json import read_topology, write_topology

MAY_BE_ZERO = frozenset({"assignment_interval_ms", "initial_rebalance_delay_ms", "num_standby_replicas"})
MOST = {"num_standby_replicas": 2**15 - 1}
TOPOLOGY = "topology"
OF_STREAMS_ROW = ("process_id", "standby_target", "standby")
CHOICES: dict[str, list[str]] = {"remote_assignor": list(ASSIGNORS), "migration_policy": list(MigrationPolicy)}


def group_key(protocol: GroupProtocol) -> str:
    """Under which name a script has settings of such a group, and a result its coordinator: `share_group`."""
    return f"{protocol.value}_group"


def read_settings(found: Any, protocol: GroupProtocol = GroupProtocol.CONSUMER) -> ConsumerGroupSettings:
    """The settings of a script, Kafka's own where it has none; raises Fault("BAD_SCRIPT")."""
    place = group_key(protocol)
    require(isinstance(found, dict), place, found, "an object")
    of_all = tuple(each.name for each in fields(ConsumerGroupSettings))
    told = dict(found or {})
    for name, value in told.items():
        require_one_of(name, KINDS[protocol].settings if protocol in KINDS else of_all, place)
        if name in CHOICES:
            require_one_of(value, CHOICES[name], f"{place}.{name}")
        elif name == TOPOLOGY:
            told[name] = read_topology(value, f"{place}.{name}")
        else:
            require_whole(value, f"{place}.{name}", MOST.get(name, MOST_MS), least=int(name not in MAY_BE_ZERO))
    if protocol is GroupProtocol.STREAMS:
        return StreamsGroupSettings(**told)
    policy = MigrationPolicy(told.get("migration_policy", MigrationPolicy.BIDIRECTIONAL))
    return ConsumerGroupSettings(**{**told, "migration_policy": policy})


def write_settings(settings: ConsumerGroupSettings) -> dict[str, Any]:
    """Those settings that are not Kafka's own: `read_settings` gives all of them again."""
    pairs = ((each.name, getattr(settings, each.name)) for each in fields(settings))
    default = type(settings)()
    told = {name: value for name, value in pairs if value != getattr(default, name)}
    return told | ({TOPOLOGY: write_topology(told[TOPOLOGY])} if TOPOLOGY in told else {})


def write_coordinated(group: Coordinated) -> dict[str, Any]:
    """What the coordinator did in one event."""
    streams = group.protocol is GroupProtocol.STREAMS
    return {
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_row(each, streams=streams) for each in group.members],
        "heartbeats": [_row(each, streams=streams) for each in group.heartbeats],
        "targets": [_target(each, streams=streams) for each in group.targets],
        "reconciled": [each._asdict() for each in group.reconciled],
        **({"status": group.status} if streams else {}),
    }


def _row(row: MemberRow | HeartbeatRow, *, streams: bool) -> dict[str, Any]:
    """A row whose tuples are partitions, or tasks."""
    told = {name: value for name, value in row._asdict().items() if streams or name not in OF_STREAMS_ROW}
    return {name: _pairs(value) if isinstance(value, tuple) else value for name, value in told.items()}


def _target(row: TargetRow, *, streams: bool) -> dict[str, Any]:
    told = {
        "at_ms": row.at_ms,
        "epoch": row.epoch,
        "assignor": row.assignor,
        "targets": {member: _pairs(partitions) for member, partitions in row.targets},
    }
    return told | ({"standby": {member: _pairs(tasks) for member, tasks in row.standby}} if streams else {})


def _pairs(partitions: Iterable[TopicPartition]) -> list[list[Any]]:
    return [list(each) for each in partitions]
