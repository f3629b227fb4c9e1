"""Decompress Kafka's codecs: gzip, snappy (framed as xerial's Java library does, or raw), lz4 frames, zstd."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

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
        with pa.CompressedInputStream(pa.BufferReader(data), _CODECS[codec]) as stream:
            return b"".join(_pieces(stream))
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"bytes that do not decompress ({str(error)[:100]})") from None


def _pieces(stream: pa.NativeFile) -> Iterator[bytes]:
    size = 0
    while piece := stream.read(_PIECE):
        size += len(piece)
        yield _bounded(piece, size)


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
