"""A group's state between two reads, as bytes: canonical JSON, the same for the same state wherever it was made.

Of a group that its coordinator assigns it holds the last value of each living key, as compaction would keep them.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, NamedTuple

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.history.fold_rows import KINDS, Assignment, GroupType, LogRow, Role
from groupledger.core.history.members import (
    Current,
    CurrentValue,
    Expression,
    Kip848Group,
    MemberValue,
    Metadata,
    Target,
    TargetValue,
    Topology,
    read_current,
    read_metadata,
    read_target,
    read_topology,
)
from groupledger.core.history.ownership import Generation, GroupState
from groupledger.core.log.listings import TopicHistory
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import LogRecord, decode, decode_value
from groupledger.core.wire.records import GroupMetadata, OffsetCommit, RegularExpression, StreamsTopology

HEAD_VERSION = 1
OF_STATE = (
    *("group_id", "log_partition", "offset", "incarnation", "group_type", "alive"),
    *("number", "previous_offset", "hole"),
)
OF_GENERATION = ("number", "first_offset", "timestamp_ms")
OF_KIP848 = ("group_epoch", "target_epoch", "cut", "open")
"""What a head has as it is, under its own name."""

Tenures = tuple[str, int | None, Assignment]
"""What a member holds since one time, ms."""


def encode_head(state: GroupState) -> bytes:
    """Return the state as bytes; equal states give equal bytes."""
    return encode_state(state, state.ownership.tenures())


def encode_state(state: GroupState, held: Sequence[Tenures]) -> bytes:
    """As `encode_head`, of a state whose holdings are given: by member, then since when, then topic and partition."""
    generation = state.generation
    document = _values_of(state, OF_STATE) | {"version": HEAD_VERSION, "held": held, "generation": None}
    if generation is not None:
        document["generation"] = _values_of(generation, OF_GENERATION) | {"members": [*generation.members.items()]}
    document["modern"] = None if state.kip848 is None else _kip848(state.kip848)
    if state.undecided:
        document["undecided"] = [_raw_record(row) for row in state.undecided]
    return _canonical(document)


def read_classic_head(head: bytes) -> tuple[GroupState, list[Tenures]] | None:
    """Return the state of a classic group, without its holdings, and these; None: of another, or it may be converting.

    A `Fault` for bytes of another version.
    """
    state, held, kip848, undecided = _read(head)
    is_classic = kip848 is None and state.group_type in (None, GroupType.CLASSIC) and not undecided
    return (state, held) if is_classic else None


def _read(head: bytes) -> tuple[GroupState, list[Tenures], dict[str, Any] | None, list[list[Any]]]:
    """Return the state without its holdings, these, what it has of a KIP-848 group, and the undecided records."""
    document = _document(head)
    held, generation, kip848 = (document.pop(name) for name in ("held", "generation", "modern"))
    undecided = document.pop("undecided", [])
    state = GroupState(**document)
    if generation is not None:
        state.generation = Generation(**{**generation, "members": dict(generation["members"])})
    return state, held, kip848, undecided


def _document(head: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(head)
    version = document.pop("version", None)
    if version != HEAD_VERSION:
        message = f"head has version {version}; expected {HEAD_VERSION}: fold the group again from the beginning"
        raise Fault("HEAD_VERSION", message)
    return document


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=True).encode()


def decode_head(head: bytes, topics: TopicHistory) -> GroupState:
    """Return the state that `encode_head` wrote; a `Fault` for bytes of another version."""
    state, held, kip848, undecided = _read(head)
    state.undecided = tuple(_restored_record(state.log_partition, row) for row in undecided)
    for member_id, since, owned in held:
        assignment = tuple((topic_id, name, tuple(partitions)) for topic_id, name, partitions in owned)
        state.ownership.restore(member_id, since, assignment)
    state.kip848 = None if kip848 is None else _restored_kip848(kip848, GroupType(state.group_type or ""), topics)
    return state


def undecided_from(head: bytes) -> int | None:
    """Return the offset of the first record that was read and is not yet in the state; None: it has all."""
    undecided = _document(head).get("undecided")
    return undecided[0][0] if undecided else None


def closed_head(head: bytes) -> bytes:
    """Return the head of a group whose history ends here, as at a tombstone: no member is left in it.

    The next record begins an incarnation. It counts as one after a hole, so that no verdict rests on the members of a
    KIP-848 group that are not written again.
    """
    document: dict[str, Any] = json.loads(head)
    ended: dict[str, Any] = {
        "alive": False,
        "previous_offset": None,
        "hole": True,
        "held": [],
        "generation": None,
        "modern": None,
    }
    for offset, *_ in document.pop("undecided", ()):  # their keys name members
        document["offset"] = offset
    return _canonical(document | ended)


def _values_of(what: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(what, name) for name in names}


def _raw_record(row: LogRow) -> list[int | str | None]:
    return [
        row.offset,
        row.timestamp_ms,
        *(None if data is None else b64encode(data).decode() for data in (row.key, row.value)),
    ]


def _restored_record(log_partition: int, raw: list[Any]) -> LogRow:
    """Restore a record, which an earlier read counted."""
    offset, at, *texts = raw
    key, value = (None if text is None else b64decode(text) for text in texts)
    return LogRow(log_partition, offset, at, key, value, known=True)


def _kip848(group: Kip848Group) -> dict[str, object]:
    document = _values_of(group, OF_KIP848)
    document |= {"leaving": sorted(group.leaving), "unsettled": sorted(group.unsettled)}
    for name in ("metadata", "targets", "current", "expressions"):
        document[name] = _raw(getattr(group, name))
    if group.first_epoch is not None:
        document["first_epoch"] = group.first_epoch
    document |= {name: True for name in ("counts_partitions", "converting") if getattr(group, name)}
    if group.topology is not None:
        document["topology"] = _raw({"": group.topology})
    return document


def _raw(values: Mapping[str, Metadata | Target | Current | Expression | Topology]) -> list[list[str]]:
    return [[key, b64encode(value.raw).decode()] for key, value in values.items()]


def _restored_kip848(document: dict[str, Any], group_type: GroupType, topics: TopicHistory) -> Kip848Group:
    epochs = document["group_epoch"], document["target_epoch"]
    group = Kip848Group(group_type, *epochs, document["cut"], document["open"])
    group.leaving, group.unsettled = set(document["leaving"]), set(document["unsettled"])
    group.first_epoch = document.get("first_epoch")  # heads of before it was kept have none
    group.counts_partitions = document.get("counts_partitions", False)
    group.converting = document.get("converting", False)
    for key, raw, value in _values(document["metadata"], (group_type, Role.MEMBER), MemberValue):
        group.metadata[key] = read_metadata(raw, value)
    for key, raw, target in _values(document["targets"], (group_type, Role.TARGET), TargetValue):
        group.targets[key] = read_target(raw, target, topics)
    for key, raw, current in _values(document["current"], (group_type, Role.CURRENT), CurrentValue):
        group.current[key] = read_current(raw, current, topics)
    for key, raw, expression in _values(document["expressions"], (group_type, Role.EXPRESSION), RegularExpression):
        group.expressions[key] = Expression(raw, expression.topics)
    for _, raw, topology in _values(document.get("topology", []), (group_type, Role.TOPOLOGY), StreamsTopology):
        group.topology = read_topology(raw, topology)
    return group


def _values(
    entries: list[list[str]], about: tuple[GroupType, Role], shape: type | UnionType
) -> Iterator[tuple[str, bytes, Any]]:
    """Key, bytes and decoded value of the entries; they decoded before they were kept."""
    for key, text in entries:
        raw, kind = b64decode(text), KINDS[about]
        _, value = decode_value(kind, raw)
        if not isinstance(value, shape):
            raise TypeError(f"{kind} decodes to {type(value).__name__}; expected {shape}")
        yield key, raw, value


# What a group's raw records say beside its snapshots: committed offsets, and how long members may take.


class CommittedOffset(NamedTuple):
    """A committed offset as the log has it (OffsetCommitKey, OffsetCommitValue); no `offset`: it was deleted.

    `log_offset` is its place among all records of the group. The log does not say which member sent it.
    """

    log_offset: int
    at_ms: int
    partition: TopicPartition
    offset: int | None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedLog:
    """Committed offsets in order of position; by member id the rebalance timeout of members of a classic group."""

    commits: tuple[CommittedOffset, ...]
    rebalance_timeout_ms: Mapping[str, int]

    @property
    def topics(self) -> dict[str, str]:
        """Names of topics by topic id, as far as commits have both."""
        return {each.topic_id: each.partition.topic for each in self.commits if each.topic_id is not None}

    def by_partition(self) -> dict[TopicPartition, list[CommittedOffset]]:
        """Return the commits of each partition, in order of position."""
        found: dict[TopicPartition, list[CommittedOffset]] = {}
        for each in self.commits:
            found.setdefault(each.partition, []).append(each)
        return found


def read_group_log(rows: Iterable[LogRow]) -> RecordedLog:
    """Read the records of one group, in any order. What does not decode is left out."""
    commits: dict[int, CommittedOffset] = {}
    timeouts: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row.offset):
        try:
            record = decode(row.key, row.value)
        except DecodeFault:
            continue
        if isinstance(record.value, GroupMetadata):
            for member in record.value.members:
                wait = member.rebalance_timeout
                timeouts[member.member_id] = member.session_timeout if wait is None else wait
        elif "partition" in record.key.fields:
            commits.setdefault(row.offset, _committed(row, record))
    return RecordedLog(tuple(commits.values()), timeouts)


def _committed(row: LogRow, record: LogRecord) -> CommittedOffset:
    named = TopicPartition(str(record.key.fields["topic"]), int(str(record.key.fields["partition"])))
    value = record.value if isinstance(record.value, OffsetCommit) else None
    if value is None:
        return CommittedOffset(row.offset, row.timestamp_ms, named, None)
    return CommittedOffset(row.offset, row.timestamp_ms, named, value.offset, value.topic_id)
