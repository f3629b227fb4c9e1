"""Which segments a path stands for, and what is said where there are none; no Spark is needed for it."""

from io import BytesIO

import pytest

from groupledger.core.log.segments import LogReader, Segment
from groupledger.sources.opening import ENTRIES, SourceFault
from groupledger.sources.segment_files import (
    BYTES_A_BATCH,
    ROWS_A_BATCH,
    arrow_batches,
    decompressed,
    list_segments,
    partition_rows,
)
from tests.segments import real
from tests.segments.hand import batch, record

ZERO = "00000000000000000000.log"


def log_dirs(root, *names):
    for name in names:
        folder = root / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_bytes(b"x" * 10) if name.endswith((".log", ".index", ".txt")) else folder.mkdir()
    return root


def listed(path, **settings):
    found = list_segments(str(path), **settings)
    return [(number, [(each.name.rsplit("/", 2)[1:], each.offset) for each in log]) for number, log in found.partitions]


def test_the_partition_is_in_the_folder_s_name_and_other_folders_are_counted(tmp_path):
    names = [f"__consumer_offsets-{number}/{ZERO}" for number in (3, 49)]
    names += ["__consumer_offsets-3/00000000000000000070.log", f"__consumer_offsets-3/{ZERO.replace('.log', '.index')}"]
    names += [f"orders-{number}/{ZERO}" for number in range(5)] + ["orders-7.deadbeef01-delete", "snapshots", "a.txt"]
    names += ["__consumer_offsets-1.0a1b-future", "__consumer_offsets-2.0a1b-stray", "__consumer_offsets"]
    root = log_dirs(tmp_path, *names)
    found = list_segments(str(root))
    assert found.passed_over == {"other topic": 6, "log set aside by the broker": 2}
    first = ["__consumer_offsets-3", ZERO]
    second = ["__consumer_offsets-3", "00000000000000000070.log"]
    assert listed(root) == [(3, [(first, 0), (second, 70)]), (49, [(["__consumer_offsets-49", ZERO], 0)])]
    assert listed(root / "__consumer_offsets-3") == listed(f"file://{root}/__consumer_offsets-3/") == listed(root)[:1]
    assert [size for _, size, _ in found.files.found] == [10, 10, 10]


def test_a_pattern_names_several_disks(tmp_path):
    for disk, number in (("d1", 0), ("d2", 1), ("e", 2)):
        log_dirs(tmp_path / disk, f"__consumer_offsets-{number}/{ZERO}")
    assert [number for number, _ in listed(tmp_path / "d*", glob=True)] == [0, 1]
    assert [number for number, _ in listed(tmp_path / "{d[2-9],e}", glob=True)] == [1, 2]
    assert [number for number, _ in listed(tmp_path / "e", glob=True)] == [2]
    with pytest.raises(SourceFault, match="there is no such folder"):
        list_segments(str(tmp_path / "d*"))
    with pytest.raises(SourceFault, match="there is no such folder"):
        list_segments(str(tmp_path / "x*"), glob=True)


