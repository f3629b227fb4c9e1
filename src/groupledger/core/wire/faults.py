"""What can be wrong with bytes, each with a code to count by and a message that names the byte."""

from __future__ import annotations

from collections.abc import Iterable

from groupledger.core.faults import Code, Fault


class DecodeCode(Code):
    """Why bytes did not decode."""

    TRUNCATED = "TRUNCATED", "the bytes end before the field does, or a length says more than is left"
    BAD_LENGTH = "BAD_LENGTH", "a negative length that does not mean null, or a tagged field of another size than said"
    BAD_UTF8 = "BAD_UTF8", "a text that is no UTF-8"
    BAD_VARINT = "BAD_VARINT", "a variable-length number of more than 32 bits, or longer than it need be"
    BAD_TAG = "BAD_TAG", "tags that do not rise"
    BAD_MARKER = "BAD_MARKER", 'the byte before a nullable struct is neither "null" nor "present"'
    BAD_UUID = "BAD_UUID", "text that no uuid prints as"
    NULL_FIELD = "NULL_FIELD", "null where the format allows none"
    UNKNOWN_VERSION = "UNKNOWN_VERSION", "a version of the record that Kafka 4.4 does not have"
    BAD_KEY_TYPE = "BAD_KEY_TYPE", "a negative record type"
    NO_KEY = "NO_KEY", "a record without a key"
    BAD_PARTITION = "BAD_PARTITION", "a negative partition in an assignment"
    TRAILING_BYTES = "TRAILING_BYTES", "bytes left over where the version is known"


class DecodeFault(Fault):
    """Bytes that are not what they should be. The caller keeps the bytes; the message says where they went wrong."""


def fault(code: DecodeCode, what: str, position: int, got: str, expected: str) -> DecodeFault:
    """`fault(BAD_UTF8, "GroupMetadataValue v3 leader", 17, ...)` -> a fault that says what, where, got, expected."""
    return DecodeFault(code.value, f"{what}, byte {position}: got {got}; expected {expected}")


def truncated(what: str, position: int, needed: int, left: int) -> DecodeFault:
    """The field at `position` needs `needed` bytes and `left` are left."""
    return fault(DecodeCode.TRUNCATED, what, position, f"{left} bytes", f"{needed} or more (cut, or a wrong length)")


def require_partitions(assigned: Iterable[tuple[str, tuple[int, ...]]]) -> None:
    """Nothing where no partition is negative; else a `DecodeFault`: nobody can hold what is assigned there."""
    for topic, numbers in assigned:
        if numbers and min(numbers) < 0:
            message = f"assigned partition of {topic!r}: got {min(numbers)}; expected 0 or more"
            raise DecodeFault(DecodeCode.BAD_PARTITION.value, message)
