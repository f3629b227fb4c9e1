"""A log partition from its segments: what counts, what is left out, what is damage, and what is a torn tail."""

import gzip
import io
import random
import struct

import pyarrow as pa
import pytest

from groupledger.core.log.segments import LogReader, Segment
from groupledger.sources.segment_files import decompressed
from tests.segments import hand, real
from tests.segments.hand import ABORT, COMMIT, TRANSACTIONAL, batch, commit, group, marker, old_message, record
from tests.segments.reading import name, read, windows_of

FIRST = batch(0, [record(0, group("a"), b"v0"), record(1, commit("a"), b"c"), record(2, group("b"), None, time=7)])
SECOND = batch(3, [record(0, group("a"), b"v1", headers=[(b"h", b"x"), (b"i", None)])])
THIRD = batch(4, [record(0, None, None), record(1, b"", b"")])
WHOLE = FIRST + SECOND + THIRD
FOURTH = batch(6, [record(0, group("c"), b"v")])


@pytest.mark.parametrize("codec", real.CODECS)
@pytest.mark.parametrize("size", [4 << 20, 700, 61])
def test_real_segments_hold_what_a_consumer_read(codec, size):
    with windows_of(size):
        found = read(real.files(codec))
    assert found.records == real.consumed(codec)
    assert found.damage == []
    assert found.left_out == {"transaction marker": 4, "aborted transaction": 6, "undecided transaction": 4}
    compressed = {attributes & 7 for data in real.files(codec).values() for attributes in attributes_of(data)}
    assert real.CODECS.index(codec) in compressed


@pytest.mark.parametrize("codec", real.CODECS)
def test_offset_commits_are_left_out_and_counted(codec):
    found, everything = read(real.files(codec), commits=False), read(real.files(codec))
    assert found.records == [row for row in everything.records if row[2][:2] not in (b"\0\0", b"\0\1")]
    assert found.entries == everything.entries
    assert found.left_out["offset commit left out"] == len(everything.records) - len(found.records) > 100


def attributes_of(data):
    position = 0
    while position + 61 <= len(data) and (length := int.from_bytes(data[position + 8 : position + 12])):
        yield int.from_bytes(data[position + 21 : position + 23])
        position += 12 + length


def test_every_field_of_a_record():
    found = read({name(0): WHOLE})
    assert found.records == [
        (0, 1_000, group("a"), b"v0"),
        (1, 1_000, commit("a"), b"c"),
        (2, 1_007, group("b"), None),
        (3, 1_000, group("a"), b"v1"),
        (4, 1_000, None, None),
        (5, 1_000, b"", b""),
    ]
    assert read({name(0): WHOLE}, commits=False).offsets == [0, 2, 3, 4, 5]


def test_the_broker_s_time_counts_where_the_batch_says_so():
    data = batch(0, [record(0, b"kk", b"v", time=5)], attributes=hand.LOG_APPEND_TIME, times=(1_000, 9_000))
    assert read({name(0): data}).records == [(0, 9_000, b"kk", b"v")]


def test_records_have_the_leader_epoch_of_their_batch():
    """Plain, compressed and transactional ones; -1: the batch has none."""
    data = batch(0, [record(0, group("a"), b"v"), record(1, group("b"), b"v")], epoch=3)
    data += batch(2, [], attributes=1, last_delta=0, count=1, payload=gzip.compress(record(0, b"kk", b"v")), epoch=4)
    data += batch(3, [record(0, commit("a"), b"v")], attributes=TRANSACTIONAL, producer=7, epoch=5)
    data += marker(4, COMMIT, 7) + batch(5, [record(0, group("a"), b"v")], epoch=-1)
    assert read({name(0): data}).epochs == {0: 3, 1: 3, 2: 4, 3: 5, 5: -1}


def test_compaction_leaves_gaps_and_empty_batches():
    gap = batch(10, [record(3, group("a"), b"v"), record(7, group("b"), b"v")], last_delta=9)
    empty = batch(30, [], last_delta=4)
    assert read({name(0): gap + empty, name(40): batch(41, [record(0, b"kk", b"")])}).offsets == [13, 17, 41]


def xerial(data, size):
    blocks = [pa.compress(data[at : at + size], codec="snappy", asbytes=True) for at in range(0, len(data), size)]
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + framed


CODECS = {
    "gzip": (1, gzip.compress),
    "snappy as Java frames it": (2, lambda data: xerial(data, 20)),
    "snappy raw": (2, lambda data: pa.compress(data, codec="snappy", asbytes=True)),
    "lz4": (3, lambda data: pa.compress(data, codec="lz4", asbytes=True)),
    "zstd": (4, lambda data: pa.compress(data, codec="zstd", asbytes=True)),
}
RECORDS = [record(0, group("a"), b"v" * 50), record(1, commit("a"), b"c"), record(2, group("b"), None)]


def compressed(form, base=0, **settings):
    codec, compress = CODECS[form]
    return batch(base, RECORDS, attributes=codec, payload=compress(b"".join(RECORDS)), **settings)


