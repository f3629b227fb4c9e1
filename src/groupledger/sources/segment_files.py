"""Read segments of `__consumer_offsets` from a broker's disk: `__consumer_offsets-<N>/<first offset>.log`.

They are listed here and read by the workers, in one task per log partition, so the folder must have the same path on
every machine that reads. Only those files are needed, no indexes, and the cluster may be gone.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from groupledger.core.log.lines import RECORD_TIME, TOPIC
from groupledger.core.log.record_batches import NO_UPPER, Blobs, RecordColumns
from groupledger.core.log.segments import LEFT_OUT, Damage, LogReader, Segment
from groupledger.sources.files import Files, local_path
from groupledger.sources.offsets_records import FIELDS_OF_BATCHES, accounted
from groupledger.sources.opening import (
    ENTRIES,
    NUMBER,
    PROBLEM,
    Rows,
    SourceFault,
    tallied,
    watched_times,
)
from groupledger.sources.snapshot_tables import moment
from groupledger.tables import columns as c

OTHER_TOPIC, SET_ASIDE = "other topic", "log set aside by the broker"
"""Kinds of folders that are skipped. A broker renames those that it is about to delete or replace."""
TALLIES = (*LEFT_OUT, OTHER_TOPIC, SET_ASIDE)
SCHEMA = StructType(
    [
        *FIELDS_OF_BATCHES,
        StructField(PROBLEM, StringType()),
        StructField(c.ROW, StringType()),
        StructField(NUMBER, LongType()),
    ]
)
_ARROW = to_arrow_schema(SCHEMA)
ROWS_A_BATCH, BYTES_A_BATCH = 8_192, 16 << 20
_PARTITION = re.compile(rf"{TOPIC}-(\d{{1,9}})")
_SET_ASIDE = re.compile(rf"{TOPIC}-\d+\..*-(delete|future|stray)")
_OTHER = re.compile(r"[A-Za-z0-9._-]+-\d+(\.\w+-(delete|future|stray))?")
_SEGMENT = re.compile(r"(\d{20})\.log")
_EXPECTED = f"expected a broker's log.dirs with folders such as {TOPIC}-0, or one such folder"
LogPartition = tuple[int, tuple[Segment, ...]]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class LogFolders:
    """The log partitions of a path, largest first, their files, and how many other folders are there, by kind."""

    files: Files
    partitions: tuple[LogPartition, ...]
    passed_over: dict[str, int]


def list_segments(path: str, *, glob: bool = False) -> LogFolders:
    """List the segments of a path. Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, NO_SEGMENTS, NOT_LOCAL."""
    root = local_path(path)
    if root is None:
        words = "log segments are read from a folder; copy them to one, or mount the store"
        raise SourceFault("NOT_LOCAL", f"{path}: {words} that every worker can read")
    roots = _expanded(root) if glob else [root]
    if not roots or not all(each.exists() for each in roots):
        raise SourceFault("SOURCE_MISSING", f"{path}: there is no such folder; check sources")
    passed_over: Counter[str] = Counter()
    try:
        folders = [folder for each in roots for folder in _folders(each, path, passed_over)]
        found = [(number, _segments(folder)) for number, folder in folders]
    except OSError as error:
        raise SourceFault("SOURCE_UNREADABLE", f"{error.filename or path}: {error.strerror}") from error
    if not found:
        beside = f" beside {passed_over.total()} other folders" if passed_over else ""
        raise SourceFault("NO_SEGMENTS", f"{path}: no folder of {TOPIC}{beside}; {_EXPECTED}")
    found.sort(key=lambda each: (-sum(size for _, _, size, _ in each[1]), each[0], each[1]))
    files = sorted((name, size, at) for _, segments in found for name, _, size, at in segments)
    partitions = ((number, tuple(Segment(name, first) for name, first, *_ in segments)) for number, segments in found)
    return LogFolders(Files(path, str(root), tuple(files)), tuple(partitions), dict(passed_over))


def read(spark: SparkSession, found: LogFolders, cluster_id: str, *, offset_commits: bool = False) -> Rows:
    """Read every valid record, and a rejected row for each range of damage; committed offsets only on request."""
    number = len(found.partitions)
    tasks = spark.range(0, number, 1, number)
    raw = tasks.mapInArrow(_reader(found.partitions, found.passed_over, offset_commits=offset_commits), SCHEMA)
    times, newest = watched_times(raw, [number for number, _ in found.partitions], F.col(PROBLEM) == ENTRIES)
    rows = accounted(times, _typed, found.files.path, cluster_id, counts=tallied(*TALLIES))
    return replace(rows, newest_left_out=newest)


def _typed(raw: DataFrame) -> DataFrame:
    """Return records and damage, without the rows that hold counts."""
    is_tally = F.coalesce(F.col(PROBLEM).isin(ENTRIES, *TALLIES), F.lit(False))
    rows = raw.where(~is_tally).drop(NUMBER)
    return rows.withColumn(c.TIMESTAMP, moment(F.col(c.TIMESTAMP), LongType(), RECORD_TIME))


def _expanded(pattern: Path) -> list[Path]:
    """Return the folders that a pattern with * ? [ ] { } matches."""
    braces = re.search(r"\{([^{}]*)\}", str(pattern))
    if braces is not None:
        before, behind = str(pattern)[: braces.start()], str(pattern)[braces.end() :]
        return sorted({found for each in braces[1].split(",") for found in _expanded(Path(before + each + behind))})
    if re.search(r"[*?\[]", str(pattern)) is None:
        return [pattern] if pattern.exists() else []
    return sorted(Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor))))


def _folders(root: Path, path: str, passed_over: Counter[str]) -> list[tuple[int, Path]]:
    """Return the folders of log partitions: the path itself, or those in it."""
    if not root.is_dir():
        raise SourceFault("NO_SEGMENTS", f"{path}: {root} is a file; {_EXPECTED}")
    here = _PARTITION.fullmatch(root.resolve().name)
    if here is not None:
        return [(int(here[1]), root)]
    found = []
    for folder in sorted(each for each in root.iterdir() if each.is_dir()):
        ours = _PARTITION.fullmatch(folder.name)
        if ours is not None:
            found.append((int(ours[1]), folder))
        elif _SET_ASIDE.fullmatch(folder.name) is not None:
            passed_over[SET_ASIDE] += 1
        elif _OTHER.fullmatch(folder.name) is not None:
            passed_over[OTHER_TOPIC] += 1
    return found


def _segments(folder: Path) -> list[tuple[str, int, int, int]]:
    """Return (name, first offset, bytes, modification time in us) of each segment."""
    found = []
    for file in sorted(folder.glob("*.log")):
        named = _SEGMENT.fullmatch(file.name)
        if named is None or int(named[1]) >= NO_UPPER or not file.is_file():
            words = "expected only segments, each named by its first offset in 20 digits; remove it"
            raise SourceFault("NO_SEGMENTS", f"{file}: this is no segment of a log: {words}")
        if not os.access(file, os.R_OK):
            raise SourceFault("SOURCE_UNREADABLE", f"{file}: permission denied; let this user read it")
        known = file.stat()
        found.append((str(file.resolve()), int(named[1]), known.st_size, known.st_mtime_ns // 1_000))
    if not found:
        words = "a broker keeps at least one; copy the folder again, or remove it"
        raise SourceFault("NO_SEGMENTS", f"{folder}: there is no segment (*.log) in it; {words}")
    return found


def _reader(
    partitions: tuple[LogPartition, ...], passed_over: dict[str, int], *, offset_commits: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a task's function from numbers of log partitions to rows; the first task also reports what was skipped."""

    def read_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                number, segments = partitions[index]
                reader = LogReader(segments, opened, decompressed, commits=offset_commits)
                yield from arrow_batches(partition_rows(number, reader, {} if index else passed_over))

    return read_all


