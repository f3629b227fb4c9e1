"""Segments of a disk to rows, against a bare read of the same files: 10 million records, 99 % committed offsets.

python -m benchmarks.segments [records] [records a batch] [runs] [codec]

One process, without Spark, as a worker does it: batches checked, committed offsets counted and dropped, the rest made
into Arrow batches. The log is generated, the same each time. A bare read only fetches the bytes, in pieces of the same
size. First both from the disk: the pages of the files are given up before each, and seconds are those of the clock.
Then both from memory, where a bare read is nothing but a copy, and besides them the checksums alone, what any reader
has to compute; those seconds are the processor's, which others on the machine disturb least: nothing there waits. Peak
memory is that of a new process.
"""

from __future__ import annotations

import functools
import os
import random
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import google_crc32c
import pyarrow as pa

from benchmarks.timing import Timed, interleaved
from groupledger.core.log.record_batches import CHECKED_FROM, size_at
from groupledger.core.log.segments import WINDOW, LogReader, Segment
from groupledger.sources.segment_files import arrow_batches, decompressed, opened, partition_rows
from tests.segments.hand import batch, commit, group, record

SEGMENT_BYTES = 100 << 20
CODECS = {"none": 0, "gzip": 1, "lz4": 3, "zstd": 4}
TEMPLATES = 64
A_STATE_IN = 100
"""One record in so many is a group's state: a batch of its own."""


def main(records: int, a_batch: int, runs: int, codec: str) -> None:
    """Print the figures, records a second, and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        segments = generated(Path(folder), records, a_batch, codec)
        size = sum(Path(segment.name).stat().st_size for segment in segments)
        print(
            f"{records:,} records, {a_batch} a batch, codec {codec}: {size / 1e6:,.0f} MB in {len(segments)} segments"
        )
        things = {"ours": lambda: ours(segments, records), "read": lambda: bare_read(segments)}
        cold = {f"{name}, disk": functools.partial(from_disk, segments, thing) for name, thing in things.items()}
        told(interleaved(cold, runs), records, size)
        things["sums"] = lambda: checksums(segments)
        told(interleaved(things, runs, clock=time.process_time), records, size)
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            print(f"peak memory {fresh.submit(peak, segments, records).result():,.0f} MiB")


def told(timed: list[Timed], records: int, size: int) -> None:
    """Ours, and how fast it is beside each of the others."""
    print(*timed, sep="\n")
    ours, *floors = timed
    print(f"{ours.name}: {records / ours.median:,.0f} records/s, {size / ours.median / 1e6:,.0f} MB/s")
    for floor in floors:
        speed = size / floor.median / 1e6
        print(f"{floor.name}: {speed:,.0f} MB/s; {ours.name} / {floor.name}: {floor.median / ours.median:.2f}x")


def from_disk(segments: list[Segment], thing: Callable[[], None]) -> None:
    """Do a thing with files of which no page is in memory."""
    for segment in segments:
        with Path(segment.name).open("rb") as file:
            os.fsync(file.fileno())  # pages that are not written yet stay
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    thing()


def peak(segments: list[Segment], records: int) -> float:
    """The most memory, in MiB, of a process that has read the segments once and done nothing else."""
    ours(segments, records)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ours(segments: list[Segment], records: int) -> None:
    """All rows, as a task makes them. AssertionError where one is missing."""
    reader = LogReader(segments, opened, decompressed, commits=False)
    rows = sum(made.num_rows for made in arrow_batches(partition_rows(0, reader, {})))
    assert reader.entries == records
    assert rows > records // A_STATE_IN


def bare_read(segments: list[Segment]) -> None:
    """The bytes alone."""
    for segment in segments:
        with Path(segment.name).open("rb") as file:
            while file.read(WINDOW):
                pass


def checksums(segments: list[Segment]) -> None:
    """The bytes, cut into batches, and a checksum of each."""
    for segment in segments:
        data, position = Path(segment.name).read_bytes(), 0
        while position < len(data):
            end = position + size_at(data, position)
            google_crc32c.value(data[position + CHECKED_FROM : end])
            position = end


def generated(folder: Path, records: int, a_batch: int, codec: str) -> list[Segment]:
    """Segments of so many records."""
    rng = random.Random(1)  # noqa: S311 the same log each time
    commits = [templates(rng, a_batch, codec) for _ in range(TEMPLATES)]
    states = [batch(0, [record(0, group(f"group-{at}"), rng.randbytes(600))]) for at in range(TEMPLATES)]
    segments: list[tuple[str, int]] = []
    offset, written, ordinary = 0, b"", a_batch * (A_STATE_IN - 1)
    pieces: list[bytes] = []
    while offset < records:
        count = a_batch if offset % (ordinary + a_batch) < ordinary and offset + a_batch <= records else 1
        chosen = rng.choice(commits if count == a_batch and count > 1 else states)
        pieces.append(struct.pack(">q", offset) + chosen[8:])
        offset += count
        if len(pieces) == 20_000 or offset >= records:
            written += b"".join(pieces)
            pieces = []
        if len(written) >= SEGMENT_BYTES or offset >= records:
            first = segments[-1][1] if segments else 0
            name = folder / f"{first:020}.log"
            name.write_bytes(written)
            segments.append((str(name), offset))
            written = b""
    starts = [0, *(end for _, end in segments)]
    return [Segment(name, start) for (name, _), start in zip(segments, starts, strict=False)]


def templates(rng: random.Random, a_batch: int, codec: str) -> bytes:
    """A batch of committed offsets of one member."""
    name = f"group-{rng.randrange(1_000)}"
    rows = [record(at, commit(name, at), rng.randbytes(24)) for at in range(a_batch)]
    if codec == "none":
        return batch(0, rows)
    payload = pa.compress(b"".join(rows), codec=codec, asbytes=True)
    return batch(0, rows, attributes=CODECS[codec], payload=payload)


if __name__ == "__main__":
    given = [*sys.argv[1:], *("10000000", "10", "3", "none")[len(sys.argv) - 1 :]]
    main(int(given[0]), int(given[1]), int(given[2]), given[3])
