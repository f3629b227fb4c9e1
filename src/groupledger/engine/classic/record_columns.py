"""The log records of a bucket as columns: in order of cluster, group, log partition and offset, cut into groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.ragged import begins, owners, starts, take
from groupledger.core.history import LogRow
from groupledger.core.history.members import TopicIds
from groupledger.core.wire.codec import INT16
from groupledger.engine.arrow_lists import ByteColumn, arrow_type, listed, named, one_array
from groupledger.engine.fold_schema import GROUP_KEY, KNOWN
from groupledger.tables import columns as c
from groupledger.tables.declaration import TOPIC_ID_PARTITIONS

if TYPE_CHECKING:
    from groupledger.core.arrays.checksums import ByteArray
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.log.listings import TopicHistory

_TYPE = INT16.pack(2)
"""What the key of a GroupMetadata record begins with."""
_LONGEST = (1 << 15) - 1
"""Bytes of the longest group id."""


@dataclass(frozen=True, slots=True)
class LogColumns:
    """N records of G groups; a group without a name holds the records of one cluster whose keys name none."""

    group_start: LongArray  # [G+1]
    cluster_ids: list[str]  # [G]
    group_keys: list[bytes | None]  # [G]
    log_partition: LongArray
    offset: LongArray
    time: LongArray  # ms
    keys: ByteColumn
    values: ByteColumn
    known: Mask
    is_plain: Mask  # the key is that of the group's GroupMetadata record

    @classmethod
    def of(cls, ordered: pa.Table) -> LogColumns:
        """Return the columns of records in order."""
        clusters, names = (one_array(ordered[name].cast(kind)) for name, kind in _NAMES.items())
        start = _bounds(clusters, names)
        first = pa.array(start[:-1])
        group_keys = names.take(first).to_pylist()
        return cls(
            start,
            clusters.take(first).to_pylist(),
            group_keys,
            _numbers(ordered[c.LOG_PARTITION]),
            _numbers(ordered[c.OFFSET]),
            _numbers(ordered[c.TIMESTAMP]),
            ByteColumn.of(ordered[c.KEY]),
            ByteColumn.of(ordered[c.VALUE]),
            pc.equal(one_array(ordered[c.KIND].cast(pa.string())), KNOWN).to_numpy(zero_copy_only=False),
            _are_plain(ordered[c.KEY], start, group_keys),
        )

    @property
    def group(self) -> LongArray:
        """The group of each record: [N]."""
        return owners(self.group_start)

    def row(self, index: int) -> LogRow:
        """One record."""
        place = int(self.log_partition[index]), int(self.offset[index]), int(self.time[index])
        return LogRow(*place, self.keys[index], self.values[index], bool(self.known[index]))


_NAMES = {c.CLUSTER_ID: pa.string(), GROUP_KEY: pa.large_binary()}


def _numbers(column: Any) -> LongArray:
    return np.asarray(one_array(column.cast(pa.int64())))


def _bounds(clusters: Any, names: Any) -> LongArray:
    """Where the groups start, and where the last one ends."""
    codes = [column.dictionary_encode().indices.fill_null(-1).to_numpy() for column in (clusters, names)]
    return np.append(np.flatnonzero(begins(*codes)), len(clusters))


def _are_plain(keys: Any, start: LongArray, names: list[bytes | None]) -> Mask:
    """Whether each key is that of its group's GroupMetadata record."""
    expected = pa.array([None if name is None else _key(name) for name in names], pa.large_binary())
    same = pc.equal(one_array(keys.cast(pa.large_binary())), expected.take(pa.array(owners(start))))
    return np.asarray(same.fill_null(False).to_numpy(zero_copy_only=False))


def _key(name: bytes) -> bytes | None:
    return _TYPE + INT16.pack(len(name)) + name if len(name) <= _LONGEST else None


# Byte strings in many places of a buffer, coded by content: each distinct one is looked at once.


@dataclass(frozen=True, slots=True)
class CodedBytes:
    """Byte strings: each one's code (NONE: null), and the distinct ones by code."""

    codes: LongArray
    values: ByteColumn


