"""The kernels against a walk over the same bytes in plain Python, one batch and one record at a time."""

import struct

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.arrays import checksums, kernels
from tests.examples import examples
from tests.segments.hand import LOG_APPEND_TIME, batch, commit, group, record
from tests.segments.reading import name, read, windows_of

HEADER, CRC_AT, CHECKED_FROM = 61, 17, 21
KEYS = [None, b"", b"\0", group("a"), commit("a"), b"\0\0\0\1a", b"\1\0", b"k" * 200]
VALUES = [None, b"", b"v", b"v" * 63, b"v" * 64, b"v" * 9_000]
HEADERS = [[], [], [(b"h", None)], [(b"", b"x" * 70), (b"i", b"")]]
BODIES = st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES), st.integers(-70, 9_000), st.sampled_from(HEADERS))


def walk(data, *, commits):
    """Records, where damaged batches begin, and how many offset commits are left out."""
    records, damaged, left_out, position = [], [], 0, 0
    while position < len(data):
        base, length = struct.unpack_from(">qi", data, position)
        body = data[position + CHECKED_FROM : position + 12 + length]
        if google_crc32c.value(body) == int.from_bytes(data[position + CRC_AT : position + CHECKED_FROM]):
            attributes, _, first, last = struct.unpack_from(">hiqq", body)
            for number, delta, key, value in records_of(body[HEADER - CHECKED_FROM :]):
                if not commits and key is not None and key[:2] in (b"\0\0", b"\0\1"):
                    left_out += 1
                else:
                    records.append((base + number, last if attributes & LOG_APPEND_TIME else first + delta, key, value))
        else:
            damaged.append(position)
        position += 12 + length
    return records, damaged, left_out


def records_of(data):
    found, position = [], 0
    while position < len(data):
        length, position = number_at(data, position)
        end = position + length
        delta, position = number_at(data, position + 1)
        number, position = number_at(data, position)
        key, position = text_at(data, position)
        value, position = text_at(data, position)
        found.append((number, delta, key, value))
        position = end
    return found


def number_at(data, position):
    value = shift = 0
    while True:
        value |= (data[position] & 127) << shift
        shift, position = shift + 7, position + 1
        if data[position - 1] < 128:
            return value >> 1 if value % 2 == 0 else -(value // 2) - 1, position


def text_at(data, position):
    length, position = number_at(data, position)
    return (None, position) if length < 0 else (data[position : position + length], position + length)


@st.composite
def logs(draw):
    """Bytes of batches, some of them with a flipped bit where the checksum sees it."""
    data, base = b"", draw(st.integers(0, 1 << 40))
    first = base
    for _ in range(draw(st.integers(1, 12))):
        count, step = draw(st.integers(0, 4)), draw(st.sampled_from([1, 1, 100]))
        bodies = draw(st.lists(BODIES, min_size=count, max_size=count))
        rows = [record(at * step, *body) for at, body in enumerate(bodies)]
        last, attributes = max(0, count * step - 1), draw(st.sampled_from([0, 0, LOG_APPEND_TIME]))
        made = bytearray(batch(base, rows, attributes=attributes, last_delta=last, times=(1 << 40, 1 << 41)))
        if draw(st.integers(0, 4)) == 0:
            made[draw(st.integers(CRC_AT, len(made) - 1))] ^= 1 << draw(st.integers(0, 7))
        data += bytes(made)
        base += last + draw(st.integers(1, 3))
    return first, data


def agree(log, window, *, commits):
    first, data = log
    with windows_of(window):
        found = read({name(first): data, name(1 << 50): b""}, commits=commits)
    records, damaged, left_out = walk(data, commits=commits)
    assert found.records == records
    assert found.left_out.get("offset commit left out", 0) == left_out
    assert [each.code for each in found.damage] == ["BAD_CRC"] * len(found.damage)
    stretches = [range(each.start, each.end) for each in found.damage]
    assert sum(len(stretch) for stretch in stretches) == sum(size_at(data, at) for at in damaged)
    assert all(any(at in stretch for stretch in stretches) for at in damaged)


def size_at(data, position):
    return 12 + int.from_bytes(data[position + 8 : position + 12])


@settings(max_examples=examples(100), deadline=None)
@given(logs(), st.sampled_from([61, 900, 1 << 20]), st.booleans())
def test_every_record_and_every_damaged_batch_is_found(log, window, commits):
    agree(log, window, commits=commits)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(logs(), st.sampled_from([61, 900, 1 << 20]), st.booleans())
def test_so_do_the_compiled_kernels(log, window, commits):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GROUPLEDGER_KERNELS", "numba")
        agree(log, window, commits=commits)


@pytest.mark.slow
@pytest.mark.parametrize("form", [checksums.crc32c, checksums.by_table])
def test_checksums_are_the_library_s(form):
    data = np.random.default_rng(1).integers(0, 256, 2_000, np.uint8)
    compute = kernels.compiled(form, cached=False)
    for start in range(9):
        for end in (*range(start, start + 40), 1_999, 2_000):
            expected = google_crc32c.value(data[start:end].tobytes())
            assert compute(data, start, end) == form(data, start, end) == expected


@pytest.mark.slow
def test_a_processor_without_the_instruction_has_the_table(monkeypatch):
    monkeypatch.setattr("numba.core.config.CPU_NAME", "generic")
    assert checksums._compiled_form() is kernels.compiled(checksums.by_table, cached=False)