@pytest.mark.parametrize("form", CODECS)
def test_all_codecs(form):
    found = read({name(0): compressed(form) + batch(3, RECORDS)}, commits=False)
    assert (found.offsets, found.codes) == ([0, 2, 3, 5], [])
    assert found.left_out == {"offset commit left out": 2}


@pytest.mark.parametrize("form", CODECS)
def test_bytes_that_do_not_decompress_harm_no_other_batch(form):
    codec, compress = CODECS[form]
    payload = compress(b"".join(RECORDS))
    for broken in (payload[: len(payload) // 2], b"\xff" * len(payload), compress(b"nothing"), payload[:3]):
        bad = batch(0, RECORDS, attributes=codec, payload=broken)
        found = read({name(0): bad + batch(3, RECORDS)})
        assert found.offsets == [3, 4, 5]
        assert found.codes in (["BAD_COMPRESSION"], ["BAD_RECORDS"])
    assert read({name(0): batch(0, RECORDS, attributes=5) + batch(3, RECORDS)}).codes == ["UNKNOWN_CODEC"]


def test_bytes_that_grow_without_end_are_not_held(monkeypatch):
    monkeypatch.setattr("groupledger.sources.segment_files.MOST_BYTES", 1_000)
    for form, (codec, compress) in CODECS.items():
        bomb = batch(0, RECORDS, attributes=codec, payload=compress(b"\0" * 100_000))
        found = read({name(0): bomb + FOURTH})
        assert (found.codes, found.offsets) == (["BAD_COMPRESSION"], [6]), form


def transactional(base, producer, key=b"\x00\x01x"):
    return batch(base, [record(0, key, b"v"), record(1, key, b"w")], attributes=TRANSACTIONAL, producer=producer)


def test_records_of_a_transaction_count_once_it_commits():
    """Two producers in turn; the markers of one stand in a later segment."""
    first = transactional(0, 1) + transactional(2, 2) + batch(4, [record(0, group("a"), b"v")])
    second = marker(5, ABORT, 2) + transactional(6, 2) + marker(8, COMMIT, 1) + transactional(9, 1)
    third = marker(11, COMMIT, 2) + marker(12, COMMIT, 7)
    found = read({name(0): first, name(5): second, name(11): third})
    assert found.offsets == [0, 1, 4, 6, 7]
    assert found.left_out == {"transaction marker": 4, "aborted transaction": 2, "undecided transaction": 2}
    dropped = read({name(0): first, name(5): second, name(11): third}, commits=False)
    assert dropped.offsets == [4]
    assert dropped.left_out == {**found.left_out, "offset commit left out": 4}


def test_a_transaction_whose_marker_may_be_lost_is_undecided():
    """The next COMMIT of the same producer is that of its next transaction."""
    lost = changed(marker(2, ABORT, 1), 70, b"\xff")
    found = read({name(0): transactional(0, 1) + lost + transactional(3, 1) + marker(5, COMMIT, 1)})
    assert (found.codes, found.offsets) == (["BAD_CRC"], [3, 4])
    assert found.left_out == {"transaction marker": 1, "undecided transaction": 2}


def test_control_records_of_another_kind_end_nothing():
    leader = batch(2, [record(0, b"\0\0\0\2", b"")], attributes=hand.CONTROL)
    found = read({name(0): transactional(0, -1) + leader})
    assert found.left_out == {"transaction marker": 1, "undecided transaction": 2}


TAILS = {
    "a header cut": FOURTH[:40],
    "a few bytes": FOURTH[:8],
    "records cut": FOURTH[:-3],
    "cut, in allocated space": FOURTH[:-20] + b"\0" * 500,
    "a header cut, in allocated space": FOURTH[:30] + b"\0" * 500,
    "a base offset only, in allocated space": FOURTH[:8] + b"\0" * 500,
}


@pytest.mark.parametrize("size", [4 << 20, 100])
@pytest.mark.parametrize("tail", TAILS)
def test_a_torn_tail_is_no_damage(tail, size):
    with windows_of(size):
        found = read({name(0): WHOLE + TAILS[tail]})
        assert (len(found.records), found.codes, found.left_out) == (6, [], {"torn tail": 1})
        earlier = read({name(0): WHOLE + TAILS[tail], name(7): batch(7, [record(0, b"kk", b"v")])})
    assert (earlier.offsets, len(earlier.codes)) == ([0, 1, 2, 3, 4, 5, 7], 1)
    assert earlier.left_out == {}


@pytest.mark.parametrize("zeros", [1, 11, 60, 61, 10_000])
def test_allocated_space_is_no_damage_at_the_end_and_some_elsewhere(zeros):
    assert read({name(0): WHOLE + b"\0" * zeros}).left_out == {}
    found = read({name(0): WHOLE + b"\0" * zeros, name(7): b""})
    assert found.codes in (["ZERO_BYTES"], ["SEGMENT_CUT"])
    found = read({name(0): FIRST + b"\0" * zeros + SECOND})
    assert (found.offsets, len(found.codes)) == ([0, 1, 2, 3], 1)


def changed(data, at, value):
    return data[:at] + value + data[at + len(value) :]


DAMAGE = {
    "BAD_CRC": changed(SECOND, 70, b"\xff"),
    "BAD_LENGTH": changed(SECOND, 8, b"\x7f"),
    "BAD_MAGIC": changed(SECOND, 16, b"\x09"),
    "OFFSETS_BACKWARD": changed(SECOND, 7, b"\x01"),
    "OFFSETS_BEYOND": changed(SECOND, 6, b"\x01"),
    "BAD_HEADER": batch(3, [record(0, b"kk", b"v")], count=5),
    "BAD_RECORDS": batch(3, [record(0, b"kk", b"v")[:-1]]),
    "OLD_MAGIC": old_message(3, 0) + old_message(3, 0) + old_message(3, 0),
}


@pytest.mark.parametrize("size", [4 << 20, 100])
@pytest.mark.parametrize("code", DAMAGE)
def test_damage_is_named_and_all_else_is_read(code, size):
    with windows_of(size):
        found = read({name(0): FIRST + DAMAGE[code] + THIRD, name(6): FOURTH})
    assert (found.codes, found.offsets, found.left_out) == ([code], [0, 1, 2, 4, 5, 6], {})
    (damage,) = found.damage
    assert (damage.file, damage.start, damage.end) == (name(0), len(FIRST), len(FIRST) + len(DAMAGE[code]))
    assert damage.offset == 3
    assert f"{name(0)}, bytes {len(FIRST)} to " in damage.message
    assert "; expected " in damage.message


def test_a_base_offset_that_is_too_high_condemns_its_own_batch_only():
    found = read({name(0): FIRST + changed(SECOND, 6, b"\x01") + THIRD})
    assert (found.codes, found.offsets) == (["OFFSETS_BACKWARD"], [0, 1, 2, 4, 5])


@pytest.mark.parametrize("magic", [0, 1])
def test_segments_of_old_messages_are_refused_as_one(magic):
    found = read({name(0): b"".join(old_message(at, magic) for at in range(50)), name(50): batch(50, RECORDS)})
    assert (found.codes, found.offsets) == (["OLD_MAGIC"], [50, 51, 52])
    assert f"magic {magic}; expected magic 2" in found.damage[0].message


@pytest.mark.parametrize("text", [b"", b"2026-11-21 12:00:00 INFO started\n" * 100, b"\x02" * 5_000, b"\xff" * 5_000])
def test_a_file_that_is_no_segment_is_damage_from_its_first_byte(text):
    found = read({name(0): text, name(3): SECOND})
    assert found.offsets == [3]
    assert [(each.start, each.end) for each in found.damage] == ([(0, len(text))] if text else [])


def test_a_batch_within_a_record_is_not_taken_for_one():
    """The record holds the bytes of a batch; the batch around it is damaged, and its length still leads behind it."""
    outer = batch(0, [record(0, b"kk", FIRST)])
    found = read({name(0): changed(outer, 30, b"\x01") + batch(1, [record(0, b"kk", b"v")])})
    assert (found.codes, found.offsets) == (["BAD_CRC"], [1])
    twice = changed(outer, 30, b"\x01") + changed(batch(1, [record(0, b"kk", b"v")]), 30, b"\x01")
    found = read({name(0): twice + batch(2, [record(0, b"kk", b"v")])})
    assert (found.codes, found.offsets) == (["BAD_CRC"], [2])


def test_bytes_made_to_look_like_batches_take_no_square_of_time(monkeypatch):
    monkeypatch.setattr("groupledger.core.log.segments.MOST_CHECKED", 10_000)
    header = struct.pack(">qiibIhiqqqhii", 0, 5_000, 0, 2, 7, 0, 0, 0, 0, -1, 0, 0, 1)
    found = read({name(0): header * 200, name(3): SECOND})
    assert (found.codes, found.offsets) == (["BAD_CRC"], [3])


def test_a_disk_that_gives_no_bytes_costs_the_rest_of_its_segment():
    class Broken(io.BytesIO):
        def readinto(self, memory):
            if self.tell() + len(memory) > len(FIRST) + 10:
                raise OSError(5, "Input/output error")
            return super().readinto(memory)

    files = {name(0): Broken(WHOLE), name(6): io.BytesIO(FOURTH)}
    reader = LogReader([Segment(each, int(each[:20])) for each in files], files.__getitem__, decompressed, commits=True)
    *records, damage = reader.read()
    assert (damage.code, damage.start, damage.end) == ("READ_ERROR", len(FIRST), len(WHOLE))
    assert damage.got == "an error of the disk (Input/output error)"
    assert [row[0] for found in records for row in found] == [0, 1, 2, 6]


def test_a_segment_may_be_large_and_a_batch_longer_than_a_window():
    rng = random.Random(7)  # noqa: S311 the same batches each time
    batches, offset = [], 0
    for _ in range(60):
        rows = [record(at, group("g"), rng.randbytes(rng.choice((3, 400)))) for at in range(rng.randint(1, 5))]
        batches.append(batch(offset, rows))
        offset += len(rows)
    with windows_of(150):
        assert read({name(0): b"".join(batches)}).offsets == list(range(offset))
