"""Encode KIP-315's user data: a consumer's remembered assignment, which it sends back, and the leader's epoch.

    subscription  version int16 = 0, epoch int32, count int32, partition int32 ..   (ascending)
    assignment    version int16 = 0, epoch int32

Big-endian. A later version may only append fields, so a reader ignores what follows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from groupledger.core.faults import Fault
from groupledger.core.input_codes import ScenarioCode

VERSION = 0
EPOCH = struct.Struct(">hi")
MEMORY = struct.Struct(">hii")


@dataclass(frozen=True, slots=True)
class JoinMemory:
    """The partition numbers a consumer was given, ascending, and the epoch of that rebalance."""

    epoch: int
    partitions: tuple[int, ...]


def remember(partitions: Iterable[int], assignment_user_data: bytes) -> JoinMemory:
    """Build what a consumer keeps on assignment: the distinct numbers of all its partitions, and the leader's epoch."""
    version, epoch = _unpack(EPOCH, assignment_user_data)
    _require_known(version)
    return JoinMemory(epoch, tuple(sorted(set(partitions))))


def write_memory(memory: JoinMemory) -> bytes:
    """Encode a subscription's user data."""
    count = len(memory.partitions)
    return MEMORY.pack(VERSION, memory.epoch, count) + struct.pack(f">{count}i", *memory.partitions)


def read_memory(subscription_user_data: bytes) -> JoinMemory:
    """Decode what `write_memory` encodes; Fault `user-data` for other bytes."""
    version, epoch, count = _unpack(MEMORY, subscription_user_data)
    _require_known(version)
    if not 0 <= count <= (len(subscription_user_data) - MEMORY.size) // 4:
        raise _broken(f"it announces {count:,} partitions in {len(subscription_user_data):,} bytes")
    partitions = struct.unpack_from(f">{count}i", subscription_user_data, MEMORY.size)
    return JoinMemory(epoch, tuple(sorted(set(partitions))))


def write_epoch(epoch: int) -> bytes:
    """Encode an assignment's user data."""
    return EPOCH.pack(VERSION, epoch)


def _unpack(layout: struct.Struct, raw: bytes) -> tuple[int, ...]:
    if len(raw) < layout.size:
        raise _broken(f"it has {len(raw)} bytes")
    return layout.unpack_from(raw)


def _require_known(version: int) -> None:
    if version < VERSION:
        raise _broken(f"its version is {version}")


def _broken(what: str) -> Fault:
    expected = "version int16 >= 0, epoch int32, then (in a subscription) a count and as many int32"
    return Fault(
        ScenarioCode.BAD_USER_DATA, f"user data of sticky-stream-join: {what}; expected {expected}: treat it as none"
    )