@dataclass(frozen=True, slots=True)
class CodedTexts:
    """Texts: each one's code (NONE: null), and the distinct ones by code. `bad` marks codes of bytes that are no UTF-8,
    which stand here as empty texts.
    """

    codes: LongArray
    values: Any  # a string array
    bad: Mask

    @property
    def are_bad(self) -> Mask:
        """Whether each text is none."""
        return np.asarray(self.bad[self.codes] & (self.codes != NONE)) if len(self.bad) else self.codes != self.codes

    def is_(self, value: str) -> Mask:
        """Whether each text is this one."""
        code = self.values.index(value).as_py()
        return np.asarray(self.codes == code) if code >= 0 else np.zeros(len(self.codes), bool)


def blobs(data: ByteArray, at: LongArray, size: LongArray) -> CodedBytes:
    """Return the strings `data[at:at + size]`, null where the size is negative."""
    codes, values = _coded(data, at, size)
    return CodedBytes(codes, ByteColumn.of(values))


def texts(data: ByteArray, at: LongArray, size: LongArray) -> CodedTexts:
    """As `blobs`, read as UTF-8."""
    codes, values = _coded(data, at, size)
    bad = np.zeros(len(values), bool)
    try:
        return CodedTexts(codes, values.cast(pa.large_string()).cast(pa.string()), bad)
    except pa.ArrowInvalid:
        read = [_text(value) for value in values.to_pylist()]
    bad[:] = [text is None for text in read]
    return CodedTexts(codes, pa.array([text or "" for text in read], pa.string()), bad)


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _coded(data: ByteArray, at: LongArray, size: LongArray) -> tuple[LongArray, Any]:
    coded = strings(data, at, size).dictionary_encode()
    return coded.indices.fill_null(NONE).to_numpy().astype(np.int64), coded.dictionary


def strings(data: ByteArray, at: LongArray, size: LongArray) -> Any:
    """Return the strings `data[at:at + size]` as an Arrow column, null where the size is negative."""
    start = starts(np.maximum(size, 0))
    copied = np.empty(int(start[-1]), np.uint8)
    run(copy_strings, data, at, start, copied, cells=len(at))
    valid = np.packbits(size >= 0, bitorder="little")
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(at), [pa.py_buffer(each) for each in (valid, start, copied)]
    )


def written_again(
    data: ByteArray, start: LongArray, end: LongArray, again: Mapping[int, bytes]
) -> tuple[ByteArray, LongArray, LongArray]:
    """Blobs of which some, by index, have other bytes; these stand behind the data."""
    which = np.array(list(again), np.int64)
    sizes = np.array([len(each) for each in again.values()], np.int64)
    start, end = start.copy(), end.copy()
    start[which] = len(data) + np.cumsum(sizes) - sizes
    end[which] = start[which] + sizes
    return np.frombuffer(b"".join([data.data, *again.values()]), np.uint8), start, end


@kernel
def copy_strings(data: ByteArray, at: LongArray, start: LongArray, copied: ByteArray) -> None:
    """Copy each string to its place in `copied`."""
    for index in range(len(at)):
        size = start[index + 1] - start[index]
        copied[start[index] : start[index + 1]] = data[at[index] : at[index] + size]


# Lists of partitions by topic as columns, with the topics' ids of a time, as sets, and as Arrow has them.

HOLDING = arrow_type(TOPIC_ID_PARTITIONS)
_NUMBER_BITS = 32


@dataclass(frozen=True, slots=True)
class PartitionLists:
    """N lists of E topics in all, by number of their names, and their partitions."""

    start: LongArray  # [N+1]
    name: LongArray  # [E]
    number_start: LongArray  # [E+1]
    number: LongArray

    def chosen(self, lists: LongArray) -> PartitionLists:
        """Return some of the lists, in that order."""
        start, topic = take(self.start, lists)
        number_start, number = take(self.number_start, topic)
        return PartitionLists(start, self.name[topic], number_start, self.number[number])

    @property
    def topic_of_number(self) -> LongArray:
        """Of each partition its topic among E."""
        return owners(self.number_start)

    @property
    def list_of_topic(self) -> LongArray:
        """Of each topic its list."""
        return owners(self.start)


@dataclass(frozen=True, slots=True)
class IdentifiedLists:
    """Lists with the topic ids of their times."""

    lists: PartitionLists
    topic_id: LongArray  # [E] code; NONE: not known
    topic_ids: list[str]

    def arrow(self, names: list[str]) -> Any:
        """Return the lists as a column of HOLDING."""
        lists, numbers = self.lists, HOLDING.value_type.field(2).type
        ids = named(pa.array(self.topic_ids, pa.string()), self.topic_id)
        topics = pa.array(names, pa.string()).take(pa.array(lists.name))
        partitions = listed(lists.number_start, pa.array(lists.number.astype(np.int32)), numbers)
        return listed(lists.start, [ids, topics, partitions], HOLDING)


