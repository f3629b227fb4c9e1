"""Hold a part of a file in memory, which moves forward: never the whole of a large segment."""

from __future__ import annotations

from io import BufferedIOBase

WINDOW = 4 << 20


class FileWindow:
    """`data` are the bytes of a file from `start` on. `size` is the file's when it was opened: a broker may append.

    The memory of `data` is reused: copy what must survive the next move.
    """

    def __init__(self, file: BufferedIOBase, size: int) -> None:
        self.size = size
        self.start = 0
        self.searched = 0  # bytes whose checksums were computed in search of a batch
        self.data = memoryview(b"")
        self._file = file
        self._memory = bytearray()

    @property
    def at_end(self) -> bool:
        """Return whether the window reaches the end of the file."""
        return self.start + len(self.data) == self.size

    def hold(self, position: int, least: int) -> int:
        """Return the index in `data` of the byte at `position`, with `least` bytes from it on, or all up to the end.

        OSError if the file has become shorter, or if the disk does not return the bytes.
        """
        least = min(least, self.size - position)
        at = position - self.start
        if at < 0 or at + least > len(self.data):
            held = bytes(self.data[at:]) if 0 <= at <= len(self.data) else b""
            wanted = min(max(WINDOW, least), self.size - position)
            try:
                self._read(held, position, wanted)
            except OSError:  # the unreadable part may be beyond what is needed
                self._read(held, position, least)
            at = 0
        if at + least > len(self.data):
            raise OSError(f"the file ends at byte {self.start + len(self.data)}, and had {self.size} bytes when opened")
        return at

    def fails_to_hold(self, position: int, least: int) -> OSError | None:
        """Do as `hold`, but return the error instead of raising it; the bytes held before stay."""
        try:
            self.hold(position, least)
        except OSError as error:
            return error
        return None

    def _read(self, held: bytes, position: int, size: int) -> None:
        """Move to `position`, with `size` bytes or as many as the file has; keep the first, `held`, if it fails."""
        if len(self._memory) < size:
            self._memory = bytearray(size)
        memory = memoryview(self._memory)
        memory[: len(held)] = held
        self.data, self.start = memory[: len(held)].toreadonly(), position
        self._file.seek(position + len(held))
        count = self._file.readinto(memory[len(held) : size])
        self.data = memory[: len(held) + count].toreadonly()

    def find(self, byte: int, at: int) -> int:
        """Return the index of the byte in `data` from `at` on; -1 if absent."""
        return self._memory.find(byte, at, len(self.data))

    def peek(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes at `position`."""
        at = self.hold(position, size)
        return bytes(self.data[at : at + size])

    def written_end(self, position: int) -> int:
        """Return where, from `position` on, only zero bytes follow: allocated but not written by the broker."""
        found = position
        while position < self.size:
            at = self.hold(position, 1)
            chunk = bytes(self.data[at:])
            written = len(chunk.rstrip(b"\0"))
            found = position + written if written else found
            position += len(chunk)
        return found
