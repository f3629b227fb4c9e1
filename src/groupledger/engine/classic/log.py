"""The log records of a bucket as columns: in order of cluster, group, log partition and offset, cut into groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.history import LogRow
from groupledger.core.ragged import owners
from groupledger.core.wire.primitives import INT16
from groupledger.engine.fold_schema import GROUP_KEY, KNOWN
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray
    from groupledger.core.wire.offset_commits import Spans

    BoolArray = NDArray[np.bool_]

_TYPE = INT16.pack(2)
"""What the key of a GroupMetadata record begins with."""
_LONGEST = (1 << 15) - 1
"""Bytes of the longest group id."""


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """A column of byte strings: number i is `data[start[i]:end[i]]`."""

    data: ByteArray
    start: LongArray
    end: LongArray
    is_null: BoolArray

    @classmethod
    def of(cls, column: Any) -> ByteColumn:
        """The strings of an Arrow column or array, where they are."""
        array = column if isinstance(column, pa.LargeBinaryArray) else _whole(column, pa.large_binary())
        _, bounds, data = array.buffers()
        places = np.frombuffer(bounds, np.int64) if len(array) else np.zeros(1, np.int64)
        places = places[array.offset : array.offset + len(array) + 1] if len(array) else places
        held = np.frombuffer(b"" if data is None else data, np.uint8)
        for each in (places, held):  # some buffers of Arrow can be written to: kernels are compiled for one kind
            each.flags.writeable = False
        return cls(held, places[:-1], places[1:], array.is_null().to_numpy(zero_copy_only=False))

    @property
    def spans(self) -> Spans:
        """Where they are."""
        return self.data, self.start, self.end

    def chosen(self, some: LongArray) -> Spans:
        """Where some of them are."""
        return self.data, self.start[some], self.end[some]

    def __getitem__(self, index: int) -> bytes | None:
        return None if self.is_null[index] else self.data[self.start[index] : self.end[index]].tobytes()


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
    known: BoolArray
    is_plain: BoolArray  # the key is that of the group's GroupMetadata record

    @classmethod
    def of(cls, ordered: pa.Table) -> LogColumns:
        """The columns of records in order."""
        clusters, names = (_whole(ordered[name], kind) for name, kind in _NAMES.items())
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
            pc.equal(_whole(ordered[c.KIND], pa.string()), KNOWN).to_numpy(zero_copy_only=False),
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


def _whole(column: Any, kind: pa.DataType) -> Any:
    array = column.cast(kind).combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def _numbers(column: Any) -> LongArray:
    return np.asarray(_whole(column, pa.int64()))


def _bounds(clusters: Any, names: Any) -> LongArray:
    """Where the groups start, and where the last one ends."""
    codes = [column.dictionary_encode().indices.fill_null(-1).to_numpy() for column in (clusters, names)]
    changes = np.zeros(len(clusters) + 1, bool)
    changes[[0, -1]] = True
    for column in codes:
        changes[1:-1] |= column[1:] != column[:-1]
    return np.flatnonzero(changes) if len(clusters) else np.zeros(1, np.int64)


def _are_plain(keys: Any, start: LongArray, names: list[bytes | None]) -> BoolArray:
    """Whether each key is that of its group's GroupMetadata record."""
    expected = pa.array([None if name is None else _key(name) for name in names], pa.large_binary())
    same = pc.equal(_whole(keys, pa.large_binary()), expected.take(pa.array(owners(start))))
    return np.asarray(same.fill_null(False).to_numpy(zero_copy_only=False))


def _key(name: bytes) -> bytes | None:
    return _TYPE + INT16.pack(len(name)) + name if len(name) <= _LONGEST else None