WRONG = {
    "nothing": ([], "", "NO_SEGMENTS", "no folder of __consumer_offsets; expected a broker's log.dirs"),
    "other topics": (["orders-0", "orders-1"], "", "NO_SEGMENTS", "beside 2 other folders; expected"),
    "no segment": (["__consumer_offsets-0"], "", "NO_SEGMENTS", "there is no segment (*.log) in it"),
    "another log": (["__consumer_offsets-0/server.log"], "", "NO_SEGMENTS", "server.log: this is no segment of a log"),
    "a name too high": ([f"__consumer_offsets-0/{1 << 63:020}.log"], "", "NO_SEGMENTS", "this is no segment of a log"),
    "a partition too high": ([f"__consumer_offsets-{1 << 31}"], "", "NO_SEGMENTS", "beside 1 other folders; expected"),
    "a file": (["a.txt"], "a.txt", "NO_SEGMENTS", "a.txt is a file; expected"),
    "missing": ([], "nowhere", "SOURCE_MISSING", "there is no such folder; check sources"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(tmp_path, case):
    names, path, code, words = WRONG[case]
    root = log_dirs(tmp_path / "disk", *names) if names else tmp_path / "disk"
    root.mkdir(exist_ok=True)
    with pytest.raises(SourceFault) as caught:
        list_segments(str(root / path))
    assert caught.value.code == code
    assert words in caught.value.message
    assert str(root) in caught.value.message


@pytest.mark.parametrize("path", ["s3a://bucket/logs", "hdfs://host/logs", "dbfs:/logs"])
def test_another_store_is_refused(path):
    with pytest.raises(SourceFault) as caught:
        list_segments(path)
    assert caught.value.code == "NOT_LOCAL"
    assert path in caught.value.message


def test_a_segment_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    log_dirs(tmp_path, f"__consumer_offsets-0/{ZERO}")
    monkeypatch.setattr("groupledger.sources.segment_files.os.access", lambda *_: False)
    with pytest.raises(SourceFault, match=f"{ZERO}: permission denied") as caught:
        list_segments(str(tmp_path))
    assert caught.value.code == "SOURCE_UNREADABLE"


def rows_of(files, passed_over):
    opened = {name: BytesIO(content) for name, content in files.items()}
    reader = LogReader(
        [Segment(name, int(name[:20])) for name in files], opened.__getitem__, decompressed, commits=True
    )
    return [row for batch in partition_rows(7, reader, passed_over) for row in batch.to_pylist()]


def test_rows_add_up():
    *rows, last = real.files("lz4").values()
    files = dict(zip(real.files("lz4"), [*rows, last[:-9]], strict=True))
    found = rows_of(files, {"other topic": 3})
    tallies = {row["_problem"]: row["_number"] for row in found if row["_number"] is not None}
    entries = tallies.pop(ENTRIES)
    assert tallies["other topic"] == 3
    assert tallies["torn tail"] == 1
    assert entries == sum(tallies.values()) + sum(row["_number"] is None for row in found)
    assert {row["partition"] for row in found} == {7}


def test_a_time_that_is_none_and_damage_become_rejected_rows():
    late = batch(0, [record(0, b"kk", b"v")], times=(1 << 60, 1 << 60))
    time, damage = (row for row in rows_of({ZERO: late + b"?" * 99 + late}, {}) if row["_number"] is None)
    assert time["_problem"].startswith(f"BAD_TIMESTAMP: timestamp is {1 << 60}; expected milliseconds since 1970")
    assert (time["offset"], time["key"], time["value"], time["timestamp"]) == (0, b"kk", b"v", None)
    assert damage["_problem"].startswith(f"BAD_LENGTH: {ZERO}, bytes {len(late)} to ")
    assert damage["row"] == f'{{"file": "{ZERO}", "byte": {len(late)}, "bytes": {99 + len(late)}}}'


def test_arrow_batches_are_neither_small_nor_large():
    """Many small batches of records, one of many records, and one of large ones; a batch's rows keep their order."""
    rows = [[b""] * 3 for _ in range(100)] + [[b"v"] * 20_000] + [[bytes(6 << 20)] * 5]
    data, offset = b"", 0
    for values in rows:
        data += batch(offset, [record(at, b"kk", value) for at, value in enumerate(values)])
        offset += len(values)
    reader = LogReader([Segment(ZERO, 0)], lambda _: BytesIO(data), decompressed, commits=True)
    found = list(arrow_batches(partition_rows(7, reader, {})))
    offsets = [offset for part in found for offset in part.column("offset").to_pylist() if offset is not None]
    assert offsets == list(range(offset))
    assert all(part.num_rows <= ROWS_A_BATCH and part.nbytes <= BYTES_A_BATCH for part in found)
    assert len(found) < 10
