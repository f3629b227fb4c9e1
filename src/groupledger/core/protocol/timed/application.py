"""What a process does with its consumer: its callbacks, and the records that it reads between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.callbacks import Call, Callback

if TYPE_CHECKING:
    from groupledger.core.protocol.records import Records
    from groupledger.core.protocol.timed.group import TimedGroup
    from groupledger.core.protocol.timed.member import TimedProcess


class Application:
    """Callbacks that take the time that the pace says, of a process that counts no records."""

    def __init__(self, callback_ms: Mapping[Callback, int]) -> None:
        self.callback_ms = callback_ms

    def called(self, call: Call) -> Iterator[int]:
        """Take a call; each value is a time in which nothing else happens in this process."""
        yield self.callback_ms.get(call.callback, 0)

    def read(self, now_ms: int) -> None:
        """A poll: what has been there at this time is read."""

    def commit(self) -> None:
        """Commit positions, if the coordinator takes that."""

    def expelled(self, call: Call, started_ms: int, ended_ms: int) -> None:
        """The process lost its seat while this call was made."""


class Reader(Application):
    """Reads all that it owns, from the committed offset on, else from the beginning (`auto.offset.reset=earliest`)."""

    def __init__(self, callback_ms: Mapping[Callback, int], records: Records, accepts: Callable[[], bool]) -> None:
        super().__init__(callback_ms)
        self.records = records
        self.accepts = accepts
        self.positions: dict[TopicPartition, int] = {}

    def called(self, call: Call) -> Iterator[int]:
        """What is assigned is read from when the callback has returned, what is given up until then."""
        yield from super().called(call)
        if call.callback is Callback.ASSIGNED:
            for each in call.partitions:
                self.positions[each] = self.records.committed.get(each, 0)
        elif call.callback in (Callback.REVOKED, Callback.LOST):
            self._forget(call.partitions)

    def read(self, now_ms: int) -> None:
        """Read each partition to its end."""
        for each, position in self.positions.items():
            end = self.records.end(each, now_ms)
            if position < end:
                self.records.read(each, position, end)
                self.positions[each] = end

    def commit(self) -> None:
        """Commit all positions."""
        if self.accepts():
            self.records.committed.update(self.positions)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self.positions.pop(each, None)


Accepts = Callable[[], bool]
"""Whether the coordinator takes a commit of a process now."""
Applications = Callable[["TimedGroup", "TimedProcess", Accepts], Application]
"""One for each process, when it starts."""
