"""Decoded values remembered by their bytes, within a limit."""

from __future__ import annotations

from typing import TypeVar

MEMO_LIMIT_BYTES = 2 << 20
_T = TypeVar("_T")


class Memo(dict[bytes, _T]):
    """Values by their bytes; starts anew when the bytes kept exceed the limit. Values must be immutable."""

    def __init__(self, limit_bytes: int = MEMO_LIMIT_BYTES) -> None:
        super().__init__()
        self.limit_bytes = limit_bytes
        self.kept_bytes = 0

    def put(self, data: bytes, value: _T) -> _T:
        """Give the value back, kept unless its bytes are a large part of the limit."""
        if len(data) > self.limit_bytes // 16:
            return value
        self.kept_bytes += len(data)
        if self.kept_bytes > self.limit_bytes:
            self.clear()
            self.kept_bytes = len(data)
        self[data] = value
        return value
