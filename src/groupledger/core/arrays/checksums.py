"""Compute CRC-32C of a range of bytes, the checksum of record batches, as a kernel that others call for each batch.

Interpreted, it is the library's function. Batches of offset commits are small, and a call from Python for each costs
several times the computation itself, so a compiled kernel computes it inline, by the processor's own instruction.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import google_crc32c
import numpy as np

from groupledger.core.arrays.kernels import compiled, compiled_as, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    ByteArray = NDArray[np.uint8]

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
_WORD = 8
_INSTRUCTIONS = {
    "sse4.2": (("llvm.x86.sse42.crc32.64.64", 64, 64), ("llvm.x86.sse42.crc32.32.8", 32, 8)),
    "crc": (("llvm.aarch64.crc32cx", 32, 64), ("llvm.aarch64.crc32cb", 32, 32)),
}
"""By feature of the processor, the instruction for eight bytes and for one: LLVM's name, bits of the sum and of the
operand."""


def _table() -> NDArray[np.int64]:
    sums = np.arange(256, dtype=np.int64)
    for _ in range(8):
        sums = np.where(sums & 1, sums >> 1 ^ _POLYNOMIAL, sums >> 1)
    return sums


TABLE = _table()


def _compiled_form() -> Callable[..., Any]:
    """Compile `crc32c` with instructions if the processor that numba compiles for has them, else with a table."""
    instructions = _instructions()
    return compiled(by_table, cached=False) if instructions is None else _by_instructions(*instructions)


@compiled_as(_compiled_form)
def crc32c(data: ByteArray, start: int, end: int) -> int:
    """Return the checksum of the bytes from `start` to before `end`."""
    return int(google_crc32c.value(data[start:end].tobytes()))


@kernel
def by_table(data: ByteArray, start: int, end: int) -> int:
    """Compute `crc32c` a byte at a time."""
    crc = np.int64(_ONES)
    for at in range(start, end):
        crc = (crc >> 8) ^ TABLE[(crc ^ np.int64(data[at])) & 255]
    return int(crc ^ _ONES)


def _by_instructions(of_word: Any, of_byte: Any) -> Callable[..., Any]:
    numba: Any = importlib.import_module("numba")

    def by_instructions(data: ByteArray, start: int, end: int) -> int:
        crc = np.int64(_ONES)
        while start + _WORD <= end:
            crc = of_word(crc, data, start)
            start += _WORD
        while start < end:
            crc = of_byte(crc, data, start)
            start += 1
        return int(crc ^ _ONES)

    dispatcher: Callable[..., Any] = numba.njit(by_instructions)
    return dispatcher


def _instructions() -> tuple[Any, Any] | None:
    """Return functions of (sum, bytes, position) for the next eight bytes and the next one; None if unavailable."""
    config: Any = importlib.import_module("numba.core.config")
    binding: Any = importlib.import_module("llvmlite.binding")
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:  # compiled for another processor
        return None
    features = binding.get_host_cpu_features()
    found = next((both for feature, both in _INSTRUCTIONS.items() if features.get(feature)), None)
    return None if found is None else (_instruction(*found[0], 64), _instruction(*found[1], 8))


def _instruction(name: str, sum_bits: int, operand_bits: int, loaded_bits: int) -> Any:
    types: Any = importlib.import_module("numba.core.types")
    extending: Any = importlib.import_module("numba.extending")
    ir: Any = importlib.import_module("llvmlite.ir")

    def typed(_: Any, crc: Any, data: Any, position: Any) -> Any:
        def code(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
            before, array, at = arguments
            of_sum, operand, whole = ir.IntType(sum_bits), ir.IntType(operand_bits), ir.IntType(64)
            first = builder.gep(context.make_array(data)(context, builder, array).data, [at])
            word = builder.load(builder.bitcast(first, ir.IntType(loaded_bits).as_pointer()), align=1)
            word = word if operand_bits == loaded_bits else builder.zext(word, operand)
            before = before if of_sum == whole else builder.trunc(before, of_sum)
            function = builder.module.declare_intrinsic(name, (), ir.FunctionType(of_sum, [of_sum, operand]))
            after = builder.call(function, [before, word])
            return after if of_sum == whole else builder.zext(after, whole)

        return types.int64(types.int64, data, types.int64), code

    return extending.intrinsic(typed)
