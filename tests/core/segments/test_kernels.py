"""The compiled kernels mark what the interpreted ones mark."""

import pytest

from groupledger.core.log import record_batches
from tests.segments import real
from tests.segments.reading import read


@pytest.mark.slow
@pytest.mark.parametrize("commits", [True, False])
def test_compiled_and_interpreted_kernels_agree(monkeypatch, commits):
    found = {}
    for way in ("python", "numba"):
        monkeypatch.setenv("GROUPLEDGER_KERNELS", way)
        found[way] = [read(damaged(codec), commits=commits) for codec in real.CODECS]
    assert found["python"] == found["numba"]
    assert all(each.codes for each in found["numba"])


def damaged(codec):
    """Every thirtieth byte of one segment is changed, from the second kilobyte on."""
    files = real.files(codec)
    name = sorted(files)[1]
    data = bytearray(files[name])
    for at in range(2_000, len(data), 30):
        data[at] ^= 0x41
    return files | {name: bytes(data)}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x00", (0, 1)),
        (b"\x01", (-1, 1)),
        (b"\x02", (1, 1)),
        (b"\xd8\x04", (300, 2)),
        (b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", ((1 << 62) - 1, 9)),
        (b"\x80" * 9 + b"\x01", (0, -1)),
        (b"\xd8", (0, -1)),
        (b"", (0, -1)),
    ],
)
def test_varints(data, expected):
    value, position = record_batches.varint(data, 0, len(data))
    assert (int(value), position) == expected


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_big_endian(number):
    assert record_batches.big_endian(number.to_bytes(8, "big", signed=True), 0, 8) == number