class TopicTimes:
    """The topic listings as of each record: records between two changes of a cluster's topics are of one time."""

    def __init__(self, log: LogColumns, record: LongArray, catalogues: dict[str, TopicHistory]) -> None:
        group = log.group[record]
        self._ids: list[TopicIds] = []
        self._of_record = np.zeros(len(record), np.int64)
        for cluster_id, topics in catalogues.items():
            mine = np.flatnonzero(np.array([name == cluster_id for name in log.cluster_ids], bool)[group])
            time = log.time[record[mine]]
            _, first, code = np.unique(topics.epochs(time), return_index=True, return_inverse=True)
            self._of_record[mine] = code + len(self._ids)
            self._ids += [TopicIds(topics, moment) for moment in time[first].tolist()]

    def identified(
        self, code: LongArray, of_record: LongArray, lists: PartitionLists, names: list[str]
    ) -> tuple[LongArray, IdentifiedLists]:
        """Of each code and its record a list with topic ids: which one (NONE: no code), and the distinct ones."""
        count = max(1, len(self._ids))
        pairs, found = distinct(code * count + self._of_record[of_record], code != NONE)
        chosen = lists.chosen(pairs // count)
        of_topic = (pairs % count)[chosen.list_of_topic] * max(1, len(names)) + chosen.name
        keys, places = np.unique(of_topic, return_inverse=True)
        known: dict[str, int] = {}
        ids = np.empty(len(keys), np.int64)
        for place, key in enumerate(keys.tolist()):
            topic_id = self._ids[key // len(names)][names[key % len(names)]]
            ids[place] = NONE if topic_id is None else known.setdefault(topic_id, len(known))
        return found, IdentifiedLists(chosen, ids[places], list(known))


def distinct(codes: LongArray, there: Mask) -> tuple[LongArray, LongArray]:
    """Return the distinct codes where there are any, and each one's place among them; NONE elsewhere."""
    values, places = np.unique(codes[there], return_inverse=True)
    found = np.full(len(codes), NONE, np.int64)
    found[there] = places
    return values, found


@dataclass(frozen=True, slots=True)
class PartitionSets:
    """Sets of partitions, each in order: the topic's number and the partition in one integer."""

    start: LongArray
    partition: LongArray

    @classmethod
    def of(cls, lists: PartitionLists) -> PartitionSets:
        """Return the lists without order and repeats."""
        topic = lists.topic_of_number
        return cls.of_partitions(lists.list_of_topic[topic], lists.name[topic], lists.number, len(lists.start) - 1)

    @classmethod
    def of_partitions(cls, owner: LongArray, name: LongArray, number: LongArray, sets: int) -> PartitionSets:
        """Return the sets of partitions, by owner, topic and number."""
        partition = name << _NUMBER_BITS | number & ((1 << _NUMBER_BITS) - 1)
        order = np.lexsort((partition, owner))
        owner, partition = owner[order], partition[order]
        kept = begins(owner, partition)
        return cls(starts(np.bincount(owner[kept], minlength=sets)), partition[kept])

    def and_(self, other: PartitionSets) -> PartitionSets:
        """Return these sets, and the others behind them."""
        start = np.concatenate([self.start, self.start[-1] + other.start[1:]])
        return PartitionSets(start, np.concatenate([self.partition, other.partition]))

    def read(self, index: int) -> Iterator[tuple[int, int]]:
        """Topic and partition of one set."""
        for partition in self.partition[self.start[index] : self.start[index + 1]].tolist():
            number = partition & ((1 << _NUMBER_BITS) - 1)
            yield partition >> _NUMBER_BITS, number - ((number >> (_NUMBER_BITS - 1)) << _NUMBER_BITS)

    def equal(self, mine: LongArray, other: PartitionSets, others: LongArray) -> Mask:
        """Whether each of these sets equals the one beside it of the others."""
        same: Mask = np.diff(self.start)[mine] == np.diff(other.start)[others]
        alike = np.flatnonzero(same)
        start, at = take(self.start, mine[alike])
        _, beside = take(other.start, others[alike])
        differs = self.partition[at] != other.partition[beside]
        same[alike[owners(start)[differs]]] = False
        return same
