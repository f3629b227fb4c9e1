"""Byte strings in many places of a buffer, coded by content: each distinct one is looked at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel, run
from groupledger.core.ragged import starts

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray
    from groupledger.engine.classic.log import BoolArray


@dataclass(frozen=True, slots=True)
class CodedBytes:
    """Byte strings: each one's code (NONE: null), and the distinct ones by code."""

    codes: LongArray
    values: list[bytes]


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
    return CodedBytes(codes, values.to_pylist())


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
    start = starts(np.maximum(size, 0))
    copied = np.empty(int(start[-1]), np.uint8)
    run(copy_strings, data, at, start, copied, cells=len(at))
    strings = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(at),
        [pa.py_buffer(np.packbits(size >= 0, bitorder="little")), *map(pa.py_buffer, (start, copied))],
    )
    coded = strings.dictionary_encode()
    return coded.indices.fill_null(NONE).to_numpy().astype(np.int64), coded.dictionary


@kernel
def copy_strings(data: ByteArray, at: LongArray, start: LongArray, copied: ByteArray) -> None:
    """Copy each string to its place in `copied`."""
    for index in range(len(at)):
        size = start[index + 1] - start[index]
        copied[start[index] : start[index + 1]] = data[at[index] : at[index] + size]
