"""What a process does with its consumer: its callbacks, and the records that it reads between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.client_api import AUTO_COMMIT_MS, Call, Callback, MemberTimes, Times, call
from groupledger.core.protocol.ownership import Records
from groupledger.core.protocol.settlement import MemberCall, Pace


class ClockedGroup(Protocol):
    """A group with a clock, of either protocol, as an application sees it."""

    @property
    def now_ms(self) -> int:
        """What the clock says."""

    @property
    def partition_counts(self) -> Mapping[str, int]:
        """Partition counts of the topics that exist."""

    @property
    def pace(self) -> Pace:
        """What callbacks take."""

    @property
    def records(self) -> Records | None:
        """The logs, if they are counted."""


class ClockedProcess(Protocol):
    """A process of such a group."""

    @property
    def name(self) -> str:
        """Of the process."""

    @property
    def number(self) -> int:
        """Of its processes of this name."""

    @property
    def times(self) -> MemberTimes:
        """Its own."""

    @property
    def instance_id(self) -> str | None:
        """`group.instance.id`."""

    @property
    def member_id(self) -> str | None:
        """The id that it speaks under."""

    @property
    def generation(self) -> int | None:
        """Its generation, or member epoch."""


Accepts = Callable[[], bool]
"""Whether the coordinator takes a commit of a process now."""


class Application:
    """Callbacks that take the time that the pace says, of a process that counts no records."""

    may_read_later = False  # than it polls: the application does nothing with what it reads

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

    def begin_with(
        self, assigned: Iterable[TopicPartition], process: ClockedProcess, calls: list[MemberCall], at_ms: int
    ) -> None:
        """Take, and add to `calls`, the call that told a recorded member its assignment before the first event."""
        told = call(Callback.ASSIGNED, assigned)
        list(self.called(told))  # its listener knows of the partitions, and took its time before the script begins
        row = len(calls), 0, process.name, process.member_id, told, at_ms, at_ms
        calls.append(MemberCall(*row, process.generation, process.instance_id, process.number))

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These are gone: their topic was deleted."""

    def move(self, group: ClockedGroup, process: ClockedProcess, accepts: Accepts) -> None:
        """Continue in this group, as this process: the group now follows the other protocol."""


class RecordReader(Application):
    """Reads all that it owns, from the committed offset on, else from the beginning (`auto.offset.reset=earliest`)."""

    may_read_later = True

    def __init__(self, callback_ms: Mapping[Callback, int], records: Records, accepts: Accepts) -> None:
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
            self.forget(call.partitions)

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

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no longer."""
        for each in partitions:
            self.positions.pop(each, None)

    def move(self, group: ClockedGroup, process: ClockedProcess, accepts: Accepts) -> None:
        """Continue at the same positions."""
        self.accepts = accepts


Applications = Callable[[ClockedGroup, ClockedProcess, Accepts], Application]
"""One for each process, when it starts."""


def commits_every_ms(times: Times | None, applications: Applications | None) -> int:
    """`auto.commit.interval.ms`; 0: never, as where a listener commits and nobody says anything."""
    told = None if times is None else times.auto_commit_interval_ms
    return (AUTO_COMMIT_MS if applications is None else 0) if told is None else told


def make_application(
    group: ClockedGroup, process: ClockedProcess, accepts: Accepts, applications: Applications | None
) -> Application:
    """What the process does with its consumer: what was asked for; else it reads, where records are counted."""
    if applications is not None:
        return applications(group, process, accepts)
    if group.records is not None:
        return RecordReader(group.pace.callback_ms, group.records, accepts)
    return Application(group.pace.callback_ms)


class Polls:
    """When a process polls: all the time while it has nothing to do, else an interval of work apart; what it misses."""

    application: Application
    polled_ms: int
    poll_started_ms: int
    commits_next_ms: int
    put_off_ms: int  # what was there at this time is to be read; 0: nothing is
    misses: int  # which of its next answers does not arrive; 0: all do

    @property
    def polls(self) -> bool:
        """Whether it polls now: it runs, and is in no callback."""
        raise AssertionError(f"{type(self).__name__} has no polls; expected one of each kind of process")

    @property
    def works_ms(self) -> int:
        """Between two polls."""
        raise AssertionError(f"{type(self).__name__} has no works_ms; expected one of each kind of process")

    @property
    def in_poll(self) -> bool:
        """Whether a poll has not returned yet."""
        raise AssertionError(f"{type(self).__name__} has no in_poll; expected one of each kind of process")

    def misses_answer(self) -> bool:
        """Whether the answer that comes now does not arrive."""
        missed, self.misses = self.misses == 1, max(self.misses - 1, 0)
        return missed

    def next_poll_ms(self, now_ms: int) -> int:
        """The first poll from now on."""
        if not self.works_ms:
            return now_ms
        return self.polled_ms + -(-(now_ms - self.polled_ms) // self.works_ms) * self.works_ms

    def last_poll_ms(self, now_ms: int) -> int:
        """The last poll that began before this time; a process without work polls all the time."""
        if self.in_poll:
            return self.poll_started_ms
        if not self.works_ms:
            return now_ms
        return self.polled_ms + max((now_ms - self.polled_ms - 1) // self.works_ms, 0) * self.works_ms

    def catch_up(self, every_ms: int, now_ms: int) -> None:
        """Commit by itself, and read, what it would have until now; reading alone is put off to `read_on` where nobody
        can tell.

        Of several commits since it was last looked at, the last one counts: nothing happened between them.
        """
        self.put_off_ms = now_ms
        if every_ms and self.commits_next_ms < now_ms:
            self._commit(every_ms, now_ms)
        elif self.application.may_read_later:
            return
        self.read_on()

    def _commit(self, every_ms: int, now_ms: int) -> None:
        works_ms = self.works_ms
        first_ms = self.next_poll_ms(max(self.commits_next_ms, self.polled_ms + 1))
        if first_ms < now_ms:
            apart_ms = -(-every_ms // works_ms) * works_ms if works_ms else every_ms
            commit_ms = first_ms + (now_ms - 1 - first_ms) // apart_ms * apart_ms
            self.application.read(self.last_poll_ms(commit_ms))
            self.application.commit()
            self.commits_next_ms = commit_ms + every_ms

    def read_on(self) -> None:
        """Read what was put off. To be called before anything changes about what it owns, or when it polls."""
        if not self.put_off_ms:
            return
        last_ms, self.put_off_ms = self.last_poll_ms(self.put_off_ms), 0
        if last_ms > self.polled_ms:
            self.application.read(last_ms)


class ReadingGroup:
    """A group with a clock, whose processes read, and commit by themselves, as time goes by."""

    __slots__ = ()
    times: Times | None
    records: Records | None
    applications: Applications | None
    processes: Mapping[str, Polls]

    @property
    def now_ms(self) -> int:
        """What the clock says."""
        raise AssertionError(f"{type(self).__name__} has no now_ms; expected one of each kind of group")

    @property
    def commits_every_ms(self) -> int:
        """`auto.commit.interval.ms`; 0: never."""
        return commits_every_ms(self.times, self.applications)

    def catch_up(self) -> None:
        """All processes commit by themselves, and read, what they would have until now, be some of it later."""
        if self.records is None:
            return
        every_ms, now_ms = self.commits_every_ms, self.now_ms
        for process in self.processes.values():
            if process.polls:
                process.catch_up(every_ms, now_ms)

    def all_read_on(self) -> None:
        """All processes read what they would have until now."""
        for process in self.processes.values():
            process.read_on()
