"""A part of a file in memory, which moves forward: never the whole of a large segment."""

from __future__ import annotations

from io import BufferedIOBase

WINDOW = 4 << 20


class FileWindow:
    """`data` are the bytes of a file from `start` on. `size` is the file's when it was opened: a broker may append.

    The memory of `data` is used again: what is kept beyond the next move is copied.
    """

    def __init__(self, file: BufferedIOBase, size: int) -> None:
        self.size = size
        self.start = 0
        self.searched = 0  # bytes whose sums were checked in search of a batch
        self.data = memoryview(b"")
        self._file = file
        self._memory = bytearray()

    @property
    def at_end(self) -> bool:
        """Whether the file ends where the window does."""
        return self.start + len(self.data) == self.size

    def hold(self, position: int, least: int) -> int:
        """Where in `data` the byte at `position` is, with `least` bytes from it on, or all to the end of the file.

        OSError where the file has become shorter, or the disk does not give the bytes.
        """
        least = min(least, self.size - position)
        at = position - self.start
        if at < 0 or at + least > len(self.data):
            held = bytes(self.data[at:]) if 0 <= at <= len(self.data) else b""
            wanted = min(max(WINDOW, least), self.size - position)
            try:
                self._read(held, position, wanted)
            except OSError:  # it may lie behind what is needed
                self._read(held, position, least)
            at = 0
        if at + least > len(self.data):
            raise OSError(f"the file ends at byte {self.start + len(self.data)}, and had {self.size} bytes when opened")
        return at

    def fails_to_hold(self, position: int, least: int) -> OSError | None:
        """As `hold`, with the error instead of raising it; the bytes held before stay."""
        try:
            self.hold(position, least)
        except OSError as error:
            return error
        return None

    def _read(self, held: bytes, position: int, size: int) -> None:
        """Move to `position`, with `size` bytes or as many as the file has; with the first, `held`, if it fails."""
        if len(self._memory) < size:
            self._memory = bytearray(size)
        memory = memoryview(self._memory)
        memory[: len(held)] = held
        self.data, self.start = memory[: len(held)].toreadonly(), position
        self._file.seek(position + len(held))
        count = self._file.readinto(memory[len(held) : size])
        self.data = memory[: len(held) + count].toreadonly()

    def find(self, byte: int, at: int) -> int:
        """Where in `data`, from `at` on, the byte is; -1 where it is not."""
        return self._memory.find(byte, at, len(self.data))

    def peek(self, position: int, size: int) -> bytes:
        """So many bytes at `position`, or those there are."""
        at = self.hold(position, size)
        return bytes(self.data[at : at + size])

    def written_end(self, position: int) -> int:
        """Where, from `position` on, nothing but zero bytes follows: what a broker allocated and did not write."""
        found = position
        while position < self.size:
            at = self.hold(position, 1)
            chunk = bytes(self.data[at:])
            written = len(chunk.rstrip(b"\0"))
            found = position + written if written else found
            position += len(chunk)
        return found
