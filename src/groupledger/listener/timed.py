"""Run listeners inside a simulated group with times: the duration of their callbacks delays the group."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import RAISED, Fault
from groupledger.core.protocol.consumer import LISTENER, Call
from groupledger.core.protocol.simulated_group import Accepts, AnyGroup, Application, Records, SimulatedProcess
from groupledger.listener.hosted import EXPELLED, Entry, HostedConsumer, SimulatedBroker
from groupledger.listener.interface import RebalanceListener
from groupledger.listener.view import GroupMetadataView, OffsetAndMetadata, OffsetAndTimestamp, Offsets, PartitionInfo

T = TypeVar("T")


class TimedBroker(SimulatedBroker):
    """The current logs and committed offsets of a group with times."""

    def __init__(self, group: AnyGroup, records: Records) -> None:
        self.group = group
        self.records = records
        self.read_ms: int | None = None  # time of an earlier poll that is only now processed
        self._topics: Mapping[str, int] | None = None
        self._began_ms: Mapping[TopicPartition, int] = {}  # logs, when the topics were last looked at
        super().__init__(group.topics)

    @property
    def now_ms(self) -> int | None:
        """Return the time on the clock."""
        return self.group.now_ms

    def see_topics(self) -> None:
        """Delete the commits of partitions that were deleted, even of those that exist again."""
        topics = self.group.topics
        if self._topics is topics:
            return
        self._topics, before, self._began_ms = topics, self._began_ms, self.records.began_ms()
        kept = {each for each, ms in self._began_ms.items() if before.get(each, ms) == ms}
        self.set_topics(
            {name: next((n for n in range(count) if (name, n) not in kept), count) for name, count in topics.items()}
        )
        self.set_topics(topics)

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the cluster has the partition now."""
        return partition[1] < self.group.topics.get(partition[0], 0)

    def end_offset(self, partition: TopicPartition) -> int:
        """Return the offset after the last record."""
        return self.records.end(partition, self.group.now_ms if self.read_ms is None else self.read_ms)

    def is_out_of_range(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether the log ends before this offset now, whenever the poll was."""
        return self.exists(partition) and offset > self.records.end(partition, self.group.now_ms)

    def first_since(self, partition: TopicPartition, at_ms: int) -> OffsetAndTimestamp | None:
        """Return the first record with this timestamp or a later one."""
        found = self.records.first_since(partition, at_ms, self.group.now_ms)
        return None if found is None else OffsetAndTimestamp(*found)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Record offsets committed by a member."""
        super().commit(offsets)
        self.records.commit({each: found.offset for each, found in offsets.items()})

    def note_read(self, partition: TopicPartition, first: int, end: int) -> None:
        """Record what a member has read."""
        self.records.read(partition, first, end)


class TimedConsumer(HostedConsumer):
    """A member whose requests take a round trip, and whose commits are accepted only if the coordinator knows it."""

    def __init__(self, process: SimulatedProcess, group_id: str, broker: TimedBroker, accepts: Accepts) -> None:
        super().__init__(process.name, group_id, broker=broker, process=process.number)
        self.times = process.times
        self.accepts = accepts

    def move(self, process: SimulatedProcess, accepts: Accepts) -> None:
        """Continue as the same process in a group of the other protocol."""
        self.times = process.times
        self.accepts = accepts

    def commit_sync(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit, and wait for the answer."""
        wanted = self._all_positions() if offsets is None else dict(offsets)
        spend(self.times.to_broker_ms)
        try:
            self._commit(wanted)
        finally:
            spend(self.times.from_broker_ms)

    def auto_commit(self) -> None:
        """Commit all positions, as `enable.auto.commit` does, as far as the coordinator accepts it."""
        if self.accepts():
            self._commit({each: found for each, found in self._all_positions().items() if self.broker.exists(each)})

    def _is_expelled(self) -> bool:
        return not self.accepts()

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's commits at the time of the request."""
        return self._asked(lambda: super(TimedConsumer, self).committed(partitions, timeout=timeout))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each log, at the time of the request."""
        return self._asked(lambda: super(TimedConsumer, self).end_offsets(partitions, timeout=timeout))

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record of each partition at or after its time."""
        return self._asked(lambda: super(TimedConsumer, self).offsets_for_times(timestamps_ms, timeout=timeout))

    def list_topics(self, *, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """Return all topics."""
        return self._asked(lambda: super(TimedConsumer, self).list_topics(timeout=timeout))

    def _asked(self, ask: Callable[[], T]) -> T:
        spend(self.times.to_broker_ms)
        answer = ask()
        spend(self.times.from_broker_ms)
        return answer


class RehearsedProcess(Application):
    """One process with a listener of its own, which writes to the group's journal."""

    def __init__(
        self, group: AnyGroup, process: SimulatedProcess, consumer: TimedConsumer, broker: TimedBroker
    ) -> None:
        super().__init__(group.pace.callback_ms)
        self.process = process
        self.consumer = consumer
        self.broker = broker
        self.spent_ms = 0  # in the last call

    def called(self, call: Call) -> Iterator[int]:
        """Yield the pace's time, then what the listener spends; its errors are in the journal."""
        self.spent_ms = 0
        for pace_ms in super().called(call):
            self.spent_ms += pace_ms
            yield pace_ms
        if call.callback in LISTENER:
            self.broker.see_topics()
            known = self.process
            membership = known.generation, known.member_id, known.instance_id
            self.consumer.feed([call], GroupMetadataView(self.consumer.group_id, *membership))
            turns = in_turns(self._poll)
            try:
                for spent_ms in turns:  # `yield from` would resume the thread before it is cancelled
                    self.spent_ms += spent_ms
                    yield spent_ms
            except GeneratorExit:  # the process ended in its callback: what the callback does now is ignored
                self.consumer.journal, self.consumer.broker = [], SimulatedBroker()
                turns.close()
                raise

    def _poll(self) -> None:
        with suppress(*RAISED):  # a listener is a user's code; its error is in the journal
            self.consumer.poll()

    def read(self, now_ms: int) -> None:
        """Read all that was there at this time."""
        self.broker.see_topics()
        self.broker.read_ms = now_ms
        self.consumer.consume()
        self.broker.read_ms = None

    def commit(self) -> None:
        """Commit as `enable.auto.commit` does."""
        self.consumer.auto_commit()

    def move(self, group: AnyGroup, process: SimulatedProcess, accepts: Accepts) -> None:
        """Continue with the same listener and the same positions."""
        self.process, self.broker.group = process, group
        self.consumer.move(process, accepts)

    def expelled(self, call: Call, started_ms: int, ended_ms: int) -> None:
        """Report that the callback took so long that the group continued without the member.

        Not if the process was paused meanwhile, and the callback alone would have been in time.
        """
        timeout_ms = self.process.times.rebalance_timeout_ms
        if self.spent_ms < min(ended_ms - started_ms, timeout_ms):
            return
        got = f"{call.callback.value} took {self.spent_ms:,} ms, and the group went on without the member"
        error = f"{got}; expected less than its rebalance timeout of {timeout_ms:,} ms"
        generation = self.process.generation
        entry = Entry(self.consumer.member, call.callback, EXPELLED, call.partitions, error, (), generation, ended_ms)
        self.consumer.journal.append(entry)


def rehearsed(
    make: Callable[[], RebalanceListener], group_id: str, journal: list[Entry]
) -> Callable[[AnyGroup, SimulatedProcess, Accepts], Application]:
    """Return what makes the processes of one group, each with a listener of its own that writes to the journal."""
    brokers: list[TimedBroker] = []

    def application(group: AnyGroup, process: SimulatedProcess, accepts: Accepts) -> Application:
        if group.records is None:
            raise AssertionError("a listener is rehearsed without records; expected a rate of them")
        if not brokers:
            brokers.append(TimedBroker(group, group.records))
        brokers[0].group = group
        consumer = TimedConsumer(process, group_id, brokers[0], accepts)
        consumer.journal = journal
        consumer.set_rebalance_listener(make())
        return RehearsedProcess(group, process, consumer, brokers[0])

    return application


# Let callbacks take simulated time: each runs on a thread of its own, and only one thread at a time continues.
#
# from groupledger.listener import spend
#
# def on_partitions_revoked(self, partitions, consumer):
#     flush(partitions)
#     spend(1_500)  # in a rehearsal with times: this took 1.5 s; anywhere else: nothing
#     consumer.commit_sync()

Spend = Callable[[int], None]
_SPEND: ContextVar[Spend | None] = ContextVar("spend", default=None)


class _EndedError(BaseException):
    """The process was killed in this callback; a listener must not catch it."""


def spend(ms: int) -> None:
    """Let `ms` milliseconds pass in a callback that is rehearsed with times, or over history; else do nothing.

    Raises Fault("BAD_TIME") for anything but a whole number of 0 or more.
    """
    if type(ms) is not int or ms < 0:
        raise Fault("BAD_TIME", f"time to spend is {ms!r}; expected a whole number of milliseconds from 0")
    waits = _SPEND.get()
    if waits is not None and ms:
        waits(ms)


@contextmanager
def spending(on: Spend) -> Iterator[None]:
    """Tell `on` each time that is spent in this context, on this thread."""
    token = _SPEND.set(on)
    try:
        yield
    finally:
        _SPEND.reset(token)


def in_turns(act: Callable[[], None]) -> Generator[int, None, None]:
    """Run a function that may `spend`: yield each such time, after which it continues; raise what it raised."""
    spent: SimpleQueue[int | BaseException | None] = SimpleQueue()
    resumes: SimpleQueue[bool] = SimpleQueue()
    thread = Thread(target=_run, args=(act, spent, resumes), daemon=True)
    thread.start()
    ended = False
    try:
        while isinstance(found := spent.get(), int):
            yield found
            resumes.put(True)
        ended = True
    finally:
        if not ended:
            resumes.put(False)
        thread.join()
    if found is not None:
        raise found


def _run(act: Callable[[], None], spent: SimpleQueue[int | BaseException | None], resumes: SimpleQueue[bool]) -> None:
    def wait(ms: int) -> None:
        spent.put(ms)
        if not resumes.get():
            raise _EndedError

    _SPEND.set(wait)
    try:
        act()
    except BaseException as error:  # noqa: BLE001 - passed on to the waiting thread
        spent.put(error)
    else:
        spent.put(None)
