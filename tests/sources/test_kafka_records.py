"""A stretch of the log as a consumer gives it: to its end over gaps and markers, and no further."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from groupledger.core.faults import Fault
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT
from groupledger.core.log.read_plan import OffsetRange
from groupledger.sources.kafka_log import BATCH, CONSUMER, FIELDS, Address, StretchReader, batches, fault_of
from groupledger.sources.opening import ENTRIES, NUMBER, PROBLEM

COMMIT, OLD_COMMIT, GROUP = b"\x00\x01\x00\x01g", b"\x00\x00\x00\x01g", b"\x00\x02\x00\x01g"


@dataclass
class Event:
    """An error as the client gives it, or a message that has one."""

    code: str
    at: int | None = 0
    is_fatal: bool = False

    def error(self):
        return self

    def key(self):
        return None

    def name(self):
        return self.code

    def str(self):
        return f"words of {self.code}"

    def fatal(self):
        return self.is_fatal

    def offset(self):
        return self.at


@dataclass
class Record:
    at: int
    data: bytes | None = GROUP
    content: bytes | None = b"v"
    epoch: int | None = None

    def error(self):
        return None

    def offset(self):
        return self.at

    def key(self):
        return self.data

    def value(self):
        return self.content

    def timestamp(self):
        return (1, 1000 + self.at)

    def leader_epoch(self):
        return self.epoch


class Consumer:
    """Gives these lists of messages, then nothing for ever."""

    def __init__(self, *given):
        self.given = list(given)

    def consume(self, _number, _seconds):
        return self.given.pop(0) if self.given else []


def eof(offset):
    return Event("_PARTITION_EOF", offset)


def read(*given, end=10, errors=(), keep=False):
    """Offsets of the records, and the counts."""
    reader = StretchReader(Address("h:1", {}, 30), keep)
    clock = count()
    found = list(batches(reader, [OffsetRange(4, 0, end)], Consumer(*given), list(errors), lambda: next(clock)))
    rows = pa.Table.from_batches(found, BATCH).to_pylist()
    *records, consumed, left_out = rows
    assert all(each["partition"] == 4 and each[PROBLEM] is None for each in records)
    assert (consumed[PROBLEM], left_out[PROBLEM]) == (ENTRIES, OFFSET_COMMIT_LEFT_OUT)
    return [each["offset"] for each in records], consumed[NUMBER], left_out[NUMBER]


CASES: dict[str, Any] = {
    "to the last record": ([[Record(8), Record(9), Record(10)]], ([8, 9], 2, 0)),
    "in several goes": ([[Record(1)], [], [Record(2)], [eof(10)]], ([1, 2], 2, 0)),
    "a record beyond a hole": ([[Record(1), Record(12), Record(13)]], ([1], 1, 0)),
    "markers at the end": ([[Record(7), eof(10)]], ([7], 1, 0)),
    "the log has grown since": ([[Record(7), eof(25)]], ([7], 1, 0)),
    "all of it is a hole": ([[eof(10)]], ([], 0, 0)),
    "it waits for the end": ([[Record(1), eof(2)], [Record(9)]], ([1, 9], 2, 0)),
    "an error without an offset": ([[Record(1, COMMIT), Event("_TRANSPORT", None)], [Record(9)]], ([9], 2, 1)),
    "errors that pass": ([[Event("_TRANSPORT")], [Record(9)]], ([9], 1, 0)),
    "commits are left out": ([[Record(1, COMMIT), Record(2), Record(3, OLD_COMMIT), eof(10)]], ([2], 3, 2)),
    "a go of commits alone": ([[Record(1, COMMIT), Record(2, OLD_COMMIT)], [Record(9, COMMIT)]], ([], 3, 3)),
    "others between commits": ([[Record(1, COMMIT), Record(2), Record(5, COMMIT)], [eof(10)]], ([2], 3, 2)),
    "the end among commits": ([[Record(8, COMMIT), Record(9, COMMIT), Record(10, COMMIT)]], ([], 2, 2)),
    "a hole behind commits": ([[Record(8, COMMIT), Record(12, COMMIT)]], ([], 1, 1)),
    "short and empty keys": ([[Record(1, b""), Record(2, b"\x00"), Record(3, COMMIT), Record(9)]], ([1, 2, 9], 4, 1)),
    "odd keys are kept": ([[Record(1, None), Record(2, b""), Record(3, b"\x00"), Record(9)]], ([1, 2, 3, 9], 4, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stretch(name):
    given, expected = CASES[name]
    assert read(*given) == expected


def test_commits_are_kept_on_request():
    assert read([Record(1, COMMIT), Record(9)], keep=True) == ([1, 9], 2, 0)


def test_records_have_the_leader_epoch_of_their_batch():
    reader = StretchReader(Address("h:1", {}, 30), False)
    given = Consumer([Record(1, epoch=3), Record(2, COMMIT, epoch=3), Record(9, epoch=5)])
    found = pa.Table.from_batches(list(batches(reader, [OffsetRange(4, 0, 10)], given, [], lambda: 0)), BATCH)
    assert found["leader_epoch"].to_pylist() == [3, 5, None, None]


def test_large_stretches_come_in_batches():
    records = [Record(at, GROUP, bytes(3)) for at in range(12_000)]
    reader = StretchReader(Address("h:1", {}, 30), False)
    found = [each.num_rows for each in batches(reader, [OffsetRange(4, 0, 12_000)], Consumer(records), [], lambda: 0)]
    assert found == [5_000, 5_000, 2_000, 2]


class Placed(Record):
    """A record that says its log partition."""

    place = 0

    def partition(self):
        return self.place


class Ended(Event):
    """An event of a log partition, or of none."""

    place = -1

    def partition(self):
        return self.place


def of(partition, found):
    found.place = partition
    return found


def test_several_stretches_by_one_consumer():
    """Records of the ranges come mixed; what is of none, or of a range that is done, does no harm."""
    first = [of(7, Placed(0)), of(9, Placed(5)), of(7, Placed(1)), Ended("_TRANSPORT"), of(7, Placed(2))]
    second = [of(7, Ended("_PARTITION_EOF", 3)), of(9, Placed(6, COMMIT)), of(9, Ended("_PARTITION_EOF", 8))]
    reader = StretchReader(Address("h:1", {}, 30), False)
    ranges = [OffsetRange(7, 0, 2), OffsetRange(9, 5, 8)]
    found = pa.Table.from_batches(batches(reader, ranges, Consumer(first, second), [], lambda: 0), BATCH).to_pylist()
    told = [(each["partition"], each["offset"], each[PROBLEM], each[NUMBER]) for each in found]
    assert told == [
        *((7, 0, None, None), (7, 1, None, None), (7, None, ENTRIES, 2), (7, None, OFFSET_COMMIT_LEFT_OUT, 0)),
        *((9, 5, None, None), (9, None, ENTRIES, 2), (9, None, OFFSET_COMMIT_LEFT_OUT, 1)),
    ]


@pytest.mark.parametrize(
    ("given", "errors", "code"),
    [
        ([[Record(1)]], [], "KAFKA_UNREACHABLE"),
        ([[eof(5)]], [], "KAFKA_UNREACHABLE"),
        ([[Record(1)]], [Event("_TRANSPORT")], "KAFKA_UNREACHABLE"),
        ([[Record(1)]], [Event("_AUTHENTICATION")], "KAFKA_REFUSED"),
        ([[Event("TOPIC_AUTHORIZATION_FAILED")]], [], "KAFKA_NOT_ALLOWED"),
        ([[Event("_AUTO_OFFSET_RESET")]], [], "LOG_MOVED"),
        ([[Event("_FATAL", is_fatal=True)]], [], "KAFKA_FAILED"),
    ],
)
def test_a_read_that_cannot_end_is_a_fault(given, errors, code):
    with pytest.raises(Fault) as caught:
        read(*given, errors=errors)
    assert caught.value.code == code
    assert "\n" not in caught.value.message


def test_the_reader_commits_nothing_and_passes_over_nothing():
    assert (CONSUMER["enable.auto.commit"], CONSUMER["enable.auto.offset.store"]) == (False, False)
    assert (CONSUMER["auto.offset.reset"], CONSUMER["isolation.level"]) == ("error", "read_uncommitted")


def test_both_ends_have_the_same_columns():
    assert FIELDS.names == BATCH.names


def test_a_fault_is_found_in_sparks_words():
    words = 'File "x.py", line 1\nRuntimeError: groupledger-fault ["LOG_MOVED", "a \\"b\\": run it again"]\n\n\tat org'
    fault = fault_of(words)
    assert (fault.code, fault.message) == ("LOG_MOVED", 'a "b": run it again')
    assert fault_of("something else") is None
