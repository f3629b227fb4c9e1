"""Byte strings in many places of a buffer, coded by content: each distinct one is looked at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel, run
from groupledger.core.ragged import starts
from groupledger.engine.classic.log import ByteColumn

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray
    from groupledger.engine.classic.log import BoolArray


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
    bad: BoolArray

    @property
    def are_bad(self) -> BoolArray:
        """Whether each text is none."""
        return np.asarray(self.bad[self.codes] & (self.codes != NONE)) if len(self.bad) else self.codes != self.codes

    def is_(self, value: str) -> BoolArray:
        """Whether each text is this one."""
        return np.asarray(self.codes == self.code_of(value))

    def code_of(self, value: str) -> int:
        """The code of a text; -2 for one that is not among them."""
        code = self.values.index(value).as_py()
        return -2 if code < 0 else int(code)


def blobs(data: ByteArray, at: LongArray, size: LongArray) -> CodedBytes:
    """The strings `data[at:at + size]`, null where the size is negative."""
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
    """The strings `data[at:at + size]` as an Arrow column, null where the size is negative."""
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
