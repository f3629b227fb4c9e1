"""One group of a million generations: its fold in slices, in one process, and the memory that this takes.

python -m benchmarks.giant_group [generations]

The records come as Spark brings them to a worker, 10,000 at a time, and what a slice gives is dropped at once. All
partitions change hands from each generation to the next.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

import pyarrow as pa

from groupledger.core.history import FoldSettings
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupledger.core.wire.offsets_log import LogKey, RecordKind, encode_key, encode_value
from groupledger.core.wire.records import ClassicGroupMember, GroupMetadata
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.fold_schema import GROUP_KEY, INPUT, RECORD
from groupledger.engine.fold_slices import fold_in_slices
from groupledger.tables import columns as c

GROUP, MEMBERS, PARTITIONS = "giant", 5, 30
A_BATCH = 10_000
SCHEMA = arrow_schema(INPUT)
KEY = encode_key(LogKey(RecordKind.GROUP_METADATA, 2, GROUP, {}))


def main(generations: int) -> None:
    """Print the rows that came, the time a record takes, and the peak of memory before and after."""
    before, began = peak(), time.process_time()
    rows = 0
    for folded in fold_in_slices(batches_of(generations), FoldSettings()):
        rows += sum(map(len, folded.tables.values()))
    took = time.process_time() - began
    each = took / generations * 1e6
    print(
        f"{generations:,} generations of one group: {rows:,} rows, {each:.1f} us each, with the making of the records"
    )
    print(f"most memory: {peak()} MiB, before the first record {before} MiB")


def peak() -> int:
    """The most memory that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024


def batches_of(generations: int) -> Iterator[pa.RecordBatch]:
    """The log of the group."""
    values = [value(turn) for turn in range(MEMBERS)]
    for first in range(0, generations, A_BATCH):
        numbers = range(first, min(first + A_BATCH, generations))
        given = {
            c.KIND: [RECORD] * len(numbers),
            c.CLUSTER_ID: ["bench"] * len(numbers),
            GROUP_KEY: [GROUP.encode()] * len(numbers),
            c.LOG_PARTITION: [0] * len(numbers),
            c.OFFSET: list(numbers),
            c.TIMESTAMP: [1_700_000_000_000 + number * 1_000 for number in numbers],
            c.KEY: [KEY] * len(numbers),
            c.VALUE: [in_generation(values[number % MEMBERS], number + 1) for number in numbers],
        }
        arrays = [pa.array(given.get(field.name, [None] * len(numbers)), field.type) for field in SCHEMA]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def in_generation(data: bytes, generation: int) -> bytes:
    """The same value of another generation."""
    at = 4 + len("consumer")
    return data[:at] + generation.to_bytes(4, "big") + data[at + 4 :]


def value(turn: int) -> bytes:
    """A generation in which each member has as many partitions; `turn` says who begins."""
    told = encode_subscription(ConsumerProtocolSubscription(1, ("orders",), None, (), None, None))
    members = []
    for number in range(MEMBERS):
        mine = tuple(range((number + turn) % MEMBERS, PARTITIONS, MEMBERS))
        assigned = encode_assignment(ConsumerProtocolAssignment(1, (("orders", mine),)))
        members.append(ClassicGroupMember(f"m{number}", None, "client", "/10.0.0.1", 300_000, 45_000, told, assigned))
    group = GroupMetadata("consumer", 1, "range", "m0", None, tuple(members))
    data = encode_value(RecordKind.GROUP_METADATA, 3, group)
    assert data is not None
    return data


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
