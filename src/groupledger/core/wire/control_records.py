"""Control records, told by their bytes where a source keeps them: the broker's markers of a transaction's end.

A consumer does not return them; tools that copy the log's records may. Kafka's `EndTransactionMarker` has a key of two
int16, version and type, and a value of an int16 and an int32, version and coordinator epoch. No record of a group has
such a key: one of type 0 or 1 names a group, a topic and a partition.
"""

from __future__ import annotations

CONTROL_RECORD = "ControlRecord"
"""The kind under which they are counted."""
CONTROL_KEYS = (b"\x00\x00\x00\x00", b"\x00\x00\x00\x01")
"""Of version 0: ABORT and COMMIT."""
_VALUE_BYTES = 6


def is_control_record(key: bytes | None, value: bytes | None) -> bool:
    """Return whether this is the marker of a transaction that was aborted or committed."""
    return key in CONTROL_KEYS and value is not None and len(value) == _VALUE_BYTES