def partition_rows(number: int, reader: LogReader, passed_over: dict[str, int]) -> Iterator[pa.RecordBatch]:
    """Yield rows of SCHEMA: records, damage, and last the counts of everything."""
    for found in reader.read():
        if isinstance(found, Damage):
            place = {"file": found.file, "byte": found.start, "bytes": found.end - found.start}
            problem = f"{found.code}: {found.message}"
            yield _of_rows([(number, found.offset, *(None,) * 4, problem, json.dumps(place), None)])
        else:
            yield from _pieces(_of_records(number, found))
    tallies = {ENTRIES: reader.entries + sum(passed_over.values()), **reader.left_out, **passed_over}
    newest = reader.newest
    time = newest if newest is not None and RECORD_TIME.least <= newest <= RECORD_TIME.most else None
    yield _of_rows([(number, None, time, *(None,) * 3, kind, None, total) for kind, total in tallies.items()])


def _of_records(number: int, records: RecordColumns) -> pa.RecordBatch:
    """Convert records; an invalid time is a problem of its row."""
    times = records.times
    is_time = (times >= RECORD_TIME.least) & (times <= RECORD_TIME.most)
    problems = rows = pa.nulls(len(records), pa.string())
    if not is_time.all():
        wrong = [None if right else time for right, time in zip(is_time.tolist(), times.tolist(), strict=True)]
        words = f"expected {RECORD_TIME.words}"
        problems = pa.array([None if t is None else f"BAD_TIMESTAMP: timestamp is {t}; {words}" for t in wrong])
        rows = pa.array([None if t is None else json.dumps({c.TIMESTAMP: t}) for t in wrong])
    columns = [
        pa.array(np.full(len(records), number, np.int32)),
        pa.array(records.offsets),
        pa.array(times, mask=~is_time),
        _binary(records.keys),
        _binary(records.values),
        pa.array(records.epochs.astype(np.int32), mask=records.epochs < 0),
        problems,
        rows,
        pa.nulls(len(records), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _binary(blobs: Blobs) -> pa.Array:
    present = pa.array(~blobs.is_null).buffers()[1] if blobs.is_null.any() else None
    start = pa.py_buffer(blobs.start.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(blobs.is_null), [present, start, pa.py_buffer(blobs.data)])


def _of_rows(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split into parts of at most ROWS_A_BATCH rows, and of BYTES_A_BATCH bytes unless that is a single row."""
    if batch.num_rows <= 1 or (batch.num_rows <= ROWS_A_BATCH and batch.nbytes <= BYTES_A_BATCH):
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def arrow_batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches, up to ROWS_A_BATCH rows and BYTES_A_BATCH bytes."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for part in parts:
        if held and (rows + part.num_rows > ROWS_A_BATCH or size + part.nbytes > BYTES_A_BATCH):
            yield from _joined(held)
            held, rows, size = [], 0, 0
        held.append(part)
        rows += part.num_rows
        size += part.nbytes
    yield from _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def opened(name: str) -> BufferedIOBase:
    """Open a segment for reading. OSError names it."""
    try:
        return Path(name).open("rb")
    except OSError as error:  # Spark's own words, by which the fault of a source is recognised
        raise OSError(f"while reading file {quote(name)} : {error.strerror}") from error


# Decompress Kafka's codecs: gzip, snappy (framed as xerial's Java library does, or raw), lz4 frames, zstd.

MOST_BYTES = 256 << 20
"""Limit of the output for one input: a decompression bomb must not fill a worker's memory."""

_CODECS = {1: "gzip", 3: "lz4", 4: "zstd"}
_SNAPPY = 2
_PIECE = 256 << 10
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16  # the mark, a version and the least version that can read it
_LENGTH = 4


def decompressed(codec: int, data: bytes) -> bytes:
    """Return the records of a batch; `codec` as in its attributes. ValueError for bytes not of that codec."""
    try:
        if codec == _SNAPPY:
            return _snappy(data)
        pieces, size = list[bytes](), 0
        with pa.CompressedInputStream(pa.BufferReader(data), _CODECS[codec]) as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                pieces.append(_bounded(piece, size))
        return b"".join(pieces)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"bytes that do not decompress ({str(error)[:100]})") from None


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_XERIAL):
        return _block(data)
    blocks, position, size = [], _XERIAL_HEADER, 0
    while position < len(data):
        start = position + _LENGTH
        position = start + int.from_bytes(data[position:start], "big")
        if position > len(data):
            raise ValueError(f"a block that ends at byte {position} of {len(data)}")
        blocks.append(_block(data[start:position]))
        size += len(blocks[-1])
        _bounded(data, size)
    return b"".join(blocks)


def _block(data: bytes) -> bytes:
    """Decompress one raw block, which its length precedes."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found: bytes = pa.decompress(_bounded(data, size), size, codec="snappy", asbytes=True)
            return found
    raise ValueError("a block without a length")


def _bounded(found: bytes, size: int) -> bytes:
    if size > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes once decompressed")
    return found
