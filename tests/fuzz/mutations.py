"""Seeded ways to break the bytes of a record: flips, cuts, splices, absurd lengths and numbers, text that is none."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

LENGTHS = (-(2**15), -2, -1, 0, 1, 255, 2**15 - 1)
INT32 = (-(2**31), -2, -1, 0, 1, 65_536, 2**31 - 1)
INT64 = (-(2**63), -2, -1, 0, 253_402_300_800_000, 9_223_372_036_854_775, 2**63 - 1)
FLOATS = (float("nan"), float("inf"), float("-inf"), 1e308)
VERSIONS = (-(2**15), -1, 1, 2, 3, 4, 5, 9, 16, 23, 99, 2**15 - 1)
NO_TEXT = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"\0")

Mutation = Callable[[bytes, bytes, random.Random], bytes]


def flip(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Change one to four bits."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def cut(data: bytes, _: bytes, dice: random.Random) -> bytes:
    """Keep the beginning or the end."""
    at = dice.randrange(len(data))
    return data[:at] if dice.random() < 0.7 else data[at:]


def splice(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Go on with the bytes of another record."""
    return data[: dice.randrange(len(data))] + other[dice.randrange(len(other) + 1) :]


def repeat(data: bytes, _: bytes, dice: random.Random) -> bytes:
    """Write a segment once more, or a thousand times."""
    start = dice.randrange(len(data))
    end = min(len(data), start + dice.randint(1, 40))
    return data[:end] + data[start:end] * dice.choice((1, 1, 2, 1000)) + data[end:]


def drop(data: bytes, _: bytes, dice: random.Random) -> bytes:
    """Leave a segment out."""
    start = dice.randrange(len(data))
    return data[:start] + data[start + dice.randint(1, 8) :]


def version(data: bytes, _: bytes, dice: random.Random) -> bytes:
    """Begin with another version (of a key: another type of record)."""
    return dice.choice(VERSIONS).to_bytes(2, "big", signed=True) + data[2:]


def number(data: bytes, _: bytes, dice: random.Random) -> bytes:
    """Put an absurd length, count, time or number over what stands at a place."""
    form, values = dice.choice(((">h", LENGTHS), (">i", INT32), (">q", INT64), (">d", FLOATS)))
    written = struct.pack(form, dice.choice(values))
    at = dice.randrange(len(data))
    return data[:at] + written + data[at + len(written) :]


def text(data: bytes, _: bytes, dice: random.Random) -> bytes:
    """Put bytes that are no UTF-8 where a letter stands."""
    letters = [at for at, byte in enumerate(data) if chr(byte).isalnum()] or [0]
    at, broken = dice.choice(letters), dice.choice(NO_TEXT)
    return data[:at] + broken + data[at + len(broken) :]


MUTATIONS: tuple[Mutation, ...] = (flip, cut, splice, repeat, drop, version, number, number, text)


def mutated(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """The bytes after one or two mutations; what is empty stays so."""
    for _ in range(dice.choice((1, 1, 1, 2))):
        data = dice.choice(MUTATIONS)(data, other, dice) if data else data
    return data
